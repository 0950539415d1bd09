//! What happens to many deliveries at once: handle, acknowledge those that are done, hand the others back.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Semaphore, watch};

use super::super::{Adapter, Delivery, Settlement};
use super::consuming::{Phase, reached};
use super::one::{Left, Shared};
use crate::store::Store;
use crate::telemetry;

impl<S: Store, A: Adapter> Shared<S, A> {
    /// Handles deliveries in one transaction for each handler. Those that are not done by that are left, to be handled
    /// alone.
    pub(super) async fn handle_batch(
        self: Arc<Self>,
        deliveries: Vec<Delivery<A::Receipt>>,
        running: Arc<Semaphore>,
        mut phase: watch::Receiver<Phase>,
    ) -> Left<A::Receipt> {
        let permit = tokio::select! {
            permit = self.keeping(&deliveries, running.acquire()) => permit,
            () = reached(&mut phase, Phase::Stopping) => return self.give_back(&deliveries).await,
        };
        let done = tokio::select! {
            done = self.keeping(&deliveries, AssertUnwindSafe(self.attempt_batch(&deliveries)).catch_unwind()) => done,
            // Dropping the attempt rolls it back.
            () = reached(&mut phase, Phase::Abandoning) => return self.give_back(&deliveries).await,
        };
        drop(permit);
        // What the application's own code panics with, outside of its handlers, is found again by each alone.
        let done = done.unwrap_or_else(|_| vec![false; deliveries.len()]);
        let (mut acked, mut alone) = (Vec::new(), Vec::new());
        for (delivery, is_done) in deliveries.into_iter().zip(done) {
            if is_done { acked.push(delivery) } else { alone.push(delivery) }
        }
        self.ack_all(&acked).await;
        Left { alone, postponed: false }
    }

    /// Says of each delivery whether every handler that takes it is done with it.
    async fn attempt_batch(&self, deliveries: &[Delivery<A::Receipt>]) -> Vec<bool> {
        // Acknowledged first, each in its turn, or dead-lettered.
        let mut done: Vec<_> = deliveries
            .iter()
            .map(|delivery| {
                let mut routes = self.routes.iter().filter(|route| route.takes(&delivery.message)).peekable();
                routes.peek().is_some() && routes.all(|route| !route.is_at_most_once())
            })
            .collect();
        for route in &self.routes {
            let takes = |place: &usize| done[*place] && route.takes(&deliveries[*place].message);
            let places: Vec<_> = (0..deliveries.len()).filter(takes).collect();
            let incoming = places.iter().map(|place| &deliveries[*place].message).collect();
            for (place, is_done) in places.into_iter().zip(route.apply_batch(&self.engine, incoming).await) {
                done[place] = is_done;
            }
        }
        done
    }

    /// After the commit of all of them.
    async fn ack_all(&self, deliveries: &[Delivery<A::Receipt>]) {
        if deliveries.is_empty() {
            return;
        }
        self.troubles.store(0, Ordering::Relaxed);
        let acked = self.keeping(deliveries, self.adapter.ack_all(deliveries)).await;
        for (delivery, acked) in deliveries.iter().zip(acked) {
            match acked {
                Ok(()) => telemetry::settled(A::BROKER, "ack"),
                // Said again, and reported.
                Err(_) => self.settle(delivery, &Settlement::Ack).await,
            }
        }
    }

    /// Nobody tried them.
    pub(super) async fn give_back(&self, deliveries: &[Delivery<A::Receipt>]) -> Left<A::Receipt> {
        for delivery in deliveries {
            self.settle(delivery, &Settlement::Release { after: Duration::ZERO }).await;
        }
        Left { alone: Vec::new(), postponed: true }
    }
}
