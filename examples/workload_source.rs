//! A workload in Rust, run on a drive with one handle and with two. `workload_generator.py` is the
//! same workload in Python.
//!
//! ```text
//! $ cargo run -p warp-workload --example workload_source
//! one handle    1.399
//! a handle each 1.263
//! ```

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use ssd::{Device, DeviceConfig, Lpn, Placement, WriteRequest};
use workload::{IoRequest, PlacementIndex, RequestOperation, RequestSource, WorkloadError};

/// A log that goes around on one half of the drive, and a table that is updated at random on the
/// other half. The log has placement index 0.
struct LogAndTable {
    half: u64,
    table_placement: u16,
    random: Xoshiro256PlusPlus,
    issued: u64,
}

impl RequestSource for LogAndTable {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        for _ in 0..limit {
            let (stream, page, placement) = match self.issued % 2 {
                0 => (0, self.issued / 2 % self.half, 0),
                _ => (1, self.half + self.random.next_u64() % self.half, self.table_placement),
            };
            self.issued += 1;
            requests.push(IoRequest {
                stream,
                operation: RequestOperation::Write,
                offset_bytes: page * 4096,
                bytes: 4096,
                placement: Some(PlacementIndex(placement)),
            });
        }
        Ok(limit)
    }

    fn streams(&self) -> Vec<String> {
        vec!["log".into(), "table".into()]
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config: DeviceConfig = toml::from_str(include_str!("drive.toml"))?;
    for (name, table_placement) in [("one handle", 0), ("a handle each", 1)] {
        let mut device = Device::new(&config)?;
        let half = u64::from(device.layout().logical_pages) / 2;
        let random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut source = LogAndTable { half, table_placement, random, issued: 0 };
        let mut requests = Vec::new();
        source.next_batch(&mut requests, 8 * half as usize)?; // four times the capacity
        for request in requests {
            let write = WriteRequest {
                first: Lpn((request.offset_bytes / 4096) as u32),
                pages: request.bytes / 4096,
                host_bytes: u64::from(request.bytes),
                placement: Placement::handle(request.placement.map_or(0, |index| index.0)),
            };
            let _ = device.write(0, &write)?;
        }
        println!("{name:13} {:.3}", device.stats().write_amplification().unwrap_or(1.0));
    }
    Ok(())
}
