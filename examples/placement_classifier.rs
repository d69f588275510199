//! A placement classifier in Rust. A host uses it to find out which writes belong together.
//! `placement_classifier.py` has the same rule in Python.
//!
//! ```text
//! $ cargo run -p warp-workload --example placement_classifier
//! one handle 2.616
//! classified 2.442
//! ```

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use ssd::{Device, DeviceConfig, Lpn, Placement, WriteRequest};
use workload::PlacementIndex;
use workload::classifier::Classifier;

/// Places units with more writes than the average on index 0, and all others on index 1.
struct MoreThanAverage {
    writes: Vec<u64>,
    total: u64,
}

impl Classifier for MoreThanAverage {
    fn handle(&mut self, unit: u64) -> Option<PlacementIndex> {
        let writes = &mut self.writes[unit as usize];
        *writes += 1;
        self.total += 1;
        let average = self.total / self.writes.len() as u64;
        Some(PlacementIndex(if self.writes[unit as usize] > average { 0 } else { 1 }))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config: DeviceConfig = toml::from_str(include_str!("drive.toml"))?;
    for (name, has_classifier) in [("one handle", false), ("classified", true)] {
        let mut device = Device::new(&config)?;
        let pages = u64::from(device.layout().logical_pages);
        let mut classifier = MoreThanAverage { writes: vec![0; pages as usize], total: 0 };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for index in 0..8 * pages {
            // The first pass fills the drive. Then nine of ten writes go to a tenth of the pages.
            let below = if index % 10 < 9 { pages / 10 } else { pages };
            let page = if index < pages { index } else { random.next_u64() % below };
            let placement = classifier.handle(page).filter(|_| has_classifier);
            let write = WriteRequest {
                first: Lpn(page as u32),
                pages: 1,
                host_bytes: 4096,
                placement: Placement::handle(placement.map_or(0, |index| index.0)),
            };
            let _ = device.write(0, &write)?;
        }
        let waf = device.stats().write_amplification().unwrap_or(1.0);
        println!("{name} {waf:.3}");
    }
    Ok(())
}
