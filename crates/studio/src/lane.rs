//! Lane of a session: a run with its history and its state for pages.
//!
//! ```text
//! LiveRun -> advance -> events (log, new ones), samples of the series -> LaneSnapshot -> LaneState
//! ```
//!
//! The engine's thread owns the lane. A lane does not depend on pages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::HumanBytes;
use experiment::LabError;
use serde_json::{Value, json};
use simulate::live::{ForkStart, LiveRun, MemoryAccount, MemoryShare, RecentActivity, RunPhase, RunPosition};
use simulate::run::{MemoryNeed, RunResult};
use ssd::{DeviceEvent, OwnerStats};
use target::monitor::unit_scanner::OwnerUsage;

use crate::frames::{FrameHeader, LanePhase, OwnerRecord, UnitEventRecord, UnitRecord};
use crate::records::{LoggedEvent, drive_json, object, owner_record, record, rows, units_of};
use crate::results;
use crate::series::{LaneSample, LaneSeries, SampleExtras};
use crate::session_spec::LanePlan;
use crate::state::{LaneMessages, LaneSnapshot, LaneState};

/// Maximum events kept for a trace.
const LOG_MAX: usize = 20_000;
/// Memory of a lane's events, series and page state, bytes.
const LANE_STATE_BYTES: u64 = 8 << 20;
/// Interval between two messages about latencies and wear of a running lane.
const MEASURES_INTERVAL: Duration = Duration::from_secs(1);
/// Weight of the latest measurement in the displayed speed.
const SPEED_WEIGHT: f64 = 0.3;

/// Reserves memory for a lane: its run and its page state. Checkpoints of other lanes are dropped
/// for it.
pub fn reserve(memory: &MemoryAccount, need: &MemoryNeed) -> Result<MemoryShare, LabError> {
    let bytes = need.bytes().saturating_add(LANE_STATE_BYTES);
    memory.reserve(bytes).map_err(|left| {
        let problem = format!(
            "the run needs {}, but the sessions have {} left. Run a smaller scaled model (scale 1/512) or a smaller \
             workload, or end another session",
            HumanBytes(bytes),
            HumanBytes(left)
        );
        LabError::invalid("memory", problem)
    })
}

#[derive(Clone, Debug, Default)]
pub struct LaneEvents {
    /// Events, oldest first.
    pub events: VecDeque<LoggedEvent>,
    /// Number of events that are not kept.
    pub left_out: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneFork {
    pub of: usize,
    pub at_host_bytes: u64,
    /// Kind of the fork, once it is done.
    pub forked: Option<ForkStart>,
}

pub struct Lane {
    pub plan: LanePlan,
    pub branch: Option<LaneFork>,
    /// Position of a seek, which has priority over play and speed.
    pub goal: Option<u64>,
    /// Host bytes written at the first garbage collection, if it has occurred. A fork made
    /// after its parent's first collection has `None`.
    pub first_collection: Option<u64>,
    /// The drive had collected before this run started.
    had_collected: bool,
    run: Option<LiveRun>,
    failed: Option<String>,
    messages: LaneMessages,
    /// Time of the last message about latencies and wear, and the number of requests then.
    measures_sent: (Instant, u64),
    epoch: u64,
    /// Time series, including samples that pages have not received.
    pub series: LaneSeries,
    is_forgotten: bool,
    log: LaneEvents,
    new_events: Vec<UnitEventRecord>,
    new_left_out: u64,
    /// Page counts of the opened units, by unit.
    opened_pages: Vec<u32>,
    /// Host bytes written when events were last taken.
    events_at: u64,
    units: Arc<Vec<UnitRecord>>,
    holdings: OwnerUsage,
    measured: (Instant, u64),
    pages_per_second: f64,
    /// Memory reservation, held for the life of the lane.
    _share: MemoryShare,
}

impl Lane {
    pub fn new(plan: LanePlan, branch: Option<LaneFork>, share: MemoryShare) -> Lane {
        let layout = plan.plan.layout();
        let owners = layout.handles.len() + 1;
        Lane {
            branch,
            goal: None,
            first_collection: None,
            had_collected: false,
            run: None,
            failed: None,
            messages: LaneMessages::default(),
            measures_sent: (Instant::now(), 0),
            epoch: 1,
            series: LaneSeries::new(owners, layout.capacity_bytes()),
            is_forgotten: true,
            log: LaneEvents::default(),
            new_events: Vec::new(),
            new_left_out: 0,
            opened_pages: vec![0; layout.slices() as usize],
            events_at: 0,
            units: Arc::new(Vec::new()),
            holdings: OwnerUsage::empty(layout),
            measured: (Instant::now(), 0),
            pages_per_second: 0.0,
            _share: share,
            plan,
        }
    }

