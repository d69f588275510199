//! Tests of traces on scaled models of a drive.

mod support;

use std::collections::HashMap;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use support::{UNIT, drive, iolog, replay, units, with};
use workload::trace::AddressMapping;
use workload::{IoRequest, RequestOperation, ScaledModel, WorkloadTarget};

/// History of a drive's units, with bytes written, units written, and units written between two
/// writes of the same unit.
struct Life {
    bytes: u64,
    touched: u64,
    distances: Vec<u64>,
}

fn life(requests: &[IoRequest]) -> Life {
    let mut written_at: HashMap<u64, u64> = HashMap::new();
    let (mut now, mut distances) = (0, Vec::new());
    for request in requests.iter().filter(|request| request.operation == RequestOperation::Write) {
        let first = request.offset_bytes / UNIT;
        for unit in first..(request.offset_bytes + u64::from(request.bytes)).div_ceil(UNIT) {
            now += 1;
            if let Some(before) = written_at.insert(unit, now) {
                distances.push(now - before);
            }
        }
    }
    distances.sort_unstable();
    Life { bytes: now * UNIT, touched: written_at.len() as u64, distances }
}

/// A hot tenth gets nine of ten writes, in runs of up to eight units.
fn skewed_trace(lines: u64, units: u64) -> String {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let mut text = String::new();
    for line in 0..lines {
        let hot = random.next_u64() % 10 < 9;
        let (start, end) = if hot { (0, units / 10) } else { (units / 10, units - 8) };
        let unit = start + random.next_u64() % (end - start);
        let count = random.next_u64() % 8 + 1;
        text += &format!("0,W,{},{},{line}\n", unit * UNIT, count * UNIT);
    }
    text
}

#[test]
fn a_scaled_model_lives_as_the_drive_does_at_a_fraction_of_the_size() {
    const D: u64 = 16;
    const UNITS: u64 = 1 << 18;
    let text = skewed_trace(200_000, UNITS);
    let target = WorkloadTarget {
        scaled_model: Some(ScaledModel {
            denominator: D,
            device_bytes: UNITS / D * UNIT,
            mapping_unit_bytes: UNIT,
            keep_requests: false,
        }),
        ..drive(UNITS)
    };
    for mapping in [AddressMapping::Modulo, AddressMapping::Compact] {
        let full = life(&replay(&text, &with(mapping), &drive(UNITS)));
        let model = life(&replay(&text, &with(mapping), &target));
        let near = |what: &str, model: u64, full: u64, tolerance: f64| {
            let ratio = model as f64 * D as f64 / full as f64;
            assert!((ratio - 1.0).abs() < tolerance, "{mapping:?}: {what} {ratio} ({model} of {full})");
        };
        // The model has 1638 hot units with 9/10 of the bytes, which gives a random deviation of
        // half a percent.
        near("bytes", model.bytes, full.bytes, 0.03);
        near("touched units", model.touched, full.touched, 0.03);
        near("overwrites", model.distances.len() as u64, full.distances.len() as u64, 0.03);
        for percent in [10, 50, 90, 99] {
            let at = |life: &Life| life.distances[life.distances.len() * percent / 100];
            near(&format!("distance at {percent} %"), at(&model), at(&full), 0.08);
        }
    }
}

#[test]
fn a_sequential_pass_covers_the_scaled_model_once_in_order() {
    let lines: Vec<(&str, &str, u64, u64)> = (0..1000).map(|line| ("a", "write", line * 100, 100)).collect();
    for denominator in [7, 64, 512] {
        let target = WorkloadTarget {
            scaled_model: Some(ScaledModel {
                denominator,
                device_bytes: 100_000 / denominator * UNIT,
                mapping_unit_bytes: UNIT,
                keep_requests: false,
            }),
            ..drive(100_000)
        };
        let requests = replay(&iolog(&lines), &with(AddressMapping::Modulo), &target);
        let covered: Vec<u64> = units(&requests).iter().flat_map(|(_, first, count)| *first..first + count).collect();
        assert!(covered.iter().copied().eq(0..100_000 / denominator), "1/{denominator}");
    }
}

#[test]
fn a_scaled_model_that_keeps_requests_only_moves_them() {
    let text = iolog(&[("a", "write", 0, 64), ("a", "write", 96, 4), ("a", "write", 64, 32)]);
    let target = WorkloadTarget {
        scaled_model: Some(ScaledModel {
            denominator: 10,
            device_bytes: 10 * UNIT,
            mapping_unit_bytes: UNIT,
            keep_requests: true,
        }),
        ..drive(100)
    };
    let requests = replay(&text, &with(AddressMapping::Modulo), &target);
    // The first request is longer than the model. The rest end at its end.
    assert_eq!(units(&requests), [('W', 0, 10), ('W', 6, 4), ('W', 0, 10)]);
}
