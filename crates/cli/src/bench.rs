//! `warp bench`: benchmarks the model and the transports against the best speed of this machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use experiment::LabError;
use experiment::change::SettingOverrides;
use experiment::profile::Profile;
use experiment::scaled_model::{self, DriveOfCapacity};
use initiator::bench::{tcp, vfio_user, wait_times};
use nvme::{Identity, Subsystem, SubsystemConfig};
use report::describe;
use report::rows::{CellValue, ReportTable};
use serde::Serialize;
use simulate::bench::{self, BenchSettings};
use ssd::DeviceConfig;
use ssd::config::Geometry;
use target::monitor::drive_monitor::DriveMonitor;
use target::storage::backend::MemoryBackend;
use target::storage::{CheckpointStatus, DataChoice, DriveError, DriveOptions, ServedDrive};
use target::tcp::{TcpOptions, TcpServer};
use target::vfio_user::{VfioUserOptions, VfioUserServer};
use target::{ServerClock, SharedSubsystem, lock};

use crate::arguments::{BenchArgs, BenchSubject};
use crate::{AnyError, ExitOutcome, bad_option, execute};

/// Profile and capacity in bytes of the drive in the transport benchmarks.
const SERVED_DEVICE: &str = "warp_default";
const SERVED_BYTES: u64 = 1 << 30;
/// Measurement time per workload over NVMe/TCP.
const TCP_TIME: Duration = Duration::from_secs(2);
/// Measurement time of the host's waits, once without and once with checkpoints.
const CHECKPOINT_TIME: Duration = Duration::from_secs(20);

pub fn bench(command: &BenchArgs) -> Result<ExitOutcome, AnyError> {
    match command.what {
        BenchSubject::Model => model(command).map_err(AnyError::from),
        BenchSubject::VfioUser => print_rows(command, over_vfio_user()?),
        BenchSubject::Tcp => print_rows(command, over_tcp()?),
        BenchSubject::Checkpoint => checkpoint(command),
    }
}

fn model(command: &BenchArgs) -> Result<ExitOutcome, LabError> {
    if !(4..=4096).contains(&command.capacity_gib) || command.rounds == 0 {
        return Err(bad_option("bench", "give 4 to 4096 --capacity-gib and 1 or more --rounds"));
    }
    let settings = BenchSettings {
        capacity_bytes: command.capacity_gib << 30,
        rounds: command.rounds,
        ..BenchSettings::default()
    };
    let progress = execute::stoppable();
    let measured = execute::with_bar(&progress, 1, || bench::bench(&settings, &*progress));
    let Some(measured) = measured else {
        return Ok(ExitOutcome::Stopped);
    };
    Ok(command.output.print(&measured, |format| describe::bench(&measured).render(format)))
}

/// Result of a transport benchmark.
#[derive(Serialize)]
struct TransportRow {
    workload: String,
    commands_per_second: f64,
    bytes_per_second: f64,
    limit: &'static str,
    limit_per_second: f64,
    ratio: f64,
}

/// Creates the default drive of `warp serve` in memory, with a capacity of [`SERVED_BYTES`]. One
/// namespace with blocks of 4 KiB covers the whole drive.
fn drive() -> Result<SharedSubsystem, AnyError> {
    let memory = MemoryBackend::new(nvme::media::bytes_for(SERVED_BYTES));
    let config = subsystem(default_drive()?.config);
    Ok(Arc::new(Mutex::new(Subsystem::new(config, Box::new(memory))?)))
}

fn default_drive() -> Result<DriveOfCapacity, LabError> {
    let settings = SettingOverrides::new();
    let config = Profile::find(SERVED_DEVICE)?.config(&settings)?;
    scaled_model::with_capacity(SERVED_DEVICE, &config, SERVED_BYTES, &settings)
}

fn subsystem(device: DeviceConfig) -> SubsystemConfig {
    SubsystemConfig {
        identity: Identity {
            serial: "BENCH".to_string(),
            model: "WARP benchmark".to_string(),
            firmware: "1".to_string(),
            nqn: "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001".to_string(),
        },
        device,
        fdp: true,
        namespace: true,
        format: 0,
        reclaim_unit_time_limit_s: 0,
        controllers_max: 2,
        io_queues_max: 4,
    }
}

