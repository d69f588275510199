//! What a session shows: the newest state of its lanes, from which each page is told what is new to it.
//!
//! ```text
//! engine, at frame times -> State (behind a lock, held for copies of pointers and short rows) -> Page -> frames
//! ```
//!
//! A page is a reader with a memory of what it was sent. However slowly it reads, it costs no more than that memory; what came in
//! between is not sent any more, and events among it are counted.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::frames::{CLOSED, EventRecord, Head, OwnerRecord, Phase, Rows, UnitRecord, encode};
use crate::order::Order;
use crate::series::Series;

/// Events that are kept for pages that have not seen them.
pub const EVENTS_KEPT: usize = 1024;
/// Steps in which a tile of a closed unit shows how much of it is valid, while its lane goes on.
const TILE_SHADES: u32 = 256;
/// Refusals that wait for their pages.
const REFUSALS_MAX: usize = 64;

/// A moment of a lane.
#[derive(Default)]
pub struct Snapshot {
    pub head: Head,
    pub owners: Vec<OwnerRecord>,
    /// A record for each slice of the drive; the same as before where nobody looked.
    pub units: Arc<Vec<UnitRecord>>,
}

/// The last events, and how many there were.
#[derive(Default)]
pub struct EventRing {
    records: VecDeque<EventRecord>,
    total: u64,
}

impl EventRing {
    /// Adds events, before which some were left out.
    pub fn extend(&mut self, left_out: u64, new: &[EventRecord]) {
        if left_out > 0 {
            // What is kept is without gaps.
            self.records.clear();
            self.total += left_out;
        }
        let skipped = new.len().saturating_sub(EVENTS_KEPT);
        self.records.extend(&new[skipped..]);
        let more = self.records.len().saturating_sub(EVENTS_KEPT);
        self.records.drain(..more);
        self.total += new.len() as u64;
        assert!(self.records.len() as u64 <= self.total, "what is kept has happened");
    }

    /// Keeps none of them: they did not happen, or not yet.
    pub fn forget(&mut self) {
        self.records.clear();
    }

    /// What happened after so many events, and how many of that are not kept.
    fn since(&self, seen: u64) -> (Vec<EventRecord>, u64) {
        let first = self.total - self.records.len() as u64;
        let skipped = seen.saturating_sub(first).min(self.records.len() as u64);
        let records = self.records.iter().skip(skipped as usize).copied().collect();
        (records, first.saturating_sub(seen))
    }
}

/// A lane, as pages are told of it.
pub struct LaneState {
    pub name: String,
    /// Its newest moment.
    pub snapshot: Arc<Snapshot>,
    /// Grows when what was told before does not hold any more.
    pub epoch: u64,
    /// Its time series.
    pub series: Series,
    /// Its last events.
    pub events: EventRing,
    /// What came out, as JSON, when it has ended.
    pub result: Option<Arc<str>>,
    /// Latencies so far, as the inside of a JSON object.
    pub latency: Option<Arc<str>>,
    /// What hosts of a served drive do, as a message.
    pub hosts: Option<Arc<str>>,
    /// How often blocks were erased so far, as JSON; of a served drive it is with its hosts.
    pub wear: Option<Arc<str>>,
}

/// See the module.
pub struct State {
    /// The message that says what the session is.
    pub session: Arc<str>,
    /// Grows with every other message; changed when lanes come or go.
    pub version: u64,
    pub lanes: Vec<LaneState>,
    /// What the session is doing.
    pub phase: Phase,
    /// The Order that makes this session again.
    pub order: Order,
    /// Name of the session where its Order gives none.
    pub default_name: String,
    refusals: VecDeque<(u64, String)>,
}

impl State {
    pub fn new(order: Order) -> State {
        State {
            session: Arc::from(""),
            version: 0,
            lanes: Vec::new(),
            phase: Phase::Waiting,
            order,
            default_name: String::new(),
            refusals: VecDeque::new(),
        }
    }

    /// Name of the session.
    pub fn name(&self) -> &str {
        self.order.name.as_deref().unwrap_or(&self.default_name)
    }

    /// Leaves only the lanes of these names, in their order.
    pub fn keep_lanes(&mut self, names: &[&str]) {
        self.lanes.retain(|lane| names.contains(&lane.name.as_str()));
    }

