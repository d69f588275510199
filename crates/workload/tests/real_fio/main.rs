//! Comparison of the lab's streams with real fio, on the same job files, request by request.
//!
//! fio runs each job file of `cases` on a null target and logs its requests (`write_iolog`). The
//! lab's streams must issue the same operations at the same offsets with the same lengths, for each
//! instance. Clock-dependent results are not compared. Placement is not compared either, because
//! fio's log does not contain it. The test on a real kernel checks placement (`tests/host`).
//!
//! fio must be 3.30 or later. It comes from the guest's file system (`warp guest --build-only`) or
//! from the path. Without fio the comparison is skipped with a message, and only the table of the
//! manual is checked.

mod cases;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use cases::{CASES, Case, DEVICE_BYTES, VARIABLES};
use workload::fio::{IncludeContext, JobPlan, JobStream, parse_within};
use workload::{IoRequest, RequestOperation, WorkloadTarget};

/// Requests of a job instance, as operation, offset and bytes.
type Issued = Vec<(RequestOperation, u64, u64)>;

/// The instances of a file's jobs, by fio's names.
type Instances = BTreeMap<(String, u32), Issued>;

/// A program and its arguments, with its dynamic loader if needed.
struct Fio {
    program: PathBuf,
    arguments: Vec<String>,
}

impl Fio {
    /// Finds fio in the guest, or else on the host.
    fn find() -> Option<Fio> {
        let trees = host_tools::guest::cache().ok().and_then(|cache| cache.read_dir().ok());
        let trees = trees.into_iter().flatten().flatten().map(|entry| entry.path());
        // Of the complete trees, the newest counts. An incomplete tree is called `.partial`.
        let is_tree = |tree: &PathBuf| {
            let name = tree.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("tree-") && tree.extension().is_none() && tree.join("usr/bin/fio").exists()
        };
        let made = |tree: &PathBuf| tree.metadata().and_then(|tree| tree.modified()).ok();
        if let Some(tree) = trees.filter(is_tree).max_by_key(made).map(|tree| tree.join("usr")) {
            let library = |name: &str| tree.join("lib/x86_64-linux-gnu").join(name).display().to_string();
            let paths = format!("{}:{}", library(""), library("ceph"));
            return Some(Fio {
                program: tree.join("lib64/ld-linux-x86-64.so.2"),
                arguments: vec!["--library-path".to_string(), paths, tree.join("bin/fio").display().to_string()],
            });
        }
        let host = Fio { program: PathBuf::from("fio"), arguments: Vec::new() };
        host.command().arg("--version").output().is_ok().then_some(host)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(VARIABLES);
        command
    }

    /// Returns fio's requests for a job file in this folder.
    fn run(&self, case: &Case, folder: &Path) -> Instances {
        std::fs::write(folder.join("case.fio"), with_logs(case)).expect("the folder can be written");
        std::fs::write(folder.join("common.fio"), cases::INCLUDED).expect("the folder can be written");
        let target = std::fs::File::create(folder.join("dev.bin")).expect("the folder can be written");
        target.set_len(DEVICE_BYTES).expect("a sparse file");
        let mut command = self.command();
        let output = command.current_dir(folder).arg("case.fio").output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: fio says {said}", case.option);
        let mut instances = Instances::new();
        for entry in folder.read_dir().expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.extension().is_some_and(|extension| extension == "iolog") {
                let job = path.file_stem().expect("it has a name").to_string_lossy();
                read_log(&job, &std::fs::read_to_string(&path).expect("it is text"), &mut instances);
            }
        }
        instances
    }
}

/// The job file, with a log of requests for each job.
fn with_logs(case: &Case) -> String {
    let mut text = String::from("[global]\nioengine=libaio\n");
    for line in case.text.lines() {
        let _ = writeln!(text, "{line}");
        let section = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        if let Some(name) = section.filter(|name| *name != "global") {
            let _ = writeln!(text, "write_iolog={name}.iolog");
        }
    }
    text
}

