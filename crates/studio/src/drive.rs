//! Presents a served drive as a session with one lane, which pages monitor and do not control.
//!
//! ```text
//! DriveMonitor (polled ten times a second while a page is connected) -> SessionState -> PageConnection
//! ```
//!
//! The drive's hosts determine its work. [`crate::actions`] has the remaining actions. The session
//! has no order, checkpoints or export.
//!
//! Statistics start at an origin, which is the drive's creation or the latest reset. The server
//! holds the origin, so all pages show the same numbers. The drive's own counters in log pages and
//! metrics ignore it.
//!
//! The engine polls only while a page is connected. Pages receive only sums for the writes of other
//! times.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use ssd::device::Occupancy;
use ssd::{DeviceEvent, DeviceLayout, DeviceStats};
use target::actions::{Actions, unix_ms};
use target::monitor::drive_monitor::{DriveMonitor, DriveView, HostTransport, HostView, HostsView, LatencyPercentiles};
use target::monitor::status::DriveStatus;
use target::monitor::unit_scanner::{OwnerUsage, UnitSnapshot};

use crate::command::EngineCommand;
use crate::frames::{FrameHeader, LanePhase, UnitRecord};
use crate::records::{drive_json, object, owner_record, record, rows, units_of};
use crate::results;
use crate::series::{LaneSample, LaneSeries, SampleExtras};
use crate::shared_session::SharedSession;
use crate::state::{EVENTS_KEPT, LaneSnapshot, LaneState};

/// Poll interval while a page is connected.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Divisor of the capacity. Unobserved writes below this part of the capacity are not reported.
const MISSED_PARTS: u64 = 50;
/// Maximum number of reported periods without a page.
const UNOBSERVED_MAX: usize = 16;
/// Name of the only lane.
const LANE: &str = "";

pub struct MonitoredDrive {
    pub monitor: DriveMonitor,
    pub name: String,
    pub actions: Actions,
}

#[derive(Clone, Debug)]
struct StatisticsOrigin {
    /// Time of the origin, milliseconds since 1970.
    at_unix_ms: u64,
    stats: DeviceStats,
    commands: u64,
}

/// Writes in a period without a page.
#[derive(Clone, Copy, Debug)]
struct UnobservedWrites {
    /// Counters at the last poll before the period.
    from: DriveCounters,
    /// Counters at the first poll after the period.
    to: DriveCounters,
    /// End of the period, milliseconds since 1970.
    until_unix_ms: u64,
}

/// Sums since the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DriveCounters {
    host_bytes: u64,
    media_bytes: u64,
    collections: u64,
}

impl DriveCounters {
    fn from_stats(stats: &DeviceStats) -> DriveCounters {
        DriveCounters {
            host_bytes: stats.host_bytes_written(),
            media_bytes: stats.media_bytes_written(),
            collections: stats.background_collections + stats.foreground_collections + stats.forced_collections,
        }
    }
}

impl UnobservedWrites {
    fn json(&self) -> Value {
        json!({
            "from_host_bytes": self.from.host_bytes,
            "to_host_bytes": self.to.host_bytes,
            "media_bytes": self.to.media_bytes - self.from.media_bytes,
            "collections": self.to.collections - self.from.collections,
            "until_unix_ms": self.until_unix_ms,
        })
    }
}

/// Number of read and write commands since the drive's creation.
fn commands(status: &DriveStatus) -> u64 {
    status.read_commands + status.write_commands
}

pub struct DriveEngine {
    drive: MonitoredDrive,
    shared: Arc<SharedSession>,
    commands: Receiver<EngineCommand>,
    layout: Option<Arc<DeviceLayout>>,
    /// Scan that the unit records were made from.
    scan: Option<Arc<UnitSnapshot>>,
    units: Arc<Vec<UnitRecord>>,
    holdings: Vec<Occupancy>,
    /// Origin of the statistics, `None` for the drive's creation.
    origin: Option<StatisticsOrigin>,
    opened_pages: Vec<u32>,
    hosts: Option<(Arc<HostsView>, Arc<str>)>,
    last_counters: DriveCounters,
    /// No page was connected since the last poll.
    is_unobserved: bool,
    /// Latest periods with writes and without a page, newest last.
    unobserved: Vec<UnobservedWrites>,
    /// Time of the last poll, and the number of programmed pages then.
    measured: Option<(Instant, u64)>,
}

