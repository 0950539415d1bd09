//! Redis Streams: on the server of `IDEM_TEST_REDIS_URL`, and on servers of our own, which can be killed or misconfigured.

mod own;
mod refused;
mod settled;
mod trimmed;

use std::time::Duration;

use idem_runtime::{Incoming, RedisStream};
use redis::aio::MultiplexedConnection;
use redis::streams::{StreamInfoGroupsReply, StreamRangeReply};
use redis::{AsyncCommands, Client};
use uuid::Uuid;

use super::TestBroker;
use own::Server;

super::behaves!(server, super::Stream<false>:
    ten_thousand_deliveries_are_applied_once
    consumers_come_and_go_with_deliveries_in_flight
    a_stop_gives_back_what_it_does_not_end
    what_is_stuck_is_rolled_back_and_given_back
    a_handler_slower_than_the_lease_keeps_its_delivery
    what_cannot_be_handled_becomes_a_dead_letter
    at_most_once_is_acknowledged_before_it_runs
    what_waits_is_told
    what_is_not_there_is_said_at_the_start
);
super::behaves!(own_server, super::Stream<true>: an_outage_in_the_middle_loses_and_doubles_nothing);

const GROUP: &str = "credit";

fn shared_url() -> String {
    std::env::var("IDEM_TEST_REDIS_URL").expect("IDEM_TEST_REDIS_URL is not set: run `tests/run`")
}

/// A stream of its own, on a server of its own if that is to be killed.
pub(crate) struct Stream<const OWN: bool> {
    server: Option<Server>,
    url: String,
    name: String,
    lease: Duration,
}

impl<const OWN: bool> Stream<OWN> {
    async fn on(server: Option<Server>, lease: Duration) -> Self {
        let url = server.as_ref().map_or_else(shared_url, Server::url);
        let stream = Self { server, url, name: format!("idem-test-{}", Uuid::new_v4().simple()), lease };
        stream.make_group().await;
        stream
    }

    async fn make_group(&self) {
        let _: () = self.conn().await.xgroup_create_mkstream(&self.name, GROUP, "0").await.unwrap();
    }

    async fn conn(&self) -> MultiplexedConnection {
        Client::open(self.url.as_str()).unwrap().get_multiplexed_async_connection().await.unwrap()
    }

    fn on_stream(&self, name: &str) -> RedisStream {
        RedisStream::new(&self.url, name, GROUP).lease(self.lease)
    }

    fn dead(&self) -> String {
        format!("{}:dead", self.name)
    }

    /// Adds an entry with these fields, and returns its id.
    async fn add(&self, fields: &[(&str, &[u8])]) -> String {
        self.conn().await.xadd(&self.name, "*", fields).await.unwrap()
    }

    /// Changes a setting of the server.
    async fn set(&self, name: &str, value: &str) {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg(name).arg(value);
        let _: () = set.query_async(&mut self.conn().await).await.unwrap();
    }

    async fn group(&self) -> (usize, String) {
        let groups: StreamInfoGroupsReply = self.conn().await.xinfo_groups(&self.name).await.unwrap();
        let group = groups.groups.into_iter().find(|group| group.name == GROUP).unwrap();
        (group.pending, group.last_delivered_id)
    }
}

impl<const OWN: bool> TestBroker for Stream<OWN> {
    type Adapter = RedisStream;
    const SERVICE: &'static str = "redis";
    const LEASE: Duration = Duration::from_secs(1);
    const LARGEST: usize = 10_000_000;

    async fn create(lease: Duration) -> Self {
        let server = if OWN { Some(Server::start(&[]).await) } else { None };
        Self::on(server, lease).await
    }

    fn adapter(&self) -> RedisStream {
        self.on_stream(&self.name)
    }

    async fn publish(&self, messages: Vec<Incoming>) {
        let mut conn = self.conn().await;
        conn.set_response_timeout(Duration::from_secs(30));
        for messages in messages.chunks(500) {
            let mut pipe = redis::pipe();
            for message in messages {
                let mut fields = vec![("body", message.body.clone())];
                fields.extend(message.headers.iter().map(|(name, value)| (name.as_str(), value.clone().into_bytes())));
                pipe.xadd(&self.name, "*", &fields).ignore();
            }
            let _: () = pipe.query_async(&mut conn).await.unwrap();
        }
    }

    async fn unsettled(&self) -> u64 {
        let (pending, last) = self.group().await;
        let mut conn = self.conn().await;
        conn.set_response_timeout(Duration::from_secs(30));
        let unread: StreamRangeReply = conn.xrange(&self.name, format!("({last}"), "+").await.unwrap();
        u64::try_from(pending + unread.ids.len()).unwrap()
    }

    async fn dead_letters(&self) -> Vec<(Vec<u8>, String)> {
        let dead: StreamRangeReply = self.conn().await.xrange_all(self.dead()).await.unwrap();
        let letter = |entry: &redis::streams::StreamId| {
            (entry.get("body").unwrap_or_default(), entry.get("idem-reason").expect("a dead letter without a reason"))
        };
        dead.ids.iter().map(letter).collect()
    }

    async fn outage(&self, length: Duration) {
        self.server.as_ref().expect("only a server of our own can be killed").outage(length).await;
    }

    fn unknown(&self) -> Option<RedisStream> {
        Some(self.on_stream(&format!("{}-unknown", self.name)))
    }

    fn nowhere(&self) -> RedisStream {
        RedisStream::new("redis://127.0.0.1:1", &self.name, GROUP)
    }

    async fn destroy(self) {
        let _: () = self.conn().await.del(&[&self.name, &self.dead()]).await.unwrap();
    }
}
