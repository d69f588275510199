//! `warp drive advise` on a served drive: the owners that it names, its notices about missing data,
//! and its exit codes.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use common::{BAD_INPUT, ServerProcess, errors, folder, json, prints, refused, write};
use initiator::command::block_command;
use initiator::tcp::{CommandData, HostOptions, RemoteController, TcpQueue};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::{AdminOpcode, FeatureId, IoOpcode, Status};
use serde_json::Value;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const BLOCK_BYTES: u64 = 4096;
/// Owners that both write with placement identifier 0.
const OWNERS: &str = "hot,0,8388608,0\nwarm,8388608,58720256,0\n";
const SERVE: [&str; 6] = ["--capacity", "64M", "--timing", "off", "--tcp", "127.0.0.1:0"];
const LOG: [&str; 6] = ["--owners", "owners.csv", "--policy", "reported", "--json", "-"];

/// Host that writes to a served drive.
struct Writer {
    controller: RemoteController,
    queue: TcpQueue,
    random: u64,
}

impl Writer {
    fn new(served: &ServerProcess) -> Writer {
        let mut controller =
            RemoteController::connect(&HostOptions::new(served.address(), &served.nqn())).expect("a drive");
        controller.set_queue_count(1).expect("a queue");
        let queue = controller.io_queue(1, 32).expect("a queue");
        Writer { controller, queue, random: 1 }
    }

    /// Returns a random number below a limit (xorshift).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }

    /// Enables Media Reallocated for all placement handles.
    fn enable_events(&mut self) {
        for handle in 0..8u32 {
            let entry = SubmissionEntry {
                opcode: AdminOpcode::SetFeatures.code(),
                nsid: 1.into(),
                cdw10: u32::from(FeatureId::FlexibleDataPlacementEvents.code()).into(),
                cdw11: (handle | 1 << 16).into(),
                cdw12: 1.into(),
                ..SubmissionEntry::default()
            };
            let done = self.controller.admin(entry, CommandData::ToController(vec![0x80]));
            assert_eq!(done.expect("a completion").status(), Status::SUCCESS);
        }
    }

    /// Writes with placement identifier 0.
    fn write(&mut self, offset: u64, bytes: u64) {
        const TRANSFER_BYTES: u64 = 128 << 10;
        for start in (offset..offset + bytes).step_by(TRANSFER_BYTES as usize) {
            let length = TRANSFER_BYTES.min(offset + bytes - start);
            let entry = block_command(IoOpcode::Write, 1, start / BLOCK_BYTES, (length / BLOCK_BYTES) as u32);
            let done = self.queue.command(entry, CommandData::ToController(vec![1; length as usize]));
            assert_eq!(done.expect("a completion").status(), Status::SUCCESS);
        }
    }

    /// Writes randomly to `hot` in small requests, with a run of `warm` among them in every reclaim
    /// unit.
    fn misplace(&mut self, rounds: u64) {
        const RUN_BYTES: u64 = 64 << 10;
        for _ in 0..rounds {
            let run = self.below(56 * MIB / RUN_BYTES);
            self.write(8 * MIB + run * RUN_BYTES, RUN_BYTES);
            for _ in 0..48 {
                let block = self.below(8 * MIB / BLOCK_BYTES);
                self.write(block * BLOCK_BYTES, BLOCK_BYTES);
            }
        }
    }
}

/// Returns a drive with a full event log, in which `warm` is mixed with `hot`, and its owner map.
fn misplaced(folder: &TempDir) -> (ServerProcess, Writer, String) {
    let served = ServerProcess::start(folder, &SERVE);
    write(folder, "owners.csv", OWNERS);
    let mut writer = Writer::new(&served);
    writer.enable_events();
    writer.write(0, 64 * MIB);
    writer.misplace(400);
    let target = format!("tcp:{}", served.address());
    (served, writer, target)
}

fn readings(printed: &str) -> Vec<Value> {
    printed.lines().map(json).collect()
}

/// Returns the kinds of the notices of a reading.
fn notices(reading: &Value) -> Vec<&str> {
    let all = reading["notices"].as_array().expect("notices");
    all.iter().map(|notice| notice["kind"].as_str().expect("a kind")).collect()
}

