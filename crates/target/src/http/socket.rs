//! WebSockets: conversations with a page, in which neither side can block the other.
//!
//! ```text
//! page -> text, limited per second -> WebSocketHandler::on_message
//! WebSocketHandler::changes -> poll_message, limited per second -> page, with a time limit
//! silence -> ping -> longer silence -> closed
//! ```
//!
//! The server queues no messages. It creates each message after the previous one was sent, so a
//! slow reader skips to the newest state. A page that does not read at all is disconnected. A
//! binary message from the page ends the conversation.

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

use super::connections::ConnectionSlot;

/// Last part of the path of a conversation.
pub(super) const LIVE: &str = "/live";
/// Prefix of the requested subprotocol that carries the token, because a page can set no header
/// field here.
pub(super) const TOKEN_PROTOCOL: &str = "warp.token.";
/// Most bytes of a message from the page, over all fragments. Fragments of up to twice the size are
/// read, so that the page learns the reason for the end.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Messages accepted from the page per second. More messages wait in the page's socket.
pub const COMMANDS_A_SECOND: u32 = 60;
/// Most calls of [`WebSocketHandler::poll_message`] per second.
pub const SPEECHES_A_SECOND: u32 = 30;
/// Most bytes of a message to the page.
const SPEECH_BYTES_MAX: usize = 64 << 20;
/// Time limit for sending a message to the page.
const SPEECH_TIME: Duration = Duration::from_secs(10);
/// Time for the page to close the connection after it received the reason.
const FAREWELL_TIME: Duration = Duration::from_secs(1);
/// Silence after which the server sends a ping.
const PING_AFTER: Duration = Duration::from_secs(15);
/// Silence after which the conversation ends.
const SILENCE_MAX: Duration = Duration::from_secs(45);
const _: () =
    assert!(PING_AFTER.as_secs() < SILENCE_MAX.as_secs(), "a page can answer a ping before the conversation ends");

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketMessage {
    /// Text, usually JSON.
    Text(String),
    Binary(Bytes),
    /// End of the conversation, with its reason.
    End(String),
}

/// The application's side of a WebSocket. Its methods run on the server's thread and must not wait.
pub trait WebSocketHandler: Send + 'static {
    fn on_message(&mut self, text: &str);

    /// The next message to the page, or `None` until the state changes.
    fn poll_message(&mut self) -> Option<SocketMessage>;

    /// A value that changes when a message may be available.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// A request that begins a conversation.
pub struct WebSocketRequest {
    upgrade: WebSocketUpgrade,
    place: Arc<ConnectionSlot>,
}

impl<S: Send + Sync> FromRequestParts<S> for WebSocketRequest {
    type Rejection = WebSocketUpgradeRejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<WebSocketRequest, Self::Rejection> {
        let mut upgrade = WebSocketUpgrade::from_request_parts(parts, state).await?;
        // A browser closes a WebSocket whose server selects none of the requested protocols.
        let is_other = |protocol: &&HeaderValue| !protocol.as_bytes().starts_with(TOKEN_PROTOCOL.as_bytes());
        if let Some(protocol) = upgrade.requested_protocols().max_by_key(is_other).cloned() {
            upgrade.set_selected_protocol(protocol);
        }
        let place = parts.extensions.get().cloned();
        let place = place.expect("a connection gives it to each request");
        Ok(WebSocketRequest { upgrade, place })
    }
}

impl WebSocketRequest {
    /// The response that begins the conversation, which keeps the connection's place.
    pub fn begin(self, conversation: impl WebSocketHandler) -> Response {
        let WebSocketRequest { upgrade, place } = self;
        // The server reads messages of the page only after a write, in small pieces.
        let upgrade = upgrade
            .read_buffer_size(4 << 10)
            .write_buffer_size(0)
            .max_write_buffer_size(SPEECH_BYTES_MAX)
            .max_message_size(MESSAGE_BYTES_MAX)
            .max_frame_size(2 * MESSAGE_BYTES_MAX);
        upgrade.on_upgrade(async move |socket| {
            let conversation = Box::new(conversation);
            // All ways to end a conversation are equivalent for the server.
            let _ = (SocketDriver { socket, conversation }).run().await;
            drop(place);
        })
    }
}

