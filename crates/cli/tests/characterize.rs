//! `warp characterize` and `warp watch` on served drives: the files of a characterization, its
//! continuation after a kill, and drives that fail or report little.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{ServerProcess, errors, files, folder, prints, refused, warp};
use serde_json::Value;
use tempfile::TempDir;

const SERVE: [&str; 6] = ["--device", "warp_default", "--timing", "off", "--tcp", "127.0.0.1:0"];

fn serve(folder: &TempDir, more: &[&str]) -> (ServerProcess, String) {
    let capacity = if more.contains(&"--capacity") { &[][..] } else { &["--capacity", "64M"] };
    let server = ServerProcess::start(folder, &[&SERVE[..], capacity, more].concat());
    let target = format!("tcp:{}", server.address());
    (server, target)
}

fn measure<'a>(target: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["characterize", target, "--out", "drive", "--yes", "--no-fit", "--load-seconds", "0.2"][..], more].concat()
}

fn text(folder: &TempDir, file: &str) -> String {
    std::fs::read_to_string(folder.path().join("drive").join(file)).expect(file)
}

/// Rows of a CSV by their first column.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

/// First row of a table with this second column.
fn row_of<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    rows(table).into_iter().find(|row| row[1] == name).unwrap_or_else(|| panic!("{name} in {table}"))
}

fn completed(journal: &str) -> Vec<String> {
    let records = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter(|one| one["record"] == "end").map(|one| one["probe"].as_str().expect("a name").to_string()).collect()
}

#[test]
fn a_served_drive_is_measured_and_the_files_agree_with_the_model() {
    let folder = folder();
    let (server, target) = serve(&folder, &[]);
    let printed = prints(&folder, &measure(&target, &["--drive-writes", "3"]));
    assert!(printed.contains("8 handles of") && printed.contains("measured."), "{printed}");
    let drive: Value = serde_json::from_str(&text(&folder, "drive.json")).expect("JSON");
    assert_eq!((&drive["counter"], &drive["capacity_bytes"]), (&"fdp".into(), &(64 << 20).into()));
    assert_eq!(drive["fdp"]["isolation"][0], "initially_isolated");
    let unit = drive["fdp"]["reclaim_unit_bytes"].as_u64().expect("a size");
    assert_eq!(drive["fdp"]["reclaim_unit_writable_bytes"].as_u64(), Some(unit), "RUAMW starts at a whole unit");
    let measurements = text(&folder, "measurements.csv");
    let rows = rows(&measurements);
    let waf = |probe: &str| -> f64 {
        let row = rows.iter().find(|row| row[0] == probe).unwrap_or_else(|| panic!("{probe} in {measurements}"));
        row[2].parse().expect("a number")
    };
    assert!((0.999..1.01).contains(&waf("sequential")), "{measurements}");
    assert!(waf("uniform") > 2.0 && waf("streams_apart") < waf("streams_mixed"), "{measurements}");
    assert_eq!(rows.iter().filter(|row| row[9] == "holdout").count(), 1, "{measurements}");
    // The model repeats the writes of a probe, and so comes near its write amplification.
    let row = rows.iter().find(|row| row[0] == "uniform").expect("a row");
    let model =
        ["run", "drive/jobs/uniform.fio", "--device", "warp_default", "--capacity", "64M", "--precondition", "1"];
    let model = prints(&folder, &[&model[..], &["--drive-writes", row[5], "--json", "--no-keep"]].concat());
    let model: Value = serde_json::from_str(&model).expect("JSON");
    let tail = model["cells"][0]["tail_waf"].as_f64().expect("a number");
    assert!((tail / waf("uniform") - 1.0).abs() < 0.05, "{tail} in the model, {} on the drive", waf("uniform"));
    let times = text(&folder, "times.csv");
    for (what, least) in
        [("read_latency_mean", 1.0), ("write_latency_p99", 1.0), ("read_iops", 100.0), ("write_rate", 1.0)]
    {
        let row = row_of(&times, what);
        assert!(row[3].parse::<f64>().is_ok_and(|value| value > least), "{what} in {times}");
    }
    let samples = files(&folder.path().join("drive/samples"));
    assert_eq!(samples.len(), rows.len() + 2, "each probe has samples, {samples:?}");
    assert_eq!(std::fs::read(&samples[0]).expect("a file")[..4], *b"PAR1");
    server.stop();
}

