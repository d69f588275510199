//! Monitoring of a served drive, in one form for all viewers and tables.
//!
//! ```text
//! poll -> current counters and events  (the drive locked once, to copy short rows)
//!      -> reclaim units                (scanned in parts, at most ten times a second)
//!      -> activity of hosts            (once a second, by controller: differences of counters)
//! ```
//!
//! Monitoring polls the drive at any rate. The drive never notifies observers, and counts the
//! events that a monitor missed. Monitoring costs the drive only the time of its lock. This module
//! knows neither web pages nor sockets, and changes no state.

use std::collections::BTreeMap;
use std::sync::Arc;

use nvme::traffic::{CommandKind, LatencyHistogram, NamespaceTraffic, QueueDepth};
use nvme::{Controller, ControllerKind, Subsystem};
use ssd::{DeviceLayout, EventsSince, Nanos};

pub use nvme::HostTransport;

use crate::monitor::status::DriveStatus;
use crate::monitor::unit_scanner::{ReclaimUnitScanner, UnitSnapshot};
use crate::{ServerClock, SharedSubsystem, lock, yield_to_waiters};

/// Shortest time over which the rates of hosts are measured.
const WINDOW_NS: Nanos = 1_000_000_000;

/// Percentiles of command latencies, with a resolution of one eighth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyPercentiles {
    /// 50th percentile.
    pub p50_ns: Nanos,
    /// 99th percentile.
    pub p99_ns: Nanos,
    /// 99.9th percentile.
    pub p999_ns: Nanos,
}

impl LatencyPercentiles {
    /// Percentiles of a histogram, `None` without commands.
    pub fn from_histogram(histogram: &LatencyHistogram) -> Option<LatencyPercentiles> {
        Some(LatencyPercentiles {
            p50_ns: histogram.quantile_ns(0.5)?,
            p99_ns: histogram.quantile_ns(0.99)?,
            p999_ns: histogram.quantile_ns(0.999)?,
        })
    }
}

/// Recent activity of a host on a namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct NamespaceView {
    pub namespace: u32,
    /// Commands per second of each kind, in the order of [`CommandKind::ALL`].
    pub commands_per_second: [f64; 3],
    pub read_bytes_per_second: f64,
    pub write_bytes_per_second: f64,
    /// Latency from the execution of a command until it may complete. `None` without commands, or
    /// if the drive has no timing.
    pub latency: Option<LatencyPercentiles>,
}

impl NamespaceView {
    /// Commands per second of all kinds.
    pub fn iops(&self) -> f64 {
        self.commands_per_second.iter().sum()
    }

    pub fn bytes_per_second(&self) -> f64 {
        self.read_bytes_per_second + self.write_bytes_per_second
    }
}

/// A connected host. Each connection of a host has a separate row.
#[derive(Clone, Debug, PartialEq)]
pub struct HostView {
    /// Controller identifier (CNTLID).
    pub controller: u16,
    /// Host NQN, empty on PCI Express, whose hosts have none.
    pub host: String,
    pub transport: HostTransport,
    /// Start of the connection, in nanoseconds since the server's start.
    pub connected_at_ns: Nanos,
    /// True if the host has enabled its controller.
    pub is_ready: bool,
    /// Average number of submitted but incomplete I/O commands of all queues, sampled when the
    /// drive fetches commands. 0 if it fetched none.
    pub queue_depth: f64,
    /// Namespaces that the host has used since it connected.
    pub namespaces: Vec<NamespaceView>,
}

/// Recent activity of hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostsView {
    /// Time of the measurement, in nanoseconds since the server's start.
    pub at_ns: Nanos,
    /// Window of rates and latencies: the time since the previous measurement, at least a second. 0
    /// at the first measurement, which has no rates.
    pub window_ns: Nanos,
    /// The hosts in the order of their controllers.
    pub hosts: Vec<HostView>,
}

/// A view of a served drive at one moment.
#[derive(Clone, Debug)]
pub struct DriveView {
    /// Counters, watermarks, free space and faults. [`DriveStatus::at`] is the time of the view.
    pub status: DriveStatus,
    /// Layout of the drive. A host can change it, after which earlier units and owners are invalid.
    pub layout: Arc<DeviceLayout>,
    /// The reclaim units at their last scan, possibly at another moment or unchanged since the
    /// previous view. `None` if their layout differs from `layout`.
    pub units: Option<Arc<UnitSnapshot>>,
    /// Events of reclaim units since the previous view. As in simulations, only reclaims have a
    /// time. The others happened at about the time of their neighbours.
    pub events: EventsSince,
    /// Activity of hosts, unchanged for less than a second.
    pub hosts: Arc<HostsView>,
}

pub struct DriveMonitor {
    shared: SharedSubsystem,
    clock: ServerClock,
    census: ReclaimUnitScanner,
    layout: Arc<DeviceLayout>,
    events_seen: u64,
    hosts: HostActivity,
}