    /// Takes a run that no page has seen.
    pub fn set_run(&mut self, run: LiveRun) {
        self.first_collection = None;
        self.had_collected = collections(&run) > 0;
        self.run = Some(run);
        self.reset_viewers();
        self.record_advance();
    }

    /// Returns to the state before the fork.
    pub fn wait(&mut self) {
        assert!(self.branch.is_some(), "only a fork waits, for its parent");
        self.run = None;
        self.goal = None;
        self.units = Arc::new(Vec::new());
        self.reset_viewers();
        self.series.truncate_after(0);
    }

    pub fn run(&self) -> Option<&LiveRun> {
        self.run.as_ref()
    }

    pub fn waits(&self) -> bool {
        self.run.is_none()
    }

    pub fn position(&self) -> RunPosition {
        self.run.as_ref().map(LiveRun::position).unwrap_or_default()
    }

    pub fn is_over(&self) -> bool {
        self.failed.is_some() || self.run.as_ref().is_some_and(|run| run.phase() == RunPhase::Ended)
    }

    pub fn is_filling(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.phase() == RunPhase::Filling)
    }

    /// Invalidates the state that pages received.
    fn reset_viewers(&mut self) {
        self.epoch += 1;
        self.is_forgotten = true;
        self.messages = LaneMessages::default();
        self.measures_sent = (Instant::now(), 0);
        self.failed = None;
        self.new_events.clear();
        self.events_at = self.position().host_bytes;
        self.measured = (Instant::now(), self.programmed());
    }

    /// Advances until the host has written this number of bytes, this number of requests is done,
    /// or some time has passed.
    pub fn advance(&mut self, host_bytes: u64, requests: u64) {
        let Some(run) = &mut self.run else { return };
        if let Err(error) = run.advance_briefly(host_bytes, requests) {
            self.failed = Some(error.to_string());
        }
        self.record_advance();
    }

    /// Restores an earlier state, from which the lane advances to the position.
    pub fn seek(&mut self, host_bytes: u64) {
        let Some(run) = &mut self.run else { return };
        let before = run.position();
        match run.begin_seek(host_bytes) {
            Ok(()) if run.position() == before => {}
            Ok(()) => {
                let now = run.position().host_bytes;
                self.series.truncate_after(host_bytes.max(now));
                self.log.left_out += self.log.events.len() as u64;
                self.log.events.clear();
                let _ = self.run.as_mut().map(LiveRun::take_events);
                self.reset_viewers();
            }
            Err(error) => self.failed = Some(error.to_string()),
        }
        self.goal = Some(host_bytes);
        self.finish_seek();
    }

    /// Records events, samples and results after an advance.
    fn record_advance(&mut self) {
        self.take_events();
        let (host_bytes, is_over) = (self.position().host_bytes, self.is_over());
        if !self.waits() && !self.is_filling() && (self.series.is_due(host_bytes) || is_over) {
            self.record_sample();
        }
        let ended = self.run.as_ref().filter(|_| is_over && self.messages.result.is_none() && self.failed.is_none());
        if let Some(result) = ended.map(LiveRun::result) {
            self.messages.result = Some(Arc::from(results::cell(&self.plan, &result).to_string()));
        }
        self.finish_seek();
    }

    /// Updates latencies and wear, at intervals for a running lane and immediately for a paused
    /// one.
    fn update_measures(&mut self, is_advancing: bool) {
        let requests = self.position().requests;
        let (sent_at, sent_requests) = self.measures_sent;
        let is_due = !is_advancing || self.is_over() || sent_at.elapsed() >= MEASURES_INTERVAL;
        let Some(run) = self.run.as_ref().filter(|_| requests != sent_requests && is_due) else {
            return;
        };
        self.messages.wear = Some(Arc::from(results::wear(run.block_erase_counts()).to_string()));
        let page_bytes = self.plan.plan.layout().page_bytes;
        self.messages.latency = run.timed().map(|timed| Arc::from(results::latency(&timed, page_bytes)));
        self.measures_sent = (Instant::now(), requests);
    }

