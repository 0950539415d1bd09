//! One suite for every store. It states five invariants:
//!
//! 1. acked implies that key row and effect row are both durable;
//! 2. an effect row is durable if and only if its key row is;
//! 3. anything not acked can be delivered again, and then completes exactly once;
//! 4. different keys never suppress each other; equal ones always do, within retention;
//! 5. purge removes only rows past their own retention, and never stalls handlers (with the purge).
//!
//! The names in brackets (B01 …) are the faults of comparable systems that an exercise answers.

mod batch;
mod claim;
mod commit;
mod consumer;
mod escape;
mod keyed;
mod keyless;
mod keys;
mod lease;
mod lifecycle;
mod processes;
mod purge;
mod races;
mod results;
mod rounds;
mod start;
mod webhook;

pub(crate) use keyless::{Ping, natural, ping};
#[cfg(feature = "databases")]
pub(crate) use lease::jump;
pub(crate) use purge::{keys_of_two_handlers, purger};
#[cfg(feature = "databases")]
pub(crate) use purge::{purged, until_none};
pub(crate) use races::{points, reached};

/// One test per exercise, each on a database of its own.
macro_rules! suite {
    ($module:ident, $store:ty, $service:literal: $($topic:ident: $($exercise:ident)*;)*) => {
        mod $module {
            $(mod $topic {$(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $exercise() {
                    if idem_tests::without_server($service) {
                        return;
                    }
                    idem_tests::Db::<$store>::test(super::super::$topic::$exercise).await;
                }
            )*})*
        }
    };
}

macro_rules! for_each_store {
    ($($exercises:tt)*) => {
        suite!(sqlite, sqlx::Sqlite, "sqlite": $($exercises)*);
        #[cfg(feature = "databases")]
        suite!(postgres, sqlx::Postgres, "postgres": $($exercises)*);
        #[cfg(feature = "databases")]
        suite!(mysql, sqlx::MySql, "mysql": $($exercises)*);
    };
}

