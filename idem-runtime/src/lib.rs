#![doc = include_str!("../README.md")]
// Without a store nothing calls the seam below the engine, and nobody builds that but tools that try every feature.
#![cfg_attr(
    not(any(feature = "sqlite", feature = "postgres", feature = "mysql")),
    allow(dead_code, unused_imports, unused_macros)
)]

mod adapter;
#[cfg(feature = "catalog")]
mod catalog;
#[cfg(feature = "cli")]
pub mod cli;
mod clock;
mod const_text;
mod endpoint;
mod engine;
mod error;
mod handler;
#[cfg(feature = "axum")]
mod http;
mod key;
mod outcome;
mod policy;
mod purge;
mod registry;
mod retention;
mod store;
mod telemetry;
mod tx;

#[doc(hidden)]
pub mod __private;

pub use adapter::{
    Adapter, AdapterError, Connected, Consumer, Consuming, DatabaseQueue, DatabaseReceipt, DeadLetter, Delivery,
    Horizon, Incoming, Lag, Retries, RetryPolicy, Route, Settlement, route,
};
#[cfg(feature = "kafka")]
pub use adapter::{Kafka, KafkaReceipt};
#[cfg(feature = "nats")]
pub use adapter::{NatsJetStream, NatsReceipt};
#[cfg(feature = "rabbitmq")]
pub use adapter::{RabbitMq, RabbitMqReceipt};
#[cfg(feature = "redis")]
pub use adapter::{RedisReceipt, RedisStream};
#[cfg(feature = "sqs")]
pub use adapter::{Sqs, SqsReceipt};
#[cfg(feature = "catalog")]
pub use catalog::{Catalog, Change, Drift, Figures, Note, Unreadable};
pub use endpoint::{Endpoint, EndpointKind, InFlight};
pub use engine::{Engine, EngineBuilder, EngineFor};
pub use error::{Error, ErrorKind, Failed, Failure};
pub use handler::{Allowed, External, Guard, Handled, Handler, HandlerMeta, HandlerResult, Place, Semantics};
#[cfg(feature = "axum")]
pub use http::{
    KeyedLayer, KeyedRoute, KeyedService, KeyedTx, KeyedTxRejection, Signature, SignatureError, Verified,
    WebhookReceiver, WebhookRoute, WebhookService,
};
pub use idem_macros::{KeyPart, at_most_once, idempotent, naturally_idempotent};
pub use key::{ByteId, DisplayId, EventTime, FingerprintPart, Key, KeyError, KeyPart, Part, by_display, byte_id};
pub use outcome::{Outcome, Seen, Settle};
pub use policy::{Policy, Window};
pub use purge::{
    Exposed, Forgotten, FoundKey, HandlerFigures, Hold, Orphan, Pass, Purged, Purger, Purging, Stopped, figures,
    find_key, forget, forgotten, holds, orphans, place_hold, release_hold,
};
pub use registry::Registry;
pub use retention::{Retention, RetentionError};
pub use store::schema::migrate;
pub use store::{Isolation, Store};
pub use tx::TxParam;

#[cfg(test)]
extern crate self as idem_runtime;
