//! RabbitMQ itself: the one that the environment names, or one of the test's own.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, Weak};
use std::time::Duration;

use lapin::{Connection, ConnectionProperties};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

/// Longer than a node takes to start on a busy machine.
const STARTING: Duration = Duration::from_secs(120);

pub(crate) struct Node {
    pub(crate) url: String,
    own: Option<Own>,
}

/// A node that lives as long as the test.
struct Own {
    name: String,
    port: u16,
    distribution: u16,
    folder: tempfile::TempDir,
    running: Mutex<Option<Child>>,
}

impl Node {
    /// Everybody's.
    pub(crate) fn shared() -> Self {
        let url = std::env::var("IDEM_TEST_RABBITMQ_URL")
            .expect("IDEM_TEST_RABBITMQ_URL is not set: run `tests/run`, which finds or starts the broker");
        Self { url, own: None }
    }

    /// One with these settings, as Erlang writes them.
    pub(crate) async fn own(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rabbitmq.conf"), "").unwrap();
        std::fs::write(folder.path().join("advanced.config"), format!("[{{rabbit, [{settings}]}}].")).unwrap();
        std::fs::write(folder.path().join("plugins"), "[].").unwrap();
        let name = format!("idem-{}@localhost", Uuid::new_v4().simple());
        let (port, distribution) = (free_port(), free_port());
        let own = Own { name, port, distribution, folder, running: Mutex::default() };
        let node = Self { url: format!("amqp://guest:guest@127.0.0.1:{port}/%2f"), own: Some(own) };
        node.start().await;
        node
    }

    /// The one whose consumers must acknowledge within three seconds, for all tests that run at the time.
    pub(crate) async fn impatient() -> std::sync::Arc<Self> {
        static NODE: tokio::sync::Mutex<Weak<Node>> = tokio::sync::Mutex::const_new(Weak::new());
        let mut shared = NODE.lock().await;
        if let Some(node) = shared.upgrade() {
            return node;
        }
        let node = Self::own("{consumer_timeout, 3000}, {channel_tick_interval, 500}").await;
        let node = std::sync::Arc::new(node);
        *shared = std::sync::Arc::downgrade(&node);
        node
    }

    async fn start(&self) {
        self.mine().start();
        let up = async {
            // A node that boots can accept a connection and never answer it.
            let answered = async || {
                let connecting = Connection::connect(&self.url, ConnectionProperties::default());
                timeout(Duration::from_secs(3), connecting).await.is_ok_and(|connected| connected.is_ok())
            };
            while !answered().await {
                // What was killed may still hold the name or a port.
                if self.mine().has_ended() {
                    self.mine().start();
                }
                sleep(Duration::from_millis(200)).await;
            }
        };
        if timeout(STARTING, up).await.is_err() {
            let output = std::fs::read_to_string(self.mine().folder.path().join("output")).unwrap_or_default();
            panic!("the node did not start: {output}");
        }
    }

    /// Kills it, and starts it again after a while.
    pub(crate) async fn restart(&self, after: Duration) {
        self.mine().kill();
        sleep(after).await;
        self.start().await;
    }

    fn mine(&self) -> &Own {
        self.own.as_ref().expect("everybody's broker is not the test's to do this with")
    }

    /// The messages of a queue that are ready or in flight.
    pub(crate) fn messages(&self, queue: &str) -> u64 {
        let listed = self.ctl(&["list_queues", "--formatter", "json", "name", "messages"]);
        let queues: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let mut queues = queues.as_array().unwrap().iter();
        queues.find(|it| it["name"] == queue).map_or(0, |it| it["messages"].as_u64().unwrap())
    }

    /// What AMQP cannot say goes by `rabbitmqctl`, which is on the broker's machine.
    pub(crate) fn ctl(&self, arguments: &[&str]) -> String {
        let mut command = match &self.own {
            Some(own) => {
                let mut command = own.command("rabbitmqctl");
                command.args(["-n", &own.name]);
                command
            }
            None => {
                let ctl = std::env::var("IDEM_TEST_RABBITMQCTL").unwrap_or_else(|_| "rabbitmqctl".to_owned());
                let mut words = ctl.split_whitespace();
                let mut command = Command::new(words.next().unwrap());
                command.args(words);
                command
            }
        };
        let ran = command.arg("-q").args(arguments).output();
        let ran = ran.expect("IDEM_TEST_RABBITMQCTL, or `rabbitmqctl`, cannot be run");
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }
}

impl Own {
    fn start(&self) {
        let mut command = self.command("rabbitmq-server");
        let log = std::fs::File::create(self.folder.path().join("output")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        // A group, so that what the script starts ends with it.
        *self.running.lock().unwrap() = Some(command.process_group(0).spawn().unwrap());
    }

    fn has_ended(&self) -> bool {
        let mut running = self.running.lock().unwrap();
        running.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    fn kill(&self) {
        if let Some(mut child) = self.running.lock().unwrap().take() {
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-KILL", "--", &group]).status().unwrap();
            child.wait().unwrap();
        }
    }

    fn command(&self, program: &str) -> Command {
        // Debian's programs on the path change to another user.
        let installed = Path::new("/usr/lib/rabbitmq/bin").join(program);
        let mut command = if installed.exists() { Command::new(installed) } else { Command::new(program) };
        let folder = self.folder.path();
        command
            .env("HOME", folder)
            .env("RABBITMQ_NODENAME", &self.name)
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", self.port.to_string())
            .env("RABBITMQ_DIST_PORT", self.distribution.to_string())
            .env("RABBITMQ_MNESIA_BASE", folder.join("data"))
            .env("RABBITMQ_LOG_BASE", folder.join("log"))
            .env("RABBITMQ_PID_FILE", folder.join("pid"))
            .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq.conf"))
            .env("RABBITMQ_ADVANCED_CONFIG_FILE", folder.join("advanced.config"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("plugins"))
            .env("RABBITMQ_GENERATED_CONFIG_DIR", folder.join("generated"));
        command
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Below those that outgoing connections take, one of which could have it while the node is down.
fn free_port() -> u16 {
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let some = || 20_000 + u16::from_be_bytes([Uuid::new_v4().as_bytes()[0], Uuid::new_v4().as_bytes()[1]]) % 12_000;
    std::iter::repeat_with(some).find(is_free).unwrap()
}
