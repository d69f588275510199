//! A small HTTP server that nobody can hold up: every wait, length and count has a bound.
//!
//! ```text
//! listener -> a connection, if there is a place or somebody gives way -> one request's head, in time        (connections)
//!          -> is it from where it may be, does it show the token? -> a body, in time                        (guard)
//!          -> routes of axum -> at once, or a worker, in time -> answer, compressed if that pays -> closed
//!                           \-> WebSocket -> a conversation until one side ends it                          (socket)
//! ```
//!
//! A connection is closed after its answer. The server has a thread of its own, which never waits for a peer: one that does
//! not send or does not read loses its connection, and one whose request is not whole gives its place to the next. [`ask`] is the
//! other side, for the command.

mod client;
mod connections;
mod guard;
mod socket;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use tokio::sync::oneshot;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;

use crate::error::ServeError;
use guard::Guard;

pub use client::{Change, ask};
pub use connections::CONNECTIONS_MAX;
pub use guard::{Audience, Body};
pub use socket::{COMMANDS_A_SECOND, Conversation, MESSAGE_BYTES_MAX, SPEECHES_A_SECOND, Speech, Upgrade};

/// Bytes of a body that a program sends.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// Bytes of a body that a page sends.
const PAGE_BODY_BYTES_MAX: usize = 1 << 20;
/// Bytes of a token, so that it cannot be guessed.
pub const TOKEN_BYTES_MIN: usize = 16;
/// Threads that answer what takes a while.
const WORKERS: usize = 8;
/// Time for a worker's answer.
const WORK_TIME: Duration = Duration::from_secs(60);
/// Bytes from which on an answer is compressed.
const COMPRESSED_BYTES_MIN: u64 = 1024;

/// Where to serve, and for whom.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Where to listen. Other than loopback needs a token.
    pub listen: SocketAddr,
    /// What a request has to carry as `Authorization: Bearer TOKEN`; none on loopback is for everybody of this machine.
    pub token: Option<String>,
}

impl HttpOptions {
    /// Everybody who reaches the address; loopback only.
    pub fn new(listen: SocketAddr) -> HttpOptions {
        HttpOptions { listen, token: None }
    }

    /// Refuses what must not be served.
    fn check(&self) -> Result<(), ServeError> {
        let is_loopback = self.listen.ip().to_canonical().is_loopback();
        match &self.token {
            Some(token) if token.len() < TOKEN_BYTES_MIN => Err(ServeError::TokenTooShort { bytes: TOKEN_BYTES_MIN }),
            None if !is_loopback => Err(ServeError::TokenRequired(self.listen)),
            _ => Ok(()),
        }
    }
}

/// A running server.
pub struct HttpServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl HttpServer {
    /// Starts to serve. Handlers run on the server's thread and must not wait: [`work`] is for those that take a while.
    ///
    /// # Errors
    /// The address cannot be had, or must not be served without a token.
    pub fn start(
        name: &str,
        options: HttpOptions,
        audience: Audience,
        routes: Router,
    ) -> Result<HttpServer, ServeError> {
        options.check()?;
        let address = options.listen;
        let failed = |error| ServeError::listening(address, error);
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(WORKERS)
            .build()
            .map_err(failed)?;
        let guard = Guard {
            address,
            audience,
            token: options.token,
        };
        // The routes are a service of another router, so that what goes around them sees a 405 with the methods that there are.
        let around = from_fn_with_state(Arc::new(guard), guard::check);
        let routes = Router::new().fallback_service(routes).layer(around);
        let routes = match audience {
            Audience::Programs => routes.layer(DefaultBodyLimit::max(BODY_BYTES_MAX)),
            Audience::Browsers => routes.layer(DefaultBodyLimit::max(PAGE_BODY_BYTES_MAX)).layer(
                CompressionLayer::new()
                    .quality(CompressionLevel::Fastest)
                    .compress_when(SizeAbove::new(COMPRESSED_BYTES_MIN)),
            ),
        };
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = connections::serve(listener, routes, audience.connection_time()) => {}
                    _ = stopped => {}
                }
            });
            // Connections that are left are dropped with the runtime; a worker that is at it is not waited for.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new()
            .name(name.to_string())
            .spawn(work)
            .map_err(failed)?;
        Ok(HttpServer { address, stop, thread })
    }

    /// Where it listens.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Stops at once; nobody is waited for.
    pub fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Has a worker answer. The asker waits for a minute, and is then told so.
pub async fn work<R: IntoResponse>(answer: impl FnOnce() -> R + Send + 'static) -> Response {
    let work = tokio::task::spawn_blocking(move || answer().into_response());
    let failed = match tokio::time::timeout(WORK_TIME, work).await {
        Ok(Ok(answer)) => return answer,
        Ok(Err(_)) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "the answer failed, which is a mistake of this program; please report it",
        ),
        Err(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the answer takes longer than a minute; ask for less, or again later",
        ),
    };
    failed.into_response()
}
