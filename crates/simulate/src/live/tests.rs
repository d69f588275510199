//! A run that is stepped, set back and forked has the integers of one that was not.

use std::sync::Arc;

use super::{Forked, LiveRun, Phase};
use crate::run::{CellResult, RunPlan, prepare, run_all};
use experiment::definition::Experiment;
use experiment::selection::Selection;
use experiment::twin::{Scale, ScaleChoice};

const BUDGET_BYTES: u64 = 256 << 20;

fn plans_of(experiment: &str, change: impl FnOnce(&mut Selection)) -> Vec<RunPlan> {
    let mut selection = Selection {
        scale: Some(ScaleChoice::Fixed(Scale(2048))),
        write_capacities: Some(2.0),
        ..Selection::default()
    };
    change(&mut selection);
    let experiment = Experiment::find(experiment).expect("it is built in");
    let selected = experiment.select(&selection).expect("a selection");
    prepare(selected.cells).expect("it can be")
}

fn plan_with(settings: &[(&str, toml::Value)]) -> Arc<RunPlan> {
    let plans = plans_of("three_stream", |selection| {
        selection.device = Some("ssd_a".to_string());
        selection.only = Some(vec!["FDP".to_string(), "80/20".to_string()]);
        let settings = settings.iter().map(|(path, value)| (path.to_string(), value.clone()));
        selection.overrides.extend(settings);
    });
    Arc::new(plans.into_iter().next().expect("a cell"))
}

/// All that a result says, but for what is not part of it in every form.
fn told(result: &CellResult) -> String {
    serde_json::to_string(result).expect("it is JSON")
}

fn straight(plan: &Arc<RunPlan>) -> CellResult {
    let mut results = run_all(&[plan.as_ref()], false, u64::MAX, &()).expect("it runs");
    results.pop().expect("a result")
}

fn go_to_the_end(run: &mut LiveRun) {
    while run.advance(u64::MAX, 1 << 20).expect("it runs") != Phase::Ended {}
}

#[test]
fn steps_of_any_length_end_in_the_same_integers() {
    let plan = plan_with(&[]);
    let straight = told(&straight(&plan));
    for requests in [1_000_003, 1023, 77] {
        let mut run = LiveRun::begin(Arc::clone(&plan), BUDGET_BYTES).expect("it begins");
        assert_eq!(run.phase(), Phase::Filling);
        while run.advance(u64::MAX, requests).expect("it runs") != Phase::Ended {}
        assert_eq!(told(&run.result()), straight, "in steps of {requests} requests");
    }
}