impl DriveEngine {
    /// Creates an engine and polls once, so that the first page receives data immediately.
    pub fn new(drive: MonitoredDrive, shared: Arc<SharedSession>, commands: Receiver<EngineCommand>) -> DriveEngine {
        let mut engine = DriveEngine {
            drive,
            shared,
            commands,
            layout: None,
            scan: None,
            units: Arc::default(),
            holdings: Vec::new(),
            origin: None,
            opened_pages: Vec::new(),
            hosts: None,
            last_counters: DriveCounters::default(),
            // No page saw the writes before the server started.
            is_unobserved: true,
            unobserved: Vec::new(),
            measured: None,
        };
        engine.poll();
        // No page can see the writes that follow, until one connects.
        engine.is_unobserved = true;
        engine
    }

    pub fn run(mut self) {
        let mut polled_at = Instant::now();
        loop {
            let wait = POLL_INTERVAL.saturating_sub(polled_at.elapsed());
            match self.commands.recv_timeout(wait) {
                Ok(EngineCommand::Page(page, _)) => {
                    self.shared.refuse(page, "the page only monitors a served drive. Its hosts control it");
                }
                Ok(EngineCommand::Show) => {
                    if self.is_unobserved {
                        self.poll();
                        polled_at = Instant::now();
                    }
                }
                // The drive keeps the name of its profile. The channel of an export closes without
                // an answer.
                Ok(EngineCommand::Renamed | EngineCommand::Export(_)) => {}
                Ok(EngineCommand::ResetStatistics(to)) => {
                    let at_unix_ms = self.reset_statistics();
                    // The receiver may be gone.
                    let _ = to.try_send(at_unix_ms);
                }
                Ok(EngineCommand::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    match self.shared.is_watched() {
                        true => self.poll(),
                        false => self.is_unobserved = true,
                    }
                    polled_at = Instant::now();
                }
            }
        }
    }

    fn poll(&mut self) {
        let view = self.drive.monitor.poll();
        if self.layout.as_ref() != Some(&view.layout) {
            self.begin(&view);
        }
        self.publish_poll(&view);
    }

    fn reset_statistics(&mut self) -> u64 {
        let view = self.drive.monitor.poll();
        let at_unix_ms = unix_ms(SystemTime::now());
        self.origin =
            Some(StatisticsOrigin { at_unix_ms, stats: view.status.stats.clone(), commands: commands(&view.status) });
        self.begin_counting();
        if self.layout.as_ref() == Some(&view.layout) {
            self.announce(&view.layout);
        } else {
            self.begin(&view);
        }
        self.publish_poll(&view);
        at_unix_ms
    }

