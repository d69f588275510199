//! Tests that a run with steps, rewinds and forks ends with the integers of a straight run.

use std::sync::Arc;

use super::{ForkStart, LiveRun, MemoryAccount, RunPhase};
use crate::run::{RunPlan, RunResult, prepare, run_all};
use experiment::change::RunChange;
use experiment::definition::Experiment;
use experiment::run_options::RunOptions;
use experiment::scaled_model::{Scale, ScaleChoice};
use experiment::selection::RunOverrides;

const BUDGET_BYTES: u64 = 256 << 20;

fn account() -> MemoryAccount {
    MemoryAccount::new(BUDGET_BYTES)
}

fn plans_of(experiment: &str, change: impl FnOnce(&mut RunOverrides)) -> Vec<RunPlan> {
    let mut selection = RunOverrides {
        run: RunOptions {
            scale: Some(ScaleChoice::Fixed(Scale(2048))),
            drive_writes: Some(2.0),
            ..RunOptions::default()
        },
        ..RunOverrides::default()
    };
    change(&mut selection);
    let experiment = Experiment::find(experiment).expect("it is built in");
    let selected = experiment.select(&selection).expect("a selection");
    prepare(selected.cells).expect("it can be")
}

fn plan_with(settings: &[(&str, toml::Value)]) -> Arc<RunPlan> {
    let plans = plans_of("three_stream", |selection| {
        selection.device = Some("ssd_a".to_string());
        selection.run.variants = Some(vec!["FDP".to_string(), "80/20".to_string()]);
        let settings = settings.iter().map(|(path, value)| (path.to_string(), value.clone()));
        selection.change = RunChange::from_settings(&settings.collect());
    });
    Arc::new(plans.into_iter().next().expect("a cell"))
}

/// Serialized result, without the parts that some forms lack.
fn told(result: &RunResult) -> String {
    serde_json::to_string(result).expect("it is JSON")
}

fn straight(plan: &Arc<RunPlan>) -> RunResult {
    let mut results = run_all(&[plan.as_ref()], false, u64::MAX, &()).expect("it runs");
    results.pop().expect("a result")
}

fn go_to_the_end(run: &mut LiveRun) {
    while run.advance(u64::MAX, 1 << 20).expect("it runs") != RunPhase::Ended {}
}

#[test]
fn steps_of_any_length_end_in_the_same_integers() {
    let plan = plan_with(&[]);
    let straight = told(&straight(&plan));
    for requests in [1_000_003, 1023, 77] {
        let mut run = LiveRun::begin(Arc::clone(&plan), &account()).expect("it begins");
        assert_eq!(run.phase(), RunPhase::Filling);
        while run.advance(u64::MAX, requests).expect("it runs") != RunPhase::Ended {}
        assert_eq!(told(&run.result()), straight, "in steps of {requests} requests");
    }
}

#[test]
fn every_kind_of_run_can_be_stepped() {
    // Virtual time, placement feedback, a model of a program.
    for (experiment, scale, timed) in
        [("free_streams", 1024, true), ("event_feedback", 16, false), ("lsm_levels", 2048, false)]
    {
        let mut plans = plans_of(experiment, |selection| {
            selection.quick = true;
            selection.run.scale = Some(ScaleChoice::Fixed(Scale(scale)));
            selection.run.drive_writes = Some(0.5);
        });
        let plan = Arc::new(plans.swap_remove(0));
        assert_eq!(plan.is_timed(), timed, "{experiment}");
        let straight = told(&straight(&plan));
        let mut run = LiveRun::begin(Arc::clone(&plan), &account()).expect("it begins");
        let mut goal = 0;
        while run.advance(goal, 997).expect("it runs") != RunPhase::Ended {
            if run.phase() == RunPhase::Running && run.position().host_bytes >= goal {
                goal += plan.workload_work / 37 + 1;
            }
            // A read-only job has no writes to wait for.
            goal = goal.max(u64::from(plan.is_timed()) * u64::MAX);
        }
        assert_eq!(told(&run.result()), straight, "{experiment}");
    }
}

#[test]
fn going_back_is_exact() {
    let plan = plan_with(&[]);
    let straight = told(&straight(&plan));
    let capacity = plan.layout().capacity_bytes();
    for budget_bytes in [BUDGET_BYTES, 3 * plan.memory_bytes, 0] {
        let account = MemoryAccount::new(budget_bytes);
        let mut run = LiveRun::begin(Arc::clone(&plan), &account).expect("it begins");
        let mut seen = Vec::new();
        for step in 1..=6 {
            let goal = capacity * step / 4;
            while run.phase() == RunPhase::Filling || run.position().host_bytes < goal {
                run.advance(goal, 1 << 20).expect("it runs");
            }
            seen.push((goal, run.position(), run.stats(), run.units().collect::<Vec<_>>()));
        }
        for (goal, position, stats, units) in seen.iter().rev() {
            run.begin_seek(*goal).expect("it goes back");
            while run.phase() == RunPhase::Filling || run.position().host_bytes < *goal {
                run.advance(*goal, 1 << 20).expect("it runs");
            }
            assert_eq!(run.position(), *position, "with {budget_bytes} bytes for checkpoints");
            assert_eq!(run.stats(), *stats);
            assert!(run.units().eq(units.iter().copied()), "every reclaim unit is as it was");
        }
        go_to_the_end(&mut run);
        assert_eq!(told(&run.result()), straight, "with {budget_bytes} bytes for checkpoints");
        assert!(account.count(run.checkpoints.run) as u64 <= budget_bytes / plan.memory_bytes, "within the budget");
        drop(run);
        assert_eq!(account.available_bytes(), budget_bytes, "all of it comes back");
    }
}

