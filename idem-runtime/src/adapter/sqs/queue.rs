//! What SQS says of a queue and of its dead-letter queue, and what is refused of it.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::time::Duration;

use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::QueueAttributeName;
use serde::Deserialize;

use super::super::{AdapterError, Connected};
use super::Sqs;
use super::fault::{self, ANSWER, answered};

/// What there is to know of a queue.
#[derive(Debug)]
pub(super) struct Queue {
    /// How long a message is hidden from others once it is received, in seconds.
    pub(super) lease: i32,
    pub(super) is_fifo: bool,
    pub(super) dead_letters: DeadLetters,
}

/// Where dead letters go.
#[derive(Debug)]
pub(super) struct DeadLetters {
    pub(super) url: String,
    pub(super) is_fifo: bool,
    /// The largest message that it takes, in bytes, attributes included.
    pub(super) largest: usize,
}

/// The part of a redrive policy that names the dead-letter queue.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Redrive {
    dead_letter_target_arn: String,
}

impl Queue {
    /// Asks SQS, and refuses what would lose messages.
    pub(super) async fn look_up(sqs: &Sqs) -> Result<(Self, Connected), AdapterError> {
        let own = Attributes::of(sqs, &sqs.url, "the queue was not looked up").await?;
        let lease = match sqs.lease {
            Some(lease) => lease,
            None => Duration::from_secs(own.number(&QueueAttributeName::VisibilityTimeout)?),
        };
        if lease.is_zero() {
            return Err(AdapterError::refused(
                "the queue's `VisibilityTimeout` is 0: a message would be given out again while it is handled; set it on \
                 the queue, or `Sqs::visibility_timeout` on the adapter",
            ));
        }
        let policy = own.get(&QueueAttributeName::RedrivePolicy);
        let url = match (&sqs.dead_letters, policy) {
            (Some(url), _) => url.clone(),
            (None, Some(policy)) => target(sqs, policy).await?,
            (None, None) => {
                return Err(AdapterError::refused(
                    "the queue has no dead-letter queue: what can never be handled would come again until \
                     `MessageRetentionPeriod` deletes it; give the queue a `RedrivePolicy`, or the adapter \
                     `Sqs::dead_letter_queue`",
                ));
            }
        };
        let dead = Attributes::of(sqs, &url, "the dead-letter queue was not looked up").await?;
        check_pair(&own, &dead, policy.is_some() && sqs.dead_letters.is_none())?;
        check_permissions(sqs, &url).await?;
        let connected = Connected::new().lease(lease);
        let (length, because) = horizon(&own, &dead)?;
        let largest = usize::try_from(dead.number(&QueueAttributeName::MaximumMessageSize)?).unwrap_or(usize::MAX);
        let dead_letters = DeadLetters { url, is_fifo: dead.is_fifo(), largest };
        let queue = Self { lease: super::whole_seconds(lease), is_fifo: own.is_fifo(), dead_letters };
        Ok((queue, connected.horizon(length, because)))
    }
}

/// The queue that a redrive policy names.
async fn target(sqs: &Sqs, policy: &str) -> Result<String, AdapterError> {
    let unread = "the queue's `RedrivePolicy` names no dead-letter queue";
    let redrive: Redrive =
        serde_json::from_str(policy).map_err(|error| AdapterError::refused(unread).because(error))?;
    // arn:aws:sqs:region:account:name
    let mut parts = redrive.dead_letter_target_arn.rsplit(':');
    let (Some(name), Some(account)) = (parts.next(), parts.next()) else {
        return Err(AdapterError::refused(unread));
    };
    let request = sqs.client.get_queue_url().queue_name(name).queue_owner_aws_account_id(account);
    let said = answered("the dead-letter queue was not looked up", ANSWER, request.send()).await?;
    said.queue_url.ok_or_else(|| AdapterError::refused(unread))
}