    fn finish_seek(&mut self) {
        let host_bytes = self.position().host_bytes;
        if self.goal.is_some_and(|goal| host_bytes >= goal && !self.is_filling()) || self.is_over() {
            self.goal = None;
        }
    }

    fn record_sample(&mut self) {
        let run = self.run.as_ref().expect("the caller checked that the lane has a run");
        let stats = run.stats();
        let owners: Vec<(u64, u64)> = rows(&stats).map(|row| (row.host_bytes_written, row.gc_pages_copied)).collect();
        let position = run.position();
        let sample = LaneSample {
            host_bytes: position.host_bytes,
            media_bytes: stats.media_bytes_written(),
            owners: &owners,
            extras: SampleExtras { now_ns: position.now_ns, free_units: run.free_units() },
        };
        if self.series.add_sample(&sample) {
            // Pages cannot thin their samples, so they must load all again.
            self.is_forgotten = true;
            self.epoch += 1;
        }
    }

    fn take_events(&mut self) {
        let Some(run) = &mut self.run else { return };
        let taken = run.take_events();
        let now = run.position();
        let is_searching = self.first_collection.is_none() && !self.had_collected && run.phase() != RunPhase::Filling;
        let has_collected = is_searching && collections(run) > 0;
        let is_timed = self.plan.plan.is_timed();
        let handles = self.plan.plan.layout().handles.len();
        if taken.left_out > 0 {
            self.new_left_out += taken.left_out + self.new_events.len() as u64;
            self.new_events.clear();
            self.log.left_out += taken.left_out;
        }
        // Only collections have a position. Other events occurred at about the same position.
        let page_bytes = self.plan.plan.layout().page_bytes;
        let begun_at = now.filled_bytes;
        if has_collected {
            let reclaims = taken.events.iter().filter_map(|event| match &event.event {
                DeviceEvent::Reclaim(reclaim) => (reclaim.host_pages_written * page_bytes).checked_sub(begun_at),
                _ => None,
            });
            self.first_collection = reclaims.min().or(Some(now.host_bytes));
        }
        for event in &taken.events {
            let mut now_ns = now.now_ns;
            if let DeviceEvent::Reclaim(reclaim) = &event.event {
                let at = (reclaim.host_pages_written * page_bytes).saturating_sub(begun_at);
                self.events_at = at.clamp(self.events_at, now.host_bytes.max(self.events_at));
                now_ns = if is_timed { reclaim.now } else { 0 };
            }
            let destination = event.destination.map(|unit| unit.0);
            let logged = record(&event.event, destination, handles, &mut self.opened_pages, self.events_at, now_ns);
            self.log.events.push_back(logged);
            self.new_events.push(logged.record);
        }
        self.events_at = now.host_bytes;
        let more = self.log.events.len().saturating_sub(LOG_MAX);
        self.log.events.drain(..more);
        self.log.left_out += more as u64;
    }

    /// Number of programmed pages so far, including the fill.
    fn programmed(&self) -> u64 {
        let Some(run) = &self.run else { return 0 };
        let page_bytes = self.plan.plan.layout().page_bytes;
        let filled = if self.is_filling() { 0 } else { run.position().filled_bytes };
        (run.stats().media_bytes_written() + filled) / page_bytes
    }

    /// Updates the recent speed, which is 0 for a paused lane.
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

    pub fn phase(&self, is_running: bool) -> LanePhase {
        let Some(run) = &self.run else {
            return if self.failed.is_some() { LanePhase::Failed } else { LanePhase::Waiting };
        };
        let works = is_running || self.goal.is_some();
        match run.phase() {
            _ if self.failed.is_some() => LanePhase::Failed,
            RunPhase::Ended => LanePhase::Ended,
            RunPhase::Filling if works => LanePhase::Filling,
            RunPhase::Running if works => LanePhase::Running,
            _ if run.position() == RunPosition::default() => LanePhase::Waiting,
            _ => LanePhase::Paused,
        }
    }

    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    pub fn reword_failure(&mut self, say: impl FnOnce(&str) -> String) {
        self.failed = self.failed.as_deref().map(say);
    }

