//! Main claim of the project: a workload has the same write amplification in the lab, over
//! vfio-user and over NVMe/TCP. Here WARP's own hosts send the requests of a fio job file one after
//! the other, so the counters must be equal to the byte. `tests/host` does the same with real fio
//! on a real kernel, within 2 %.
//!
//! ```text
//! Case -> simulate::run -------------------------------------------------> Stats
//!      -> fio's schedule -> Host (vfio-user | NVMe/TCP) -> Server -> Stats, the same
//! ```
//!
//! A trace with times is replayed at these times in the lab. Served drives with timing receive its
//! requests in order.
//!
//! Each host reads the Reclaim Unit Handle Status of the namespace to map placement indices to
//! identifiers.

use std::path::{Path, PathBuf};

use applications::WorkloadSpec;
use experiment::cell::{CellKey, RunSpec};
use experiment::profile::{Profile, SettingOverrides};
use experiment::run_options::{ReplayMode, RunSettings};
use experiment::scaled_model;
use experiment::workloads::{WorkloadChanges, read_jobs};
use initiator::command::write_command;
use initiator::inspect::decode;
use initiator::pcie::{DriverOptions, NvmeDriver};
use initiator::tcp::{self, HostOptions, RemoteController};
use nvme::{Identity, SubsystemConfig};
use nvme_spec::command::IoManagementCdw10;
use nvme_spec::fdp::MO_RUH_STATUS;
use nvme_spec::identify::{ControllerList, NamespaceCreate, Nmic};
use nvme_spec::{AdminOpcode, Cns, IdentifyController, IoOpcode, Status, SubmissionEntry};
use ssd::{DeviceConfig, DeviceStats};
use target::lock;
use target::server::{ServeOptions, Server};
use target::storage::DriveOptions;
use target::storage::backend::DataChoice;
use target::tcp::TcpOptions;
use workload::fio::{JobFile, Override, Schedule};
use workload::{IoRequest, RequestOperation, WorkloadTarget};
use zerocopy::{FromBytes, IntoBytes};

const CAPACITY_BYTES: u64 = 32 << 20;
const NQN: &str = "nqn.2026-01.test:three-paths";
/// Size of the host's buffer, the largest request of the job file.
const BUFFER_BYTES: usize = 128 << 10;

/// Changes of the job file, each with section, option and value.
type Changes = &'static [(&'static str, &'static str, &'static str)];

/// Each stream has its own handle.
const EACH_ITS_OWN: Changes = &[];
/// The overwrites use the handle of the sequential stream.
const MIXED: Changes = &[("overwrite", "plids", "0")];
/// No stream has directives.
const NONE: Changes = &[("global", "dataplacement", "none")];
/// Some streams have directives, in different reclaim groups if they exist, and others run without
/// directives at the same time.
const SOME: Changes = &[
    ("fill_random", "dataplacement", "none"),
    ("sequential", "plids", "1,2"),
    ("random", "dataplacement", "none"),
    ("overwrite", "plids", "3"),
];

/// Makes the overwriting jobs of the job file as small as the drive.
const SMALL: Changes =
    &[("sequential", "io_size", "16m"), ("random", "io_size", "8m"), ("overwrite", "io_size", "12m")];

/// A drive and its commands.
struct Case {
    name: &'static str,
    /// Reclaim groups of the drive's profile.
    groups: u16,
    /// Handles in the namespace's list. `None` is the initial namespace with all handles.
    handles: Option<&'static [u16]>,
    /// True if Flexible Data Placement is enabled.
    fdp: bool,
    changes: Changes,
    /// True if the served drive is restarted during the workload.
    restarts: bool,
    /// True if the requests come from a trace that the lab replays at its own times, on drives with
    /// timing.
    replayed: bool,
}

/// Microseconds between two requests of the trace.
const STEP_US: usize = 30;

impl Case {
    const fn new(name: &'static str, groups: u16, changes: Changes) -> Case {
        Case { name, groups, handles: None, fdp: true, changes, restarts: false, replayed: false }
    }

    /// Returns the configuration of the drive's profile.
    fn profile(&self) -> DeviceConfig {
        let profile = Profile::find("warp_default").expect("a built-in profile");
        let over_provisioning = SettingOverrides::from_iter([("geometry.over_provisioning".to_string(), 0.2.into())]);
        let config = profile.config(&over_provisioning).expect("a setting");
        let mut config = scaled_model::resized("warp_default", &config, CAPACITY_BYTES).expect("a small drive");
        config.geometry.reclaim_groups = self.groups;
        config.geometry.reclaim_unit_bytes /= u64::from(self.groups);
        if self.replayed {
            let with_times = Profile::find("pm9d3a").expect("a built-in profile");
            config.timing = with_times.config(&SettingOverrides::new()).expect("a drive").timing;
        }
        config
    }

