//! Orders of a studio's page, with any bytes as a SessionSpec or as the text of a workload.
//!
//! The input has a byte that chooses the form, and the bytes. An invalid order is refused in one
//! sentence, before it takes memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use studio::SessionSpec;
use studio::session_spec::SessionPlan;

/// Memory limit of an order's runs.
const MEMORY_BYTES: u64 = 64 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    let name = ["a.fio", "a.toml", "a.csv"].get(usize::from(*choice % 4));
    let text = match name {
        None => bytes.to_vec(),
        Some(name) => json!({
            "workload": { "name": name, "text": String::from_utf8_lossy(bytes) },
            "device": "warp_default", "scale": "1/512", "write": 1.0, "timed": choice & 128 == 128,
            "lanes": [{ "name": "a" }],
        })
        .to_string()
        .into_bytes(),
    };
    let prepared = SessionSpec::parse(&text).and_then(|order| SessionPlan::new(order, &[]));
    let Ok(prepared) = prepared else { return };
    let lanes = prepared.lanes(|need| match need.bytes() <= MEMORY_BYTES {
        true => Ok(()),
        false => Err(need.refusal(MEMORY_BYTES)),
    });
    let Ok(lanes) = lanes else { return };
    for (lane, ()) in &lanes {
        let Ok(mut source) = lane.plan.source() else { continue };
        let capacity = lane.plan.layout().capacity_bytes();
        let mut requests = Vec::new();
        // The input of a workload may be invalid.
        let _ = source.next_batch(&mut requests, 1000);
        for request in requests {
            assert!(request.offset_bytes + u64::from(request.bytes) <= capacity, "{request:?} is beyond the drive");
        }
    }
});
