//! Extracts the new events from successive readings of a whole event log.
//!
//! A drive's log is a window on its event history. Reading does not empty the log, and a new event
//! drops the oldest one once the log is full. A [`Feed`] finds the longest run of events that ends
//! the last reading and begins this one. The events after this run are new.

use serde::Serialize;

/// The fields of a Media Reallocated event that a host needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Time by the drive's clock. It is only compared for equality.
    pub timestamp: u64,
    /// Placement identifier of the collected reclaim unit. `None` if its data was mixed before.
    pub placement: Option<u16>,
    /// Moved bytes, if the event gives them.
    pub moved_bytes: Option<u64>,
    /// Offset of one of the moved bytes from the beginning of the namespace.
    pub offset_bytes: Option<u64>,
}

/// Loss of events between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    None,
    /// The log shares no event with its last reading, so events are lost. Read it more often.
    Wrapped,
    /// The log is shorter than before, because a reset or another FDP configuration cleared it.
    Cleared,
}

/// Result of a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreshEvents<E = Event> {
    /// New events, oldest first.
    pub events: Vec<E>,
    /// Loss of events since the last reading.
    pub loss: Loss,
}

/// The last reading of a log. If a log holds other types of events too, pass all of them, because
/// they push relevant events out of the log.
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
    /// Compares the whole log, oldest event first, with its last reading.
    pub fn take(&mut self, log: Vec<E>) -> FreshEvents<E> {
        // Search from the longest run, or old events would look new in a log of identical events.
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
