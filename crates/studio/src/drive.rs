//! A served drive as a session of one lane: it is watched, not steered.
//!
//! ```text
//! target::monitor::units (looks ten times a second, while a page is there) -> State -> Page
//! ```
//!
//! Its hosts say what it does; what else may be done to it is [`crate::actions`]'s. It has no Order, no checkpoints and no export.
//!
//! What it counts is counted from an origin: the drive's beginning, or the moment at which somebody has reset the statistics. The
//! origin is the server's, so all pages show the same; the drive's own counters, in log pages and metrics, know nothing of it.
//!
//! Nobody looks while there is no page. Pages are told what was written meanwhile, as sums.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use ssd::device::Occupancy;
use ssd::{Event, Layout, Stats};
use target::actions::{Actions, unix_ms};
use target::monitor::hosts::{Holdings, Units};
use target::monitor::status::Status;
use target::monitor::units::{DriveView, HostView, HostsView, LatencyPercentiles, Transport, Watched};

use crate::command::Command;
use crate::frames::{Head, Phase, UnitRecord};
use crate::records::{drive_json, object, owner_record, record, rows, units_of};
use crate::results;
use crate::series::{Beside, Moment, Series};
use crate::shared::Shared;
use crate::state::{EVENTS_KEPT, LaneState, Snapshot};

/// Between two looks at the drive, while a page is there.
pub const LOOK_TIME: Duration = Duration::from_millis(100);
/// Parts of the capacity: less than one of them written without a page is not missed.
const MISSED_PARTS: u64 = 50;
/// Times without a page that are told of.
const UNWATCHED_MAX: usize = 16;
/// What its only lane is called.
const LANE: &str = "";

/// A drive to watch.
pub struct ServedDrive {
    /// Looks at it.
    pub watched: Watched,
    /// What it is called: its device profile.
    pub name: String,
    /// What may be done to it.
    pub actions: Actions,
}

/// From where statistics are counted.
#[derive(Clone, Debug)]
struct Origin {
    /// When that was, in milliseconds since 1970.
    at_unix_ms: u64,
    /// The drive's counters then.
    stats: Stats,
    commands: u64,
}

/// What happened while there was no page.
#[derive(Clone, Copy, Debug)]
struct Unwatched {
    /// Counters when somebody had looked last.
    from: Counters,
    /// Counters when somebody looked again.
    to: Counters,
    /// When that was, in milliseconds since 1970.
    until_unix_ms: u64,
}

/// Sums from the origin on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    host_bytes: u64,
    media_bytes: u64,
    collections: u64,
}

impl Counters {
    fn of(stats: &Stats) -> Counters {
        Counters {
            host_bytes: stats.host_bytes_written(),
            media_bytes: stats.media_bytes_written(),
            collections: stats.background_collections + stats.foreground_collections + stats.forced_collections,
        }
    }
}

impl Unwatched {
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

/// Commands that read or wrote, since the drive was made.
fn commands(status: &Status) -> u64 {
    status.read_commands + status.write_commands
}

/// See the module.
pub struct DriveEngine {
    drive: ServedDrive,
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    layout: Option<Arc<Layout>>,
    /// The census that the records are of.
    census: Option<Arc<Units>>,
    units: Arc<Vec<UnitRecord>>,
    holdings: Vec<Occupancy>,
    /// `None`: the drive's beginning.
    origin: Option<Origin>,
    opened_pages: Vec<u32>,
    hosts: Option<(Arc<HostsView>, Arc<str>)>,
    /// Counters at the last look.
    seen: Counters,
    /// Whether there was no page since the last look.
    is_away: bool,
    /// The last times without a page in which hosts wrote, the newest last.
    unwatched: Vec<Unwatched>,
    /// Pages that were programmed at the last look, and when that was.
    measured: Option<(Instant, u64)>,
}

impl DriveEngine {
    /// An engine that has looked once: whoever asks first is told about the drive, too.
    pub fn new(drive: ServedDrive, shared: Arc<Shared>, commands: Receiver<Command>) -> DriveEngine {
        let mut engine = DriveEngine {
            drive,
            shared,
            commands,
            layout: None,
            census: None,
            units: Arc::default(),
            holdings: Vec::new(),
            origin: None,
            opened_pages: Vec::new(),
            hosts: None,
            seen: Counters::default(),
            // What the drive did before it was served, nobody saw.
            is_away: true,
            unwatched: Vec::new(),
            measured: None,
        };
        engine.look();
        engine
    }