    /// Has a page told that what it wanted is refused.
    pub fn refuse(&mut self, page: u64, sentence: String) {
        if self.refusals.len() == REFUSALS_MAX {
            self.refusals.pop_front();
        }
        self.refusals.push_back((page, sentence));
    }

    /// The next refusal of a page.
    pub fn take_refusal(&mut self, page: u64) -> Option<String> {
        let place = self.refusals.iter().position(|(of, _)| *of == page)?;
        self.refusals.remove(place).map(|(_, sentence)| sentence)
    }
}

/// What a page was told of a lane.
#[derive(Default)]
pub struct Seen {
    name: String,
    snapshot: Option<Arc<Snapshot>>,
    /// The units as they were told, which need not be of one moment; none of a lane that is new.
    units: Vec<UnitRecord>,
    epoch: u64,
    moments: usize,
    events: u64,
    result: Option<Arc<str>>,
    latency: Option<Arc<str>>,
    hosts: Option<Arc<str>>,
    wear: Option<Arc<str>>,
    /// A message that follows the frame that was told last.
    held: Option<String>,
}

/// What a page is told of a lane.
pub enum Telling {
    Text(String),
    /// What a frame is made of.
    Frame(News),
}

/// What is new of a lane to a page, taken out of the state, to be made a frame of without the lock.
pub struct News {
    is_whole: bool,
    /// Nobody has looked at the units since the page was told.
    has_same_units: bool,
    now: Arc<Snapshot>,
    events: Vec<EventRecord>,
    events_left_out: u64,
    samples: Vec<f64>,
}

impl Seen {
    /// Nothing of a lane of this name.
    pub fn new(name: &str) -> Seen {
        Seen {
            name: name.to_string(),
            ..Seen::default()
        }
    }

    /// The lane's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is to be told next, if anything is new to it; it is taken for told. Each message follows the frame that it belongs to.
    pub fn next(&mut self, index: usize, lane: &LaneState) -> Option<Telling> {
        if let Some(text) = self.held.take() {
            return Some(Telling::Text(text));
        }
        match self.news(lane) {
            Some(news) => {
                self.held = self.text(index, lane);
                Some(Telling::Frame(news))
            }
            None => self.text(index, lane).map(Telling::Text),
        }
    }

    /// The message that is new to it, if there is one.
    fn text(&mut self, index: usize, lane: &LaneState) -> Option<String> {
        if is_other(&self.latency, &lane.latency) {
            self.latency.clone_from(&lane.latency);
            let latency = lane
                .latency
                .as_ref()
                .map(|inside| format!("{{\"type\":\"latency\",\"lane\":{index},{inside}}}"));
            return latency.or_else(|| self.text(index, lane));
        }
        if is_other(&self.hosts, &lane.hosts) {
            self.hosts.clone_from(&lane.hosts);
            let hosts = lane.hosts.as_ref().map(|hosts| hosts.to_string());
            return hosts.or_else(|| self.text(index, lane));
        }
        if is_other(&self.wear, &lane.wear) {
            self.wear.clone_from(&lane.wear);
            let wear = lane.wear.as_ref();
            let wear = wear.map(|json| format!("{{\"type\":\"wear\",\"lane\":{index},\"wear\":{json}}}"));
            return wear.or_else(|| self.text(index, lane));
        }
        if is_other(&self.result, &lane.result) {
            self.result.clone_from(&lane.result);
            let result = lane.result.as_ref();
            return result.map(|json| format!("{{\"type\":\"result\",\"lane\":{index},\"result\":{json}}}"));
        }
        None
    }