#[test]
fn a_killed_characterization_continues_with_the_probe_in_progress() {
    let folder = folder();
    let (server, target) = serve(&folder, &[]);
    let arguments = measure(&target, &["--drive-writes", "1.5"]);
    let journal = folder.path().join("drive/journal.jsonl");
    let ended = |count: usize| {
        let begun = Instant::now();
        while completed(&std::fs::read_to_string(&journal).unwrap_or_default()).len() < count {
            assert!(begun.elapsed() < Duration::from_secs(300), "the probes take too long");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_warp"));
    command.args(&arguments).current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
    let mut first = command.spawn().expect("the program runs");
    ended(2);
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    let done = completed(&std::fs::read_to_string(&journal).expect("a journal"));
    // A power loss may tear the last line.
    let mut torn = std::fs::OpenOptions::new().append(true).open(&journal).expect("a journal");
    std::io::Write::write_all(&mut torn, b"{\"record\":\"sam").expect("written");
    drop(torn);
    // A full disk may cut the other files.
    let [job, samples] =
        ["jobs/sequential.fio", "samples/sequential.parquet"].map(|file| folder.path().join("drive").join(file));
    let whole = [&job, &samples].map(|file| std::fs::read(file).expect("a file of a completed probe"));
    for (file, bytes) in [&job, &samples].into_iter().zip(&whole) {
        std::fs::write(file, &bytes[..bytes.len() / 2]).expect("written");
    }
    let remedy = "Remove the file, and the same command writes it again";
    refused(&folder, &arguments, &["jobs/sequential.fio is not the job of the completed probe sequential", remedy]);
    std::fs::remove_file(&job).expect("it exists");
    prints(&folder, &arguments);
    assert_eq!(std::fs::read(&job).expect("a file"), whole[0]);
    assert!(std::fs::read(&samples).expect("a file").ends_with(b"PAR1"), "the samples are complete");
    let all = completed(&std::fs::read_to_string(&journal).expect("a journal"));
    assert_eq!(all[..done.len()], done, "completed probes are kept");
    let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "no probe ran to its end twice: {all:?}");
    assert!(all.len() > 10, "{all:?}");
    server.stop();
}

#[test]
fn a_drive_that_disappears_is_a_sentence_and_the_journal_continues() {
    let folder = folder();
    let (mut server, target) = serve(&folder, &["--data", "drive.img"]);
    let arguments = measure(&target, &["--drive-writes", "1.5"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_warp"));
    command.args(&arguments).current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = command.spawn().expect("the program runs");
    let journal = folder.path().join("drive/journal.jsonl");
    while completed(&std::fs::read_to_string(&journal).unwrap_or_default()).is_empty() {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.process.kill().expect("it runs");
    assert_eq!(running.wait().expect("it ends").code(), Some(2));
    let error = errors(&mut running);
    assert!(error.contains("keeps the finished probes, and the same command continues"), "{error}");
}

#[test]
fn a_drive_without_fdp_is_measured_by_its_ocp_log() {
    let folder = folder();
    let (server, target) = serve(&folder, &["--fdp", "off"]);
    let printed = prints(&folder, &measure(&target, &["--drive-writes", "1.25"]));
    assert!(printed.contains("no FDP") && printed.contains("Handles are not measured"), "{printed}");
    let drive: Value = serde_json::from_str(&text(&folder, "drive.json")).expect("JSON");
    assert_eq!((&drive["counter"], &drive["fdp"]), (&"ocp".into(), &Value::Null));
    let measurements = text(&folder, "measurements.csv");
    assert!(measurements.contains("\nblocks_small,"), "{measurements}");
    assert!(!measurements.contains("streams_"), "{measurements}");
    let printed = prints(&folder, &["watch", &target, "--every", "1s", "--readings", "1"]);
    assert!(printed.contains("from the OCP log C0h"), "{printed}");
    server.stop();
}

#[test]
fn without_counters_rates_are_compared() {
    let folder = folder();
    let (server, target) = serve(&folder, &[]);
    let arguments = measure(&target, &["--drive-writes", "1.25", "--without-counters", "--budget", "1s"]);
    let printed = prints(&folder, &arguments);
    assert!(printed.contains("Media bytes are unknown") && printed.contains(" MB/s"), "{printed}");
    assert!(!printed.contains(" +- "), "a rate is no write amplification: {printed}");
    let drive: Value = serde_json::from_str(&text(&folder, "drive.json")).expect("JSON");
    assert_eq!(drive["counter"], Value::Null);
    let measurements = text(&folder, "measurements.csv");
    for row in rows(&measurements) {
        match row[0] {
            "uniform" => assert_eq!(row[2..5], ["", "", ""], "{measurements}"),
            _ => assert!(row[4] == "uniform" && row[8] == "true", "{measurements}"),
        }
    }
    // The counters exist, so this is another measurement.
    refused(&folder, &measure(&target, &[]), &["no counter", "fdp counter", "Choose another folder"]);
    server.stop();
}

#[test]
fn a_drive_that_returns_errors_is_a_sentence_and_the_journal_continues() {
    let folder = folder();
    // The fault begins after the fills and workloads of the first probes.
    let plan =
        "[[fault]]\nkind = \"error\"\ncommands = [\"write\"]\nstatus = \"internal_error\"\nfrom_command = 4000\n";
    common::write(&folder, "plan.toml", plan);
    let (server, target) = serve(&folder, &["--faults", "plan.toml", "--data", "drive.img"]);
    let arguments = measure(&target, &["--drive-writes", "1.25"]);
    let failed = warp(&folder, &arguments);
    assert_eq!(failed.status.code(), Some(2));
    let error = String::from_utf8(failed.stderr).expect("text");
    assert!(error.contains("Internal Error") && error.contains("keeps the finished probes"), "{error}");
    server.stop();
    let before = completed(&text(&folder, "journal.jsonl"));
    assert!(!before.is_empty(), "the fault begins after a probe");
    // The drive is repaired, and the same command continues on its new address.
    let (server, target) = serve(&folder, &["--data", "drive.img"]);
    prints(&folder, &measure(&target, &["--drive-writes", "1.25", "--budget", "1s"]));
    let after = completed(&text(&folder, "journal.jsonl"));
    assert_eq!(after[..before.len()], before, "completed probes are kept");
    assert!(after.len() > before.len(), "{after:?}");
    server.stop();
}

#[test]
fn blocks_of_512_bytes_and_a_dry_run() {
    let folder = folder();
    let (server, target) = serve(&folder, &["--block", "512"]);
    let printed = prints(&folder, &["characterize", &target, "--dry-run"]);
    assert!(printed.contains("uniform") && printed.contains("% of a life of 1825 drive writes"), "{printed}");
    assert!(!folder.path().join("out").exists(), "a dry run writes no file");
    let printed = prints(&folder, &measure(&target, &["--budget", "1s", "--drive-writes", "1.25"]));
    assert!(printed.contains("The time is over") || printed.contains("measured."), "{printed}");
    let drive: Value = serde_json::from_str(&text(&folder, "drive.json")).expect("JSON");
    assert_eq!(drive["block_bytes"], 512);
    server.stop();
}

#[test]
fn another_drive_or_a_damaged_journal_is_refused() {
    let folder = folder();
    refused(&folder, &["characterize", "/dev/nvme99n1"], &["--overwrite"]);
    refused(&folder, &["characterize", "/dev/nvme99n1", "--overwrite"], &["/dev/nvme99n1", "does not exist"]);
    refused(&folder, &["characterize", "nothing"], &["nothing", "is not a drive"]);
    let (tiny, small) = serve(&folder, &["--capacity", "8M"]);
    refused(&folder, &measure(&small, &[]), &["has 8 MiB", "needs 16 MiB"]);
    tiny.stop();
    std::fs::create_dir(folder.path().join("empty")).expect("a folder");
    refused(&folder, &["characterize", "empty"], &["empty", "measurements.csv"]);
    let (server, target) = serve(&folder, &[]);
    let plan = ["characterize", &target, "--out", "drive", "--no-fit"];
    refused(&folder, &plan, &["% of the drive's life", "--yes"]);
    server.stop();
    // The same drive with another configuration is not the drive that was measured.
    let measured = |fdp: &str| {
        let (server, target) = serve(&folder, &["--fdp", fdp]);
        let measured = warp(&folder, &measure(&target, &["--budget", "1s", "--drive-writes", "1.25"]));
        server.stop();
        measured
    };
    assert!(measured("off").status.success());
    let error = String::from_utf8(measured("on").stderr).expect("text");
    assert!(error.contains("without FDP") && error.contains("Choose another folder"), "{error}");
    std::fs::write(folder.path().join("drive/journal.jsonl"), "{\"record\":\"other\"}\n").expect("written");
    let (server, target) = serve(&folder, &[]);
    let plan = ["characterize", &target, "--out", "drive", "--no-fit"];
    refused(&folder, &plan, &["journal.jsonl, line 1", "Remove the folder"]);
    server.stop();
}

#[test]
fn a_drive_in_use_is_watched() {
    let folder = folder();
    let (server, target) = serve(&folder, &["--set", "endurance.rated_erases=3000"]);
    let unwritable = warp(&folder, &["watch", &target, "--out", "nowhere/watch.parquet"]);
    assert_eq!(unwritable.status.code(), Some(1), "a result cannot be written, before the first wait");
    common::write(
        &folder,
        "job.fio",
        "[a]\nrw=randwrite\nbs=16k\nnorandommap\nfdp=1\nplids=1\nioengine=io_uring_cmd\n",
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_warp"));
    command.args([
        "watch",
        &target,
        "--every",
        "1s",
        "--readings",
        "3",
        "--out",
        "watch.parquet",
        "--prometheus",
        "watch.prom",
    ]);
    let watching = command.current_dir(&folder).stdout(Stdio::piped()).spawn().expect("the program runs");
    std::thread::sleep(Duration::from_millis(300));
    let done = warp(&folder, &["run", "job.fio", "--target", &target, "--drive-writes", "2", "--no-keep"]);
    assert!(done.status.success(), "{done:?}");
    let printed = watching.wait_with_output().expect("it ends");
    let printed = String::from_utf8(printed.stdout).expect("text");
    assert!(printed.contains("from the FDP statistics") && printed.contains("steady"), "{printed}");
    // 3000 erases of 70 MiB are 220 GB, which 128 MiB in some seconds use up in an hour or more.
    let life = printed.lines().find(|line| line.contains("lives")).unwrap_or_else(|| panic!("{printed}"));
    assert!(!life.contains(" s more"), "{life}");
    let json = warp(&folder, &["watch", &target, "--every", "1s", "--readings", "1", "--json"]);
    let line = common::json(std::str::from_utf8(&json.stdout).expect("text"));
    assert_eq!((&line["host_bytes"], &line["waf"]), (&134_217_728_u64.into(), &Value::Null));
    let metrics = std::fs::read_to_string(folder.path().join("watch.prom")).expect("metrics");
    assert!(metrics.contains("warp_watch_host_bytes_total 134217728\n"), "{metrics}");
    assert!(has_parquet(&folder.path().join("watch.parquet")));
    server.stop();
}

fn has_parquet(path: &Path) -> bool {
    std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"PAR1"))
}
