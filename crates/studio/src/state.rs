//! State of a session for pages: the latest snapshots of its lanes, and the updates for each page.
//!
//! ```text
//! SessionEngine, at frame times -> SessionState (locked only to copy pointers and short rows) -> ViewerCursor -> frames
//! ```
//!
//! Each page has a [`ViewerCursor`] for each lane, the record of the data it received. A slow page
//! costs no more memory than this record. It skips intermediate snapshots, and its skipped events
//! are counted.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::frames::{CLOSED, FrameHeader, FrameRows, LanePhase, OwnerRecord, UnitEventRecord, UnitRecord, encode};
use crate::series::LaneSeries;
use crate::session_spec::SessionSpec;

/// Events kept for pages that have not received them.
pub const EVENTS_KEPT: usize = 1024;
/// Shades of a closed unit's tile for its valid pages, while its lane runs.
const TILE_SHADES: u32 = 256;
/// Maximum pending refusals of all pages.
const REFUSALS_MAX: usize = 64;

#[derive(Default)]
pub struct LaneSnapshot {
    pub head: FrameHeader,
    pub owners: Vec<OwnerRecord>,
    /// Records of all slices of the drive. The previous records are shared if there was no new
    /// scan.
    pub units: Arc<Vec<UnitRecord>>,
}

/// Latest events, with the total number of events.
#[derive(Default)]
pub struct EventRing {
    records: VecDeque<UnitEventRecord>,
    total: u64,
}

impl EventRing {
    /// Adds events, after a gap of `left_out` omitted ones.
    pub fn extend(&mut self, left_out: u64, new: &[UnitEventRecord]) {
        if left_out > 0 {
            // The kept events have no gaps.
            self.records.clear();
            self.total += left_out;
        }
        let skipped = new.len().saturating_sub(EVENTS_KEPT);
        self.records.extend(&new[skipped..]);
        let more = self.records.len().saturating_sub(EVENTS_KEPT);
        self.records.drain(..more);
        self.total += new.len() as u64;
        assert!(self.records.len() as u64 <= self.total, "kept events are in the past");
    }

    /// Drops the kept events, for example after a seek.
    pub fn clear(&mut self) {
        self.records.clear();
    }

    /// Events after the first `seen` ones, and the number of them that are not kept.
    fn since(&self, seen: u64) -> (Vec<UnitEventRecord>, u64) {
        let first = self.total - self.records.len() as u64;
        let skipped = seen.saturating_sub(first).min(self.records.len() as u64);
        let records = self.records.iter().skip(skipped as usize).copied().collect();
        (records, first.saturating_sub(seen))
    }
}

/// Messages about a lane beside its frames, `None` before the first.
#[derive(Clone, Default)]
pub struct LaneMessages {
    /// Latencies so far, as members of a JSON object.
    pub latency: Option<Arc<str>>,
    /// Message about the hosts of a served drive.
    pub hosts: Option<Arc<str>>,
    /// Wear so far, as JSON. For a served drive, the hosts message contains it.
    pub wear: Option<Arc<str>>,
    /// Result as JSON, after the end.
    pub result: Option<Arc<str>>,
}

pub struct LaneState {
    pub name: String,
    pub snapshot: Arc<LaneSnapshot>,
    /// Incremented when earlier data becomes invalid.
    pub epoch: u64,
    pub series: LaneSeries,
    pub events: EventRing,
    pub messages: LaneMessages,
}

impl LaneState {
    pub fn new(name: &str, series: LaneSeries) -> LaneState {
        LaneState {
            name: name.to_string(),
            snapshot: Arc::default(),
            epoch: 0,
            series,
            events: EventRing::default(),
            messages: LaneMessages::default(),
        }
    }
}

pub struct SessionState {
    pub session: Arc<str>,
    /// Version of the session message, incremented with each change.
    pub version: u64,
    pub lanes: Vec<LaneState>,
    pub phase: LanePhase,
    pub order: SessionSpec,
    /// Name of the session if its order has none.
    pub default_name: String,
    refusals: VecDeque<(u64, String)>,
}

impl SessionState {
    pub fn new(order: SessionSpec) -> SessionState {
        SessionState {
            session: Arc::from(""),
            version: 0,
            lanes: Vec::new(),
            phase: LanePhase::Waiting,
            order,
            default_name: String::new(),
            refusals: VecDeque::new(),
        }
    }

    pub fn name(&self) -> &str {
        self.order.name.as_deref().unwrap_or(&self.default_name)
    }

