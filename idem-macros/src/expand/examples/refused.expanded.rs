::core::compile_error! {
    "`delivery_tag` belongs to the attempt to deliver, not to the event\nhelp: name what the producer gave the event: `key(msg.order_id)`; if the producer set it, `allow(attempt_scoped, reason = \"…\")`\nnote: the next delivery of the event has another one: its key is new, and the effect happens twice"
}
::core::compile_error! {
    "the retention `7` has no unit\nhelp: a whole number with one of the units `s`, `m`, `h`, `d`, `w`: `retention = \"7d\"`\nnote: a window that is misread doubles an effect; months have no fixed length, a bare number has no unit"
}
/**

# Idempotency

Applies each event once: the key and the effect are written in one transaction.

- handler name: `credit`
- key: ``
- retention: `7`
- redelivery window: not declared

# Errors

The handler's own error, or the engine's. Neither may be acknowledged.*/
#[allow(unused, clippy::all)]
#[allow(clippy::missing_errors_doc, clippy::used_underscore_binding)]
async fn credit(
    engine: &::idem_runtime::EngineFor<Transaction<'_, Sqlite>>,
    msg: &Paid,
) -> ::idem_runtime::Handled<Result<(), sqlx::Error>> {
    ::core::unimplemented!()
}
///The handler `credit` as a type: what consumers run, and its plain body.
#[allow(
    non_camel_case_types,
    missing_copy_implementations,
    missing_debug_implementations
)]
enum credit {}
#[allow(unused, clippy::all)]
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
    ) -> ::core::result::Result<::idem_runtime::Key, ::idem_runtime::KeyError> {
        let _ = &(msg.delivery_tag);
        ::core::unimplemented!()
    }
    ///The handler's body, in a transaction of the caller's: no key, no commit. For tests.
    #[allow(unused, clippy::all)]
    #[allow(clippy::missing_errors_doc)]
    async fn apply_in(
        tx: &mut Transaction<'_, Sqlite>,
        msg: &Paid,
    ) -> Result<(), sqlx::Error> {
        store(tx, msg).await
    }
}
const _: () = {
    const __IDEM_META: &::idem_runtime::HandlerMeta = &::idem_runtime::HandlerMeta::new(
            "credit",
            ::idem_runtime::__private::place!("credit"),
            ::idem_runtime::Semantics::Idempotent,
        )
        .describe("", "Paid")
        .key(&[], ::idem_runtime::Retention::seconds(1u64));
    impl credit {
        /// What the registry knows of the handler.
        const META: &'static ::idem_runtime::HandlerMeta = __IDEM_META;
    }
};
#[allow(unused, clippy::all)]
impl ::idem_runtime::Handler<
    <Transaction<'static, Sqlite> as ::idem_runtime::TxParam>::Store,
> for credit {
    type Message = Paid;
    type State = ();
    type Returned = Result<(), sqlx::Error>;
    const META: &'static ::idem_runtime::HandlerMeta = credit::META;
    fn key(
        message: &Self::Message,
        _state: &Self::State,
    ) -> ::core::result::Result<
        ::core::option::Option<::idem_runtime::Key>,
        ::idem_runtime::KeyError,
    > {
        let _ = credit;
        credit::key(message).map(::core::option::Option::Some)
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
        ::core::unimplemented!()
    }
}