fn check_pair(own: &Attributes, dead: &Attributes, is_moved_by_sqs: bool) -> Result<(), AdapterError> {
    let arn = &QueueAttributeName::QueueArn;
    if own.get(arn).is_some() && own.get(arn) == dead.get(arn) {
        return Err(AdapterError::refused("the queue is its own dead-letter queue"));
    }
    let size = &QueueAttributeName::MaximumMessageSize;
    if dead.number(size)? < own.number(size)? {
        return Err(AdapterError::refused(
            "the dead-letter queue's `MaximumMessageSize` is below the queue's: a large message could not be stored there",
        ));
    }
    let retention = &QueueAttributeName::MessageRetentionPeriod;
    if is_moved_by_sqs && !own.is_fifo() && dead.number(retention)? < own.number(retention)? {
        return Err(AdapterError::refused(
            "the dead-letter queue's `MessageRetentionPeriod` is below the queue's: a message that SQS moves there keeps its \
             age, and would be deleted unseen",
        ));
    }
    Ok(())
}

/// The longest stay in the queue, then among the dead letters, and again in the queue when a human has it delivered again,
/// which makes it as if it were new.
fn horizon(own: &Attributes, dead: &Attributes) -> Result<(Duration, String), AdapterError> {
    let retention = &QueueAttributeName::MessageRetentionPeriod;
    let (own, dead) = (own.number(retention)?, dead.number(retention)?);
    let because = format!(
        "`MessageRetentionPeriod`: {own} seconds of the queue, {dead} of its dead-letter queue, and as long in the queue again \
         after a redrive"
    );
    Ok((Duration::from_secs(own.saturating_mul(2).saturating_add(dead)), because))
}

/// Asks for each permission with a request that SQS cannot carry out: no message has this handle, none is that late, and
/// nobody gets eleven at once. Any answer but a refusal will do.
async fn check_permissions(sqs: &Sqs, dead_letters: &str) -> Result<(), AdapterError> {
    let (client, url, nobody) = (&sqs.client, &sqs.url, "idem-may-i");
    let receive = client.receive_message().queue_url(url).max_number_of_messages(11).visibility_timeout(0);
    let delete = client.delete_message().queue_url(url).receipt_handle(nobody);
    let hide = client.change_message_visibility().queue_url(url).receipt_handle(nobody).visibility_timeout(0);
    let send = client.send_message().queue_url(dead_letters).message_body("").delay_seconds(901);
    tokio::try_join!(
        may("`sqs:ReceiveMessage` on the queue", receive.send()),
        may("`sqs:DeleteMessage` on the queue", delete.send()),
        may("`sqs:ChangeMessageVisibility` on the queue", hide.send()),
        may("`sqs:SendMessage` on the dead-letter queue", send.send()),
    )
    .map(drop)
}

async fn may<T, E>(action: &str, request: impl Future<Output = Result<T, SdkError<E>>>) -> Result<(), AdapterError>
where
    E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
{
    let Err(SdkError::ServiceError(answer)) = Box::pin(request).await else { return Ok(()) };
    match answer.err().code() {
        Some(code) if fault::is_denied(code) => {
            let cause = format!("{code}: {}", answer.err().message().unwrap_or_default());
            Err(AdapterError::refused(format!("the credentials lack {action}")).because(cause))
        }
        _ => Ok(()),
    }
}

/// A queue's attributes, as SQS says them.
pub(super) struct Attributes(HashMap<QueueAttributeName, String>);

impl Attributes {
    pub(super) async fn of(sqs: &Sqs, url: &str, what: &str) -> Result<Self, AdapterError> {
        let request = sqs.client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::All);
        Ok(Self(answered(what, ANSWER, request.send()).await?.attributes.unwrap_or_default()))
    }

    fn get(&self, name: &QueueAttributeName) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn number(&self, name: &QueueAttributeName) -> Result<u64, AdapterError> {
        let number = self.get(name).and_then(|number| number.parse().ok());
        number.ok_or_else(|| AdapterError::refused(format!("SQS does not say the queue's `{name}`")))
    }

    fn is_fifo(&self) -> bool {
        self.get(&QueueAttributeName::FifoQueue) == Some("true")
    }
}
