//! Apps: programs behind the server, with questions that take a while, bodies, and WebSockets.
//!
//! ```text
//! head -> is it from where it may be (Host, Origin)? -> is it public, or does it show the token? -> body, in time
//!      -> at once, or on a worker, in time -> Answer -> compressed, if that pays -> response
//! ```
//!
//! A browser sends what any site tells it to: so the Host must be this machine by its address (a name that somebody had
//! lead here is no name of it), and the Origin, where there is one, the same place. Only where there is a token may another
//! site ask (a notebook, whose page comes from its own server): each of its questions shows the token, so it was given it, and
//! only then it may read the answer (CORS). Its preflights, which can show none, are all answered alike. No cookie means anything.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HOST, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, ORIGIN,
    REFERRER_POLICY, SEC_WEBSOCKET_PROTOCOL, VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Request, Response, StatusCode};

use super::{Guarded, Place, socket};

/// Threads that answer what takes a while.
pub(super) const WORKERS: usize = 8;
/// Bytes of a request's body.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// Time for a request's body.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Time for a worker's answer.
const WORK_TIME: Duration = Duration::from_secs(60);
/// Time for a connection that is no WebSocket, from its beginning to the end of the answer.
pub(super) const CONNECTION_TIME: Duration = Duration::from_secs(90);
/// Bytes from which on an answer is compressed.
const COMPRESSED_BYTES_MIN: usize = 1024;
/// How a WebSocket of a page shows the token: as a protocol that it asks for, since a page can set no other field.
const TOKEN_PROTOCOL: &str = "warp.token.";

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET, and HEAD, whose answer has no body.
    Get,
    /// POST.
    Post,
    /// DELETE.
    Delete,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Question {
    /// What it does.
    pub method: Method,
    /// Its path, as it was sent.
    pub path: String,
    /// Its body; at most a mebibyte.
    pub body: Bytes,
    /// Whether the answer may be compressed.
    pub takes_gzip: bool,
}

/// How long an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// For nobody but who asked, once.
    Never,
    /// As long as its tag is the same.
    Tagged,
    /// For ever: the name says what is in it.
    Forever,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP's status.
    pub status: u16,
    /// Media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Bytes,
    /// Whether the body is compressed already.
    pub is_compressed: bool,
    /// How long it holds.
    pub cache: Cache,
    /// What tells it from another answer of the same path, if it may be kept.
    pub tag: Option<String>,
    /// What a file of it is called, if it is one to be kept by the user.
    pub file_name: Option<String>,
}

impl Answer {
    /// An answer that holds once.
    pub fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
        Answer {
            status,
            content_type,
            body: body.into(),
            is_compressed: false,
            cache: Cache::Never,
            tag: None,
            file_name: None,
        }
    }
}

/// What is served. See the module.
pub trait App: Send + Sync + 'static {
    /// What is answered on the server's thread, without waiting.
    fn at_once(&self, question: &Question) -> Option<Answer>;

    /// The answer to anything else, on a thread that may take a while: the asker waits for a minute, and is then told so.
    fn answer(&self, question: &Question) -> Answer;

    /// A conversation that begins at this path, on the server's thread, without waiting; or why there is none.
    ///
    /// # Errors
    /// The answer to who asked for it.
    fn converse(&self, path: &str) -> Result<Box<dyn socket::Conversation>, Answer>;

    /// Whether a path is for everybody who reaches the server: nothing but what comes with the program.
    fn is_public(&self, path: &str) -> bool;

    /// The body of a refusal.
    fn refusal(&self, status: u16, problem: &str) -> Answer;
}

