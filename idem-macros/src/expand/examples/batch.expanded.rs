/// Credits the order.
/**

# Idempotency

Applies each event once: the key and the effect are written in one transaction.

- handler name: `credit`
- key: `msg.order_id`
- retention: `7d`
- redelivery window: not declared
- many at once: `credit_all`

# Errors

The handler's own error, or the engine's. Neither may be acknowledged.*/
#[allow(clippy::missing_errors_doc, clippy::used_underscore_binding)]
async fn credit(
    engine: &::idem_runtime::EngineFor<Transaction<'_, Sqlite>>,
    msg: &Paid,
    ledger: &Ledger,
) -> ::idem_runtime::Handled<Result<(), sqlx::Error>> {
    <credit as ::idem_runtime::Handler<_>>::call(engine, msg, ledger).await
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
        msg: &Paid,
        ledger: &Ledger,
    ) -> ::core::result::Result<::idem_runtime::Key, ::idem_runtime::KeyError> {
        ::idem_runtime::Key::of(
            ::idem_runtime::__private::key_part(&(msg.order_id)),
            &[],
        )
    }
    ///The handler's body, in a transaction of the caller's: no key, no commit. For tests.
    #[allow(clippy::missing_errors_doc)]
    async fn apply_in(
        tx: &mut Transaction<'_, Sqlite>,
        #[allow(unused_variables)]
        msg: &Paid,
        ledger: &Ledger,
    ) -> Result<(), sqlx::Error> {
        credit_all(tx, &[msg], ledger).await
    }
}
const _: () = {
    const __IDEM_META: &::idem_runtime::HandlerMeta = &::idem_runtime::HandlerMeta::new(
            "credit",
            ::idem_runtime::__private::place!("credit"),
            ::idem_runtime::Semantics::Idempotent,
        )
        .describe("Credits the order.", "Paid")
        .key(&["msg.order_id"], ::idem_runtime::Retention::seconds(604800u64));
    ::idem_runtime::__private::inventory::submit! {
        ::idem_runtime::__private::Registered(__IDEM_META)
    }
    impl credit {
        /// What the registry knows of the handler.
        const META: &'static ::idem_runtime::HandlerMeta = __IDEM_META;
    }
};
impl ::idem_runtime::Handler<
    <Transaction<'static, Sqlite> as ::idem_runtime::TxParam>::Store,
> for credit {
    type Message = Paid;
    type State = Ledger;
    type Returned = Result<(), sqlx::Error>;
    const META: &'static ::idem_runtime::HandlerMeta = credit::META;
    fn key(
        message: &Self::Message,
        state: &Self::State,
    ) -> ::core::result::Result<
        ::core::option::Option<::idem_runtime::Key>,
        ::idem_runtime::KeyError,
    > {
        let _ = credit;
        credit::key(message, state).map(::core::option::Option::Some)
    }
    #[allow(non_snake_case, clippy::used_underscore_binding)]
    fn call<'a>(
        engine: &'a ::idem_runtime::Engine<
            <Transaction<'static, Sqlite> as ::idem_runtime::TxParam>::Store,
        >,
        msg: &'a Self::Message,
        ledger: &'a Self::State,
    ) -> ::idem_runtime::__private::BoxFuture<
        'a,
        ::idem_runtime::Handled<Self::Returned>,
    > {
        ::idem_runtime::__private::run(
            engine,
            <Self as ::idem_runtime::Handler<
                <Transaction<'static, Sqlite> as ::idem_runtime::TxParam>::Store,
            >>::prepare(msg, ledger),
        )
    }
    #[allow(non_snake_case, clippy::used_underscore_binding)]
    fn prepare<'a>(
        msg: &'a Self::Message,
        ledger: &'a Self::State,
    ) -> ::core::option::Option<
        ::idem_runtime::__private::Prepared<
            'a,
            <Transaction<'static, Sqlite> as ::idem_runtime::TxParam>::Store,
            Self::Returned,
        >,
    > {
        ::core::option::Option::Some({
            #[allow(unused_imports)]
            use ::idem_runtime::__private::via::*;
            let __idem_plan = ::idem_runtime::__private::Plan::<
                Result<(), sqlx::Error>,
            >::keyed(
                credit::META,
                || credit::key(msg, ledger),
                |__idem_error| {
                    (&&&::idem_runtime::__private::Cause(__idem_error)).sqlx_error()
                },
            );
            ::idem_runtime::__private::prepare(
                __idem_plan,
                ::idem_runtime::__private::Forget,
                move |__idem_attempt| {
                    ::idem_runtime::__private::Box::pin(
                        credit::apply_in(__idem_attempt.tx(), msg, ledger),
                    )
                },
            )
        })
    }
    const APPLIES_ALL: bool = true;
    fn apply_all<'c, 't>(
        __idem_attempt: ::idem_runtime::__private::Attempt<
            'c,
            'c,
            't,
            <Transaction<'static, Sqlite> as ::idem_runtime::TxParam>::Store,
        >,
        messages: &'t [&'t Self::Message],
        state: &'t Self::State,
    ) -> ::core::option::Option<
        ::idem_runtime::__private::BoxFuture<
            't,
            ::idem_runtime::__private::SliceReturned<Self::Returned>,
        >,
    > {
        ::core::option::Option::Some(
            ::idem_runtime::__private::slice(
                credit_all(__idem_attempt.tx(), messages, state),
            ),
        )
    }
}
