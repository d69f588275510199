//! Reliable output: files that a command reports are complete, and failed writes are errors.

mod common;

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{ServerProcess, files, folder, json, prints, refused, warp, write};
use tempfile::TempDir;

/// Exit code of a result that cannot be written.
const FAILED: i32 = 1;
/// Exit code without a reader, 128 + SIGPIPE.
const NO_READER: i32 = 141;
/// Exit code after SIGINT or SIGTERM.
const STOPPED: i32 = 130;

/// Run of less than a second.
const RUN: &str = "run job.fio --device warp_default --scale 1/1024 --drive-writes 0.2 --untimed";
/// The same run in virtual time.
const TIMED: &str = "run job.fio --device ssd_a --scale 1/1024 --seconds 0.002";
/// Export of a workload to a file.
const EXPORT: &str = "export job.fio";

fn with_files() -> TempDir {
    let folder = folder();
    write(&folder, "job.fio", "[job]\nrw=randwrite\nbs=64k\nsize=10%\n");
    write(&folder, "device.toml", "");
    write(&folder, "owners.csv", "all,0,67108864,0\n");
    let two = "title = \"t\"\nsource = \"\"\ndevices = [\"warp_default\"]\nworkload = \"job.fio\"\n[run]\ndrive_writes = 0.1\n\
               scale = \"1/1024\"\n[quick]\ndrive_writes = 0.1\nscale = \"1/1024\"\n";
    write(&folder, "own.toml", two);
    folder
}

fn command(folder: &TempDir, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warp"));
    command.env_remove("RUST_BACKTRACE").current_dir(folder).args(line.split_whitespace());
    command.env("WARP_RUNS", common::kept_in(folder)).stdin(Stdio::null());
    command
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("Linux has it")
}

/// Asserts this exit code, and one sentence unless the code means a signal.
#[track_caller]
fn ended(line: &str, output: &Output, code: i32, says: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{line}: {error}");
    assert!(!error.contains("panicked"), "{line}: {error}");
    if says.is_empty() {
        assert!(error.is_empty(), "{line}: {error}");
        return;
    }
    assert_eq!(error.trim_end().lines().count(), 1, "{line}: {error}");
    for part in says {
        assert!(error.contains(part), "{line} does not say {part:?}: {error}");
    }
}

/// Asserts that a folder has neither incomplete nor temporary files.
fn whole(folder: &Path) {
    for path in files(folder).iter().filter(|path| path.is_file()) {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let bytes = std::fs::read(path).expect("it can be read");
        assert!(!name.ends_with(".part"), "{name} is left");
        let is_whole = match path.extension().and_then(|extension| extension.to_str()) {
            Some("html") => String::from_utf8_lossy(&bytes).trim_end().ends_with("</html>"),
            Some("parquet") => bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1") && bytes.len() > 8,
            Some("json") => serde_json::from_slice::<serde_json::Value>(&bytes).is_ok(),
            Some("iolog") => bytes.ends_with(b" close\n"),
            Some("warp") => ssd::Device::load(path).is_ok(),
            _ => true,
        };
        assert!(is_whole, "{name} is {} bytes and not whole", bytes.len());
    }
}

/// Returns all commands that print, except benchmarks and servers.
fn printing(folder: &TempDir) -> Vec<String> {
    prints(folder, &format!("{RUN} --save-snapshot device.warp --out before").split(' ').collect::<Vec<_>>());
    let mut lines: Vec<String> = [
        "list",
        "list devices",
        "list devices --json",
        "show device ssd_a",
        "show device ssd_a --json",
        "list jobs",
        "show fio-options",
        "show job job.fio",
        "list",
        "list --json",
        "run",
        "show device ssd_a",
        "show device ssd_a --json",
        "drive inspect device.warp",
        "drive inspect device.warp --json",
        "completions bash",
        "man",
        "man run",
        "help",
        "run --help",
        "--version",
        "reproduce ./own.toml",
        "reproduce ./own.toml --json",
        "export job.fio to.iolog",
        "export job.fio iologs --per-placement",
    ]
    .map(String::from)
    .to_vec();
    lines.extend(["", " --json", " --handles"].map(|more| format!("{RUN}{more}")));
    lines.push(format!("{TIMED} --fio-json -"));
    lines.extend(["--events", "--series"].map(|option| format!("{RUN} {option} -")));
    lines
}