impl Guarded {
    pub(super) async fn answer_of_app(
        &self,
        app: &Arc<dyn App>,
        request: Request<Incoming>,
        place: &Arc<Place>,
    ) -> Response<Full<Bytes>> {
        let takes_gzip = takes_gzip(request.headers());
        let tag = request.headers().get(IF_NONE_MATCH).cloned();
        let asker = match self.asker(&request) {
            Ok(asker) => asker,
            Err(problem) => return respond(app.refusal(403, &problem), takes_gzip, tag.as_ref()),
        };
        if asker == Asker::Preflight {
            return preflight();
        }
        let answer = match self.taken(app, request, place).await {
            Ok(response) => return response,
            Err(answer) => answer,
        };
        let mut response = respond(answer, takes_gzip, tag.as_ref());
        if asker == Asker::Trusted {
            // Any site that shows the token; with a star browsers send no cookies along.
            let any = HeaderValue::from_static("*");
            response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, any);
        }
        response
    }

    /// Who asks; or why nobody answers.
    fn asker(&self, request: &Request<Incoming>) -> Result<Asker, String> {
        let host = only(request.headers(), HOST).unwrap_or_default();
        if !is_own(host, self.address) {
            return Err(format!(
                "the Host is {:?}, which is not this server by its address; open http://{}/",
                shown(host),
                self.address
            ));
        }
        let Some(origin) = only(request.headers(), ORIGIN) else {
            return Ok(Asker::Own);
        };
        let place = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        if place.is_some_and(|place| place.eq_ignore_ascii_case(host)) {
            return Ok(Asker::Own);
        }
        // Where no token is set nobody can show it, and everything shows "none".
        if self.token.is_some() && !origin.is_empty() {
            if is_preflight(request) {
                return Ok(Asker::Preflight);
            }
            if self.shows_token(request) {
                return Ok(Asker::Trusted);
            }
        }
        let remedy = if self.token.is_some() {
            ", or show the token"
        } else {
            ""
        };
        Err(format!(
            "the request comes from {:?}, another site; open http://{host}/{remedy}",
            shown(origin)
        ))
    }

    /// Whether a request shows the token in either way, if one is needed.
    fn shows_token(&self, request: &Request<Incoming>) -> bool {
        let is_upgrade = socket::is_upgrade(request);
        self.admits(request) || (is_upgrade && self.is_token(protocol_token(request.headers()).as_deref()))
    }

    /// A response that is no answer: the beginning of a conversation.
    async fn taken(
        &self,
        app: &Arc<dyn App>,
        mut request: Request<Incoming>,
        place: &Arc<Place>,
    ) -> Result<Response<Full<Bytes>>, Answer> {
        let refuse = |status: u16, problem: &str| app.refusal(status, problem);
        let path = request.uri().path().to_string();
        if socket::is_upgrade(&request) {
            if !self.shows_token(&request) {
                return Err(refuse(
                    401,
                    "a token is needed; open the address that `warp studio` printed",
                ));
            }
            let accepted = socket::accept(&request).map_err(|problem| refuse(400, &problem))?;
            place.note_asked();
            let conversation = app.converse(&path)?;
            let upgraded = hyper::upgrade::on(&mut request);
            tokio::spawn(socket::carry(upgraded, conversation, Arc::clone(place)));
            return Ok(with_protocol(accepted, request.headers()));
        }
        let method = method_of(&request).ok_or_else(|| refuse(405, "only GET, HEAD, POST and DELETE"))?;
        if !app.is_public(&path) && !self.admits(&request) {
            return Err(refuse(401, "a token is needed: Authorization: Bearer TOKEN"));
        }
        let mut question = Question {
            method,
            path,
            body: Bytes::new(),
            takes_gzip: takes_gzip(request.headers()),
        };
        if method == Method::Post {
            question.body = body_of(request)
                .await
                .map_err(|(status, problem)| refuse(status, &problem))?;
        }
        place.note_asked();
        Err(match app.at_once(&question) {
            Some(answer) => answer,
            None => worked(app, question).await,
        })
    }
}

/// Has a worker answer.
async fn worked(app: &Arc<dyn App>, question: Question) -> Answer {
    let worker = Arc::clone(app);
    let work = tokio::task::spawn_blocking(move || worker.answer(&question));
    match tokio::time::timeout(WORK_TIME, work).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => app.refusal(
            500,
            "the answer failed, which is a mistake of this program; please report it",
        ),
        Err(_) => app.refusal(
            503,
            "the answer takes longer than a minute; ask for less, or again later",
        ),
    }
}

fn method_of(request: &Request<Incoming>) -> Option<Method> {
    match *request.method() {
        hyper::Method::GET | hyper::Method::HEAD => Some(Method::Get),
        hyper::Method::POST => Some(Method::Post),
        hyper::Method::DELETE => Some(Method::Delete),
        _ => None,
    }
}

/// The body of a request, or the status and the sentence that it is refused with.
async fn body_of(request: Request<Incoming>) -> Result<Bytes, (u16, String)> {
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_TIME, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err((413, format!("the body has more than {BODY_BYTES_MAX} bytes; send less")))
        }
        Ok(Err(_)) => Err((400, "the body ended before it was whole; send it again".to_string())),
        Err(_) => Err((408, "the body did not come in time; send it again".to_string())),
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    /// The page of this server, or no page at all.
    Own,
    /// A browser, on behalf of another site: whether that may ask what it is going to.
    Preflight,
    /// The page of another site, which shows the token.
    Trusted,
}

