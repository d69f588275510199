//! Compares the write amplification of the model with closed forms from the literature.
//!
//! # The closed forms, and their conditions
//!
//! Pages are overwritten uniformly at random. Let `L` be the live pages and `1 + rho` the
//! programmed pages per live page. Consider a reclaim unit that is reclaimed when the host has
//! written `t` pages since it was filled. Each page of it is valid with probability `exp(-t / L)`,
//! so its valid share is `u = exp(-t / L)`. Reclaiming frees `1 - u` of it, which gives
//! `A = 1 / (1 - u)` media pages for each host page.
//!
//! * **FIFO**: every unit is reclaimed at the same age, when as many media pages were written as
//!   are programmed: `t = (1 + rho) L / A`. This gives `A = 1 / (1 - exp(-(1 + rho) / A))` with the
//!   solution `A = (1 + rho) / ((1 + rho) + W(-(1 + rho) exp(-(1 + rho))))` (Menon 1995; "LRU
//!   cleaning" in Desnoyers 2012; Xiang & Kurkoski 2012). It holds for units of any size, because
//!   the mean of `exp(-t / L)` does not depend on the size.
//! * **Greedy** takes units at the same valid share instead of the same age. The valid count of a
//!   unit falls from full to that threshold in a mean time that the scatter of single units does
//!   not change (a sum of mean waiting times, `L / v` at `v` valid pages). Greedy therefore has the
//!   same formula in the limit of many large units, and is slightly better for small ones.
//! * **Random**: the mean valid share of a unit is `1 / (1 + rho)`, so `A = (1 + rho) / rho`. This
//!   holds for large units, because a unit that has not lost a page yet is never taken.
//! * **d-choices**: see [`d_choices_closed_form`]. Equal to random at `d = 1` and FIFO in the
//!   limit.
//!
//! # The effective spare of a policy
//!
//! Not all flash holds data. Of `n` reclaim units, one is kept free for collection, and the host's
//! open unit is half full on average. The unit that takes copies is nearly full. Collection stops
//! with the first victim whose copies leave it open. Its remaining space is then uniform between
//! zero and the invalid pages of a victim, `(1 - u) / 2 = 1 / 2A` on average. So `n - 3/2 - 1/2A`
//! reclaim units are programmed. By Little's law for pages, their mean life is that many units of
//! media writes, as the derivation above requires. The tests choose the over-provisioning so that
//! this effective `rho` is the one in the table, and verify it by measurement. For `n` to infinity
//! it equals the nominal one, which has a separate test.
//!
//! `WARP_DEEP=1` runs the full size: 3000 reclaim units of 4096 pages (2048 with two streams), in a
//! few minutes. By default the devices are as small as the tolerances allow. Every run prints its
//! measurements. Seeds are part of the configurations, so failures are reproducible.

mod common;

use common::*;
use ssd::config::{DeviceConfig, GcConfig, HandlesConfig, Isolation, SourcePolicy, VictimRule};
use ssd::unit::UnitState;
use ssd::{Device, DeviceStats, EventSink, Placement, RuId, UnitOwner};

/// Flash geometry of a device under test.
#[derive(Clone, Copy)]
struct Size {
    unit_pages: u32,
    units: u32,
}

fn deep() -> bool {
    std::env::var_os("WARP_DEEP").is_some_and(|value| value != "0")
}

fn size() -> Size {
    if deep() { Size { unit_pages: 4096, units: 3000 } } else { Size { unit_pages: 1024, units: 1000 } }
}

/// Branch of the inverse of `w exp(w)` above -1, for `-1/e < x <= 0`, by Newton's method.
fn lambert_w0(x: f64) -> f64 {
    let near_branch_point = (2.0 * (1.0 + std::f64::consts::E * x)).sqrt();
    let mut w = -1.0 + near_branch_point - near_branch_point * near_branch_point / 3.0;
    for _ in 0..50 {
        let step = (w * w.exp() - x) / ((1.0 + w) * w.exp());
        w -= step;
        if step.abs() < 1e-15 {
            break;
        }
    }
    w
}

/// Write amplification under uniform overwrite. Exact for FIFO, the limit of greedy.
fn fifo_closed_form(rho: f64) -> f64 {
    let alpha = 1.0 + rho;
    alpha / (alpha + lambert_w0(-alpha * (-alpha).exp()))
}

/// Spare at which [`fifo_closed_form`] equals `amplification`.
fn spare_for(amplification: f64) -> f64 {
    -amplification * (1.0 - 1.0 / amplification).ln() - 1.0
}

/// Write amplification under uniform overwrite with random victims.
fn random_closed_form(rho: f64) -> f64 {
    (1.0 + rho) / rho
}