/// Parses lines `milliseconds file operation offset bytes` of fio's log. Files of instances are
/// called `job.instance.0`.
fn read_log(job: &str, text: &str, instances: &mut Instances) {
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let operation = match fields.get(2) {
            Some(&"read") => RequestOperation::Read,
            Some(&"write") => RequestOperation::Write,
            Some(&"trim") => RequestOperation::Trim,
            _ => continue,
        };
        let number = |index: usize| fields[index].parse::<u64>().expect("a number of the log");
        let instance = fields[1].strip_suffix(".0").and_then(|name| name.rsplit_once('.'));
        let instance = instance.and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
        let issued = instances.entry((job.to_string(), instance)).or_default();
        issued.push((operation, number(3), number(4)));
    }
}

/// Returns the lab's requests.
fn lab(case: &Case) -> Instances {
    let surroundings = IncludeContext {
        read: &|_| Ok(cases::INCLUDED.to_string()),
        variable: &|name| {
            let found = VARIABLES.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_string())
        },
    };
    let file = parse_within(&with_logs(case), "case.fio", &[], &surroundings);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", case.option));
    let target = WorkloadTarget { device_bytes: DEVICE_BYTES, ..WorkloadTarget::default() };
    let mut instances = Instances::new();
    for job in &file.jobs {
        for instance in 0..job.numjobs {
            let plan = JobPlan::new(job, instance, target).unwrap_or_else(|error| panic!("{}: {error}", case.option));
            let mut requests = Vec::new();
            JobStream::new(plan, 0).fill(&mut requests, 100_000);
            let issued = |request: &IoRequest| (request.operation, request.offset_bytes, u64::from(request.bytes));
            // fio numbers the instances after the first downwards.
            let number = (job.numjobs - instance) % job.numjobs;
            instances.insert((job.name.clone(), number), requests.iter().map(issued).collect());
        }
    }
    instances
}

/// Numbers of requests by operation, and total bytes, in words.
fn total(instances: &Instances) -> String {
    let all = || instances.values().flatten();
    let count = |operation: RequestOperation| all().filter(|issued| issued.0 == operation).count();
    let bytes: u64 = all().map(|issued| issued.2).sum();
    let [reads, writes, trims] = [RequestOperation::Read, RequestOperation::Write, RequestOperation::Trim].map(count);
    format!("{reads} / {writes} / {trims}, {} KiB", bytes / 1024)
}

/// Position of the first difference of two sequences, in words. `None` if they are equal.
fn difference(fio: &Instances, lab: &Instances) -> Option<String> {
    if fio.keys().ne(lab.keys()) {
        return Some(format!("jobs {:?} and {:?}", fio.keys(), lab.keys()));
    }
    for (name, expected) in fio {
        let issued = &lab[name];
        if let Some(index) =
            (0..expected.len().max(issued.len())).find(|&index| expected.get(index) != issued.get(index))
        {
            return Some(format!(
                "{name:?}: request {index} of {} is {:?}, and of the lab's {} it is {:?}",
                expected.len(),
                expected.get(index),
                issued.len(),
                issued.get(index)
            ));
        }
    }
    None
}

#[test]
fn requests_are_those_of_real_fio() {
    let Some(fio) = Fio::find() else {
        println!("SKIPPED: there is no fio, neither in the guest (warp guest --build-only) nor on the path");
        return;
    };
    let next = Mutex::new(CASES.iter());
    let wrong = Mutex::new(Vec::new());
    let compare = || {
        while let Some(case) = { next.lock().expect("nobody panics with it").next() } {
            let folder = tempfile::tempdir().expect("a temporary folder");
            if let Some(difference) = difference(&fio.run(case, folder.path()), &lab(case)) {
                let line = format!("{}: {difference}\n{}", case.option, case.text);
                wrong.lock().expect("nobody panics with it").push(line);
            }
        }
    };
    // fio waits most of the time, so many comparisons run in parallel.
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(compare);
        }
    });
    let wrong = wrong.into_inner().expect("nobody panics with it");
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

#[test]
fn the_manual_shows_what_was_compared() {
    let manual = include_str!("../../../../docs/benchmarks/fio.md");
    let row = |case: &Case| {
        let total = total(&lab(case));
        format!("| `{}` | {total} | {total} | yes |", case.option)
    };
    let rows: Vec<String> = CASES.iter().map(row).collect();
    let missing = rows.iter().filter(|row| !manual.contains(row.as_str())).count();
    assert!(missing == 0, "docs/benchmarks/fio.md lacks {missing} of these lines:\n{}", rows.join("\n"));
}
