//! A lane of a session: a run with what is known of it beside its drive.
//!
//! ```text
//! LiveRun -> advance -> events (log, new ones), moments of the series -> Snapshot -> State
//! ```
//!
//! It belongs to the engine's thread. It does not know pages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use experiment::LabError;
use serde_json::{Value, json};
use simulate::live::{Activity, Forked, LiveRun, MemoryAccount, MemoryShare, Position};
use simulate::run::CellResult;
use ssd::{Event, OwnerStats};
use target::monitor::hosts::Holdings;

use crate::frames::{EventRecord, Head, OwnerRecord, Phase, UnitRecord};
use crate::order::LanePlan;
use crate::records::{LoggedEvent, drive_json, object, owner_record, record, rows, units_of};
use crate::results;
use crate::series::{Beside, Moment, Series};
use crate::state::{EventRing, LaneState, Snapshot};

/// Events that a lane keeps for a trace of it.
const LOG_MAX: usize = 20_000;
/// Memory of a lane's events and series, and of what pages are told of it, bytes.
pub const TOLD_BYTES: u64 = 8 << 20;
/// Between two messages about latencies and wear while a lane runs.
const MEASURES_TIME: Duration = Duration::from_secs(1);
/// How much of the speed that was measured last counts for the speed that is told.
const SPEED_WEIGHT: f64 = 0.3;

/// The last events of a lane.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The events, the oldest first.
    pub events: VecDeque<LoggedEvent>,
    /// How many there were before and between them that are not kept.
    pub left_out: u64,
}

/// What a lane branched off, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    pub of: usize,
    /// Bytes that the host had written there.
    pub at_host_bytes: u64,
    /// How it branched off, once it has.
    pub forked: Option<Forked>,
}

/// See the module.
pub struct Lane {
    /// What is run.
    pub plan: LanePlan,
    /// What it branched off.
    pub branch: Option<Branch>,
    /// Where it is to come to before anything else: a moment that somebody looks for.
    pub goal: Option<u64>,
    /// Bytes that the host had written at its first collection, once it had one. A lane that branched off a drive with collections
    /// leaves that to the other.
    pub first_collection: Option<u64>,
    /// Whether its drive had collected when it began.
    had_collected: bool,
    run: Option<LiveRun>,
    failed: Option<String>,
    result: Option<Arc<str>>,
    latency: Option<Arc<str>>,
    wear: Option<Arc<str>>,
    /// When latencies and wear were told, and how many requests there were.
    measures_told: (Instant, u64),
    epoch: u64,
    series: Series,
    is_forgotten: bool,
    log: Log,
    new_events: Vec<EventRecord>,
    new_left_out: u64,
    /// Pages of the units that were opened, by the unit.
    opened_pages: Vec<u32>,
    /// Bytes that the host had written when events were taken last.
    events_at: u64,
    units: Arc<Vec<UnitRecord>>,
    holdings: Holdings,
    measured: (Instant, u64),
    pages_per_second: f64,
    /// Kept for as long as the lane is there.
    _share: MemoryShare,
}

impl Lane {
    /// A lane without a run.
    pub fn new(plan: LanePlan, branch: Option<Branch>, share: MemoryShare) -> Lane {
        let layout = plan.plan.layout();
        let owners = layout.handles.len() + 1;
        Lane {
            branch,
            goal: None,
            first_collection: None,
            had_collected: false,
            run: None,
            failed: None,
            result: None,
            latency: None,
            wear: None,
            measures_told: (Instant::now(), 0),
            epoch: 1,
            series: Series::new(owners, layout.capacity_bytes()),
            is_forgotten: true,
            log: Log::default(),
            new_events: Vec::new(),
            new_left_out: 0,
            opened_pages: vec![0; layout.slices() as usize],
            events_at: 0,
            units: Arc::new(Vec::new()),
            holdings: Holdings::none(layout),
            measured: (Instant::now(), 0),
            pages_per_second: 0.0,
            _share: share,
            plan,
        }
    }

    /// Gives it a run at its beginning.
    ///
    /// # Errors
    /// As [`LiveRun::begin`].
    pub fn begin(&mut self, memory: &MemoryAccount) -> Result<(), LabError> {
        let run = LiveRun::begin(Arc::clone(&self.plan.plan), memory)?;
        self.take_run(run);
        Ok(())
    }

    /// Goes on with a run of which nothing was told.
    pub fn take_run(&mut self, run: LiveRun) {
        self.first_collection = None;
        self.had_collected = collections(&run) > 0;
        self.run = Some(run);
        self.forget();
        self.after();
    }

