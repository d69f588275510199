//! MSR, Alibaba and Tencent traces, and the detection of their format, with any bytes, also
//! compressed.
//!
//! The input has a byte that chooses the drive, the format and the mapping, and the file.
#![no_main]

#[path = "../support/trace.rs"]
mod trace;

use libfuzzer_sys::fuzz_target;
use workload::trace::{PlacementRule, TraceFormat, TraceSettings};

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    let settings = TraceSettings {
        format: [Some(TraceFormat::Msr), Some(TraceFormat::Alibaba), Some(TraceFormat::Tencent), None]
            [usize::from(choice >> 6)],
        placement: PlacementRule::RequestSize,
        request_sizes_bytes: vec![4096, 65536, 1 << 20],
        ..TraceSettings::default()
    };
    trace::check(*choice, bytes, &settings);
});