#[test]
fn standard_output_that_takes_nothing_is_an_error() {
    let folder = with_files();
    for line in printing(&folder) {
        let output = command(&folder, &line).stdout(full()).output().expect("it runs");
        ended(&line, &output, FAILED, &["standard output cannot be written", "No space left"]);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command(&folder, &line).stdout(writer).output().expect("it runs");
        ended(&line, &output, NO_READER, &[]);
    }
    // The files have the results, regardless of readers of the tables.
    assert!(folder.path().join("out/job/report.html").is_file());
    whole(folder.path());
    // An unreadable message does not change the exit code.
    let mut wrong = command(&folder, "show device ssd_aa");
    let status = wrong.stderr(full()).status().expect("it runs");
    assert_eq!(status.code(), Some(common::BAD_INPUT));
}

#[test]
fn advice_that_cannot_be_written_is_an_error() {
    let folder = with_files();
    let served = ServerProcess::start(&folder, &["--capacity", "64M", "--timing", "off", "--tcp", "127.0.0.1:0"]);
    let drive = format!("tcp:{}", served.address());
    let advise = format!("drive advise {drive} --owners owners.csv --readings 1");
    for line in [advise.clone(), format!("{advise} --json -"), format!("drive inspect {drive}")] {
        let output = command(&folder, &line).stdout(full()).output().expect("it runs");
        ended(&line, &output, FAILED, &["standard output cannot be written"]);
    }
    let line = format!("{advise} --json /dev/full");
    let output = command(&folder, &line).output().expect("it runs");
    ended(&line, &output, FAILED, &["/dev/full cannot be written", "No space left"]);
    served.stop();
}

/// Returns each option that names a file, with the file.
fn to_files(to: &Path) -> Vec<String> {
    let to = |name: &str| to.join(name).display().to_string();
    vec![
        format!("{RUN} --out out --events {}", to("gc.parquet")),
        format!("{RUN} --out out --series {}", to("s.parquet")),
        format!("{RUN} --out out --save-snapshot {}", to("device.warp")),
        format!("{RUN} --json --out {}", to("report")),
        format!("{TIMED} --out out --fio-json {}", to("fio.json")),
        format!("{EXPORT} {}", to("one.iolog")),
        format!("{EXPORT} {} --per-placement", to("all")),
        format!("reproduce ./own.toml --claims {}", to("claims.md")),
        format!("reproduce ./own.toml --fidelity {}", to("fidelity.md")),
    ]
}

#[test]
fn a_file_that_takes_nothing_is_an_error() {
    let folder = with_files();
    for line in to_files(Path::new("/dev")) {
        let Some((head, name)) = line.split_once("/dev/") else { panic!("{line}") };
        // Folders are tested on a full disk below.
        if name.contains("--per") || head.ends_with("--json --out ") {
            continue;
        }
        let line = format!("{head}/dev/full");
        if ["--save-snapshot", "--claims", "--fidelity"].iter().any(|option| head.contains(option)) {
            refused(&folder, &line.split(' ').collect::<Vec<_>>(), &["/dev/full", "not a regular file"]);
            continue;
        }
        let output = command(&folder, &line).output().expect("it runs");
        ended(&line, &output, FAILED, &["/dev/full cannot be written", "No space left"]);
    }
    use std::os::unix::fs::FileTypeExt;
    let device = std::fs::metadata("/dev/full").expect("it is there").file_type();
    assert!(device.is_char_device(), "what is no file is not replaced by one");
}

