//! Output of blkparse with any bytes, also compressed.
//!
//! The input has a byte that chooses the drive, the action and the mapping, and the file.
#![no_main]

#[path = "../support/trace.rs"]
mod trace;

use libfuzzer_sys::fuzz_target;
use workload::trace::{BlkparseAction, PlacementRule, TraceFormat, TraceSettings};

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    let settings = TraceSettings {
        format: Some(TraceFormat::Blkparse),
        blkparse_action: match choice >> 6 {
            0 => BlkparseAction::Queued,
            1 => BlkparseAction::Completed,
            _ => BlkparseAction::Issued,
        },
        placement: PlacementRule::Process,
        ..TraceSettings::default()
    };
    trace::check(*choice, bytes, &settings);
});
