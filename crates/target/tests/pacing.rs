//! Pacing of a served drive with timing: no completion is early on either transport, and the drive
//! reports the delays.

mod small_drive;
#[path = "../../nvme/tests/common/timing.rs"]
mod times;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use initiator::command::block_command;
use initiator::pcie::{DriverOptions, NvmeDriver};
use initiator::tcp::{CommandData, HostOptions, RemoteController};
use nvme::{Subsystem, media};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::{IoOpcode, Status};
use small_drive::{CAPACITY_BYTES, PAGE_BYTES, config};
use target::storage::backend::MemoryBackend;
use target::tcp::{TcpOptions, TcpServer};
use target::vfio_user::{VfioUserOptions, VfioUserServer};
use target::{ServerClock, SharedSubsystem, lock};

const READ: Duration = Duration::from_millis(3);
const READS: u64 = 20;

fn shared() -> SharedSubsystem {
    let mut config = config(0);
    config.device.timing = Some(times::controller_alone(READ.as_nanos() as u64, 1));
    let memory = MemoryBackend::new(media::bytes_for(CAPACITY_BYTES));
    Arc::new(Mutex::new(Subsystem::new(config, Box::new(memory)).expect("the drive works")))
}

fn read() -> SubmissionEntry {
    block_command(IoOpcode::Read, 1, 0, 1)
}

/// Checks the delays that the drive reports after [`READS`] reads that took `elapsed` in total.
#[track_caller]
fn check(shared: &SharedSubsystem, elapsed: Duration) {
    assert!(elapsed >= READ * READS as u32, "{READS} reads took {elapsed:?}");
    let lateness = lock(shared).pacing().lateness();
    assert!(lateness.completions >= READS, "{lateness:?}");
    assert!(lateness.p50_ns <= lateness.p99_ns && lateness.p99_ns <= lateness.max_ns, "{lateness:?}");
    // Together they are the time beyond the reads' own time.
    let late = elapsed - READ * READS as u32;
    assert!(Duration::from_nanos(lateness.p50_ns) <= late, "{lateness:?}, {late:?} in all");
}

#[test]
fn vfio_user_keeps_the_time_of_the_model() {
    let shared = shared();
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("nvme.sock");
    let server = VfioUserServer::start(&socket, Arc::clone(&shared), ServerClock::start(), VfioUserOptions::default());
    let _server = server.expect("a server");
    let mut driver = NvmeDriver::start(&socket, DriverOptions::default()).expect("the drive comes up");
    driver.create_queues(1, 64, Some(1)).expect("a queue pair");
    let buffer = driver.allocate(PAGE_BYTES);
    let start = Instant::now();
    for _ in 0..READS {
        let mut entry = read();
        driver.set_prps(&mut entry, buffer, PAGE_BYTES);
        let completion = driver.command(1, entry).expect("a completion");
        assert_eq!(completion.status.status(), Status::SUCCESS);
    }
    check(&shared, start.elapsed());
}

#[test]
fn nvme_tcp_keeps_the_time_of_the_model() {
    let shared = shared();
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server =
        TcpServer::start(TcpOptions::new(loopback), Arc::clone(&shared), ServerClock::start()).expect("a server");
    let nqn = lock(&shared).config().identity.nqn.clone();
    let mut controller =
        RemoteController::connect(&HostOptions::new(server.local_address(), &nqn)).expect("a controller");
    controller.set_queue_count(1).expect("a queue count");
    let mut queue = controller.io_queue(1, 16).expect("a queue");
    let start = Instant::now();
    for _ in 0..READS {
        let done = queue.command(read(), CommandData::ToHost(vec![0; PAGE_BYTES as usize]));
        assert_eq!(done.expect("a completion").status(), Status::SUCCESS);
    }
    check(&shared, start.elapsed());
}
