//! A small HTTP server that nobody can hold up: every wait, length and count has a bound.
//!
//! ```text
//! listener -> a connection, if there is a place or somebody gives way -> one request's head, in time -> pages -> answer, in time -> closed
//!                                                    | \-> PUT, DELETE, with the token -> a small body -> changes -^
//!                                                    |-> an App: a body in time -> a worker, in time -> answer ----^
//!                                                    \-> an App: WebSocket -> a conversation until one side ends it
//! ```
//!
//! A [`Site`] answers GET and HEAD, whose bodies are not read; PUT and DELETE only where there is a token, on loopback too. An
//! [`App`] also takes POST and WebSockets, and refuses what another site had a browser send. A connection is
//! closed after its answer. The server has a thread of its own, which never waits for a peer: one that does
//! not send or does not read loses its connection, and one whose request is not whole gives its place to the next. [`ask`] is the other side, for the command.

mod app;
mod socket;

use std::convert::Infallible;
use std::io::{Error, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1 as client;
use hyper::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::AbortHandle;

use crate::error::ServeError;
use crate::half_open::{HalfOpen, oldest_of_the_busiest};

pub use app::{Answer, App, Cache, Method as AppMethod, Question, compressed};
pub use socket::{COMMANDS_A_SECOND, Conversation, MESSAGE_BYTES_MAX, SPEECHES_A_SECOND, Speech};

/// Connections at the same time. One more takes the place of one whose request is not whole, or is closed at once.
pub const CONNECTIONS_MAX: usize = 64;
/// Bytes of a request's head, the least that the library takes.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Fields of a request's head.
const FIELDS_MAX: usize = 64;
/// Time for a request's head.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Time for a connection, from its beginning to the end of the answer.
const CONNECTION_TIME: Duration = Duration::from_secs(15);
/// Bytes of a change.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// Bytes of an answer that is asked for.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Bytes of a token, so that it cannot be guessed.
pub const TOKEN_BYTES_MIN: usize = 16;
/// Pause after a connection could not be accepted, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a connection waits at most before it is looked again whether there is a place.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

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

/// What a request changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// What is at the path is this from now on; at most [`BODY_BYTES_MAX`].
    Put(String),
    /// There is nothing from now on.
    Delete,
}

/// Changes what is at a path, if it is one: what to answer, or what is wrong with the change. As [`Pages`], it must not
/// wait.
pub type Changes = dyn Fn(&str, Change) -> Option<Result<Page, String>> + Send + Sync;

/// What is served.
pub struct Site {
    /// What a path that is not known is answered with.
    pub hint: &'static str,
    /// What there is to read.
    pub pages: Box<Pages>,
    /// What there is to change, for those who show the token; nothing where there is no token.
    pub changes: Option<Box<Changes>>,
}

/// A running server.
pub struct HttpServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl HttpServer {
    /// Starts to serve.
    ///
    /// # Errors
    /// The address cannot be had, or must not be served without a token.
    pub fn start(name: &str, options: HttpOptions, site: Site) -> Result<HttpServer, ServeError> {
        HttpServer::serve(name, options, Served::Site(site))
    }

    /// Starts to serve an app.
    ///
    /// # Errors
    /// As [`HttpServer::start`].
    pub fn start_app(name: &str, options: HttpOptions, app: Arc<dyn App>) -> Result<HttpServer, ServeError> {
        HttpServer::serve(name, options, Served::App(app))
    }

