//! Checks that every completion is right. A seeded swarm of hosts runs random commands, resets,
//! aborts, lost connections and failing storage against a model of the standard.
//!
//! Without settings the cases are the same everywhere. `WARP_SWARM_SECONDS` runs as many as fit in a
//! time, `WARP_SWARM_SEED` sets the first case and `WARP_SWARM_CASES` the maximum number. A failure
//! prints a command line that repeats it, and the shortest list of operations found that causes it.

// A failure carries the whole case for shrinking and printing, and happens only once.
#![allow(clippy::result_large_err)]

#[path = "simulation/mod.rs"]
mod simulation;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use simulation::entropy::{Entropy, Seeded};
use simulation::generate::{self, Generator, Setup};
use simulation::model::status;
use simulation::operation::{self, Operation};
use simulation::run::{Coverage, Run};

/// A run of at least this many cases must cover all required events.
const CASES_DEFAULT: u64 = 400;
/// Most operations of a case. Many short cases find more than few long ones.
const OPERATIONS_MAX: u64 = 1_500;
/// Most threads that run cases. Each needs a drive and the memory of its hosts.
const THREADS_MAX: usize = 8;
/// Most time for shrinking a failure.
const SHRINK_TIME: Duration = Duration::from_secs(30);
/// Operations of a shrunk failure that are printed.
const OPERATIONS_SHOWN: usize = 60;

/// Message of a failure, and the operations that caused it.
struct Failure {
    message: String,
    operations: Vec<Operation>,
}

thread_local! {
    /// Captures the message of a panic on this thread instead of printing it, while set.
    static QUIET: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn keep_panics_quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |information| {
            let kept =
                QUIET.with(|quiet| quiet.borrow_mut().as_mut().map(|message| *message = information.to_string()));
            if kept.is_none() {
                print(information);
            }
        }));
    });
}

/// Runs a case and records its operations. `next` chooses each operation from the current state.
fn run_caught(setup: &Setup, mut next: impl FnMut(&Run) -> Option<Operation>) -> Result<Coverage, Failure> {
    let done = RefCell::new(Vec::new());
    let ended = Cell::new(false);
    let run = || {
        let mut run = Run::new(setup)?;
        while let Some(operation) = next(&run) {
            done.borrow_mut().push(operation.clone());
            run.step(&operation)?;
        }
        ended.set(true);
        run.finish()?;
        Ok(run.coverage)
    };
    QUIET.with(|quiet| *quiet.borrow_mut() = Some(String::new()));
    let result: Result<Result<Coverage, String>, _> = catch_unwind(AssertUnwindSafe(run));
    let panic = QUIET.with(|quiet| quiet.borrow_mut().take().unwrap_or_default());
    let message = match result {
        Ok(Ok(coverage)) => return Ok(coverage),
        Ok(Err(difference)) => difference,
        Err(_) => panic,
    };
    let end = if ended.get() { "after the last one: " } else { "" };
    Err(Failure { message: format!("{end}{message}"), operations: done.into_inner() })
}

/// One case of the swarm, determined by its seed.
fn run_case(seed: u64) -> Result<Coverage, (Setup, Failure)> {
    let mut entropy = Seeded::new(seed);
    let setup = generate::setup(&mut entropy);
    let mut left = entropy.between(20, OPERATIONS_MAX);
    let mut generator = Generator::new(entropy);
    let next = |run: &Run| {
        left = left.checked_sub(1)?;
        generator.next(&run.model)
    };
    run_caught(&setup, next).map_err(|failure| (setup.clone(), failure))
}

fn replay(setup: &Setup, operations: &[Operation]) -> Result<Coverage, Failure> {
    let mut rest = operations.iter();
    run_caught(setup, |_| rest.next().cloned())
}

/// Removes operations while the rest still fails in any way.
fn shrink(setup: &Setup, mut failure: Failure) -> Failure {
    let start = Instant::now();
    let mut chunk = failure.operations.len() / 2;
    while chunk > 0 && start.elapsed() < SHRINK_TIME {
        let (mut at, before) = (0, failure.operations.len());
        while at < failure.operations.len() && start.elapsed() < SHRINK_TIME {
            let mut fewer = failure.operations.clone();
            fewer.drain(at..(at + chunk).min(fewer.len()));
            match replay(setup, &fewer) {
                Err(shorter) => failure = shorter,
                Ok(_) => at += chunk,
            }
        }
        if failure.operations.len() == before || chunk > 1 {
            chunk /= 2;
        }
    }
    failure
}

/// Report with all data needed to repeat a failure.
fn report(seed: u64, setup: &Setup, failure: Failure) -> String {
    let mut report = format!(
        "{}\n  at operation {}. Replay:\n  WARP_SWARM_SEED={seed} WARP_SWARM_CASES=1 cargo test -p warp-nvme --test \
         simulation -- swarm --nocapture\n{setup:#?}\n",
        failure.message,
        failure.operations.len(),
    );
    let shrunk = shrink(setup, failure);
    report += &format!("shrunk to {} operations: {}\n", shrunk.operations.len(), shrunk.message);
    let hidden = shrunk.operations.len().saturating_sub(OPERATIONS_SHOWN);
    if hidden > 0 {
        report += &format!("  ({hidden} more)\n");
    }
    for operation in &shrunk.operations[hidden..] {
        report += &format!("  {operation:?}\n");
    }
    report
}

