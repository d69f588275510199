//! A served drive as a session of one lane: it is watched, not steered.
//!
//! ```text
//! transport::watched (looks ten times a second, while a page is there) -> State -> Page
//! ```
//!
//! Its hosts say what it does. It has no Order, no checkpoints and no export.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ssd::{Event, Layout};
use transport::census::Units;
use transport::watched::{DriveView, HostView, HostsView, LatencyPercentiles, Transport, Watched};

use crate::engine::Command;
use crate::frames::{Head, OwnerRecord, Phase, UnitRecord};
use crate::records::{drive_json, object, record, rows, units_of};
use crate::series::{Beside, Moment, Series};
use crate::session::Shared;
use crate::state::{EventRing, LaneState, Snapshot};

/// Between two looks at the drive.
const LOOK_TIME: Duration = Duration::from_millis(100);
/// What its only lane is called.
const LANE: &str = "";

/// A drive to watch.
pub struct ServedDrive {
    /// Looks at it.
    pub watched: Watched,
    /// What it is called: its device profile.
    pub name: String,
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
    holdings: Vec<(u32, u64)>,
    opened_pages: Vec<u32>,
    hosts: Option<(Arc<HostsView>, Arc<str>)>,
    /// Pages that were programmed at the last look, and when that was.
    measured: Option<(Instant, u64)>,
}

impl DriveEngine {
    /// An engine that has not looked yet.
    pub fn new(drive: ServedDrive, shared: Arc<Shared>, commands: Receiver<Command>) -> DriveEngine {
        DriveEngine {
            drive,
            shared,
            commands,
            layout: None,
            census: None,
            units: Arc::default(),
            holdings: Vec::new(),
            opened_pages: Vec::new(),
            hosts: None,
            measured: None,
        }
    }

    /// Looks, until it is told to end.
    pub fn run(mut self) {
        self.look();
        let mut looked_at = Instant::now();
        loop {
            let wait = LOOK_TIME.saturating_sub(looked_at.elapsed());
            match self.commands.recv_timeout(wait) {
                Ok(Command::Want(page, _)) => {
                    let sentence = "a served drive is watched here; what it does is its hosts' affair";
                    self.shared.with(|state| state.refuse(page, sentence.to_string()));
                    self.shared.changed();
                }
                // A page that has come is shown the next look; whoever waits for an export hears that there is none.
                Ok(Command::Show | Command::Export(_)) => {}
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    if self.shared.is_watched() {
                        self.look();
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
        let is_known = |units: &Arc<Units>| self.census.as_ref().is_some_and(|known| Arc::ptr_eq(known, units));
        if let Some(census) = view.units.as_ref().filter(|units| !is_known(units)) {
            let units = units_of(census.units.iter().copied(), &view.layout, &mut self.holdings);
            self.units = Arc::new(units);
            self.census = Some(Arc::clone(census));
        }
        let snapshot = Arc::new(self.snapshot(&view));
        let handles = view.layout.handles.len();
        let host_bytes = view.status.stats.host_bytes_written();
        let events: Vec<_> = view
            .events
            .events
            .iter()
            .map(|recent| {
                let destination = recent.destination.map(|unit| unit.0);
                let at = match &recent.event {
                    Event::Reclaim(reclaim) => reclaim.host_pages_written * view.layout.page_bytes,
                    _ => host_bytes,
                };
                record(&recent.event, destination, handles, &mut self.opened_pages, at, 0).record
            })
            .collect();
        let hosts = self.hosts_message(&view);
        let owners: Vec<(u64, u64)> = rows(&view.status.stats)
            .map(|row| (row.host_bytes_written, row.gc_pages_copied))
            .collect();
        let moment = Moment {
            host_bytes,
            media_bytes: view.status.stats.media_bytes_written(),
            owners: &owners,
            beside: Beside {
                now_ns: 0,
                free_units: view.status.free_units,
            },
        };
        self.shared.with(|state| {
            let lane = &mut state.lanes[0];
            if lane.series.is_due(moment.host_bytes) && lane.series.take(&moment) {
                // A page cannot forget every second one.
                lane.epoch += 1;
            }
            lane.events.extend(view.events.left_out, &events);
            lane.snapshot = snapshot;
            lane.hosts = Some(hosts);
            state.phase = Phase::Running;
        });
        self.shared.changed();
    }

    /// The drive is another one than before: its hosts configured placement anew, or it is looked at for the first time.
    fn begin(&mut self, view: &DriveView) {
        let layout = &view.layout;
        let owners = layout.handles.len() + 1;
        self.layout = Some(Arc::clone(layout));
        self.census = None;
        self.units = Arc::default();
        self.holdings = vec![(0, 0); owners];
        self.opened_pages = vec![0; layout.slices() as usize];
        self.measured = None;
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
        })));
        let message = json!({
            "type": "session",
            "id": self.shared.id,
            "title": format!("{}, as it is served", self.drive.name),
            "lanes": [lane],
            "speed": null,
            "running": true,
        });
        let series = Series::new(owners, layout.capacity_bytes());
        self.shared.with(|state| {
            let epoch = state.lanes.first().map_or(1, |lane| lane.epoch + 1);
            state.session = Arc::from(message.to_string());
            state.version += 1;
            state.lanes = vec![LaneState {
                name: LANE.to_string(),
                snapshot: Arc::default(),
                epoch,
                series,
                events: EventRing::default(),
                result: None,
                latency: None,
                hosts: None,
            }];
        });
    }

    fn snapshot(&mut self, view: &DriveView) -> Snapshot {
        let stats = &view.status.stats;
        let programmed = stats.media_bytes_written() / view.layout.page_bytes;
        let before = self.measured.replace((Instant::now(), programmed));
        let pages_per_second = before.map_or(0.0, |(at, pages)| {
            programmed.saturating_sub(pages) as f64 / at.elapsed().as_secs_f64().max(1e-3)
        });
        let owner = |(row, (units, valid_pages)): (&ssd::OwnerStats, &(u32, u64))| OwnerRecord {
            host_bytes: row.host_bytes_written,
            copied_out_pages: row.gc_pages_copied,
            received_pages: row.gc_pages_received,
            valid_pages: *valid_pages,
            units: *units,
            reclaimed: row.units_reclaimed,
        };
        Snapshot {
            head: Head {
                phase: Phase::Running,
                free_units: u32::try_from(view.status.free_units).unwrap_or(u32::MAX),
                host_bytes: stats.host_bytes_written(),
                media_bytes: stats.media_bytes_written(),
                filled_bytes: 0,
                now_ns: 0,
                collections: stats.background_collections + stats.foreground_collections + stats.forced_collections,
                requests: view.status.read_commands + view.status.write_commands,
                pages_per_second,
            },
            owners: rows(stats).zip(&self.holdings).map(owner).collect(),
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
        let wear = view.wear().map(|wear| {
            json!({
                "fewest": wear.least_erases,
                "mean": wear.erases as f64 / wear.blocks.max(1) as f64,
                "most": wear.most_erases,
            })
        });
        let message = json!({ "type": "hosts", "hosts": hosts_json(&view.hosts), "wear": wear });
        let message: Arc<str> = Arc::from(message.to_string());
        self.hosts = Some((Arc::clone(&view.hosts), Arc::clone(&message)));
        message
    }
}

/// A row for each namespace of each host; for a host that has done nothing, one without.
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
    view.hosts.iter().flat_map(of_host).collect()
}
