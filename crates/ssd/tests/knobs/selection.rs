//! The two decisions of garbage collection (`source_policy`, `victim_policy`) and the seed.

use super::*;

fn contested(policy: VictimRule, seed: u64) -> Staged {
    let mut config = small(STAGED_SUPERBLOCKS, 0.25);
    config.gc.victim_policy = policy;
    config.seed = seed;
    Staged::new(&config, |_| 0, &CONTESTED, 0)
}

#[test]
fn each_unit_selection_takes_the_victim_it_is_defined_by() {
    // cost_age is 196 / 60 * 1 at unit 10, 56 / 200 * 61 at unit 8. By age since writing it would
    // be unit 8. benefit_cost is 160 / 352 * 2304 = 1047 at unit 5, 200 / 312 * 1536 = 985 at unit
    // 8. By age since invalidation it would be unit 6. benefit_cost_since_invalidation is 130 / 252
    // * 639 = 330 at unit 6, 160 / 192 * 261 = 218 at 5.
    for (policy, name, expected) in [
        (VictimRule::Greedy, "greedy", 8),
        (VictimRule::CostAge, "cost_age", 10),
        (VictimRule::BenefitCost, "benefit_cost", 5),
        (VictimRule::BenefitCostSinceInvalidation, "benefit_cost_since_invalidation", 6),
        (VictimRule::Fifo, "fifo", 1),
        (VictimRule::WindowedGreedy(1), "windowed_greedy", 1),
        (VictimRule::WindowedGreedy(4), "windowed_greedy", 3),
        (VictimRule::WindowedGreedy(5), "windowed_greedy", 5),
        (VictimRule::WindowedGreedy(1000), "windowed_greedy", 8),
        (VictimRule::DChoices(1000), "d_choices", 8),
    ] {
        let mut staged = contested(policy, 1);
        assert_eq!(staged.victims(0)[0], expected, "{policy:?}");
        let first = &reclaims(&staged.device)[0];
        assert_eq!(first.policy, name, "{policy:?} is named {} in the log", first.policy);
        assert_eq!(first.trigger, Trigger::Foreground, "{policy:?}");
    }
}

#[test]
fn of_equal_victims_the_one_closed_first_is_taken() {
    let equal: Vec<(u32, u32)> = (0..STAGED_UNITS).rev().map(|unit| (unit, 64)).collect();
    for policy in [VictimRule::Greedy, VictimRule::WindowedGreedy(1000)] {
        let mut config = small(STAGED_SUPERBLOCKS, 0.25);
        config.gc.victim_policy = policy;
        assert_eq!(Staged::new(&config, |_| 0, &equal, 0).victims(0)[0], 0, "{policy:?}");
    }
}

#[test]
fn benefit_cost_since_invalidation_divides_by_twice_the_valid_share() {
    // 128 / 256 * 641 = 320 at unit 3 and 224 / 64 * 161 = 563 at unit 6. Divided by 1 + u it would
    // be 214 and 125.
    let scattered = [0, 1, 2, 4, 5, 7, 8, 9].map(|unit| (unit, 32));
    let overwrites = [&[(3, 128)], &scattered[..], &[(6, 224), (10, 80), (11, 80)]].concat();
    let mut config = small(STAGED_SUPERBLOCKS, 0.25);
    config.gc.victim_policy = VictimRule::BenefitCostSinceInvalidation;
    assert_eq!(Staged::new(&config, |_| 0, &overwrites, 0).victims(0)[0], 6);
}

#[test]
fn a_unit_without_valid_pages_is_free_of_cost_whatever_its_age() {
    let overwrites = [(6, 200), (5, 200), (3, 112), (10, 256)];
    for policy in [VictimRule::Greedy, VictimRule::CostAge, VictimRule::BenefitCostSinceInvalidation] {
        let mut config = small(STAGED_SUPERBLOCKS, 0.25);
        config.gc.victim_policy = policy;
        assert_eq!(Staged::new(&config, |_| 0, &overwrites, 0).victims(0)[0], 10, "{policy:?}");
    }
}

/// Number of seeds for which each reclaim unit is the first victim.
fn first_victims(policy: VictimRule, seeds: u64) -> BTreeMap<usize, u64> {
    let mut counts = BTreeMap::new();
    for seed in 0..seeds {
        *counts.entry(contested(policy, seed).victims(0)[0]).or_default() += 1;
    }
    counts
}

#[test]
fn random_draws_every_candidate_with_equal_probability() {
    let counts = first_victims(VictimRule::Random, 330);
    let candidates: Vec<usize> = counts.keys().copied().collect();
    assert_eq!(candidates, (1..12).collect::<Vec<_>>(), "all that have lost a page, and no other");
    // 30 expected of each. Four standard deviations are 21.
    assert!(counts.values().all(|count| (9..=51).contains(count)), "seeds 0 to 329 draw {counts:?}");
}

