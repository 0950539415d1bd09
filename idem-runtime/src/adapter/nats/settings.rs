//! What must hold of stream, consumer and user before anything is consumed.

use std::time::Duration;

use async_nats::Request;
use async_nats::RequestErrorKind;
use async_nats::jetstream::consumer::{self, AckPolicy};
use async_nats::jetstream::context::GetStreamByNameErrorKind;
use async_nats::jetstream::stream::{self, DiscardPolicy};
use async_nats::jetstream::{AckKind, ErrorCode};
use serde_json::json;

use super::link::{ANSWER, Link};
use super::{ACK_WAIT, Connected};
use crate::adapter::{Adapter, AdapterError, AdapterFault};
use crate::telemetry;

pub(super) async fn stream(link: &Link, name: &str) -> Result<stream::Info, AdapterError> {
    check_name("stream", name)?;
    link.ask(&format!("STREAM.INFO.{name}"), &json!({})).await?.map_err(|error| {
        let text = match error.error_code() {
            ErrorCode::STREAM_NOT_FOUND => "the stream does not exist; create it, with the subjects that it is to take",
            _ => "the stream cannot be used",
        };
        AdapterError::refused(text).because(error.to_string())
    })
}

/// The consumer, created if that is wanted and needed, if nothing about it would lose or settle a message too early.
pub(super) async fn consumer(
    link: &Link,
    stream: &str,
    name: &str,
    create: bool,
) -> Result<consumer::Info, AdapterError> {
    check_name("consumer", name)?;
    let info = match consumer_info(link, stream, name).await? {
        Some(info) => info,
        None if create => create_consumer(link, stream, name).await?,
        None => {
            return Err(AdapterError::refused(
                "the durable consumer does not exist; call `create_consumer`, or make it with `nats consumer add --pull \
                 --ack explicit --max-deliver -1`",
            ));
        }
    };
    match flaw(&info.config) {
        Some(flaw) => Err(AdapterError::refused(flaw)),
        None => Ok(info),
    }
}

pub(super) async fn consumer_info(
    link: &Link,
    stream: &str,
    name: &str,
) -> Result<Option<consumer::Info>, AdapterError> {
    match link.ask(&format!("CONSUMER.INFO.{stream}.{name}"), &json!({})).await? {
        Ok(info) => Ok(Some(info)),
        Err(error) if error.error_code() == ErrorCode::CONSUMER_NOT_FOUND => Ok(None),
        Err(error) => Err(AdapterError::refused("the consumer cannot be used").because(error.to_string())),
    }
}

async fn create_consumer(link: &Link, stream: &str, name: &str) -> Result<consumer::Info, AdapterError> {
    let config = consumer::Config {
        durable_name: Some(name.to_owned()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_deliver: -1,
        ..Default::default()
    };
    let create = json!({ "stream_name": stream, "config": config });
    let created = link.ask(&format!("CONSUMER.DURABLE.CREATE.{stream}.{name}"), &create).await?;
    created.map_err(|error| AdapterError::refused("the consumer cannot be created").because(error.to_string()))
}

/// What would lose a message in silence, or settle it before its effect is committed.
fn flaw(config: &consumer::Config) -> Option<&'static str> {
    if config.ack_policy == AckPolicy::None {
        return Some(
            "the consumer's `ack_policy` is `none`: the server takes a message for done when it is delivered, before its \
             effect is committed; use `explicit`",
        );
    }
    if config.ack_policy != AckPolicy::Explicit {
        return Some(
            "the consumer's `ack_policy` is not `explicit`: an acknowledgement would settle the messages before it as well, \
             whose effects may not be committed",
        );
    }
    if config.deliver_subject.is_some() {
        return Some(
            "the consumer pushes (`deliver_subject` is set): the server would send more than is handled at once; make a pull \
             consumer",
        );
    }
    if config.durable_name.is_none() || !config.inactive_threshold.is_zero() {
        return Some(
            "the server deletes this consumer when nobody uses it for a while, and forgets what is done; make it durable, \
             without `inactive_threshold`",
        );
    }
    if !config.backoff.is_empty() {
        return Some(
            "the consumer has a `backoff` list: the server would deliver again at other times than `ack_wait` and \
             `RetryPolicy` say; remove it",
        );
    }
    if config.max_deliver > 0 {
        return Some(
            "the consumer has a `max_deliver`: after so many deliveries, releases included, the server would deliver a message \
             no more, in silence; set it to -1, `RetryPolicy` bounds the attempts and dead-letters what it gives up",
        );
    }
    config.headers_only.then_some("the consumer is `headers_only`: its messages have no bodies")
}

