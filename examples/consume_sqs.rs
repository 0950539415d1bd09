//! Webhook deliveries go through a queue of Amazon SQS, and credit accounts once each.
//!
//! The service is the one at `IDEM_TEST_SQS_URL`, an emulator's address such as `http://127.0.0.1:4566`.
//!
//! ```text
//! cargo run --features sqs --example consume_sqs                                  # 179 deliveries of 140 events, then the figures
//! cargo run --features sqs --example consume_sqs -- --db credits.db --crash 100   # dies after a commit, before its acknowledgement
//! cargo run --features sqs --example consume_sqs -- --db credits.db               # goes on: the figures are the same
//! ```

#[path = "consume/mod.rs"]
mod consume;

use std::process::ExitCode;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Config, Credentials, Region};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use consume::{Broker, Stop, stopped};
use idem_runtime::{Engine, Incoming, Sqs};
use sqlx::Sqlite;

struct OnSqs {
    client: Client,
    url: String,
    dead_letters: String,
}

impl Broker for OnSqs {
    type Adapter = Sqs;

    async fn open(_: &Engine<Sqlite>, queue: &str) -> Result<Self, Stop> {
        let endpoint =
            std::env::var("IDEM_TEST_SQS_URL").map_err(stopped("IDEM_TEST_SQS_URL must name the service"))?;
        // At AWS itself all of this is `aws_config::load_from_env()`.
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "an emulator takes any"))
            .http_client(Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https())
            .endpoint_url(endpoint);
        let client = Client::from_conf(config.build());
        let url = create(&client, queue).await?;
        let dead_letters = create(&client, &format!("{queue}-dead")).await?;
        Ok(Self { client, url, dead_letters })
    }

    async fn publish(&self, message: &Incoming) -> Result<(), Stop> {
        let body = String::from_utf8_lossy(&message.body);
        let send = self.client.send_message().queue_url(&self.url).message_body(body);
        Box::pin(send.send()).await.map(drop).map_err(stopped("the message was not sent"))
    }

    fn adapter(self) -> Sqs {
        // Short, so that the run after a crash does not wait long for what the dead process held.
        Sqs::new(self.client, self.url)
            .dead_letter_queue(self.dead_letters)
            .visibility_timeout(Duration::from_secs(2))
            .wait(Duration::from_secs(1))
    }
}

/// Makes a queue, unless it is there.
async fn create(client: &Client, name: &str) -> Result<String, Stop> {
    let created = Box::pin(client.create_queue().queue_name(name).send()).await;
    let created = created.map_err(stopped(format_args!("the queue {name} was not made")))?;
    created.queue_url.ok_or_else(|| Stop::new(format_args!("the queue {name} has no URL")))
}

#[tokio::main]
async fn main() -> ExitCode {
    consume::main::<OnSqs>().await
}
