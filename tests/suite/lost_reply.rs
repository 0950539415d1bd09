//! The connection is lost while the COMMIT is travelling [B28]: a proxy drops the request or the reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use idem_runtime::{Engine, ErrorKind, Settle};
use idem_tests::{Batches, Db, Delivered, Message, Step, TestStore, deliver};
use sqlx::mysql::MySqlPoolOptions;
use sqlx::postgres::PgPoolOptions;
use sqlx::{MySql, Pool, Postgres};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::conformance::natural;

/// What the proxy does with the next COMMIT, and afterwards.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Mode {
    Pass,
    LoseReply,
    LoseRequest,
    LoseReplyAndDie,
    LoseRequestAndDie,
    Dead,
}

const MODES: [Mode; 6] =
    [Mode::Pass, Mode::LoseReply, Mode::LoseRequest, Mode::LoseReplyAndDie, Mode::LoseRequestAndDie, Mode::Dead];

#[derive(Clone)]
struct Proxy(Arc<AtomicU8>);

impl Proxy {
    /// Starts a proxy in front of a server, and gives its port.
    async fn start(server: (String, u16)) -> (Self, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = Self(Arc::new(AtomicU8::new(Mode::Pass as u8)));
        tokio::spawn({
            let proxy = proxy.clone();
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    if proxy.mode() != Mode::Dead {
                        let server = TcpStream::connect((server.0.as_str(), server.1)).await.unwrap();
                        tokio::spawn(proxy.clone().relay(client, server));
                    }
                }
            }
        });
        (proxy, port)
    }

    fn mode(&self) -> Mode {
        MODES[usize::from(self.0.load(Ordering::SeqCst))]
    }

    fn set(&self, mode: Mode) {
        self.0.store(mode as u8, Ordering::SeqCst);
    }

    async fn relay(self, mut client: TcpStream, mut server: TcpStream) -> std::io::Result<()> {
        let (mut request, mut reply) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            tokio::select! {
                read = client.read(&mut request) => {
                    let read = &request[..read?];
                    if read.is_empty() {
                        return Ok(());
                    }
                    let mode = self.mode();
                    let is_commit = read.windows(6).any(|window| window == b"COMMIT");
                    if is_commit && mode != Mode::Pass {
                        if matches!(mode, Mode::LoseReply | Mode::LoseReplyAndDie) {
                            server.write_all(read).await?;
                            // Its answer says that it is done.
                            assert_ne!(server.read(&mut reply).await?, 0, "the server answers a COMMIT");
                        }
                        let dies = matches!(mode, Mode::LoseReplyAndDie | Mode::LoseRequestAndDie);
                        self.set(if dies { Mode::Dead } else { Mode::Pass });
                        return Ok(());
                    }
                    server.write_all(read).await?;
                }
                read = server.read(&mut reply) => {
                    let read = &reply[..read?];
                    if read.is_empty() {
                        return Ok(());
                    }
                    client.write_all(read).await?;
                }
            }
        }
    }
}

/// A pool on the test's database that goes through a proxy.
trait Proxied: TestStore {
    async fn proxied(place: &Self::Place) -> (Proxy, Pool<Self>);
}

impl Proxied for Postgres {
    async fn proxied((options, _): &Self::Place) -> (Proxy, Pool<Self>) {
        let (proxy, port) = Proxy::start((options.get_host().to_owned(), options.get_port())).await;
        let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(1));
        (proxy, pool.connect_with(options.clone().host("127.0.0.1").port(port)).await.unwrap())
    }
}

impl Proxied for MySql {
    async fn proxied((options, _): &Self::Place) -> (Proxy, Pool<Self>) {
        let (proxy, port) = Proxy::start((options.get_host().to_owned(), options.get_port())).await;
        let pool = MySqlPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(1));
        (proxy, pool.connect_with(options.clone().host("127.0.0.1").port(port)).await.unwrap())
    }
}

