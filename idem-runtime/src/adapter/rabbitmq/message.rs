//! Headers and properties: as handlers see them, and as dead letters keep them.

use std::collections::BTreeMap;

use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable, ShortString};

use super::super::Incoming;

/// How often a quorum queue has delivered the message before. Other queues do not count.
const DELIVERY_COUNT: &str = "x-delivery-count";

/// The longest reason that is stored.
const LONGEST_REASON: usize = 8_192;

/// What properties and the frame around them can come to, beside the headers: 13 short strings and numbers.
const PROPERTIES: usize = 4_096;

/// Keeps the message for good, as far as its queue is durable.
const PERSISTENT: u8 = 2;

/// How a property is set.
type Put = fn(BasicProperties, ShortString) -> BasicProperties;

/// The message, with the body that the delivery has no more.
pub(super) fn incoming(delivery: &mut Delivery) -> Incoming {
    let properties = &delivery.properties;
    let mut headers = BTreeMap::new();
    for (name, value) in properties.headers().iter().flatten() {
        let text = match value {
            AMQPValue::LongString(text) => std::str::from_utf8(text.as_bytes()).ok(),
            AMQPValue::ShortString(text) => Some(text.as_str()),
            _ => None,
        };
        if let Some(text) = text {
            headers.insert(name.to_string(), text.to_owned());
        }
    }
    let properties = [
        ("app-id", properties.app_id()),
        ("content-encoding", properties.content_encoding()),
        ("content-type", properties.content_type()),
        ("correlation-id", properties.correlation_id()),
        ("message-id", properties.message_id()),
        ("reply-to", properties.reply_to()),
        ("type", properties.kind()),
        ("user-id", properties.user_id()),
    ];
    for (name, value) in properties.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        headers.insert(name.to_owned(), value.to_string());
    }
    headers.insert("exchange".to_owned(), delivery.exchange.to_string());
    headers.insert("routing-key".to_owned(), delivery.routing_key.to_string());
    Incoming { body: std::mem::take(&mut delivery.data), headers }
}

/// The number of this attempt, as far as the queue counts. A sender's own header of that name is none.
pub(super) fn attempt(delivery: &Delivery) -> u32 {
    if !delivery.redelivered {
        return 1;
    }
    let headers = delivery.properties.headers().as_ref();
    let before = match headers.and_then(|headers| headers.inner().get(DELIVERY_COUNT)) {
        Some(AMQPValue::LongLongInt(count)) => u32::try_from(*count).unwrap_or(0),
        Some(AMQPValue::LongInt(count)) => u32::try_from(*count).unwrap_or(0),
        Some(AMQPValue::LongUInt(count)) => *count,
        Some(AMQPValue::ShortInt(count)) => u32::try_from(*count).unwrap_or(0),
        Some(AMQPValue::ShortUInt(count)) => (*count).into(),
        Some(AMQPValue::ShortShortInt(count)) => u32::try_from(*count).unwrap_or(0),
        Some(AMQPValue::ShortShortUInt(count)) => (*count).into(),
        _ => 0,
    };
    before.saturating_add(1)
}

/// The properties of a dead letter: the original's, the reason, and where it came from.
///
/// What would make RabbitMQ do something with the copy is kept as a header that does nothing: let it expire, refuse it since
/// another user sent it, or send it to further queues, the original's among them.
pub(super) fn of_dead_letter(original: &BasicProperties, queue: &str, reason: &str, frame_max: u32) -> BasicProperties {
    let mut headers = BTreeMap::new();
    for (name, value) in original.headers().iter().flatten() {
        match name.as_str() {
            // Counts deliveries of this queue, and would be taken for one of the next.
            DELIVERY_COUNT | "BCC" => {}
            "CC" => put(&mut headers, "x-idem-cc", value.clone()),
            _ => drop(headers.insert(name.clone(), value.clone())),
        }
    }
    for (name, value) in [("x-idem-expiration", original.expiration()), ("x-idem-user-id", original.user_id())] {
        if let Some(value) = value {
            put(&mut headers, name, text(value.as_str()));
        }
    }
    put(&mut headers, "x-idem-queue", text(queue));
    // All of it goes into one frame, and one that is too long ends the connection.
    let taken: usize = headers.iter().map(|(name, value)| 2 + name.as_str().len() + size(value)).sum();
    let room = usize::try_from(frame_max).unwrap_or(usize::MAX).saturating_sub(taken.saturating_add(PROPERTIES));
    put(&mut headers, "x-idem-reason", text(cut(reason, room.min(LONGEST_REASON))));

    let mut kept = BasicProperties::default().with_delivery_mode(PERSISTENT).with_headers(FieldTable::from(headers));
    let texts: [(&Option<ShortString>, Put); 8] = [
        (original.app_id(), BasicProperties::with_app_id),
        (original.cluster_id(), BasicProperties::with_cluster_id),
        (original.content_encoding(), BasicProperties::with_content_encoding),
        (original.content_type(), BasicProperties::with_content_type),
        (original.correlation_id(), BasicProperties::with_correlation_id),
        (original.message_id(), BasicProperties::with_message_id),
        (original.reply_to(), BasicProperties::with_reply_to),
        (original.kind(), BasicProperties::with_type),
    ];
    for (value, put) in texts {
        if let Some(value) = value {
            kept = put(kept, value.clone());
        }
    }
    if let Some(priority) = original.priority() {
        kept = kept.with_priority(*priority);
    }
    if let Some(timestamp) = original.timestamp() {
        kept = kept.with_timestamp(*timestamp);
    }
    kept
}

fn put(headers: &mut BTreeMap<ShortString, AMQPValue>, name: &'static str, value: AMQPValue) {
    headers.insert(name.into(), value);
}

fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}

/// At most so many bytes of a text.
fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

/// At least as many bytes as the value takes.
fn size(value: &AMQPValue) -> usize {
    let table = |table: &FieldTable| -> usize {
        table.into_iter().map(|(name, value)| 2 + name.as_str().len() + size(value)).sum()
    };
    4 + match value {
        AMQPValue::LongString(text) => text.len(),
        AMQPValue::ShortString(text) => text.as_str().len(),
        AMQPValue::ByteArray(bytes) => bytes.len(),
        AMQPValue::FieldArray(values) => values.as_slice().iter().map(|value| 1 + size(value)).sum(),
        AMQPValue::FieldTable(inner) => table(inner),
        _ => 8,
    }
}
