/**

# Naturally idempotent

Runs in a transaction for every delivery: applying an event again changes nothing.

- handler name: `price`
- redelivery window: not declared
- reason: sets the price to the message's value

# Errors

The handler's own error, or the engine's. Neither may be acknowledged.*/
#[allow(clippy::missing_errors_doc, clippy::used_underscore_binding)]
pub async fn price(
    engine: &::idem_runtime::EngineFor<Transaction<'_, Sqlite>>,
    msg: &Priced,
) -> ::idem_runtime::Handled<Result<(), sqlx::Error>> {
    <price as ::idem_runtime::Handler<_>>::call(engine, msg, &()).await
}
///The handler `price` as a type: what consumers run, and its plain body.
#[allow(
    non_camel_case_types,
    missing_copy_implementations,
    missing_debug_implementations
)]
pub enum price {}
impl price {
    ///The handler's body, in a transaction of the caller's: no commit. For tests.
    #[allow(clippy::missing_errors_doc)]
    pub async fn apply_in(
        tx: &mut Transaction<'_, Sqlite>,
        msg: &Priced,
    ) -> Result<(), sqlx::Error> {
        sqlx::query("UPDATE item SET cents = ? WHERE id = ?")
            .bind(msg.cents)
            .bind(&msg.item)
            .execute(&mut **tx)
            .await?;
        Ok(())
    }
}
const _: () = {
    const __IDEM_META: &::idem_runtime::HandlerMeta = &::idem_runtime::HandlerMeta::new(
            "price",
            ::idem_runtime::__private::place!("price"),
            ::idem_runtime::Semantics::NaturallyIdempotent {
                reason: "sets the price to the message's value",
            },
        )
        .describe("", "Priced");
    ::idem_runtime::__private::inventory::submit! {
        ::idem_runtime::__private::Registered(__IDEM_META)
    }
    impl price {
        /// What the registry knows of the handler.
        pub const META: &'static ::idem_runtime::HandlerMeta = __IDEM_META;
    }
};
impl ::idem_runtime::Handler<
    <Transaction<'static, Sqlite> as ::idem_runtime::TxParam>::Store,
> for price {
    type Message = Priced;
    type State = ();
    type Returned = Result<(), sqlx::Error>;
    const META: &'static ::idem_runtime::HandlerMeta = price::META;
    fn key(
        _message: &Self::Message,
        _state: &Self::State,
    ) -> ::core::result::Result<
        ::core::option::Option<::idem_runtime::Key>,
        ::idem_runtime::KeyError,
    > {
        let _ = price;
        ::core::result::Result::Ok(::core::option::Option::None)
    }
    #[allow(non_snake_case, clippy::used_underscore_binding)]
    fn call<'a>(
        engine: &'a ::idem_runtime::Engine<
            <Transaction<'static, Sqlite> as ::idem_runtime::TxParam>::Store,
        >,
        msg: &'a Self::Message,
        _no_state: &'a Self::State,
    ) -> ::idem_runtime::__private::BoxFuture<
        'a,
        ::idem_runtime::Handled<Self::Returned>,
    > {
        ::idem_runtime::__private::run(
            engine,
            <Self as ::idem_runtime::Handler<
                <Transaction<'static, Sqlite> as ::idem_runtime::TxParam>::Store,
            >>::prepare(msg, _no_state),
        )
    }
    #[allow(non_snake_case, clippy::used_underscore_binding)]
    fn prepare<'a>(
        msg: &'a Self::Message,
        _no_state: &'a Self::State,
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
            >::unkeyed(
                price::META,
                |__idem_error| {
                    (&&&::idem_runtime::__private::Cause(__idem_error)).sqlx_error()
                },
            );
            ::idem_runtime::__private::prepare(
                __idem_plan,
                ::idem_runtime::__private::Forget,
                move |__idem_attempt| {
                    ::idem_runtime::__private::Box::pin(
                        price::apply_in(__idem_attempt.tx(), msg),
                    )
                },
            )
        })
    }
}
