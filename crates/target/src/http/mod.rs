//! A small HTTP server that limits all waits, sizes and counts, so that no client can block it.
//!
//! ```text
//! listener -> a connection, if a place is free or a half-open one gives way -> head  (connections)
//!          -> check Host, Origin and token -> a body                                 (guard)
//!          -> axum routes -> handler, or worker with a time limit -> answer -> closed
//!                        \-> WebSocket -> a conversation until one side ends it      (socket)
//! ```
//!
//! A connection closes after its answer. The server's thread never waits for a peer. A peer that
//! does not send or read in time loses its connection, and an incomplete request may lose its place
//! to a new connection. [`send_request`] is the client side, for the command.

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

pub use client::{ChangeRequest, send_request};
pub use connections::CONNECTIONS_MAX;
pub use guard::{Audience, RequestBody};
pub use socket::{
    COMMANDS_A_SECOND, MESSAGE_BYTES_MAX, SPEECHES_A_SECOND, SocketMessage, WebSocketHandler, WebSocketRequest,
};

/// Most bytes of a request body for [`Audience::Programs`].
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// Most bytes of a request body for [`Audience::Browsers`].
const PAGE_BODY_BYTES_MAX: usize = 1 << 20;
/// Fewest bytes of a token, so that it cannot be guessed.
pub const TOKEN_BYTES_MIN: usize = 16;
/// Most worker threads for slow answers.
const WORKERS: usize = 8;
/// Time limit for a worker's answer.
const WORK_TIME: Duration = Duration::from_secs(60);
/// Smallest answer in bytes that is compressed.
const COMPRESSED_BYTES_MIN: u64 = 1024;

/// Address and access token of a server.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Address to listen on. Any address except loopback needs a token.
    pub listen: SocketAddr,
    /// Token that requests carry as `Authorization: Bearer TOKEN`. Without a token, which requires
    /// loopback, all users of this machine have access.
    pub token: Option<String>,
}

impl HttpOptions {
    /// Options without a token, for loopback only.
    pub fn new(listen: SocketAddr) -> HttpOptions {
        HttpOptions { listen, token: None }
    }

    /// Rejects unsafe options.
    fn check(&self) -> Result<(), ServeError> {
        let is_loopback = self.listen.ip().to_canonical().is_loopback();
        match &self.token {
            Some(token) if token.len() < TOKEN_BYTES_MIN => Err(ServeError::TokenTooShort { bytes: TOKEN_BYTES_MIN }),
            None if !is_loopback => Err(ServeError::TokenRequired(self.listen)),
            _ => Ok(()),
        }
    }
}

pub struct HttpServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl HttpServer {
    /// Starts to serve. Handlers run on the server's thread and must not wait. Slow handlers use
    /// [`work`].
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
        let guard = Guard { address, audience, token: options.token };
        // The routes are a service of an outer router, so that the layers see a 405 with the list
        // of allowed methods.
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
            // Shutting down the runtime drops all connections and does not wait for a busy worker.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name(name.to_string()).spawn(work).map_err(failed)?;
        Ok(HttpServer { address, stop, thread })
    }

    /// Address that the server listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Stops immediately, without waiting for clients.
    pub fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Runs `answer` on a worker. After one minute the client gets an error instead.
pub async fn work<R: IntoResponse>(answer: impl FnOnce() -> R + Send + 'static) -> Response {
    let work = tokio::task::spawn_blocking(move || answer().into_response());
    let failed = match tokio::time::timeout(WORK_TIME, work).await {
        Ok(Ok(answer)) => return answer,
        Ok(Err(_)) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "the answer failed because of a bug in this program. Please report it")
        }
        Err(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, "the answer takes longer than a minute. Request less, or try again later")
        }
    };
    failed.into_response()
}
