/**

# Idempotency

Applies each event once: the key and the effect are written in one transaction.

- handler name: `credit`
- key: `order_id`
- retention: `7d`
- redelivery window: not declared
- equal in every delivery of the event: `cents`
- time of the event: `at`
- a duplicate is handed the first result

# Errors

The handler's own error, or the engine's. Neither may be acknowledged.*/
#[allow(clippy::missing_errors_doc, clippy::used_underscore_binding)]
async fn credit(
    engine: &billing::idem_runtime::EngineFor<SqliteConnection>,
    __idem_arg0: Paid,
) -> billing::idem_runtime::Handled<Result<Receipt, Error>> {
    {
        #[allow(unused_imports)]
        use billing::idem_runtime::__private::via::*;
        let __idem_plan = billing::idem_runtime::__private::Plan::<
            Result<Receipt, Error>,
        >::keyed(
            credit::META,
            || credit::key(&__idem_arg0),
            |__idem_error| {
                (&&&billing::idem_runtime::__private::Cause(__idem_error)).sqlx_error()
            },
        );
        let mut __idem_slot0 = {
            let __idem_clone = (&&billing::idem_runtime::__private::CloneProbe(
                &__idem_arg0,
            ))
                .clone_fn();
            billing::idem_runtime::__private::Owned::new(__idem_arg0, __idem_clone)
        };
        billing::idem_runtime::__private::prepare(
            __idem_plan.repeatable_if(__idem_slot0.is_repeatable()),
            billing::idem_runtime::__private::Remember,
            move |__idem_attempt| {
                let __idem_slot0 = __idem_slot0.for_next_run();
                billing::idem_runtime::__private::Box::pin(
                    credit::apply_in(__idem_attempt.tx(), __idem_slot0),
                )
            },
        )
    }
        .run(engine)
        .await
}
///The handler `credit` as a type: what consumers run, and its plain body.
#[allow(
    non_camel_case_types,
    missing_copy_implementations,
    missing_debug_implementations
)]
enum credit {}
impl credit {
    /// The key of the message's event.
    #[allow(
        unused_variables,
        unused_parens,
        unused_lifetimes,
        single_use_lifetimes,
        non_snake_case
    )]
    #[allow(clippy::all, clippy::pedantic)]
    fn key(
        Paid { order_id, cents, at }: &(Paid),
    ) -> ::core::result::Result<
        billing::idem_runtime::Key,
        billing::idem_runtime::KeyError,
    > {
        billing::idem_runtime::Key::of(
                billing::idem_runtime::__private::key_part(&(order_id)),
                &[],
            )
            .map(|__idem_key| {
                __idem_key
                    .with_fingerprint(
                        &[billing::idem_runtime::__private::fingerprint_part(&(cents))],
                    )
                    .with_occurred_at(at)
            })
    }
    ///The handler's body, in a transaction of the caller's: no key, no commit. For tests.
    #[allow(clippy::missing_errors_doc)]
    async fn apply_in(
        conn: &mut SqliteConnection,
        #[allow(unused_variables)]
        Paid { order_id, mut cents, at }: Paid,
    ) -> Result<Receipt, Error> {
        cents += FEE;
        receipt(conn, order_id, cents, at).await
    }
}
const _: () = {
    const __IDEM_META: &billing::idem_runtime::HandlerMeta = &billing::idem_runtime::HandlerMeta::new(
            "credit",
            billing::idem_runtime::__private::place!("credit"),
            billing::idem_runtime::Semantics::Idempotent,
        )
        .describe("", "Paid")
        .key(&["order_id"], billing::idem_runtime::Retention::seconds(604800u64))
        .fingerprint(&["cents"])
        .occurred_at("at")
        .replay();
    billing::idem_runtime::__private::inventory::submit! {
        billing::idem_runtime::__private::Registered(__IDEM_META)
    }
    impl credit {
        /// What the registry knows of the handler.
        const META: &'static billing::idem_runtime::HandlerMeta = __IDEM_META;
    }
};
