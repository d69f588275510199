//! Monitoring of a served drive. Two hosts write through both transports, and the view agrees with
//! the device's counters, its reclaim units, and the FDP logs.

mod small_drive;
#[path = "../../nvme/tests/common/timing.rs"]
mod times;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use initiator::command::{admin_entry, block_command, write_command};
use initiator::pcie::{DriverOptions, NvmeDriver};
use initiator::tcp::{CommandData, HostOptions, RemoteController, TcpQueue};
use nvme::fdp::kind;
use nvme::traffic::CommandKind;
use nvme::{HostTransport, Subsystem, SubsystemConfig, media};
use nvme_spec::{AdminOpcode, IoOpcode, Status, SubmissionEntry};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use small_drive::{CAPACITY_BYTES, PAGE_BYTES, config};
use ssd::{DeviceEvent, DeviceStats};
use target::monitor::drive_monitor::{DriveMonitor, DriveView, HostView, HostsView};
use target::storage::backend::MemoryBackend;
use target::tcp::{TcpOptions, TcpServer};
use target::vfio_user::{VfioUserOptions, VfioUserServer};
use target::{ServerClock, SharedSubsystem, lock};
use tempfile::TempDir;

const SEED: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(60);
const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-00000000000a";
/// Bytes of a write.
const WRITE_BYTES: u64 = 256 << 10;
const WRITE_PAGES: u32 = (WRITE_BYTES / PAGE_BYTES) as u32;

/// A drive served through both transports.
struct Target {
    shared: SharedSubsystem,
    clock: ServerClock,
    tcp: TcpServer,
    folder: TempDir,
    _vfio_user: VfioUserServer,
}

impl Target {
    fn start(config: SubsystemConfig) -> Target {
        let memory = MemoryBackend::new(media::bytes_for(CAPACITY_BYTES));
        let subsystem = Subsystem::new(config, Box::new(memory)).expect("the drive works");
        let (shared, clock) = (Arc::new(Mutex::new(subsystem)), ServerClock::start());
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("nvme.sock");
        let options = VfioUserOptions::default();
        let vfio_user = VfioUserServer::start(&socket, Arc::clone(&shared), clock, options).expect("a server");
        let loopback = TcpOptions::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let tcp = TcpServer::start(loopback, Arc::clone(&shared), clock).expect("a server");
        Target { shared, clock, tcp, folder, _vfio_user: vfio_user }
    }

    fn over_tcp(&self) -> (RemoteController, TcpQueue) {
        let nqn = lock(&self.shared).config().identity.nqn.clone();
        let options = HostOptions {
            host_nqn: HOST.to_string(),
            timeout: PATIENCE,
            ..HostOptions::new(self.tcp.local_address(), &nqn)
        };
        let mut controller = RemoteController::connect(&options).expect("a controller");
        controller.set_queue_count(1).expect("a queue count");
        let queue = controller.io_queue(1, 16).expect("a queue");
        (controller, queue)
    }

    fn over_vfio_user(&self) -> NvmeDriver {
        let socket = self.folder.path().join("nvme.sock");
        let mut driver = NvmeDriver::start(&socket, DriverOptions::default()).expect("the drive comes up");
        driver.create_queues(1, 64, Some(1)).expect("a queue pair");
        driver
    }

    fn watched(&self) -> DriveMonitor {
        DriveMonitor::new(Arc::clone(&self.shared), self.clock)
    }
}

fn write_over_tcp(queue: &mut TcpQueue, entry: SubmissionEntry) {
    let done = queue.command(entry, CommandData::ToController(vec![0xab; WRITE_BYTES as usize]));
    assert_eq!(done.expect("a completion").status(), Status::SUCCESS);
}

