//! The connection to a server, and what it says of itself while a call waits.

use std::str::FromStr;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::RequestErrorKind;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::timeout;

use crate::adapter::AdapterError;

/// How long the server may take to answer.
pub(super) const ANSWER: Duration = Duration::from_secs(5);

/// How often the client tries to connect anew, for calls that are made meanwhile: about eight seconds. The consumer has the
/// adapter connect anew on its own, and a client that tries for ever would outlive it.
const RECONNECTS: usize = 12;

/// As many events are kept for a call that is slow to look.
const EVENTS: usize = 64;

pub(super) struct Link {
    pub(super) client: Client,
    pub(super) context: Context,
    events: broadcast::Sender<Event>,
}

impl Link {
    pub(super) async fn open(servers: &str, options: ConnectOptions) -> Result<Self, AdapterError> {
        let servers: Result<Vec<_>, _> = servers.split(',').map(|url| ServerAddr::from_str(url.trim())).collect();
        // Its text is not passed on: it can hold a part of the URL, and so of a password.
        let servers =
            servers.map_err(|_| AdapterError::refused("a server's URL is none, such as `nats://host:4222`"))?;
        let (events, _) = broadcast::channel(EVENTS);
        let told = events.clone();
        let mut options = options.max_reconnects(servers.len() + RECONNECTS).event_callback(move |event| {
            // Nobody listens between two calls.
            drop(told.send(event));
            std::future::ready(())
        });
        let credentials = servers.iter().find_map(|server| server.username().zip(server.password()));
        if let Some((user, password)) = credentials {
            options = options.user_and_password(user.to_owned(), password.to_owned());
        }
        let client = timeout(ANSWER, options.connect(servers))
            .await
            .map_err(|_| silent())?
            .map_err(|error| not_connected(&error))?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(ANSWER);
        Ok(Self { client, context, events })
    }

    /// Waits for a call as long as the connection lives, and no longer than this. `subject` is what the call needs the
    /// permission for.
    pub(super) async fn within<T>(
        &self,
        longest: Duration,
        subject: &str,
        call: impl Future<Output = T>,
    ) -> Result<T, AdapterError> {
        let mut events = self.events.subscribe();
        if self.client.connection_state() != State::Connected {
            return Err(lost());
        }
        let trouble = async {
            loop {
                match events.recv().await {
                    Ok(Event::Disconnected | Event::Closed) => return lost(),
                    Ok(Event::ServerError(ServerError::Other(text))) if is_denied(&text, subject) => {
                        return AdapterError::refused("the user of this connection lacks a permission").because(text);
                    }
                    Err(RecvError::Closed) => std::future::pending().await,
                    _ => {}
                }
            }
        };
        tokio::select! {
            biased;
            done = timeout(longest, call) => done.map_err(|_| silent()),
            error = trouble => Err(error),
        }
    }

    /// Asks the JetStream of the server. The inner error is its answer.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        subject: &str,
        payload: &(impl Serialize + Sync),
    ) -> Result<Result<T, jetstream::Error>, AdapterError> {
        let asking = self.context.request(subject.to_owned(), payload);
        match self.within(ANSWER, &format!("$JS.API.{subject}"), asking).await? {
            Ok(Response::Ok(answer)) => Ok(Ok(answer)),
            Ok(Response::Err { error }) => match error.error_code() {
                ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => Err(no_jetstream()),
                // It has no leader, or is starting.
                _ if error.code() == 503 => {
                    Err(AdapterError::unreachable("JetStream is not available").because(error.to_string()))
                }
                _ => Ok(Err(error)),
            },
            Err(error) if error.kind() == RequestErrorKind::NoResponders => Err(no_jetstream()),
            Err(error) => Err(AdapterError::unreachable("the server did not answer").because(error.to_string())),
        }
    }

    /// Sends what is to be sent, and ends the connection.
    pub(super) async fn close(&self) {
        let mut events = self.events.subscribe();
        let closed = async { while !matches!(events.recv().await, Ok(Event::Closed) | Err(RecvError::Closed)) {} };
        if self.client.connection_state() == State::Connected && self.client.drain().await.is_ok() {
            drop(timeout(ANSWER, closed).await);
        }
    }
}

/// Whether the server says that this subject may not be used. What is subscribed to is inboxes, for answers.
fn is_denied(text: &str, subject: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("permissions violation")
        && (text.contains("for subscription") || text.contains(&subject.to_ascii_lowercase()))
}

fn not_connected(error: &async_nats::ConnectError) -> AdapterError {
    let refused = match error.kind() {
        ConnectErrorKind::AuthorizationViolation => {
            AdapterError::refused("the server does not let this user in: check the credentials")
        }
        ConnectErrorKind::Authentication => AdapterError::refused("the credentials cannot be used to log in"),
        ConnectErrorKind::Tls => AdapterError::refused("no TLS connection could be made with these settings"),
        _ => AdapterError::unreachable("no server of NATS answers"),
    };
    refused.because(error.to_string())
}

fn no_jetstream() -> AdapterError {
    AdapterError::refused(
        "JetStream is not enabled on the server, or not for this account; start the server with `-js`",
    )
}

fn lost() -> AdapterError {
    AdapterError::unreachable("the connection to the server was lost")
}

pub(super) fn silent() -> AdapterError {
    AdapterError::unreachable(
        "the server did not answer in time; it hangs, cannot be reached, or lets this user see no answers",
    )
}