/// Root of a function that is positive at `low` and negative at `high`.
fn bisect(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    assert!(function(low) > 0.0 && function(high) < 0.0, "the root is not between {low} and {high}");
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if function(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Write amplification under uniform overwrite with the best of `d` randomly drawn units as victim.
/// Valid in the limit of large units, in which the best unit is the oldest.
///
/// Let `G` be the share of the closed units that are older than `age`, with the age in collections
/// per closed unit. The victim is older with probability `S = 1 - (1 - G)^d`. In a steady state as
/// many units reach an age as are reclaimed beyond it, so `dG/d(age) = -S`. The valid share of
/// victims is `u = E exp(-k age) = 1 - k * integral of S exp(-k age)`, where a unit of age is `k =
/// (1 + rho) (1 - u)` of `L` host writes.
fn d_choices_closed_form(rho: f64, d: i32) -> f64 {
    const STEP: f64 = 1e-3;
    const STEPS: usize = 40_000;
    let survival_of = |share: f64| 1.0 - (1.0 - share).powi(d);
    let mut share = 1.0;
    let mut survival = Vec::with_capacity(STEPS + 1);
    for _ in 0..=STEPS {
        survival.push(survival_of(share));
        let k1 = -survival_of(share);
        let k2 = -survival_of(share + 0.5 * STEP * k1);
        let k3 = -survival_of(share + 0.5 * STEP * k2);
        let k4 = -survival_of(share + STEP * k3);
        share += STEP / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
    }
    let valid_share = |u: f64| {
        let k = (1.0 + rho) * (1.0 - u);
        let at = |index: usize| survival[index] * (-k * index as f64 * STEP).exp();
        let trapezium: f64 = (1..=STEPS).map(|index| 0.5 * (at(index - 1) + at(index))).sum();
        1.0 - k * STEP * trapezium
    };
    1.0 / (1.0 - bisect(0.0, 1.0 - 1e-4, |u| valid_share(u) - u))
}

/// A drive that collects only for lack of space, with handles of one isolation. Its effective spare
/// is `rho` if `unusable` reclaim units hold no data on average.
fn drive(size: Size, rho: f64, unusable: f64, isolation: Isolation, handles: u16) -> DeviceConfig {
    let unit_bytes = u64::from(size.unit_pages) * 4096;
    let mut config = small(0, 0.0);
    config.geometry.reclaim_unit_bytes = unit_bytes;
    config.geometry.physical_bytes = Some(u64::from(size.units) * unit_bytes);
    let units = f64::from(size.units);
    config.geometry.over_provisioning = (1.0 + rho) * units / (units - unusable) - 1.0;
    config.handles.count = handles;
    config.handles.isolation = isolation;
    config
}

/// A drive with one handle and an effective spare of `rho` under a policy with this write
/// amplification.
fn one_stream(size: Size, rho: f64, policy: VictimRule, amplification: f64) -> DeviceConfig {
    let unusable = 1.5 + 0.5 / amplification;
    let mut config = drive(size, rho, unusable, Isolation::InitiallyIsolated, 1);
    config.gc.victim_policy = policy;
    config
}

/// Pages with data, valid or not, in a handle's reclaim units. Includes closed units and the
/// written part of the open ones. Without remapping, the received copies give the fill level of the
/// unit for copies.
fn programmed_pages<S: EventSink>(device: &Device<S>, handle: Option<u16>) -> u64 {
    let unit_pages = u64::from(device.layout().superblock_pages);
    let owner = handle.map_or(UnitOwner::SHARED_POOL, owner);
    let of_owner = |unit: &&ssd::unit::ReclaimUnit| unit.owner() == owner;
    let units = (0..device.layout().slices()).map(|unit| device.unit(RuId(unit)));
    let closed = units.filter(of_owner).filter(|unit| unit.state() == UnitState::Closed).count() as u64;
    let written_by_host = handle.map_or(0, |handle| {
        let left = device.available_media_writes(Placement::handle(handle));
        unit_pages - u64::from(left.expect("the handle exists"))
    });
    closed * unit_pages + written_by_host + device.stats().owner(owner).gc_pages_received % unit_pages
}

/// Measurement of a stream: programmed pages per live page, less 1, and write amplification.
#[derive(Clone, Copy)]
struct Measured {
    rho: f64,
    amplification: f64,
}

/// Measures a uniform overwrite in the steady state, after `warm_up` and over `measured` times the
/// capacity.
fn steady_state(config: &DeviceConfig, warm_up: u32, measured: u32) -> Measured {
    const SAMPLES: u32 = 500;
    let mut device = silent(config);
    let logical_pages = device.layout().logical_pages;
    let whole = (0, logical_pages);
    write(&mut device, 0, logical_pages, 0);
    let mut uniform = Uniform::new(config.seed);
    let pages = |capacities: u32| u64::from(capacities) * u64::from(logical_pages);
    overwrite_uniformly(&mut device, &mut uniform, whole, pages(warm_up), 0);
    let before = device.stats().clone();
    let mut programmed = 0;
    for _ in 0..SAMPLES {
        overwrite_uniformly(&mut device, &mut uniform, whole, pages(measured) / u64::from(SAMPLES), 0);
        programmed += programmed_pages(&device, Some(0)) + programmed_pages(&device, None);
    }
    Measured {
        rho: programmed as f64 / f64::from(SAMPLES) / f64::from(logical_pages) - 1.0,
        amplification: write_amplification_since(&before, device.stats()),
    }
}

/// Runs [`one_stream`] and asserts the effective spare and this write amplification.
fn expect_one_stream(size: Size, rho: f64, policy: VictimRule, expected: f64, tolerance: f64) -> f64 {
    let (warm_up, window) = if policy == VictimRule::Random { (6, 12) } else { (3, 2) };
    let measured = steady_state(&one_stream(size, rho, policy, expected), warm_up, window);
    let what = format!("{policy:?}, {} units of {} pages, rho {rho}", size.units, size.unit_pages);
    assert_close(&format!("{what}: spare"), measured.rho, rho, 0.01);
    assert_close(&what, measured.amplification, expected, tolerance);
    measured.amplification
}

/// Compares and prints one row. The seed in the row's configuration reproduces it.
fn assert_close(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{what}: measured {measured:.4}, closed form {expected:.4}, error {:+.2} %", 100.0 * error);
    assert!(
        error.abs() <= tolerance,
        "{what}: measured {measured:.4}, closed form {expected:.4}: {:+.2} % is more than {:.1} %",
        100.0 * error,
        100.0 * tolerance
    );
}

#[test]
fn the_closed_forms_are_what_they_claim() {
    for x in [-0.367, -0.3, -0.1, -0.001, 0.0] {
        let w = lambert_w0(x);
        assert!(w > -1.0 && (w * w.exp() - x).abs() < 1e-12, "W({x}) = {w}");
    }
    assert!((fifo_closed_form(0.3) - 2.36).abs() < 0.005);
    for rho in [0.07, 0.3, 1.0] {
        let amplification = fifo_closed_form(rho);
        let fixed_point = 1.0 / (1.0 - (-(1.0 + rho) / amplification).exp());
        assert!((amplification - fixed_point).abs() < 1e-9);
        assert!((spare_for(amplification) - rho).abs() < 1e-9);
        assert!((d_choices_closed_form(rho, 1) / random_closed_form(rho) - 1.0).abs() < 1e-3);
        assert!((d_choices_closed_form(rho, 2000) / amplification - 1.0).abs() < 2e-3);
    }
}

const SPARES: [f64; 6] = [0.07, 0.10, 0.15, 0.20, 0.30, 0.50];

#[test]
fn greedy_meets_its_closed_form_under_uniform_overwrite() {
    for rho in SPARES {
        expect_one_stream(size(), rho, VictimRule::Greedy, fifo_closed_form(rho), 0.015);
    }
}

#[test]
fn fifo_meets_its_closed_form_whatever_the_size_of_units() {
    for unit_pages in [256, size().unit_pages] {
        for rho in [0.10, 0.30] {
            let size = Size { unit_pages, ..size() };
            expect_one_stream(size, rho, VictimRule::Fifo, fifo_closed_form(rho), 0.005);
        }
    }
}

#[test]
fn random_meets_its_closed_form() {
    // Random victims scatter most and need many small units. A drawn unit without an invalid page
    // is not taken. A unit of `p` pages loses its first page after `L / p` host pages, while `A L /
    // p^2` units are closed. The share `A / ((1 + rho) p)` of all units therefore frees no space,
    // and the other units free more.
    let size = Size { unit_pages: 512, ..size() };
    for rho in [0.10, 0.15, 0.30] {
        let limit = random_closed_form(rho);
        let expected = limit / (1.0 + limit / ((1.0 + rho) * f64::from(size.unit_pages)));
        expect_one_stream(size, rho, VictimRule::Random, expected, 0.02);
    }
}

#[test]
fn d_choices_meet_their_closed_form_and_approach_greedy() {
    let rho = 0.20;
    let mut last = random_closed_form(rho);
    for d in [2, 4, 10] {
        let expected = d_choices_closed_form(rho, d as i32);
        let measured = expect_one_stream(size(), rho, VictimRule::DChoices(d), expected, 0.015);
        assert!(measured < last, "{d} choices are not better than fewer");
        last = measured;
    }
    let greedy = expect_one_stream(size(), rho, VictimRule::Greedy, fifo_closed_form(rho), 0.015);
    assert!(last > 1.01 * greedy, "10 choices are not as good as the best of all");
    expect_one_stream(size(), rho, VictimRule::DChoices(200), greedy, 0.01);
}

#[test]
fn windowed_greedy_meets_the_closed_form_of_both_its_ends() {
    let rho = 0.20;
    let policy = VictimRule::WindowedGreedy(size().units / 10);
    expect_one_stream(size(), rho, policy, fifo_closed_form(rho), 0.015);
}

#[test]
fn nominal_spare_is_the_limit_of_many_reclaim_units() {
    let rho = 0.10;
    let nominal_error = |units: u32| {
        let size = Size { unit_pages: 512, units };
        let config = drive(size, rho, 0.0, Isolation::InitiallyIsolated, 1);
        let measured = steady_state(&config, 3, 2).amplification;
        let error = measured / fifo_closed_form(rho) - 1.0;
        println!("nominal rho {rho}, {units} reclaim units: measured {measured:.4}, error {:+.2} %", 100.0 * error);
        error
    };
    let (few, many) = (nominal_error(250), nominal_error(2000));
    assert!(few > 0.03, "with few reclaim units those that are free or half full must be felt");
    assert!(many.abs() < 0.015, "with many they must not");
}

#[test]
fn sequential_overwrite_copies_nothing() {
    for unit_pages in [256, 1024, 4096] {
        for over_provisioning in [0.05, 0.10, 0.28, 1.0] {
            for pages_per_write in [1, 32, 100] {
                sequential_loop(unit_pages, over_provisioning, pages_per_write);
            }
        }
    }
}

/// A drive with default settings that uses one of its eight handles.
fn sequential_loop(unit_pages: u32, over_provisioning: f64, pages_per_write: u32) {
    let mut config = small(0, over_provisioning);
    let unit_bytes = u64::from(unit_pages) * 4096;
    config.geometry.reclaim_unit_bytes = unit_bytes;
    config.geometry.physical_bytes = Some(100 * unit_bytes);
    config.handles = HandlesConfig::default();
    config.gc = GcConfig::default();
    let mut device = silent(&config);
    let logical_pages = device.layout().logical_pages;
    let handle = 3;
    for _ in 0..4 {
        let mut first = 0;
        while first < logical_pages {
            let pages = pages_per_write.min(logical_pages - first);
            write(&mut device, first, pages, handle);
            first += pages;
        }
    }
    let stats = device.stats();
    let case =
        format!("units of {unit_pages} pages, over-provisioning {over_provisioning}, {pages_per_write} pages each");
    assert!(stats.total().units_reclaimed > 0, "{case}: nothing was reclaimed");
    assert_eq!(stats.total().gc_pages_copied, 0, "{case}: pages were copied");
    assert_eq!(stats.total().pages_remapped, 0, "{case}: blocks were remapped");
    assert_eq!(stats.media_bytes_written(), 4 * u64::from(logical_pages) * 4096, "{case}");
    assert_eq!(stats.write_amplification(), Some(1.0), "{case}");
}

/// Two streams, each uniform on its own range, hot first.
#[derive(Clone, Copy)]
struct TwoStreams {
    /// Share of the pages that the hot stream writes to.
    hot_pages: f64,
    /// Share of the writes that the hot stream makes.
    hot_writes: f64,
}

/// Runs two streams on handles 0 and 1 (or both on handle 0) and measures each handle in the steady
/// state.
fn run_two_streams(config: &DeviceConfig, streams: TwoStreams, separate: bool) -> (Vec<Measured>, f64) {
    const SAMPLES: u32 = 200;
    let mut device = silent(config);
    let logical_pages = device.layout().logical_pages;
    let hot = (f64::from(logical_pages) * streams.hot_pages) as u32;
    let ranges = [(0, hot), (hot, logical_pages - hot)];
    let handle_of = |stream: usize| if separate { stream as u16 } else { 0 };
    for (stream, (first, pages)) in ranges.iter().enumerate() {
        write(&mut device, *first, *pages, handle_of(stream));
    }
    let mut uniform = Uniform::new(config.seed);
    let hot_below = (streams.hot_writes * f64::from(1 << 20)) as u32;
    let mut overwrite = |device: &mut Device, count: u64| {
        let mut batch = Vec::with_capacity(64);
        for _ in 0..count.div_ceil(64) {
            batch.clear();
            for _ in 0..64 {
                let stream = usize::from(uniform.below(1 << 20) >= hot_below);
                let (first, pages) = ranges[stream];
                let page = first + uniform.below(pages);
                batch.push(extent(page, 1, Placement::handle(handle_of(stream))));
            }
            let _ = device.write_batch(0, &batch).expect("the pages exist");
        }
    };
    // The warm-up of the cold stream, in its own capacity, must be as long as that of the hot
    // stream.
    let cold_turnover = f64::from(logical_pages) * (1.0 - streams.hot_pages) / (1.0 - streams.hot_writes);
    overwrite(&mut device, (4.0 * cold_turnover) as u64);
    let before = device.stats().clone();
    let mut programmed = [0; 2];
    for _ in 0..SAMPLES {
        overwrite(&mut device, (2.0 * cold_turnover) as u64 / u64::from(SAMPLES));
        for (handle, pages) in programmed.iter_mut().enumerate() {
            *pages += programmed_pages(&device, Some(handle as u16));
        }
    }
    let total = write_amplification_since(&before, device.stats());
    let measured = (0..2).map(|handle| {
        let row = |stats: &DeviceStats| stats.handles[handle];
        let (before, after) = (row(&before), row(device.stats()));
        let host = (after.host_pages_written - before.host_pages_written) as f64;
        Measured {
            rho: programmed[handle] as f64 / f64::from(SAMPLES) / f64::from(ranges[handle].1) - 1.0,
            amplification: 1.0 + (after.gc_pages_copied - before.gc_pages_copied) as f64 / host,
        }
    });
    (measured.collect(), total)
}

/// One unit kept free. Each of two handles has one unit half full with host data and one with
/// copies.
const UNUSABLE_OF_TWO_HANDLES: f64 = 3.0;

fn two_stream_size() -> Size {
    Size { unit_pages: if deep() { 2048 } else { 512 }, units: size().units }
}

const STREAMS: TwoStreams = TwoStreams { hot_pages: 0.2, hot_writes: 0.8 };

#[test]
fn isolated_streams_meet_their_closed_forms_and_greedy_gives_both_the_same_spare() {
    // Greedy takes the unit with the minimum valid share, so units of both streams go at the same
    // `u`. Then `A` and `rho` are also equal for both, and equal to those of one uniform stream on
    // the whole drive at any hotness.
    let rho = 0.15;
    let isolation = Isolation::PersistentlyIsolated;
    let config = drive(two_stream_size(), rho, UNUSABLE_OF_TWO_HANDLES, isolation, 2);
    let (streams, total) = run_two_streams(&config, STREAMS, true);
    for (name, stream) in ["hot", "cold"].iter().zip(&streams) {
        assert_close(&format!("{name} stream, its spare"), stream.rho, rho, 0.03);
        let expected = fifo_closed_form(stream.rho);
        assert_close(&format!("{name} stream, rho {:.4}", stream.rho), stream.amplification, expected, 0.02);
    }
    let both = streams[0].rho * STREAMS.hot_pages + streams[1].rho * (1.0 - STREAMS.hot_pages);
    assert_close("both streams, their spare", both, rho, 0.02);
    assert_close("both streams, as one uniform stream", total, fifo_closed_form(rho), 0.03);
    let (_, mixed) = run_two_streams(&config, STREAMS, false);
    println!("both streams on one handle: {mixed:.4}");
    assert!(mixed > 1.05 * total, "mixing the streams on one handle must cost: {mixed:.4} mixed, {total:.4} apart");
}

#[test]
fn pressure_divides_the_spare_by_what_handles_hold() {
    // The policy reclaims from the handle with the maximum invalid share, so all shares become
    // equal at any write rates.
    let rho = 0.30;
    let streams = TwoStreams { hot_pages: 0.5, hot_writes: 0.8 };
    let isolation = Isolation::PersistentlyIsolated;
    let mut config = drive(two_stream_size(), rho, UNUSABLE_OF_TWO_HANDLES, isolation, 2);
    config.gc.source_policy = SourcePolicy::HighestPressure;
    let (measured, _) = run_two_streams(&config, streams, true);
    for (name, stream) in ["hot", "cold"].iter().zip(&measured) {
        assert_close(&format!("{name} stream, its spare"), stream.rho, rho, 0.03);
        assert_close(
            &format!("{name} stream, by pressure, rho {:.4}", stream.rho),
            stream.amplification,
            fifo_closed_form(stream.rho),
            0.02,
        );
    }
}