    /// Keeps only the lanes with these names, in their order.
    pub fn retain_lanes(&mut self, names: &[&str]) {
        self.lanes.retain(|lane| names.contains(&lane.name.as_str()));
    }

    pub fn add_refusal(&mut self, page: u64, sentence: String) {
        if self.refusals.len() == REFUSALS_MAX {
            self.refusals.pop_front();
        }
        self.refusals.push_back((page, sentence));
    }

    pub fn take_refusal(&mut self, page: u64) -> Option<String> {
        let place = self.refusals.iter().position(|(of, _)| *of == page)?;
        self.refusals.remove(place).map(|(_, sentence)| sentence)
    }
}

/// Record of the data of a lane that a page received.
#[derive(Default)]
pub struct ViewerCursor {
    pub name: String,
    snapshot: Option<Arc<LaneSnapshot>>,
    /// Units that the page has, possibly from different snapshots. Empty for a new lane.
    units: Vec<UnitRecord>,
    epoch: u64,
    samples: usize,
    events: u64,
    messages: LaneMessages,
    /// Message to send after the last frame.
    pending_message: Option<String>,
}

pub enum LaneUpdate {
    Text(String),
    Frame(FrameUpdate),
}

/// Update taken from the state, encoded as a frame without the lock.
pub struct FrameUpdate {
    is_whole: bool,
    /// The units were not scanned again since the last frame.
    has_same_units: bool,
    now: Arc<LaneSnapshot>,
    events: Vec<UnitEventRecord>,
    events_left_out: u64,
    samples: Vec<f64>,
}

impl ViewerCursor {
    /// Creates an empty record for a lane with this name.
    pub fn new(name: &str) -> ViewerCursor {
        ViewerCursor { name: name.to_string(), ..ViewerCursor::default() }
    }

    /// Next update for the page, if any, which then counts as received. Each message follows the
    /// frame that it belongs to.
    pub fn next(&mut self, index: usize, lane: &LaneState) -> Option<LaneUpdate> {
        if let Some(text) = self.pending_message.take() {
            return Some(LaneUpdate::Text(text));
        }
        match self.next_frame(lane) {
            Some(update) => {
                self.pending_message = self.text(index, lane);
                Some(LaneUpdate::Frame(update))
            }
            None => self.text(index, lane).map(LaneUpdate::Text),
        }
    }

    /// Next new message, if any.
    fn text(&mut self, index: usize, lane: &LaneState) -> Option<String> {
        let (sent, now) = (&mut self.messages, &lane.messages);
        let message = |kind: &str, members: String| format!("{{\"type\":\"{kind}\",\"lane\":{index},{members}}}");
        take_new(&mut sent.latency, &now.latency)
            .map(|members| message("latency", members.to_string()))
            .or_else(|| take_new(&mut sent.hosts, &now.hosts).map(|hosts| hosts.to_string()))
            .or_else(|| {
                let wear = take_new(&mut sent.wear, &now.wear)?;
                Some(message("wear", format!("\"wear\":{wear}")))
            })
            .or_else(|| {
                let result = take_new(&mut sent.result, &now.result)?;
                Some(message("result", format!("\"result\":{result}")))
            })
    }

    /// New data for a frame, if any, which then counts as received.
    fn next_frame(&mut self, lane: &LaneState) -> Option<FrameUpdate> {
        let is_same = self.snapshot.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &lane.snapshot));
        if is_same && self.epoch == lane.epoch {
            return None;
        }
        if self.epoch != lane.epoch {
            *self = ViewerCursor {
                name: std::mem::take(&mut self.name),
                pending_message: self.pending_message.take(),
                epoch: lane.epoch,
                messages: std::mem::take(&mut self.messages),
                // Events before the page connected are not sent.
                events: self.events,
                ..ViewerCursor::default()
            };
        }
        let (events, events_left_out) = lane.events.since(self.events);
        let before = self.snapshot.replace(Arc::clone(&lane.snapshot));
        let is_first = before.is_none();
        let has_same_units = before.is_some_and(|before| {
            Arc::ptr_eq(&before.units, &lane.snapshot.units) && before.head.phase == lane.snapshot.head.phase
        });
        let update = FrameUpdate {
            is_whole: is_first,
            has_same_units,
            now: Arc::clone(&lane.snapshot),
            samples: lane.series.since(self.samples).to_vec(),
            events,
            events_left_out: if is_first && self.events == 0 { 0 } else { events_left_out },
        };
        self.samples = lane.series.len();
        self.events = lane.events.total;
        Some(update)
    }
}