    /// Returns the configuration with Flexible Data Placement enabled or disabled.
    fn device(&self) -> DeviceConfig {
        let profile = self.profile();
        if self.fdp { profile } else { nvme::fdp::without_fdp(&profile) }
    }

    fn jobs(&self) -> JobFile {
        let change = |(section, option, value): &(&str, &str, &str)| Override {
            section: section.to_string(),
            option: option.to_string(),
            value: value.to_string(),
        };
        let changes: Vec<Override> = SMALL.iter().chain(self.changes).map(change).collect();
        read_jobs("three_paths", &changes).expect("a job file of the project")
    }

    /// Number of placement indices of the namespace.
    fn placement_count(&self) -> u16 {
        let handles = self.handles.map_or(self.device().handles.count, |handles| handles.len() as u16);
        handles * self.device().geometry.reclaim_groups
    }

    /// Requests of the job file, in order.
    fn requests(&self) -> Vec<IoRequest> {
        let target = WorkloadTarget {
            device_bytes: CAPACITY_BYTES,
            placement_count: self.placement_count(),
            ..WorkloadTarget::default()
        };
        let mut schedule = Schedule::new(&self.jobs(), &target).expect("the lab took it");
        let mut requests = Vec::new();
        while schedule.next_batch(&mut requests, 1024) > 0 {}
        requests
    }

    /// Workload for the lab, either the job file or its requests as a trace with times.
    fn workload(&self, folder: &Path) -> WorkloadSpec {
        if !self.replayed {
            return self.jobs().into();
        }
        let line = |(index, request): (usize, &IoRequest)| {
            let placement = request.placement.map_or("-".to_string(), |placement| placement.0.to_string());
            let (time_us, offset, bytes) = (index * STEP_US, request.offset_bytes, request.bytes);
            format!("{time_us} drive write {offset} {bytes} {placement}\n")
        };
        let lines: String = self.requests().iter().enumerate().map(line).collect();
        let file = folder.join("trace.log");
        std::fs::write(&file, format!("fio version 3 iolog\n{lines}")).expect("there is room");
        let table = format!(
            "kind = \"trace\"\nfiles = [{:?}]\nmapping = \"modulo\"\nplacement = \"column\"\n",
            file.display().to_string()
        );
        let table = toml::from_str(&table).expect("a table");
        WorkloadChanges::default().parse("trace", &table).expect("a trace")
    }

    fn in_the_lab(&self) -> DeviceStats {
        let folder = tempfile::tempdir().unwrap();
        let cell = RunSpec {
            key: CellKey { device: "warp_default".to_string(), variant: String::new(), grid: Vec::new() },
            seed: self.device().seed,
            device: self.device(),
            workload: self.workload(folder.path()),
            workload_name: "jobs".to_string(),
            run: RunSettings {
                timed: Some(self.replayed),
                replay: self.replayed.then_some(ReplayMode::Timed),
                sample_drive_writes: 1.0,
                placement_handles: self.handles.map(<[u16]>::to_vec),
                ..RunSettings::default()
            },
            array: None,
            array_drive: None,
            feedback: None,
            ensemble: None,
            snapshot: None,
        };
        let prepared = simulate::run::prepare(vec![cell]).expect("a possible run");
        let results = simulate::run::run_all(&prepared, false, u64::MAX, &()).expect("enough memory");
        results[0].stats.clone()
    }

    /// Returns the statistics of a served drive after the requests.
    fn served(&self, connect: fn(&Server, &Path) -> Box<dyn Host>) -> DeviceStats {
        let folder = tempfile::tempdir().unwrap();
        let data = if self.restarts { DataChoice::File(folder.path().join("drive.img")) } else { DataChoice::Memory };
        let requests = self.requests();
        let (first, second) = requests.split_at(if self.restarts { requests.len() / 2 } else { 0 });
        let mut stats = None;
        for requests in [first, second] {
            if requests.is_empty() {
                continue;
            }
            let socket = folder.path().join("drive.sock");
            let (server, opened) = Server::start(self.options(socket.clone(), data.clone())).expect("a served drive");
            let mut host = connect(&server, &socket);
            if let (Some(handles), true) = (self.handles, opened.new) {
                create_namespace(&mut *host, handles);
            }
            let identifiers = if self.fdp { placement_identifiers(&mut *host) } else { Vec::new() };
            for request in requests {
                host.command(
                    Queue::Io,
                    command_of(request, &identifiers),
                    Data::ToController(&vec![0; request.bytes as usize]),
                );
            }
            drop(host);
            stats = Some(lock(server.shared()).device().stats().clone());
            server.stop().expect("nothing hinders it");
        }
        stats.expect("the job file writes")
    }

