//! Helpers to replay text traces on a small drive.

// Each test file uses a part of this module.
#![allow(dead_code)]

use std::io::Cursor;

use workload::trace::{Mapping, Reader, Settings, TraceSource};
use workload::{Operation, Request, Source, Target};

/// Bytes of a mapping unit.
pub const UNIT: u64 = 4096;
/// Seed of the choice of units that a scaled model sees.
pub const SEED: u64 = 7;

/// A drive of `units` units, with four placement indices.
pub fn drive(units: u64) -> Target {
    Target {
        device_bytes: units * UNIT,
        placement_count: 4,
        ..Target::default()
    }
}

/// A trace on a drive.
pub fn source(text: &str, settings: &Settings, target: &Target) -> TraceSource {
    let stream = Cursor::new(text.as_bytes().to_vec());
    let reader = Reader::from_stream("trace.txt", stream, settings).unwrap();
    TraceSource::new(settings, reader, target, SEED).unwrap()
}

/// All requests of a source.
pub fn all(source: &mut dyn Source) -> Vec<Request> {
    let mut requests = Vec::new();
    while source.next_batch(&mut requests, 1000).unwrap() > 0 {}
    requests
}

/// All requests of a trace.
pub fn replay(text: &str, settings: &Settings, target: &Target) -> Vec<Request> {
    all(&mut source(text, settings, target))
}

/// Returns operation letter, first unit and number of units of each request.
pub fn units(requests: &[Request]) -> Vec<(char, u64, u64)> {
    let letter = |operation| match operation {
        Operation::Read => 'R',
        Operation::Write => 'W',
        Operation::Trim => 'T',
    };
    let unit = |request: &Request| {
        assert_eq!(request.offset_bytes % UNIT, 0);
        (
            letter(request.operation),
            request.offset_bytes / UNIT,
            u64::from(request.bytes) / UNIT,
        )
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
pub fn with(mapping: Mapping) -> Settings {
    Settings {
        mapping,
        ..Settings::default()
    }
}