/// Takes over a message if it differs from the sent one.
fn take_new(sent: &mut Option<Arc<str>>, now: &Option<Arc<str>>) -> Option<Arc<str>> {
    let is_same = sent.as_ref().map(Arc::as_ptr) == now.as_ref().map(Arc::as_ptr);
    sent.clone_from(now);
    now.clone().filter(|_| !is_same)
}

impl ViewerCursor {
    pub fn frame(&mut self, update: &FrameUpdate, lane: u8) -> bytes::Bytes {
        let now = &update.now;
        let units = match update.has_same_units {
            true => Vec::new(),
            false => self.new_units(update),
        };
        let rows = FrameRows {
            owners: &now.owners,
            units: &units,
            events: &update.events,
            events_left_out: update.events_left_out,
            samples: &update.samples,
        };
        encode(lane, update.is_whole, &now.head, &rows)
    }

    /// Changed units, which then count as received.
    fn new_units(&mut self, update: &FrameUpdate) -> Vec<(u32, UnitRecord)> {
        let now = &update.now;
        if update.is_whole || self.units.len() != now.units.len() {
            self.units.clone_from(&now.units);
            return (0..).zip(now.units.iter().copied()).collect();
        }
        // A paused lane sends all changes.
        let is_advancing = matches!(now.head.phase, LanePhase::Filling | LanePhase::Running);
        let mut new = Vec::new();
        for (index, (sent, unit)) in (0..).zip(self.units.iter_mut().zip(now.units.iter())) {
            if *sent != *unit && !(is_advancing && has_same_shade(sent, unit)) {
                *sent = *unit;
                new.push((index, *unit));
            }
        }
        new
    }
}

