//! The claim that the project stands on: one workload has one write amplification, whether it runs in the lab, over
//! vfio-user or over NVMe/TCP. Here the requests of a fio job file go through our own hosts, one after the other, so the
//! counters must be equal to the byte; `tests/host` does the same with a real fio in a real kernel, within 2 %.

use host::initiator::pcie::{Driver, DriverOptions};
use host::initiator::tcp::{self, Controller, HostOptions};
use lab::cell::{Cell, CellKey, RunSettings};
use lab::profile::Profile;
use lab::twin::{self, Scale};
use lab::workloads::read_jobs;
use nvme::{Identity, SubsystemConfig};
use nvme_spec::command::ReadWriteCdw12;
use nvme_spec::{IoOpcode, Status, SubmissionEntry};
use ssd::{DeviceConfig, Stats};
use transport::data::DataChoice;
use transport::drive::DriveOptions;
use transport::locked;
use transport::server::{ServeOptions, Server};
use transport::tcp::TcpOptions;
use workload::fio::{JobFile, Override, Schedule};
use workload::{Operation, Request, Target};

const CAPACITY_BYTES: u64 = 128 << 20;
const NQN: &str = "nqn.2026-01.test:three-paths";

fn device() -> DeviceConfig {
    let profile = Profile::find("warp_default").expect("a built-in profile");
    let over_provisioning =
        lab::profile::Overrides::from_iter([("geometry.over_provisioning".to_string(), 0.2.into())]);
    let config = profile.config(&over_provisioning).expect("a setting");
    twin::resized("warp_default", &config, CAPACITY_BYTES).expect("a small drive")
}

/// The job file with each stream on a handle of its own, the overwrites with the sequential stream, or no directives.
fn variant(name: &str) -> JobFile {
    let change = |section: &str, option: &str, value: &str| Override {
        section: section.to_string(),
        option: option.to_string(),
        value: value.to_string(),
    };
    let changes = match name {
        "FDP" => vec![],
        "Mixed" => vec![change("overwrite", "plids", "0")],
        _ => vec![change("global", "dataplacement", "none")],
    };
    read_jobs("three_paths", &changes).expect("a job file of the project")
}

fn in_the_lab(jobs: &JobFile) -> Stats {
    let cell = Cell {
        key: CellKey {
            device: "warp_default".to_string(),
            variant: String::new(),
            grid: Vec::new(),
        },
        seed: device().seed,
        device: device(),
        workload: jobs.clone().into(),
        run: RunSettings {
            timed: Some(false),
            seconds: None,
            queue_depth: 32,
            interval_seconds: None,
            write_capacities: None,
            scale: Scale::FULL,
            sample_capacities: 1.0,
            prefill_capacities: 0.0,
            seeds: vec![1],
            tail_capacities: 1.0,
            only: Vec::new(),
        },
        feedback: None,
        snapshot: None,
    };
    let prepared = lab::run::prepare(vec![cell]).expect("a possible run");
    let results = lab::run::run_all(&prepared, false, u64::MAX, &()).expect("enough memory");
    results[0].stats.clone()
}

/// A served drive and what the requests did to it.
fn served(jobs: &JobFile, over: fn(&Server, &std::path::Path, &mut dyn FnMut() -> Option<Request>)) -> Stats {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("drive.sock");
    let options = ServeOptions {
        drive: DriveOptions {
            subsystem: SubsystemConfig {
                identity: Identity {
                    serial: "THREEPATHS".to_string(),
                    model: "test".to_string(),
                    firmware: "1".to_string(),
                    nqn: NQN.to_string(),
                },
                device: device(),
                fdp: true,
                namespace: true,
                format: 0,
                reclaim_unit_time_limit_s: 0,
                controllers_max: 8,
                io_queues_max: 8,
            },
            data: DataChoice::Memory,
        },
        vfio_user: vec![socket.clone()],
        tcp: Some(TcpOptions::new("127.0.0.1:0".parse().unwrap())),
        metrics: None,
        checkpoint_every: None,
    };
    let (server, _) = Server::start(options).expect("a served drive");
    let target = Target {
        device_bytes: CAPACITY_BYTES,
        placement_ids: device().handles.count,
        ..Target::default()
    };
    let mut schedule = Schedule::new(jobs, &target).expect("the lab took it");
    let mut batch = Vec::new();
    let mut next = || {
        if batch.is_empty() {
            schedule.next_batch(&mut batch, 1024);
            batch.reverse();
        }
        batch.pop()
    };
    over(&server, &socket, &mut next);
    let stats = locked(server.shared()).device().stats().clone();
    server.stop().expect("a drive in memory");
    stats
}