    fn serve(name: &str, options: HttpOptions, served: Served) -> Result<HttpServer, ServeError> {
        options.check()?;
        let address = options.listen;
        let failed = |error| ServeError::listening(address, error);
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(app::WORKERS)
            .build()
            .map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            runtime.block_on(async {
                let token = options.token;
                let serving = serve(listener, Arc::new(Guarded { address, served, token }));
                tokio::select! {
                    () = serving => {}
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

/// What is served, and what is to be shown for it.
struct Guarded {
    /// Where it listens.
    address: SocketAddr,
    served: Served,
    token: Option<String>,
}

enum Served {
    Site(Site),
    App(Arc<dyn App>),
}

impl Served {
    /// Time for a connection, from its beginning to the end of the answer.
    fn connection_time(&self) -> Duration {
        match self {
            Served::Site(_) => CONNECTION_TIME,
            Served::App(_) => app::CONNECTION_TIME,
        }
    }
}

async fn serve(listener: TcpListener, site: Arc<Guarded>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("it was made not to block");
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut taken = Vec::new();
    for number in 0.. {
        let (stream, peer) = loop {
            match listener.accept().await {
                Ok(accepted) => break accepted,
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        };
        // Without a place the connection is dropped, which closes it.
        let Some(permit) = permit(&free, &mut taken).await else {
            continue;
        };
        let place = Arc::new(Place {
            _permit: permit,
            is_asked: AtomicBool::new(false),
        });
        let connection = HalfOpen {
            number,
            peer: peer.ip(),
            since: Instant::now(),
        };
        let at = Arc::downgrade(&place);
        let task = tokio::spawn(self::connection(stream, place, Arc::clone(&site))).abort_handle();
        taken.push(Taken { connection, at, task });
    }
}

/// A place in the server.
struct Place {
    _permit: OwnedSemaphorePermit,
    /// The request is there as a whole: its head, and the body if it is wanted.
    is_asked: AtomicBool,
}

impl Place {
    fn note_asked(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }
}

/// A place that somebody has, or had.
struct Taken {
    connection: HalfOpen,
    at: Weak<Place>,
    task: AbortHandle,
}

impl Taken {
    fn is_half_open(&self) -> bool {
        let place = self.at.upgrade();
        place.is_some_and(|place| !place.is_asked.load(Ordering::Relaxed))
    }
}

/// The permit for a place: a free one, or that of a connection whose request is not whole.
async fn permit(free: &Arc<Semaphore>, taken: &mut Vec<Taken>) -> Option<OwnedSemaphorePermit> {
    taken.retain(|taken| taken.at.strong_count() > 0);
    loop {
        if let Ok(permit) = Arc::clone(free).try_acquire_owned() {
            return Some(permit);
        }
        let half_open = taken.iter().filter(|taken| taken.is_half_open());
        let half_open: Vec<HalfOpen> = half_open.map(|taken| taken.connection).collect();
        let oldest = oldest_of_the_busiest(&half_open)?;
        let spared_for = oldest.spared_for(Instant::now());
        if spared_for.is_zero() {
            let gives_way = taken.iter().find(|taken| taken.connection.number == oldest.number);
            gives_way?.task.abort();
            // The task ends the next time that the runtime looks at it.
            return Arc::clone(free).acquire_owned().await.ok();
        }
        tokio::time::sleep(spared_for.min(LOOK_AGAIN)).await;
    }
}

async fn connection(stream: TcpStream, place: Arc<Place>, site: Arc<Guarded>) {
    // A conversation keeps the place after the connection has become its own.
    let time = site.served.connection_time();
    let service = service_fn(|request| async { Ok::<_, Infallible>(site.answer(request, &place).await) });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(FIELDS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // However it ends is the peer's business.
    let _ = tokio::time::timeout(time, connection).await;
}

impl Guarded {
    async fn answer(&self, request: Request<Incoming>, place: &Arc<Place>) -> Response<Full<Bytes>> {
        match &self.served {
            Served::Site(site) => self.answer_of_site(site, request, place).await,
            Served::App(app) => self.answer_of_app(app, request, place).await,
        }
    }

    async fn answer_of_site(&self, site: &Site, request: Request<Incoming>, place: &Place) -> Response<Full<Bytes>> {
        // Where there is no token anybody of this machine may read, and nobody change anything.
        let changes = site.changes.as_ref().filter(|_| self.token.is_some());
        let is_change = matches!(*request.method(), Method::PUT | Method::DELETE);
        let changes = changes.filter(|_| is_change);
        if changes.is_none() && !matches!(*request.method(), Method::GET | Method::HEAD) {
            let allowed = (ALLOW, HeaderValue::from_static("GET, HEAD"));
            let text = "only GET and HEAD; changes need a server with a token (--metrics-token FILE)\n";
            return plain(StatusCode::METHOD_NOT_ALLOWED, text, Some(allowed));
        }
        if !self.admits(&request) {
            let demanded = (WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return plain(
                StatusCode::UNAUTHORIZED,
                "Authorization: Bearer TOKEN is needed\n",
                Some(demanded),
            );
        }
        let path = request.uri().path().to_string();
        let page = match changes {
            None => {
                place.note_asked();
                (site.pages)(&path)
            }
            Some(changes) => {
                let change = change_of(request).await;
                place.note_asked();
                let Ok(change) = change else {
                    let text = "a change has at most 65536 bytes, of UTF-8\n";
                    return plain(StatusCode::PAYLOAD_TOO_LARGE, text, None);
                };
                match changes(&path, change) {
                    Some(Err(problem)) => return plain(StatusCode::BAD_REQUEST, problem + "\n", None),
                    Some(Ok(page)) => Some(page),
                    None => None,
                }
            }
        };
        let Some(page) = page else {
            return plain(StatusCode::NOT_FOUND, site.hint, None);
        };
        let mut response = Response::new(Full::from(page.body));
        let kind = HeaderValue::from_static(page.content_type);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    /// Whether the request carries the token, if one is needed.
    fn admits(&self, request: &Request<Incoming>) -> bool {
        let given = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        self.is_token(given.and_then(|value| value.strip_prefix(b"Bearer ")))
    }

    /// Whether this is the token, if one is needed.
    fn is_token(&self, given: Option<&[u8]>) -> bool {
        let Some(token) = &self.token else { return true };
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

/// What a request is to change; its body is read within the time of the connection.
async fn change_of(request: Request<Incoming>) -> Result<Change, ()> {
    if request.method() == Method::DELETE {
        return Ok(Change::Delete);
    }
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|_| ())?.to_bytes();
    String::from_utf8(body.into()).map(Change::Put).map_err(|_| ())
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
        let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await.map_err(Error::other)?;
        tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(Error::other)?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let text = String::from_utf8_lossy(&body.map_err(Error::other)?.to_bytes()).into_owned();
        Ok((status, text))
    };
    let late = || Error::new(ErrorKind::TimedOut, "no answer in time");
    runtime.block_on(async {
        tokio::time::timeout(CONNECTION_TIME, exchange)
            .await
            .map_err(|_| late())?
    })
}

fn plain(
    status: StatusCode,
    text: impl Into<Bytes>,
    field: Option<(HeaderName, HeaderValue)>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().extend(field);
    response
}