struct SocketDriver {
    socket: WebSocket,
    conversation: Box<dyn WebSocketHandler>,
}

struct ConversationEnd;

impl SocketDriver {
    async fn run(&mut self) -> Result<(), ConversationEnd> {
        let mut changes = self.conversation.changes();
        let (mut hears_from, mut speaks_from) = (Instant::now(), Instant::now());
        let mut heard_at = Instant::now();
        let mut pinged = false;
        self.send_messages().await?;
        loop {
            let quiet_until = heard_at + if pinged { SILENCE_MAX } else { PING_AFTER };
            tokio::select! {
                message = next_from(&mut self.socket, hears_from) => {
                    heard_at = Instant::now();
                    pinged = false;
                    hears_from = heard_at + Duration::from_secs(1) / COMMANDS_A_SECOND;
                    self.handle_message(message).await?;
                }
                changed = change_from(&mut changes, speaks_from) => {
                    changed?;
                    speaks_from = Instant::now() + Duration::from_secs(1) / SPEECHES_A_SECOND;
                    self.send_messages().await?;
                }
                () = sleep_until(quiet_until) => {
                    if pinged {
                        return Err(ConversationEnd);
                    }
                    pinged = true;
                    self.send(Message::Ping(Bytes::new())).await?;
                }
            }
        }
    }

    async fn handle_message(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<(), ConversationEnd> {
        match message {
            Some(Ok(Message::Text(text))) => {
                self.conversation.on_message(&text);
                Ok(())
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
            Some(Ok(Message::Binary(_))) => self.end(close_code::UNSUPPORTED, "messages must be text").await,
            // The usual cause is a message that is too long. The library reports no details
            // afterwards.
            Some(Err(_)) => {
                let reason = format!("messages must be text of at most {MESSAGE_BYTES_MAX} bytes");
                self.end(close_code::SIZE, &reason).await
            }
            Some(Ok(Message::Close(_))) | None => Err(ConversationEnd),
        }
    }

    async fn send_messages(&mut self) -> Result<(), ConversationEnd> {
        while let Some(speech) = self.conversation.poll_message() {
            match speech {
                SocketMessage::Text(text) => self.send(Message::text(text)).await?,
                SocketMessage::Binary(bytes) => self.send(Message::Binary(bytes)).await?,
                SocketMessage::End(reason) => return self.end(close_code::AWAY, &reason).await,
            }
        }
        Ok(())
    }

    async fn send(&mut self, message: Message) -> Result<(), ConversationEnd> {
        let sent = timeout(SPEECH_TIME, self.socket.send(message)).await;
        sent.map_err(|_| ConversationEnd)?.map_err(|_| ConversationEnd)
    }

    /// Ends the conversation with a reason of at most 123 bytes (RFC 6455, 5.5).
    async fn end(&mut self, code: CloseCode, reason: &str) -> Result<(), ConversationEnd> {
        let mut reason = reason.to_string();
        while reason.len() > 123 {
            reason.pop();
        }
        let reason = reason.into();
        self.send(Message::Close(Some(CloseFrame { code, reason }))).await?;
        // Reads until the page closes the connection. A close with unread input would make the
        // system reset the connection, and the page might not see the reason.
        let read_away = async { while let Some(Ok(_)) = self.socket.recv().await {} };
        let _ = timeout(FAREWELL_TIME, read_away).await;
        Err(ConversationEnd)
    }
}

/// The next message, received no earlier than `from`.
async fn next_from(socket: &mut WebSocket, from: Instant) -> Option<Result<Message, axum::Error>> {
    sleep_until(from).await;
    socket.recv().await
}

/// The next change, reported no earlier than `from`.
async fn change_from(changes: &mut watch::Receiver<u64>, from: Instant) -> Result<(), ConversationEnd> {
    sleep_until(from).await;
    changes.changed().await.map_err(|_| ConversationEnd)
}
