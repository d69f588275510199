//! Who is answered, how much of a request is read, and what goes with every answer to a browser.
//!
//! ```text
//! head -> is it from where it may be (Host, Origin)? -> is it public, or does it show the token? -> routes
//! ```
//!
//! A browser sends what any site tells it to: so the Host must be this machine by its address (a name that somebody had
//! lead here is no name of it), and the Origin, where there is one, the same place. Only where there is a token may another
//! site ask (a notebook, whose page comes from its own server): each of its questions shows the token, so it was given it, and
//! only then it may read the answer (CORS). Its preflights, which can show none, are all answered alike. No cookie means anything.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_METHOD, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Json, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use subtle::ConstantTimeEq;

use super::connections::Place;
use super::socket::{LIVE, TOKEN_PROTOCOL};

/// Time for a request's body.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Bytes of the sentence of a refusal.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// Whom a server is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Programs: where there is a token, all of it is for those who show it. Refusals are text.
    Programs,
    /// Pages in browsers: where there is a token, all below `/api` is for those who show it. Refusals are JSON.
    Browsers,
}

impl Audience {
    /// Time for a connection that is no WebSocket, from its beginning to the end of the answer.
    pub(super) fn connection_time(self) -> Duration {
        match self {
            Audience::Programs => Duration::from_secs(15),
            Audience::Browsers => Duration::from_secs(90),
        }
    }
}

/// What is looked at before anything is answered.
pub(super) struct Guard {
    /// Where the server listens.
    pub address: SocketAddr,
    pub audience: Audience,
    pub token: Option<String>,
}

/// Lets a request through to the routes, or refuses it.
pub(super) async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    if guard.audience == Audience::Programs {
        return guard.answer(request, next).await;
    }
    let mut response = match guard.asker(&request) {
        Ok(Asker::Own) => guard.answer(request, next).await,
        Ok(Asker::Trusted) => {
            let mut response = guard.answer(request, next).await;
            // Any site that shows the token; with a star browsers send no cookies along.
            let any = HeaderValue::from_static("*");
            response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, any);
            response
        }
        // Whatever it is about: nothing that is served shows in it.
        Ok(Asker::Preflight) => (StatusCode::NO_CONTENT, PREFLIGHT).into_response(),
        Err(problem) => (StatusCode::FORBIDDEN, problem).into_response(),
    };
    let is_json = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|value| value == "application/json");
    if response.status().as_u16() >= 400 && !is_json {
        response = as_json(response).await;
    }
    for (name, value) in GUARDS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    let cache = response.headers_mut().entry(CACHE_CONTROL);
    cache.or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A refusal as JSON, whoever made it.
async fn as_json(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let text = axum::body::to_bytes(body, REFUSAL_BYTES_MAX).await.unwrap_or_default();
    let problem = match parts.headers.get(ALLOW).and_then(|methods| methods.to_str().ok()) {
        Some(methods) => format!("only {}", methods.replace(',', ", ")),
        None => String::from_utf8_lossy(&text).trim_end().to_string(),
    };
    let (json, body) = Json(json!({ "error": problem })).into_response().into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.extend(json.headers);
    Response::from_parts(parts, body)
}

impl Guard {
    async fn answer(&self, request: Request, next: Next) -> Response {
        let (path, method) = (request.uri().path(), request.method());
        let is_page = self.audience == Audience::Browsers;
        if is_page && ![Method::GET, Method::HEAD, Method::POST, Method::DELETE].contains(method) {
            let methods = [(ALLOW, "GET,HEAD,POST,DELETE")];
            return (StatusCode::METHOD_NOT_ALLOWED, methods).into_response();
        }
        let is_public = is_page && path != "/api" && !path.starts_with("/api/");
        if !is_public && !self.shows_token(&request) {
            let demanded = [(WWW_AUTHENTICATE, "Bearer")];
            let text = "a token is needed: Authorization: Bearer TOKEN; a page is at the address that `warp` printed\n";
            return (StatusCode::UNAUTHORIZED, demanded, text).into_response();
        }
        if request.headers().contains_key(SEC_WEBSOCKET_KEY) && !path.ends_with(LIVE) {
            return (
                StatusCode::NOT_FOUND,
                "nobody talks here; a session does at /api/sessions/ID/live",
            )
                .into_response();
        }
        if !matches!(*method, Method::POST | Method::PUT) {
            place_of(&request).note_asked();
        }
        next.run(request).await
    }

    /// Who asks; or why nobody answers.
    fn asker(&self, request: &Request) -> Result<Asker, String> {
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

    /// Whether a request shows the token, if one is needed: in its field, or as a protocol where it begins a conversation.
    fn shows_token(&self, request: &Request) -> bool {
        let Some(token) = &self.token else { return true };
        // How long it takes does not say how much of it is right.
        let is_token = |given: &[u8]| bool::from(token.as_bytes().ct_eq(given));
        let field = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        field
            .and_then(|value| value.strip_prefix(b"Bearer "))
            .is_some_and(is_token)
            || request.uri().path().ends_with(LIVE)
                && protocol_token(request.headers()).is_some_and(|given| is_token(&given))
    }
}

/// The place that a request has.
fn place_of(request: &Request) -> Arc<Place> {
    let place = request.extensions().get::<Arc<Place>>();
    Arc::clone(place.expect("a connection gives it to each request"))
}

/// The body of a request, whole and in time.
pub struct Body(pub String);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = (StatusCode, String);

    async fn from_request(request: Request, state: &S) -> Result<Body, Self::Rejection> {
        let place = place_of(&request);
        let body = tokio::time::timeout(BODY_TIME, String::from_request(request, state)).await;
        let late = "the body did not come in time; send it again";
        let body = body.map_err(|_| (StatusCode::REQUEST_TIMEOUT, late.to_string()))?;
        let refused = body.map_err(|refused| {
            (
                refused.status(),
                format!("{}; send less, in UTF-8\n", refused.body_text()),
            )
        });
        place.note_asked();
        refused.map(Body)
    }
}

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
fn is_preflight(request: &Request) -> bool {
    *request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// What every preflight is answered with.
const PREFLIGHT: [(HeaderName, &str); 4] = [
    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
    (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type"),
    (ACCESS_CONTROL_MAX_AGE, "600"),
];

/// The value of a field that there may be once: nothing of two, of which nobody knows which one is meant.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str().unwrap_or_default());
    if values.next().is_some() { Some("") } else { first }
}

/// Whether a Host is this server: loopback, or the address it listens on; where that is every one of this machine, any address.
/// A name is none, but for `localhost`: whoever owns it can have it lead anywhere.
fn is_own(host: &str, listens: SocketAddr) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
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

/// The token that a conversation shows, if it shows one.
fn protocol_token(headers: &HeaderMap) -> Option<Vec<u8>> {
    let fields = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let mut protocols = fields
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let shown = protocols.find_map(|protocol| protocol.trim().strip_prefix(TOKEN_PROTOCOL))?;
    URL_SAFE_NO_PAD.decode(shown).ok()
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
