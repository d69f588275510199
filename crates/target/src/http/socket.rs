//! WebSockets: a conversation with a page, in which neither side can hold the other up.
//!
//! ```text
//! page -> text, so many a second -> Conversation::hear
//! Conversation::changes -> speak, so many times a second -> page, in time
//! nothing heard for a while -> ping -> nothing heard for longer -> closed
//! ```
//!
//! Nothing is queued: a message is made when the one before has been sent, so who reads slowly gets what is new then, and who does
//! not read at all is left. Binary messages of a page mean nothing and end the conversation.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::Place;

/// Bytes of a message of the page, in however many fragments.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Messages of the page that are taken in a second; those beyond wait in its own socket.
pub const COMMANDS_A_SECOND: u32 = 60;
/// How often in a second a conversation is asked what there is to say.
pub const SPEECHES_A_SECOND: u32 = 30;
/// Bytes of the largest message to the page.
const SPEECH_BYTES_MAX: usize = 64 << 20;
/// Time for a message to the page.
const SPEECH_TIME: Duration = Duration::from_secs(10);
/// Time for the page to close the connection after it was told why it ends.
const FAREWELL_TIME: Duration = Duration::from_secs(1);
/// Silence after which the page is asked whether it is there.
const PING_AFTER: Duration = Duration::from_secs(15);
/// Silence after which it is not.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// Something to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speech {
    /// Text, JSON mostly.
    Text(String),
    /// Bytes.
    Binary(Bytes),
    /// The conversation is over, and why.
    End(String),
}

/// The app's side of a WebSocket. It is called on the server's thread and must not wait.
pub trait Conversation: Send + 'static {
    /// Takes what the page says.
    fn hear(&mut self, text: &str);

    /// What to say now; `None` if there is nothing more until something changes.
    fn speak(&mut self) -> Option<Speech>;

    /// Changes when there may be something to say.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// Whether a request asks for a WebSocket.
pub(super) fn is_upgrade(request: &Request<Incoming>) -> bool {
    has_token(request, UPGRADE, "websocket")
}

/// Whether a field lists a token (RFC 9110, 5.6.2), whatever the case.
fn has_token(request: &Request<Incoming>, name: HeaderName, token: &str) -> bool {
    let values = request
        .headers()
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut tokens = values.flat_map(|value| value.split(','));
    tokens.any(|listed| listed.trim().eq_ignore_ascii_case(token))
}

/// The response that begins a WebSocket (RFC 6455, 4.2.2).
pub(super) fn accept(request: &Request<Incoming>) -> Result<Response<Full<Bytes>>, String> {
    let is_right = request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && has_token(request, CONNECTION, "upgrade")
        && has_token(request, SEC_WEBSOCKET_VERSION, "13");
    let key = request.headers().get(SEC_WEBSOCKET_KEY).filter(|_| is_right);
    let key = key.ok_or("this is no beginning of a WebSocket; it is a GET of HTTP/1.1 with version 13 and a key")?;
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, "websocket".parse().expect("it is a value"));
    headers.insert(CONNECTION, "upgrade".parse().expect("it is a value"));
    let accepted = derive_accept_key(key.as_bytes());
    headers.insert(SEC_WEBSOCKET_ACCEPT, accepted.parse().expect("it is a value"));
    Ok(response)
}

/// Carries a conversation from its beginning to its end. The place is given back afterwards.
pub(super) async fn carry(upgraded: OnUpgrade, conversation: Box<dyn Conversation>, place: Arc<Place>) {
    if let Ok(upgraded) = upgraded.await {
        // What a page sends while it is written to is read afterwards, a little at a time.
        let mut config = WebSocketConfig::default();
        config.read_buffer_size = 4 << 10;
        config.write_buffer_size = 0;
        config.max_write_buffer_size = SPEECH_BYTES_MAX;
        config.max_message_size = Some(MESSAGE_BYTES_MAX);
        config.max_frame_size = Some(MESSAGE_BYTES_MAX);
        let stream = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
        // However it ends is the page's business.
        let _ = (Carrier { stream, conversation }).run().await;
    }
    drop(place);
}

