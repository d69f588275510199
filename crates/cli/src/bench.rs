//! `warp bench`: how fast the model is, and the transports around it, beside what the same machine does at best.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use host::bench::{tcp, vfio_user};
use lab::bench::{self, Settings};
use lab::rows::{Column, Rows, Value};
use lab::{LabError, describe};
use nvme::{Identity, Subsystem, SubsystemConfig};
use serde::Serialize;
use ssd::DeviceConfig;
use ssd::config::Geometry;
use transport::data::Memory;
use transport::tcp::{TcpOptions, TcpServer};
use transport::vfio_user::{VfioUserOptions, VfioUserServer};
use transport::watched::Watched;
use transport::{Clock, Shared, locked};

use crate::arguments::{Bench, BenchSubject};
use crate::{AnyError, Outcome, bad_option, execute, print};

/// Capacity of the drive that transports are measured with.
const SERVED_BYTES: u64 = 1 << 30;
/// How long each load over NVMe/TCP is measured.
const TCP_TIME: Duration = Duration::from_secs(2);

pub fn bench(command: &Bench) -> Result<Outcome, AnyError> {
    match command.what {
        BenchSubject::Model => model(command).map_err(AnyError::from),
        BenchSubject::VfioUser => show(command, over_vfio_user()?),
        BenchSubject::Tcp => show(command, over_tcp()?),
    }
}

fn model(command: &Bench) -> Result<Outcome, LabError> {
    if !(4..=4096).contains(&command.capacity_gib) || command.rounds == 0 {
        return Err(bad_option(
            "bench",
            "give 4 to 4096 --capacity-gib and 1 or more --rounds",
        ));
    }
    let settings = Settings {
        capacity_bytes: command.capacity_gib << 30,
        rounds: command.rounds,
        ..Settings::default()
    };
    let progress = execute::stoppable();
    let measured = execute::with_bar(&progress, 1, || bench::bench(&settings, &*progress));
    let Some(measured) = measured else {
        return Ok(Outcome::Stopped);
    };
    if command.json {
        print(&format!("{}\n", serde_json::json!(measured)));
    } else {
        print(&describe::bench(&measured).text());
    }
    Ok(Outcome::Done)
}

/// A figure of a transport.
#[derive(Serialize)]
struct Row {
    workload: String,
    commands_per_second: f64,
    bytes_per_second: f64,
    limit: &'static str,
    limit_per_second: f64,
    ratio: f64,
}

/// A drive in memory with one namespace in blocks of 4 KiB over all of it, whose commands take no time.
fn drive() -> Result<Shared, AnyError> {
    let config = SubsystemConfig {
        identity: Identity {
            serial: "BENCH".to_string(),
            model: "WARP benchmark".to_string(),
            firmware: "1".to_string(),
            nqn: "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001".to_string(),
        },
        device: DeviceConfig {
            geometry: Geometry {
                capacity_bytes: Some(SERVED_BYTES),
                over_provisioning: 0.28,
                reclaim_unit_bytes: 8 << 20,
                channels: 4,
                dies_per_channel: 2,
                ..Geometry::default()
            },
            seed: 1,
            ..DeviceConfig::default()
        },
        fdp: true,
        namespace: true,
        format: 0,
        reclaim_unit_time_limit_s: 0,
        controllers_max: 2,
        io_queues_max: 4,
    };
    let memory = Memory::new(nvme::media::bytes_for(SERVED_BYTES));
    Ok(Arc::new(Mutex::new(Subsystem::new(config, Box::new(memory))?)))
}

