//! Connects a page to a session: converts messages of the page to commands, and updates to
//! messages.
//!
//! ```text
//! text -> PageCommand -> engine;   State -> session, refusals, results, latencies (text), frames (binary)
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use target::http::{Conversation, Speech};
use tokio::sync::watch;

use crate::command::{Command, PageCommand};
use crate::session::Session;
use crate::shared::Watching;
use crate::state::{Seen, Telling};

/// Maximum pending refusals. The oldest are dropped.
const REFUSALS_MAX: usize = 16;

/// Connection of a page, described in the module documentation.
pub struct Page {
    id: u64,
    session: Arc<Session>,
    /// Counts the page while it is connected.
    _watching: Watching,
    version: u64,
    lanes: Vec<Seen>,
    /// Index of the next lane to check for updates.
    cursor: usize,
    refusals: VecDeque<String>,
    is_over: bool,
}

impl Page {
    /// Connects a new page to a session.
    pub fn new(session: Arc<Session>) -> Page {
        static PAGES: AtomicU64 = AtomicU64::new(1);
        let watching = Watching::begin(&session.shared);
        // A busy session publishes its state soon anyway.
        let _ = session.tell(Command::Show);
        Page {
            id: PAGES.fetch_add(1, Ordering::Relaxed),
            session,
            _watching: watching,
            version: 0,
            lanes: Vec::new(),
            cursor: 0,
            refusals: VecDeque::new(),
            is_over: false,
        }
    }

    fn refuse(&mut self, sentence: impl Into<String>) {
        if self.refusals.len() == REFUSALS_MAX {
            self.refusals.pop_front();
        }
        self.refusals.push_back(sentence.into());
        self.session.shared.changed();
    }

    /// Session message, if the page does not have the current version.
    fn session_text(&mut self) -> Option<String> {
        let (version, text, lanes) = self.session.shared.with(|state| {
            let is_new = state.version != self.version;
            let text = is_new.then(|| state.session.to_string());
            (
                state.version,
                text,
                state
                    .lanes
                    .iter()
                    .map(|lane| lane.name.clone())
                    .collect::<Vec<String>>(),
            )
        });
        let text = text?;
        self.version = version;
        if self.lanes.len() != lanes.len() || self.lanes.iter().zip(&lanes).any(|(seen, name)| seen.name() != name) {
            // Indices of lanes changed, so all lanes are sent again.
            self.lanes = lanes.iter().map(|name| Seen::new(name)).collect();
        }
        self.cursor = 0;
        Some(text)
    }

    /// Next update of the lanes, one message at a time.
    fn lane_speech(&mut self) -> Option<Speech> {
        while self.cursor < self.lanes.len() {
            let (index, seen) = (self.cursor, &mut self.lanes[self.cursor]);
            let found = self.session.shared.with(|state| {
                let lane = state.lanes.get(index).filter(|lane| lane.name == seen.name())?;
                seen.next(index, lane)
            });
            match found {
                Some(Telling::Frame(news)) => return Some(Speech::Binary(seen.frame(&news, index as u8))),
                Some(Telling::Text(text)) => return Some(Speech::Text(text)),
                None => self.cursor += 1,
            }
        }
        self.cursor = 0;
        None
    }
}

impl Conversation for Page {
    fn hear(&mut self, text: &str) {
        let command = serde_json::from_str::<PageCommand>(text).map_err(|error| format!("command: {error}"));
        let told = command.and_then(|command| {
            let told = self.session.tell(Command::Page(self.id, command));
            told.map_err(str::to_string)
        });
        if let Err(sentence) = told {
            self.refuse(sentence);
        }
    }

    fn speak(&mut self) -> Option<Speech> {
        if self.is_over {
            return None;
        }
        if let Some(text) = self.session_text() {
            return Some(Speech::Text(text));
        }
        let refusal = self
            .refusals
            .pop_front()
            .or_else(|| self.session.shared.with(|state| state.take_refusal(self.id)));
        if let Some(message) = refusal {
            return Some(Speech::Text(json!({ "type": "error", "message": message }).to_string()));
        }
        if let Some(speech) = self.lane_speech() {
            return Some(speech);
        }
        if self.session.shared.is_over() {
            self.is_over = true;
            return Some(Speech::End("the session has ended".to_string()));
        }
        None
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.session.shared.changes()
    }
}
