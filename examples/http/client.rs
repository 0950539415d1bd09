//! A client for one request on one connection.

use std::error::Error;
use std::net::SocketAddr;

use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Sends the request and reads the whole answer. Dropped, it hangs up.
pub(crate) async fn send(
    to: SocketAddr,
    request: Request<Body>,
) -> Result<Response<Bytes>, Box<dyn Error + Send + Sync>> {
    let stream = TcpStream::connect(to).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let answer = async {
        let (parts, body) = sender.send_request(request).await?.into_parts();
        Ok(Response::from_parts(parts, body.collect().await?.to_bytes()))
    };
    // Here and in no task of its own, so that it ends with the caller.
    tokio::pin!(answer);
    tokio::select! {
        answered = &mut answer => answered,
        ended = connection => {
            ended?;
            answer.await
        }
    }
}