async fn loses<S: Proxied>(mode: Mode, expected: Delivered, redelivered: Delivered) {
    Db::<S>::test(async |db| {
        let (proxy, pool) = S::proxied(db.place()).await;
        let engine = Engine::start(pool).await.unwrap();
        // So that the statements are prepared and the next COMMIT is the one.
        assert_eq!(deliver(&engine, &Message::new("e0", [])).await, Delivered::Applied);
        proxy.set(mode);
        let msg = Message::new("e1", [Step::Effect("e1")]);
        assert_eq!(deliver(&engine, &msg).await, expected);
        proxy.set(Mode::Pass);
        let durable = i64::from(redelivered == Delivered::Duplicate);
        assert_eq!((db.effects("e1").await, db.keys().await), (durable, durable + 1));
        assert_eq!(deliver(&engine, &msg).await, redelivered);
        assert_eq!(deliver(&engine, &msg).await, Delivered::Duplicate);
        assert_eq!((db.effects("e1").await, db.keys().await), (1, 2));
        engine.pool().close().await;
    })
    .await;
}

/// What is not known of the batch is asked for each of it.
async fn loses_in_a_batch<S: Proxied + Batches>() {
    Db::<S>::test(async |db| {
        let (proxy, pool) = S::proxied(db.place()).await;
        let engine = Engine::start(pool).await.unwrap();
        let batch = |name: &str| [1, 2, 3].map(|number| Message::new(format!("{name}{number}"), [Step::Effect("e")]));
        let deliver = async |messages: &[Message; 3]| engine.handle_batch::<S::Each>(&messages.each_ref(), &()).await;
        assert!(deliver(&batch("before")).await.iter().all(|outcome| outcome.as_ref().unwrap().is_applied()));
        for (name, mode) in [("reply", Mode::LoseReply), ("request", Mode::LoseRequest)] {
            proxy.set(mode);
            let outcomes = deliver(&batch(name)).await;
            assert!(outcomes.iter().all(|outcome| outcome.as_ref().unwrap().is_applied()), "{outcomes:?}");
            assert!(deliver(&batch(name)).await.iter().all(|outcome| outcome.as_ref().unwrap().is_duplicate()));
        }
        assert_eq!((db.effects("e").await, db.keys().await), (9, 9));
        proxy.set(Mode::LoseReplyAndDie);
        for outcome in deliver(&batch("dead")).await {
            assert_eq!(outcome.unwrap_err().kind(), Some(ErrorKind::CommitUnknown));
        }
        proxy.set(Mode::Pass);
        assert!(deliver(&batch("dead")).await.iter().all(|outcome| outcome.as_ref().unwrap().is_duplicate()));
        assert_eq!((db.effects("e").await, db.keys().await), (12, 12));
        engine.pool().close().await;
    })
    .await;
}

async fn every_loss<S: Proxied + Batches>() {
    use Delivered::{Applied, Duplicate, Refused};
    loses::<S>(Mode::LoseReply, Applied, Duplicate).await;
    loses::<S>(Mode::LoseRequest, Refused(ErrorKind::Commit), Applied).await;
    loses::<S>(Mode::LoseReplyAndDie, Refused(ErrorKind::CommitUnknown), Duplicate).await;
    loses::<S>(Mode::LoseRequestAndDie, Refused(ErrorKind::CommitUnknown), Applied).await;
    loses_without_a_key::<S>().await;
    loses_in_a_batch::<S>().await;
}

/// Nothing can be looked up, so nothing is claimed to be known.
async fn loses_without_a_key<S: Proxied>() {
    Db::<S>::test(async |db| {
        let (proxy, pool) = S::proxied(db.place()).await;
        let engine = Engine::start(pool).await.unwrap();
        for (mode, durable) in [(Mode::LoseReply, 1), (Mode::LoseRequest, 1)] {
            proxy.set(mode);
            let failure = natural(&engine, &Message::new("e1", [Step::Effect("e1")])).await.unwrap_err();
            assert_eq!((failure.kind(), failure.settle()), (Some(ErrorKind::CommitUnknown), Settle::Retry));
            assert!(failure.to_string().ends_with("applying it again changes nothing"), "{failure}");
            assert_eq!(db.effects("e1").await, durable);
        }
        engine.pool().close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_commit_is_looked_up_on_postgres() {
    if !idem_tests::without_server("postgres") {
        every_loss::<Postgres>().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_commit_is_looked_up_on_mysql() {
    if !idem_tests::without_server("mysql") {
        every_loss::<MySql>().await;
    }
}
