impl Accounts {
    /// Credits the account of the order.
    /**

# Idempotency

Applies each event once: the key and the effect are written in one transaction.

- handler name: `accounts.credit`
- key: `msg.order_id`
- retention: `WINDOW`
- redelivery window: `broker BROKER`

# Errors

The handler's own error, or the engine's. Neither may be acknowledged.*/
    #[allow(clippy::missing_errors_doc, clippy::used_underscore_binding)]
    pub(crate) async fn credit(
        self: Arc<Self>,
        engine: &::idem_runtime::EngineFor<Transaction<'_, Sqlite>>,
        msg: &Paid,
    ) -> ::idem_runtime::Handled<anyhow::Result<i64>> {
        const __IDEM_META: &::idem_runtime::HandlerMeta = &::idem_runtime::HandlerMeta::new(
                "accounts.credit",
                ::idem_runtime::__private::place!("credit"),
                ::idem_runtime::Semantics::Idempotent,
            )
            .pinned()
            .describe("Credits the account of the order.", "Paid")
            .key(&["msg.order_id"], WINDOW)
            .redelivery(&[::idem_runtime::Window::new("broker", BROKER)]);
        const _: () = __IDEM_META.compare_retention();
        ::idem_runtime::__private::inventory::submit! {
            ::idem_runtime::__private::Registered(__IDEM_META)
        }
        {
            #[allow(unused_imports)]
            use ::idem_runtime::__private::via::*;
            let __idem_plan = ::idem_runtime::__private::Plan::<
                anyhow::Result<i64>,
            >::keyed(
                __IDEM_META,
                || {
                    #[allow(unused_variables, clippy::shadow_same)]
                    let msg = msg;
                    ::idem_runtime::Key::of(
                        ::idem_runtime::__private::key_part(&(msg.order_id)),
                        &[],
                    )
                },
                |__idem_error| {
                    (&&&::idem_runtime::__private::Cause(__idem_error)).sqlx_error()
                },
            );
            let mut __idem_slot0 = {
                let __idem_clone = (&&::idem_runtime::__private::CloneProbe(&self))
                    .clone_fn();
                ::idem_runtime::__private::Owned::new(self, __idem_clone)
            };
            ::idem_runtime::__private::prepare(
                __idem_plan.repeatable_if(__idem_slot0.is_repeatable()),
                ::idem_runtime::__private::Forget,
                move |__idem_attempt| {
                    let __idem_slot0 = __idem_slot0.for_next_run();
                    ::idem_runtime::__private::Box::pin(
                        Self::credit_in(__idem_slot0, __idem_attempt.tx(), msg),
                    )
                },
            )
        }
            .run(engine)
            .await
    }
    #[allow(dead_code)]
    ///The handler's body, in a transaction of the caller's: no key, no commit. For tests.
    #[allow(clippy::missing_errors_doc)]
    pub(crate) async fn credit_in(
        self: Arc<Self>,
        tx: &mut Transaction<'_, Sqlite>,
        #[allow(unused_variables)]
        msg: &Paid,
    ) -> anyhow::Result<i64> {
        Ok(self.add(tx, msg.cents).await?)
    }
}
