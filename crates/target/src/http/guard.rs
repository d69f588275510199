//! Access control of the HTTP server: checks of Host, Origin and token, limits of bodies, and
//! security headers.
//!
//! ```text
//! head -> check Host and Origin -> public path, or check the token -> routes
//! ```
//!
//! A browser sends requests on behalf of any site. Therefore the Host must be an address of this
//! machine, because any DNS name may be made to point here. The Origin, if present, must match the
//! Host. Other sites may send requests only if a token is configured, for example a notebook whose
//! page comes from another server. Each request from such a site must carry the token, and only
//! then can the site read the answer (CORS). Preflight requests cannot carry the token, and all get
//! the same answer. The server ignores cookies.

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

use super::connections::ConnectionSlot;
use super::socket::{LIVE, TOKEN_PROTOCOL};

/// Time limit for a request's body.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Most bytes of an error text.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// The kind of clients of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Programs. If a token is configured, all paths need it. Errors are text.
    Programs,
    /// Pages in browsers. If a token is configured, all paths below `/api` need it. Errors are
    /// JSON.
    Browsers,
}

impl Audience {
    /// Time limit for a connection without a WebSocket, from its start to the end of the answer.
    pub(super) fn connection_time(self) -> Duration {
        match self {
            Audience::Programs => Duration::from_secs(15),
            Audience::Browsers => Duration::from_secs(90),
        }
    }
}

/// Data for the checks before each answer.
pub(super) struct Guard {
    /// Listening address of the server.
    pub address: SocketAddr,
    pub audience: Audience,
    pub token: Option<String>,
}

/// Passes a request to the routes, or refuses it.
pub(super) async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    if guard.audience == Audience::Programs {
        return guard.answer(request, next).await;
    }
    let mut response = match guard.classify_origin(&request) {
        Ok(RequestOrigin::Own) => guard.answer(request, next).await,
        Ok(RequestOrigin::Trusted) => {
            let mut response = guard.answer(request, next).await;
            // Any site that sends the token may read the answer. Browsers send no cookies with a
            // star.
            let any = HeaderValue::from_static("*");
            response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, any);
            response
        }
        // The same answer for all paths, so that it reveals no information about the routes.
        Ok(RequestOrigin::Preflight) => (StatusCode::NO_CONTENT, PREFLIGHT).into_response(),
        Err(problem) => (StatusCode::FORBIDDEN, problem).into_response(),
    };
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|value| value == "application/json");
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

/// Converts an error into JSON, regardless of its source.
async fn as_json(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let text = axum::body::to_bytes(body, REFUSAL_BYTES_MAX).await.unwrap_or_default();
    let problem = match parts.headers.get(ALLOW).and_then(|methods| methods.to_str().ok()) {
        Some(methods) => format!("the method is not allowed here. Use {}", methods.replace(',', ", ")),
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
            let text = "the request needs a token in the field `Authorization: Bearer TOKEN`. A browser opens the \
                        address that `warp` printed\n";
            return (StatusCode::UNAUTHORIZED, demanded, text).into_response();
        }
        if request.headers().contains_key(SEC_WEBSOCKET_KEY) && !path.ends_with(LIVE) {
            return (StatusCode::NOT_FOUND, "this path has no WebSocket. Use /api/sessions/ID/live").into_response();
        }
        if !matches!(*method, Method::POST | Method::PUT) {
            place_of(&request).note_asked();
        }
        next.run(request).await
    }

    /// Classifies the sender of a request, or returns the reason for a refusal.
    fn classify_origin(&self, request: &Request) -> Result<RequestOrigin, String> {
        let host = only(request.headers(), HOST).unwrap_or_default();
        if !is_own(host, self.address) {
            return Err(format!(
                "the Host field is {:?}, but must be the address of this server. Open http://{}/",
                excerpt(host),
                self.address
            ));
        }
        let Some(origin) = only(request.headers(), ORIGIN) else {
            return Ok(RequestOrigin::Own);
        };
        let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if place.is_some_and(|place| place.eq_ignore_ascii_case(host)) {
            return Ok(RequestOrigin::Own);
        }
        // Without a configured token, `shows_token` is true for every request.
        if self.token.is_some() && !origin.is_empty() {
            if is_preflight(request) {
                return Ok(RequestOrigin::Preflight);
            }
            if self.shows_token(request) {
                return Ok(RequestOrigin::Trusted);
            }
        }
        let remedy = if self.token.is_some() { " or send the token" } else { "" };
        Err(format!("the request comes from another site, {:?}. Open http://{host}/{remedy}", excerpt(origin)))
    }

    /// Returns whether a request carries the token or needs none. The token is in the Authorization
    /// field, or in a subprotocol at the start of a conversation.
    fn shows_token(&self, request: &Request) -> bool {
        let Some(token) = &self.token else { return true };
        // The comparison takes constant time, so that its duration reveals no part of the token.
        let is_token = |given: &[u8]| bool::from(token.as_bytes().ct_eq(given));
        let field = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        field.and_then(|value| value.strip_prefix(b"Bearer ")).is_some_and(is_token)
            || request.uri().path().ends_with(LIVE)
                && protocol_token(request.headers()).is_some_and(|given| is_token(&given))
    }
}

fn place_of(request: &Request) -> Arc<ConnectionSlot> {
    let place = request.extensions().get::<Arc<ConnectionSlot>>();
    Arc::clone(place.expect("a connection gives it to each request"))
}

/// The complete body of a request, received within the time limit.
pub struct RequestBody(pub String);

impl<S: Send + Sync> FromRequest<S> for RequestBody {
    type Rejection = (StatusCode, String);

    async fn from_request(request: Request, state: &S) -> Result<RequestBody, Self::Rejection> {
        let place = place_of(&request);
        let body = tokio::time::timeout(BODY_TIME, String::from_request(request, state)).await;
        let late = "the body did not arrive in time. Send it again";
        let body = body.map_err(|_| (StatusCode::REQUEST_TIMEOUT, late.to_string()))?;
        let refused = body.map_err(|refused| {
            (refused.status(), format!("the body was refused ({}). Send less, in UTF-8\n", refused.body_text()))
        });
        place.note_asked();
        refused.map(RequestBody)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestOrigin {
    /// The page of this server, or a client without an Origin.
    Own,
    /// The preflight of a browser for another site.
    Preflight,
    /// The page of another site, with the token.
    Trusted,
}

/// Returns whether the request is a CORS preflight (Fetch, 4.8).
fn is_preflight(request: &Request) -> bool {
    *request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

const PREFLIGHT: [(HeaderName, &str); 4] = [
    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
    (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type"),
    (ACCESS_CONTROL_MAX_AGE, "600"),
];

/// The value of a field that may occur once. Two values count as an empty one, because their
/// meaning is ambiguous.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str().unwrap_or_default());
    if values.next().is_some() { Some("") } else { first }
}

/// Returns whether a Host names this server: loopback, the listening address, or any address if the
/// server listens on all of them. The only valid name is `localhost`, because the owner of any
/// other name can make it point anywhere.
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

/// Text of a peer, shortened for a message.
fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The token in the subprotocols of a conversation, if any.
fn protocol_token(headers: &HeaderMap) -> Option<Vec<u8>> {
    let fields = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let mut protocols = fields.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let shown = protocols.find_map(|protocol| protocol.trim().strip_prefix(TOKEN_PROTOCOL))?;
    URL_SAFE_NO_PAD.decode(shown).ok()
}

/// Security headers of every answer. They forbid foreign content, framing, content sniffing and
/// referrers.
const GUARDS: [(HeaderName, &str); 3] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; \
         connect-src 'self'; manifest-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];