fn environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} = {value}: must be a whole number")))
}

/// Commands that must have succeeded in a run of [`CASES_DEFAULT`] cases, or the swarm tests less
/// than claimed. Commands with a structure, log page or feature are added separately.
const COMMANDS: &[&str] = &[
    "Abort",
    "AsyncEvent",
    "Attach",
    "Compare",
    "Copy",
    "Create",
    "CreateCompletion",
    "CreateSubmission",
    "DatasetManagement",
    "Delete",
    "DeleteCompletion",
    "DeleteSubmission",
    "Detach",
    "DirectiveReceive",
    "DirectiveSend",
    "Flush",
    "Format",
    "HandleStatus",
    "HandleUpdate",
    "KeepAlive",
    "Read",
    "Sanitize",
    "SelfTest",
    "Shadow",
    "Verify",
    "Write",
    "WriteUncorrectable",
    "WriteZeroes",
];

/// Other events that must have happened.
const FEATURES: &[&str] = &[
    "AsyncEvent waits",
    "asynchronous completion 000h 010000h",
    "asynchronous completion 000h 010100h",
    "asynchronous completion 000h 020001h",
    "asynchronous completion 000h 020101h",
    "asynchronous completion 000h 040002h",
    "asynchronous completion 000h 810106h",
    "asynchronous completion 000h 810206h",
    "commands lost in flight",
    "data pointer: PRP 1",
    "data pointer: PRP 2",
    "data pointer: PRP list",
    "data pointer: SGL data block",
    "data pointer: SGL segments",
    "event requests lost in flight",
    "host event 00h",
    "host event 01h",
    "host event 03h",
    "keep alive timeout",
    "lost connection",
    "queue deleted: commands announced",
    "queue deleted: commands carried out",
    "queue deleted: commands not announced",
    "reclaim unit handle status foretold",
    "reclaim units closed early, or data redirected",
    "reset by the host",
    "reset from outside",
    "shutdown",
    "subsystem reset",
];

/// All coverage that a run of [`CASES_DEFAULT`] cases must have.
fn required() -> Vec<String> {
    let mut all: Vec<String> = COMMANDS.iter().map(|name| format!("{name} ok")).collect();
    all.extend(FEATURES.iter().map(|what| what.to_string()));
    all.extend(status::ALL.iter().map(|status| format!("status {status:03x}h")));
    all.extend(operation::STRUCTURES.iter().map(|cns| format!("Identify {cns:02x}h ok")));
    for log in operation::LOGS {
        all.extend([format!("GetLog {log:02x}h ok"), format!("log page {log:02x}h in pieces")]);
    }
    for feature in operation::FEATURES {
        all.extend([format!("GetFeature {feature:02x}h ok"), format!("SetFeature {feature:02x}h ok")]);
    }
    all
}

#[test]
fn swarm() {
    keep_panics_quiet();
    let budget = environment("WARP_SWARM_SECONDS").map(Duration::from_secs);
    let first = environment("WARP_SWARM_SEED").unwrap_or(1);
    let most = environment("WARP_SWARM_CASES").unwrap_or(if budget.is_some() { u64::MAX } else { CASES_DEFAULT });
    let start = Instant::now();
    let next = AtomicU64::new(0);
    let done = Mutex::new((Coverage::default(), 0));
    let found = Mutex::new(None);
    let work = || {
        while budget.is_none_or(|budget| start.elapsed() < budget)
            && found.lock().expect("nothing panics with it").is_none()
        {
            let case = next.fetch_add(1, Ordering::Relaxed);
            if case >= most {
                return;
            }
            let seed = first.wrapping_add(case);
            match run_case(seed) {
                Ok(covered) => {
                    let mut done = done.lock().expect("nothing panics with it");
                    done.0.merge(&covered);
                    done.1 += 1;
                }
                Err((setup, failure)) => {
                    *found.lock().expect("nothing panics with it") = Some((seed, setup, failure));
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    if let Some((seed, setup, failure)) = found.into_inner().expect("nothing panics with it") {
        panic!("{}", report(seed, &setup, failure));
    }
    let seconds = start.elapsed().as_secs_f64();
    let (coverage, cases) = done.into_inner().expect("nothing panics with it");
    for (what, times) in &coverage.0 {
        println!("{times:>9} {what}");
    }
    println!(
        "{cases} cases from seed {first} in {seconds:.1} s: {:.1} cases/s, {:.0} operations/s",
        cases as f64 / seconds,
        coverage.get("operations") as f64 / seconds
    );
    if cases >= CASES_DEFAULT {
        let missing: Vec<String> = required().into_iter().filter(|what| coverage.get(what) == 0).collect();
        assert!(missing.is_empty(), "in {cases} cases this never happened: {missing:?}");
    }
}
