//! One script of behaviours for every adapter, each on its real broker. The judge asks the database and the broker with
//! clients that know nothing of the library.

mod database;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "redis")]
mod redis;
mod script;
#[cfg(feature = "sqs")]
mod sqs;

use std::time::Duration;

use idem_runtime::{Adapter, Incoming};

/// A queue, stream or topic of its own for one test.
///
/// Everything but the adapter goes by the broker's own client.
#[allow(async_fn_in_trait, reason = "the tests await them where they are")]
pub(crate) trait TestBroker: Sized + Send + Sync + 'static {
    type Adapter: Adapter;

    /// As `IDEM_SKIP` knows it.
    const SERVICE: &'static str;
    /// The shortest time after which the broker takes a delivery for abandoned.
    const LEASE: Duration;
    /// The largest body that it takes.
    const LARGEST: usize;
    /// As many applied messages a stop may leave unsettled, behind one that is not applied: where a settlement is an offset.
    const LEFT_BEHIND: u64 = 0;
    /// How long a newcomer takes to be given its share, where the test's broker gets stuck if another one leaves before.
    const JOINING: Duration = Duration::ZERO;

    /// How many deliveries are many.
    const MANY: u32 = 10_000;
    /// As many of them wait at the broker at once.
    const WAITING: usize = usize::MAX;

    /// Whether the broker takes such a body at all.
    fn carries(_body: &[u8]) -> bool {
        true
    }

    /// Makes the queue, on a broker whose lease this is.
    async fn create(lease: Duration) -> Self;

    /// An adapter for the queue, of a consumer of its own.
    fn adapter(&self) -> Self::Adapter;

    /// Returns when the broker has them all.
    async fn publish(&self, messages: Vec<Incoming>);

    /// How many messages are not settled, those in flight included, dead letters not.
    async fn unsettled(&self) -> u64;

    /// The bodies of the dead letters, with their reasons.
    async fn dead_letters(&self) -> Vec<(Vec<u8>, String)>;

    /// Ends every connection to the broker, and lets nobody in for so long: a restart, as near as the broker can be had.
    async fn outage(&self, length: Duration);

    /// An adapter for a queue that does not exist; `None` where a queue needs no creation.
    fn unknown(&self) -> Option<Self::Adapter>;

    /// An adapter for a broker that is not there.
    fn nowhere(&self) -> Self::Adapter;

    /// Removes the queue.
    async fn destroy(self);
}

/// One test per behaviour, each on a queue of its own.
macro_rules! behaves {
    ($module:ident, $broker:ty) => {
        $crate::brokers::behaves!($module, $broker:
            ten_thousand_deliveries_are_applied_once
            consumers_come_and_go_with_deliveries_in_flight
            a_stop_gives_back_what_it_does_not_end
            what_is_stuck_is_rolled_back_and_given_back
            an_outage_in_the_middle_loses_and_doubles_nothing
            a_handler_slower_than_the_lease_keeps_its_delivery
            what_cannot_be_handled_becomes_a_dead_letter
            at_most_once_is_acknowledged_before_it_runs
            what_waits_is_told
            what_is_not_there_is_said_at_the_start
        );
    };
    ($module:ident, $broker:ty: $($behaviour:ident)*) => {
        mod $module {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                use $crate::brokers::TestBroker;
                if !idem_tests::without_server(<$broker>::SERVICE) {
                    $crate::brokers::script::$behaviour::<$broker>().await;
                }
            }
        )*}
    };
}
pub(crate) use behaves;
