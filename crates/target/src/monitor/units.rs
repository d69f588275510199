//! A served drive as one who watches it sees it: the same whether it is drawn in a browser or put into a table.
//!
//! ```text
//! look -> counters and events of now   (the drive held once, for copies of short rows)
//!      -> reclaim units                (census: in parts, at most ten times a second)
//!      -> what hosts do                (once a second, controller by controller: differences of counters)
//! ```
//!
//! Nothing is told by the drive: whoever watches looks, as often as he likes, and what he did not see is counted. Watching costs the
//! drive nothing but the time for which a look holds it. It knows neither pages nor sockets, and changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use nvme::fdp::FdpEvent;
use nvme::traffic::{CommandKind, LatencyHistogram, NamespaceTraffic, QueueDepth};
use nvme::{Controller, ControllerKind, Subsystem};
use ssd::{EventsSince, Layout, Nanos, Ring, UnitView, Wear};

pub use nvme::Transport;

use crate::monitor::hosts::{Census, Units};
use crate::monitor::status::Status;
use crate::{Clock, Shared, give_way, locked};

/// Time over which the rates of hosts are taken, at least.
const WINDOW_NS: Nanos = 1_000_000_000;

/// Latencies of commands: half, 99 of a hundred, 999 of a thousand took no longer, to an eighth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyPercentiles {
    /// Half of them.
    pub p50_ns: Nanos,
    /// 99 of a hundred.
    pub p99_ns: Nanos,
    /// 999 of a thousand.
    pub p999_ns: Nanos,
}

impl LatencyPercentiles {
    /// Those of a histogram; `None` without commands.
    pub fn of(histogram: &LatencyHistogram) -> Option<LatencyPercentiles> {
        Some(LatencyPercentiles {
            p50_ns: histogram.quantile_ns(0.5)?,
            p99_ns: histogram.quantile_ns(0.99)?,
            p999_ns: histogram.quantile_ns(0.999)?,
        })
    }
}

/// What a host has a namespace do, lately.
#[derive(Clone, Debug, PartialEq)]
pub struct NamespaceView {
    pub namespace: u32,
    /// Commands in a second of each kind, in the order of [`CommandKind::ALL`].
    pub commands_per_second: [f64; 3],
    /// Bytes read and written in a second.
    pub read_bytes_per_second: f64,
    /// Bytes written in a second.
    pub write_bytes_per_second: f64,
    /// How long its commands took from when they were carried out until they could complete; `None` if there were none, or none took
    /// any time because the drive has no timing.
    pub latency: Option<LatencyPercentiles>,
}

impl NamespaceView {
    /// Commands in a second, all kinds together.
    pub fn iops(&self) -> f64 {
        self.commands_per_second.iter().sum()
    }

    /// Bytes read and written in a second.
    pub fn bytes_per_second(&self) -> f64 {
        self.read_bytes_per_second + self.write_bytes_per_second
    }
}

/// A host that is connected; one that connected several times has a row for each.
#[derive(Clone, Debug, PartialEq)]
pub struct HostView {
    /// Its controller (CNTLID).
    pub controller: u16,
    /// Its NQN; empty on PCI Express, where hosts have none.
    pub host: String,
    /// How it is connected.
    pub transport: Transport,
    /// Since when, in nanoseconds since the server's start.
    pub connected_at_ns: Nanos,
    /// Whether it has enabled its controller.
    pub is_ready: bool,
    /// I/O commands that were submitted and not completed, on average over the times at which the drive took some of them, all queues
    /// together; 0 if it took none.
    pub queue_depth: f64,
    /// The namespaces that it has used since it connected.
    pub namespaces: Vec<NamespaceView>,
}

/// What hosts do, lately.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostsView {
    /// When this was, in nanoseconds since the server's start.
    pub at_ns: Nanos,
    /// The time before over which rates and latencies are taken: a second, or since the look before if that is longer ago; 0 at the
    /// first look, at which there are none.
    pub window_ns: Nanos,
    /// The hosts, in the order of their controllers.
    pub hosts: Vec<HostView>,
}