    fn publish_poll(&mut self, view: &DriveView) {
        let is_known = |units: &Arc<UnitSnapshot>| self.scan.as_ref().is_some_and(|known| Arc::ptr_eq(known, units));
        if let Some(scan) = view.units.as_ref().filter(|units| !is_known(units)) {
            self.units = Arc::new(units_of(scan.units.iter().copied(), &view.layout));
            self.holdings.clone_from(&scan.holdings);
            self.scan = Some(Arc::clone(scan));
        }
        let counted = self.counted(&view.status);
        let snapshot = Arc::new(self.snapshot(view, &counted));
        let handles = view.layout.handles.len();
        let host_bytes = counted.host_bytes_written();
        let before_origin = view.status.stats.host_bytes_written() - host_bytes;
        let events: Vec<_> = view
            .events
            .events
            .iter()
            .map(|recent| {
                let destination = recent.destination.map(|unit| unit.0);
                let at = match &recent.event {
                    DeviceEvent::Reclaim(reclaim) => {
                        let at = reclaim.host_pages_written * view.layout.page_bytes;
                        at.saturating_sub(before_origin)
                    }
                    _ => host_bytes,
                };
                record(&recent.event, destination, handles, &mut self.opened_pages, at, 0).record
            })
            .collect();
        let hosts = self.hosts_message(view);
        let was_unobserved = std::mem::take(&mut self.is_unobserved);
        let has_missed = was_unobserved && self.record_unobserved(&counted, &view.layout);
        self.last_counters = DriveCounters::from_stats(&counted);
        let owners: Vec<(u64, u64)> = rows(&counted).map(|row| (row.host_bytes_written, row.gc_pages_copied)).collect();
        let moment = LaneSample {
            host_bytes,
            media_bytes: counted.media_bytes_written(),
            owners: &owners,
            extras: SampleExtras { now_ns: 0, free_units: view.status.free_units },
        };
        self.shared.with(|state| {
            let lane = &mut state.lanes[0];
            let is_due = has_missed || lane.series.is_due(moment.host_bytes);
            if is_due && lane.series.add_sample(&moment) {
                // Pages cannot thin their samples, so they must load all again.
                lane.epoch += 1;
            }
            if was_unobserved {
                // Earlier events were missed because no page was connected, not because they were
                // too many.
                lane.events.clear();
            }
            let (left_out, first) = match was_unobserved {
                true => (0, events.len().saturating_sub(EVENTS_KEPT)),
                false => (view.events.left_out, 0),
            };
            lane.events.extend(left_out, &events[first..]);
            lane.snapshot = snapshot;
            lane.messages.hosts = Some(hosts);
            state.phase = LanePhase::Running;
        });
        self.shared.changed();
    }

    /// Starts again after a change of the drive's layout by its hosts, and at the first poll.
    fn begin(&mut self, view: &DriveView) {
        let layout = &view.layout;
        self.layout = Some(Arc::clone(layout));
        self.scan = None;
        self.units = Arc::default();
        self.holdings = OwnerUsage::empty(layout).rows;
        self.opened_pages = vec![0; layout.slices() as usize];
        self.measured = None;
        self.begin_counting();
        self.announce(layout);
    }

    fn begin_counting(&mut self) {
        self.last_counters = DriveCounters::default();
        self.unobserved.clear();
    }

    /// Records the writes since the last poll if the curves would not show them. Returns true in
    /// this case.
    fn record_unobserved(&mut self, counted: &DeviceStats, layout: &DeviceLayout) -> bool {
        let to = DriveCounters::from_stats(counted);
        let mut unobserved =
            UnobservedWrites { from: self.last_counters, to, until_unix_ms: unix_ms(SystemTime::now()) };
        let missed_bytes = to.host_bytes - self.last_counters.host_bytes;
        if missed_bytes <= layout.capacity_bytes() / MISSED_PARTS {
            return false;
        }
        // The poll at the server's start does not end a period.
        if let Some(last) = self.unobserved.pop_if(|last| last.to == self.last_counters) {
            unobserved.from = last.from;
        }
        if self.unobserved.len() == UNOBSERVED_MAX {
            self.unobserved.remove(0);
        }
        self.unobserved.push(unobserved);
        let message = self.message(layout);
        self.shared.with(|state| {
            state.session = message;
            state.version += 1;
        });
        true
    }

    /// Sends pages a new description of the drive, which replaces all earlier state.
    fn announce(&self, layout: &DeviceLayout) {
        let message = self.message(layout);
        let series = LaneSeries::new(layout.handles.len() + 1, layout.capacity_bytes());
        self.shared.with(|state| {
            let before = state.lanes.pop();
            let epoch = before.as_ref().map_or(1, |lane| lane.epoch + 1);
            // The event count continues, because pages know the number of received events.
            let mut events = before.map(|lane| lane.events).unwrap_or_default();
            events.clear();
            state.session = message;
            state.version += 1;
            state.lanes = vec![LaneState { epoch, events, ..LaneState::new(LANE, series) }];
        });
    }

    fn message(&self, layout: &DeviceLayout) -> Arc<str> {
        let mut lane = drive_json(layout);
        lane.extend(object(json!({
            "name": LANE,
            "device": self.drive.name,
            "workload": "",
            "scale": "",
            "seed": 0,
            "of": null,
            "forked": null,
            "placements": [],
            "timed": false,
            "write_bytes": null,
            "settings": {},
            "error": null,
            "since_unix_ms": self.origin.as_ref().map(|origin| origin.at_unix_ms),
            "unwatched": self.unobserved.iter().map(UnobservedWrites::json).collect::<Vec<Value>>(),
        })));
        let message = json!({
            "type": "session",
            "id": self.shared.id,
            "title": format!("{}, as it is served", self.drive.name),
            "lanes": [lane],
            "speed": null,
            "running": true,
        });
        Arc::from(message.to_string())
    }

