//! What librdkafka calls back, on the thread that polls.

use std::sync::Arc;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{ClientContext, TopicPartitionList};

use super::session::Session;
use super::shelf::Place;
use super::{Kafka, fault};
use crate::adapter::{Adapter, AdapterError};
use crate::telemetry;

pub(super) struct Context {
    pub(super) session: Arc<Session>,
    pub(super) source: String,
}

impl ClientContext for Context {
    fn error(&self, error: KafkaError, reason: &str) {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                let down = AdapterError::unreachable("no broker answers; the client goes on trying").because(error);
                telemetry::disconnected(Kafka::BROKER, &self.source, &down);
            }
            Some(code) => {
                if let Some(fault) = fault(code) {
                    self.session.failed(fault, format!("{}: {reason}", super::says(code)));
                }
            }
            None => {}
        }
    }
}

impl ConsumerContext for Context {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) => self.session.assigned(places(list)),
            Rebalance::Revoke(list) => self.session.given_up(&places(list), consumer.assignment_lost()),
            Rebalance::Error(_) => {
                let all: Vec<_> = self.session.lock().shelf.partitions.keys().cloned().collect();
                self.session.given_up(&all, true);
            }
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(list) = rebalance {
            // One that was paused when it left is not paused now, as far as we know.
            drop(consumer.resume(list));
        }
    }
}

fn places(list: &TopicPartitionList) -> Vec<Place> {
    list.elements().iter().map(|element| (Arc::from(element.topic()), element.partition())).collect()
}
