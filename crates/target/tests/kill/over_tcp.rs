//! The victim serves the drive over NVMe/TCP, with continuous checkpoints. The parent is a host
//! with eight commands in parallel. The test thus checks that the whole server completes no command
//! before it is durable.

use std::io::{BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use initiator::command::block_command;
use initiator::tcp::{CommandData, HostOptions, InitiatorError, RemoteController, TcpQueue};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::{IoOpcode, Status};
use target::server::{ServeOptions, Server};
use target::storage::backend::pattern;
use target::storage::{DataChoice, DriveOptions};
use target::tcp::TcpOptions;

use crate::plan::{Expectation, Kind, Operation, Plan};
use crate::small_drive::config;
use crate::{line, report, spawn};

/// Commands in parallel.
pub const LANES: u32 = 8;

pub fn server(plan: Plan, path: &Path) {
    let drive =
        DriveOptions { subsystem: config(plan.format), data: DataChoice::File(path.to_path_buf()), checksums: true };
    let options = ServeOptions {
        drive,
        vfio_user: Vec::new(),
        tcp: Some(TcpOptions::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))),
        metrics: None,
        checkpoint_every: Some(Duration::from_millis(1)),
        faults: None,
        at_power_loss: None,
        scrub_every: Some(Duration::from_millis(100)),
    };
    let (server, _) = Server::start(options).unwrap();
    report(format!("listening {}", server.tcp_address().unwrap()));
    loop {
        std::thread::park();
    }
}

/// Progress of a host when its drive dies.
struct Progress {
    /// Last operation sent.
    sent: u32,
    /// Last operation flushed.
    flushed: u32,
    /// Completed writes with Force Unit Access.
    durable: Vec<u32>,
}

/// Kills the victim after a delay.
fn kill_after(victim: &Arc<Mutex<Child>>, delay: Duration) -> JoinHandle<()> {
    let victim = Arc::clone(victim);
    let until = Instant::now() + delay;
    std::thread::spawn(move || {
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        victim.lock().unwrap().kill().unwrap();
    })
}

/// Serves the drive and works on it from operation `first` on. Kills the server after `flushes`
/// flushes and a short delay, and records the allowed and the required results. Returns the last
/// operation sent.
pub fn kill_server(
    plan: Plan,
    first: u32,
    path: &Path,
    flushes: u32,
    delay: Duration,
    expected: &mut Expectation,
) -> u32 {
    let mut victim = spawn("server", plan, 0, path);
    let mut said = BufReader::new(victim.stderr.take().unwrap());
    let victim = Arc::new(Mutex::new(victim));
    let mut killer = (flushes == 0).then(|| kill_after(&victim, delay));
    let mut progress = Progress { sent: first - 1, flushed: first - 1, durable: Vec::new() };
    // The server may die before it reports its address.
    if let Some(line) = line(&mut said) {
        let address = line.strip_prefix("listening ").and_then(|address| address.parse().ok());
        let address: SocketAddr = address.unwrap_or_else(|| panic!("the server says {line:?}"));
        let mut flushed = 0;
        let end = host(plan, address, &mut progress, || {
            flushed += 1;
            if flushed == flushes {
                killer = Some(kill_after(&victim, delay));
            }
        });
        let end = end.expect_err("the host works until the server dies");
        assert!(!matches!(end, InitiatorError::Command { .. }), "{end}");
    }
    killer.expect("a server does not end by itself").join().unwrap();
    let status = victim.lock().unwrap().wait().unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(status.signal() == Some(9) && rest.is_empty(), "the server ended by itself: {status:?}\n{rest}");
    for number in first..=progress.sent {
        expected.operation(number, number <= progress.flushed || progress.durable.contains(&number));
    }
    progress.sent
}

/// Works on the drive until the server dies.
fn host(
    plan: Plan,
    address: SocketAddr,
    progress: &mut Progress,
    mut flushed: impl FnMut(),
) -> Result<(), InitiatorError> {
    let mut controller = RemoteController::connect(&HostOptions::new(address, &config(plan.format).identity.nqn))?;
    controller.set_queue_count(1)?;
    let mut queue = controller.io_queue(1, 32)?;
    loop {
        // Operations of different lanes run together, up to a flush, which runs alone.
        let mut together = Vec::new();
        let mut next = progress.sent + 1;
        while together.len() < LANES as usize && plan.operation(next).kind != Kind::Flush {
            together.push(next);
            next += 1;
        }
        if together.is_empty() {
            progress.sent = next;
            let entry =
                SubmissionEntry { opcode: IoOpcode::Flush.code(), nsid: 1.into(), ..SubmissionEntry::default() };
            queue.command(entry, CommandData::None)?.check("Flush")?;
            progress.flushed = next;
            flushed();
            continue;
        }
        progress.sent = next - 1;
        let ids: Vec<(u16, u32)> =
            together.into_iter().map(|number| (submit(&mut queue, plan, number), number)).collect();
        for _ in 0..ids.len() {
            let done = queue.wait()?;
            assert_eq!(done.status(), Status::SUCCESS);
            let (_, number) = ids.iter().find(|(id, _)| *id == done.cid).expect("a command that was sent");
            if plan.operation(*number).kind == Kind::WriteThrough {
                progress.durable.push(*number);
            }
        }
    }
}

fn submit(queue: &mut TcpQueue, plan: Plan, number: u32) -> u16 {
    let Operation { kind, first, count } = plan.operation(number);
    let with = |opcode, bits: u32| {
        let mut entry = block_command(opcode, 1, first, count as u32);
        entry.cdw12 = (entry.cdw12.get() | bits).into();
        entry
    };
    match kind {
        Kind::Write | Kind::WriteThrough => {
            let mut data = vec![0; (count * plan.block_bytes()) as usize];
            pattern::fill(first * plan.block_bytes(), number, &mut data);
            let force_unit_access = u32::from(kind == Kind::WriteThrough) << 30;
            queue.submit(with(IoOpcode::Write, force_unit_access), CommandData::ToController(data))
        }
        Kind::Deallocate => queue.submit(with(IoOpcode::WriteZeroes, 1 << 25), CommandData::None),
        Kind::WriteZeroes => queue.submit(with(IoOpcode::WriteZeroes, 0), CommandData::None),
        Kind::Flush | Kind::EnableEvent(_) | Kind::Checkpoint | Kind::Restart => {
            unreachable!("not in a plan with lanes")
        }
    }
}
