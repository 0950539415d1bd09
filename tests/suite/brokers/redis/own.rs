//! A server of our own, on loopback, in a folder that vanishes.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use redis::Client;
use tokio::time::{sleep, timeout};

pub(super) struct Server {
    folder: tempfile::TempDir,
    port: u16,
    settings: Vec<String>,
    process: Mutex<Child>,
}

impl Server {
    /// What is acknowledged is on the disk; `settings` come behind these.
    pub(super) async fn start(settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let process = Mutex::new(spawn(&folder, port, &settings));
        let server = Self { folder, port, settings, process };
        server.is_up().await;
        server
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills it with SIGKILL, and starts it again after this time.
    pub(super) async fn outage(&self, length: Duration) {
        self.kill();
        sleep(length).await;
        *self.process.lock().unwrap() = spawn(&self.folder, self.port, &self.settings);
        self.is_up().await;
    }

    fn kill(&self) {
        let mut process = self.process.lock().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    async fn is_up(&self) {
        let up = async {
            loop {
                let client = Client::open(self.url()).unwrap();
                if let Ok(mut conn) = client.get_multiplexed_async_connection().await
                    && redis::cmd("PING").query_async::<String>(&mut conn).await.is_ok()
                {
                    return;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), up).await.expect("`redis-server` does not come up");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(folder: &tempfile::TempDir, port: u16, settings: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--dir"]).arg(folder.path());
    command.args(["--appendonly", "yes", "--appendfsync", "always"]).args(settings);
    let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    spawned.expect("`redis-server` is not installed: it is needed for the tests that kill it")
}