/// The write command of a request.
fn write_command(request: &Request) -> SubmissionEntry {
    assert_eq!(request.operation, Operation::Write, "the job file only writes");
    let (first, blocks) = (request.offset_bytes / 4096, request.bytes / 4096);
    let mut dword12 = ReadWriteCdw12::new().with_nlb((blocks - 1) as u16);
    let mut dword13 = 0;
    if let Some(placement) = request.placement {
        dword12 = dword12.with_dtype(2);
        dword13 = u32::from(placement) << 16;
    }
    SubmissionEntry {
        opcode: IoOpcode::Write.code(),
        nsid: 1.into(),
        cdw10: (first as u32).into(),
        cdw11: ((first >> 32) as u32).into(),
        cdw12: dword12.into_bits().into(),
        cdw13: dword13.into(),
        ..SubmissionEntry::default()
    }
}

fn over_vfio_user(_server: &Server, socket: &std::path::Path, next: &mut dyn FnMut() -> Option<Request>) {
    let mut driver = Driver::start(socket, DriverOptions::default()).expect("a drive on the socket");
    driver.create_queues(1, 64, None).expect("a queue pair");
    let buffer = driver.allocate(128 << 10);
    let list: Vec<u8> = (1..32u64)
        .flat_map(|page| (buffer + page * 4096).to_le_bytes())
        .collect();
    let list = driver.allocate_with(&list);
    while let Some(request) = next() {
        let mut entry = write_command(&request);
        match request.bytes {
            ..=4096 => entry.set_prps(buffer, 0),
            4097..=8192 => entry.set_prps(buffer, buffer + 4096),
            _ => entry.set_prps(buffer, list),
        }
        let completion = driver.command(1, entry).expect("a completion");
        assert_eq!(completion.status.status(), Status::SUCCESS, "{request:?}");
    }
}

fn over_tcp(server: &Server, _socket: &std::path::Path, next: &mut dyn FnMut() -> Option<Request>) {
    let address = server.tcp_address().expect("NVMe/TCP is served");
    let mut controller = Controller::connect(&HostOptions::new(address, NQN)).expect("a drive at the address");
    controller.set_queue_count(1).expect("a queue");
    let mut queue = controller.io_queue(1, 64).expect("a queue");
    while let Some(request) = next() {
        let data = tcp::Data::ToController(vec![0; request.bytes as usize]);
        let completion = queue.command(write_command(&request), data).expect("a completion");
        assert_eq!(completion.status(), Status::SUCCESS, "{request:?}");
    }
}

#[test]
fn lab_vfio_user_and_tcp_count_the_same_bytes() {
    let mut amplifications = Vec::new();
    for name in ["FDP", "Mixed", "NoFDP"] {
        let jobs = variant(name);
        let lab = in_the_lab(&jobs);
        let [vfio_user, tcp] = [over_vfio_user, over_tcp].map(|over| served(&jobs, over));
        assert_eq!(vfio_user, lab, "{name}: counters over vfio-user and in the lab");
        assert_eq!(tcp, lab, "{name}: counters over NVMe/TCP and in the lab");
        amplifications.push(lab.write_amplification().expect("something was written"));
    }
    let [fdp, mixed, none] = amplifications[..] else {
        unreachable!()
    };
    assert!(
        1.0 <= fdp && fdp < mixed && mixed < none,
        "placement matters: {amplifications:?}"
    );
}
