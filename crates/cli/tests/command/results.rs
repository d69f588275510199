//! Lists, runs, reports, snapshots and interrupted commands.

use std::path::{Path, PathBuf};

use crate::common::{self, files, folder, json, prints, refused, write};

#[test]
fn devices_are_listed_and_shown() {
    let folder = folder();
    let list = prints(&folder, &["list", "devices"]);
    for name in ["ssd_a", "ssd_b", "warp_default", "femu_default"] {
        assert!(list.contains(name), "{list}");
    }
    let shown = prints(&folder, &["show", "device", "ssd_a"]);
    assert!(shown.contains("7.68TB") && shown.contains("WARP, section 3.1"), "{shown}");
    let all = json(&prints(&folder, &["list", "devices", "--json"]));
    for profile in all.as_array().expect("a list") {
        assert!(list.contains(profile["name"].as_str().expect("a name")), "{list}");
    }
    let one = json(&prints(&folder, &["show", "device", "ssd_a", "--json"]));
    assert_eq!(one["name"], "ssd_a");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_device_is_explained() {
    let folder = folder();
    assert!(prints(&folder, &["show", "device", "ssd_a"]).starts_with("ssd_a: "));
    let scaled = json(&prints(&folder, &["show", "device", "ssd_a", "--scale", "1/2048", "--json"]));
    let full = json(&prints(&folder, &["show", "device", "ssd_a", "--json"]));
    let units = |json: &serde_json::Value| json["layout"]["superblocks_per_group"].as_u64().expect("a number");
    assert_eq!(units(&scaled), units(&full));
    let set = ["show", "device", "ssd_a", "--json", "--set", "geometry.over_provisioning=0.5"];
    assert_eq!(json(&prints(&folder, &set))["config"]["geometry"]["over_provisioning"], 0.5);
    assert!(files(folder.path()).is_empty());
}

#[test]
fn jobs_are_listed_and_shown() {
    let folder = folder();
    let list = prints(&folder, &["list", "jobs"]);
    assert!(list.contains(" three_stream "), "{list}");
    // Other workloads need a device with more handles than the default one.
    for name in ["one_stream", "three_stream", "two_sequential"] {
        let shown = prints(&folder, &["show", "job", name]);
        assert!(shown.contains(name), "{shown}");
    }
    let shown = prints(&folder, &["show", "job", "three_stream"]);
    assert!(shown.contains("overwrite") && shown.contains("zipf:2.2"), "{shown}");
    let csv = prints(&folder, &["show", "job", "three_stream", "--format", "csv"]);
    let head = csv.lines().find(|line| !line.starts_with('#')).expect("a head");
    assert_eq!(head, "group,stream,rw,requests (bytes),from (bytes),to (bytes),addresses,of bytes (share),placement");
    let shown = json(&prints(&folder, &["show", "job", "three_stream", "--json"]));
    let rows = csv.lines().filter(|line| !line.starts_with('#')).count() - 1;
    assert_eq!(shown["streams"].as_array().map(Vec::len), Some(rows), "{shown}");
    assert!(prints(&folder, &["list", "jobs", "--format", "markdown"]).contains("| three_stream |"));
    let options = prints(&folder, &["show", "fio-options"]);
    for option in ["norandommap", "random_distribution", "plids", "bs"] {
        assert!(options.contains(option), "{options}");
    }
    assert!(files(folder.path()).is_empty());
}

#[test]
fn help_and_version_are_no_errors() {
    let folder = folder();
    assert!(prints(&folder, &["--version"]).starts_with("warp"));
    assert!(prints(&folder, &["run", "--help"]).contains("--events"));
}

/// Arguments of a run that takes a second or less.
const SMALL: [&str; 8] = ["run", "one_stream", "--device", "ssd_a", "--scale", "1/2048", "--drive-writes", "0.2"];

/// Returns the written files except the plotting library, which each folder of reports has once.
fn files_but_library(folder: &Path) -> Vec<PathBuf> {
    let is_library = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "js");
    let all = files(folder);
    assert_eq!(all.iter().filter(|path| is_library(path)).count(), 1, "{all:?}");
    all.into_iter().filter(|path| !is_library(path)).collect()
}