/// File system of a few pages, if this process may mount one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<SmallDisk> {
        std::fs::create_dir(at).expect("a folder");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8k", "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| SmallDisk(at.to_path_buf()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing_half_written() {
    let folder = with_files();
    let Some(disk) = SmallDisk::mount(&folder.path().join("disk")) else {
        eprintln!("no disk of our own can be mounted here; /dev/full stands for it");
        return;
    };
    write(&folder, "disk/room", vec![0; 8192]);
    for line in to_files(&disk.0) {
        let output = command(&folder, &line).stdout(Stdio::null()).output().expect("it runs");
        ended(&line, &output, FAILED, &["cannot be written", "No space left"]);
        let left: Vec<PathBuf> = files(&disk.0).into_iter().filter(|path| path.is_file()).collect();
        assert_eq!(left, [disk.0.join("room")], "{line}");
    }
}

#[test]
fn what_is_stopped_leaves_nothing_half_written() {
    use rustix::process::{Pid, Signal, kill_process};
    let folder = with_files();
    let all = "--out out --events out/gc.parquet --series out/s.parquet --save-snapshot out/device.warp";
    let run = format!("run job.fio --device warp_default --scale 1/64 --drive-writes 900 --untimed {all}");
    let endless = "export endless.fio one.iolog --requests 100000000000";
    write(&folder, "endless.fio", "[job]\nrw=randwrite\nbs=4k\nsize=10%\ntime_based\nruntime=1\n");
    for (line, signal) in [(run.as_str(), Signal::TERM), (&run, Signal::INT), (endless, Signal::TERM)] {
        let mut running = command(&folder, line);
        let mut child = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        std::thread::sleep(Duration::from_millis(700));
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let begun = Instant::now();
        while child.try_wait().expect("its status").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{line} goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = child.wait_with_output().expect("its output");
        ended(line, &output, STOPPED, &["stopping"]);
        whole(folder.path());
    }
    assert!(folder.path().join("out/gc.parquet").is_file(), "what was measured is written");
    assert!(!folder.path().join("one.iolog").exists(), "half a workload is none");
}

#[test]
fn what_cannot_be_written_is_refused_before_the_run() {
    let folder = with_files();
    let refused = |line: &str, says: &[&str]| {
        let arguments: Vec<&str> = line.split(' ').collect();
        refused(&folder, &arguments, says);
    };
    // The whole run would take hours.
    let run = "run job.fio --device warp_default --drive-writes 1000";
    refused(&format!("{run} --untimed --out job.fio"), &["job.fio", "folder"]);
    refused(&format!("{run} --untimed --out /proc/none"), &["/proc/none", "folder"]);
    refused(&format!("{run} --untimed --json --events /dev/stdout"), &["--events", "one document", "--json"]);
    refused(&format!("{run} --untimed --events - --series /dev/stdout"), &["--series", "one document", "--events"]);
    refused(&format!("{run} --untimed --save-snapshot -"), &["--save-snapshot", "standard output"]);
    refused(&format!("{run} --untimed --events same --series same"), &["--series", "same", "--events"]);
    let timed = "run job.fio --device ssd_a --seconds 100000";
    refused(&format!("{timed} --json --fio-json -"), &["--fio-json", "one document", "--json"]);
    refused(&format!("{run} --fio-json fio.json"), &["--fio-json", "no timing"]);
    refused("run latency --fio-json fio.json", &["--fio-json", "fio's JSON describes one run"]);
    refused("reproduce ./own.toml --claims missing/claims.md", &["missing/claims.md"]);
    refused(
        "reproduce ./own.toml --claims same.md --fidelity same.md",
        &["--fidelity", "same.md is the file of --claims already"],
    );
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    write(&folder, "notes.md", "# My notes\n");
    for option in ["--claims", "--fidelity"] {
        refused(&format!("reproduce ./own.toml {option} pipe"), &[option, "pipe is not a regular file"]);
        refused(&format!("reproduce ./own.toml {option} notes.md"), &["notes.md", "other content", "another file"]);
    }
    // Only with the rights to set the attribute, and on a file system that has it.
    let set = |attribute: &str| Command::new("chattr").arg(attribute).arg(folder.path().join("notes.md")).status();
    if set("+i").is_ok_and(|status| status.success()) {
        refused("export job.fio notes.md", &["notes.md", "its attributes forbid a change"]);
        set("-i").expect("it was set");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("notes.md")).expect("it is there"), "# My notes\n");
    refused("export job.fio missing/one.iolog", &["missing/one.iolog"]);
    refused("export job.fio job.fio/all --per-placement", &["job.fio/all", "folder"]);
}

