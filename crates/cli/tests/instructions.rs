//! Counts the instructions of three small runs and compares them with committed numbers. Processor
//! times vary on a shared machine, but instruction counts do not. valgrind's callgrind counts them.
//! It emulates the processor and runs one thread at a time.
//!
//! The test fails if a change makes a run more than 3 % cheaper or more expensive. The commit of
//! such a change explains the new number.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Allowed relative difference, for versions of the compiler and of the C library.
const ALLOWED: f64 = 0.03;

/// A run and its number of instructions.
struct Counted<'a> {
    name: &'static str,
    /// Job file, or name of a workload.
    workload: &'static str,
    options: &'a [&'static str],
    instructions: u64,
}

/// A drive with reclaim units of 16 pages and greedy collection. Many units have the same valid
/// count.
const SMALL_UNITS: [&str; 13] = [
    "--precondition",
    "1",
    "--drive-writes",
    "0.5",
    "--untimed",
    "--set",
    "geometry.channels=1",
    "--set",
    "geometry.dies_per_channel=1",
    "--set",
    "geometry.reclaim_unit_bytes=64KiB",
    "--set",
    "handles.hot_window_bytes=0",
];

/// Numbers of an optimised build of the tests with all checks.
const RUNS: [Counted<'static>; 3] = [
    Counted {
        name: "random writes of 4 KiB on a drive that collects garbage",
        workload: "[global]\nbs=4k\n[w]\nrw=randwrite\nsize=100%\n",
        options: &["--scale", "1/4096", "--drive-writes", "1", "--precondition", "1", "--untimed"],
        instructions: 781_005_482,
    },
    Counted {
        name: "reads and writes in virtual time",
        workload: "[global]\nbs=4k\niodepth=16\nnumber_ios=100000\n[w]\nrw=randrw\nsize=90%\n",
        options: &["--scale", "1/2048", "--precondition", "1"],
        instructions: 381_062_242,
    },
    Counted {
        name: "a cache of objects, as CacheLib writes it",
        workload: "kvcache_202206",
        options: &["--scale", "1/4096", "--drive-writes", "0.5"],
        instructions: 790_163_878,
    },
];

impl Counted<'_> {
    fn arguments(&self, folder: &Path) -> Vec<String> {
        let workload = match self.workload.starts_with('[') {
            false => self.workload.to_string(),
            true => {
                let path = folder.join("counted.fio");
                fs::write(&path, self.workload).expect("a file in a folder of our own");
                path.to_str().expect("its path is text").to_string()
            }
        };
        let fixed = ["run", &workload, "--device", "ssd_a", "--no-keep", "--json"];
        fixed.iter().chain(self.options).map(|word| (*word).to_string()).collect()
    }

    fn count(&self) -> u64 {
        let folder = tempfile::tempdir().expect("a folder");
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", env!("CARGO_BIN_EXE_warp")])
            .args(self.arguments(folder.path()))
            .current_dir(folder.path())
            .output()
            .expect("valgrind counts instructions; apt-get install valgrind, as `./test` does");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {told}", self.name);
        let collected = told.lines().find_map(|line| line.split_once("Collected : ")).map(|(_, count)| count);
        let count = collected.unwrap_or_else(|| panic!("{}: callgrind tells no count:\n{told}", self.name));
        count.trim().parse().expect("a count")
    }
}

#[test]
fn ten_times_as_many_units_take_ten_times_as_many_instructions() {
    let count = |capacity: &'static str| {
        let own = ["--set", "gc.victim_policy=greedy", "--set", capacity];
        let options = [&SMALL_UNITS[..], &own].concat();
        let workload = "[global]\nbs=4k\n[w]\nrw=randwrite\nsize=100%\n";
        Counted { name: "many units", workload, options: &options, instructions: 0 }.count()
    };
    let (few, many) = (count("geometry.capacity_bytes=274MiB"), count("geometry.capacity_bytes=2740MiB"));
    assert!(many < 10 * few, "5 thousand units take {few} instructions, 50 thousand take {many}");
}

#[test]
fn runs_take_the_instructions_that_are_committed() {
    let mut wrong = Vec::new();
    for run in RUNS {
        let counted = run.count();
        let ratio = counted as f64 / run.instructions as f64;
        println!("{}: {counted} instructions, {ratio:.4} of the committed number", run.name);
        if (ratio - 1.0).abs() > ALLOWED {
            wrong.push(format!("{}: {counted} instructions, {} are committed", run.name, run.instructions));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\nif that is meant, put the new numbers into {} and say why in the commit",
        wrong.join("\n"),
        file!()
    );
}