    /// Looks, until it is told to end.
    pub fn run(mut self) {
        let mut looked_at = Instant::now();
        loop {
            let wait = LOOK_TIME.saturating_sub(looked_at.elapsed());
            match self.commands.recv_timeout(wait) {
                Ok(Command::Page(page, _)) => {
                    let sentence = "a served drive is watched here; what it does is its hosts' affair";
                    self.shared.with(|state| state.refuse(page, sentence.to_string()));
                    self.shared.changed();
                }
                Ok(Command::Show) => {
                    if self.is_away {
                        self.look();
                        looked_at = Instant::now();
                    }
                }
                // A drive has the name of its profile; whoever waits for an export hears that there is none.
                Ok(Command::Renamed | Command::Export(_)) => {}
                Ok(Command::ResetStatistics(to)) => {
                    let at_unix_ms = self.reset_statistics();
                    // Who asked may have gone.
                    let _ = to.try_send(at_unix_ms);
                }
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    match self.shared.is_watched() {
                        true => self.look(),
                        false => self.is_away = true,
                    }
                    looked_at = Instant::now();
                }
            }
        }
    }

    /// Looks at the drive, and has pages told.
    fn look(&mut self) {
        let view = self.drive.watched.look();
        if self.layout.as_ref() != Some(&view.layout) {
            self.begin(&view);
        }
        self.show(&view);
    }

    /// Counts from now on, and has pages told.
    fn reset_statistics(&mut self) -> u64 {
        let view = self.drive.watched.look();
        let at_unix_ms = unix_ms(SystemTime::now());
        self.origin = Some(Origin {
            at_unix_ms,
            stats: view.status.stats.clone(),
            commands: commands(&view.status),
        });
        self.begin_counting();
        if self.layout.as_ref() == Some(&view.layout) {
            self.announce(&view.layout);
        } else {
            self.begin(&view);
        }
        self.show(&view);
        at_unix_ms
    }

