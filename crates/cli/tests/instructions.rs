//! How many instructions three small runs take, against the numbers that are committed: a processor's time says little on a shared machine, and this
//! says the same everywhere. Counted by valgrind's callgrind, which runs one thread at a time on a processor of its own making.
//!
//! A change that makes a run dearer, or cheaper, by more than 3 % says so here, and its commit says why the number changes.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Instructions may differ by this share: versions of the compiler and of the C library.
const ALLOWED: f64 = 0.03;

/// A run, and how many instructions it takes.
struct Counted {
    name: &'static str,
    /// A job file, or the name of a workload.
    workload: &'static str,
    options: &'static [&'static str],
    instructions: u64,
}

/// The numbers are those of a build of the tests: optimised, with all checks.
const RUNS: [Counted; 3] = [
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

impl Counted {
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
