//! Extracts the new events from successive readings of a whole event log.
//!
//! A drive's log is a window on its event history. Reading does not empty the log, and a new event
//! drops the oldest one once the log is full. A [`EventCursor`] finds the longest run of events that ends
//! the last reading and begins this one. The events after this run are new.

use serde::Serialize;

/// The fields of a Media Reallocated event that a host needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReallocationEvent {
    /// Time by the drive's clock. It is only compared for equality.
    pub timestamp: u64,
    /// Placement identifier of the collected reclaim unit. `None` if its data was mixed before.
    pub placement: Option<u16>,
    pub moved_bytes: Option<u64>,
    /// Offset of one of the moved bytes from the beginning of the namespace.
    pub offset_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventLoss {
    None,
    /// The log shares no event with its last reading, so events are lost. Read it more often.
    Wrapped,
    /// The log is shorter than before, because a reset or another FDP configuration cleared it.
    Cleared,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreshEvents<E = ReallocationEvent> {
    /// New events, oldest first.
    pub events: Vec<E>,
    pub loss: EventLoss,
}

/// Position after the last reading of a log. If a log holds other types of events too, pass all of
/// them, because they push relevant events out of the log.
#[derive(Clone, Debug)]
pub struct EventCursor<E = ReallocationEvent> {
    last: Vec<E>,
}

impl<E> Default for EventCursor<E> {
    fn default() -> EventCursor<E> {
        EventCursor { last: Vec::new() }
    }
}

impl<E: Clone + PartialEq> EventCursor<E> {
    /// Compares the whole log, oldest event first, with its last reading.
    pub fn new_events(&mut self, log: Vec<E>) -> FreshEvents<E> {
        // Search from the longest run, or old events would look new in a log of identical events.
        let shared = (1..=self.last.len().min(log.len()))
            .rev()
            .find(|&count| self.last[self.last.len() - count..] == log[..count]);
        let loss = match shared {
            Some(_) => EventLoss::None,
            None if self.last.is_empty() => EventLoss::None,
            None if log.len() < self.last.len() => EventLoss::Cleared,
            None => EventLoss::Wrapped,
        };
        let events = log[shared.unwrap_or(0)..].to_vec();
        self.last = log;
        FreshEvents { events, loss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(timestamps: std::ops::Range<u64>) -> Vec<ReallocationEvent> {
        let event = |timestamp| ReallocationEvent {
            timestamp,
            placement: Some(0),
            moved_bytes: Some(4096),
            offset_bytes: Some(0),
        };
        timestamps.map(event).collect()
    }

    fn took(feed: &mut EventCursor, timestamps: std::ops::Range<u64>) -> (usize, EventLoss) {
        let fresh = feed.new_events(log(timestamps));
        (fresh.events.len(), fresh.loss)
    }

    #[test]
    fn only_what_is_new_comes_out() {
        let mut feed = EventCursor::default();
        assert_eq!(took(&mut feed, 0..0), (0, EventLoss::None));
        assert_eq!(took(&mut feed, 0..5), (5, EventLoss::None));
        assert_eq!(took(&mut feed, 0..5), (0, EventLoss::None));
        assert_eq!(took(&mut feed, 3..9), (4, EventLoss::None));
        assert_eq!(took(&mut feed, 8..14), (5, EventLoss::None));
    }

    #[test]
    fn wrapped_and_cleared_logs_are_told_apart() {
        let mut feed = EventCursor::default();
        assert_eq!(took(&mut feed, 0..63), (63, EventLoss::None));
        assert_eq!(took(&mut feed, 63..126), (63, EventLoss::Wrapped));
        assert_eq!(took(&mut feed, 130..133), (3, EventLoss::Cleared));
        assert_eq!(took(&mut feed, 0..0), (0, EventLoss::Cleared));
        assert_eq!(took(&mut feed, 140..141), (1, EventLoss::None));
    }
}