/// A moment of a served drive.
#[derive(Clone, Debug)]
pub struct DriveView {
    /// Counters, marks, free room, faults; when this was is [`Status::at`].
    pub status: Status,
    /// How the drive is divided. A host can change it: then it is another one, and the units and owners before mean nothing any more.
    pub layout: Arc<Layout>,
    /// The reclaim units at the last look at them, which may be another moment; the same as in the view before where nobody looked.
    /// `None` if they are of another division than `layout`.
    pub units: Option<Arc<Units>>,
    /// What became of reclaim units since the view before. As in the lab: a reclaim says when it was, the others were at about the time
    /// of their neighbours.
    pub events: EventsSince,
    /// FDP events that were logged for hosts since the view before.
    pub host_events: FdpEventsSince,
    /// Those for the controller log.
    pub controller_events: FdpEventsSince,
    /// What hosts do; the same as in the view before where less than a second has gone by.
    pub hosts: Arc<HostsView>,
}

impl DriveView {
    /// The reclaim units, in the order of the flash; none if they are not known.
    pub fn units(&self) -> &[UnitView] {
        self.units.as_ref().map_or(&[], |units| &units.units)
    }

    /// How often blocks were erased, if that is known.
    pub fn wear(&self) -> Option<Wear> {
        self.units.as_ref().map(|units| units.wear)
    }
}

/// New entries of an FDP event log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FdpEventsSince {
    /// The entries, oldest first.
    pub events: Vec<FdpEvent>,
    /// How many there were before them that are lost.
    pub left_out: u64,
}

/// How far somebody has read a log of FDP events.
#[derive(Clone, Copy, Debug, Default)]
struct Read(u64);

impl Read {
    fn on(&mut self, log: &Ring<FdpEvent>) -> FdpEventsSince {
        // A log begins anew when a host configures Flexible Data Placement.
        let end = std::mem::replace(&mut self.0, log.end());
        let end = if end > log.end() { 0 } else { end };
        FdpEventsSince {
            events: log.since(end).cloned().collect(),
            left_out: log.lost_since(end),
        }
    }
}

/// Watches a served drive. See the module.
pub struct Watched {
    shared: Shared,
    clock: Clock,
    census: Census,
    layout: Arc<Layout>,
    events_seen: u64,
    host_events: Read,
    controller_events: Read,
    hosts: Hosts,
}

impl Watched {
    /// Watches a drive from now on; the first view has the events that are still known.
    pub fn new(shared: Shared, clock: Clock) -> Watched {
        let layout = Arc::new(locked(&shared).device().layout().clone());
        Watched {
            census: Census::new(Arc::clone(&shared), clock),
            hosts: Hosts::default(),
            events_seen: 0,
            host_events: Read::default(),
            controller_events: Read::default(),
            layout,
            shared,
            clock,
        }
    }

    /// The drive as it is now.
    pub fn look(&mut self) -> DriveView {
        let hosts = self.hosts.look(&self.shared, self.clock);
        let units = self.census.look();
        give_way();
        let subsystem = locked(&self.shared);
        let status = Status::of(&subsystem, self.clock.now());
        let device = subsystem.device();
        let other = (*device.layout() != *self.layout).then(|| device.layout().clone());
        let recent = device.sink().recent();
        let events = recent.since(std::mem::replace(&mut self.events_seen, recent.end()));
        let fdp = &subsystem.state().fdp;
        let host_events = self.host_events.on(fdp.events.host());
        let controller_events = self.controller_events.on(fdp.events.controller());
        drop(subsystem);
        if let Some(layout) = other {
            self.layout = Arc::new(layout);
        }
        let is_of_this = |units: &Arc<Units>| *units.layout == *self.layout;
        DriveView {
            status,
            layout: Arc::clone(&self.layout),
            units: units.filter(is_of_this),
            events,
            host_events,
            controller_events,
            hosts,
        }
    }
}

/// A controller, and since when it is there: its number may be another host's later.
type ControllerKey = (u16, Nanos);

