//! Writes to a drive through two reclaim unit handles and reads its counters.
//!
//! The host has a log, which it overwrites in order, and a table, which it overwrites at random.
//! The drive comes from a TOML file, and the program changes one setting.
//!
//! ```text
//! $ cargo run -p warp-ssd --example ssd_device
//! one handle: write amplification 2.368
//!   RUH 0: host pages 109216, copied by GC 149423
//! two handles: write amplification 1.597
//!   RUH 0: host pages 54608, copied by GC 2180
//!   RUH 1: host pages 54608, copied by GC 62976
//! ```

use std::error::Error;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use ssd::{Device, DeviceConfig, Lpn, Placement, WriteRequest};

/// Writes one page through a handle.
fn write(device: &mut Device, page: u32, handle: u16) -> Result<(), Box<dyn Error>> {
    let write = WriteRequest {
        first: Lpn(page),
        pages: 1,
        host_bytes: device.layout().page_bytes,
        placement: Placement::handle(handle),
    };
    let _ = device.write(0, &write)?; // Time 0, because a drive without [timing] ignores it.
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut config: DeviceConfig = toml::from_str(include_str!("drive.toml"))?;
    config.geometry.over_provisioning = 0.2;
    for (name, log, table) in [("one handle", 0, 0), ("two handles", 0, 1)] {
        let mut device = Device::new(&config)?;
        let half = device.layout().logical_pages / 2;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for index in 0..8 * half {
            write(&mut device, index % half, log)?;
            write(&mut device, half + (random.next_u64() % u64::from(half)) as u32, table)?;
        }
        let stats = device.stats();
        println!("{name}: write amplification {:.3}", stats.write_amplification().unwrap_or(1.0));
        for (owner, row) in stats.owners().filter(|(_, row)| row.host_pages_written > 0) {
            println!("  {owner}: host pages {}, copied by GC {}", row.host_pages_written, row.gc_pages_copied);
        }
    }
    Ok(())
}
