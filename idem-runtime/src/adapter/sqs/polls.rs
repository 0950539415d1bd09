//! Requests for messages. They belong to the adapter, not to who waits for them: SQS hides what it sends to one that was
//! given up until its time is over.

use std::collections::VecDeque;

use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::super::{AdapterError, Delivery};
use super::fault::{ANSWER, answered};
use super::queue::Queue;
use super::{Sqs, SqsReceipt, seconds};
use crate::clock;

/// As many messages SQS hands out at a request.
const BATCH: usize = 10;

/// As many requests wait at once, while there is something to be had.
const AT_ONCE: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Polls {
    requests: JoinSet<Poll>,
    /// How many messages the requests under way may bring.
    asked: usize,
    /// Whether the last request brought as many as it asked for.
    is_busy: bool,
    /// What was brought beyond what its receiver has room for by now, and when.
    surplus: VecDeque<(Instant, Delivery<SqsReceipt>)>,
}

/// What a request brought.
#[derive(Debug)]
struct Poll {
    asked: usize,
    since: Instant,
    until: Instant,
    messages: Result<Vec<Message>, AdapterError>,
}

impl Polls {
    /// Asks for as many messages, with those that are asked for already. One request waits at an empty queue.
    pub(super) fn fill(&mut self, sqs: &Sqs, queue: &Queue, max: usize) {
        // Of a group's messages that one request brings, the second would be handled though the first has failed.
        let batch = if queue.is_fifo { 1 } else { BATCH };
        let at_once = if self.is_busy { AT_ONCE } else { 1 };
        while self.requests.len() < at_once {
            let asked = batch.min(max.saturating_sub(self.asked).saturating_sub(self.surplus.len()));
            let Ok(number @ 1..) = i32::try_from(asked) else { return };
            self.asked += asked;
            let request = sqs.client.receive_message().queue_url(&sqs.url).max_number_of_messages(number);
            let request = request.visibility_timeout(queue.lease).wait_time_seconds(super::whole_seconds(sqs.wait));
            let request = request
                .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
                .message_system_attribute_names(MessageSystemAttributeName::MessageGroupId)
                .message_attribute_names("All");
            let (since, patience) = (clock::monotonic(), sqs.wait + ANSWER);
            self.requests.spawn(async move {
                let answer = answered("no messages were received", patience, request.send()).await;
                let messages = answer.map(|answer| answer.messages.unwrap_or_default());
                Poll { asked, since, until: clock::monotonic(), messages }
            });
        }
    }

    /// Waits for the next request to end. Cancel safe: nothing is taken out of the set before that.
    pub(super) async fn next(&mut self, queue: &Queue, max: usize) -> Result<Vec<Delivery<SqsReceipt>>, AdapterError> {
        if self.surplus.is_empty()
            && let Some(ended) = self.requests.join_next().await
        {
            self.ended(queue, ended)?;
            while let Some(ended) = self.requests.try_join_next() {
                // What others brought is not lost over one that failed, and the next call meets it again.
                drop(self.ended(queue, ended));
            }
        }
        let (now, lease) = (clock::monotonic(), seconds(queue.lease));
        let mut deliveries = Vec::new();
        while deliveries.len() < max
            && let Some((came, delivery)) = self.surplus.pop_front()
        {
            // What waited for too long is given out again by SQS.
            if now.saturating_duration_since(came) < lease {
                deliveries.push(delivery);
            }
        }
        Ok(deliveries)
    }

    /// Waits for the requests under way, and returns what was brought and nobody took.
    pub(super) async fn end(&mut self, queue: &Queue) -> Vec<SqsReceipt> {
        while let Some(ended) = self.requests.join_next().await {
            // What cannot be received cannot be given back.
            drop(self.ended(queue, ended));
        }
        self.is_busy = false;
        self.surplus.drain(..).map(|(_, delivery)| delivery.receipt).collect()
    }

    fn ended(&mut self, queue: &Queue, ended: Result<Poll, JoinError>) -> Result<(), AdapterError> {
        let poll = match ended {
            Ok(poll) => poll,
            Err(error) => {
                self.asked = 0;
                return Err(AdapterError::unreachable("no messages were received").because(error));
            }
        };
        self.asked = self.asked.saturating_sub(poll.asked);
        let messages = poll.messages?;
        self.is_busy = messages.len() == poll.asked;
        let deliveries = messages.into_iter().map(|message| (poll.until, Sqs::delivery(queue, message, poll.since)));
        self.surplus.extend(deliveries);
        Ok(())
    }
}
