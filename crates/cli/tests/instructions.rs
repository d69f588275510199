//! Counts the instructions of five small runs and compares them with committed numbers. Processor
//! times vary on a shared machine, but instruction counts do not. valgrind's cachegrind counts them,
//! without caches. It emulates the processor and runs one thread at a time.
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
    /// Job file, name of a workload, or `TRACE`.
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
    "0.2",
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

/// A trace that the test writes.
const TRACE: &str = "counted.csv";

/// Numbers of the tests' build, which is optimised and has all checks.
const RUNS: [Counted<'static>; 5] = [
    Counted {
        name: "random writes of 4 KiB on a drive that collects garbage",
        workload: "[global]\nbs=4k\n[w]\nrw=randwrite\nsize=100%\n",
        options: &["--scale", "1/8192", "--drive-writes", "1", "--precondition", "1", "--untimed"],
        instructions: 478_660_621,
    },
    Counted {
        name: "reads and writes in virtual time",
        workload: "[global]\nbs=4k\niodepth=16\nnumber_ios=100000\n[w]\nrw=randrw\nsize=90%\n",
        options: &["--scale", "1/2048", "--precondition", "1"],
        instructions: 410_709_692,
    },
    Counted {
        name: "a cache of objects, as CacheLib writes it",
        workload: "kvcache_202206",
        options: &["--scale", "1/4096", "--drive-writes", "0.2"],
        instructions: 417_172_281,
    },
    Counted {
        name: "a cache of objects in slots",
        workload: "object_cache",
        options: &["--scale", "1/8192", "--drive-writes", "0.05"],
        instructions: 1_102_786_286,
    },
    Counted {
        name: "one and a half passes over a trace in Alibaba's format",
        workload: TRACE,
        options: &["--capacity", "1GiB", "--drive-writes", "1", "--untimed"],
        instructions: 545_818_697,
    },
];

/// 100,000 requests of 4 to 16 KiB, nine of ten in a tenth of the addresses of 16 volumes.
fn trace() -> String {
    let mut random = 1_u64;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    let line = |line: u64| {
        let units = if below(10) == 0 { 12_000 } else { 1_200 };
        let unit = below(units);
        let operation = if below(4) == 0 { 'R' } else { 'W' };
        let (volume, bytes) = (below(16), 4096 << below(3));
        format!("{volume},{operation},{},{bytes},{}\n", unit * 4096, 1_577_808_000_000_000 + line * 97)
    };
    (0..100_000).map(line).collect()
}

impl Counted<'_> {
    fn arguments(&self, folder: &Path) -> Vec<String> {
        let written = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).expect("a file in a folder of our own");
            path.to_str().expect("its path is text").to_string()
        };
        let workload = match self.workload {
            TRACE => written(TRACE, &trace()),
            job if job.starts_with('[') => written("counted.fio", job),
            name => name.to_string(),
        };
        let fixed = ["run", &workload, "--device", "ssd_a", "--no-keep", "--json"];
        fixed.iter().chain(self.options).map(|word| (*word).to_string()).collect()
    }

    fn count(&self) -> u64 {
        let folder = tempfile::tempdir().expect("a folder");
        let output = Command::new("valgrind")
            .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
            .arg(env!("CARGO_BIN_EXE_warp"))
            .args(self.arguments(folder.path()))
            .current_dir(folder.path())
            // A thread that reads a trace ahead reads more or less beyond the end of the run.
            .env("RAYON_NUM_THREADS", "1")
            .output()
            .expect("valgrind counts instructions; apt-get install valgrind, as `./test` does");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {told}", self.name);
        // "==7== I   refs:      1,103,373,862", with fewer spaces in newer versions
        let refs = told.lines().find(|line| line.contains("refs:")).and_then(|line| line.rsplit(' ').next());
        let count = refs.unwrap_or_else(|| panic!("{}: cachegrind tells no count:\n{told}", self.name));
        count.replace(',', "").parse().expect("a count")
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
