/// Charges the card.
/**

# Idempotency

Applies each event once: the key and the effect are written in one transaction.

- handler name: `charge`
- key: `msg.order_id`, `msg.attempt`
- retention and redelivery window: policy `PAYMENTS`
- external effect: stripe, guard `provider_key`, window `30d`, risk: a second charge after a month
- external effect: mail, guard `none`, risk: a second mail, which says the same
- exception: `attempt_scoped`, since the customer's attempt to pay, numbered by the shop

# Errors

The handler's own error, or the engine's. Neither may be acknowledged.*/
#[allow(clippy::missing_errors_doc, clippy::used_underscore_binding)]
async fn charge(
    engine: &::idem_runtime::EngineFor<Transaction<'_, Postgres>>,
    msg: &Order,
    stripe: &Stripe,
) -> ::idem_runtime::Handled<Result<(), Error>> {
    <charge as ::idem_runtime::Handler<_>>::call(engine, msg, stripe).await
}
///The handler `charge` as a type: what consumers run, and its plain body.
#[allow(
    non_camel_case_types,
    missing_copy_implementations,
    missing_debug_implementations
)]
enum charge {}
impl charge {
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
        msg: &Order,
        stripe: &Stripe,
    ) -> ::core::result::Result<::idem_runtime::Key, ::idem_runtime::KeyError> {
        ::idem_runtime::Key::of(
            ::idem_runtime::__private::key_part(&(msg.order_id)),
            &[::idem_runtime::__private::key_part(&(msg.attempt))],
        )
    }
    ///The handler's body, in a transaction of the caller's: no key, no commit. For tests.
    #[allow(clippy::missing_errors_doc)]
    async fn apply_in(
        tx: &mut Transaction<'_, Postgres>,
        #[allow(unused_variables)]
        msg: &Order,
        stripe: &Stripe,
    ) -> Result<(), Error> {
        stripe.charge(charge::key(msg, stripe)?.as_str(), msg.cents).await?;
        store(tx, msg).await
    }
}
const _: () = {
    const __IDEM_META: &::idem_runtime::HandlerMeta = &::idem_runtime::HandlerMeta::new(
            "charge",
            ::idem_runtime::__private::place!("charge"),
            ::idem_runtime::Semantics::Idempotent,
        )
        .describe("Charges the card.", "Order")
        .policy(&["msg.order_id", "msg.attempt"], "PAYMENTS", &PAYMENTS)
        .external(
            &[
                ::idem_runtime::External::new(
                        "stripe",
                        ::idem_runtime::Guard::ProviderKey,
                        "a second charge after a month",
                    )
                    .window(::idem_runtime::Retention::seconds(2592000u64)),
                ::idem_runtime::External::new(
                    "mail",
                    ::idem_runtime::Guard::None,
                    "a second mail, which says the same",
                ),
            ],
        )
        .allowed(
            &[
                ::idem_runtime::Allowed::new(
                    "attempt_scoped",
                    "the customer's attempt to pay, numbered by the shop",
                ),
            ],
        );
    const _: () = __IDEM_META.compare_providers();
    ::idem_runtime::__private::inventory::submit! {
        ::idem_runtime::__private::Registered(__IDEM_META)
    }
    impl charge {
        /// What the registry knows of the handler.
        const META: &'static ::idem_runtime::HandlerMeta = __IDEM_META;
    }
};
impl ::idem_runtime::Handler<
    <Transaction<'static, Postgres> as ::idem_runtime::TxParam>::Store,
> for charge {
    type Message = Order;
    type State = Stripe;
    type Returned = Result<(), Error>;
    const META: &'static ::idem_runtime::HandlerMeta = charge::META;
    fn key(
        message: &Self::Message,
        state: &Self::State,
    ) -> ::core::result::Result<
        ::core::option::Option<::idem_runtime::Key>,
        ::idem_runtime::KeyError,
    > {
        let _ = charge;
        charge::key(message, state).map(::core::option::Option::Some)
    }
    #[allow(non_snake_case, clippy::used_underscore_binding)]
    fn call<'a>(
        engine: &'a ::idem_runtime::Engine<
            <Transaction<'static, Postgres> as ::idem_runtime::TxParam>::Store,
        >,
        msg: &'a Self::Message,
        stripe: &'a Self::State,
    ) -> ::idem_runtime::__private::BoxFuture<
        'a,
        ::idem_runtime::Handled<Self::Returned>,
    > {
        ::idem_runtime::__private::run(
            engine,
            <Self as ::idem_runtime::Handler<
                <Transaction<'static, Postgres> as ::idem_runtime::TxParam>::Store,
            >>::prepare(msg, stripe),
        )
    }
    #[allow(non_snake_case, clippy::used_underscore_binding)]
    fn prepare<'a>(
        msg: &'a Self::Message,
        stripe: &'a Self::State,
    ) -> ::core::option::Option<
        ::idem_runtime::__private::Prepared<
            'a,
            <Transaction<'static, Postgres> as ::idem_runtime::TxParam>::Store,
            Self::Returned,
        >,
    > {
        ::core::option::Option::Some({
            #[allow(unused_imports)]
            use ::idem_runtime::__private::via::*;
            let __idem_plan = ::idem_runtime::__private::Plan::<
                Result<(), Error>,
            >::keyed(
                charge::META,
                || charge::key(msg, stripe),
                |__idem_error| {
                    (&&&::idem_runtime::__private::Cause(__idem_error)).sqlx_error()
                },
            );
            ::idem_runtime::__private::prepare(
                __idem_plan,
                ::idem_runtime::__private::Forget,
                move |__idem_attempt| {
                    ::idem_runtime::__private::Box::pin(
                        charge::apply_in(__idem_attempt.tx(), msg, stripe),
                    )
                },
            )
        })
    }
}
