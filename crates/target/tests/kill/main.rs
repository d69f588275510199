//! Kills a server under write load, repeatedly on the same files. Acknowledged durable data
//! remains, no block is torn, and the drive recovers.
//!
//! ```text
//! parent:   spawn victim -> read its reports -> SIGKILL -> spawn verifier -> compare its findings
//! victim:   open the drive, execute operations n, n + 1, ..., report the durable ones until dead,
//!           or serve the drive over NVMe/TCP, with the parent as host (`over_tcp`)
//! verifier: open the drive, check the device's state, read all data, shut down or end as if killed
//! ```
//!
//! Seed and n alone determine operation n, so the reports contain only the numbers of durable
//! operations. All three roles run this test binary, chosen by the environment variable [`ROLE`].
//! To replay, set `WARP_KILL_SEED` to the seed that a failure prints. The times of the kills follow
//! from it, up to the machine's speed.

mod over_tcp;
mod plan;
#[path = "../small_drive/mod.rs"]
mod small_drive;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nvme_spec::command::SubmissionEntry;
use nvme_spec::{AdminOpcode, Status};
use plan::{Expectation, FLUSH_EVERY, Kind, Operation, Plan};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use small_drive::{Client, config, open_with};
use ssd::Lpn;
use target::storage::ServedDrive;
use target::storage::backend::pattern;
use target::{SharedSubsystem, lock};
use zerocopy::FromZeros;

/// `victim`, `server` or `verifier`, with its arguments.
const ROLE: &str = "WARP_KILL_ROLE";
/// Set in processes whose drive has checksums.
const CHECKSUMS: &str = "WARP_KILL_CHECKSUMS";
/// An FDP event type. Operations enable and disable it, which changes non-volatile state.
const EVENT_KIND: u8 = 0x03;

fn set_event(client: &Client, enabled: bool) {
    let mut entry = SubmissionEntry::new_zeroed();
    entry.opcode = AdminOpcode::SetFeatures as u8;
    entry.nsid = 1.into();
    entry.cdw10 = 0x1e.into();
    entry.cdw11 = (1 << 16).into();
    entry.cdw12 = u32::from(enabled).into();
    assert_eq!(client.execute(0, &entry, &mut vec![EVENT_KIND]), Status::SUCCESS);
}

// ----------------------------------------------------------------------------------------------------------- victim --

/// Not a separate test. The parent starts it as victim and verifier.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let words: Vec<&str> = role.splitn(5, ' ').collect();
    let [role, seed, format, number, path] = words[..] else {
        panic!("{ROLE} = {role:?}");
    };
    let plan = Plan { seed: seed.parse().unwrap(), format: format.parse().unwrap(), lanes: 1 };
    match role {
        "victim" => victim(plan, number.parse().unwrap(), Path::new(path)),
        "server" => over_tcp::server(plan, Path::new(path)),
        "verifier" => verifier(plan, number == "1", Path::new(path)),
        _ => panic!("{ROLE} = {role:?}"),
    }
}

/// Reports a line to the parent in one write.
fn report(line: String) {
    std::io::stderr().write_all((line + "\n").as_bytes()).unwrap();
}

fn victim(plan: Plan, first: u32, path: &Path) {
    let (mut shared, mut drive, opened) =
        open_with(path, config(plan.format), std::env::var_os(CHECKSUMS).is_some()).unwrap();
    report(format!("opened {opened}"));
    let mut client = Client::connect(&shared);
    let mut data = Vec::new();
    for number in first.. {
        let Operation { kind, first, count } = plan.operation(number);
        match kind {
            Kind::Write | Kind::WriteThrough => {
                data.resize((count * plan.block_bytes()) as usize, 0);
                pattern::fill(first * plan.block_bytes(), number, &mut data);
                let through = kind == Kind::WriteThrough;
                assert_eq!(client.write(first, plan.block_bytes(), &data, through), Status::SUCCESS);
                if through {
                    report(format!("durable {number}"));
                }
            }
            Kind::Deallocate => assert_eq!(client.deallocate(first, count), Status::SUCCESS),
            Kind::WriteZeroes => assert_eq!(client.write_zeroes(first, count), Status::SUCCESS),
            Kind::Flush => {
                assert_eq!(client.flush(), Status::SUCCESS);
                report(format!("flushed {number}"));
            }
            Kind::EnableEvent(enabled) => {
                set_event(&client, enabled);
                report(format!("durable {number}"));
            }
            Kind::Checkpoint => {
                drive.checkpoint(|| {}).unwrap();
            }
            Kind::Restart => {
                (shared, drive) = restart(shared, drive, plan, path);
                client = Client::connect(&shared);
                report(format!("flushed {number}"));
            }
        }
    }
}

