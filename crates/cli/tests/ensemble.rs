//! Profiles with an ensemble, as the `warp` command shows and runs them.

mod common;

use common::{files, folder, json, prints, refused, warp, write};
use tempfile::TempDir;

/// A small drive whose measurements leave its over-provisioning and its isolation open.
const DRIVE: &str = r#"
title = "a drive"
ensemble_residual = 0.05

[geometry]
physical_bytes = { value = "8GiB", source = "ours" }
over_provisioning = { value = 0.2, source = "ours", fitted = true }
reclaim_unit_bytes = { value = "64MiB", source = "ours" }

[handles]
isolation = { value = "initially_isolated", source = "ours", fitted = true }

[[ensemble]]
loss = 1.5
settings = { "geometry.over_provisioning" = 0.2, "handles.isolation" = "initially_isolated" }

[[ensemble]]
loss = 2.5
settings = { "geometry.over_provisioning" = 0.17, "handles.isolation" = "persistently_isolated" }

[[ensemble]]
loss = 3.0
settings = { "geometry.over_provisioning" = 0.24 }
"#;

fn with_drive() -> TempDir {
    let folder = folder();
    write(&folder, "drive.toml", DRIVE);
    folder
}

#[test]
fn what_the_members_say_of_each_setting_is_shown() {
    let folder = with_drive();
    let shown = prints(&folder, &["show", "device", "drive.toml"]);
    for part in [
        "an ensemble of 3 members, with a loss of 1.5 to 3. Intervals of write amplification are widened by 5.0 %",
        "0.17 to 0.24",
        "initially_isolated (2), persistently_isolated (1)",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let shown = json(&prints(&folder, &["show", "device", "drive.toml", "--json"]));
    assert_eq!(shown["ensemble"]["ensemble_residual"], 0.05);
    assert_eq!(shown["ensemble"]["ensemble"][1]["loss"], 2.5);
    let without = prints(&folder, &["show", "device", "warp_default"]);
    assert!(!without.contains("ensemble"), "{without}");
}

#[test]
fn a_member_that_is_no_drive_is_refused() {
    let folder = with_drive();
    write(&folder, "drive.toml", DRIVE.replace("0.24", "0.001"));
    refused(&folder, &["show", "device", "drive.toml"], &["drive.toml, ensemble[2].settings", "over_provisioning"]);
    write(&folder, "drive.toml", DRIVE.replace("ensemble_residual = 0.05", ""));
    refused(&folder, &["show", "device", "drive.toml"], &["drive.toml", "ensemble_residual"]);
}

/// Returns an experiment of two variants on a small drive, with this head and these published
/// numbers.
fn two_variants(head: &str, numbers: &str) -> String {
    format!(
        r#"
workload = "three_stream"
{head}
[run]
drive_writes = 2.0
scale = "1/16"

[[variants]]
name = "FDP"

[[variants]]
name = "NoFDP"
jobs = {{ global = {{ dataplacement = "none" }} }}
{numbers}"#
    )
}

/// Returns an experiment on that drive, in which one published number is far off.
fn experiment() -> String {
    let head = r#"
title = "two variants"
source = "ours"
devices = ["./drive.toml"]

[quick]
drive_writes = 1.0
scale = "1/16"
"#;
    two_variants(head, PUBLISHED)
}

const PUBLISHED: &str = r#"
[[published]]
at = { variant = "FDP" }
drive = [1.05]
source = "ours"

[[published]]
at = { variant = "NoFDP" }
drive = [3.0]
source = "ours"
"#;

fn with_experiment() -> TempDir {
    let folder = with_drive();
    write(&folder, "two.toml", experiment());
    folder
}

#[test]
fn a_run_prints_the_interval_of_the_ensemble() {
    let folder = with_experiment();
    let run = |arguments: &[&str]| json(&prints(&folder, &[&["run", "./two.toml", "--json"], arguments].concat()));
    let plain = run(&[]);
    assert!(plain.get("intervals").is_none());
    let with_interval = run(&["--uncertainty"]);
    assert_eq!(with_interval["cells"], plain["cells"], "the profile's own results are what they are without it");
    let interval = &with_interval["intervals"][1]["waf"];
    let number = |name: &str| interval[name].as_f64().expect("a number");
    assert_eq!((&with_interval["intervals"][1]["variant"], number("value")), (&"NoFDP".into(), waf(&plain, 1)));
    // Each member, run as a separate drive, gives the same numbers. The first member is the profile
    // itself.
    let alone = |settings: &[&str]| {
        let set = settings.iter().flat_map(|setting| ["--set", *setting]);
        waf(&run(&set.collect::<Vec<_>>()), 1)
    };
    let members = [
        alone(&["geometry.over_provisioning=0.17", "handles.isolation=persistently_isolated"]),
        alone(&["geometry.over_provisioning=0.24"]),
    ];
    assert_eq!(interval["members"], serde_json::json!(members));
    let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{value} {expected}");
    let all = || members.into_iter().chain([number("value")]);
    near(number("low"), all().fold(f64::MAX, f64::min) * 0.95);
    near(number("high"), all().fold(f64::MIN, f64::max) * 1.05);
    let text = prints(&folder, &["run", "./two.toml", "--uncertainty"]);
    let (value, low, high) = (number("value"), number("low"), number("high"));
    assert!(text.contains(&format!("{value:.2} ({low:.2}-{high:.2})")), "{text}");
    let same = run(&[
        "--uncertainty",
        "--set",
        "handles.isolation=initially_isolated",
        "--set",
        "geometry.over_provisioning=0.2",
    ]);
    assert_eq!(same["intervals"][1]["waf"]["members"], serde_json::json!([]), "what is set holds for all members");
}

/// Returns an experiment without an ensemble of the drive. The paper leaves the over-provisioning
/// and the popularity of overwrites open.
fn open() -> String {
    let head = r#"
title = "what the paper leaves open"
devices = ["warp_default"]
ensemble_residual = 0.05

[change.device]
"geometry.physical_bytes" = "8GiB"
"geometry.reclaim_unit_bytes" = "64MiB"
"#;
    two_variants(head, LEFT_OPEN)
}

const LEFT_OPEN: &str = r#"
[[published]]
at = { variant = "NoFDP" }
drive = [1.3]
fitted = true
source = "the paper"

[[predicted]]

[[claims]]
what = "it is as published"
source = "the paper"
relative_error = { over = {}, at_most = 1.0 }

[[ensemble]]
loss = 1.0
settings = { "geometry.over_provisioning" = 0.2, "workload.overwrite.random_distribution" = "zipf:1.2" }

[[ensemble]]
loss = 1.5
settings = { "geometry.over_provisioning" = 0.25 }
"#;

#[test]
fn members_of_an_experiment_change_its_workload_too() {
    let folder = folder();
    write(&folder, "open.toml", open());
    let run = |arguments: &[&str]| {
        let all = [&["run", "./open.toml", "--json"], arguments].concat();
        json(&prints(&folder, &all))
    };
    let plain = run(&[]);
    let with_interval = run(&["--uncertainty"]);
    assert_eq!(with_interval["cells"], plain["cells"]);
    for (cell, interval) in with_interval["intervals"].as_array().expect("intervals").iter().enumerate() {
        let members = [
            waf(
                &run(&[
                    "--set",
                    "geometry.over_provisioning=0.2",
                    "--set",
                    "workload.overwrite.random_distribution=zipf:1.2",
                ]),
                cell,
            ),
            waf(&run(&["--set", "geometry.over_provisioning=0.25"]), cell),
        ];
        assert_eq!(interval["waf"]["members"], serde_json::json!(members));
        assert!(members[0] != members[1], "{interval}");
    }
    // Drives that --set makes equal have equal runs only under equal workloads.
    let set = run(&["--uncertainty", "--set", "geometry.over_provisioning=0.25"]);
    assert_eq!(set["intervals"][1]["waf"]["members"].as_array().map(Vec::len), Some(1));
    // The other device has no open settings here, and nothing was fitted to it.
    refused(
        &folder,
        &["run", "./open.toml", "--device", "warp_a", "--uncertainty"],
        &["warp_a: the device has no ensemble"],
    );
}

#[test]
fn what_was_fitted_and_what_nobody_published_stands_beside_what_was() {
    let folder = folder();
    write(&folder, "open.toml", open());
    let text = prints(&folder, &["reproduce", "./open.toml", "--uncertainty"]);
    let rows: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("warp_default |")).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows[0].contains("NoFDP") && rows[0].contains("the paper") && rows[0].contains("fitted, "), "{text}");
    assert!(rows[1].contains("| FDP") && rows[1].contains("not published") && rows[1].contains('-'), "{text}");
    let covered = text.lines().find(|line| line.contains("our interval contains")).expect("it is counted");
    assert!(covered.ends_with("of 1 fitted write amplifications of the paper's drive"), "{covered}");
    let found = json(&prints(&folder, &["reproduce", "./open.toml", "--json"]));
    assert_eq!(found["comparisons"][0]["fitted"], true);
    assert_eq!(found["comparisons"][1]["drive"], serde_json::Value::Null);
    assert_eq!(found["comparisons"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_member_of_an_experiment_that_cannot_be_is_refused_with_its_place() {
    let folder = folder();
    for (old, new, expected) in [
        ("0.25", "0.0001", "over_provisioning"),
        ("random_distribution", "random_distribution_of", "random_distribution_of"),
    ] {
        write(&folder, "open.toml", open().replace(old, new));
        let member = if old == "0.25" { "ensemble[1].settings" } else { "ensemble[0].settings" };
        refused(&folder, &["run", "./open.toml", "--uncertainty"], &["open.toml", member, expected]);
    }
    write(&folder, "open.toml", open().replace("[[predicted]]", "[[predicted]]\nat = { variant = \"FPD\" }"));
    refused(&folder, &["run", "./open.toml"], &["open.toml", "predicted", "FPD"]);
    write(&folder, "open.toml", open().replace("ensemble_residual = 0.05", ""));
    refused(&folder, &["run", "./open.toml"], &["open.toml", "ensemble_residual"]);
}

fn waf(run: &serde_json::Value, cell: usize) -> f64 {
    run["cells"][cell]["waf"].as_f64().expect("a number")
}

#[test]
fn published_numbers_inside_are_counted() {
    let folder = with_experiment();
    let text = prints(&folder, &["reproduce", "./two.toml", "--uncertainty"]);
    assert!(text.contains("our interval contains 1 of 2 (50.0 %) write amplifications of the paper's drive"), "{text}");
    let found = json(&prints(&folder, &["reproduce", "./two.toml", "--uncertainty", "--json"]));
    let comparison = &found["comparisons"][1];
    assert!(comparison["interval"]["high"].as_f64() < comparison["drive"].as_f64(), "{comparison}");
    let twice = prints(&folder, &["reproduce", "./two.toml", "./two.toml", "--uncertainty"]);
    assert!(twice.contains("all experiments: our interval contains 2 of 4"), "{twice}");
}

#[test]
fn what_has_no_interval_is_refused() {
    let folder = with_experiment();
    let no_ensemble = ["warp_default", "has no ensemble", "warp calibrate"];
    refused(
        &folder,
        &["run", "one_stream", "--device", "warp_a", "--uncertainty"],
        &["warp_a: the device has no ensemble"],
    );
    refused(&folder, &["run", "three_stream_paper_shares", "--device", "warp_default", "--uncertainty"], &no_ensemble);
    let quick = warp(&folder, &["reproduce", "./two.toml", "--uncertainty", "--quick"]);
    assert!(!quick.status.success() && files(folder.path()).len() == 2);
}
