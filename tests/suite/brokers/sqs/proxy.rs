//! A way to the broker that can be cut.

use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(super) struct Proxy {
    port: u16,
    is_cut: watch::Sender<bool>,
    /// Ends with the proxy.
    _relays: JoinSet<()>,
}

impl Proxy {
    pub(super) async fn start(server: &str) -> Self {
        let server = server.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_cut = watch::Sender::new(false);
        let seen = is_cut.subscribe();
        let mut relays = JoinSet::new();
        relays.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let (mut seen, server) = (seen.clone(), server.clone());
                connections.spawn(async move {
                    if *seen.borrow() {
                        return;
                    }
                    let mut server = TcpStream::connect(server).await.unwrap();
                    // Or each of the two waits for the other's acknowledgement, 40 milliseconds every time.
                    client.set_nodelay(true).unwrap();
                    server.set_nodelay(true).unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = seen.wait_for(|is_cut| *is_cut) => {}
                    }
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { port, is_cut, _relays: relays }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Ends every connection, and lets nobody through for so long.
    pub(super) async fn outage(&self, length: Duration) {
        self.is_cut.send_replace(true);
        tokio::time::sleep(length).await;
        self.is_cut.send_replace(false);
    }
}