#[test]
fn a_run_writes_report_events_and_series() {
    let folder = folder();
    let more = ["--out", "results", "--events", "results/gc.parquet", "--series", "results/s.parquet"];
    let printed = prints(&folder, &[&SMALL[..], &more].concat());
    assert!(printed.contains("WAF"), "{printed}");
    let results = folder.path().join("results");
    let expected = ["gc.parquet", "report.html", "s.parquet"].map(|name| results.join(name));
    assert_eq!(files_but_library(&results), expected);
    for path in &expected {
        let name = path.file_name().expect("a name").to_string_lossy();
        assert!(printed.contains(&*name), "{printed}");
        let bytes = std::fs::read(path).expect("the file is there");
        if name == "report.html" {
            let text = String::from_utf8(bytes).expect("text");
            assert!(text.contains("</html>") && text.contains("One stream"));
        } else {
            assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{name} is Parquet");
        }
    }
}

#[test]
fn without_out_the_report_goes_to_the_target_s_folder() {
    let folder = folder();
    let text = prints(&folder, &[&SMALL[..], &["--json"]].concat());
    let value = json(&text);
    assert_eq!(value["experiment"], "one_stream");
    assert!(value["version"].is_u64(), "{value}");
    assert_eq!(value["cells"].as_array().map(Vec::len), Some(1), "{value}");
    assert!(folder.path().join("out/one_stream/report.html").is_file());
    // A second run gives the same bytes.
    assert_eq!(prints(&folder, &[&SMALL[..], &["--json"]].concat()), text);
}

/// Runs uniform random writes on a drive of 128 reclaim units of 64 MiB, whose smallest suitable
/// scaled model is 1/16.
fn random_writes(folder: &tempfile::TempDir, more: &[&str]) -> String {
    write(folder, "random.fio", "[job]\nrw=randwrite\nbs=4k\nnorandommap=1\nsize=100%\n");
    let device = ["run", "random.fio", "--device", "warp_default"];
    let set = ["--set", "geometry.physical_bytes=8GiB", "--set", "geometry.reclaim_unit_bytes=64MiB"];
    prints(folder, &[&device[..], &set, more].concat())
}

#[test]
fn a_scale_is_found() {
    let folder = folder();
    let run = ["--scale", "auto", "--drive-writes", "4"];
    let printed = random_writes(&folder, &run);
    assert!(printed.contains("scale auto is the first scaled model within 1 % of the next smaller one"), "{printed}");
    let row: Vec<&str> = printed.lines().filter(|line| line.contains("1/16")).collect();
    let [row] = row[..] else { panic!("{printed}") };
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells[..3], ["warp_default", "1/4", "1/16"], "{row}");

    let searched = json(&random_writes(&folder, &[&run[..], &["--json"]].concat()));
    let cell = &searched["cells"][0];
    assert_eq!(cell["scale_denominator"], 4);
    assert_eq!(cell["scale_search"]["smaller_scale_denominator"], 16);
    let difference = cell["scale_search"]["difference"].as_f64().expect("a number");
    assert!(difference <= 0.01, "{difference}");
    assert_eq!(cells[3], format!("{:.1} %", difference * 100.0));
    let fixed = json(&random_writes(&folder, &["--scale", "1/4", "--drive-writes", "4", "--json"]));
    assert_eq!(fixed["cells"][0]["waf"], cell["waf"]);
    assert!(fixed["cells"][0].get("scale_search").is_none());

    let report = std::fs::read_to_string(folder.path().join("out/random/report.html")).expect("it was written");
    assert!(!report.contains("next smaller"), "of the fixed scale");
    random_writes(&folder, &run);
    let report = std::fs::read_to_string(folder.path().join("out/random/report.html")).expect("it was written");
    assert_eq!(report.matches(">next smaller<").count(), 2, "in the summary and in what was run");
}

