//! `warp serve --faults` and `warp drive faults` as a shell sees them, and a failing drive as hosts
//! on both transports see it.

mod common;

use std::net::SocketAddr;

use common::{ServerProcess, errors, folder, prints, refused, write, write_secret};
use initiator::command::{admin_entry, block_command};
use initiator::pcie::{DriverOptions, NvmeDriver};
use initiator::tcp::{CommandData, HostOptions, RemoteController, TcpQueue};
use nvme_spec::{AdminOpcode, IoOpcode, Status, SubmissionEntry};
use tempfile::TempDir;

const TOKEN: &str = "0123456789abcdef";
const BLOCK: usize = 4096;

/// Serves a small drive over NVMe/TCP.
fn serve(folder: &TempDir, more: &[&str]) -> ServerProcess {
    let mut arguments = vec!["--capacity", "64M", "--tcp", "127.0.0.1:0", "--quiet"];
    arguments.extend(more);
    ServerProcess::start(folder, &arguments)
}

/// Connects the admin queue of a host, which holds its association, and a queue for I/O.
fn connect(server: &ServerProcess) -> (RemoteController, TcpQueue) {
    let mut controller =
        RemoteController::connect(&HostOptions::new(server.address(), &server.nqn())).expect("it is served");
    controller.set_queue_count(1).expect("queues");
    let queue = controller.io_queue(1, 32).expect("a queue");
    (controller, queue)
}

fn write_block(queue: &mut TcpQueue, lba: u64, byte: u8) -> Status {
    let entry = block_command(IoOpcode::Write, 1, lba, 1);
    let completion = queue.command(entry, CommandData::ToController(vec![byte; BLOCK]));
    completion.expect("a completion").status()
}

/// Returns the content of a block, or the status of the failed read.
fn read_block(queue: &mut TcpQueue, lba: u64) -> Result<u8, Status> {
    let entry = block_command(IoOpcode::Read, 1, lba, 1);
    let done = queue.command(entry, CommandData::ToHost(vec![0; BLOCK])).expect("a completion");
    let is_whole = done.data.iter().all(|byte| *byte == done.data[0]);
    match done.status() {
        Status::SUCCESS if is_whole => Ok(done.data[0]),
        Status::SUCCESS => panic!("block {lba} is torn"),
        status => Err(status),
    }
}

fn flush() -> SubmissionEntry {
    SubmissionEntry { opcode: IoOpcode::Flush.code(), nsid: 1.into(), ..SubmissionEntry::default() }
}

