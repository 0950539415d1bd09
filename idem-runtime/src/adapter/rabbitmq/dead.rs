//! Where dead letters are stored before the original is acknowledged.

use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::uri::AMQPUri;
use lapin::{BasicProperties, Channel, Confirmation, Connection};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::super::AdapterError;
use super::link::{close, connect};
use super::{CONNECTING, because, message};

/// How long RabbitMQ may take to say that it has stored a dead letter.
const STORING: Duration = Duration::from_secs(30);

/// Stores dead letters, on a connection of its own that is opened for the first one: RabbitMQ stops reading from whoever
/// publishes while it is short of memory or disk, and acknowledgements must still get through then.
pub(super) struct DeadLetters {
    uri: AMQPUri,
    queue: ShortString,
    publisher: Mutex<Option<Publisher>>,
}

struct Publisher {
    connection: Connection,
    channel: Channel,
}

impl DeadLetters {
    pub(super) fn new(uri: AMQPUri, queue: ShortString) -> Self {
        Self { uri, queue, publisher: Mutex::default() }
    }

    /// Returns when RabbitMQ has it. Whatever keeps it from that, the delivery is to be kept back and tried again.
    pub(super) async fn store(
        &self,
        from: &str,
        original: &BasicProperties,
        body: &[u8],
        reason: &str,
    ) -> Result<(), AdapterError> {
        let (channel, frame_max) = self.channel().await?;
        let properties = message::of_dead_letter(original, from, reason, frame_max);
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let storing =
            async { channel.basic_publish("".into(), self.queue.clone(), options, body, properties).await?.await };
        match timeout(STORING, storing).await {
            Ok(Ok(Confirmation::Ack(None))) => Ok(()),
            Ok(Ok(Confirmation::Ack(Some(_)))) => Err(self.refused("is not there any more: create it")),
            Ok(Ok(Confirmation::Nack(_) | Confirmation::NotRequested)) => {
                Err(self.refused("does not take it: is the queue full?"))
            }
            Ok(Err(error)) => Err(because(self.refused("did not take it"), &error)),
            Err(_) => {
                self.close().await;
                Err(self.refused("did not take it in time: is RabbitMQ short of memory or disk?"))
            }
        }
    }

    fn refused(&self, why: &str) -> AdapterError {
        AdapterError::refused(format!("the dead-letter queue `{}` {why}", self.queue))
    }

    /// The channel to publish by, and the largest frame on it.
    async fn channel(&self) -> Result<(Channel, u32), AdapterError> {
        let mut publisher = self.publisher.lock().await;
        if let Some(Publisher { connection, channel }) = publisher.as_ref().filter(|it| it.channel.status().connected())
        {
            return Ok((channel.clone(), connection.configuration().frame_max()));
        }
        if let Some(broken) = publisher.take() {
            close(&broken.connection).await;
        }
        let opening = async {
            let connection = connect(&self.uri, &format!("idem, dead letters to {}", self.queue)).await?;
            let channel = connection.create_channel().await?;
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            Ok(Publisher { connection, channel })
        };
        let opened: Result<Publisher, lapin::Error> = match timeout(CONNECTING, opening).await {
            Ok(opened) => opened,
            Err(_) => return Err(self.refused("cannot be reached")),
        };
        let opened = opened.map_err(|error| because(self.refused("cannot be reached"), &error))?;
        let usable = (opened.channel.clone(), opened.connection.configuration().frame_max());
        *publisher = Some(opened);
        Ok(usable)
    }

    pub(super) async fn close(&self) {
        if let Some(publisher) = self.publisher.lock().await.take() {
            close(&publisher.connection).await;
        }
    }
}