#[test]
fn warnings_are_shown_in_every_form() {
    let folder = folder();
    let cases: [(&[&str], &str, &str); 7] = [
        (
            &["--scale", "1/16", "--drive-writes", "0.5"],
            "never_collected",
            "never collected: no reclaim unit was collected, so WAF does not include garbage collection",
        ),
        (&["--scale", "1/16", "--drive-writes", "0.3"], "little_used", "little used: "),
        (&["--scale", "1/16", "--drive-writes", "8"], "start_included", "start included: WAF is "),
        (
            &["--scale", "1/16", "--drive-writes", "1.5"],
            "not_steady",
            "not steady: there are fewer than two drive writes",
        ),
        (
            &["--scale", "auto:1/16", "--drive-writes", "8"],
            "not_converged",
            "not converged: there is no other scaled model to compare with",
        ),
        (
            &["--scale", "1/64", "--drive-writes", "8"],
            "too_few_pages",
            "too few pages: a reclaim unit has 256 pages, and a scaled model needs at least 1024",
        ),
        (
            &["--drive-writes", "8", "--set", "handles.opening=eager", "--set", "handles.count=4", "--scale", "1/16"],
            "too_many_open_units",
            "too many open units: handles have ",
        ),
    ];
    for (options, name, line) in cases {
        let printed = random_writes(&folder, options);
        assert!(printed.lines().any(|printed| printed.starts_with(line)), "{line}: {printed}");
        let report = std::fs::read_to_string(folder.path().join("out/random/report.html")).expect("it was written");
        let words = name.replace('_', " ");
        assert!(report.contains(&format!("<p class=\"warning\">{line}")), "{line}");
        assert!(report.contains("<th>warnings</th>"), "what was run says it");
        assert!(report.matches(&words).count() >= 2, "{words}: in the summary and in what was run");
        let value = json(&random_writes(&folder, &[options, &["--json"]].concat()));
        let warnings = value["cells"][0]["warnings"].as_array().expect("a list").clone();
        let named: Vec<_> = warnings.iter().map(|warning| &warning["name"]).collect();
        assert!(named.iter().any(|found| *found == name), "{warnings:?}");
    }
}

