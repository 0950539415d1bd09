//! A broker in miniature: it delivers in order, and again whatever was not acknowledged.
//!
//! What a real broker remembers on its own disk stands here in a table of the same file. It is never written in the
//! handler's transaction: between the commit and the acknowledgement there is always a gap to crash in.

use sqlx::SqlitePool;

use crate::deliveries::Delivery;
use crate::stop::{Stop, stopped};

pub(crate) const TABLE: &str = "\
    CREATE TABLE IF NOT EXISTS broker_delivery (\
        number   INTEGER PRIMARY KEY, \
        attempts INTEGER NOT NULL, \
        acked    INTEGER NOT NULL DEFAULT FALSE\
    ) STRICT";

const LAST_ACKED: &str = "SELECT coalesce(max(number), 0) FROM broker_delivery WHERE acked";

const HAND_OUT: &str = "\
    INSERT INTO broker_delivery (number, attempts) VALUES (?, 1) \
    ON CONFLICT (number) DO UPDATE SET attempts = attempts + 1";

const ACKNOWLEDGE: &str = "UPDATE broker_delivery SET acked = TRUE WHERE number = ?";

#[derive(Debug)]
pub(crate) struct Broker {
    pool: SqlitePool,
}

impl Broker {
    pub(crate) fn new(pool: SqlitePool) -> Self {
        Self { pool }
    }

    /// What is still to be delivered, in order.
    pub(crate) async fn unacknowledged<'a>(
        &self,
        deliveries: &'a [Delivery],
    ) -> Result<impl Iterator<Item = &'a Delivery> + use<'a>, Stop> {
        let last: u32 = sqlx::query_scalar(LAST_ACKED)
            .fetch_one(&self.pool)
            .await
            .map_err(stopped("the broker does not know what was acknowledged"))?;
        Ok(deliveries.iter().filter(move |delivery| delivery.number > last))
    }

    pub(crate) async fn hand_out(&self, delivery: &Delivery) -> Result<(), Stop> {
        self.note(HAND_OUT, delivery, "handed out").await
    }

    pub(crate) async fn acknowledge(&self, delivery: &Delivery) -> Result<(), Stop> {
        self.note(ACKNOWLEDGE, delivery, "acknowledged").await
    }

    async fn note(&self, sql: &'static str, delivery: &Delivery, what: &str) -> Result<(), Stop> {
        let done = sqlx::query(sql).bind(delivery.number).execute(&self.pool).await;
        done.map(drop).map_err(stopped(format_args!("delivery {} could not be {what}", delivery.number)))
    }
}
