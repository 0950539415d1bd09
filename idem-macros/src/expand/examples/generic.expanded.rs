/**

# Idempotency

Applies each event once: the key and the effect are written in one transaction.

- handler name: `credit`
- key: `msg.order_id()`
- retention: `36h`
- redelivery window: not declared

# Errors

The handler's own error, or the engine's. Neither may be acknowledged.*/
#[allow(clippy::missing_errors_doc, clippy::used_underscore_binding)]
async fn credit<DB, M>(
    engine: &::idem_runtime::EngineFor<Transaction<'_, DB>>,
    msg: &M,
    accounts: &Accounts,
) -> ::idem_runtime::Handled<Result<(), sqlx::Error>>
where
    DB: Store,
    M: Order + Sync,
{
    {
        #[allow(unused_imports)]
        use ::idem_runtime::__private::via::*;
        let __idem_plan = ::idem_runtime::__private::Plan::<
            Result<(), sqlx::Error>,
        >::keyed(
            credit::META,
            || credit::key::<DB, M>(msg, accounts),
            |__idem_error| {
                (&&&::idem_runtime::__private::Cause(__idem_error)).sqlx_error()
            },
        );
        ::idem_runtime::__private::prepare(
            __idem_plan,
            ::idem_runtime::__private::Forget,
            move |__idem_attempt| {
                ::idem_runtime::__private::Box::pin(
                    credit::apply_in::<DB, M>(__idem_attempt.tx(), msg, accounts),
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
    fn key<DB, M>(
        msg: &M,
        accounts: &Accounts,
    ) -> ::core::result::Result<::idem_runtime::Key, ::idem_runtime::KeyError>
    where
        DB: Store,
        M: Order + Sync,
    {
        ::idem_runtime::Key::of(
            ::idem_runtime::__private::key_part(&(msg.order_id())),
            &[],
        )
    }
    ///The handler's body, in a transaction of the caller's: no key, no commit. For tests.
    #[allow(clippy::missing_errors_doc)]
    async fn apply_in<DB, M>(
        tx: &mut Transaction<'_, DB>,
        #[allow(unused_variables)]
        msg: &M,
        accounts: &Accounts,
    ) -> Result<(), sqlx::Error>
    where
        DB: Store,
        M: Order + Sync,
    {
        accounts.credit(tx, msg).await
    }
}
const _: () = {
    const __IDEM_META: &::idem_runtime::HandlerMeta = &::idem_runtime::HandlerMeta::new(
            "credit",
            ::idem_runtime::__private::place!("credit"),
            ::idem_runtime::Semantics::Idempotent,
        )
        .describe("", "M")
        .key(&["msg.order_id()"], ::idem_runtime::Retention::seconds(129600u64));
    ::idem_runtime::__private::inventory::submit! {
        ::idem_runtime::__private::Registered(__IDEM_META)
    }
    impl credit {
        /// What the registry knows of the handler.
        const META: &'static ::idem_runtime::HandlerMeta = __IDEM_META;
    }
};
