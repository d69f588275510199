//! A garbage collection policy in Rust, beside the drive's own policy. `victim_policy.py` is the
//! same program in Python and prints the same numbers.
//!
//! ```text
//! $ cargo run -p warp-ssd --example victim_policy
//! greedy       2.6901
//! cost-benefit 1.9483
//! ```
//!
//! The tutorial `docs/tutorials/gc-policy.md` explains the policy.

use ssd::RuId;
use ssd::gc::{DeviceRng, VictimCandidates, VictimPolicy};
use ssd::{Device, DeviceConfig, Lpn, Placement, WriteRequest};

/// Prefers units that gain much space for few copies and have not been written for long.
pub struct CostBenefit;

impl VictimPolicy for CostBenefit {
    fn select(&mut self, candidates: &VictimCandidates<'_>, _random: &mut DeviceRng) -> Option<RuId> {
        let benefit = |unit: &RuId| {
            let unit = candidates.unit(*unit);
            let valid = f64::from(unit.valid_pages()) / f64::from(unit.pages());
            let age = (candidates.host_pages_written() - unit.last_write()) as f64;
            (1.0 - valid) * age / (1.0 + valid)
        };
        // `max_by` would take the last one among equals. `np.argmax` takes the first.
        candidates.iter().min_by(|a, b| benefit(b).total_cmp(&benefit(a)))
    }
}

/// Returns number `index` of a random sequence that is the same in Python.
fn random(index: u64) -> u64 {
    let mixed = (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 32
}

/// Fills a drive and overwrites it eight times. Nine of ten writes go to a tenth of the pages.
pub fn write_amplification(policy: Option<Box<dyn VictimPolicy + Send + Sync>>) -> f64 {
    let config: DeviceConfig = toml::from_str(include_str!("drive.toml")).expect("drive.toml is valid");
    let mut device = Device::new(&config).expect("the drive is possible");
    device.set_victim_policy(policy);
    let pages = u64::from(device.layout().logical_pages);
    let overwrites = (0..8 * pages).map(|index| {
        let below = if random(index) % 10 < 9 { pages / 10 } else { pages };
        random(index) / 10 % below
    });
    for page in (0..pages).chain(overwrites) {
        let write =
            WriteRequest { first: Lpn(page as u32), pages: 1, host_bytes: 4096, placement: Placement::handle(0) };
        let _ = device.write(0, &write).expect("the page exists");
    }
    device.stats().write_amplification().expect("the host has written")
}

fn main() {
    println!("greedy       {:.4}", write_amplification(None));
    println!("cost-benefit {:.4}", write_amplification(Some(Box::new(CostBenefit))));
}