    /// Waits again for what it branched off.
    pub fn wait(&mut self) {
        assert!(self.branch.is_some(), "a lane that branches off has one to wait for");
        self.run = None;
        self.goal = None;
        self.units = Arc::new(Vec::new());
        self.forget();
        self.series.forget_after(0);
    }

    pub fn run(&self) -> Option<&LiveRun> {
        self.run.as_ref()
    }

    /// Whether it waits for what it branches off.
    pub fn waits(&self) -> bool {
        self.run.is_none()
    }

    /// How far it is.
    pub fn position(&self) -> Position {
        self.run.as_ref().map(LiveRun::position).unwrap_or_default()
    }

    /// Whether nothing more comes of it.
    pub fn is_over(&self) -> bool {
        self.failed.is_some()
            || self
                .run
                .as_ref()
                .is_some_and(|run| run.phase() == simulate::live::Phase::Ended)
    }

    /// Whether the drive is being filled.
    pub fn is_filling(&self) -> bool {
        self.run
            .as_ref()
            .is_some_and(|run| run.phase() == simulate::live::Phase::Filling)
    }

    /// What was told of it does not hold any more.
    fn forget(&mut self) {
        self.epoch += 1;
        self.is_forgotten = true;
        self.result = None;
        self.latency = None;
        self.wear = None;
        self.measures_told = (Instant::now(), 0);
        self.failed = None;
        self.new_events.clear();
        self.events_at = self.position().host_bytes;
        self.measured = (Instant::now(), self.programmed());
    }

    /// Goes on until the host has written so much, so many requests were taken, or some time has passed.
    pub fn advance(&mut self, host_bytes: u64, requests: u64) {
        let Some(run) = &mut self.run else { return };
        if let Err(error) = run.advance_briefly(host_bytes, requests) {
            self.failed = Some(error.to_string());
        }
        self.after();
    }

    /// Sets it back, to come to a moment from there.
    pub fn seek(&mut self, host_bytes: u64) {
        let Some(run) = &mut self.run else { return };
        let before = run.position();
        match run.begin_seek(host_bytes) {
            Ok(()) if run.position() == before => {}
            Ok(()) => {
                let now = run.position().host_bytes;
                self.series.forget_after(host_bytes.max(now));
                self.log.left_out += self.log.events.len() as u64;
                self.log.events.clear();
                let _ = self.run.as_mut().map(LiveRun::take_events);
                self.forget();
            }
            Err(error) => self.failed = Some(error.to_string()),
        }
        self.goal = Some(host_bytes);
        self.arrive();
    }

    /// Takes what came of going on.
    fn after(&mut self) {
        self.take_events();
        let (host_bytes, is_over) = (self.position().host_bytes, self.is_over());
        if !self.waits() && !self.is_filling() && (self.series.is_due(host_bytes) || is_over) {
            self.take_moment();
        }
        let ended = self
            .run
            .as_ref()
            .filter(|_| is_over && self.result.is_none() && self.failed.is_none());
        if let Some(result) = ended.map(LiveRun::result) {
            self.result = Some(Arc::from(results::cell(&self.plan, &result).to_string()));
        }
        self.arrive();
    }

    /// Tells latencies and wear: of a lane that goes on, from time to time; of one that stands, what there is.
    fn tell_measures(&mut self, works: bool) {
        let requests = self.position().requests;
        let (at, told) = self.measures_told;
        let is_due = !works || self.is_over() || at.elapsed() >= MEASURES_TIME;
        let Some(run) = self.run.as_ref().filter(|_| requests != told && is_due) else {
            return;
        };
        self.wear = Some(Arc::from(results::wear(run.block_erase_counts()).to_string()));
        let page_bytes = self.plan.plan.layout().page_bytes;
        self.latency = run.timed().map(|timed| Arc::from(results::latency(&timed, page_bytes)));
        self.measures_told = (Instant::now(), requests);
    }

    /// Whether a moment that is looked for has come.
    fn arrive(&mut self) {
        let host_bytes = self.position().host_bytes;
        if self.goal.is_some_and(|goal| host_bytes >= goal && !self.is_filling()) || self.is_over() {
            self.goal = None;
        }
    }

    fn take_moment(&mut self) {
        let run = self.run.as_ref().expect("whoever asks has looked");
        let stats = run.stats();
        let owners: Vec<(u64, u64)> = rows(&stats)
            .map(|row| (row.host_bytes_written, row.gc_pages_copied))
            .collect();
        let position = run.position();
        let moment = Moment {
            host_bytes: position.host_bytes,
            media_bytes: stats.media_bytes_written(),
            owners: &owners,
            beside: Beside {
                now_ns: position.now_ns,
                free_units: run.free_units(),
            },
        };
        if self.series.take(&moment) {
            // A page cannot forget every second one.
            self.is_forgotten = true;
            self.epoch += 1;
        }
    }