/// Whether a browser asks for leave (Fetch, 4.8).
fn is_preflight(request: &Request<Incoming>) -> bool {
    *request.method() == hyper::Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// What every preflight is answered with, whatever it is about: nothing that is served shows in it.
fn preflight() -> Response<Full<Bytes>> {
    let mut response = respond(Answer::new(204, "text/plain", ""), false, None);
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The value of a field that there may be once: nothing of two, of which nobody knows which one is meant.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str().unwrap_or_default());
    if values.next().is_some() { Some("") } else { first }
}

/// Whether a Host is this server: loopback, or the address it listens on; where that is every one of this machine, any address.
/// A name is none, but for `localhost`: whoever owns it can have it lead anywhere.
fn is_own(host: &str, listens: SocketAddr) -> bool {
    let Ok(authority) = host.parse::<hyper::http::uri::Authority>() else {
        return false;
    };
    if authority.as_str().contains('@') {
        return false;
    }
    let name = authority.host();
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let Ok(ip) = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() else {
        return false;
    };
    let (ip, own) = (ip.to_canonical(), listens.ip().to_canonical());
    ip.is_loopback() || own.is_unspecified() || ip == own
}

/// What a peer sent, short enough for a sentence.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let mut codings = accepted.unwrap_or_default().split(',');
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && parts.all(|part| part != "q=0")
    })
}

/// The protocols that a WebSocket asks for.
fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let fields = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    fields
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(str::trim))
}

/// The token that a WebSocket shows, if it shows one.
fn protocol_token(headers: &HeaderMap) -> Option<Vec<u8>> {
    let shown = protocols(headers).find_map(|protocol| protocol.strip_prefix(TOKEN_PROTOCOL))?;
    URL_SAFE_NO_PAD.decode(shown).ok()
}

/// A browser ends a WebSocket that is not given one of the protocols that it asks for.
fn with_protocol(mut response: Response<Full<Bytes>>, headers: &HeaderMap) -> Response<Full<Bytes>> {
    let mut asked = protocols(headers);
    let first = asked.next();
    let chosen = first
        .filter(|protocol| !protocol.starts_with(TOKEN_PROTOCOL))
        .or_else(|| asked.find(|protocol| !protocol.starts_with(TOKEN_PROTOCOL)))
        .or(first);
    if let Some(value) = chosen.and_then(|protocol| HeaderValue::from_str(protocol).ok()) {
        response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, value);
    }
    response
}

/// What goes with every answer: nothing is loaded from elsewhere, framed, guessed at, or told to others.
const GUARDS: [(HeaderName, &str); 3] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; \
         connect-src 'self'; manifest-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

fn respond(answer: Answer, takes_gzip: bool, known: Option<&HeaderValue>) -> Response<Full<Bytes>> {
    let tag = answer
        .tag
        .as_ref()
        .and_then(|tag| HeaderValue::from_str(&format!("\"{tag}\"")).ok());
    let is_known = answer.status == 200 && tag.is_some() && tag.as_ref() == known;
    let is_compressed = answer.is_compressed || (takes_gzip && answer.body.len() >= COMPRESSED_BYTES_MIN && !is_known);
    let body = match (is_known, is_compressed && !answer.is_compressed) {
        (true, _) => Bytes::new(),
        (false, true) => compressed(&answer.body),
        (false, false) => answer.body,
    };
    let mut response = Response::new(Full::new(body));
    let status = StatusCode::from_u16(answer.status).expect("an app answers with statuses that there are");
    *response.status_mut() = if is_known { StatusCode::NOT_MODIFIED } else { status };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    for (name, value) in GUARDS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let cache = match answer.cache {
        Cache::Never => "no-store",
        Cache::Tagged => "no-cache",
        Cache::Forever => "public, max-age=31536000, immutable",
    };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    if is_compressed && !is_known {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.extend(tag.map(|tag| (ETAG, tag)));
    let file = answer.file_name.map(|name| format!("attachment; filename=\"{name}\""));
    headers.extend(file.and_then(|file| Some((CONTENT_DISPOSITION, HeaderValue::from_str(&file).ok()?))));
    if answer.status == 401 {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if answer.status == 405 {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST, DELETE"));
    }
    response
}

/// Bytes as gzip.
pub fn compressed(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), Compression::fast());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything").into()
}
