//! External victim policies: they replace the configured policy, appear in the log and belong to
//! their device only.

mod common;

use common::*;
use ssd::config::{DeviceConfig, VictimRule};
use ssd::event::Trigger;
use ssd::gc::{DeviceRng, VictimCandidates, VictimPolicy};
use ssd::{DeviceStats, Lpn, RuId};

/// Policy that selects in closing order, from the data visible to a policy.
struct OldestFirst;

impl VictimPolicy for OldestFirst {
    fn select(&mut self, candidates: &VictimCandidates<'_>, _random: &mut DeviceRng) -> Option<RuId> {
        assert!(candidates.iter().all(|unit| candidates.contains(unit)));
        candidates.iter().min_by_key(|unit| candidates.unit(*unit).closed_sequence())
    }
}

/// Policy that never selects a victim.
struct UndecidedPolicy;

impl VictimPolicy for UndecidedPolicy {
    fn select(&mut self, _candidates: &VictimCandidates<'_>, _random: &mut DeviceRng) -> Option<RuId> {
        None
    }
}

/// Policy that violates the contract by selecting an open reclaim unit.
struct RecklessPolicy;

impl VictimPolicy for RecklessPolicy {
    fn select(&mut self, candidates: &VictimCandidates<'_>, _random: &mut DeviceRng) -> Option<RuId> {
        (0..).map(RuId).find(|unit| !candidates.contains(*unit))
    }
}

fn fifo() -> DeviceConfig {
    let mut config = small(24, 0.25);
    config.gc.victim_policy = VictimRule::Fifo;
    config
}

fn overwritten(mut device: Recorded) -> Recorded {
    let pages = device.layout().logical_pages;
    write(&mut device, 0, pages, 0);
    let mut random = Uniform::new(7);
    for _ in 0..3 * pages {
        let page = random.below(pages);
        write(&mut device, page, 1, 0);
    }
    device
}

#[test]
fn a_policy_from_outside_decides_as_the_same_one_inside() {
    let inside = overwritten(recorded(&fifo()));
    let mut device = recorded(&fifo());
    device.set_victim_policy(Some(Box::new(OldestFirst)));
    let outside = overwritten(device);
    assert_eq!(inside.stats(), outside.stats());
    let chosen = reclaims(&outside).into_iter().filter(|row| row.trigger != Trigger::Forced);
    let names: Vec<&str> = chosen.map(|row| row.policy).collect();
    assert!(!names.is_empty() && names.iter().all(|name| *name == "external"));
    let victims = |device: &Recorded| -> Vec<RuId> { reclaims(device).iter().map(|row| row.victim).collect() };
    assert_eq!(victims(&inside), victims(&outside));
    prove(&outside);
}

#[test]
fn without_a_decision_room_is_made_by_force() {
    let mut device = recorded(&fifo());
    device.set_victim_policy(Some(Box::new(UndecidedPolicy)));
    let device = overwritten(device);
    let DeviceStats { background_collections, foreground_collections, forced_collections, .. } = *device.stats();
    assert_eq!((background_collections, foreground_collections), (0, 0));
    assert!(forced_collections > 0);
    prove(&device);
}

#[test]
fn clones_and_snapshots_go_back_to_the_configuration() {
    let mut device = silent(&fifo());
    device.set_victim_policy(Some(Box::new(RecklessPolicy)));
    let loaded = ssd::Device::from_bytes("a test", &device.to_bytes()).expect("it was just saved");
    for mut copy in [device.clone(), loaded] {
        let pages = copy.layout().logical_pages;
        for page in 0..4 * pages {
            write(&mut copy, page * 7 % pages, 1, 0);
        }
        assert!(copy.stats().total().units_reclaimed > 0);
        assert!(copy.lookup(Lpn(0)).is_some());
    }
}

#[test]
#[should_panic(expected = "is not a candidate")]
fn what_is_no_candidate_is_never_reclaimed() {
    let mut device = recorded(&fifo());
    device.set_victim_policy(Some(Box::new(RecklessPolicy)));
    overwritten(device);
}

/// Policy that scans all candidates for the one with the fewest valid pages.
struct FullScan;

impl VictimPolicy for FullScan {
    fn select(&mut self, candidates: &VictimCandidates<'_>, _random: &mut DeviceRng) -> Option<RuId> {
        let key = |unit: &RuId| (candidates.unit(*unit).valid_pages(), candidates.unit(*unit).closed_sequence());
        candidates.iter().min_by_key(key)
    }
}

/// Policy that leaves the decision to the built-in one.
struct BuiltInPolicy;

impl VictimPolicy for BuiltInPolicy {
    fn select(&mut self, candidates: &VictimCandidates<'_>, random: &mut DeviceRng) -> Option<RuId> {
        VictimRule::Greedy.select(candidates, random)
    }
}

#[test]
fn greedy_collection_of_many_small_units_takes_the_victims_of_a_full_scan() {
    let mut config = small(24, 0.25);
    config.geometry.reclaim_unit_bytes = 64 << 10;
    let victims = |policy: Option<Box<dyn VictimPolicy + Send + Sync>>| {
        let mut device = recorded(&config);
        device.set_victim_policy(policy);
        let device = overwritten(device);
        device.check().expect("every invariant holds");
        reclaims(&device).iter().map(|row| (row.victim, row.trigger, row.valid_pages)).collect::<Vec<_>>()
    };
    let scanned = victims(Some(Box::new(FullScan)));
    assert!(scanned.len() > 1000, "{} collections", scanned.len());
    assert!(victims(None) == scanned, "the built-in policy takes other victims");
    assert!(victims(Some(Box::new(BuiltInPolicy))) == scanned, "so does a policy that calls it");
}