#[test]
fn a_saved_device_is_continued() {
    let folder = folder();
    write(&folder, "fill.fio", "[fill]\nrw=write\nbs=128k\nsize=100%\n");
    write(&folder, "more.fio", "[more]\nrw=randwrite\nbs=64k\nsize=50%\n");
    let set = ["--set", "geometry.physical_bytes=2GiB", "--set", "geometry.reclaim_unit_bytes=16MiB"];
    let fill =
        ["run", "fill.fio", "--device", "warp_default", "--save-snapshot", "filled.warp", "--out", "fill", "--json"];
    prints(&folder, &[&fill[..], &set].concat());
    let filled = std::fs::read(folder.path().join("filled.warp")).expect("the snapshot is there");
    assert!(filled.starts_with(b"WARPSSD\0"));

    let more = ["run", "more.fio", "--load-snapshot", "filled.warp", "--out", "more"];
    let printed = prints(&folder, &[&more[..], &["--save-snapshot", "more.warp"]].concat());
    assert!(printed.contains("WAF"), "{printed}");
    assert!(folder.path().join("more/report.html").is_file());
    let after = std::fs::read(folder.path().join("more.warp")).expect("the snapshot is there");
    assert!(after != filled, "the device went on");
    let unchanged = std::fs::read(folder.path().join("filled.warp")).expect("the snapshot is still there");
    assert!(unchanged == filled, "what it started from was left alone");
    assert_eq!(
        prints(&folder, &[&more[..], &["--save-snapshot", "again.warp"]].concat()).lines().next(),
        printed.lines().next()
    );
    let again = std::fs::read(folder.path().join("again.warp")).expect("the snapshot is there");
    assert!(again == after, "continuing twice gives the same device");
    prints(&folder, &[&more[..], &["--save-snapshot", "observed.warp", "--feedback", "observe"]].concat());
    let observed = std::fs::read(folder.path().join("observed.warp")).expect("the snapshot is there");
    assert!(observed == after, "who only listens changes nothing");

    // A damaged copy of a valid snapshot.
    let mut damaged = filled.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    write(&folder, "damaged.warp", &damaged);
    let damaged = ["run", "more.fio", "--load-snapshot", "damaged.warp", "--out", "damaged"];
    refused(&folder, &damaged, &["damaged.warp", "checksum", "Create the snapshot again"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_was_measured() {
    use std::process::Stdio;
    use std::time::Duration;

    let folder = folder();
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_warp"))
        .env("WARP_RUNS", common::kept_in(&folder))
        .current_dir(&folder)
        .args(["run", "one_stream", "--device", "ssd_a", "--scale", "1/64", "--drive-writes", "1000", "--out", "out"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    std::thread::sleep(Duration::from_secs(2));
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success(), "the program still ran");
    let output = child.wait_with_output().expect("the program ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("warp: stopping"), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("WAF"), "{printed}");
    assert_eq!(files_but_library(&folder.path().join("out")), [folder.path().join("out/report.html")]);
}

#[test]
fn a_run_goes_on_until_it_is_steady() {
    let folder = folder();
    let printed = random_writes(&folder, &["--scale", "1/16", "--steady-state"]);
    assert!(printed.contains("steady: WAF is ") && printed.contains(" (95 %) over 5 drive writes"), "{printed}");
    assert!(!printed.contains('*') && !printed.contains("start included"), "{printed}");
    let run = json(&random_writes(&folder, &["--scale", "1/16", "--steady-state", "--json"]));
    let cell = &run["cells"][0];
    let written =
        cell["host_bytes_written"].as_f64().expect("a number") / cell["capacity_bytes"].as_f64().expect("one");
    assert!((5.0..39.0).contains(&written), "{written}");
    assert_eq!(cell["steady"]["reached"], true);
    assert_eq!(cell["headline_waf"], cell["steady"]["waf"]);
    let shown = format!("{:.3}", cell["headline_waf"].as_f64().expect("a number"));
    assert!(printed.matches(&shown).count() >= 2, "{shown} in the table and below it: {printed}");
    let [steady, half] = ["waf", "half_width"].map(|key| cell["steady"][key].as_f64().expect("a number"));
    let tail = cell["tail_waf"].as_f64().expect("a number");
    assert!((steady - tail).abs() < 0.05 * steady && half < 0.05 * steady, "{steady} {half} {tail}");
    let short = json(&random_writes(&folder, &["--scale", "1/16", "--steady-state", "--drive-writes", "3", "--json"]));
    let names = short["cells"][0]["warnings"].to_string();
    assert!(names.contains("steady_state_not_reached"), "{names}");
    // In a job file, fio's option asks for the steady state.
    write(&folder, "steady.fio", "[job]\nrw=randwrite\nbs=4k\nnorandommap=1\nss=iops:5%\n");
    let of_fio = json(&prints(
        &folder,
        &[
            "run",
            "steady.fio",
            "--device",
            "warp_default",
            "--scale",
            "1/16",
            "--json",
            "--set",
            "geometry.physical_bytes=8GiB",
            "--set",
            "geometry.reclaim_unit_bytes=64MiB",
        ],
    ));
    assert_eq!(of_fio["cells"][0]["steady"]["waf"], cell["steady"]["waf"]);
}

#[test]
fn a_drive_that_never_collected_says_so_first() {
    let folder = folder();
    let printed = random_writes(&folder, &["--scale", "1/16", "--drive-writes", "0.5"]);
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[1].starts_with("! This drive never collected"), "{printed}");
    let collected = random_writes(&folder, &["--scale", "1/16", "--drive-writes", "4"]);
    assert!(!collected.contains("never collected"), "{collected}");
}

/// A single Ctrl-C ends the command while it still reads the workload.
#[test]
fn ctrl_c_while_a_workload_is_read_says_so() {
    use std::io::{Read as _, Write as _};
    let folder = folder();
    let mut warp = std::process::Command::new(env!("CARGO_BIN_EXE_warp"));
    warp.args(["run", "-", "--device", "ssd_a", "--no-keep"]).current_dir(&folder);
    warp.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut process = warp.spawn().expect("warp runs");
    let mut input = process.stdin.take().expect("it is piped");
    // The data exceeds the capacity of a pipe, so the command is reading when this call returns.
    let lines = "0,host,0,Write,0,4096,1\n".repeat(50_000);
    input.write_all(lines.as_bytes()).expect("it is read");
    let interrupt = std::process::Command::new("kill").args(["-INT", &process.id().to_string()]).status();
    assert!(interrupt.expect("kill runs").success());
    let status = process.wait().expect("it ends");
    drop(input);
    let mut error = String::new();
    process.stderr.take().expect("it is piped").read_to_string(&mut error).expect("text");
    assert_eq!(status.code(), Some(130), "{error}");
    assert_eq!(error, "warp: stopped before the first run\n");
}
