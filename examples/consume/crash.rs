//! An adapter that kills the process between the commit of a delivery and its acknowledgement.

use std::sync::atomic::{AtomicU32, Ordering};

use idem_runtime::{Adapter, AdapterError, Connected, Delivery, Lag, Retries, Settlement};

use super::die::die;

pub(crate) struct Crashing<A> {
    adapter: A,
    at: Option<u32>,
    handled: AtomicU32,
}

impl<A> Crashing<A> {
    pub(crate) fn new(adapter: A, at: Option<u32>) -> Self {
        Self { adapter, at, handled: AtomicU32::new(0) }
    }
}

impl<A: Adapter> Adapter for Crashing<A> {
    type Receipt = A::Receipt;
    const BROKER: &'static str = A::BROKER;
    const RETRIES: Retries = A::RETRIES;

    fn source(&self) -> String {
        self.adapter.source()
    }

    async fn connect(&self) -> Result<Connected, AdapterError> {
        self.adapter.connect().await
    }

    async fn receive(&self, max: usize) -> Result<Vec<Delivery<A::Receipt>>, AdapterError> {
        self.adapter.receive(max).await
    }

    async fn settle(&self, delivery: &Delivery<A::Receipt>, settlement: &Settlement) -> Result<(), AdapterError> {
        let number = self.handled.fetch_add(1, Ordering::SeqCst) + 1;
        if self.at == Some(number) {
            eprintln!("crash: {number} deliveries are handled, the last is not acknowledged; run again on this --db");
            die();
        }
        self.adapter.settle(delivery, settlement).await
    }

    async fn extend(&self, receipt: &A::Receipt) -> Result<(), AdapterError> {
        self.adapter.extend(receipt).await
    }

    async fn lag(&self) -> Result<Option<Lag>, AdapterError> {
        self.adapter.lag().await
    }

    async fn close(&self) {
        self.adapter.close().await;
    }
}