    pub fn fail(&mut self, sentence: String) {
        self.failed = Some(sentence);
        self.goal = None;
    }

    fn scan_units(&mut self) {
        let Some(run) = &self.run else {
            self.units = Arc::new(Vec::new());
            return;
        };
        let layout = self.plan.plan.layout();
        self.holdings = OwnerUsage::empty(layout);
        let units = units_of(run.units().inspect(|unit| self.holdings.count(unit)), layout);
        self.units = Arc::new(units);
    }

    /// Returns the updates. They include the units if a page is connected (`is_watched`).
    pub fn publish(&mut self, is_running: bool, is_watched: bool) -> LaneUpdates {
        let is_advancing = is_running || self.goal.is_some();
        self.measure(is_advancing);
        if is_watched {
            self.update_measures(is_advancing);
            self.scan_units();
        }
        let snapshot = Arc::new(self.snapshot(is_running));
        LaneUpdates {
            snapshot,
            epoch: self.epoch,
            series: std::mem::take(&mut self.is_forgotten).then(|| self.series.clone()),
            events: std::mem::take(&mut self.new_events),
            events_left_out: std::mem::take(&mut self.new_left_out),
            messages: self.messages.clone(),
        }
    }

    fn snapshot(&self, is_running: bool) -> LaneSnapshot {
        let phase = self.phase(is_running);
        let Some(run) = &self.run else {
            let head = FrameHeader { phase, ..FrameHeader::default() };
            let owners = vec![OwnerRecord::default(); self.holdings.rows.len()];
            return LaneSnapshot { head, owners, units: Arc::clone(&self.units) };
        };
        let (stats, position) = (run.stats(), run.position());
        let is_filling = self.is_filling();
        let head = FrameHeader {
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
        // Counters of the fill are not shown.
        let nothing = OwnerStats::default();
        let counted = |row| if is_filling { &nothing } else { row };
        LaneSnapshot {
            head,
            owners: rows(&stats)
                .zip(&self.holdings.rows)
                .map(|(row, holds)| owner_record(counted(row), holds))
                .collect(),
            units: Arc::clone(&self.units),
        }
    }

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
            "forked": forked.map(|forked| match forked { ForkStart::Here => "here", ForkStart::FromStart => "start" }),
            "placements": results::placements(&self.plan),
            "timed": self.plan.plan.is_timed(),
            "write_bytes": self.plan.plan.write_bytes(),
            "settings": results::settings(&self.plan),
            "error": self.failed,
        })));
        Value::Object(lane)
    }

    pub fn result(&self) -> Option<RunResult> {
        self.run.as_ref().map(LiveRun::result)
    }

    /// Events, series and recent work of dies and channels, for a trace.
    pub fn history(&self) -> (LaneEvents, LaneSeries, RecentActivity) {
        let activity = self.run.as_ref().map(LiveRun::activity).unwrap_or_default();
        (self.log.clone(), self.series.clone(), activity)
    }
}

/// Garbage collections since the workload started. During the fill, collections of the fill.
fn collections(run: &LiveRun) -> u64 {
    let stats = run.stats();
    stats.background_collections + stats.foreground_collections + stats.forced_collections
}

/// Updates that the engine hands to the state.
pub struct LaneUpdates {
    snapshot: Arc<LaneSnapshot>,
    epoch: u64,
    /// Complete series, if pages must drop the previous one.
    series: Option<LaneSeries>,
    events: Vec<UnitEventRecord>,
    events_left_out: u64,
    messages: LaneMessages,
}

impl LaneUpdates {
    pub fn apply(self, lanes: &mut Vec<LaneState>, index: usize, name: &str, series: &LaneSeries) {
        if index == lanes.len() {
            lanes.push(LaneState::new(name, series.clone()));
        }
        let lane = &mut lanes[index];
        assert_eq!(lane.name, name, "lanes stand in their order");
        match self.series {
            Some(series) => {
                lane.series = series;
                lane.events.clear();
            }
            None => lane.series.catch_up(series),
        }
        lane.snapshot = self.snapshot;
        lane.epoch = self.epoch;
        lane.events.extend(self.events_left_out, &self.events);
        lane.messages = self.messages;
    }
}
