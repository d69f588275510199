//! Binary traces, Mooncake's traces and captures with any bytes, also compressed.
//!
//! The input has a byte that chooses the drive, the format and the mapping, and the file.
#![no_main]

#[path = "../support/trace.rs"]
mod trace;

use libfuzzer_sys::fuzz_target;
use workload::trace::{TraceFormat, TraceSettings};

const FORMATS: [TraceFormat; 5] = [
    TraceFormat::Blktrace,
    TraceFormat::Vscsi,
    TraceFormat::OracleGeneral,
    TraceFormat::Mooncake,
    TraceFormat::Capture,
];

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    let settings = TraceSettings {
        format: Some(FORMATS[usize::from(*choice) % FORMATS.len()]),
        kv_block_bytes: 512,
        ..TraceSettings::default()
    };
    trace::check(*choice, bytes, &settings);
});
