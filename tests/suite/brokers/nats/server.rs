//! A server of a test's own, to be killed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

pub(super) struct Server {
    folder: TempDir,
    port: u16,
    has_jetstream: bool,
    process: Mutex<Child>,
}

impl Server {
    /// Starts it with this beside the listener and JetStream in its configuration; a comment at least, or it complains.
    pub(super) async fn start(config: &str) -> Self {
        Self::spawn(config, true).await
    }

    pub(super) async fn without_jetstream() -> Self {
        Self::spawn("# The defaults.", false).await
    }

    async fn spawn(config: &str, has_jetstream: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("server.conf"), config).unwrap();
        // Free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let process = Mutex::new(spawn(folder.path(), port, has_jetstream).await);
        Self { folder, port, has_jetstream, process }
    }

    pub(super) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// By SIGKILL.
    pub(super) async fn kill(&self) {
        self.process.lock().await.kill().await.unwrap();
    }

    /// Sends it a signal, by name.
    pub(super) async fn signal(&self, name: &str) {
        let id = self.process.lock().await.id().unwrap();
        let sent = Command::new("kill").args([format!("-{name}"), id.to_string()]).status().await.unwrap();
        assert!(sent.success());
    }

    pub(super) async fn start_again(&self) {
        *self.process.lock().await = spawn(self.folder.path(), self.port, self.has_jetstream).await;
    }
}

async fn spawn(folder: &Path, port: u16, has_jetstream: bool) -> Child {
    // Debian has it outside of a user's path.
    let debian = Path::new("/usr/sbin/nats-server");
    let installed = if debian.exists() { debian } else { Path::new("nats-server") };
    let program = std::env::var_os("IDEM_TEST_NATS_SERVER").map_or_else(|| installed.to_owned(), PathBuf::from);
    let mut process = Command::new(&program)
        .args(has_jetstream.then_some("-js"))
        .args(["-a", "127.0.0.1", "-p", &port.to_string()])
        .arg("-sd")
        .arg(folder.join("data"))
        .arg("-l")
        .arg(folder.join("log"))
        .arg("-c")
        .arg(folder.join("server.conf"))
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| {
            panic!("{} cannot be started: {error}; IDEM_TEST_NATS_SERVER names another", program.display())
        });
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert_eq!(process.try_wait().unwrap(), None, "the server ended: see {}", folder.display());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    process
}
