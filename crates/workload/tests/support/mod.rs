//! Helpers to replay text traces on a small drive.

// Each test file uses a part of this module.
#![allow(dead_code)]

use std::io::Cursor;

use workload::trace::{AddressMapping, TraceReader, TraceSettings, TraceSource};
use workload::{IoRequest, RequestOperation, RequestSource, WorkloadTarget};

/// Bytes of a mapping unit.
pub const UNIT: u64 = 4096;
/// Seed of the choice of units that a scaled model sees.
pub const SEED: u64 = 7;

/// A drive of `units` units, with four placement indices.
pub fn drive(units: u64) -> WorkloadTarget {
    WorkloadTarget { device_bytes: units * UNIT, placement_count: 4, ..WorkloadTarget::default() }
}

/// A trace on a drive.
pub fn source(text: &str, settings: &TraceSettings, target: &WorkloadTarget) -> TraceSource {
    let stream = Cursor::new(text.as_bytes().to_vec());
    let reader = TraceReader::from_stream("trace.txt", stream, settings).unwrap();
    TraceSource::new(settings, reader, target, SEED).unwrap()
}

/// All requests of a source.
pub fn all(source: &mut dyn RequestSource) -> Vec<IoRequest> {
    let mut requests = Vec::new();
    while source.next_batch(&mut requests, 1000).unwrap() > 0 {}
    requests
}

/// All requests of a trace.
pub fn replay(text: &str, settings: &TraceSettings, target: &WorkloadTarget) -> Vec<IoRequest> {
    all(&mut source(text, settings, target))
}

/// Returns operation letter, first unit and number of units of each request.
pub fn units(requests: &[IoRequest]) -> Vec<(char, u64, u64)> {
    let letter = |operation| match operation {
        RequestOperation::Read => 'R',
        RequestOperation::Write => 'W',
        RequestOperation::Trim => 'T',
    };
    let unit = |request: &IoRequest| {
        assert_eq!(request.offset_bytes % UNIT, 0);
        (letter(request.operation), request.offset_bytes / UNIT, u64::from(request.bytes) / UNIT)
    };
    requests.iter().map(unit).collect()
}

/// Builds an iolog of requests in units. A line has file, action, first unit and number of units.
pub fn iolog(lines: &[(&str, &str, u64, u64)]) -> String {
    let mut text = "fio version 2 iolog\n".to_string();
    for (file, action, first, count) in lines {
        text += &format!("{file} {action} {} {}\n", first * UNIT, count * UNIT);
    }
    text
}

/// Settings with this mapping.
pub fn with(mapping: AddressMapping) -> TraceSettings {
    TraceSettings { mapping, ..TraceSettings::default() }
}