/// Returns true if a closed unit lost too few valid pages to change the shade of its tile. On a
/// large drive at full speed, every unit loses some valid pages between two frames.
fn has_same_shade(sent: &UnitRecord, now: &UnitRecord) -> bool {
    let expected = UnitRecord { valid_pages: now.valid_pages, ..*sent };
    let lost = sent.valid_pages.saturating_sub(now.valid_pages);
    expected == *now
        && now.state == CLOSED
        && now.valid_pages <= sent.valid_pages
        && lost < now.written_pages / TILE_SHADES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{NO_OWNER, NO_UNIT};
    use crate::series::{LaneSample, SampleExtras};

    fn event(unit: u32) -> UnitEventRecord {
        UnitEventRecord {
            kind: 1,
            owner: 0,
            reason: 0,
            destination_owner: NO_OWNER,
            unit,
            pages: 1,
            valid_pages: 0,
            copied_pages: 0,
            destination: NO_UNIT,
            host_bytes: 0,
            now_ns: 0,
        }
    }

    #[test]
    fn events_that_are_not_sent_are_counted() {
        let mut ring = EventRing::default();
        let of = |ring: &EventRing, seen: u64| {
            let (events, left_out) = ring.since(seen);
            (events.iter().map(|event| event.unit).collect::<Vec<_>>(), left_out)
        };
        ring.extend(0, &[event(0), event(1)]);
        assert_eq!(of(&ring, 0), (vec![0, 1], 0));
        assert_eq!(of(&ring, 1), (vec![1], 0));
        ring.extend(3, &[event(5)]);
        assert_eq!(of(&ring, 2), (vec![5], 3));
        assert_eq!(of(&ring, 6), (vec![], 0));
        ring.clear();
        assert_eq!(of(&ring, 6), (vec![], 0));
        assert_eq!(of(&ring, 5), (vec![], 1), "it was not sent, and is counted");
        let many: Vec<UnitEventRecord> = (6..6 + 2 * EVENTS_KEPT as u32).map(event).collect();
        ring.extend(0, &many);
        let (events, left_out) = of(&ring, 6);
        assert_eq!((events.len(), left_out), (EVENTS_KEPT, EVENTS_KEPT as u64));
        assert_eq!(events.last(), Some(&(5 + 2 * EVENTS_KEPT as u32)));
    }

    fn unit(valid_pages: u32) -> UnitRecord {
        UnitRecord { state: 3, owner: 0, group: 0, valid_pages, written_pages: 8 }
    }

    fn lane(units: Vec<UnitRecord>, epoch: u64) -> LaneState {
        let mut series = LaneSeries::new(1, 100);
        series.add_sample(&LaneSample {
            host_bytes: 1,
            media_bytes: 1,
            owners: &[(1, 0)],
            extras: SampleExtras::default(),
        });
        let snapshot =
            LaneSnapshot { owners: vec![OwnerRecord::default()], units: Arc::new(units), ..LaneSnapshot::default() };
        LaneState { snapshot: Arc::new(snapshot), epoch, ..LaneState::new("", series) }
    }

    impl ViewerCursor {
        fn next_bytes(&mut self, lane: &LaneState) -> bytes::Bytes {
            let update = self.next_frame(lane).expect("something is new");
            self.frame(&update, 0)
        }
    }

    fn counts(frame: &[u8]) -> (bool, u32, u32) {
        let at = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().expect("four bytes"));
        (frame[3] == 1, at(8), at(16))
    }

    #[test]
    fn a_page_receives_only_new_data() {
        let mut viewer = ViewerCursor::default();
        let before = lane(vec![unit(1), unit(2)], 1);
        let frame = viewer.next_bytes(&before);
        assert_eq!(counts(&frame), (true, 2, 1));
        assert!(viewer.next_frame(&before).is_none(), "it was sent already");
        let after = lane(vec![unit(1), unit(3)], 1);
        let frame = viewer.next_bytes(&after);
        assert_eq!(counts(&frame), (false, 1, 0));
        let back = lane(vec![unit(1), unit(2)], 2);
        let frame = viewer.next_bytes(&back);
        assert_eq!(counts(&frame), (true, 2, 1));
    }

    /// Frames that come faster than a page reads them must not displace messages.
    #[test]
    fn a_page_receives_every_message_however_many_frames_come() {
        let mut viewer = ViewerCursor::default();
        let mut messages = Vec::new();
        let mut now = lane(vec![unit(1)], 1);
        let text = |text: &str| Some(Arc::from(text));
        for frame in 0..12 {
            match frame {
                0 => now.messages.latency = text("1"),
                2 => now.messages.wear = text("1"),
                4 => now.messages.result = text("1"),
                _ => {}
            }
            now.snapshot = Arc::new(LaneSnapshot {
                units: Arc::clone(&now.snapshot.units),
                owners: vec![OwnerRecord::default()],
                ..LaneSnapshot::default()
            });
            match viewer.next(0, &now).expect("a frame, or a message") {
                LaneUpdate::Frame(update) => drop(viewer.frame(&update, 0)),
                LaneUpdate::Text(text) => messages.push(text),
            }
        }
        let kinds = ["latency", "wear", "result"];
        assert_eq!(messages.len(), kinds.len(), "{messages:?}");
        for (text, kind) in messages.iter().zip(kinds) {
            assert!(text.contains(&format!("\"type\":\"{kind}\"")), "{text}");
        }
    }

    /// A page's unit is off by one shade at most while the lane runs, and exact when it pauses.
    #[test]
    fn a_page_receives_a_unit_when_its_shade_changes() {
        let closed = |valid_pages: u32| UnitRecord { valid_pages, written_pages: 25_600, ..unit(0) };
        let mut viewer = ViewerCursor::default();
        let mut units_sent = |valid_pages: u32, phase: LanePhase| {
            let mut lane = lane(vec![closed(valid_pages)], 1);
            let snapshot = Arc::get_mut(&mut lane.snapshot).expect("it is of this lane only");
            snapshot.head.phase = phase;
            counts(&viewer.next_bytes(&lane)).1
        };
        assert_eq!(units_sent(25_600, LanePhase::Running), 1);
        assert_eq!(units_sent(25_550, LanePhase::Running), 0);
        assert_eq!(units_sent(25_501, LanePhase::Running), 0);
        assert_eq!(units_sent(25_500, LanePhase::Running), 1, "a shade less");
        assert_eq!(units_sent(25_499, LanePhase::Running), 0);
        assert_eq!(units_sent(25_499, LanePhase::Paused), 1, "a paused lane is exact");
        assert_eq!(units_sent(25_498, LanePhase::Ended), 1);
        assert_eq!(units_sent(25_600, LanePhase::Running), 1, "more valid pages than sent");
    }

    #[test]
    fn a_refusal_is_for_the_page_that_asked() {
        let mut state = SessionState::new(SessionSpec::default());
        state.add_refusal(1, "one".to_string());
        state.add_refusal(2, "two".to_string());
        assert_eq!(state.take_refusal(2).as_deref(), Some("two"));
        assert_eq!(state.take_refusal(2), None);
        (0..1000).for_each(|number| state.add_refusal(3, number.to_string()));
        assert_eq!(state.take_refusal(1), None, "the oldest refusals are dropped");
    }
}