/// 4 and 128 KiB at random through the vfio-user socket, by a driver of our own in the place of a guest.
fn over_vfio_user() -> Result<Vec<Row>, AnyError> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("bench.sock");
    let mut rows = Vec::new();
    for (write, kib, queue_depth, map_doorbells, is_watched) in [
        (true, 4, 32, true, false),
        (true, 4, 32, true, true),
        (false, 4, 32, true, false),
        (false, 4, 32, true, true),
        (true, 4, 1, true, false),
        (true, 4, 32, false, false),
        (true, 128, 16, true, false),
        (false, 128, 16, true, false),
    ] {
        let shared = drive()?;
        let options = VfioUserOptions {
            map_doorbells,
            ..VfioUserOptions::default()
        };
        let clock = Clock::start();
        let server = VfioUserServer::start(&socket, Arc::clone(&shared), clock, options)?;
        let watcher = is_watched.then(|| Watcher::begin(Watched::new(Arc::clone(&shared), clock)));
        let target = vfio_user::Target {
            socket: &socket,
            worker_thread: transport::vfio_user::WORKER_THREAD,
            capacity_bytes: SERVED_BYTES,
            bytes_written: &|| {
                let subsystem = locked(&shared);
                let stats = subsystem.device().stats();
                (stats.media_bytes_written(), stats.host_bytes_written())
            },
        };
        let workload = vfio_user::Workload {
            write,
            bytes: kib << 10,
            queue_depth,
            map_doorbells,
            ..vfio_user::Workload::default()
        };
        let figures = vfio_user::run(&target, &workload);
        if let Some(watcher) = watcher {
            watcher.end();
        }
        server.stop();
        let figures = figures?;
        let per_second = figures.commands_per_busy_second();
        rows.push(Row {
            workload: format!(
                "{kib} KiB random {}, queue depth {queue_depth}, doorbells {}{}",
                if write { "write" } else { "read" },
                if map_doorbells { "mapped" } else { "as messages" },
                if is_watched { ", watched" } else { "" }
            ),
            commands_per_second: per_second,
            bytes_per_second: per_second * workload.bytes as f64,
            limit: "random copies of as many bytes by one core",
            limit_per_second: figures.copies_per_second,
            ratio: per_second / figures.copies_per_second,
        });
    }
    Ok(rows)
}

/// Looks at a drive as often as the studio does while a page is open.
struct Watcher {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Watcher {
    fn begin(mut watched: Watched) -> Watcher {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                std::hint::black_box(watched.look());
                std::thread::sleep(studio::LOOK_TIME);
            }
        });
        Watcher { is_over, thread }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("a look ends");
    }
}

fn over_tcp() -> Result<Vec<Row>, AnyError> {
    let shared = drive()?;
    let nqn = locked(&shared).config().identity.nqn.clone();
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = TcpServer::start(TcpOptions::new(listen), shared, Clock::start())?;
    let target = tcp::Target {
        address: server.local_address(),
        subsystem_nqn: &nqn,
        thread_name: transport::tcp::THREAD_NAME,
        capacity_bytes: SERVED_BYTES,
    };
    let figures = tcp::run(&target, TCP_TIME)?;
    server.stop();
    let row = |figure: &tcp::Figure| Row {
        workload: figure.name.to_string(),
        commands_per_second: figure.commands_per_second,
        bytes_per_second: figure.bytes_per_second(),
        limit: "the same messages over plain TCP",
        limit_per_second: figure.limit_per_second,
        ratio: figure.ratio(),
    };
    Ok(figures.iter().map(row).collect())
}

fn show(command: &Bench, rows: Vec<Row>) -> Result<Outcome, AnyError> {
    if command.json {
        print(&format!("{}\n", serde_json::json!(rows)));
        return Ok(Outcome::Done);
    }
    let numbers = [
        ("commands", "K/s"),
        ("bytes", "MB/s"),
        ("of the limit", ""),
        ("limit", "K/s"),
    ];
    let numbers = numbers.map(|(heading, unit)| Column::number(heading, unit));
    let mut table = Rows::new([Column::label("workload")].into_iter().chain(numbers));
    for row in &rows {
        table.add([
            row.workload.as_str().into(),
            Value::Fixed(row.commands_per_second / 1e3, 0),
            Value::Fixed(row.bytes_per_second / 1e6, 0),
            Value::Fixed(row.ratio, 2),
            Value::Fixed(row.limit_per_second / 1e3, 0),
        ]);
    }
    let about = match command.what {
        BenchSubject::VfioUser => "commands in a second of the server's core",
        _ => "commands in a second, server and host in one process",
    };
    let limit = rows.first().map_or("", |row| row.limit);
    print(&table.note(format!("{about}; limit: {limit}")).text());
    Ok(Outcome::Done)
}