    /// Counters since the origin.
    fn counted(&self, status: &DriveStatus) -> DeviceStats {
        match &self.origin {
            Some(origin) => status.stats.since(&origin.stats),
            None => status.stats.clone(),
        }
    }

    /// Snapshot of the drive. `stats` are the counters since the origin.
    fn snapshot(&mut self, view: &DriveView, stats: &DeviceStats) -> LaneSnapshot {
        let programmed = view.status.stats.media_bytes_written() / view.layout.page_bytes;
        let before = self.measured.replace((Instant::now(), programmed));
        let pages_per_second = before
            .map_or(0.0, |(at, pages)| programmed.saturating_sub(pages) as f64 / at.elapsed().as_secs_f64().max(1e-3));
        let commands_before = self.origin.as_ref().map_or(0, |origin| origin.commands);
        LaneSnapshot {
            head: FrameHeader {
                phase: LanePhase::Running,
                free_units: u32::try_from(view.status.free_units).unwrap_or(u32::MAX),
                host_bytes: stats.host_bytes_written(),
                media_bytes: stats.media_bytes_written(),
                filled_bytes: 0,
                now_ns: 0,
                collections: DriveCounters::from_stats(stats).collections,
                requests: commands(&view.status) - commands_before,
                pages_per_second,
            },
            owners: rows(stats).zip(&self.holdings).map(|(row, holds)| owner_record(row, holds)).collect(),
            units: Arc::clone(&self.units),
        }
    }

    /// Message about the hosts. It changes once a second and is shared until then.
    fn hosts_message(&mut self, view: &DriveView) -> Arc<str> {
        if let Some((hosts, message)) = &self.hosts
            && Arc::ptr_eq(hosts, &view.hosts)
        {
            return Arc::clone(message);
        }
        let wear = view.units.as_ref().map(|units| results::wear(&units.block_erases));
        let message = json!({
            "type": "hosts",
            "hosts": hosts_json(&view.hosts),
            "wear": wear,
            "faults": view.status.faults,
        });
        let message: Arc<str> = Arc::from(message.to_string());
        self.hosts = Some((Arc::clone(&view.hosts), Arc::clone(&message)));
        message
    }
}

/// A row for each namespace of each host, and one without a namespace for an idle host. A vfio-user
/// socket always has a controller, so it counts as a host only after a guest enabled the
/// controller.
fn hosts_json(view: &HostsView) -> Vec<Value> {
    let latency = |latency: Option<LatencyPercentiles>| {
        latency.map(|its| json!({ "p50": its.p50_ns, "p99": its.p99_ns, "p999": its.p999_ns }))
    };
    let of_host = |host: &HostView| {
        let transport = match host.transport {
            HostTransport::Pcie => "vfio-user",
            HostTransport::Fabrics => "NVMe/TCP",
        };
        let name = if host.host.is_empty() { format!("controller {}", host.controller) } else { host.host.clone() };
        let row = |namespace: Option<u32>, iops: f64, bytes_per_second: f64, its: Option<LatencyPercentiles>| {
            json!({
                "host": name,
                "controller": host.controller,
                "transport": transport,
                "namespace": namespace,
                "iops": iops,
                "bytes_per_second": bytes_per_second,
                "queue_depth": host.queue_depth,
                "latency_ns": latency(its),
            })
        };
        if host.namespaces.is_empty() {
            return vec![row(None, 0.0, 0.0, None)];
        }
        let rows = host.namespaces.iter();
        rows.map(|its| row(Some(its.namespace), its.iops(), its.bytes_per_second(), its.latency)).collect()
    };
    let is_there = |host: &&HostView| host.is_ready || host.transport == HostTransport::Fabrics;
    view.hosts.iter().filter(is_there).flat_map(of_host).collect()
}