    fn options(&self, socket: PathBuf, data: DataChoice) -> ServeOptions {
        ServeOptions {
            drive: DriveOptions {
                subsystem: SubsystemConfig {
                    identity: Identity {
                        serial: "THREEPATHS".to_string(),
                        model: "test".to_string(),
                        firmware: "1".to_string(),
                        nqn: NQN.to_string(),
                    },
                    device: self.profile(),
                    fdp: self.fdp,
                    namespace: self.handles.is_none(),
                    format: 0,
                    reclaim_unit_time_limit_s: 0,
                    controllers_max: 8,
                    io_queues_max: 8,
                },
                data,
                checksums: false,
            },
            vfio_user: vec![socket],
            tcp: Some(TcpOptions::new("127.0.0.1:0".parse().unwrap())),
            metrics: None,
            checkpoint_every: None,
            faults: None,
            at_power_loss: None,
            scrub_every: None,
        }
    }

    /// Runs the case on the three paths. Returns the write amplification.
    #[track_caller]
    fn check(&self) -> f64 {
        let lab = self.in_the_lab();
        let [vfio_user, tcp] = [over_vfio_user, over_tcp].map(|connect| self.served(connect));
        assert_eq!(vfio_user, lab, "{}: counters over vfio-user and in the lab", self.name);
        assert_eq!(tcp, lab, "{}: counters over NVMe/TCP and in the lab", self.name);
        lab.write_amplification().expect("something was written")
    }
}

/// Write command of a request, with the placement identifiers of the namespace's placement indices.
fn command_of(request: &IoRequest, identifiers: &[u16]) -> SubmissionEntry {
    assert_eq!(request.operation, RequestOperation::Write, "the job file only writes");
    let identifier = request.placement.map(|index| identifiers[index.index()]);
    write_command(1, request.offset_bytes / 4096, request.bytes / 4096, identifier)
}

/// Creates a namespace of full capacity with these placement handles, and attaches it to the host's
/// controller.
fn create_namespace(host: &mut dyn Host, handles: &[u16]) {
    let blocks = CAPACITY_BYTES / 4096;
    let mut fields = NamespaceCreate {
        nsze: blocks.into(),
        ncap: blocks.into(),
        nmic: Nmic::new().with_shrns(true),
        nphndls: (handles.len() as u16).into(),
        ..NamespaceCreate::default()
    };
    for (place, &handle) in fields.phndl.iter_mut().zip(handles) {
        *place = handle.into();
    }
    let create = SubmissionEntry { opcode: AdminOpcode::NamespaceManagement.code(), ..SubmissionEntry::default() };
    let nsid = host.command(Queue::Admin, create, Data::ToController(fields.as_bytes()));
    assert_eq!(nsid, 1, "it is the only one");
    let mut list = ControllerList { numids: 1.into(), cntlid: [0.into(); 2047] };
    let mut controller = vec![0; 4096];
    let identify = SubmissionEntry {
        opcode: AdminOpcode::Identify.code(),
        cdw10: u32::from(Cns::Controller.code()).into(),
        ..SubmissionEntry::default()
    };
    host.command(Queue::Admin, identify, Data::ToHost(&mut controller));
    let controller: IdentifyController = IdentifyController::read_from_bytes(&controller).expect("the whole of it");
    list.cntlid[0] = controller.cntlid;
    let attach = SubmissionEntry {
        opcode: AdminOpcode::NamespaceAttachment.code(),
        nsid: 1.into(),
        ..SubmissionEntry::default()
    };
    host.command(Queue::Admin, attach, Data::ToController(list.as_bytes()));
}

/// Placement identifiers of the namespace, in the drive's order.
fn placement_identifiers(host: &mut dyn Host) -> Vec<u16> {
    let mut status = vec![0; 4096];
    let entry = SubmissionEntry {
        opcode: IoOpcode::IoManagementReceive.code(),
        nsid: 1.into(),
        cdw10: IoManagementCdw10::new().with_mo(MO_RUH_STATUS).into_bits().into(),
        cdw11: (status.len() as u32 / 4 - 1).into(),
        ..SubmissionEntry::default()
    };
    host.command(Queue::Io, entry, Data::ToHost(&mut status));
    let listed = decode::handle_status(&status).expect("as the standard says");
    listed.iter().map(|handle| handle.placement_identifier).collect()
}

#[derive(Clone, Copy)]
enum Queue {
    Admin,
    Io,
}