#[test]
fn every_kind_of_run_can_be_stepped() {
    // In virtual time, a host that listens to the drive, a model of a program.
    for (experiment, scale, timed) in [
        ("free_streams", 1024, true),
        ("event_feedback", 16, false),
        ("lsm_levels", 2048, false),
    ] {
        let mut plans = plans_of(experiment, |selection| {
            selection.quick = true;
            selection.scale = Some(ScaleChoice::Fixed(Scale(scale)));
            selection.write_capacities = Some(0.5);
        });
        let plan = Arc::new(plans.swap_remove(0));
        assert_eq!(plan.is_timed(), timed, "{experiment}");
        let straight = told(&straight(&plan));
        let mut run = LiveRun::begin(Arc::clone(&plan), BUDGET_BYTES).expect("it begins");
        let mut goal = 0;
        while run.advance(goal, 997).expect("it runs") != Phase::Ended {
            if run.phase() == Phase::Running && run.position().host_bytes >= goal {
                goal += plan.workload_bytes() / 37 + 1;
            }
            // A job that only reads writes nothing to wait for.
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
        let mut run = LiveRun::begin(Arc::clone(&plan), budget_bytes).expect("it begins");
        let mut seen = Vec::new();
        for step in 1..=6 {
            let goal = capacity * step / 4;
            while run.phase() == Phase::Filling || run.position().host_bytes < goal {
                run.advance(goal, 1 << 20).expect("it runs");
            }
            seen.push((goal, run.position(), run.stats(), run.units().collect::<Vec<_>>()));
        }
        for (goal, position, stats, units) in seen.iter().rev() {
            run.begin_seek(*goal).expect("it goes back");
            while run.phase() == Phase::Filling || run.position().host_bytes < *goal {
                run.advance(*goal, 1 << 20).expect("it runs");
            }
            assert_eq!(run.position(), *position, "with {budget_bytes} bytes for checkpoints");
            assert_eq!(run.stats(), *stats);
            assert!(run.units().eq(units.iter().copied()), "every reclaim unit is as it was");
        }
        go_to_the_end(&mut run);
        assert_eq!(
            told(&run.result()),
            straight,
            "with {budget_bytes} bytes for checkpoints"
        );
        assert!(
            run.checkpoints.kept.len() as u64 <= budget_bytes / plan.memory_bytes,
            "within the budget"
        );
    }
}

#[test]
fn a_fork_goes_on_with_the_same_drive_or_begins_with_another() {
    let plan = plan_with(&[]);
    let capacity = plan.layout().capacity_bytes();
    let mut run = LiveRun::begin(Arc::clone(&plan), BUDGET_BYTES).expect("it begins");
    while run.phase() == Phase::Filling || run.position().host_bytes < capacity {
        run.advance(capacity, 1 << 20).expect("it runs");
    }

    // The same plan: the same end, whatever the original does meanwhile.
    let (mut same, forked) = run.fork(Arc::clone(&plan), BUDGET_BYTES).expect("it forks");
    assert_eq!(forked, Forked::Here);
    assert_eq!(same.position(), run.position());
    go_to_the_end(&mut run);
    go_to_the_end(&mut same);
    assert_eq!(same.stats(), run.stats());

    // Other rules of collection: the drive of that moment, another end.
    let fifo = plan_with(&[("gc.unit_selection", toml::Value::from("fifo"))]);
    run.begin_seek(capacity).expect("it goes back");
    while run.position().host_bytes < capacity {
        run.advance(capacity, 1 << 20).expect("it runs");
    }
    let before = run.stats();
    let (mut other, forked) = run.fork(fifo, BUDGET_BYTES).expect("it forks");
    assert_eq!((forked, other.stats()), (Forked::Here, before.clone()));
    go_to_the_end(&mut other);
    assert_ne!(other.stats().media_bytes_written(), same.stats().media_bytes_written());
    // It goes back to where it was forked, and no further.
    other.begin_seek(0).expect("it goes back");
    assert_eq!(
        (other.position().host_bytes, other.stats()),
        (run.position().host_bytes, before)
    );

    // Another drive: what a run from the start gives.
    let roomy = plan_with(&[("geometry.over_provisioning", toml::Value::from(0.5))]);
    let (mut roomier, forked) = run.fork(Arc::clone(&roomy), BUDGET_BYTES).expect("it forks");
    assert_eq!((forked, roomier.position().host_bytes), (Forked::FromStart, 0));
    go_to_the_end(&mut roomier);
    assert_eq!(told(&roomier.result()), told(&straight(&roomy)));
}

#[test]
fn the_units_are_the_drive() {
    let plan = plan_with(&[]);
    let mut run = LiveRun::begin(Arc::clone(&plan), BUDGET_BYTES).expect("it begins");
    let mut opened = 0_u64;
    let mut reclaimed = 0_u64;
    let mut left_out = 0;
    while run.advance(u64::MAX, 1 << 12).expect("it runs") != Phase::Ended {
        let units: Vec<_> = run.units().collect();
        let pages: u64 = units.iter().map(|unit| u64::from(unit.pages)).sum();
        assert_eq!(
            pages,
            u64::from(plan.layout().physical_pages),
            "units make up the flash"
        );
        let valid: u64 = units.iter().map(|unit| u64::from(unit.valid_pages)).sum();
        assert_eq!(valid, run.run.device().live_pages());
        assert!(
            units
                .iter()
                .all(|unit| unit.valid_pages <= unit.written_pages && unit.written_pages <= unit.pages)
        );
        let events = run.take_events();
        left_out += events.left_out;
        for told in events.events {
            match told.event {
                ssd::Event::Open { .. } => opened += 1,
                ssd::Event::Reclaim(reclaim) => {
                    reclaimed += 1;
                    assert_eq!(
                        told.destination.is_some(),
                        reclaim.pages_copied > 0,
                        "copies go somewhere"
                    );
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

/// What is kept for who watches is that of the run that nobody watches, and each die does one thing at a time.
#[test]
fn a_run_with_a_clock_is_watched() {
    let mut plans = plans_of("free_streams", |selection| {
        selection.quick = true;
        selection.scale = Some(ScaleChoice::Fixed(Scale(1024)));
        selection.write_capacities = Some(0.5);
    });
    let plan = Arc::new(plans.swap_remove(0));
    let straight = straight(&plan).timed.expect("it has a clock");
    let mut run = LiveRun::begin(Arc::clone(&plan), BUDGET_BYTES).expect("it begins");
    while run.phase() == Phase::Filling || run.position().requests < 500 {
        assert_ne!(
            run.advance(u64::MAX, 100).expect("it runs"),
            Phase::Ended,
            "{:?}",
            run.position()
        );
    }
    let midway = run.timed().expect("it has a clock");
    let log = midway.request_log.as_ref().expect("it is watched");
    assert_eq!(
        log.requests.end(),
        run.position().requests,
        "nothing is in flight before a ramp"
    );
    assert!(midway.jobs.iter().all(|job| job.until_ns <= run.position().now_ns));
    go_to_the_end(&mut run);
    let timed = run.timed().expect("it has a clock");
    for (job, other) in timed.jobs.iter().zip(&straight.jobs) {
        for (one, other) in job.directions.iter().zip(&other.directions) {
            assert_eq!(
                (one.requests, one.latencies.sum_ns()),
                (other.requests, other.latencies.sum_ns())
            );
            assert_eq!(one.latencies.percentile_ns(99.9), other.latencies.percentile_ns(99.9));
        }
    }
    let activity = run.activity();
    let layout = plan.layout();
    assert!(
        !activity.dies.is_empty() && activity.dies.len().is_multiple_of(activity.channels.len()),
        "{layout:?}"
    );
    let mut seen = std::collections::BTreeSet::new();
    for pieces in activity.dies.iter().chain(&activity.channels) {
        assert!(
            pieces
                .iter()
                .all(|piece| piece.from < piece.until && piece.from >= activity.complete_from)
        );
        assert!(
            pieces.windows(2).all(|pair| pair[0].until <= pair[1].from),
            "one thing at a time"
        );
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
    let expected = [
        &["fill_sequential", "sequential"][..],
        &["fill_random", "random"],
        &["overwrite"],
    ];
    for (found, expected) in named.iter().zip(expected) {
        assert_eq!(*found, names(expected));
    }
    assert!(named[3..].iter().all(Vec::is_empty), "{named:?}");
}
