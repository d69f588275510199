//! Several threads for one drive: what comes out is the same for any number of them.
//!
//! Batches are large enough that they are really shared, reclaim units small enough that they fill, close and are reclaimed within them. The swarm (`never_dies.rs`) drives shared devices against the reference, in batches that one thread settles.

mod common;

use common::*;
use rayon::ThreadPoolBuilder;
use ssd::config::{DeviceConfig, UnitSelection};
use ssd::{Device, Write};

/// Writes of a batch: far more than are settled alone.
const BATCH: u32 = 4000;

/// Forty reclaim units of 32 MiB (8192 pages).
fn large(over_provisioning: f64) -> DeviceConfig {
    let mut config = small(40, over_provisioning);
    config.geometry.reclaim_unit_bytes = 32 * MIB;
    config.geometry.physical_bytes = Some(40 * 32 * MIB);
    config
}

/// A drive that `threads` have overwritten so many times, with its events.
fn overwritten(config: &DeviceConfig, times: u64, threads: usize) -> Recorded {
    let mut device = recorded(config);
    device.share_work(threads, 1);
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let mut uniform = Uniform::new(11);
    let pages = device.layout().logical_pages;
    let (groups, handles) = (u32::from(device.layout().groups), device.layout().handles.len() as u32);
    let mut left = times * u64::from(pages);
    while left > 0 {
        let mut batch: Vec<Write> = Vec::new();
        for number in 0..BATCH {
            // Half of the writes go to a tenth of the drive, and some are longer than a stripe.
            let length = match number % 32 {
                0 => 1 + uniform.below(200),
                1 => 1 + uniform.below(32),
                _ => 1,
            };
            let span = if number % 2 == 0 { pages } else { pages / 10 };
            let first = uniform.below(span - 200);
            let placement = placement(uniform.below(groups) as u16, uniform.below(handles) as u16);
            batch.push(extent(first, length, placement));
        }
        left = left.saturating_sub(batch.iter().map(|write| u64::from(write.pages)).sum());
        let done = pool.install(|| device.write_batch(0, &batch));
        let _ = done.expect("the extents and placements exist");
        let trimmed = device.deallocate(0, batch[0].first, 100);
        let _ = trimmed.expect("the extent exists");
    }
    device
}

fn check(name: &str, config: &DeviceConfig, times: u64) {
    let alone = overwritten(config, times, 1);
    assert!(
        reclaims(&alone)
            .iter()
            .map(|reclaim| u64::from(reclaim.pages_copied))
            .sum::<u64>()
            > 10_000,
        "{name}: the device copied"
    );
    for threads in [2, 3, 4, 16] {
        let shared = overwritten(config, times, threads);
        prove(&shared);
        let alike = alone
            .sink()
            .iter()
            .zip(shared.sink())
            .take_while(|(one, other)| one == other);
        let alike = alike.count();
        assert_eq!(
            alone.sink().get(alike),
            shared.sink().get(alike),
            "{name}: {threads} threads differ after {alike} events"
        );
        let [(alone, _), (shared, _)] = [alone.clone(), shared].map(|device| device.replace_sink(()));
        assert_same(&alone, &shared);
        units_are_alike(&alone, &shared);
    }
}

fn units_are_alike(one: &Device, other: &Device) {
    let slices = one.layout().slices();
    for unit in (0..slices).map(ssd::RuId) {
        assert_eq!(one.unit(unit), other.unit(unit), "reclaim unit {}", unit.0);
    }
}

#[test]
fn threads_do_not_show_with_greedy_victims() {
    check("greedy", &large(0.25), 3);
}

#[test]
fn threads_do_not_show_where_age_and_order_decide() {
    for selection in [
        UnitSelection::BenefitCostSinceInvalidation,
        UnitSelection::Fifo,
        UnitSelection::DChoices(4),
    ] {
        let mut config = large(0.25);
        config.gc.unit_selection = selection;
        check("victims by age and order", &config, 3);
    }
}

#[test]
fn threads_do_not_show_where_hot_data_is_apart() {
    let mut config = large(0.25);
    config.handles.separation_bytes = 2 * MIB;
    config.gc.unit_selection = UnitSelection::DChoices(8);
    check("separation", &config, 3);
}

#[test]
fn threads_do_not_show_where_collection_runs_in_the_background() {
    let mut config = large(0.25);
    config.gc.lazy_valid_share = 0.6;
    config.gc.background_mark = 0.9;
    check("background collection", &config, 3);
}

#[test]
fn threads_do_not_show_with_everything_on() {
    check("everything", &everything(), 2);
    let mut config = large(0.35);
    config.geometry.reclaim_groups = 4;
    config.handles.open_reclaim_units = 2;
    check("groups that fill, reclaim units in turn", &config, 1);
}