/// `warp drive advise` process that runs beside the test.
struct AdviseProcess {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl AdviseProcess {
    fn start(folder: &TempDir, target: &str, arguments: &[&str]) -> AdviseProcess {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warp"));
        command.args(["drive", "advise", target]).args(arguments).current_dir(folder);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program runs");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        AdviseProcess { process, output }
    }

    fn reading(&mut self) -> Value {
        let mut line = String::new();
        let bytes = self.output.read_line(&mut line).expect("text");
        assert!(bytes > 0, "it ended: {}", errors(&mut self.process));
        json(&line)
    }

    /// Waits for the end. Returns the exit code and the last line.
    fn end(mut self) -> (Option<i32>, String) {
        let status = self.process.wait().expect("it ends");
        (status.code(), errors(&mut self.process))
    }
}

impl Drop for AdviseProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_owner_whose_data_is_copied_is_named() {
    let folder = folder();
    let (_served, mut writer, target) = misplaced(&folder);
    let advise = [&["drive", "advise", &target], &LOG[..], &["--readings", "2", "--every", "0.1"]].concat();
    let found = readings(&prints(&folder, &advise));
    assert_eq!(found.len(), 2);
    let first = &found[0];
    assert_eq!((first["events"].as_u64(), notices(first)), (Some(63), vec![]), "{first}");
    let row = &first["owners"][0];
    assert_eq!((&row["owner"], &row["found_with"]), (&"warm".into(), &0.into()), "{first}");
    assert!(row["confidence"].as_f64() > Some(0.5), "{first}");
    let step = first["moves"].as_array().expect("moves").iter().find(|step| step["owner"] == "warm");
    let step = step.expect("warm moves");
    assert_eq!((&step["from"], &step["to"], &step["carried_out"]), (&0.into(), &1.into(), &false.into()));
    assert!(step["expected_saving_bytes"].as_u64() > Some(0), "{first}");
    assert_eq!(first["handles"][0]["used"], "host specified");
    assert_eq!((&found[1]["events"], &found[1]["host_bytes"]), (&0.into(), &0.into()));

