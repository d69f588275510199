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

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::extract::ws::{
    CloseCode, CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code, rejection::WebSocketUpgradeRejection,
};
use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::response::Response;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::connections::Place;

/// How the path of a conversation ends.
pub(super) const LIVE: &str = "/live";
/// How a page shows the token there: as a protocol that it asks for, since it can set no other field.
pub(super) const TOKEN_PROTOCOL: &str = "warp.token.";
/// Bytes of a message of the page, in however many fragments. A fragment of up to twice as many is read, so that the page is told why
/// the conversation ends.
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

/// A request that begins a conversation.
pub struct Upgrade {
    upgrade: WebSocketUpgrade,
    place: Arc<Place>,
}

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = WebSocketUpgradeRejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Upgrade, Self::Rejection> {
        let mut upgrade = WebSocketUpgrade::from_request_parts(parts, state).await?;
        // A browser ends a WebSocket that is not given one of the protocols that it asks for.
        let is_other = |protocol: &&HeaderValue| !protocol.as_bytes().starts_with(TOKEN_PROTOCOL.as_bytes());
        if let Some(protocol) = upgrade.requested_protocols().max_by_key(is_other).cloned() {
            upgrade.set_selected_protocol(protocol);
        }
        let place = parts.extensions.get().cloned();
        let place = place.expect("a connection gives it to each request");
        Ok(Upgrade { upgrade, place })
    }
}

impl Upgrade {
    /// The response that begins the conversation, which keeps the place of the connection.
    pub fn begin(self, conversation: impl Conversation) -> Response {
        let Upgrade { upgrade, place } = self;
        // What a page sends while it is written to is read afterwards, a little at a time.
        let upgrade = upgrade
            .read_buffer_size(4 << 10)
            .write_buffer_size(0)
            .max_write_buffer_size(SPEECH_BYTES_MAX)
            .max_message_size(MESSAGE_BYTES_MAX)
            .max_frame_size(2 * MESSAGE_BYTES_MAX);
        upgrade.on_upgrade(async move |socket| {
            let conversation = Box::new(conversation);
            // However it ends is the page's business.
            let _ = (Carrier { socket, conversation }).run().await;
            drop(place);
        })
    }
}

struct Carrier {
    socket: WebSocket,
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
                message = next_from(&mut self.socket, hears_from) => {
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

    async fn hear(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<(), Over> {
        match message {
            Some(Ok(Message::Text(text))) => {
                self.conversation.hear(&text);
                Ok(())
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
            Some(Ok(Message::Binary(_))) => {
                self.end(close_code::UNSUPPORTED, "a page says what it wants as text")
                    .await
            }
            // Too long, mostly. The library says no more after it.
            Some(Err(_)) => {
                let reason = format!("a message is text of at most {MESSAGE_BYTES_MAX} bytes");
                self.end(close_code::SIZE, &reason).await
            }
            Some(Ok(Message::Close(_))) | None => Err(Over),
        }
    }

    /// Says all that there is to say now.
    async fn speak(&mut self) -> Result<(), Over> {
        while let Some(speech) = self.conversation.speak() {
            match speech {
                Speech::Text(text) => self.send(Message::text(text)).await?,
                Speech::Binary(bytes) => self.send(Message::Binary(bytes)).await?,
                Speech::End(reason) => return self.end(close_code::AWAY, &reason).await,
            }
        }
        Ok(())
    }

    async fn send(&mut self, message: Message) -> Result<(), Over> {
        let sent = timeout(SPEECH_TIME, self.socket.send(message)).await;
        sent.map_err(|_| Over)?.map_err(|_| Over)
    }

    /// Ends it, with a reason of at most 123 bytes (RFC 6455, 5.5).
    async fn end(&mut self, code: CloseCode, reason: &str) -> Result<(), Over> {
        let mut reason = reason.to_string();
        while reason.len() > 123 {
            reason.pop();
        }
        let reason = reason.into();
        self.send(Message::Close(Some(CloseFrame { code, reason }))).await?;
        // What the page still sends is read until it closes: a connection that is closed with something unread is reset by the system,
        // and the page may never see the reason.
        let read_away = async { while let Some(Ok(_)) = self.socket.recv().await {} };
        let _ = timeout(FAREWELL_TIME, read_away).await;
        Err(Over)
    }
}

/// The next message, from a time on.
async fn next_from(socket: &mut WebSocket, from: Instant) -> Option<Result<Message, axum::Error>> {
    sleep_until(from).await;
    socket.recv().await
}

/// The next change, from a time on.
async fn change_from(changes: &mut watch::Receiver<u64>, from: Instant) -> Result<(), Over> {
    sleep_until(from).await;
    changes.changed().await.map_err(|_| Over)
}
