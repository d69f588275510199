//! The client side: sends the command's request to a server.

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
const ANSWER_TIME: Duration = Duration::from_secs(15);

/// The modification that a request makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeRequest {
    /// Sets the resource at the path to this text.
    Put(String),
    /// Deletes the resource at the path.
    Delete,
}

/// Sends a request with a token to a server. Returns the status and the text of the answer.
pub fn send_request(
    address: SocketAddr,
    token: &str,
    path: &str,
    change: Option<ChangeRequest>,
) -> std::io::Result<(u16, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (method, body) = match change {
        None => (Method::GET, String::new()),
        Some(ChangeRequest::Put(text)) => (Method::PUT, text),
        Some(ChangeRequest::Delete) => (Method::DELETE, String::new()),
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
    let late = || Error::new(ErrorKind::TimedOut, "the server did not answer in time");
    runtime.block_on(async { tokio::time::timeout(ANSWER_TIME, exchange).await.map_err(|_| late())? })
}