/// Advances until the host has written `host_bytes`.
fn go_to(run: &mut LiveRun, host_bytes: u64) {
    while run.phase() == RunPhase::Filling || run.position().host_bytes < host_bytes {
        run.advance(host_bytes, 1 << 20).expect("it runs");
    }
}

#[test]
fn the_oldest_checkpoints_give_way_to_a_run() {
    let plan = plan_with(&[]);
    let each = plan.memory_bytes;
    let account = MemoryAccount::new(20 * each);
    let mut runs = [0, 1].map(|_| {
        let mut run = LiveRun::begin(Arc::clone(&plan), &account).expect("it begins");
        go_to(&mut run, plan.workload_work / 4);
        run
    });
    let numbers = [0, 1].map(|index| runs[index].checkpoints.run);
    let counts = || numbers.map(|number| account.count(number) as u64);
    let before = counts();
    assert!(before[0] > 4 && before[1] > 4 && before.iter().sum::<u64>() <= 20, "{before:?}");
    assert_eq!(account.available_bytes(), 20 * each, "checkpoints are nobody's loss");

    // A new run takes the free memory, then that of the first run's older checkpoints.
    let left = 20 - before.iter().sum::<u64>();
    let share = account.reserve((left + 3) * each).expect("checkpoints give way");
    assert_eq!(counts(), [before[0] - 3, before[1]]);
    assert_eq!(account.reserve(20 * each).err(), Some((17 - left) * each));
    assert_eq!(counts(), [before[0] - 3, before[1]], "what cannot be had takes nothing");
    let rest = account.reserve((17 - left) * each).expect("all of them give way");
    assert_eq!(counts(), [0, 0]);

    // A run rewinds even without checkpoints, and keeps new ones once memory is free again.
    for run in &mut runs {
        let there = (run.position(), run.stats());
        run.begin_seek(0).expect("it goes back");
        assert_eq!(run.position().host_bytes, 0);
        go_to(run, there.0.host_bytes);
        assert_eq!((run.position(), run.stats()), there);
    }
    assert_eq!(counts(), [0, 0], "there is no memory");
    drop((share, rest));
    let straight = told(&straight(&plan));
    for run in &mut runs {
        go_to_the_end(run);
        assert_eq!(told(&run.result()), straight);
    }
    let after = counts();
    assert!(after[0] > 1 && after[1] > 1 && after.iter().sum::<u64>() <= 20, "{after:?}");
}

#[test]
fn a_fork_goes_on_with_the_same_drive_or_begins_with_another() {
    let plan = plan_with(&[]);
    let capacity = plan.layout().capacity_bytes();
    let mut run = LiveRun::begin(Arc::clone(&plan), &account()).expect("it begins");
    while run.phase() == RunPhase::Filling || run.position().host_bytes < capacity {
        run.advance(capacity, 1 << 20).expect("it runs");
    }

    // The same plan gives the same end, independent of the original.
    let (mut same, forked) = run.fork(Arc::clone(&plan), &account()).expect("it forks");
    assert_eq!(forked, ForkStart::Here);
    assert_eq!(same.position(), run.position());
    go_to_the_end(&mut run);
    go_to_the_end(&mut same);
    assert_eq!(same.stats(), run.stats());

    // Other rules of collection: the drive of that moment, another end.
    let fifo = plan_with(&[("gc.victim_policy", toml::Value::from("fifo"))]);
    run.begin_seek(capacity).expect("it goes back");
    while run.position().host_bytes < capacity {
        run.advance(capacity, 1 << 20).expect("it runs");
    }
    let before = run.stats();
    let (mut other, forked) = run.fork(fifo, &account()).expect("it forks");
    assert_eq!((forked, other.stats()), (ForkStart::Here, before.clone()));
    go_to_the_end(&mut other);
    assert_ne!(other.stats().media_bytes_written(), same.stats().media_bytes_written());
    // It rewinds to its fork point at most.
    other.begin_seek(0).expect("it goes back");
    assert_eq!((other.position().host_bytes, other.stats()), (run.position().host_bytes, before));

    // Another drive gives the result of a run from the start.
    let roomy = plan_with(&[("geometry.over_provisioning", toml::Value::from(0.5))]);
    let (mut roomier, forked) = run.fork(Arc::clone(&roomy), &account()).expect("it forks");
    assert_eq!((forked, roomier.position().host_bytes), (ForkStart::FromStart, 0));
    go_to_the_end(&mut roomier);
    assert_eq!(told(&roomier.result()), told(&straight(&roomy)));
}

