//! A dead letter's copy in its queue: the body and the attributes as they came, and the reason beside them.

use std::collections::HashMap;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::MessageAttributeValue;

use super::super::{AdapterError, Delivery};
use super::SqsReceipt;
use super::fault::{ANSWER, answered};
use super::queue::DeadLetters;

/// The attribute with the reason.
const REASON: &str = "idem-reason";

/// As many attributes a message has at most.
const ATTRIBUTES: usize = 10;

/// A reason is no longer than that, in bytes.
const LONGEST_REASON: usize = 16_384;

/// Stores a copy. SQS has it when this returns.
pub(super) async fn store(
    client: &Client,
    place: &DeadLetters,
    delivery: &Delivery<SqsReceipt>,
    reason: &str,
) -> Result<(), AdapterError> {
    let what = "the dead letter was not stored";
    let received = &delivery.receipt.0;
    // It came as text.
    let body = String::from_utf8_lossy(&delivery.message.body).into_owned();
    let attributes = with_reason(received.attributes.clone(), reason, place.largest.saturating_sub(body.len()))
        .map_err(|error| AdapterError::refused(what).because(error))?;
    let mut request = client.send_message().queue_url(&place.url).message_body(body);
    request = request.set_message_attributes(Some(attributes));
    if place.is_fifo {
        // As SQS itself does when it moves a message: two of them are never taken for one, and one is not stored twice when
        // only its deletion failed.
        let group = received.group.as_ref().unwrap_or(&received.id);
        request = request.message_group_id(group).message_deduplication_id(&received.id);
    }
    answered(what, ANSWER, request.send()).await.map(drop)
}

type Attributes = HashMap<String, MessageAttributeValue>;

/// Adds the reason, as far as there is room for it. Where there are as many attributes as a message can have, it takes the
/// place of the shortest of them, and ends with that one's name and value.
fn with_reason(
    mut attributes: Attributes,
    reason: &str,
    room: usize,
) -> Result<Attributes, aws_sdk_sqs::error::BuildError> {
    // Of an earlier time among the dead letters.
    attributes.remove(REASON);
    let mut reason = carried(reason);
    if attributes.len() >= ATTRIBUTES
        && let Some(name) =
            attributes.iter().min_by_key(|(name, value)| (size(name, value), *name)).map(|(name, _)| name)
    {
        let name = name.clone();
        let value = attributes.remove(&name).map(|value| text(&value)).unwrap_or_default();
        let rest = format!("; in place of the attribute `{name}`: {value}");
        reason.truncate(reason.floor_char_boundary(LONGEST_REASON.saturating_sub(rest.len())));
        reason.push_str(&rest);
    }
    let taken: usize = attributes.iter().map(|(name, value)| size(name, value)).sum();
    let room = room.saturating_sub(taken + REASON.len() + "String".len());
    reason.truncate(reason.floor_char_boundary(room.min(LONGEST_REASON)));
    if !reason.is_empty() {
        let value = MessageAttributeValue::builder().data_type("String").string_value(reason).build()?;
        attributes.insert(REASON.to_owned(), value);
    }
    Ok(attributes)
}

fn size(name: &str, value: &MessageAttributeValue) -> usize {
    let text = value.string_value().map_or(0, str::len);
    let bytes = value.binary_value().map_or(0, |bytes| bytes.as_ref().len());
    name.len() + value.data_type().len() + text + bytes
}

fn text(value: &MessageAttributeValue) -> String {
    let bytes = value.binary_value().map(AsRef::as_ref).unwrap_or_default();
    value.string_value().map_or_else(|| bytes.escape_ascii().to_string(), ToOwned::to_owned)
}

/// The same text in the characters that SQS carries, which are those of XML.
fn carried(text: &str) -> String {
    let mut carried = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'.. => carried.push(char),
            _ => carried.extend(char.escape_unicode()),
        }
    }
    carried
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn attribute(value: &str) -> MessageAttributeValue {
        MessageAttributeValue::builder().data_type("String").string_value(value).build().unwrap()
    }

    fn reason(attributes: &Attributes) -> &str {
        attributes[REASON].string_value().unwrap()
    }

    #[test]
    fn a_reason_is_added_in_the_characters_that_sqs_carries() {
        let attributes = HashMap::from([("trace".to_owned(), attribute("7")), (REASON.to_owned(), attribute("old"))]);
        let stored = with_reason(attributes, "bad\0 byte\u{ffff}\n☃", 1_000).unwrap();
        assert_eq!(reason(&stored), "bad\\u{0} byte\\u{ffff}\n☃");
        assert_eq!((stored.len(), stored["trace"].string_value()), (2, Some("7")));
    }

    #[test]
    fn a_reason_takes_the_place_of_the_shortest_attribute_and_names_it() {
        let attributes: Attributes =
            (0..10).map(|number| (format!("a{number}"), attribute(&"x".repeat(20 - number)))).collect();
        let stored = with_reason(attributes, "why", 1_000).unwrap();
        assert_eq!(reason(&stored), "why; in place of the attribute `a9`: xxxxxxxxxxx");
        assert_eq!((stored.len(), stored.contains_key("a9")), (10, false));
    }

    #[test]
    fn a_reason_is_cut_to_the_room_that_the_message_leaves() {
        let taken = REASON.len() + "String".len();
        let stored = with_reason(HashMap::new(), "ab☃☃", taken + 6).unwrap();
        assert_eq!(reason(&stored), "ab☃");
        assert_eq!(with_reason(HashMap::new(), "why", taken).unwrap().len(), 0);
        let stored = with_reason(HashMap::new(), &"x".repeat(LONGEST_REASON + 9), usize::MAX).unwrap();
        assert_eq!(reason(&stored).len(), LONGEST_REASON);
    }
}