    /// Has pages told of a moment of the drive.
    fn show(&mut self, view: &DriveView) {
        let is_known = |units: &Arc<Units>| self.census.as_ref().is_some_and(|known| Arc::ptr_eq(known, units));
        if let Some(census) = view.units.as_ref().filter(|units| !is_known(units)) {
            self.units = Arc::new(units_of(census.units.iter().copied(), &view.layout));
            self.holdings.clone_from(&census.holdings);
            self.census = Some(Arc::clone(census));
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
                    Event::Reclaim(reclaim) => {
                        let at = reclaim.host_pages_written * view.layout.page_bytes;
                        at.saturating_sub(before_origin)
                    }
                    _ => host_bytes,
                };
                record(&recent.event, destination, handles, &mut self.opened_pages, at, 0).record
            })
            .collect();
        let hosts = self.hosts_message(view);
        let was_away = std::mem::take(&mut self.is_away);
        let has_missed = was_away && self.note_unwatched(&counted, &view.layout);
        self.seen = Counters::of(&counted);
        let owners: Vec<(u64, u64)> = rows(&counted)
            .map(|row| (row.host_bytes_written, row.gc_pages_copied))
            .collect();
        let moment = Moment {
            host_bytes,
            media_bytes: counted.media_bytes_written(),
            owners: &owners,
            beside: Beside {
                now_ns: 0,
                free_units: view.status.free_units,
            },
        };
        self.shared.with(|state| {
            let lane = &mut state.lanes[0];
            let is_due = has_missed || lane.series.is_due(moment.host_bytes);
            if is_due && lane.series.take(&moment) {
                // A page cannot forget every second one.
                lane.epoch += 1;
            }
            if was_away {
                // What came before the events that are kept was not too fast for a page: there was none.
                lane.events.forget();
            }
            let (left_out, first) = match was_away {
                true => (0, events.len().saturating_sub(EVENTS_KEPT)),
                false => (view.events.left_out, 0),
            };
            lane.events.extend(left_out, &events[first..]);
            lane.snapshot = snapshot;
            lane.hosts = Some(hosts);
            state.phase = Phase::Running;
        });
        self.shared.changed();
    }

    /// The drive is another one than before: its hosts configured placement anew, or it is looked at for the first time.
    fn begin(&mut self, view: &DriveView) {
        let layout = &view.layout;
        self.layout = Some(Arc::clone(layout));
        self.census = None;
        self.units = Arc::default();
        self.holdings = Holdings::none(layout).rows;
        self.opened_pages = vec![0; layout.slices() as usize];
        self.measured = None;
        self.begin_counting();
        self.announce(layout);
    }

    /// Curves begin anew.
    fn begin_counting(&mut self) {
        self.seen = Counters::default();
        self.unwatched.clear();
    }

    /// Notes what was written since the last look, if there was no page and it would be missed in the curves; says whether it would.
    fn note_unwatched(&mut self, counted: &Stats, layout: &Layout) -> bool {
        let to = Counters::of(counted);
        let mut unwatched = Unwatched {
            from: self.seen,
            to,
            until_unix_ms: unix_ms(SystemTime::now()),
        };
        let missed_bytes = to.host_bytes - self.seen.host_bytes;
        if missed_bytes <= layout.capacity_bytes() / MISSED_PARTS {
            return false;
        }
        // The look when the server started is no watching.
        if let Some(last) = self.unwatched.pop_if(|last| last.to == self.seen) {
            unwatched.from = last.from;
        }
        if self.unwatched.len() == UNWATCHED_MAX {
            self.unwatched.remove(0);
        }
        self.unwatched.push(unwatched);
        let message = self.message(layout);
        self.shared.with(|state| {
            state.session = message;
            state.version += 1;
        });
        true
    }

    /// Tells pages what the drive is and from where it is counted, in place of all that they were told before.
    fn announce(&self, layout: &Layout) {
        let message = self.message(layout);
        let series = Series::new(layout.handles.len() + 1, layout.capacity_bytes());
        self.shared.with(|state| {
            let before = state.lanes.pop();
            let epoch = before.as_ref().map_or(1, |lane| lane.epoch + 1);
            // It goes on counting, because pages know how many events they were told of.
            let mut events = before.map(|lane| lane.events).unwrap_or_default();
            events.forget();
            state.session = message;
            state.version += 1;
            state.lanes = vec![LaneState {
                name: LANE.to_string(),
                snapshot: Arc::default(),
                epoch,
                series,
                events,
                result: None,
                latency: None,
                hosts: None,
                wear: None,
            }];
        });
    }

    /// What the drive is and from where it is counted.
    fn message(&self, layout: &Layout) -> Arc<str> {
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
            "unwatched": self.unwatched.iter().map(Unwatched::json).collect::<Vec<Value>>(),
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

    /// The drive's counters from the origin on.
    fn counted(&self, status: &Status) -> Stats {
        match &self.origin {
            Some(origin) => status.stats.since(&origin.stats),
            None => status.stats.clone(),
        }
    }

    /// A moment; `stats` are its counters from the origin on.
    fn snapshot(&mut self, view: &DriveView, stats: &Stats) -> Snapshot {
        let programmed = view.status.stats.media_bytes_written() / view.layout.page_bytes;
        let before = self.measured.replace((Instant::now(), programmed));
        let pages_per_second = before.map_or(0.0, |(at, pages)| {
            programmed.saturating_sub(pages) as f64 / at.elapsed().as_secs_f64().max(1e-3)
        });
        let commands_before = self.origin.as_ref().map_or(0, |origin| origin.commands);
        Snapshot {
            head: Head {
                phase: Phase::Running,
                free_units: u32::try_from(view.status.free_units).unwrap_or(u32::MAX),
                host_bytes: stats.host_bytes_written(),
                media_bytes: stats.media_bytes_written(),
                filled_bytes: 0,
                now_ns: 0,
                collections: Counters::of(stats).collections,
                requests: commands(&view.status) - commands_before,
                pages_per_second,
            },
            owners: rows(stats)
                .zip(&self.holdings)
                .map(|(row, holds)| owner_record(row, holds))
                .collect(),
            units: Arc::clone(&self.units),
        }
    }

    /// What hosts do, once a second; the same message as before as long as there is nothing newer.
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

/// A row for each namespace of each host; for a host that has done nothing, one without. A vfio-user socket has its controller before a
/// guest is there and after it has gone: without a guest that enabled it there is no host.
fn hosts_json(view: &HostsView) -> Vec<Value> {
    let latency = |latency: Option<LatencyPercentiles>| {
        latency.map(|its| json!({ "p50": its.p50_ns, "p99": its.p99_ns, "p999": its.p999_ns }))
    };
    let of_host = |host: &HostView| {
        let transport = match host.transport {
            Transport::Pcie => "vfio-user",
            Transport::Fabrics => "NVMe/TCP",
        };
        let name = if host.host.is_empty() {
            format!("controller {}", host.controller)
        } else {
            host.host.clone()
        };
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
        rows.map(|its| row(Some(its.namespace), its.iops(), its.bytes_per_second(), its.latency))
            .collect()
    };
    let is_there = |host: &&HostView| host.is_ready || host.transport == Transport::Fabrics;
    view.hosts.iter().filter(is_there).flat_map(of_host).collect()
}
