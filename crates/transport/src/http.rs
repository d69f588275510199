//! A small HTTP server that nobody can hold up: every wait, length and count has a bound.
//!
//! ```text
//! listener -> a connection, if there is a place -> one request's head, in time -> pages -> answer, in time -> closed
//! ```
//!
//! It answers GET and HEAD, reads no body, and closes a connection after its answer. It has a thread of its own, which never waits for
//! a peer: one that does not send or does not read loses its connection.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::ServeError;

/// Connections at the same time; those beyond are closed at once.
pub const CONNECTIONS_MAX: usize = 64;
/// Bytes of a request's head, the least that the library takes.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Fields of a request's head.
const FIELDS_MAX: usize = 64;
/// Time for a request's head.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Time for a connection, from its beginning to the end of the answer.
const CONNECTION_TIME: Duration = Duration::from_secs(15);
/// Bytes of a token, so that it cannot be guessed.
pub const TOKEN_BYTES_MIN: usize = 16;
/// Pause after a connection could not be accepted, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is found at a path.
pub struct Page {
    /// Its media type.
    pub content_type: &'static str,
    /// Its text.
    pub body: String,
}

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

/// Finds the page of a path. It is called on the server's thread and must not wait.
pub type Pages = dyn Fn(&str) -> Option<Page> + Send + Sync;

/// A running server.
pub struct HttpServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl HttpServer {
    /// Starts to serve; `hint` is what a path that is not known is answered with.
    ///
    /// # Errors
    /// The address cannot be had, or must not be served without a token.
    pub fn start(
        name: &str,
        options: HttpOptions,
        hint: &'static str,
        pages: Box<Pages>,
    ) -> Result<HttpServer, ServeError> {
        options.check()?;
        let address = options.listen;
        let failed = |error| ServeError::listening(address, error);
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            runtime.block_on(async {
                let site = Site {
                    hint,
                    pages,
                    token: options.token,
                };
                let serving = serve(listener, Arc::new(site));
                tokio::select! {
                    () = serving => {}
                    _ = stopped => {}
                }
            });
            // Connections that are left are dropped with the runtime.
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

/// What is served.
struct Site {
    /// What a path that is not known is answered with.
    hint: &'static str,
    pages: Box<Pages>,
    token: Option<String>,
}

async fn serve(listener: TcpListener, site: Arc<Site>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("it was made not to block");
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Without a place the connection is dropped, which closes it.
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            tokio::spawn(connection(stream, place, Arc::clone(&site)));
        }
    }
}

async fn connection(stream: TcpStream, place: OwnedSemaphorePermit, site: Arc<Site>) {
    let service = service_fn(|request| std::future::ready(Ok::<_, Infallible>(site.answer(&request))));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(FIELDS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // However it ends is the peer's business.
    let _ = tokio::time::timeout(CONNECTION_TIME, connection).await;
    drop(place);
}

impl Site {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let allowed = (ALLOW, HeaderValue::from_static("GET, HEAD"));
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n", Some(allowed));
        }
        if !self.admits(request) {
            let demanded = (WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return plain(
                StatusCode::UNAUTHORIZED,
                "Authorization: Bearer TOKEN is needed\n",
                Some(demanded),
            );
        }
        let Some(page) = (self.pages)(request.uri().path()) else {
            return plain(StatusCode::NOT_FOUND, self.hint, None);
        };
        let mut response = Response::new(Full::from(page.body));
        let kind = HeaderValue::from_static(page.content_type);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    /// Whether the request carries the token, if one is needed.
    fn admits(&self, request: &Request<Incoming>) -> bool {
        let Some(token) = &self.token else { return true };
        let given = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let given = given.and_then(|value| value.strip_prefix(b"Bearer "));
        // How long it takes does not say how much of it is right.
        let differs = |given: &[u8]| {
            token
                .bytes()
                .zip(given)
                .fold(0, |all, (one, other)| all | (one ^ other))
        };
        given.is_some_and(|given| given.len() == token.len() && differs(given) == 0)
    }
}

fn plain(status: StatusCode, text: &'static str, field: Option<(HeaderName, HeaderValue)>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().extend(field);
    response
}
