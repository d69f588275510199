//! Connects a page to a session: converts messages of the page to commands, and updates to
//! messages.
//!
//! ```text
//! text -> PageCommand -> SessionEngine
//! SessionState -> session, refusals, results, latencies (text), frames (binary)
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use target::http::{SocketMessage, WebSocketHandler};
use tokio::sync::watch;

use crate::command::{EngineCommand, PageCommand};
use crate::session::StudioSession;
use crate::shared_session::ViewerGuard;
use crate::state::{LaneUpdate, ViewerCursor};

pub struct PageConnection {
    id: u64,
    session: Arc<StudioSession>,
    /// Counts the page while it is connected.
    _watching: ViewerGuard,
    version: u64,
    lanes: Vec<ViewerCursor>,
    /// Index of the next lane to check for updates.
    cursor: usize,
    is_over: bool,
}

impl PageConnection {
    pub fn new(session: Arc<StudioSession>) -> PageConnection {
        static PAGES: AtomicU64 = AtomicU64::new(1);
        let watching = ViewerGuard::begin(&session.shared);
        // A busy session publishes its state soon anyway.
        let _ = session.send(EngineCommand::Show);
        PageConnection {
            id: PAGES.fetch_add(1, Ordering::Relaxed),
            session,
            _watching: watching,
            version: 0,
            lanes: Vec::new(),
            cursor: 0,
            is_over: false,
        }
    }

    /// Session message, if the page does not have the current version.
    fn session_text(&mut self) -> Option<String> {
        let (version, text, lanes) = self.session.shared.with(|state| {
            let is_new = state.version != self.version;
            let text = is_new.then(|| state.session.to_string());
            (state.version, text, state.lanes.iter().map(|lane| lane.name.clone()).collect::<Vec<String>>())
        });
        let text = text?;
        self.version = version;
        if self.lanes.len() != lanes.len() || self.lanes.iter().zip(&lanes).any(|(viewer, name)| viewer.name != *name) {
            // Indices of lanes changed, so all lanes are sent again.
            self.lanes = lanes.iter().map(|name| ViewerCursor::new(name)).collect();
        }
        self.cursor = 0;
        Some(text)
    }

    /// Next update of the lanes, one message at a time.
    fn next_lane_message(&mut self) -> Option<SocketMessage> {
        while self.cursor < self.lanes.len() {
            let (index, viewer) = (self.cursor, &mut self.lanes[self.cursor]);
            let update = self.session.shared.with(|state| {
                let lane = state.lanes.get(index).filter(|lane| lane.name == viewer.name)?;
                viewer.next(index, lane)
            });
            match update {
                Some(LaneUpdate::Frame(update)) => {
                    return Some(SocketMessage::Binary(viewer.frame(&update, index as u8)));
                }
                Some(LaneUpdate::Text(text)) => return Some(SocketMessage::Text(text)),
                None => self.cursor += 1,
            }
        }
        self.cursor = 0;
        None
    }
}

impl WebSocketHandler for PageConnection {
    fn on_message(&mut self, text: &str) {
        let command = serde_json::from_str::<PageCommand>(text)
            .map_err(|error| format!("command: {}", base::hinted(&error.to_string())));
        let sent = command.and_then(|command| {
            let sent = self.session.send(EngineCommand::Page(self.id, command));
            sent.map_err(str::to_string)
        });
        if let Err(sentence) = sent {
            self.session.shared.refuse(self.id, sentence);
        }
    }

    fn poll_message(&mut self) -> Option<SocketMessage> {
        if self.is_over {
            return None;
        }
        if let Some(text) = self.session_text() {
            return Some(SocketMessage::Text(text));
        }
        if let Some(message) = self.session.shared.with(|state| state.take_refusal(self.id)) {
            return Some(SocketMessage::Text(
                json!({ "type": "error", "message": base::with_short_numbers(&message) }).to_string(),
            ));
        }
        if let Some(message) = self.next_lane_message() {
            return Some(message);
        }
        if self.session.shared.is_over() {
            self.is_over = true;
            return Some(SocketMessage::End("the session has ended".to_string()));
        }
        None
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.session.shared.changes()
    }
}