/// Benchmarks random I/O of 4 and 128 KiB over the vfio-user socket. A built-in driver replaces the
/// guest.
fn over_vfio_user() -> Result<Vec<TransportRow>, AnyError> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("bench.sock");
    let mut rows = Vec::new();
    use DoorbellWay::{Mapped, Messages, Shadow};
    for (write, kib, queue_depth, doorbells, is_monitored) in [
        (true, 4, 32, Mapped, false),
        (true, 4, 32, Mapped, true),
        (false, 4, 32, Mapped, false),
        (false, 4, 32, Mapped, true),
        (true, 4, 1, Mapped, false),
        (false, 4, 1, Mapped, false),
        (true, 4, 32, Messages, false),
        (true, 4, 32, Shadow, false),
        (true, 128, 16, Mapped, false),
        (false, 128, 16, Mapped, false),
    ] {
        let map_doorbells = doorbells == Mapped;
        let shared = drive()?;
        let options = VfioUserOptions { map_doorbells, ..VfioUserOptions::default() };
        let clock = ServerClock::start();
        let server = VfioUserServer::start(&socket, Arc::clone(&shared), clock, options)?;
        let poller = is_monitored.then(|| StatusPoller::begin(DriveMonitor::new(Arc::clone(&shared), clock)));
        let target = vfio_user::BenchServer {
            socket: &socket,
            worker_thread: target::vfio_user::WORKER_THREAD,
            capacity_bytes: SERVED_BYTES,
        };
        let workload = vfio_user::BenchWorkload {
            write,
            bytes: kib << 10,
            queue_depth,
            map_doorbells,
            shadow_doorbells: doorbells == Shadow,
            ..vfio_user::BenchWorkload::default()
        };
        let figures = vfio_user::run(&target, &workload);
        if let Some(poller) = poller {
            poller.end();
        }
        server.stop();
        let figures = figures?;
        let per_second = figures.commands_per_busy_second();
        rows.push(TransportRow {
            workload: format!(
                "{kib} KiB random {}, queue depth {queue_depth}, doorbells {}{}",
                if write { "write" } else { "read" },
                match doorbells {
                    Mapped => "mapped",
                    Messages => "as messages",
                    Shadow => "in a shadow buffer",
                },
                if is_monitored { ", monitored" } else { "" }
            ),
            commands_per_second: per_second,
            bytes_per_second: per_second * workload.bytes as f64,
            limit: "random copies of the same size by one core",
            limit_per_second: figures.copies_per_second,
            ratio: per_second / figures.copies_per_second,
        });
    }
    Ok(rows)
}

#[derive(Clone, Copy, PartialEq)]
enum DoorbellWay {
    /// In a page of the server that the host maps.
    Mapped,
    /// A message over the socket for each doorbell.
    Messages,
    /// In the host's memory (Doorbell Buffer Config), without the mapped page.
    Shadow,
}

/// Polls a drive as often as the studio does for an open page.
struct StatusPoller {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl StatusPoller {
    fn begin(mut monitor: DriveMonitor) -> StatusPoller {
        let is_over = Arc::new(AtomicBool::new(false));
        let is_over_too = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            while !is_over_too.load(Ordering::Relaxed) {
                std::hint::black_box(monitor.poll());
                std::thread::park_timeout(studio::POLL_INTERVAL);
            }
        });
        StatusPoller { is_over, thread }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().expect("the polling thread does not panic");
    }
}

fn over_tcp() -> Result<Vec<TransportRow>, AnyError> {
    let shared = drive()?;
    let nqn = lock(&shared).config().identity.nqn.clone();
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = TcpServer::start(TcpOptions::new(listen), shared, ServerClock::start())?;
    let target = tcp::LoopbackTarget {
        address: server.local_address(),
        subsystem_nqn: &nqn,
        thread_name: target::tcp::THREAD_NAME,
        capacity_bytes: SERVED_BYTES,
    };
    let figures = tcp::run(&target, TCP_TIME)?;
    server.stop();
    let row = |figure: &tcp::Figure| TransportRow {
        workload: figure.name.to_string(),
        commands_per_second: figure.commands_per_second,
        bytes_per_second: figure.bytes_per_second(),
        limit: "the same messages over plain TCP",
        limit_per_second: figure.limit_per_second,
        ratio: figure.ratio(),
    };
    Ok(figures.iter().map(row).collect())
}

/// Wait times of a host.
#[derive(Serialize)]
struct WaitRow {
    /// Background work of the server during the measurement.
    #[serde(rename = "meanwhile")]
    background: &'static str,
    commands_per_second: f64,
    median_us: f64,
    p999_us: f64,
    longest_us: f64,
    /// Number of checkpoints, duration of the last one, and the longest time that one held the
    /// drive lock.
    checkpoints: u64,
    checkpoint_seconds: f64,
    longest_hold_us: f64,
    /// Maximum processor time of a held drive lock.
    longest_hold_busy_us: f64,
}

