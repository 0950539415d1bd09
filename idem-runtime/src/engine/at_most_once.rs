//! An at-most-once handler: its delivery was acknowledged before, and nothing of ours is around it.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tracing::Instrument;

use super::Engine;
use super::body::{handled, panic_text};
use super::deliver::Ended;
use super::setback::Stop;
use crate::error::{Error, ErrorKind};
use crate::handler::{Handled, HandlerMeta, HandlerResult};
use crate::store::Store;
use crate::telemetry::{self, Loss};

/// Runs a handler's body once, without a transaction and without a key. What an at-most-once function calls.
///
/// # Errors
///
/// [`Failure::Handler`](crate::Failure::Handler) when the handler returns an error, [`ErrorKind::Lost`] when it panics.
/// Both are to be acknowledged: the event is lost, but for what the handler had done by then.
///
/// # Cancel safety
///
/// Not cancel safe: dropped before its end, even before its first poll, the rest of the effect is lost, and a warning says so.
pub fn run_at_most_once<'up, S, R, Fut>(
    _: &'up Engine<S>,
    meta: &'static HandlerMeta,
    body: Fut,
) -> BoxFuture<'up, Handled<R>>
where
    S: Store,
    R: HandlerResult<Ok: Send, Err: Send> + 'up,
    Fut: Future<Output = R> + Send + 'up,
{
    // From here on, and not from the first poll: whoever calls has acknowledged the delivery.
    let called = Called { meta, lost: Some(Loss::CutOff) };
    let delivery = async move {
        // The whole, and not the field that is written below alone.
        let mut called = called;
        // Everything the body owned is gone: nothing broken can be seen.
        let returned = AssertUnwindSafe(body).catch_unwind().await.map(R::into_result);
        let (ended, lost) = match &returned {
            Ok(Ok(_)) => (Ok(Ended::Applied), None),
            Ok(Err(_)) => (Err(Stop::Handler), Some(Loss::Failed)),
            Err(panic) => {
                let error = Error::new(ErrorKind::Lost).detail(panic_text(&**panic)).at(meta, None);
                (Err(Stop::Engine(error)), Some(Loss::Panicked))
            }
        };
        telemetry::ended(meta, None, &ended);
        called.lost = lost;
        handled::<R>(ended, returned.ok(), None, meta, None)
    };
    Box::pin(delivery.instrument(telemetry::delivery::<S>(meta)))
}

/// Reports a loss when the body is over, or dropped.
struct Called {
    meta: &'static HandlerMeta,
    lost: Option<Loss>,
}

impl Drop for Called {
    fn drop(&mut self) {
        if let Some(loss) = self.lost {
            telemetry::lost(self.meta, loss);
        }
    }
}
