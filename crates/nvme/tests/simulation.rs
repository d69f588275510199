//! Every completion is right: a seeded swarm of hosts with random commands, resets, aborts, lost connections and failing
//! storage, against a model of what the standard demands.
//!
//! Environment: `WARP_SWARM_SECONDS` is the budget, `WARP_SWARM_SEED` the first case, `WARP_SWARM_CASES` how many at
//! most. A failure prints the line that repeats it and the shortest list of operations that was found to cause it.

#[path = "simulation/mod.rs"]
mod simulation;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use simulation::entropy::{Entropy, Seeded};
use simulation::generate::{self, Generator, Setup};
use simulation::operation::Operation;
use simulation::run::{Coverage, Run};

const SECONDS_DEFAULT: u64 = 40;
/// Operations of a case, at most: many short cases find more than few long ones.
const OPERATIONS_MAX: u64 = 1_500;
/// What a case may spend on making its failure short.
const SHRINK_TIME: Duration = Duration::from_secs(30);
/// Operations of a shrunk failure that are printed.
const OPERATIONS_SHOWN: usize = 60;

/// What went wrong, and after which operations.
struct Failure {
    message: String,
    operations: Vec<Operation>,
}

thread_local! {
    /// Holds the message of a panic on this thread instead of printing it, while there is a place for it.
    static QUIET: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn keep_panics_quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |information| {
            let kept = QUIET.with(|quiet| {
                quiet
                    .borrow_mut()
                    .as_mut()
                    .map(|message| *message = information.to_string())
            });
            if kept.is_none() {
                print(information);
            }
        }));
    });
}

/// Runs a case whose operations come from `next`, which is told the state; keeps what was done.
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
    Err(Failure {
        message: format!("{end}{message}"),
        operations: done.into_inner(),
    })
}

/// One case of the swarm: everything follows from the seed.
fn run_case(seed: u64) -> Result<Coverage, (Setup, Failure)> {
    let mut entropy = Seeded::new(seed);
    let setup = generate::setup(&mut entropy);
    let mut left = entropy.between(20, OPERATIONS_MAX);
    let mut generator = Generator::new(entropy);
    let next = |run: &Run| {
        left = left.checked_sub(1)?;
        Some(generator.next(&run.model))
    };
    run_caught(&setup, next).map_err(|failure| (setup.clone(), failure))
}

fn replay(setup: &Setup, operations: &[Operation]) -> Result<Coverage, Failure> {
    let mut rest = operations.iter();
    run_caught(setup, |_| rest.next().cloned())
}

/// Leaves out operations as long as the rest still fails in any way.
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

/// Everything that somebody needs to repeat a failure.
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

#[test]
fn swarm() {
    keep_panics_quiet();
    let budget = Duration::from_secs(environment("WARP_SWARM_SECONDS").unwrap_or(SECONDS_DEFAULT));
    let first = environment("WARP_SWARM_SEED").unwrap_or(1);
    let most = environment("WARP_SWARM_CASES").unwrap_or(u64::MAX);
    let start = Instant::now();
    let mut coverage = Coverage::default();
    let mut cases = 0;
    while cases < most && (cases == 0 || start.elapsed() < budget) {
        let seed = first.wrapping_add(cases);
        match run_case(seed) {
            Ok(covered) => coverage.merge(&covered),
            Err((setup, failure)) => panic!("{}", report(seed, &setup, failure)),
        }
        cases += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    for (what, times) in &coverage.0 {
        println!("{times:>9} {what}");
    }
    println!(
        "{cases} cases from seed {first} in {seconds:.1} s: {:.1} cases/s",
        cases as f64 / seconds
    );
}

#[test]
#[ignore]
fn survey() {
    keep_panics_quiet();
    let first = environment("WARP_SWARM_SEED").unwrap_or(1);
    let most = environment("WARP_SWARM_CASES").unwrap_or(50);
    let mut messages: std::collections::BTreeMap<String, Vec<u64>> = Default::default();
    for seed in first..first + most {
        if let Err((_, failure)) = run_case(seed) {
            let last = failure
                .operations
                .last()
                .map(|last| format!("{last:?}"))
                .unwrap_or_default();
            let message: String = format!("{} <- {}", failure.message, last).chars().take(400).collect();
            messages.entry(message).or_default().push(seed);
        }
    }
    for (message, seeds) in &messages {
        println!("{seeds:?}\n   {message}");
    }
    println!("{} of {most} fail", messages.values().map(Vec::len).sum::<usize>());
}
