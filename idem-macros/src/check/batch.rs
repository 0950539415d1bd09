//! A second body, which applies many messages at once.

use crate::args::Args;
use crate::diag::Errors;
use crate::expand;
use crate::handler::Handler;

pub(super) fn refuse(args: &Args, handler: &Handler, errors: &Errors) {
    refuse_batch_with_replay(args, errors);
    refuse_batch_with_external(args, errors);
    refuse_batch_without_consumer(args, handler, errors);
}

/// One result for many messages is none for each.
fn refuse_batch_with_replay(args: &Args, errors: &Errors) {
    let (Some(batch), Some(_)) = (&args.batch, &args.replay) else { return };
    errors.refuse(
        batch.option,
        "`batch` and `replay` exclude each other",
        "remove `batch`, and a batch runs the handler for each of its messages",
        "the function for many messages returns no result for each of them that a duplicate could be handed",
    );
}

/// A transaction that many share is rolled back for the sake of one.
fn refuse_batch_with_external(args: &Args, errors: &Errors) {
    let (Some(batch), false) = (&args.batch, args.external.is_empty()) else { return };
    errors.refuse(
        batch.option,
        "`batch` and `external(…)` exclude each other",
        "remove `batch`: a handler with an effect outside the database gets its messages one by one",
        "when one message of a batch fails, all are rolled back and run again, and so would the effects outside",
    );
}

/// Only consumers, and `Engine::handle_batch`, have many messages.
fn refuse_batch_without_consumer(args: &Args, handler: &Handler, errors: &Errors) {
    let Some(batch) = args.batch.as_ref().filter(|_| !expand::can_be_consumed(args, handler)) else { return };
    errors.refuse(
        batch.option,
        "`batch` is for handlers that consumers can run, and this is none",
        "a function without type parameters that takes `msg: &Message` and at most one `state: &State`, or no `batch`",
        "nobody would ever call the function that is named here",
    );
}