    /// What is new to it, if anything is; it is taken for told.
    fn news(&mut self, lane: &LaneState) -> Option<News> {
        let is_same = self
            .snapshot
            .as_ref()
            .is_some_and(|seen| Arc::ptr_eq(seen, &lane.snapshot));
        if is_same && self.epoch == lane.epoch {
            return None;
        }
        if self.epoch != lane.epoch {
            *self = Seen {
                name: std::mem::take(&mut self.name),
                held: self.held.take(),
                epoch: lane.epoch,
                result: self.result.take(),
                latency: self.latency.take(),
                hosts: self.hosts.take(),
                wear: self.wear.take(),
                // What happened before there was a page is no news.
                events: self.events,
                ..Seen::default()
            };
        }
        let (events, events_left_out) = lane.events.since(self.events);
        let before = self.snapshot.replace(Arc::clone(&lane.snapshot));
        let is_first = before.is_none();
        let has_same_units = before.is_some_and(|before| {
            Arc::ptr_eq(&before.units, &lane.snapshot.units) && before.head.phase == lane.snapshot.head.phase
        });
        let news = News {
            is_whole: is_first,
            has_same_units,
            now: Arc::clone(&lane.snapshot),
            samples: lane.series.since(self.moments).to_vec(),
            events,
            events_left_out: if is_first && self.events == 0 {
                0
            } else {
                events_left_out
            },
        };
        self.moments = lane.series.len();
        self.events = lane.events.total;
        Some(news)
    }
}

/// Whether a text is not the one that was told.
fn is_other(told: &Option<Arc<str>>, now: &Option<Arc<str>>) -> bool {
    match (told, now) {
        (Some(told), Some(now)) => !Arc::ptr_eq(told, now),
        (told, now) => told.is_some() != now.is_some(),
    }
}

impl Seen {
    /// A frame of what is new.
    pub fn frame(&mut self, news: &News, lane: u8) -> bytes::Bytes {
        let now = &news.now;
        let units = match news.has_same_units {
            true => Vec::new(),
            false => self.new_units(news),
        };
        let rows = Rows {
            owners: &now.owners,
            units: &units,
            events: &news.events,
            events_left_out: news.events_left_out,
            samples: &news.samples,
        };
        encode(lane, news.is_whole, &now.head, &rows)
    }

    /// The units that are to be told; they are taken for told.
    fn new_units(&mut self, news: &News) -> Vec<(u32, UnitRecord)> {
        let now = &news.now;
        if news.is_whole || self.units.len() != now.units.len() {
            self.units.clone_from(&now.units);
            return (0..).zip(now.units.iter().copied()).collect();
        }
        // Where it stands, every page is told.
        let goes_on = matches!(now.head.phase, Phase::Filling | Phase::Running);
        let mut new = Vec::new();
        for (index, (told, unit)) in (0..).zip(self.units.iter_mut().zip(now.units.iter())) {
            if *told != *unit && !(goes_on && looks_alike(told, unit)) {
                *told = *unit;
                new.push((index, *unit));
            }
        }
        new
    }
}

