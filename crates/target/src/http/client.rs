//! The other side: a command that asks a server.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Time until the answer is there.
const ANSWER_TIME: Duration = Duration::from_secs(15);

/// What a request changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// What is at the path is this from now on.
    Put(String),
    /// There is nothing from now on.
    Delete,
}

/// Asks another server, as whoever has its token: the status of the answer and its text.
///
/// # Errors
/// It cannot be reached, or its answer does not come in time or is too large.
pub fn ask(address: SocketAddr, token: &str, path: &str, change: Option<Change>) -> std::io::Result<(u16, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (method, body) = match change {
        None => (Method::GET, String::new()),
        Some(Change::Put(text)) => (Method::PUT, text),
        Some(Change::Delete) => (Method::DELETE, String::new()),
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, address.to_string())
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .body(Full::<Bytes>::from(body))
        .map_err(Error::other)?;
    let exchange = async {
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(Error::other)?;
        tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(Error::other)?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let text = String::from_utf8_lossy(&body.map_err(Error::other)?.to_bytes()).into_owned();
        Ok((status, text))
    };
    let late = || Error::new(ErrorKind::TimedOut, "no answer in time");
    runtime.block_on(async { tokio::time::timeout(ANSWER_TIME, exchange).await.map_err(|_| late())? })
}