/// Finds the stream that takes the dead letters, or makes one.
pub(super) async fn dead_letters(link: &Link, consumed: &stream::Info, subject: &str) -> Result<(), AdapterError> {
    let looking = link.context.stream_by_subject(subject);
    let found = link.within(ANSWER, "$JS.API.STREAM.NAMES", looking).await?;
    let name = match found {
        Ok(name) => name,
        Err(error) if error.kind() == GetStreamByNameErrorKind::NotFound => {
            return create_dead_letters(link, &consumed.config, subject).await;
        }
        Err(error) if error.kind() == GetStreamByNameErrorKind::InvalidSubject => {
            return Err(AdapterError::refused("the subject of the dead letters is none"));
        }
        Err(error) => {
            return Err(AdapterError::unreachable("the server did not answer").because(error.to_string()));
        }
    };
    if name == consumed.config.name {
        return Err(AdapterError::refused(format!(
            "dead letters would go to `{subject}`, which the consumed stream takes itself: they would come back; set \
             `dead_letter_subject`, or narrow the stream's subjects",
        )));
    }
    if stream(link, &name).await?.config.no_ack {
        return Err(AdapterError::refused(format!(
            "the stream `{name}`, which takes the dead letters, does not say when it has stored one (`no_ack`)",
        )));
    }
    Ok(())
}

async fn create_dead_letters(link: &Link, consumed: &stream::Config, subject: &str) -> Result<(), AdapterError> {
    let config = stream::Config {
        name: format!("{}_dead", consumed.name),
        subjects: vec![subject.to_owned()],
        storage: consumed.storage,
        num_replicas: consumed.num_replicas,
        description: Some("What the consumers of idem gave up, with the reason in `idem-reason`".to_owned()),
        ..Default::default()
    };
    let created = link.ask::<stream::Info>(&format!("STREAM.CREATE.{}", config.name), &config).await;
    let cause = match created {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(error) if error.fault == AdapterFault::Refused => error.with_causes(),
        Err(error) => return Err(error),
    };
    let text = format!(
        "no stream takes `{subject}`, where dead letters go, and `{}` could not be created; create a stream that takes it",
        config.name
    );
    Err(AdapterError::refused(text).because(cause))
}

/// Finds out whether the user may ask for messages and may acknowledge them, by a request that is none and by a word on a
/// message that there cannot be. Without the latter, every message would come again and again, for ever.
pub(super) async fn permissions(link: &Link, stream: &str, consumer: &str) -> Result<(), AdapterError> {
    let next = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
    let no_request = Request::new().payload("{\"batch\": \"none\"}".into());
    let ack = format!("$JS.ACK.{stream}.{consumer}.1.{}.1.0.0", i64::MAX);
    let no_ack = Request::new().payload(AckKind::Progress.into());
    for (subject, request) in [(next, no_request), (ack, no_ack)] {
        let asked = link.within(ANSWER, &subject, link.client.send_request(subject.clone(), request)).await?;
        match asked {
            // A server that names these subjects in another way has nobody there; messages bring the right ones along.
            Err(error) if error.kind() != RequestErrorKind::NoResponders => {
                return Err(AdapterError::unreachable("the server did not answer").because(error.to_string()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What the consumer must know of the broker's times.
pub(super) fn connected(stream: &stream::Config, consumer: &consumer::Config) -> Connected {
    let connected = Connected::new().lease(consumer.ack_wait);
    match stream.max_age {
        Duration::ZERO => connected,
        max_age => connected.horizon(max_age, "the stream's `max_age`"),
    }
}

/// A stream may make room by deleting what nobody has handled yet.
pub(super) fn warn_of_limits(stream: &stream::Config, source: &str) {
    let limits = [stream.max_messages, stream.max_bytes, stream.max_messages_per_subject];
    if stream.discard == DiscardPolicy::Old && limits.iter().any(|limit| *limit > 0) {
        telemetry::discards_unread(
            <super::NatsJetStream as Adapter>::BROKER,
            source,
            "`discard: old` with `max_msgs`, `max_bytes` or `max_msgs_per_subject`",
        );
    }
}

/// A name that is none would become another subject.
fn check_name(what: &str, name: &str) -> Result<(), AdapterError> {
    let is_plain = |c: char| c.is_ascii_graphic() && !".*>/\\".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(AdapterError::refused(format!("the {what}'s name is none: no spaces, and none of `.*>/\\`")))
}
