//! State that the engine of a session and its pages share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::order::Order;
use crate::state::State;

/// What engine and pages share.
pub struct Shared {
    /// The session's name.
    pub id: String,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
    pages: AtomicUsize,
    seen_at: Mutex<Instant>,
    is_over: AtomicBool,
}

impl Shared {
    pub(crate) fn new(id: String, order: Order) -> Shared {
        Shared {
            id,
            state: Mutex::new(State::new(order)),
            changes: watch::Sender::new(0),
            pages: AtomicUsize::new(0),
            seen_at: Mutex::new(Instant::now()),
            is_over: AtomicBool::new(false),
        }
    }

    /// Works on the state, without waiting for anybody.
    pub fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        // An engine whose assert fails has its session end; what it showed last can still be read.
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has pages look.
    pub fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Whether a page is there.
    pub fn is_watched(&self) -> bool {
        self.pages.load(Ordering::Relaxed) > 0
    }

    /// Whether the session is over.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// When there may be something new.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The session is over from now on.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Time since somebody asked for it.
    pub fn unseen_for(&self) -> Duration {
        self.seen_at.lock().expect("nobody panics with it").elapsed()
    }

    /// Somebody has asked for it.
    pub(crate) fn see(&self) {
        *self.seen_at.lock().expect("nobody panics with it") = Instant::now();
    }
}

/// A page that looks at a session, for as long as it does.
pub struct Watching(Arc<Shared>);

impl Watching {
    /// Counts a page until this is dropped.
    pub fn begin(shared: &Arc<Shared>) -> Watching {
        shared.pages.fetch_add(1, Ordering::Relaxed);
        Watching(Arc::clone(shared))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let pages = self.0.pages.fetch_sub(1, Ordering::Relaxed);
        assert!(pages > 0, "a page goes once");
        self.0.see();
    }
}