/// Polls the monitor until a condition holds.
fn eventually(watched: &mut DriveMonitor, what: &str, is: impl Fn(&DriveView) -> bool) -> DriveView {
    let start = Instant::now();
    loop {
        let view = watched.poll();
        if is(&view) {
            return view;
        }
        assert!(start.elapsed() < PATIENCE, "{what} is not seen: {:?}", view.status);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Enables events of both placement handles of namespace 1.
fn enable_events(controller: &mut RemoteController) {
    for handle in 0..2 {
        let entry = SubmissionEntry {
            nsid: 1.into(),
            cdw10: 0x1e.into(),
            cdw11: (1 << 16 | handle).into(),
            cdw12: 1.into(),
            ..admin_entry(AdminOpcode::SetFeatures)
        };
        let done = controller.admin(entry, CommandData::ToController(vec![kind::MEDIA_REALLOCATED]));
        assert_eq!(done.expect("a completion").status(), Status::SUCCESS);
    }
}

#[test]
fn the_view_agrees_with_the_counters_and_the_logs() {
    let target = Target::start(config(0));
    let mut watched = target.watched();
    let first = watched.poll();
    assert_eq!((first.hosts.window_ns, first.events.left_out), (0, 0));
    let mut events = first.events.events;
    let (mut controller, mut queue) = target.over_tcp();
    enable_events(&mut controller);
    let mut driver = target.over_vfio_user();
    let buffer = driver.allocate(WRITE_BYTES);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    // 2.5 times the drive's capacity, so that GC runs.
    for turn in 0..CAPACITY_BYTES * 5 / 2 / WRITE_BYTES {
        let place = random.random_range(0..CAPACITY_BYTES / WRITE_BYTES) * u64::from(WRITE_PAGES);
        if turn % 2 == 0 {
            write_over_tcp(&mut queue, write_command(1, place, WRITE_PAGES, Some(0)));
        } else {
            let mut entry = write_command(1, place, WRITE_PAGES, Some(1));
            driver.set_prps(&mut entry, buffer, WRITE_BYTES);
            let done = driver.command(1, entry).expect("a completion");
            assert_eq!(done.status.status(), Status::SUCCESS);
        }
        if turn % 16 == 0 {
            let view = watched.poll();
            assert_eq!(view.events.left_out, 0);
            events.extend(view.events.events);
        }
    }
    let view = watched.poll();
    events.extend(view.events.events.iter().cloned());

    let (stats, written) = {
        let subsystem = lock(&target.shared);
        (subsystem.device().stats().clone(), subsystem.state().smart.host_bytes_written)
    };
    assert_eq!(view.status.stats, stats);
    assert_eq!(stats.host_bytes_written(), written);
    check_events(&target, &stats, &events.iter().map(|recent| recent.event.clone()).collect::<Vec<_>>());
    for recent in &events {
        let copied = matches!(&recent.event, DeviceEvent::Reclaim(reclaim) if reclaim.pages_copied > 0);
        assert_eq!(recent.destination.is_some(), copied, "{recent:?}");
    }
    check_units(&target, &mut watched);
    check_hosts(&target, &view, written);
}

/// The events agree with the counters and with the log for hosts.
fn check_events(target: &Target, stats: &DeviceStats, events: &[DeviceEvent]) {
    let mut folded = DeviceStats::new(stats.page_bytes, stats.handles.len() as u16).with_overhead(stats.overhead);
    events.iter().for_each(|event| folded.apply(event));
    for (owner, row) in &mut folded.handles.iter_mut().zip(&stats.handles) {
        owner.host_bytes_written = row.host_bytes_written;
        owner.host_pages_written = row.host_pages_written;
        owner.host_pages_absorbed = row.host_pages_absorbed;
    }
    assert_eq!(folded, *stats, "what the host wrote is all that events do not tell");
    assert!(stats.background_collections + stats.foreground_collections > 0, "{stats:?}");
    let reallocated =
        events.iter().filter(|event| matches!(event, DeviceEvent::Reclaim(reclaim) if reclaim.pages_copied > 0));
    let subsystem = lock(&target.shared);
    assert_eq!(subsystem.state().fdp.events.controller().end(), reallocated.count() as u64);
}

/// A scan of the reclaim units that began after the last write shows their current state.
fn check_units(target: &Target, watched: &mut DriveMonitor) {
    let now = target.clock.now();
    let is_new = |view: &DriveView| view.units.as_ref().is_some_and(|units| units.began_ns > now);
    let view = eventually(watched, "a new look at all units", is_new);
    let subsystem = lock(&target.shared);
    let device = subsystem.device();
    let units = view.units.as_ref().expect("it was waited for");
    assert!(device.units().eq(units.units.iter().copied()));
    assert_eq!(units.holdings, device.occupancy());
    assert_eq!(*view.layout, *device.layout());
    let wear = units.wear;
    let erased = wear.erases * u64::from(device.layout().block_pages);
    assert_eq!(erased, device.stats().total().pages_erased);
    assert_eq!(wear.most_erases, device.block_erase_counts().iter().copied().max().unwrap_or(0));
    assert_eq!(wear.fewest_erases, device.block_erase_counts().iter().copied().min().unwrap_or(0));
    let free = device.free_slices() / u64::from(device.layout().slices_per_superblock);
    assert_eq!(view.status.free_units, free);
    assert!(view.status.background_watermark_units >= view.status.foreground_watermark_units);
}

/// The controllers' counters of their hosts sum up to all written data.
fn check_hosts(target: &Target, view: &DriveView, written: u64) {
    let subsystem = lock(&target.shared);
    let rows = subsystem.controllers().flat_map(|controller| controller.traffic.namespaces());
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), 2, "two hosts that write to a namespace");
    let bytes: u64 = rows.iter().map(|(_, row)| row.bytes[CommandKind::Write as usize]).sum();
    assert_eq!(bytes, written);
    let commands: u64 = rows.iter().map(|(_, row)| row.commands.iter().sum::<u64>()).sum();
    assert_eq!(commands, written / WRITE_BYTES);
    let counted: u64 = view.status.latencies.iter().map(|histogram| histogram.count()).sum();
    assert_eq!(counted, commands);
}