fn restart(shared: SharedSubsystem, mut drive: ServedDrive, plan: Plan, path: &Path) -> (SharedSubsystem, ServedDrive) {
    drive.close().unwrap();
    drop((shared, drive));
    let (shared, drive, opened) = open_with(path, config(plan.format), std::env::var_os(CHECKSUMS).is_some()).unwrap();
    assert!(opened.clean, "{opened}");
    (shared, drive)
}

// --------------------------------------------------------------------------------------------------------- verifier --

/// Writes the generation of each block as little-endian integers to the file with the extension
/// `found`, and reports the state on standard error.
fn verifier(plan: Plan, shut_down: bool, path: &Path) {
    let (shared, mut drive, opened) =
        open_with(path, config(plan.format), std::env::var_os(CHECKSUMS).is_some()).unwrap();
    lock(&shared).device().check().unwrap();
    let client = Client::connect(&shared);
    let mut found = Vec::new();
    let at_once = (1 << 20) / plan.block_bytes();
    for first in (0..plan.blocks()).step_by(at_once as usize) {
        let data = client.read(first, at_once, plan.block_bytes()).unwrap();
        for (block, number) in data.chunks_exact(plan.block_bytes() as usize).zip(first..) {
            let address = number * plan.block_bytes();
            // A torn block has no single generation.
            let generation = pattern::verify(address, block).expect("no block is torn");
            let page = Lpn((address / 4096) as u32);
            let mapped = lock(&shared).device().lookup(page).is_some();
            assert!(generation == 0 || mapped, "block {number} has data and is not mapped");
            found.extend(generation.to_le_bytes());
        }
    }
    std::fs::write(path.with_extension("found"), found).unwrap();
    let enabled = lock(&shared).namespaces().next().unwrap().1.events_enabled[0].contains(EVENT_KIND);
    report(format!("event {}", u8::from(enabled)));
    report(format!("rebuilt {} {} {}", u8::from(opened.clean), opened.pages_mapped_again, opened.pages_deallocated));
    report(format!("opened {opened}"));
    if shut_down {
        drive.close().unwrap();
    }
    // Skips all work of an orderly end.
    std::process::exit(0);
}

// ----------------------------------------------------------------------------------------------------------- parent --

fn spawn(role: &str, plan: Plan, number: u32, path: &Path) -> Child {
    let checksums = plan.has_checksums().then_some((CHECKSUMS, "1"));
    Command::new(std::env::current_exe().unwrap())
        .envs(checksums)
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, format!("{role} {} {} {number} {}", plan.seed, plan.format, path.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Reports of a victim before its death.
#[derive(Default)]
struct Reports {
    opened: bool,
    flushed: Option<u32>,
    durable: Vec<u32>,
}

impl Reports {
    fn note(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("opened", _)) => self.opened = true,
            Some(("flushed", number)) => self.flushed = Some(number.parse().unwrap()),
            Some(("durable", number)) => self.durable.push(number.parse().unwrap()),
            _ => panic!("the victim says {line:?}"),
        }
    }
}

/// Reads a complete line. A line cut off by the kill does not count.
fn line(from: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line.strip_suffix('\n').map(str::to_string)
}

/// Runs a victim from operation `first` on and kills it after `lines` reports and a short delay.
/// Records the allowed and the required results. Returns the last operation that may have begun.
fn kill_one(plan: Plan, first: u32, path: &Path, lines: u32, delay: Duration, expected: &mut Expectation) -> u32 {
    let mut victim = spawn("victim", plan, first, path);
    let mut said = BufReader::new(victim.stderr.take().unwrap());
    let mut reports = Reports::default();
    for _ in 0..lines {
        match line(&mut said) {
            Some(line) => reports.note(&line),
            None => panic!("the victim ended by itself: {:?}", victim.wait().unwrap()),
        }
    }
    let until = Instant::now() + delay;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    victim.kill().unwrap();
    let status = victim.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "the victim ended by itself: {status:?}");
    while let Some(line) = line(&mut said) {
        reports.note(&line);
    }
    let flushed = reports.flushed.unwrap_or(first - 1);
    // If the victim opened the drive, all operations up to the next flush may have begun.
    let last = if reports.opened { flushed + FLUSH_EVERY } else { first - 1 };
    for number in first..=last {
        expected.operation(number, number <= flushed || reports.durable.contains(&number));
    }
    last
}

