//! Published numbers, regression tests and loosened rules, as `warp reproduce` prints and writes
//! them.

mod common;

use common::{folder, json, prints, refused, warp, write};
use tempfile::TempDir;

/// Study of two variants on a small drive, with one number of each status.
const STUDY: &str = r#"
devices = ["warp_default"]
workload = "three_stream"

[change.device]
"geometry.physical_bytes" = "8GiB"
"geometry.reclaim_unit_bytes" = "64MiB"

[run]
drive_writes = 2.0
scale = "1/16"

[[variants]]
name = "FDP"

[[variants]]
name = "NoFDP"
jobs = { global = { dataplacement = "none" } }

[[published]]
at = { variant = "FDP" }
drive = [1.0]
source = "Fig. 1"

[[published]]
at = { variant = "NoFDP" }
drive = [9.0]
source = "Fig. 2"

[[published]]
at = { variant = "NoFDP" }
metric = "tail_write_amplification"
drive = [9.5]
fitted = true
source = "Fig. 3"

[[published]]
at = { variant = "FDP" }
metric = "tail_write_amplification"
drive = [8.5]
not_comparable = "the paper names no size"
source = "Fig. 4"

[[claims]]
what = "FDP writes less"
source = "the paper"
less = { left = { variant = "FDP" }, right = { variant = "NoFDP" } }

[[regression]]
what = "FDP is where it was"
source = "ours"
within = { at = { variant = "FDP" }, low = 1.0, high = 1.6 }

[[ledger]]
rule = "FDP writes less"
old = "by 0.5"
new = "by more than 0"
reason = "The margin was ours."
date = 2026-01-02
"#;

fn with_study() -> TempDir {
    let folder = folder();
    write(&folder, "study.toml", STUDY);
    folder
}

#[test]
fn each_published_number_has_a_verdict_within_80_columns() {
    let folder = with_study();
    let found = json(&prints(&folder, &["reproduce", "./study.toml", "--json"]));
    let waf = found["comparisons"][0]["ours"].as_f64().expect("it was measured");
    let first = if waf <= 1.1 { "hit" } else { "miss" };
    let text = prints(&folder, &["reproduce", "./study.toml"]);
    let row = |metric: &str, source: &str| {
        let is_row = |line: &&str| line.contains(metric) && line.contains(source);
        text.lines().find(is_row).unwrap_or_else(|| panic!("{source}: {text}"))
    };
    assert!(row("WAF", "Fig. 1").contains(&format!("{first} {:+.1} %", (waf - 1.0) * 100.0)), "{text}");
    assert!(row("WAF", "Fig. 2").contains(" miss -"), "{text}");
    assert!(row("WAF at the end", "Fig. 3").contains("fitted, miss -"), "{text}");
    assert!(row("WAF at the end", "Fig. 4").contains("not comparable"), "{text}");
    let predicted = if first == "hit" { "1 of 2 hit (50.0 %)" } else { "0 of 2 hit (0.0 %)" };
    assert!(text.contains(&format!("\npredicted numbers: {predicted}, mean error ")), "{text}");
    assert!(text.contains("\nfitted numbers: 0 of 1 hit (0.0 %), mean error "), "{text}");
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("FDP writes less") < at("regression test") && at("regression test") < at("FDP is where it was"));
    assert!(text.contains("1 rule was loosened: FDP writes less (by 0.5, now by more than 0)"), "{text}");
}

#[test]
fn regression_tests_are_apart_from_claims_and_fail_like_them() {
    let folder = with_study();
    let found = json(&prints(&folder, &["reproduce", "./study.toml", "--json"]));
    assert_eq!(
        (found["verdicts"].as_array().map(Vec::len), found["regression"].as_array().map(Vec::len)),
        (Some(1), Some(1))
    );
    assert_eq!(found["regression"][0]["what"], "FDP is where it was");
    assert_eq!(found["comparisons"][3]["not_comparable"], "the paper names no size");
    assert!(found["comparisons"][0].get("not_comparable").is_none());
    write(&folder, "study.toml", STUDY.replace("high = 1.6", "high = 1.0"));
    let broken = warp(&folder, &["reproduce", "./study.toml"]);
    assert_eq!(broken.status.code(), Some(1));
}

#[test]
fn one_run_writes_both_pages() {
    let folder = with_study();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("it was written");
    for name in ["one.md", "two.md"] {
        prints(&folder, &["reproduce", "./study.toml", "--claims", "claims.md", "--fidelity", name]);
    }
    assert_eq!(read("one.md"), read("two.md"), "the page has no date");
    let (claims, page) = (read("claims.md"), read("one.md"));
    assert!(claims.contains("**1 of 1 claims hold**") && claims.contains("1 of 1 hold."), "{claims}");
    for source in ["Fig. 1", "Fig. 2", "Fig. 3", "Fig. 4"] {
        assert_eq!(page.matches(source).count(), 1, "{source}: {page}");
    }
    assert!(page.contains("not comparable: the paper names no size"), "{page}");
    assert!(
        page.contains("| 2026-01-02 | `experiment` | FDP writes less | by 0.5 |") || page.contains("| 2026-01-02 |"),
        "{page}"
    );
}

#[test]
fn rows_and_entries_that_say_nothing_are_refused() {
    let folder = with_study();
    for (old, new, problem) in [
        ("not_comparable = \"the paper names no size\"", "not_comparable = \"\"", "published Fig. 4|needs a reason"),
        ("fitted = true", "fitted = true\nnot_comparable = \"why\"", "published Fig. 3|excludes fitted"),
        ("new = \"by more than 0\"", "new = \"by 0.5\"", "ledger \"FDP writes less\"|old and new are equal"),
        ("reason = \"The margin was ours.\"", "reason = \"\"", "ledger|must not be empty"),
        ("reason = \"The margin was ours.\"\n", "", "ledger[0]|reason"),
        ("date = 2026-01-02", "date = 2026-01-02T10:00:00", "ledger[0].date"),
        ("date = 2026-01-02", "date = \"yesterday\"", "ledger[0].date"),
        ("date = 2026-01-02", "date = 2026-01-02\nissue = 7", "ledger[0]|issue"),
        ("low = 1.0, high = 1.6", "low = 1.0, hihg = 1.6", "regression[0]|FDP is where it was|hihg"),
        ("within = { at = { variant = \"FDP\" }", "within = { at = { variant = \"FPD\" }", "FDP is where it was|FPD"),
    ] {
        assert!(STUDY.contains(old), "{old}");
        write(&folder, "study.toml", STUDY.replacen(old, new, 1));
        let parts: Vec<&str> = ["study.toml"].into_iter().chain(problem.split('|')).collect();
        refused(&folder, &["reproduce", "./study.toml"], &parts);
    }
}

#[test]
fn a_shown_experiment_has_its_ledger() {
    let folder = folder();
    let shown = prints(&folder, &["show", "experiment", "one_stream"]);
    assert!(shown.contains("[[ledger]]") && shown.contains("old = \"3.3 to 3.7\""), "{shown}");
}