fn tcp_host(hosts: &HostsView) -> Option<&HostView> {
    hosts.hosts.iter().find(|host| host.transport == HostTransport::Fabrics)
}

#[test]
fn rates_and_latencies_are_those_of_the_window() {
    const WRITES: u64 = 40;
    const WRITE_NS: u64 = 200_000;
    let mut config = config(0);
    config.device.timing = Some(times::controller_alone(1, WRITE_NS));
    let target = Target::start(config);
    let (_controller, mut queue) = target.over_tcp();
    let driver = target.over_vfio_user();
    let mut watched = target.watched();
    let before = watched.poll().hosts;
    let [one, other] = [&before.hosts[0], &before.hosts[1]];
    assert_ne!(one.transport, other.transport);
    let host = tcp_host(&before).expect("it is connected");
    assert_eq!((host.host.as_str(), host.is_ready, host.queue_depth), (HOST, true, 0.0));
    for turn in 0..WRITES {
        write_over_tcp(&mut queue, write_command(1, turn * u64::from(WRITE_PAGES), WRITE_PAGES, None));
    }
    let view = eventually(&mut watched, "the next second", |view| view.hosts.at_ns > before.at_ns);
    let hosts = &view.hosts;
    assert_eq!(hosts.window_ns, hosts.at_ns - before.at_ns);
    assert!(hosts.window_ns >= 1_000_000_000);
    let seconds = hosts.window_ns as f64 / 1e9;
    let host = tcp_host(hosts).expect("it is connected");
    let [row] = &host.namespaces[..] else { panic!("it uses one namespace: {host:?}") };
    assert_eq!(row.namespace, 1);
    let near = |one: f64, other: u64| (one * seconds - other as f64).abs() < 1e-3;
    assert!(near(row.iops(), WRITES), "{row:?}");
    assert!(near(row.write_bytes_per_second, WRITES * WRITE_BYTES), "{row:?}");
    assert_eq!((row.commands_per_second[CommandKind::Read as usize], row.read_bytes_per_second), (0.0, 0.0));
    let latency = row.latency.expect("the drive has timing");
    let about = WRITE_NS..WRITE_NS * 5 / 4;
    assert!(about.contains(&latency.p50_ns), "{latency:?}");
    assert!(latency.p50_ns <= latency.p99_ns && latency.p99_ns <= latency.p999_ns, "{latency:?}");
    assert!((host.queue_depth - 1.0).abs() < 1e-9, "one command after the other: {host:?}");
    // An idle host has no traffic, and a disconnected one is not listed.
    let idle = hosts.hosts.iter().find(|host| host.transport == HostTransport::Pcie);
    assert!(idle.is_some_and(|host| host.namespaces.is_empty() && host.host.is_empty()));
    drop(driver);
    let gone = |view: &DriveView| view.hosts.at_ns > hosts.at_ns;
    let view = eventually(&mut watched, "another second", gone);
    let host = tcp_host(&view.hosts).expect("it is connected");
    assert_eq!((host.namespaces[0].iops(), host.namespaces[0].latency, host.queue_depth), (0.0, None, 0.0));
}

#[test]
fn commands_that_fail_and_those_for_all_namespaces_are_no_traffic_of_one() {
    let target = Target::start(config(0));
    let (controller, mut queue) = target.over_tcp();
    let beyond = block_command(IoOpcode::Read, 1, CAPACITY_BYTES / PAGE_BYTES, 1);
    let done = queue.command(beyond, CommandData::ToHost(vec![0; PAGE_BYTES as usize]));
    assert_eq!(done.expect("a completion").status(), Status::LBA_OUT_OF_RANGE);
    let flush = block_command(IoOpcode::Flush, u32::MAX, 0, 1);
    let done = queue.command(flush, CommandData::None).expect("a completion");
    assert_eq!(done.status(), Status::SUCCESS);
    let subsystem = lock(&target.shared);
    let traffic = &subsystem.controller(controller.id()).traffic;
    assert_eq!(traffic.namespaces().count(), 0);
    let counted = subsystem.latencies().each_ref().map(|histogram| histogram.count());
    assert_eq!(counted, [0, 0, 1]);
}