    fn take_events(&mut self) {
        let Some(run) = &mut self.run else { return };
        let taken = run.take_events();
        let now = run.position();
        let looks =
            self.first_collection.is_none() && !self.had_collected && run.phase() != simulate::live::Phase::Filling;
        let has_collected = looks && collections(run) > 0;
        let is_timed = self.plan.plan.is_timed();
        let handles = self.plan.plan.layout().handles.len();
        if taken.left_out > 0 {
            self.new_left_out += taken.left_out + self.new_events.len() as u64;
            self.new_events.clear();
            self.log.left_out += taken.left_out;
        }
        // Only a collection says when it was; the others happened at about the same time.
        let page_bytes = self.plan.plan.layout().page_bytes;
        let begun_at = now.filled_bytes;
        if has_collected {
            let reclaims = taken.events.iter().filter_map(|event| match &event.event {
                Event::Reclaim(reclaim) => (reclaim.host_pages_written * page_bytes).checked_sub(begun_at),
                _ => None,
            });
            self.first_collection = reclaims.min().or(Some(now.host_bytes));
        }
        for event in &taken.events {
            let mut now_ns = now.now_ns;
            if let Event::Reclaim(reclaim) = &event.event {
                let at = (reclaim.host_pages_written * page_bytes).saturating_sub(begun_at);
                self.events_at = at.clamp(self.events_at, now.host_bytes.max(self.events_at));
                now_ns = if is_timed { reclaim.now } else { 0 };
            }
            let destination = event.destination.map(|unit| unit.0);
            let logged = record(
                &event.event,
                destination,
                handles,
                &mut self.opened_pages,
                self.events_at,
                now_ns,
            );
            self.log.events.push_back(logged);
            self.new_events.push(logged.record);
        }
        self.events_at = now.host_bytes;
        let more = self.log.events.len().saturating_sub(LOG_MAX);
        self.log.events.drain(..more);
        self.log.left_out += more as u64;
    }

    /// Pages that were programmed so far, those of the filling as well.
    fn programmed(&self) -> u64 {
        let Some(run) = &self.run else { return 0 };
        let page_bytes = self.plan.plan.layout().page_bytes;
        let filled = if self.is_filling() {
            0
        } else {
            run.position().filled_bytes
        };
        (run.stats().media_bytes_written() + filled) / page_bytes
    }

    /// How fast it is lately; nothing when it stands still.
    fn measure(&mut self, works: bool) {
        let (at, pages) = self.measured;
        let now = self.programmed();
        let seconds = at.elapsed().as_secs_f64();
        self.measured = (Instant::now(), now);
        let speed = now.saturating_sub(pages) as f64 / seconds.max(1e-6);
        self.pages_per_second = match works && !self.is_over() {
            false => 0.0,
            true if self.pages_per_second == 0.0 => speed,
            true => self.pages_per_second + SPEED_WEIGHT * (speed - self.pages_per_second),
        };
    }

    /// What it is doing, in a session that goes on or not.
    pub fn phase(&self, is_running: bool) -> Phase {
        let Some(run) = &self.run else {
            return if self.failed.is_some() {
                Phase::Failed
            } else {
                Phase::Waiting
            };
        };
        let works = is_running || self.goal.is_some();
        match run.phase() {
            _ if self.failed.is_some() => Phase::Failed,
            simulate::live::Phase::Ended => Phase::Ended,
            simulate::live::Phase::Filling if works => Phase::Filling,
            simulate::live::Phase::Running if works => Phase::Running,
            _ if run.position() == Position::default() => Phase::Waiting,
            _ => Phase::Paused,
        }
    }

    /// Why it cannot go on, if it cannot.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Says why it cannot go on in other words.
    pub fn say_failure(&mut self, say: impl FnOnce(&str) -> String) {
        self.failed = self.failed.as_deref().map(say);
    }

    /// It cannot go on.
    pub fn fail(&mut self, sentence: String) {
        self.failed = Some(sentence);
        self.goal = None;
    }

    /// Looks at all units, if somebody wants to see them.
    fn look(&mut self) {
        let Some(run) = &self.run else {
            self.units = Arc::new(Vec::new());
            return;
        };
        let layout = self.plan.plan.layout();
        self.holdings = Holdings::none(layout);
        let units = units_of(run.units().inspect(|unit| self.holdings.count(unit)), layout);
        self.units = Arc::new(units);
    }

