//! Which deliveries are handled together, which alone, and which wait for the ones before them.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::task::{Id, JoinError};

use super::super::{Adapter, Delivery};
use super::one::Left;
use super::run::Run;
use crate::store::Store;
use crate::telemetry;

/// The deliveries of one task.
pub(super) struct Flight {
    pub(super) deliveries: usize,
    /// Which orders it keeps up.
    pub(super) orders: Vec<u64>,
}

/// A delivery that waits for the ones before it.
pub(super) struct Waiting<R> {
    pub(super) delivery: Delivery<R>,
    /// Whether it has spoiled a batch, or may well do so.
    is_alone: bool,
}

impl<S: Store, A: Adapter> Run<S, A> {
    pub(super) fn in_flight(&self) -> usize {
        let flying: usize = self.flights.values().map(|flight| flight.deliveries).sum();
        flying + self.waiting.values().map(VecDeque::len).sum::<usize>()
    }

    pub(super) fn hand_out(&mut self, deliveries: Vec<Delivery<A::Receipt>>) {
        let mut batch = Vec::new();
        // One that failed before would spoil a batch, and what comes behind it in its order may not overtake it.
        let mut alone = Vec::new();
        for delivery in deliveries {
            let is_alone = self.batch < 2 || delivery.attempt > 1;
            let is_behind = |other: &Delivery<A::Receipt>| other.order == delivery.order;
            match delivery.order.map(|order| self.waiting.get_mut(&order)) {
                Some(Some(before)) => before.push_back(Waiting { delivery, is_alone }),
                None if is_alone => alone.push(delivery),
                Some(None) if is_alone || alone.iter().any(is_behind) => alone.push(delivery),
                _ => batch.push(delivery),
            }
        }
        self.start_batch(batch);
        self.hand_out_alone(alone);
        self.tell();
    }

    /// Each by itself, behind what is in flight of its order.
    fn hand_out_alone(&mut self, deliveries: Vec<Delivery<A::Receipt>>) {
        for delivery in deliveries {
            match delivery.order.and_then(|order| self.waiting.get_mut(&order)) {
                Some(before) => before.push_back(Waiting { delivery, is_alone: true }),
                None => self.start_one(delivery),
            }
        }
    }

    fn start_one(&mut self, delivery: Delivery<A::Receipt>) {
        let flight = self.take_off(std::slice::from_ref(&delivery));
        let handled = Arc::clone(&self.shared).handle_one(delivery, Arc::clone(&self.running), self.phase.subscribe());
        let id = self.tasks.spawn(handled).id();
        self.flights.insert(id, flight);
    }

    fn start_batch(&mut self, mut deliveries: Vec<Delivery<A::Receipt>>) {
        while !deliveries.is_empty() {
            let rest = deliveries.split_off(deliveries.len().min(self.batch));
            if deliveries.len() == 1 {
                deliveries.into_iter().for_each(|delivery| self.start_one(delivery));
            } else {
                let flight = self.take_off(&deliveries);
                let shared = Arc::clone(&self.shared);
                let handled = shared.handle_batch(deliveries, Arc::clone(&self.running), self.phase.subscribe());
                let id = self.tasks.spawn(handled).id();
                self.flights.insert(id, flight);
            }
            deliveries = self.without_those_behind(rest);
        }
    }

    /// Lets those wait of whose order one is in flight.
    fn without_those_behind(&mut self, deliveries: Vec<Delivery<A::Receipt>>) -> Vec<Delivery<A::Receipt>> {
        let mut free = Vec::new();
        for delivery in deliveries {
            match delivery.order.and_then(|order| self.waiting.get_mut(&order)) {
                Some(before) => before.push_back(Waiting { delivery, is_alone: false }),
                None => free.push(delivery),
            }
        }
        free
    }

    /// Keeps up the orders of the deliveries.
    fn take_off(&mut self, deliveries: &[Delivery<A::Receipt>]) -> Flight {
        let mut orders: Vec<_> = deliveries.iter().filter_map(|delivery| delivery.order).collect();
        orders.sort_unstable();
        orders.dedup();
        for order in &orders {
            self.waiting.entry(*order).or_default();
        }
        Flight { deliveries: deliveries.len(), orders }
    }

    pub(super) fn ended(&mut self, ended: Result<(Id, Left<A::Receipt>), JoinError>) {
        let (id, left) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                telemetry::task_panicked(A::BROKER, &error);
                (error.id(), Left { alone: Vec::new(), postponed: true })
            }
        };
        let orders = self.flights.remove(&id).map(|flight| flight.orders).unwrap_or_default();
        let mut free = Vec::new();
        for delivery in left.alone.into_iter().rev() {
            match delivery.order.and_then(|order| self.waiting.get_mut(&order)) {
                Some(behind) => behind.push_front(Waiting { delivery, is_alone: true }),
                None => free.push(delivery),
            }
        }
        free.into_iter().rev().for_each(|delivery| self.start_one(delivery));
        for order in orders {
            self.start_next(order, left.postponed);
        }
        self.tell();
    }

    /// What waits for an order goes on; or back, where the one before it comes again from the broker.
    fn start_next(&mut self, order: u64, postponed: bool) {
        let Some(mut waiting) = self.waiting.remove(&order) else { return };
        if postponed && !waiting.is_empty() {
            let back: Vec<_> = waiting.into_iter().map(|waiting| waiting.delivery).collect();
            let (flight, shared) = (self.take_off(&back), Arc::clone(&self.shared));
            let id = self.tasks.spawn(async move { shared.give_back(&back).await }).id();
            self.flights.insert(id, flight);
            return;
        }
        let together = waiting.iter().take(self.batch).take_while(|waiting| !waiting.is_alone).count();
        let next: Vec<_> =
            waiting.drain(..together.max(1).min(waiting.len())).map(|waiting| waiting.delivery).collect();
        if next.is_empty() {
            return;
        }
        self.start_batch(next);
        if let Some(behind) = self.waiting.get_mut(&order) {
            *behind = waiting;
        }
    }

    pub(super) fn tell(&self) {
        self.told.send_replace(self.in_flight());
    }
}