for_each_store! {
    keyed:
        a_retry_gets_the_response_of_the_first
        another_request_under_a_key_is_refused
        what_may_end_better_stores_nothing
        a_request_without_what_is_needed_is_told_so
        a_key_in_flight_is_rejected_at_once_or_waits
        a_key_in_flight_in_another_process_is_found_by_the_database
        a_client_that_hangs_up_leaves_nothing_and_its_retry_is_answered
        a_transaction_that_is_kept_or_committed_by_hand_is_found_out
        without_a_key_an_optional_route_runs_each_time
        a_routes_keys_are_purged_and_an_undeclared_route_is_refused;
    webhook:
        an_event_is_applied_once_and_each_delivery_gets_the_same_answer
        what_is_not_the_senders_is_refused_before_anything_is_stored
        a_body_that_is_no_event_is_refused
        what_fails_is_no_success_and_succeeds_when_it_is_sent_again
        a_sender_that_hangs_up_finds_a_duplicate
        a_success_means_that_every_handler_is_done
        an_accepted_event_is_stored_once_and_applied_once
        an_event_that_cannot_be_stored_is_not_accepted
        what_contradicts_its_declaration_is_refused;
    commit:
        a_swallowed_error_is_never_reported_as_applied
        a_constraint_that_fails_at_the_commit_fails_the_delivery
        every_early_exit_ends_as_its_value_says
        a_failing_handler_leaves_no_key_until_it_succeeds
        contention_runs_the_whole_transaction_again
        contention_is_given_up_after_the_last_run
        a_moved_message_runs_again_only_if_it_can_be_cloned;
    escape:
        a_rollback_by_the_handler_is_found_out
        a_commit_by_the_handler_is_found_out
        a_commit_and_a_new_transaction_are_found_out
        a_commit_before_an_error_is_found_out
        a_commit_before_a_panic_is_found_out
        a_transaction_that_was_exchanged_is_found_out;
    claim:
        new_and_duplicate_are_told_apart_on_one_connection
        a_refused_insert_is_a_failure_and_never_a_duplicate
        a_foreign_unique_index_is_a_failure_and_never_a_duplicate
        two_handlers_apply_the_same_key_once_each
        a_handler_type_is_what_consumers_run;
    batch:
        a_batch_is_applied_in_one_transaction
        the_same_key_twice_in_a_batch_is_one_effect
        a_message_that_fails_takes_no_other_down
        whoever_ends_the_transaction_is_found_out
        two_batches_with_the_same_keys_do_not_deadlock
        what_stands_beside_the_key_is_judged_for_each
        a_slice_holds_the_new_messages_alone
        an_effect_outside_the_database_is_never_in_a_batch
        a_batch_that_is_dropped_leaves_nothing;
    keys:
        a_missing_part_is_refused_and_stores_nothing
        any_text_is_a_key_of_its_own
        long_keys_stay_apart_and_their_rows_small
        case_and_accents_make_different_events
        no_column_of_the_unique_key_can_be_null
        a_panic_while_the_key_is_made_is_a_failed_delivery
        a_pinned_name_survives_another_function
        an_event_is_found_with_a_plain_select;
    keyless:
        a_delivery_without_a_key_is_applied_each_time
        what_goes_wrong_without_a_key_leaves_nothing_behind
        contention_without_a_key_runs_the_whole_transaction_again
        a_transaction_that_escapes_without_a_key_is_found_out
        at_most_once_is_acknowledged_whatever_happens;
    races:
        of_many_deliveries_at_once_one_is_applied
        a_delivery_waits_for_the_one_in_flight
        past_its_bound_the_wait_is_busy
        waiters_take_over_when_the_first_fails
        two_handlers_in_opposite_order_both_get_through;
    lifecycle:
        a_panic_leaves_nothing_behind
        a_cancelled_body_leaves_nothing_behind
        deliveries_cut_off_anywhere_leave_clean_connections
        one_connection_is_enough
        others_get_the_connection_between_deliveries
        a_second_connection_fails_within_the_timeout
        many_keys_need_few_statements
        without_a_statement_cache_none_is_kept
        a_killed_connection_is_survived;
    processes:
        killed_anywhere_the_redelivery_completes_once
        two_processes_apply_one_event_once
        a_purge_that_is_killed_leaves_nothing_wrong;
    results:
        a_duplicate_gets_the_stored_result
        a_result_that_does_not_read_is_an_error_and_no_second_run
        a_key_from_before_replay_has_no_result
        another_fingerprint_is_a_mismatch
        a_key_from_before_the_fingerprint_is_a_duplicate
        an_event_older_than_its_retention_is_parked
        an_event_from_the_future_is_parked;
    purge:
        only_keys_past_their_own_retention_go
        retention_is_that_of_whoever_wants_the_key_longest
        a_shorter_retention_waits_for_the_old_nodes_and_is_loud
        a_changed_key_is_an_error_in_the_log
        a_hold_keeps_every_node_from_purging
        one_node_purges_at_a_time
        nothing_is_purged_right_after_a_start
        no_key_goes_while_its_event_is_accepted
        the_highest_age_of_a_duplicate_is_kept
        the_longest_retention_works
        a_pass_that_fails_is_no_end;
    rounds:
        two_nodes_purge_while_handlers_insert
        deliveries_beside_a_purge_are_nearly_as_fast_as_alone
        deliveries_get_the_only_connection_between_batches
        a_hold_ends_the_pass_that_runs
        the_wait_begins_anew_after_a_time_without_nodes
        a_round_that_panics_or_fails_is_no_end
        a_handler_that_cannot_be_purged_keeps_no_other_from_it
        figures_say_what_is_there;
    lease:
        a_pass_ends_soon_after_another_node_took_its_lease
        a_pass_renews_its_lease_while_it_runs;
    consumer:
        every_event_is_applied_once_and_the_queue_is_empty
        acknowledged_together_each_has_an_answer_of_its_own
        batches_apply_every_event_once
        two_consumers_share_a_queue
        what_never_succeeds_waits_for_a_human_with_its_reason
        all_handlers_of_a_message_are_done_before_the_ack
        at_most_once_is_acknowledged_before_it_runs
        a_handler_slower_than_the_lease_keeps_its_message
        what_does_not_end_in_time_is_rolled_back_and_given_back
        a_message_in_a_transaction_is_there_with_its_commit
        a_database_in_trouble_costs_no_attempts
        a_consumer_that_cannot_work_says_so_at_its_start;
    start:
        missing_tables_say_what_to_run
        newer_tables_are_refused
        migrating_twice_at_once_is_fine
        a_read_only_database_is_named
        no_server_is_an_error_at_start;
}

#[cfg(not(feature = "databases"))]
mod left_out {
    #[test]
    #[ignore = "left out: PostgreSQL, MySQL and MariaDB need servers, which `tests/run` finds or starts"]
    fn the_suites_that_need_a_server() {}
}