    /// Tells what is new of it; `is_watched`: units too.
    pub fn publish(&mut self, is_running: bool, is_watched: bool) -> Published {
        let works = is_running || self.goal.is_some();
        self.measure(works);
        if is_watched {
            self.tell_measures(works);
            self.look();
        }
        let snapshot = Arc::new(self.snapshot(is_running));
        Published {
            snapshot,
            epoch: self.epoch,
            series: std::mem::take(&mut self.is_forgotten).then(|| self.series.clone()),
            events: std::mem::take(&mut self.new_events),
            events_left_out: std::mem::take(&mut self.new_left_out),
            result: self.result.clone(),
            latency: self.latency.clone(),
            wear: self.wear.clone(),
        }
    }

    fn snapshot(&self, is_running: bool) -> Snapshot {
        let phase = self.phase(is_running);
        let Some(run) = &self.run else {
            let head = Head {
                phase,
                ..Head::default()
            };
            let owners = vec![OwnerRecord::default(); self.holdings.rows.len()];
            return Snapshot {
                head,
                owners,
                units: Arc::clone(&self.units),
            };
        };
        let (stats, position) = (run.stats(), run.position());
        let is_filling = self.is_filling();
        let head = Head {
            phase,
            free_units: run.free_units() as u32,
            host_bytes: position.host_bytes,
            media_bytes: if is_filling { 0 } else { stats.media_bytes_written() },
            filled_bytes: position.filled_bytes,
            now_ns: position.now_ns,
            collections: if is_filling { 0 } else { collections(run) },
            requests: position.requests,
            pages_per_second: self.pages_per_second,
        };
        // The fill before does not count.
        let nothing = OwnerStats::default();
        let counted = |row| if is_filling { &nothing } else { row };
        Snapshot {
            head,
            owners: rows(&stats)
                .zip(&self.holdings.rows)
                .map(|(row, holds)| owner_record(counted(row), holds))
                .collect(),
            units: Arc::clone(&self.units),
        }
    }

    /// What it is, as JSON of the session.
    pub fn description(&self) -> Value {
        let cell = self.plan.plan.cell();
        let forked = self.branch.and_then(|branch| branch.forked);
        let mut lane = drive_json(self.plan.plan.layout());
        lane.extend(object(json!({
            "name": self.plan.order.name,
            "device": cell.key.device,
            "workload": cell.workload_name,
            "scale": self.plan.plan.scale().to_string(),
            "seed": cell.seed,
            "of": self.branch.map(|branch| branch.of),
            "forked": forked.map(|forked| match forked { Forked::Here => "here", Forked::FromStart => "start" }),
            "placements": results::placements(&self.plan),
            "timed": self.plan.plan.is_timed(),
            "write_bytes": self.plan.plan.write_bytes(),
            "settings": results::settings(&self.plan),
            "error": self.failed,
        })));
        Value::Object(lane)
    }

    /// What was measured so far.
    pub fn result(&self) -> Option<CellResult> {
        self.run.as_ref().map(LiveRun::result)
    }

    /// Its events and its series, and what dies and channels did lately, for a trace.
    pub fn history(&self) -> (Log, Series, Activity) {
        let activity = self.run.as_ref().map(LiveRun::activity).unwrap_or_default();
        (self.log.clone(), self.series.clone(), activity)
    }

    /// The moments that pages are not told of yet.
    pub fn series(&self) -> &Series {
        &self.series
    }
}

/// Collections since the workload began; before that, those of the filling.
fn collections(run: &LiveRun) -> u64 {
    let stats = run.stats();
    stats.background_collections + stats.foreground_collections + stats.forced_collections
}

/// What the engine hands to the state.
pub struct Published {
    snapshot: Arc<Snapshot>,
    epoch: u64,
    /// The series, where pages are to forget the one before.
    series: Option<Series>,
    events: Vec<EventRecord>,
    events_left_out: u64,
    result: Option<Arc<str>>,
    latency: Option<Arc<str>>,
    wear: Option<Arc<str>>,
}

impl Published {
    /// Puts it in the place of what was told before of lane `index`, of this name and with this series.
    pub fn put(self, lanes: &mut Vec<LaneState>, index: usize, name: &str, series: &Series) {
        if index == lanes.len() {
            lanes.push(LaneState {
                name: name.to_string(),
                snapshot: Arc::default(),
                epoch: 0,
                series: series.clone(),
                events: EventRing::default(),
                result: None,
                latency: None,
                hosts: None,
                wear: None,
            });
        }
        let lane = &mut lanes[index];
        assert_eq!(lane.name, name, "lanes stand in their order");
        match self.series {
            Some(series) => {
                lane.series = series;
                lane.events.forget();
            }
            None => lane.series.catch_up(series),
        }
        lane.snapshot = self.snapshot;
        lane.epoch = self.epoch;
        lane.events.extend(self.events_left_out, &self.events);
        lane.result = self.result;
        lane.latency = self.latency;
        lane.wear = self.wear;
    }
}
