//! Dead letters: records of another topic, on all its replicas before the original's offset moves.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};

use super::super::AdapterError;
use super::{Record, answered};

pub(super) async fn bury(
    producer: &FutureProducer,
    topic: &str,
    record: &Record,
    reason: &str,
) -> Result<(), AdapterError> {
    let receipt = &record.receipt;
    let (partition, offset) = (receipt.place.1.to_string(), receipt.offset.to_string());
    let added = [
        ("idem-reason", reason),
        ("idem-topic", &*receipt.place.0),
        ("idem-partition", &partition),
        ("idem-offset", &offset),
    ];
    let original = receipt.original.headers.clone().unwrap_or_default();
    let headers = added
        .into_iter()
        .fold(original, |headers: OwnedHeaders, (key, value)| headers.insert(Header { key, value: Some(value) }));
    let mut dead = FutureRecord::<[u8], [u8]>::to(topic).payload(&record.message.body).headers(headers);
    if let Some(key) = &receipt.original.key {
        dead = dead.key(key);
    }
    let sent = match producer.send_result(dead) {
        Ok(sent) => sent.await,
        Err((error, _)) => return Err(refused(topic, error)),
    };
    match sent {
        Ok(Ok(_)) => Ok(()),
        Ok(Err((error, _))) => Err(refused(topic, error)),
        Err(error) => Err(AdapterError::unreachable("the producer of dead letters has ended").because(error)),
    }
}

fn refused(topic: &str, error: KafkaError) -> AdapterError {
    let is_too_large = matches!(
        error.rdkafka_error_code(),
        Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::MessageBatchTooLarge)
    );
    if is_too_large {
        let text = format!(
            "the dead-letter topic `{topic}` does not take so large a record: raise its `max.message.bytes` above the \
             original topic's, for the headers"
        );
        return AdapterError::refused(text).because(error);
    }
    answered(&format!("the dead-letter topic `{topic}`"), error)
}
