//! What the handler needs of a Stripe event.

use serde::Deserialize;
use serde_json::Value;

/// One event, the same in each of its deliveries.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Body")]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) payment: Option<Payment>,
}

/// What an event of the kind `payment_intent.succeeded` says.
#[derive(Debug)]
pub(crate) struct Payment {
    pub(crate) account: String,
    pub(crate) cents: i64,
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

impl TryFrom<Body> for Event {
    type Error = serde_json::Error;

    fn try_from(body: Body) -> Result<Self, serde_json::Error> {
        let payment = if body.kind == "payment_intent.succeeded" {
            let intent: PaymentIntent = serde_json::from_value(body.data.object)?;
            Some(Payment { account: intent.metadata.account, cents: i64::from(intent.amount) })
        } else {
            None
        };
        Ok(Self { id: body.id, kind: body.kind, payment })
    }
}
