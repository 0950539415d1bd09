//! The file of deliveries: one HTTP request of Stripe's a line, as `{"delivery": …, "headers": …, "body": "…"}`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::stop::{Stop, stopped};
use crate::{Event, Payment};

/// One attempt to tell us of an event.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// The line in the file, counted from 1.
    pub(crate) number: u32,
    pub(crate) event: Event,
}

impl Delivery {
    /// What a handler credits that takes every delivery for a new event.
    pub(crate) fn cents(&self) -> i64 {
        self.event.payment.as_ref().map_or(0, |payment| payment.cents)
    }
}

#[derive(Deserialize)]
struct Request {
    body: String,
}

#[derive(Deserialize)]
struct Body {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Value,
}

#[derive(Deserialize)]
struct PaymentIntent {
    amount: u32,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    account: String,
}

/// Reads all of it before anything is applied, so that a file with a broken line changes nothing.
pub(crate) fn read(file: &Path) -> Result<Vec<Delivery>, Stop> {
    let lines = BufReader::new(
        File::open(file).map_err(stopped(format_args!("the deliveries in {} cannot be read", file.display())))?,
    )
    .lines();
    let mut deliveries = Vec::new();
    for (number, line) in (1..).zip(lines) {
        let place = format!("{}, line {number}", file.display());
        let line = line.map_err(stopped(format_args!("{place} cannot be read")))?;
        if !line.trim().is_empty() {
            let event = decode(&line).map_err(stopped(format_args!("{place} is not a delivery of a Stripe event")))?;
            deliveries.push(Delivery { number, event });
        }
    }
    Ok(deliveries)
}

/// A real endpoint checks the request's `Stripe-Signature` first.
fn decode(line: &str) -> Result<Event, serde_json::Error> {
    let request: Request = serde_json::from_str(line)?;
    let body: Body = serde_json::from_str(&request.body)?;
    let payment = if body.kind == "payment_intent.succeeded" {
        let intent: PaymentIntent = serde_json::from_value(body.data.object)?;
        Some(Payment { account: intent.metadata.account, cents: i64::from(intent.amount) })
    } else {
        None
    };
    Ok(Event { id: body.id, kind: body.kind, payment })
}
