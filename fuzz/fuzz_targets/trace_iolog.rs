//! fio iologs with any bytes, of both versions, also compressed.
//!
//! The input has a byte that chooses the drive, the version and the mapping, and the file with or
//! without its first line.
#![no_main]

#[path = "../support/trace.rs"]
mod trace;

use libfuzzer_sys::fuzz_target;
use workload::trace::{PlacementRule, TraceFormat, TraceSettings};

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    let header: &[u8] = match choice >> 6 {
        0 | 1 => b"fio version 2 iolog\n",
        2 => b"fio version 3 iolog\n",
        _ => b"",
    };
    let settings = TraceSettings {
        format: Some(TraceFormat::Iolog),
        placement: if choice & 32 == 32 { PlacementRule::Column } else { PlacementRule::Volume },
        ..TraceSettings::default()
    };
    trace::check(*choice, &[header, bytes].concat(), &settings);
});
