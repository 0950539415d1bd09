//! Kafka: the script, and what is Kafka's own.

mod cluster;
mod mock;
mod offsets;
mod rebalance;
mod refused;

use std::time::Duration;

use idem_runtime::{Adapter, Delivery, Kafka, KafkaReceipt};
use tokio::time::timeout;

super::behaves!(script, super::cluster::Topics);

/// Longer than a group takes to form, and to find out that a member is dead.
const PATIENCE: Duration = Duration::from_secs(60);

/// Receives so many records.
async fn take(kafka: &Kafka, many: usize) -> Vec<Delivery<KafkaReceipt>> {
    let mut taken = Vec::new();
    let take = async {
        while taken.len() < many {
            taken.extend(kafka.receive(many - taken.len()).await.unwrap());
        }
    };
    let is_late = timeout(PATIENCE, take).await.is_err();
    assert!(!is_late, "{} records came, not {many}", taken.len());
    taken
}

fn bodies(taken: &[Delivery<KafkaReceipt>]) -> Vec<&str> {
    let mut bodies: Vec<_> = taken.iter().map(|record| std::str::from_utf8(&record.message.body).unwrap()).collect();
    bodies.sort_unstable();
    bodies
}

/// Waits until something is as it should be.
async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap();
}