enum Data<'a> {
    ToController(&'a [u8]),
    ToHost(&'a mut [u8]),
}

/// Host of the drive.
trait Host {
    /// Runs a command that must succeed. Returns dword 0 of its completion.
    fn command(&mut self, queue: Queue, entry: SubmissionEntry, data: Data<'_>) -> u32;
}

struct OverVfioUser {
    driver: NvmeDriver,
    /// Address of data in the host's memory, and of the PRP list of its pages from the second page
    /// on.
    buffer: u64,
    list: u64,
}

fn over_vfio_user(_server: &Server, socket: &Path) -> Box<dyn Host> {
    let mut driver = NvmeDriver::start(socket, DriverOptions::default()).expect("a drive on the socket");
    driver.create_queues(1, 64, None).expect("a queue pair");
    let buffer = driver.allocate(BUFFER_BYTES as u64);
    let pages = BUFFER_BYTES as u64 / 4096;
    let list: Vec<u8> = (1..pages).flat_map(|page| (buffer + page * 4096).to_le_bytes()).collect();
    let list = driver.allocate_with(&list);
    Box::new(OverVfioUser { driver, buffer, list })
}

impl Host for OverVfioUser {
    fn command(&mut self, queue: Queue, mut entry: SubmissionEntry, data: Data<'_>) -> u32 {
        let bytes = match &data {
            Data::ToController(data) => data.len(),
            Data::ToHost(data) => data.len(),
        };
        match bytes {
            ..=4096 => entry.set_prps(self.buffer, 0),
            4097..=8192 => entry.set_prps(self.buffer, self.buffer + 4096),
            _ => entry.set_prps(self.buffer, self.list),
        }
        if let Data::ToController(data) = data {
            self.driver.write_ram(self.buffer, data);
        }
        let completion = self.driver.command(queue as u16, entry).expect("a completion");
        assert_eq!(completion.status.status(), Status::SUCCESS, "{entry:?}");
        if let Data::ToHost(data) = data {
            self.driver.read_ram(self.buffer, data);
        }
        completion.dw0.get()
    }
}

struct OverTcp {
    controller: RemoteController,
    queue: tcp::TcpQueue,
}

fn over_tcp(server: &Server, _socket: &Path) -> Box<dyn Host> {
    let address = server.tcp_address().expect("NVMe/TCP is served");
    let mut controller = RemoteController::connect(&HostOptions::new(address, NQN)).expect("a drive at the address");
    controller.set_queue_count(1).expect("a queue");
    let queue = controller.io_queue(1, 64).expect("a queue");
    Box::new(OverTcp { controller, queue })
}

impl Host for OverTcp {
    fn command(&mut self, queue: Queue, entry: SubmissionEntry, data: Data<'_>) -> u32 {
        let sent = match &data {
            Data::ToController(data) => tcp::CommandData::ToController(data.to_vec()),
            Data::ToHost(data) => tcp::CommandData::ToHost(data.to_vec()),
        };
        let completion = match queue {
            Queue::Admin => self.controller.admin(entry, sent),
            Queue::Io => self.queue.command(entry, sent),
        };
        let completion = completion.expect("a completion");
        assert_eq!(completion.status(), Status::SUCCESS, "{entry:?}");
        if let Data::ToHost(data) = data {
            data.copy_from_slice(&completion.data);
        }
        completion.entry.dw0.get()
    }
}

#[test]
fn lab_vfio_user_and_tcp_count_the_same_bytes() {
    let amplification = |(name, changes)| Case::new(name, 1, changes).check();
    let amplifications = [("FDP", EACH_ITS_OWN), ("Mixed", MIXED), ("NoFDP", NONE)].map(amplification);
    let [fdp, mixed, none] = amplifications;
    assert!(1.0 <= fdp && fdp < mixed && mixed < none, "placement matters: {amplifications:?}");
}

#[test]
fn so_they_do_with_several_reclaim_groups() {
    for groups in [2, 4] {
        Case::new("each its own", groups, EACH_ITS_OWN).check();
        Case::new("no directives", groups, NONE).check();
        Case::new("some directives", groups, SOME).check();
    }
}

#[test]
fn so_they_do_in_a_namespace_with_some_handles_in_an_order_of_its_own() {
    for (groups, handles) in [(1, &[3, 1, 7, 0]), (2, &[3, 1, 5, 2])] {
        let case = Case { handles: Some(handles), ..Case::new("handles of its own, some directives", groups, SOME) };
        case.check();
    }
    let case = Case { handles: Some(&[3, 1]), ..Case::new("two handles, no directives", 2, NONE) };
    case.check();
}

#[test]
fn so_they_do_with_placement_switched_off() {
    for groups in [1, 2, 4] {
        let case = Case { fdp: false, ..Case::new("switched off", groups, NONE) };
        case.check();
    }
}

#[test]
fn so_they_do_when_the_drive_is_restarted_on_its_way() {
    let case = Case { restarts: true, handles: Some(&[3, 1]), ..Case::new("restarted", 4, SOME) };
    case.check();
}

#[test]
fn so_they_do_for_a_trace_that_the_lab_replays_at_its_own_times_on_drives_with_timing() {
    for (name, changes) in [("replayed, each its own", EACH_ITS_OWN), ("replayed, no directives", NONE)] {
        let case = Case { replayed: true, ..Case::new(name, 1, changes) };
        case.check();
    }
}
