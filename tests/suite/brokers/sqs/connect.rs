//! What is refused at the start.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::interceptors::BeforeTransmitInterceptorContextMut;
use aws_sdk_sqs::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sqs::error::BoxError;
use aws_sdk_sqs::types::QueueAttributeName;
use idem_runtime::{Adapter, Consumer, ErrorKind, Sqs};
use idem_tests::{Consumes, Db};
use sqlx::Sqlite;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::TestBroker;
use super::{Queue, client, config, endpoint};

/// Sends one action elsewhere.
#[derive(Debug)]
struct Elsewhere {
    action: &'static str,
    url: String,
}

impl Intercept for Elsewhere {
    fn name(&self) -> &'static str {
        "Elsewhere"
    }

    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request_mut();
        if request.headers().get("x-amz-target") == Some(&format!("AmazonSQS.{}", self.action)) {
            request.set_uri(self.url.as_str())?;
        }
        Ok(())
    }
}

/// A client that is told this, as AWS says it, instead of one action.
async fn told(action: &'static str, code: &'static str) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let body = format!(r#"{{"__type": "{code}", "message": "not you"}}"#);
    let answer = format!(
        "HTTP/1.1 403 Forbidden\r\nx-amzn-query-error: {code};Sender\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"}") && client.read_buf(&mut request).await.unwrap() > 0 {}
            client.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    Client::from_conf(config(&endpoint()).interceptor(Elsewhere { action, url }).build())
}

/// What the adapter and what is behind it say.
async fn refused(adapter: &Sqs) -> String {
    let error = adapter.connect().await.unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    assert!(format!("{error:?}").contains("fault: Refused"), "{error:?}");
    format!("{error}: {}", cause.unwrap_or_default())
}

#[tokio::test]
async fn settings_that_lose_messages_are_refused_with_their_reason() {
    let queue = Queue::<false>::create(Duration::from_secs(30)).await;
    let adapter = queue.adapter();
    adapter.connect().await.unwrap();
    let set = async |url: &str, name: QueueAttributeName, value: &str| queue.set(url, name, value).await;

    set(&queue.url, QueueAttributeName::VisibilityTimeout, "0").await;
    let text = refused(&adapter).await;
    assert!(text.contains("`VisibilityTimeout` is 0: a message would be given out again"), "{text}");
    queue.adapter().visibility_timeout(Duration::from_millis(1)).connect().await.unwrap();
    set(&queue.url, QueueAttributeName::VisibilityTimeout, "30").await;

    set(&queue.dead, QueueAttributeName::MaximumMessageSize, "1024").await;
    let text = refused(&adapter).await;
    assert!(text.contains("a large message could not be stored there"), "{text}");
    set(&queue.dead, QueueAttributeName::MaximumMessageSize, "1048576").await;

    set(&queue.dead, QueueAttributeName::MessageRetentionPeriod, "3600").await;
    let text = refused(&adapter).await;
    assert!(text.contains("keeps its age, and would be deleted unseen"), "{text}");
    // What the adapter alone moves there is as new.
    queue.adapter().dead_letter_queue(&queue.dead).connect().await.unwrap();
    set(&queue.dead, QueueAttributeName::MessageRetentionPeriod, "345600").await;

    let text = refused(&queue.adapter().dead_letter_queue(&queue.url)).await;
    assert!(text.contains("its own dead-letter queue"), "{text}");
    let text = refused(&queue.adapter().dead_letter_queue(format!("{}-not", queue.dead))).await;
    assert!(text.contains("the dead-letter queue was not looked up: there is no such queue"), "{text}");

    set(&queue.url, QueueAttributeName::RedrivePolicy, "").await;
    let text = refused(&adapter).await;
    assert!(text.contains("the queue has no dead-letter queue: what can never be handled"), "{text}");
    queue.adapter().dead_letter_queue(&queue.dead).connect().await.unwrap();
    queue.destroy().await;
}

#[tokio::test]
async fn a_missing_permission_is_named_at_the_start() {
    let queue = Queue::<false>::create(Duration::from_secs(30)).await;
    for (action, named) in [
        ("ReceiveMessage", "the credentials lack `sqs:ReceiveMessage` on the queue"),
        ("DeleteMessage", "the credentials lack `sqs:DeleteMessage` on the queue"),
        ("ChangeMessageVisibility", "the credentials lack `sqs:ChangeMessageVisibility` on the queue"),
        ("SendMessage", "the credentials lack `sqs:SendMessage` on the dead-letter queue"),
        ("GetQueueAttributes", "the queue was not looked up: the credentials lack the permission"),
        ("GetQueueUrl", "the dead-letter queue was not looked up: the credentials lack the permission"),
    ] {
        let text = refused(&queue.by(told(action, "AccessDenied").await)).await;
        assert!(text.contains(named) && text.contains("AccessDenied: not you"), "{text}");
    }
    let text = refused(&queue.by(told("GetQueueAttributes", "InvalidClientTokenId").await)).await;
    assert!(text.contains("SQS does not take the credentials"), "{text}");
    // Asking did nothing.
    assert_eq!((queue.unsettled().await, queue.look(&queue.dead).await), (0, vec![]));
    queue.destroy().await;
}

#[tokio::test]
async fn a_broker_that_accepts_and_never_answers_is_unreachable_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let adapter = Sqs::new(client(&format!("http://{}", listener.local_addr().unwrap())), "queue");
    let connected = tokio::time::timeout(Duration::from_secs(12), adapter.connect()).await.unwrap();
    let text = format!("{:?}", connected.unwrap_err());
    assert!(text.contains("fault: Unreachable") && text.contains("no answer within 10 seconds"), "{text}");
}

/// [B39] `tests.apply` keeps its keys for seven days, and declares a redelivery of one.
#[tokio::test]
async fn the_longest_redelivery_is_that_of_both_queues() {
    Db::<Sqlite>::test(async |db| {
        let engine = db.engine(4).await;
        let queue = Queue::<false>::create(Duration::from_secs(30)).await;
        let start = async |strict: bool| {
            let consumer = Consumer::new(&engine, queue.adapter());
            let consumer = consumer.route(idem_runtime::Route::<Sqlite, <Sqlite as Consumes>::Apply>::with_state(
                std::sync::Arc::default(),
            ));
            if strict { consumer.strict() } else { consumer }.start().await
        };
        // Four days in the queue, as many among the dead letters, and in the queue again.
        let error = start(true).await.unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::BrokerRefused, "{text}");
        let because = "`MessageRetentionPeriod`: 345600 seconds of the queue, 345600 of its dead-letter queue";
        assert!(text.contains("after 1036800 seconds") && text.contains(because), "{text}");
        // Not strict: it is a warning.
        start(false).await.unwrap().stop().await;
        for url in [&queue.url, &queue.dead] {
            queue.set(url, QueueAttributeName::MessageRetentionPeriod, "28800").await;
        }
        start(true).await.unwrap().stop().await;
        queue.destroy().await;
    })
    .await;
}