impl DriveMonitor {
    /// Starts to monitor a drive. The first view has the events that the drive still holds.
    pub fn new(shared: SharedSubsystem, clock: ServerClock) -> DriveMonitor {
        let layout = Arc::new(lock(&shared).device().layout().clone());
        DriveMonitor {
            census: ReclaimUnitScanner::new(Arc::clone(&shared), clock),
            hosts: HostActivity::default(),
            events_seen: 0,
            layout,
            shared,
            clock,
        }
    }

    pub fn poll(&mut self) -> DriveView {
        let hosts = self.hosts.poll(&self.shared, self.clock);
        let units = self.census.poll();
        yield_to_waiters();
        let subsystem = lock(&self.shared);
        let status = DriveStatus::new(&subsystem, self.clock.now());
        let device = subsystem.device();
        let other = (*device.layout() != *self.layout).then(|| device.layout().clone());
        let recent = device.sink().recent();
        let events = recent.since(std::mem::replace(&mut self.events_seen, recent.end()));
        drop(subsystem);
        if let Some(layout) = other {
            self.layout = Arc::new(layout);
        }
        let is_of_this = |units: &Arc<UnitSnapshot>| *units.layout == *self.layout;
        DriveView { status, layout: Arc::clone(&self.layout), units: units.filter(is_of_this), events, hosts }
    }
}

/// A controller and its connection time. Its number may later belong to another host.
type ControllerKey = (u16, Nanos);

#[derive(Clone, Default)]
struct ControllerCounts {
    namespaces: BTreeMap<u32, NamespaceTraffic>,
    queues: Vec<QueueDepth>,
}

/// Activity of hosts: the counters of the last measurement, and its result.
#[derive(Default)]
struct HostActivity {
    counted: BTreeMap<ControllerKey, ControllerCounts>,
    last: Option<Arc<HostsView>>,
}

impl HostActivity {
    fn poll(&mut self, shared: &SharedSubsystem, clock: ServerClock) -> Arc<HostsView> {
        let now = clock.now();
        let window_ns = match &self.last {
            None => 0,
            Some(last) if now.saturating_sub(last.at_ns) < WINDOW_NS => return Arc::clone(last),
            Some(last) => now - last.at_ns,
        };
        let (before, nothing) = (std::mem::take(&mut self.counted), ControllerCounts::default());
        let mut hosts = Vec::new();
        let mut next = 1;
        // Copies the counters of one controller per lock, because hundreds may exist.
        while let Some((mut view, counted, is_timed)) = copy_of_next(shared, next) {
            assert!(view.controller >= next, "controller {} comes after controller {next}", view.controller);
            next = view.controller + 1;
            let key = (view.controller, view.connected_at_ns);
            if window_ns > 0 {
                view.take_rates(&counted, before.get(&key).unwrap_or(&nothing), window_ns, is_timed);
            }
            let twice = self.counted.insert(key, counted);
            assert!(twice.is_none(), "controller {} is measured once", key.0);
            hosts.push(view);
        }
        let view = Arc::new(HostsView { at_ns: now, window_ns, hosts });
        self.last = Some(Arc::clone(&view));
        view
    }
}

/// The first controller of a host with an identifier of at least `next`, its counters, and whether
/// the drive has timing.
fn copy_of_next(shared: &SharedSubsystem, next: u16) -> Option<(HostView, ControllerCounts, bool)> {
    yield_to_waiters();
    let subsystem: &Subsystem = &lock(shared);
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
    let counted = ControllerCounts {
        namespaces: namespaces.map(|(nsid, row)| (nsid, row.clone())).collect(),
        queues: controller.traffic.queues().to_vec(),
    };
    Some((view, counted, subsystem.device().config().timing.is_some()))
}

impl HostView {
    /// Computes the rates from two sets of counters.
    fn take_rates(&mut self, now: &ControllerCounts, before: &ControllerCounts, window_ns: Nanos, is_timed: bool) {
        let seconds = window_ns as f64 / 1e9;
        let nothing = NamespaceTraffic::default();
        for (&namespace, row) in &now.namespaces {
            let since = row.since(before.namespaces.get(&namespace).unwrap_or(&nothing));
            let per_second = |counts: [u64; 3]| counts.map(|count| count as f64 / seconds);
            let bytes_per_second = per_second(since.bytes);
            // Commands that complete without delay give no latency.
            let takes_time = is_timed || since.latency.sum_ns() > 0;
            self.namespaces.push(NamespaceView {
                namespace,
                commands_per_second: per_second(since.commands),
                read_bytes_per_second: bytes_per_second[CommandKind::Read as usize],
                write_bytes_per_second: bytes_per_second[CommandKind::Write as usize],
                latency: LatencyPercentiles::from_histogram(&since.latency).filter(|_| takes_time),
            });
        }
        let before = before.queues.iter().chain(std::iter::repeat(&QueueDepth { samples: 0, commands: 0 }));
        let means = now.queues.iter().zip(before).map(|(now, before)| {
            assert!(
                now.samples >= before.samples && now.commands >= before.commands,
                "{} samples and {} commands of a queue do not become fewer",
                before.samples,
                before.commands
            );
            let (samples, commands) = (now.samples - before.samples, now.commands - before.commands);
            commands as f64 / samples.max(1) as f64
        });
        self.queue_depth = means.sum();
    }
}
