/**

# At most once

The delivery is acknowledged before the handler runs, so that its effect never happens twice and can be lost.

- handler name: `plot`
- reason: a late reading is worthless
- lost on failure: one reading in the chart

# Errors

The handler's own error, or that it panicked. Either way the event is lost.*/
#[allow(clippy::missing_errors_doc, clippy::used_underscore_binding)]
async fn plot<__IdemStore: ::idem_runtime::Store>(
    engine: &::idem_runtime::Engine<__IdemStore>,
    msg: &Reading,
    chart: &Chart,
) -> ::idem_runtime::Handled<Result<(), ChartError>> {
    <plot as ::idem_runtime::Handler<_>>::call(engine, msg, chart).await
}
///The handler `plot` as a type: what consumers run, and its plain body.
#[allow(
    non_camel_case_types,
    missing_copy_implementations,
    missing_debug_implementations
)]
enum plot {}
impl plot {
    ///The handler's body, without the engine. For tests.
    #[allow(clippy::missing_errors_doc)]
    async fn apply(msg: &Reading, chart: &Chart) -> Result<(), ChartError> {
        chart.plot(msg.at, msg.value).await
    }
}
const _: () = {
    const __IDEM_META: &::idem_runtime::HandlerMeta = &::idem_runtime::HandlerMeta::new(
            "plot",
            ::idem_runtime::__private::place!("plot"),
            ::idem_runtime::Semantics::AtMostOnce {
                reason: "a late reading is worthless",
                loss: "one reading in the chart",
            },
        )
        .describe("", "Reading");
    ::idem_runtime::__private::inventory::submit! {
        ::idem_runtime::__private::Registered(__IDEM_META)
    }
    impl plot {
        /// What the registry knows of the handler.
        const META: &'static ::idem_runtime::HandlerMeta = __IDEM_META;
    }
};
impl<__IdemStore: ::idem_runtime::Store> ::idem_runtime::Handler<__IdemStore> for plot {
    type Message = Reading;
    type State = Chart;
    type Returned = Result<(), ChartError>;
    const META: &'static ::idem_runtime::HandlerMeta = plot::META;
    fn key(
        _message: &Self::Message,
        _state: &Self::State,
    ) -> ::core::result::Result<
        ::core::option::Option<::idem_runtime::Key>,
        ::idem_runtime::KeyError,
    > {
        let _ = plot::<__IdemStore>;
        ::core::result::Result::Ok(::core::option::Option::None)
    }
    #[allow(non_snake_case, clippy::used_underscore_binding)]
    fn call<'a>(
        engine: &'a ::idem_runtime::Engine<__IdemStore>,
        msg: &'a Self::Message,
        chart: &'a Self::State,
    ) -> ::idem_runtime::__private::BoxFuture<
        'a,
        ::idem_runtime::Handled<Self::Returned>,
    > {
        ::idem_runtime::__private::run_at_most_once(
            engine,
            plot::META,
            plot::apply(msg, chart),
        )
    }
}
