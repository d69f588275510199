//! From whole event logs, read again and again, to the events that are new.
//!
//! A drive's log is a window on everything that happened: reading it does not empty it, and a new event drops the oldest
//! one when it is full. What is new is what comes after the longest piece that the last reading and this one share.

use serde::Serialize;

/// A Media Reallocated event, as far as a host needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// The drive's time of it; only compared.
    pub timestamp: u64,
    /// Placement identifier of the reclaim unit that was collected; none if collection had mixed its data with others' before.
    pub placement: Option<u16>,
    /// Bytes that were moved, as far as the event says.
    pub moved_bytes: Option<u64>,
    /// One of the moved bytes, from the beginning of the namespace.
    pub offset_bytes: Option<u64>,
}

/// Whether events were missed between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    None,
    /// The log shares nothing with its last reading: it has wrapped, and events between the two are lost. Read more often.
    Wrapped,
    /// The log is shorter than before: it was cleared (a reset, another FDP configuration).
    Cleared,
}

/// What a reading brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreshEvents<E = Event> {
    /// New events, oldest first.
    pub events: Vec<E>,
    /// Whether some were missed.
    pub loss: Loss,
}

/// The last reading of a log. Of a log that others' events are in too it has to be given all of them, because those that
/// matter may be pushed out by the others.
#[derive(Clone, Debug)]
pub struct Feed<E = Event> {
    last: Vec<E>,
}

impl<E> Default for Feed<E> {
    fn default() -> Feed<E> {
        Feed { last: Vec::new() }
    }
}

impl<E: Clone + PartialEq> Feed<E> {
    /// Takes the whole log, oldest event first.
    pub fn take(&mut self, log: Vec<E>) -> FreshEvents<E> {
        // Longest first: a log whose events are all alike must not be taken for new.
        let shared = (1..=self.last.len().min(log.len()))
            .rev()
            .find(|&count| self.last[self.last.len() - count..] == log[..count]);
        let loss = match shared {
            Some(_) => Loss::None,
            None if self.last.is_empty() => Loss::None,
            None if log.len() < self.last.len() => Loss::Cleared,
            None => Loss::Wrapped,
        };
        let events = log[shared.unwrap_or(0)..].to_vec();
        self.last = log;
        FreshEvents { events, loss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(timestamps: std::ops::Range<u64>) -> Vec<Event> {
        let event = |timestamp| Event {
            timestamp,
            placement: Some(0),
            moved_bytes: Some(4096),
            offset_bytes: Some(0),
        };
        timestamps.map(event).collect()
    }

    fn took(feed: &mut Feed, timestamps: std::ops::Range<u64>) -> (usize, Loss) {
        let fresh = feed.take(log(timestamps));
        (fresh.events.len(), fresh.loss)
    }

    #[test]
    fn only_what_is_new_comes_out() {
        let mut feed = Feed::default();
        assert_eq!(took(&mut feed, 0..0), (0, Loss::None));
        assert_eq!(took(&mut feed, 0..5), (5, Loss::None));
        assert_eq!(took(&mut feed, 0..5), (0, Loss::None));
        assert_eq!(took(&mut feed, 3..9), (4, Loss::None));
        assert_eq!(took(&mut feed, 8..14), (5, Loss::None));
    }

    #[test]
    fn wrapped_and_cleared_logs_are_told_apart() {
        let mut feed = Feed::default();
        assert_eq!(took(&mut feed, 0..63), (63, Loss::None));
        assert_eq!(took(&mut feed, 63..126), (63, Loss::Wrapped));
        assert_eq!(took(&mut feed, 130..133), (3, Loss::Cleared));
        assert_eq!(took(&mut feed, 0..0), (0, Loss::Cleared));
        assert_eq!(took(&mut feed, 140..141), (1, Loss::None));
    }
}