fn metrics_address(server: &ServerProcess) -> SocketAddr {
    let (_, after) = server.introduction.split_once("http://").expect("metrics are served");
    after.split('/').next().expect("an address").parse().expect("an address")
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let folder = folder();
    let serve = ["serve", "--tcp", "127.0.0.1:0", "--capacity", "64M", "--faults", "plan.toml"];
    refused(&folder, &serve, &["plan.toml"]);
    write(&folder, "plan.toml", "seed = 1\n[[fault]]\nkind = \"slow\"\n");
    refused(&folder, &serve, &["plan.toml: line 2: in fault 1", "slow", "Give one of error, delay"]);
    write(&folder, "plan.toml", "[[fault]]\nkind = \"power_loss\"\n");
    refused(&folder, &serve, &["a power_loss fault needs", "--data FILE"]);
    write_secret(&folder, "token", TOKEN);
    let faults = |more: &[&'static str]| [&["drive", "faults", "127.0.0.1:1", "--token", "token"], more].concat();
    refused(&folder, &faults(&["--show"]), &["127.0.0.1:1", "warp serve --metrics"]);
    refused(&folder, &faults(&[]), &["--clear", "--show"]);
    write(&folder, "plan.toml", "[[fault]]\n");
    refused(&folder, &faults(&["plan.toml"]), &["plan.toml: line 1", "kind"]);
}

#[test]
fn faults_change_while_the_drive_is_served() {
    let folder = folder();
    write_secret(&folder, "token", TOKEN);
    let bad = "seed = 7\n[[fault]]\nname = \"bad\"\nkind = \"error\"\ncommands = [\"read\"]\n\
               blocks = { first = 5, count = 1 }\n";
    write(&folder, "bad.toml", bad);
    write(&folder, "full.toml", "[[fault]]\nname = \"worn\"\nkind = \"read_only\"\n");
    let http = ["--metrics", "127.0.0.1:0", "--metrics-token", "token", "--faults", "bad.toml"];
    let server = serve(&folder, &http);
    assert!(server.introduction.contains("Faults: 1 of bad.toml, seed 7"), "{}", server.introduction);
    let (_controller, mut queue) = connect(&server);
    assert_eq!(write_block(&mut queue, 5, 1), Status::SUCCESS);
    assert_eq!(read_block(&mut queue, 5), Err(Status::UNRECOVERED_READ_ERROR));
    assert_eq!(read_block(&mut queue, 4), Ok(0));
    let address = metrics_address(&server).to_string();
    let faults = |what: &'static str| prints(&folder, &["drive", "faults", &address, "--token", "token", what]);
    let shown = faults("--show");
    assert!(shown.starts_with("seed 7, 3 I/O commands since the start of the plan\n"), "{shown}");
    assert!(shown.contains("bad  error           active         1\n"), "{shown}");
    let answer = target::http::send_request(metrics_address(&server), TOKEN, "/metrics", None);
    let metrics = answer.expect("an answer").1;
    assert!(metrics.contains("warp_faults_struck_total{fault=\"bad\",kind=\"error\"} 1\n"), "{metrics}");
    faults("full.toml");
    assert_eq!(read_block(&mut queue, 5), Ok(1));
    assert_eq!(write_block(&mut queue, 5, 2), Status::WRITE_TO_READ_ONLY_RANGE);
    assert_eq!(faults("--clear"), "no faults are planned\n");
    assert_eq!(write_block(&mut queue, 5, 2), Status::SUCCESS);
    write_secret(&folder, "wrong", "another token, as long");
    refused(&folder, &["drive", "faults", &address, "--token", "wrong", "--clear"], &["Authorization"]);
    server.stop();
}

#[test]
fn a_power_loss_ends_the_server_and_keeps_what_was_flushed() {
    let folder = folder();
    write(&folder, "plan.toml", "survivors = 0.4\n[[fault]]\nkind = \"power_loss\"\nfrom_command = 152\n");
    let mut server = serve(&folder, &["--data", "drive.img", "--faults", "plan.toml"]);
    let (controller, mut queue) = connect(&server);
    for lba in 0..50 {
        assert_eq!(write_block(&mut queue, lba, 1), Status::SUCCESS);
    }
    assert_eq!(queue.command(flush(), CommandData::None).expect("a completion").status(), Status::SUCCESS);
    for lba in 25..125 {
        assert_eq!(write_block(&mut queue, lba, 2), Status::SUCCESS);
    }
    let end = queue.command(flush(), CommandData::None);
    assert!(end.is_err(), "nobody answers without power");
    let status = server.process.wait().expect("it ends");
    let said = errors(&mut server.process);
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("cut the power of the drive before I/O command 152") && said.contains("unflushed"), "{said}");
    drop((controller, queue));

    let server = serve(&folder, &["--data", "drive.img"]);
    assert!(server.introduction.contains("which was not shut down"), "{}", server.introduction);
    let (_controller, mut queue) = connect(&server);
    let found: Vec<u8> = (0..125).map(|lba| read_block(&mut queue, lba).expect("readable")).collect();
    assert!(found[..25].iter().all(|byte| *byte == 1), "{found:?}");
    assert!(found[25..50].iter().all(|byte| matches!(byte, 1 | 2)), "{found:?}");
    assert!(found[50..].iter().all(|byte| matches!(byte, 0 | 2)), "{found:?}");
    let survived = found.iter().filter(|byte| **byte == 2).count();
    assert!((20..60).contains(&survived), "{survived} of 100 survived");
    server.stop();
}

/// Linux aborts a command that does not complete.
#[test]
fn a_guest_aborts_what_is_stuck() {
    let folder = folder();
    write(&folder, "plan.toml", "[[fault]]\nkind = \"stuck\"\ncommands = [\"flush\"]\n");
    let server = ServerProcess::start(
        &folder,
        &["--capacity", "64M", "--vfio-user", "guest.sock", "--faults", "plan.toml", "--quiet"],
    );
    let mut driver =
        NvmeDriver::start(&folder.path().join("guest.sock"), DriverOptions::default()).expect("it is served");
    driver.create_queues(1, 16, None).expect("queues");
    let stuck = driver.submit(1, flush());
    let well = driver.submit(1, flush());
    driver.ring(1).expect("it is served");
    let first = driver.wait_completion(1).expect("a completion");
    assert_eq!((first.cid.get(), first.status.status()), (well, Status::SUCCESS));
    let mut abort = admin_entry(AdminOpcode::Abort);
    abort.cdw10 = (u32::from(stuck) << 16 | 1).into();
    let aborted = driver.command(0, abort).expect("a completion");
    assert_eq!((aborted.status.status(), aborted.dw0.get()), (Status::SUCCESS, 0));
    let last = driver.wait_completion(1).expect("a completion");
    assert_eq!((last.cid.get(), last.status.status()), (stuck, Status::ABORT_REQUESTED));
    drop(driver);
    server.stop();
}

/// Over NVMe/TCP, Linux reconnects after a time limit.
#[test]
fn a_host_that_comes_again_leaves_what_is_stuck_behind() {
    let folder = folder();
    write(&folder, "plan.toml", "[[fault]]\nkind = \"stuck\"\ncommands = [\"write\"]\n");
    let server = serve(&folder, &["--faults", "plan.toml"]);
    let (controller, mut queue) = connect(&server);
    let entry = block_command(IoOpcode::Write, 1, 0, 1);
    queue.submit(entry, CommandData::ToController(vec![1; BLOCK]));
    assert_eq!(read_block(&mut queue, 0), Ok(0), "others go on");
    assert_eq!(queue.outstanding(), 1);
    drop((controller, queue));
    let (_controller, mut queue) = connect(&server);
    assert_eq!(write_block(&mut queue, 0, 2), Status::SUCCESS);
    assert_eq!(read_block(&mut queue, 0), Ok(2));
    server.stop();
}