/// Whether a closed unit has lost so few valid pages that a tile of it looks the same: a large drive at full speed loses some of every
/// unit from one frame to the next.
fn looks_alike(told: &UnitRecord, now: &UnitRecord) -> bool {
    let alike = UnitRecord {
        valid_pages: now.valid_pages,
        ..*told
    };
    let lost = told.valid_pages.saturating_sub(now.valid_pages);
    alike == *now
        && now.state == CLOSED
        && now.valid_pages <= told.valid_pages
        && lost < now.written_pages / TILE_SHADES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{NO_OWNER, NO_UNIT};
    use crate::series::{Beside, Moment};

    fn event(unit: u32) -> EventRecord {
        EventRecord {
            kind: 1,
            owner: 0,
            why: 0,
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
    fn events_that_are_not_told_are_counted() {
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
        ring.forget();
        assert_eq!(of(&ring, 6), (vec![], 0));
        assert_eq!(of(&ring, 5), (vec![], 1), "it was not told, and is counted");
        let many: Vec<EventRecord> = (6..6 + 2 * EVENTS_KEPT as u32).map(event).collect();
        ring.extend(0, &many);
        let (events, left_out) = of(&ring, 6);
        assert_eq!((events.len(), left_out), (EVENTS_KEPT, EVENTS_KEPT as u64));
        assert_eq!(events.last(), Some(&(5 + 2 * EVENTS_KEPT as u32)));
    }

    fn unit(valid_pages: u32) -> UnitRecord {
        UnitRecord {
            state: 3,
            owner: 0,
            group: 0,
            valid_pages,
            written_pages: 8,
        }
    }

    fn lane(units: Vec<UnitRecord>, epoch: u64) -> LaneState {
        let mut series = Series::new(1, 100);
        series.take(&Moment {
            host_bytes: 1,
            media_bytes: 1,
            owners: &[(1, 0)],
            beside: Beside::default(),
        });
        let snapshot = Snapshot {
            owners: vec![OwnerRecord::default()],
            units: Arc::new(units),
            ..Snapshot::default()
        };
        LaneState {
            name: String::new(),
            snapshot: Arc::new(snapshot),
            epoch,
            series,
            events: EventRing::default(),
            result: None,
            latency: None,
            hosts: None,
            wear: None,
        }
    }

    impl Seen {
        fn told(&mut self, lane: &LaneState) -> bytes::Bytes {
            let news = self.news(lane).expect("something is new");
            self.frame(&news, 0)
        }
    }

    fn counts(frame: &[u8]) -> (bool, u32, u32) {
        let at = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().expect("four bytes"));
        (frame[3] == 1, at(8), at(16))
    }

    #[test]
    fn a_page_is_told_what_is_new_to_it() {
        let mut seen = Seen::default();
        let before = lane(vec![unit(1), unit(2)], 1);
        let frame = seen.told(&before);
        assert_eq!(counts(&frame), (true, 2, 1));
        assert!(seen.news(&before).is_none(), "it is told already");
        let after = lane(vec![unit(1), unit(3)], 1);
        let frame = seen.told(&after);
        assert_eq!(counts(&frame), (false, 1, 0));
        let back = lane(vec![unit(1), unit(2)], 2);
        let frame = seen.told(&back);
        assert_eq!(counts(&frame), (true, 2, 1));
    }

    /// Frames that come faster than a page takes them must not push messages aside.
    #[test]
    fn a_page_is_told_every_message_however_many_frames_come() {
        let mut seen = Seen::default();
        let mut told = Vec::new();
        let mut now = lane(vec![unit(1)], 1);
        let text = |text: &str| Some(Arc::from(text));
        for frame in 0..12 {
            match frame {
                0 => now.latency = text("1"),
                2 => now.wear = text("1"),
                4 => now.result = text("1"),
                _ => {}
            }
            now.snapshot = Arc::new(Snapshot {
                units: Arc::clone(&now.snapshot.units),
                owners: vec![OwnerRecord::default()],
                ..Snapshot::default()
            });
            match seen.next(0, &now).expect("a frame, or a message") {
                Telling::Frame(news) => drop(seen.frame(&news, 0)),
                Telling::Text(text) => told.push(text),
            }
        }
        let kinds = ["latency", "wear", "result"];
        assert_eq!(told.len(), kinds.len(), "{told:?}");
        for (text, kind) in told.iter().zip(kinds) {
            assert!(text.contains(&format!("\"type\":\"{kind}\"")), "{text}");
        }
    }

    /// What was told of a unit is at most a shade off while the lane goes on, and right when it stands.
    #[test]
    fn a_page_is_told_of_a_unit_when_it_looks_different() {
        let closed = |valid_pages: u32| UnitRecord {
            valid_pages,
            written_pages: 25_600,
            ..unit(0)
        };
        let mut seen = Seen::default();
        let mut told = |valid_pages: u32, phase: Phase| {
            let mut lane = lane(vec![closed(valid_pages)], 1);
            let snapshot = Arc::get_mut(&mut lane.snapshot).expect("it is of this lane only");
            snapshot.head.phase = phase;
            counts(&seen.told(&lane)).1
        };
        assert_eq!(told(25_600, Phase::Running), 1);
        assert_eq!(told(25_550, Phase::Running), 0);
        assert_eq!(told(25_501, Phase::Running), 0);
        assert_eq!(told(25_500, Phase::Running), 1, "a shade less");
        assert_eq!(told(25_499, Phase::Running), 0);
        assert_eq!(told(25_499, Phase::Paused), 1, "it stands");
        assert_eq!(told(25_498, Phase::Ended), 1);
        assert_eq!(told(25_600, Phase::Running), 1, "it is another unit, or was set back");
    }

    #[test]
    fn a_refusal_is_for_the_page_that_asked() {
        let mut state = State::new(Order::default());
        state.refuse(1, "one".to_string());
        state.refuse(2, "two".to_string());
        assert_eq!(state.take_refusal(2).as_deref(), Some("two"));
        assert_eq!(state.take_refusal(2), None);
        (0..1000).for_each(|number| state.refuse(3, number.to_string()));
        assert_eq!(state.take_refusal(1), None, "what nobody takes goes");
    }
}