/// Restarts the drive and compares its content. Returns whether it was clean, and the pages mapped
/// again and deallocated.
fn verify(plan: Plan, shut_down: bool, path: &Path, expected: &mut Expectation) -> [u64; 3] {
    let mut verifier = spawn("verifier", plan, u32::from(shut_down), path);
    let mut said = String::new();
    verifier.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(verifier.wait().unwrap().success(), "the drive did not come up in order:\n{said}");
    let word = |name: &str| -> &str {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("the verifier says {said:?}"))
    };
    let found = std::fs::read(path.with_extension("found")).unwrap();
    let found: Vec<u32> = found.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect();
    expected.compare(&found, word("event ") == "1");
    let rebuilt: Vec<u64> = word("rebuilt ").split(' ').map(|number| number.parse().unwrap()).collect();
    let rebuilt: [u64; 3] = rebuilt.try_into().unwrap();
    let opened = word("opened ");
    assert!(
        !plan.has_checksums() || (opened.ends_with("with checksums") || opened.ends_with("Its checksums are valid")),
        "the order of system calls is enough for checksums: {opened}"
    );
    match rebuilt {
        [1, ..] => {
            assert!(opened.starts_with("drive of 64 MiB, shut down cleanly") || opened.starts_with("new"), "{opened}")
        }
        [_, mapped, deallocated] => {
            let words = format!("{mapped} pages were mapped again and {deallocated} were deallocated");
            assert!(opened.contains("was not shut down cleanly") && opened.contains(&words), "{opened}");
        }
    }
    rebuilt
}

/// Kills, restarts and compares.
fn kill_again_and_again(name: &str, format: u8, lanes: u32, kills: u32) {
    let seed = std::env::var("WARP_KILL_SEED").map_or(20_260_101, |seed| seed.parse().expect("a number"));
    println!("{name}: to replay, WARP_KILL_SEED={seed}");
    let plan = Plan { seed, format, lanes };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ u64::from(format));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.img");
    let mut expected = Expectation::new(plan);
    let (mut last, mut unclean, mut mapped, mut deallocated) = (0, 0, 0, 0);
    for kill in 0..kills {
        // A third of the victims die while they open the drive, or at their first commands.
        let early = random.random_range(0..3) == 0;
        let delay = Duration::from_micros(random.random_range(0..if early { 20_000 } else { 3000 }));
        let shut_down = random.random_range(0..3) == 0;
        let once = std::panic::AssertUnwindSafe(|| {
            last = match lanes {
                1 => {
                    let lines = if early { 0 } else { random.random_range(1..40) };
                    kill_one(plan, last + 1, &path, lines, delay, &mut expected)
                }
                _ => {
                    let flushes = if early { 0 } else { random.random_range(1..12) };
                    over_tcp::kill_server(plan, last + 1, &path, flushes, delay, &mut expected)
                }
            };
            verify(plan, shut_down, &path, &mut expected)
        });
        let verified = std::panic::catch_unwind(once);
        let [clean, again, gone] =
            verified.unwrap_or_else(|_| panic!("{name}, seed {seed}, kill {kill} of {kills}, operations up to {last}"));
        unclean += 1 - clean;
        mapped += again;
        deallocated += gone;
    }
    println!(
        "{name}: {kills} kills, {last} operations, {unclean} recoveries, {mapped} pages mapped again, {deallocated} \
         deallocated"
    );
    assert!(unclean > u64::from(kills) / 2 && mapped > 0 && deallocated > 0, "the kills did not hit anything");
}

#[test]
fn a_hundred_kills_lose_nothing_that_was_flushed() {
    kill_again_and_again("blocks of 4096 bytes", 0, 1, 100);
}

#[test]
fn blocks_of_512_bytes_are_not_torn_either() {
    kill_again_and_again("blocks of 512 bytes", 1, 1, 30);
}

#[test]
fn a_server_that_is_killed_has_completed_only_what_is_durable() {
    kill_again_and_again("over NVMe/TCP", 0, over_tcp::LANES, 30);
}
