//! State shared by the engine of a session and its pages.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::session_spec::SessionSpec;
use crate::state::SessionState;

pub struct SharedSession {
    pub id: String,
    state: Mutex<SessionState>,
    changes: watch::Sender<u64>,
    pages: AtomicUsize,
    requested_at: Mutex<Instant>,
    is_over: AtomicBool,
}

impl SharedSession {
    pub(crate) fn new(id: String, order: SessionSpec) -> SharedSession {
        SharedSession {
            id,
            state: Mutex::new(SessionState::new(order)),
            changes: watch::Sender::new(0),
            pages: AtomicUsize::new(0),
            requested_at: Mutex::new(Instant::now()),
            is_over: AtomicBool::new(false),
        }
    }

    /// Calls `work` with the locked state. The lock is held briefly.
    pub fn with<T>(&self, work: impl FnOnce(&mut SessionState) -> T) -> T {
        // After a failed assertion in the engine, the last state can still be read.
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    pub fn is_watched(&self) -> bool {
        self.pages.load(Ordering::Relaxed) > 0
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Sends a refusal to a page.
    pub fn refuse(&self, page: u64, sentence: impl Into<String>) {
        self.with(|state| state.add_refusal(page, sentence.into()));
        self.changed();
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub fn idle_time(&self) -> Duration {
        self.requested_at.lock().expect("no thread panics with the lock").elapsed()
    }

    pub(crate) fn record_request(&self) {
        *self.requested_at.lock().expect("no thread panics with the lock") = Instant::now();
    }
}

/// Counter of a connected page, released on drop.
pub struct ViewerGuard(Arc<SharedSession>);

impl ViewerGuard {
    pub fn begin(shared: &Arc<SharedSession>) -> ViewerGuard {
        shared.pages.fetch_add(1, Ordering::Relaxed);
        ViewerGuard(Arc::clone(shared))
    }
}

impl Drop for ViewerGuard {
    fn drop(&mut self) {
        let pages = self.0.pages.fetch_sub(1, Ordering::Relaxed);
        assert!(pages > 0, "a page goes once");
        self.0.record_request();
    }
}