    // All output formats have the same advice.
    let once = ["drive", "advise", &target, "--owners", "owners.csv", "--policy", "reported", "--readings", "1"];
    let text = prints(&folder, &once);
    assert!(text.contains("63 new events") && text.contains("move to 1, saves about"), "{text}");
    assert!(text.contains("total of 1 readings: 63 new events"), "{text}");
    let csv = prints(&folder, &[&once[..], &["--format", "csv"]].concat());
    let rows: Vec<&str> = csv.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(rows[0], "owner,placement,events,copied by GC (bytes),confidence,advice", "{csv}");
    assert!(rows[1].starts_with("warm,0,") && csv.contains("# reading 1: "), "{csv}");
    let lines = prints(&folder, &[&once[..], &["--format", "json"]].concat());
    assert_eq!(json(&lines)["events"], 63);
    refused(
        &folder,
        &[&once[..], &["--format", "json", "--json", "lines.json"]].concat(),
        &["--format", "Remove one of the two"],
    );
    let parts =
        ["--chunks", "8", "--policy", "observe", "--json", "-", "--from-now", "--every", "1", "--readings", "1"];
    let mut watching = AdviseProcess::start(&folder, &target, &parts);
    writer.misplace(2);
    let reading = watching.reading();
    assert!(reading["moves"].as_array().is_some_and(Vec::is_empty), "{reading}");
    assert_eq!(watching.end(), (Some(0), String::new()));
}

#[test]
fn hooks_carry_moves_out_or_fail() {
    let folder = folder();
    let (_served, _writer, target) = misplaced(&folder);
    let advise = [&["drive", "advise", &target], &LOG[..], &["--readings", "1", "--hook"]].concat();
    let hook = r#"echo "$WARP_OWNER $WARP_FROM $WARP_TO $WARP_REASON" >>moves"#;
    let reading = json(&prints(&folder, &[&advise[..], &[hook]].concat()));
    let moves = std::fs::read_to_string(folder.path().join("moves")).expect("the hook ran");
    assert!(moves.lines().any(|line| line == "warm 0 1 reported"), "{moves}");
    let carried_out = |reading: &Value| reading["moves"][0]["carried_out"].as_bool();
    assert_eq!((carried_out(&reading), &reading["owners"][0]["placement"]), (Some(true), &1.into()));

    let reading = json(&prints(&folder, &[&advise[..], &["exit 3"]].concat()));
    assert_eq!((carried_out(&reading), &reading["owners"][0]["placement"]), (Some(false), &0.into()));
    assert!(notices(&reading).contains(&"hook_failed"), "{reading}");
}

#[test]
fn a_drive_that_reports_nothing_is_told_how_to() {
    let folder = folder();
    let served = ServerProcess::start(&folder, &SERVE);
    write(&folder, "owners.csv", OWNERS);
    let mut writer = Writer::new(&served);
    writer.write(0, 64 * MIB);
    writer.misplace(50);
    let target = format!("tcp:{}", served.address());
    let reading = one_reading(&folder, &target);
    assert_eq!((&reading["events"], notices(&reading)), (&0.into(), vec!["event_not_enabled"]));
    let text = reading["notices"][0]["text"].as_str().expect("text");
    assert!(text.contains("nvme fdp set-events DEVICE --namespace-id=1 --placement-handle=0"), "{text}");
}

/// Returns a single reading of the drive's log.
fn one_reading(folder: &TempDir, target: &str) -> Value {
    json(&prints(folder, &[&["drive", "advise", target], &LOG[..], &["--readings", "1"]].concat()))
}

#[test]
fn events_that_nobody_owns_are_counted() {
    let folder = folder();
    let (_served, _writer, target) = misplaced(&folder);
    write(&folder, "owners.csv", "other,0,4096\n");
    let reading = one_reading(&folder, &target);
    assert!(reading["events_without_owner"].as_u64() > Some(60), "{reading}");
    assert_eq!(notices(&reading), ["events_without_owner"]);
}

#[test]
fn lost_events_and_a_namespace_that_is_gone_are_said() {
    let folder = folder();
    let (_served, mut writer, target) = misplaced(&folder);
    let mut watching = AdviseProcess::start(&folder, &target, &[&LOG[..], &["--every", "3"]].concat());
    assert_eq!(watching.reading()["loss"], "none");
    writer.misplace(300);
    let reading = watching.reading();
    assert_eq!((&reading["loss"], notices(&reading)), (&"wrapped".into(), vec!["log_wrapped"]), "{reading}");
    assert!(reading["write_amplification"].as_f64() > Some(1.0), "{reading}");
    let delete = SubmissionEntry {
        opcode: AdminOpcode::NamespaceManagement.code(),
        nsid: 1.into(),
        cdw10: 1.into(),
        ..SubmissionEntry::default()
    };
    let deleted = writer.controller.admin(delete, CommandData::None).expect("a completion");
    assert_eq!(deleted.status(), Status::SUCCESS);
    let (code, error) = watching.end();
    assert_eq!(code, Some(BAD_INPUT));
    assert!(error.ends_with("namespace 1 does not exist. No namespace is attached to the controller\n"), "{error}");
}

/// The command finds a restarted server again, and gives up on a missing one after a while.
#[test]
fn a_server_that_is_killed_is_waited_for() {
    let folder = folder();
    write(&folder, "owners.csv", OWNERS);
    let stored = ["--capacity", "64M", "--data", "drive.img", "--tcp"];
    let mut served = ServerProcess::start(&folder, &[&stored[..], &["127.0.0.1:0"]].concat());
    let address = served.address().to_string();
    let target = format!("tcp:{address}");
    let mut watching = AdviseProcess::start(&folder, &target, &[&LOG[..], &["--every", "0.3"]].concat());
    watching.reading();
    served.process.kill().expect("it runs");
    served.process.wait().expect("it ends");
    let mut served = ServerProcess::start(&folder, &[&stored[..], &[&address]].concat());
    let back = (0..50).map(|_| watching.reading()).find(|reading| notices(reading).contains(&"reconnected"));
    assert!(back.is_some(), "it goes on");
    served.process.kill().expect("it runs");
    let (code, error) = watching.end();
    assert_eq!(code, Some(BAD_INPUT));
    assert!(
        error.starts_with(&format!("warp: {target}: the connection to the drive is lost, and 5 attempts")),
        "{error}"
    );
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
}

#[test]
fn ctrl_c_ends_it_with_a_summary() {
    let folder = folder();
    let served = ServerProcess::start(&folder, &SERVE);
    write(&folder, "owners.csv", OWNERS);
    let target = format!("tcp:{}", served.address());
    let mut watching = AdviseProcess::start(&folder, &target, &["--owners", "owners.csv", "--json", "log.jsonl"]);
    let mut printed = String::new();
    while !printed.contains("no evidence yet") {
        assert!(watching.output.read_line(&mut printed).expect("text") > 0, "{printed}");
    }
    let id = rustix::process::Pid::from_child(&watching.process);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
    std::io::Read::read_to_string(&mut watching.output, &mut printed).expect("text");
    assert!(printed.contains("total of 1 readings: 0 new events, 0 B written"), "{printed}");
    assert_eq!(watching.end(), (Some(130), String::new()));
    let lines = std::fs::read_to_string(folder.path().join("log.jsonl")).expect("a file");
    assert_eq!(json(&lines)["reading"], 1);
}

#[test]
fn inputs_that_make_no_sense_are_refused() {
    let folder = folder();
    let served = ServerProcess::start(&folder, &SERVE);
    let target = format!("tcp:{}", served.address());
    let says = |arguments: &[&str], says: &[&str]| {
        refused(&folder, &[&["drive", "advise", &target, "--readings", "1"], arguments].concat(), says)
    };
    says(&[], &["--owners", "--files", "--chunks"]);
    says(&["--owners", "a", "--chunks", "2"], &["--owners", "--chunks"]);
    says(&["--owners", "nothing.csv"], &["nothing.csv"]);
    write(&folder, "bad.csv", "a,0\n");
    says(&["--owners", "bad.csv"], &["bad.csv", "line 1", "OWNER,START_BYTES,BYTES"]);
    write(&folder, "large.csv", "a,0,67112960\n");
    says(&["--owners", "large.csv"], &["large.csv", "a ends at byte 67112960", "67108864"]);
    write(&folder, "identifier.csv", "a,0,4096,8\n");
    says(&["--owners", "identifier.csv"], &["placement identifier 8", "0 to 7"]);
    says(&["--chunks", "20000"], &["--chunks", "16384 logical blocks"]);
    says(&["--chunks", "2", "--depth", "1"], &["--chunks", "--depth"]);
    says(&["--chunks", "2", "--policy", "best"], &["reported, lifetimes or observe"]);
    says(&["--chunks", "2", "--every", "0"], &["--every", "0.01"]);
    says(
        &["--chunks", "2", "--namespace", "9"],
        &["namespace 9 does not exist", "The controller has the namespaces 1"],
    );
    says(&["--files", "/proc"], &["/proc", "instead of an NVMe namespace"]);
    says(&["--chunks", "2", "--json", "nowhere/log"], &["nowhere/log"]);
    let elsewhere = |target: &str, says: &[&str]| {
        refused(&folder, &["drive", "advise", target, "--chunks", "2", "--readings", "1"], says)
    };
    elsewhere("tcp:here", &["tcp:ADDRESS:PORT"]);
    elsewhere("drive.img", &["tcp:ADDRESS:PORT", "/dev/ng0n1"]);
    elsewhere("/dev/null", &["/dev/null", "not an NVMe device"]);
    elsewhere("/dev/nvme99n1", &["/dev/nvme99n1", "the device does not exist"]);
    served.stop();
    elsewhere(&target, &["no server listens", "warp serve --tcp"]);
    let served = ServerProcess::start(&folder, &[&SERVE[..], &["--fdp", "off"]].concat());
    let target = format!("tcp:{}", served.address());
    elsewhere(&target, &["Flexible Data Placement is disabled in endurance group 1", "nvme fdp feature"]);
}