#[test]
fn results_are_printed_before_a_page_that_cannot_be_written() {
    let folder = with_files();
    // Files of this process take no byte, while standard output is a pipe.
    let limited = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    for (json, expected) in [("", "WAF"), (" --json", "warp-results")] {
        let line = format!("reproduce ./own.toml --no-keep --claims claims.md{json}");
        let warp = command(&folder, &line);
        let mut shell = Command::new("sh");
        shell.args(["-c", limited]).arg(warp.get_program()).args(warp.get_args());
        shell.envs(warp.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = shell.current_dir(folder.path()).output().expect("it runs");
        ended(&line, &output, FAILED, &["claims.md cannot be written", "File too large"]);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains(expected), "{line}: {printed}");
    }
}

#[test]
fn a_stream_has_one_document() {
    let folder = with_files();
    let one = prints(&folder, &["reproduce", "./own.toml", "--json"]);
    assert_eq!(json(&one)["format"], "warp-results");
    let two = json(&prints(&folder, &["reproduce", "./own.toml", "./own.toml", "--json"]));
    assert_eq!(two.as_array().map(Vec::len), Some(2), "{two}");
}

#[test]
fn standard_output_takes_the_events_and_the_series_of_a_run() {
    let folder = with_files();
    for option in ["--events", "--series"] {
        let line = format!("{RUN} --no-keep {option}");
        let output = command(&folder, &format!("{line} -")).output().expect("it runs");
        ended(&line, &output, 0, &[]);
        assert!(output.stdout.starts_with(b"PAR1") && output.stdout.ends_with(b"PAR1"), "{option}: Parquet alone");
        prints(&folder, &format!("{line} file.parquet").split(' ').collect::<Vec<_>>());
        let file = std::fs::read(folder.path().join("file.parquet")).expect("it was written");
        assert_eq!(output.stdout, file, "{option}: the same file");
    }
}

#[test]
fn a_message_is_broken_at_the_width_of_a_terminal() {
    let folder = folder();
    let refused = ["run", "one_stream", "--drive-writes", "0"];
    let piped = String::from_utf8(warp(&folder, &refused).stderr).expect("text");
    assert!(piped.chars().count() > 60 && piped.lines().count() == 1, "{piped}");
    // `script` runs a command on a terminal of its own.
    let line = format!("stty columns 60 && '{}' {}", env!("CARGO_BIN_EXE_warp"), refused.join(" "));
    let shown = Command::new("script").args(["-qec", &line, "/dev/null"]).current_dir(&folder).output();
    let shown = String::from_utf8(shown.expect("script runs").stdout).expect("text");
    assert!(shown.lines().count() > 1 && shown.lines().all(|line| line.chars().count() <= 60), "{shown}");
    let words = |text: &str| text.split_whitespace().map(str::to_string).collect::<Vec<String>>();
    assert_eq!(words(&shown), words(&piped));
}

#[test]
fn shells_and_man_know_the_command() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish"] {
        let script = prints(&folder, &["completions", shell]);
        assert!(script.contains("reproduce"), "{script}");
    }
    let page = prints(&folder, &["man"]);
    assert!(page.contains(".TH warp 1") && page.contains("reproduce"), "{page}");
    let page = prints(&folder, &["man", "run"]);
    assert!(page.contains(".TH warp-run 1") && page.contains("fio\\-json"), "{page}");
    refused(&folder, &["man", "rum"], &["there is no command rum", "did you mean run?"]);
}
