//! Everything that runs: the conformance suite for each store, and what crosses process borders.

#![allow(clippy::disallowed_types, reason = "tests put SQL together from their own constants")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]
#![allow(missing_docs, reason = "test names say what they test")]

mod adapter;
mod brokers;
mod catalog;
mod cli;
mod conformance;
mod consume;
mod derived_parts;
mod example;
mod fidelity;
mod key_vectors;
#[cfg(feature = "databases")]
mod lost_reply;
mod metrics;
#[cfg(feature = "databases")]
mod mysql;
mod openapi;
mod payment_webhook;
mod payments_api;
#[cfg(feature = "databases")]
mod postgres;
mod quickstart;
mod signature;
mod sqlite;
mod telemetry;
mod webhook_clients;
mod webhook_strict;