/// The counters of a controller at a look.
#[derive(Clone, Default)]
struct Counted {
    namespaces: BTreeMap<u32, NamespaceTraffic>,
    queues: Vec<QueueDepth>,
}

/// What hosts do: the counters at the last look, and what came of them.
#[derive(Default)]
struct Hosts {
    counted: BTreeMap<ControllerKey, Counted>,
    last: Option<Arc<HostsView>>,
}

impl Hosts {
    fn look(&mut self, shared: &Shared, clock: Clock) -> Arc<HostsView> {
        let now = clock.now();
        let window_ns = match &self.last {
            None => 0,
            Some(last) if now.saturating_sub(last.at_ns) < WINDOW_NS => return Arc::clone(last),
            Some(last) => now - last.at_ns,
        };
        let (before, nothing) = (std::mem::take(&mut self.counted), Counted::default());
        let mut hosts = Vec::new();
        let mut next = 1;
        // Copies of one controller's counters at a time: there may be hundreds.
        while let Some((mut view, counted, is_timed)) = copy_of_next(shared, next) {
            next = view.controller + 1;
            let key = (view.controller, view.connected_at_ns);
            if window_ns > 0 {
                view.take_rates(&counted, before.get(&key).unwrap_or(&nothing), window_ns, is_timed);
            }
            self.counted.insert(key, counted);
            hosts.push(view);
        }
        let view = Arc::new(HostsView {
            at_ns: now,
            window_ns,
            hosts,
        });
        self.last = Some(Arc::clone(&view));
        view
    }
}

/// The first controller of a host from this one on, its counters, and whether the drive has timing.
fn copy_of_next(shared: &Shared, next: u16) -> Option<(HostView, Counted, bool)> {
    give_way();
    let subsystem: &Subsystem = &locked(shared);
    let is_host = |its: &&Controller| its.established && its.kind == ControllerKind::Io;
    let is_meant = |controller: &&Controller| controller.id >= next && is_host(controller);
    let controller = subsystem.controllers().find(is_meant)?;
    let view = HostView {
        controller: controller.id,
        host: controller.host.nqn.clone(),
        transport: controller.transport,
        connected_at_ns: controller.connected_at,
        is_ready: controller.is_ready(),
        queue_depth: 0.0,
        namespaces: Vec::new(),
    };
    let namespaces = controller.traffic.namespaces();
    let counted = Counted {
        namespaces: namespaces.map(|(nsid, row)| (nsid, row.clone())).collect(),
        queues: controller.traffic.queues().to_vec(),
    };
    Some((view, counted, subsystem.device().config().timing.is_some()))
}

impl HostView {
    /// What its counters say of the time since they were `before`.
    fn take_rates(&mut self, now: &Counted, before: &Counted, window_ns: Nanos, is_timed: bool) {
        let seconds = window_ns as f64 / 1e9;
        let nothing = NamespaceTraffic::default();
        for (&namespace, row) in &now.namespaces {
            let since = row.since(before.namespaces.get(&namespace).unwrap_or(&nothing));
            let per_second = |counts: [u64; 3]| counts.map(|count| count as f64 / seconds);
            let bytes_per_second = per_second(since.bytes);
            // What is done at once is no measurement.
            let takes_time = is_timed || since.latency.sum_ns() > 0;
            self.namespaces.push(NamespaceView {
                namespace,
                commands_per_second: per_second(since.commands),
                read_bytes_per_second: bytes_per_second[CommandKind::Read as usize],
                write_bytes_per_second: bytes_per_second[CommandKind::Write as usize],
                latency: LatencyPercentiles::of(&since.latency).filter(|_| takes_time),
            });
        }
        let before = before
            .queues
            .iter()
            .chain(std::iter::repeat(&QueueDepth { looks: 0, commands: 0 }));
        let means = now.queues.iter().zip(before).map(|(now, before)| {
            let (looks, commands) = (now.looks - before.looks, now.commands - before.commands);
            commands as f64 / looks.max(1) as f64
        });
        self.queue_depth = means.sum();
    }
}