/// Measures the wait times of a host over NVMe/TCP, first without checkpoints and then with
/// consecutive ones. The drive is full. Its data is a sparse file in the folder for temporary
/// files, together with its snapshots.
fn checkpoint(command: &BenchArgs) -> Result<ExitOutcome, AnyError> {
    if !(1..=16384).contains(&command.capacity_gib) {
        return Err(bad_option("bench", "give 1 to 16384 --capacity-gib").into());
    }
    let capacity_bytes = command.capacity_gib << 30;
    let folder = tempfile::tempdir()?;
    let subsystem = subsystem(DeviceConfig {
        geometry: Geometry {
            capacity_bytes: Some(capacity_bytes),
            // Large drives have this over-provisioning, and it makes the maps smaller.
            over_provisioning: 0.07,
            reclaim_unit_bytes: 256 << 20,
            channels: 4,
            dies_per_channel: 2,
            ..Geometry::default()
        },
        seed: 1,
        ..DeviceConfig::default()
    });
    let options = DriveOptions { subsystem, data: DataChoice::File(folder.path().join("bench.img")), checksums: false };
    let clock = ServerClock::start();
    let (shared, mut drive, _) = ServedDrive::open(options, clock)?;
    let checkpoints = drive.checkpoints();
    let nqn = lock(&shared).config().identity.nqn.clone();
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = TcpServer::start(TcpOptions::new(listen), Arc::clone(&shared), clock)?;
    let target = tcp::LoopbackTarget {
        address: server.local_address(),
        subsystem_nqn: &nqn,
        thread_name: target::tcp::THREAD_NAME,
        capacity_bytes,
    };
    let mut host = wait_times::BenchHost::connect(&target)?;
    host.fill()?;
    // The first commands after the fill open new reclaim units, so they are measured apart.
    host.measure(CHECKPOINT_TIME / 4)?;
    let without = host.measure(CHECKPOINT_TIME)?;
    let is_over = AtomicBool::new(false);
    let (with, stored) = std::thread::scope(|scope| {
        let storing = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                drive.checkpoint(target::pause_between_parts)?;
            }
            Ok::<(), DriveError>(())
        });
        let with = host.measure(CHECKPOINT_TIME);
        is_over.store(true, Ordering::Relaxed);
        (with, storing.join().expect("a checkpoint never panics"))
    });
    stored?;
    drop(host);
    server.stop();
    let status = checkpoints.status();
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let row = |background, waits: wait_times::WaitTimes, status: CheckpointStatus| WaitRow {
        background,
        commands_per_second: waits.commands_per_second,
        median_us: us(waits.median),
        p999_us: us(waits.p999),
        longest_us: us(waits.longest),
        checkpoints: status.made,
        checkpoint_seconds: status.last.as_secs_f64(),
        longest_hold_us: us(status.lock_time_max),
        longest_hold_busy_us: us(status.busy_lock_time_max),
    };
    let rows = [row("nothing", without, CheckpointStatus::default()), row("consecutive checkpoints", with?, status)];
    let numbers = [
        ("commands", "K/s"),
        ("median", "us"),
        ("99.9 %", "us"),
        ("longest", "us"),
        ("checkpoints", ""),
        ("longest lock", "us"),
        ("CPU time of it", "us"),
    ];
    let mut table = ReportTable::default().labels(["background work"]);
    for (heading, unit) in numbers {
        table = table.numbers(unit, [heading]);
    }
    for row in &rows {
        table.add([
            row.background.into(),
            CellValue::Fixed(row.commands_per_second / 1e3, 1),
            CellValue::Fixed(row.median_us, 0),
            CellValue::Fixed(row.p999_us, 0),
            CellValue::Fixed(row.longest_us, 0),
            CellValue::Fixed(row.checkpoints as f64, 0),
            CellValue::Fixed(row.longest_hold_us, 0),
            CellValue::Fixed(row.longest_hold_busy_us, 0),
        ]);
    }
    let note = format!(
        "A host over NVMe/TCP sends one command of 4 KiB at a time to a full drive of {}. The last checkpoint took \
         {:.1} s. Other load on this machine lengthens the waits and the locks. The CPU time is that of \
         the checkpoint's longest work under the drive lock",
        base::HumanBytes(capacity_bytes),
        status.last.as_secs_f64()
    );
    Ok(command.output.print(&rows, |format| table.note(note).render(format)))
}

fn print_rows(command: &BenchArgs, rows: Vec<TransportRow>) -> Result<ExitOutcome, AnyError> {
    let numbers = [("commands", "K/s"), ("bytes", "MB/s"), ("of the limit", ""), ("limit", "K/s")];
    let mut table = ReportTable::default().labels(["workload"]);
    for (heading, unit) in numbers {
        table = table.numbers(unit, [heading]);
    }
    for row in &rows {
        table.add([
            row.workload.as_str().into(),
            CellValue::Fixed(row.commands_per_second / 1e3, 0),
            CellValue::Fixed(row.bytes_per_second / 1e6, 0),
            CellValue::Fixed(row.ratio, 2),
            CellValue::Fixed(row.limit_per_second / 1e3, 0),
        ]);
    }
    let about = match command.what {
        BenchSubject::VfioUser => "Commands per second of the server's core",
        _ => "Commands per second, with server and host in one process",
    };
    let limit = rows.first().map_or("", |row| row.limit);
    let served = default_drive()?;
    let over_provisioning = served.config.geometry.over_provisioning * 100.0;
    let drive = format!("{} The over-provisioning is {over_provisioning:.0} %", served.note);
    let table = table.note(format!("{about}. The limit is {limit}")).note(drive);
    Ok(command.output.print(&rows, |format| table.render(format)))
}
