//! Binary traces, Mooncake's and captures, of any bytes, also compressed.
//!
//! Input: a byte that chooses the drive, the format and the mapping, then the file.
#![no_main]

#[path = "../support/trace.rs"]
mod trace;

use libfuzzer_sys::fuzz_target;
use workload::trace::{Format, Settings};

const FORMATS: [Format; 5] = [
    Format::Blktrace,
    Format::Vscsi,
    Format::OracleGeneral,
    Format::Mooncake,
    Format::Capture,
];

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    let settings = Settings {
        format: Some(FORMATS[usize::from(*choice) % FORMATS.len()]),
        kv_block_bytes: 512,
        ..Settings::default()
    };
    trace::check(*choice, bytes, &settings);
});