#[test]
fn the_units_are_the_drive() {
    let plan = plan_with(&[]);
    let mut run = LiveRun::begin(Arc::clone(&plan), &account()).expect("it begins");
    let mut opened = 0_u64;
    let mut reclaimed = 0_u64;
    let mut left_out = 0;
    while run.advance(u64::MAX, 1 << 12).expect("it runs") != RunPhase::Ended {
        let units: Vec<_> = run.units().collect();
        let pages: u64 = units.iter().map(|unit| u64::from(unit.pages)).sum();
        assert_eq!(pages, u64::from(plan.layout().physical_pages), "units make up the flash");
        let valid: u64 = units.iter().map(|unit| u64::from(unit.valid_pages)).sum();
        assert_eq!(valid, run.run.device().live_pages());
        assert!(units.iter().all(|unit| unit.valid_pages <= unit.written_pages && unit.written_pages <= unit.pages));
        let events = run.take_events();
        left_out += events.left_out;
        for told in events.events {
            match told.event {
                ssd::DeviceEvent::Open { .. } => opened += 1,
                ssd::DeviceEvent::Reclaim(reclaim) => {
                    reclaimed += 1;
                    assert_eq!(told.destination.is_some(), reclaim.pages_copied > 0, "copies go somewhere");
                }
                _ => {}
            }
        }
    }
    let total = run.run.device().stats().total();
    assert_eq!(left_out, 0, "it was asked often enough");
    assert!(opened > 0 && opened <= total.units_opened && total.units_opened - opened < 4096);
    assert!(reclaimed > 0 && reclaimed <= total.units_reclaimed);
}

/// Live data equal those of an unobserved run, and each die executes one operation at a time.
#[test]
fn a_run_with_a_clock_is_watched() {
    let mut plans = plans_of("free_streams", |selection| {
        selection.quick = true;
        selection.run.scale = Some(ScaleChoice::Fixed(Scale(1024)));
        selection.run.drive_writes = Some(0.5);
    });
    let plan = Arc::new(plans.swap_remove(0));
    let straight = straight(&plan).timed.expect("it has a clock");
    let mut run = LiveRun::begin(Arc::clone(&plan), &account()).expect("it begins");
    while run.phase() == RunPhase::Filling || run.position().requests < 500 {
        assert_ne!(run.advance(u64::MAX, 100).expect("it runs"), RunPhase::Ended, "{:?}", run.position());
    }
    let midway = run.timed().expect("it has a clock");
    let log = midway.request_log.as_ref().expect("it is watched");
    assert_eq!(log.requests.end(), run.position().requests, "nothing is in flight before a ramp");
    assert!(midway.jobs.iter().all(|job| job.until_ns <= run.position().now_ns));
    go_to_the_end(&mut run);
    let timed = run.timed().expect("it has a clock");
    for (job, other) in timed.jobs.iter().zip(&straight.jobs) {
        for (one, other) in job.directions.iter().zip(&other.directions) {
            assert_eq!((one.requests, one.latencies.sum_ns()), (other.requests, other.latencies.sum_ns()));
            assert_eq!(one.latencies.percentile_ns(99.9), other.latencies.percentile_ns(99.9));
        }
    }
    let activity = run.activity();
    let layout = plan.layout();
    assert!(!activity.dies.is_empty() && activity.dies.len().is_multiple_of(activity.channels.len()), "{layout:?}");
    let mut seen = std::collections::BTreeSet::new();
    for pieces in activity.dies.iter().chain(&activity.channels) {
        assert!(pieces.iter().all(|piece| piece.from < piece.until && piece.from >= activity.complete_from));
        assert!(pieces.windows(2).all(|pair| pair[0].until <= pair[1].from), "one thing at a time");
        seen.extend(pieces.iter().map(|piece| format!("{:?}", piece.work)));
    }
    assert!(seen.contains("Program"), "{seen:?}");
    assert!(activity.dies.iter().all(|pieces| !pieces.is_empty()));
}

#[test]
fn handles_are_named_by_what_writes_through_them() {
    let plan = plan_with(&[]);
    let named = plan.streams_of_handles().expect("the jobs fit");
    assert_eq!(named.len(), plan.layout().handles.len());
    let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_string()).collect() };
    let expected = [&["fill_sequential", "sequential"][..], &["fill_random", "random"], &["overwrite"]];
    for (found, expected) in named.iter().zip(expected) {
        assert_eq!(*found, names(expected));
    }
    assert!(named[3..].iter().all(Vec::is_empty), "{named:?}");
}