struct Carrier {
    stream: WebSocketStream<TokioIo<Upgraded>>,
    conversation: Box<dyn Conversation>,
}

/// The conversation is over.
struct Over;

impl Carrier {
    async fn run(&mut self) -> Result<(), Over> {
        let mut changes = self.conversation.changes();
        let (mut hears_from, mut speaks_from) = (Instant::now(), Instant::now());
        let mut heard_at = Instant::now();
        let mut pinged = false;
        self.speak().await?;
        loop {
            let quiet_until = heard_at + if pinged { SILENCE_MAX } else { PING_AFTER };
            tokio::select! {
                message = next_from(&mut self.stream, hears_from) => {
                    heard_at = Instant::now();
                    pinged = false;
                    hears_from = heard_at + Duration::from_secs(1) / COMMANDS_A_SECOND;
                    self.hear(message).await?;
                }
                changed = change_from(&mut changes, speaks_from) => {
                    changed?;
                    speaks_from = Instant::now() + Duration::from_secs(1) / SPEECHES_A_SECOND;
                    self.speak().await?;
                }
                () = sleep_until(quiet_until) => {
                    if pinged {
                        return Err(Over);
                    }
                    pinged = true;
                    self.send(Message::Ping(Bytes::new())).await?;
                }
            }
        }
    }

    async fn hear(&mut self, message: Option<Result<Message, Error>>) -> Result<(), Over> {
        match message {
            Some(Ok(Message::Text(text))) => self.conversation.hear(&text),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Binary(_))) => {
                return self
                    .end(CloseCode::Unsupported, "a page says what it wants as text")
                    .await;
            }
            Some(Err(Error::Capacity(_))) => {
                let reason = format!("a message has at most {MESSAGE_BYTES_MAX} bytes");
                return self.end(CloseCode::Size, &reason).await;
            }
            // Closed, broken, or no WebSocket at all.
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(Over),
        }
        Ok(())
    }

    /// Says all that there is to say now.
    async fn speak(&mut self) -> Result<(), Over> {
        while let Some(speech) = self.conversation.speak() {
            match speech {
                Speech::Text(text) => self.send(Message::text(text)).await?,
                Speech::Binary(bytes) => self.send(Message::Binary(bytes)).await?,
                Speech::End(reason) => return self.end(CloseCode::Away, &reason).await,
            }
        }
        Ok(())
    }

    async fn send(&mut self, message: Message) -> Result<(), Over> {
        let sent = timeout(SPEECH_TIME, self.stream.send(message)).await;
        sent.map_err(|_| Over)?.map_err(|_| Over)
    }

    /// Ends it, with a reason of at most 123 bytes (RFC 6455, 5.5).
    async fn end(&mut self, code: CloseCode, reason: &str) -> Result<(), Over> {
        let mut reason = reason.to_string();
        while reason.len() > 123 {
            reason.pop();
        }
        let frame = CloseFrame {
            code,
            reason: reason.into(),
        };
        let _ = timeout(SPEECH_TIME, self.stream.close(Some(frame))).await;
        let _ = timeout(FAREWELL_TIME, self.read_away()).await;
        Err(Over)
    }

    /// Reads what the page still sends, until it closes: a connection that is closed with something unread is reset by the system, and
    /// the page may never see the reason.
    async fn read_away(&mut self) {
        let stream = self.stream.get_mut();
        let mut part = [0; 4 << 10];
        while stream.read(&mut part).await.is_ok_and(|bytes| bytes > 0) {}
    }
}

/// The next message, from a time on.
async fn next_from(stream: &mut WebSocketStream<TokioIo<Upgraded>>, from: Instant) -> Option<Result<Message, Error>> {
    sleep_until(from).await;
    stream.next().await
}

/// The next change, from a time on.
async fn change_from(changes: &mut watch::Receiver<u64>, from: Instant) -> Result<(), Over> {
    sleep_until(from).await;
    changes.changed().await.map_err(|_| Over)
}