#[test]
fn d_choices_takes_the_best_of_d_draws() {
    // Of 15 closed units 4 have lost no page and lose every comparison. The r-th best of the other
    // 11 is the best of two draws with probability ((16 - r)^2 - (15 - r)^2) / 225. With 16 / 225
    // both draws lose, and any of the 11 is taken.
    let counts = first_victims(VictimRule::DChoices(2), 330);
    let (best, worst) = (counts.get(&8).copied(), counts.get(&1).copied());
    let (best, worst) = (best.unwrap_or(0), worst.unwrap_or(0));
    assert!((26..=64).contains(&best), "45 of 330 expected, seeds 0 to 329 take the best {best} times");
    assert!((4..=27).contains(&worst), "15 of 330 expected, seeds 0 to 329 take the worst {worst} times");
    let first = first_victims(VictimRule::DChoices(1), 110);
    assert!(first.len() == 11 && first[&8] < 25, "one draw is random, seeds 0 to 109 take {first:?}");
}

#[test]
fn seed_decides_random_victims_and_nothing_else() {
    let victims = |policy, seed| {
        let mut config = small(64, 0.20);
        config.gc.victim_policy = policy;
        config.seed = seed;
        let mut device = recorded(&config);
        let pages = device.layout().logical_pages;
        write(&mut device, 0, pages, 0);
        overwrite_uniformly(&mut device, &mut Uniform::new(7), (0, pages), 20_000, 0);
        reclaims(&device).iter().map(|reclaim| reclaim.victim.0).collect::<Vec<_>>()
    };
    for policy in [VictimRule::Random, VictimRule::DChoices(3)] {
        assert_eq!(victims(policy, 5), victims(policy, 5), "{policy:?}: one seed, one result");
        assert_ne!(victims(policy, 5), victims(policy, 6), "{policy:?}: the seed decides");
    }
    assert_eq!(victims(VictimRule::Greedy, 5), victims(VictimRule::Greedy, 6));
}

// ---------------------------------------------------------------------------------------------------------------------
// First decision: source_policy

/// Five handles. 0 and 1 have lost little relative to their data, 2 hardly any, and 3 most. 4 has
/// lost one unit completely and less of the other, or the given pages.
fn five_handles(source_policy: SourcePolicy, overwrites: &[(u32, u32)]) -> Staged {
    let mut config = small(STAGED_SUPERBLOCKS, 0.25);
    config.handles.count = 5;
    config.gc.source_policy = source_policy;
    let handle_of = |unit| [0, 1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4][unit as usize];
    Staged::new(&config, handle_of, overwrites, 1)
}

const BY_HANDLE: [(u32, u32); 7] = [(0, 10), (1, 100), (6, 2), (8, 140), (9, 160), (10, 256), (11, 100)];
/// No unit is wholly invalid. The unit with the most losses belongs to handle 4. Handle 3 has lost
/// more in two units.
const NOTHING_FREE: [(u32, u32); 7] = [(0, 10), (1, 100), (6, 2), (8, 190), (9, 200), (10, 240), (11, 26)];

#[test]
fn pressure_takes_what_is_free_and_then_the_handle_that_has_lost_most() {
    for (selection, overwrites, expected) in [
        (SourcePolicy::Global, &BY_HANDLE, 10),
        (SourcePolicy::HighestPressure, &BY_HANDLE, 10),
        (SourcePolicy::Global, &NOTHING_FREE, 10),
        (SourcePolicy::HighestPressure, &NOTHING_FREE, 9),
    ] {
        let mut staged = five_handles(selection, overwrites);
        assert_eq!(staged.victims(1)[0], expected, "{selection:?}, {overwrites:?}");
    }
}

#[test]
fn an_owner_with_nothing_to_reclaim_gives_way_to_the_next() {
    // Background collection takes at most a twentieth valid. Handle 4 has such a unit, although
    // handle 3 has lost more.
    let mut config = small(STAGED_SUPERBLOCKS, 0.25);
    config.handles.count = 5;
    config.gc.source_policy = SourcePolicy::HighestPressure;
    config.gc.background_watermark = 0.0;
    let handle_of = |unit| [0, 1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4][unit as usize];
    let mut device = recorded(&config);
    for unit in 0..STAGED_UNITS {
        write(&mut device, unit * UNIT_PAGES, UNIT_PAGES, handle_of(unit));
    }
    let expected = unit_of(&device, 11 * UNIT_PAGES - 1);
    for (unit, pages) in [(8, 200), (9, 200), (10, 250)] {
        write(&mut device, unit * UNIT_PAGES, pages, 1);
    }
    let first = reclaims(&device)[0].clone();
    assert_eq!((first.trigger, first.victim), (Trigger::Background, expected));
}
