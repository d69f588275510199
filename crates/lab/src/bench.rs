//! `warp bench`: what the model costs, against what the machine's memory costs.
//!
//! The yardstick is a batched random read-modify-write over an array of the size of the device's L2P map, on huge pages,
//! measured in turn with the device, so that the ratio holds on a shared machine whose speed drifts. This is the one place
//! of the lab that reads a clock.

use std::time::Instant;

use memmap2::MmapMut;
use serde::Serialize;
use ssd::config::{Geometry, Handles};
use ssd::{Device, DeviceConfig, Event, EventSink, Lpn, Placement, Write};

use crate::run::Watch;

/// Writes handed to the device, and additions to the yardstick's array, at a time.
const BATCH: usize = 64;
const PAGE_BYTES: u64 = 4096;

/// One measured workload.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was written.
    pub workload: String,
    /// Nanoseconds for each page programmed, host and copies; the median of the rounds.
    pub media_page_ns: f64,
    /// Nanoseconds for each page that the host wrote.
    pub host_page_ns: f64,
    /// Write amplification meanwhile.
    pub write_amplification: f64,
    /// `media_page_ns` to the yardstick, the median of the rounds.
    pub ratio: f64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    /// Processor, as the system names it.
    pub processor: String,
    /// Capacity of the device in bytes.
    pub capacity_bytes: u64,
    /// Its over-provisioning.
    pub over_provisioning: f64,
    /// Nanoseconds for a random read-modify-write of a 4-byte entry in an array of the L2P's size; the median.
    pub yardstick_ns: f64,
    /// The workloads.
    pub rows: Vec<Row>,
}

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Capacity of the device, bytes.
    pub capacity_bytes: u64,
    /// Its over-provisioning.
    pub over_provisioning: f64,
    /// Rounds; each measures the yardstick and a quarter of a drive-write.
    pub rounds: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            capacity_bytes: 64 << 30,
            over_provisioning: 0.28,
            rounds: 7,
        }
    }
}

impl Settings {
    /// Bytes that all workloads together write: a fill, two drive-writes and the rounds each.
    pub fn host_bytes(&self) -> u64 {
        let quarters = 4 * 3 + u64::from(self.rounds);
        4 * quarters * self.capacity_bytes / 4
    }

    fn device(&self) -> DeviceConfig {
        DeviceConfig {
            geometry: Geometry {
                capacity_bytes: Some(self.capacity_bytes),
                physical_bytes: None,
                over_provisioning: self.over_provisioning,
                reclaim_unit_bytes: 256 << 20, // WARP section 5.
                mapping_unit_bytes: PAGE_BYTES,
                program_unit_bytes: None,
                channels: 8,
                dies_per_channel: 8,
                planes_per_die: 1,
                reclaim_groups: 1,
            },
            handles: Handles::default(),
            gc: ssd::config::GcConfig::default(),
            seed: 1,
        }
    }
}

/// Measures; `None` if it was stopped.
pub fn bench(settings: &Settings, watch: &dyn Watch) -> Option<Bench> {
    let config = settings.device();
    let mut yardstick = Yardstick::new(settings.capacity_bytes / PAGE_BYTES);
    let mut rows = Vec::new();
    let silent = || Device::new(&config).expect("the device of the benchmark is possible");
    let mut yards = Vec::new();
    let mut row = |name: &str, pattern, pages| {
        let mut device = silent();
        let (row, measured) = measure(name, &mut device, pattern, pages, settings, &mut yardstick, watch)?;
        yards.extend(measured);
        rows.push(row);
        Some(())
    };
    row("4 KiB random", Pattern::Random, 1)?;
    row("128 KiB random", Pattern::Random, 32)?;
    row("128 KiB sequential", Pattern::Sequential, 32)?;
    let mut counting = Device::with_sink(&config, Count(0)).expect("the device of the benchmark is possible");
    let name = "4 KiB random, events on";
    let (row, measured) = measure(name, &mut counting, Pattern::Random, 1, settings, &mut yardstick, watch)?;
    rows.push(row);
    yards.extend(measured);
    Some(Bench {
        processor: processor(),
        capacity_bytes: settings.capacity_bytes,
        over_provisioning: settings.over_provisioning,
        yardstick_ns: median(yards),
        rows,
    })
}

/// A sink that does the least it can.
struct Count(u64);

impl EventSink for Count {
    fn event(&mut self, event: &Event) {
        self.0 += u64::from(matches!(event, Event::Reclaim(_)));
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Pattern {
    Random,
    Sequential,
}

/// Brings a device to its steady state (one sequential fill, two drive-writes of the pattern) and measures rounds.
fn measure<S: EventSink>(
    name: &str,
    device: &mut Device<S>,
    pattern: Pattern,
    pages: u32,
    settings: &Settings,
    yardstick: &mut Yardstick,
    watch: &dyn Watch,
) -> Option<(Row, Vec<f64>)> {
    let capacity = u64::from(device.layout().logical_pages);
    let mut writer = Writer {
        random: Random(0x9E37_79B9_7F4A_7C15),
        position: 0,
        writes: Vec::new(),
    };
    writer.write(device, Pattern::Sequential, 32, capacity, watch)?;
    writer.write(device, pattern, pages, 2 * capacity, watch)?;
    let before = device.stats().clone();
    let (mut media_ns, mut host_ns, mut ratios, mut yards) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..settings.rounds {
        let yard = yardstick.measure(capacity / 4);
        let start = device.stats().clone();
        let clock = Instant::now();
        writer.write(device, pattern, pages, capacity / 4, watch)?;
        let elapsed = clock.elapsed().as_nanos() as f64;
        let done = device.stats().since(&start);
        let media_pages = done.media_bytes_written() / PAGE_BYTES;
        media_ns.push(elapsed / media_pages as f64);
        host_ns.push(elapsed / (done.host_bytes_written() / PAGE_BYTES) as f64);
        ratios.push(elapsed / media_pages as f64 / yard);
        yards.push(yard);
    }
    let row = Row {
        workload: name.to_string(),
        media_page_ns: median(media_ns),
        host_page_ns: median(host_ns),
        write_amplification: device
            .stats()
            .since(&before)
            .write_amplification()
            .expect("pages were written"),
        ratio: median(ratios),
    };
    Some((row, yards))
}

/// Writes a pattern through the device's batch call.
struct Writer {
    random: Random,
    position: u64,
    writes: Vec<Write>,
}

impl Writer {
    fn write<S: EventSink>(
        &mut self,
        device: &mut Device<S>,
        pattern: Pattern,
        pages: u32,
        total_pages: u64,
        watch: &dyn Watch,
    ) -> Option<()> {
        let extents = u64::from(device.layout().logical_pages) / u64::from(pages);
        let mut left = total_pages / u64::from(pages);
        while left > 0 {
            if watch.stopped() {
                return None;
            }
            // A thousand batches between two looks at the switch.
            let chunk = left.min(1000 * BATCH as u64);
            left -= chunk;
            let mut todo = chunk;
            while todo > 0 {
                self.writes.clear();
                for _ in 0..todo.min(BATCH as u64) {
                    let extent = match pattern {
                        Pattern::Random => self.random.below(extents),
                        Pattern::Sequential => {
                            self.position = (self.position + 1) % extents;
                            self.position
                        }
                    };
                    self.writes.push(Write {
                        first: Lpn((extent * u64::from(pages)) as u32),
                        pages,
                        host_bytes: u64::from(pages) * PAGE_BYTES,
                        placement: Placement::DEFAULT,
                    });
                }
                todo -= self.writes.len() as u64;
                let _ = device
                    .write_batch(0, &self.writes)
                    .expect("the extents are within the device");
            }
            watch.wrote(chunk * u64::from(pages) * PAGE_BYTES);
        }
        Some(())
    }
}

/// The machine's batched random read-modify-write.
struct Yardstick {
    memory: MmapMut,
    random: Random,
}

impl Yardstick {
    fn new(entries: u64) -> Yardstick {
        let mut memory = MmapMut::map_anon(entries as usize * 4).expect("memory for the yardstick");
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        memory.fill(1); // Resident, as the L2P of a full device is.
        Yardstick {
            memory,
            random: Random(0xD1B5_4A32_D192_ED03),
        }
    }

    /// Nanoseconds for one entry, over `count` of them.
    fn measure(&mut self, count: u64) -> f64 {
        let array: &mut [u32] = bytemuck::cast_slice_mut(&mut self.memory[..]);
        let mut indices = [0; BATCH];
        let batches = count / BATCH as u64;
        let clock = Instant::now();
        for _ in 0..batches {
            for index in &mut indices {
                *index = self.random.below(array.len() as u64) as usize;
            }
            let seen = indices.iter().fold(0, |seen, &index| seen ^ array[index]);
            std::hint::black_box(seen);
            for &index in &indices {
                array[index] = array[index].wrapping_add(1);
            }
        }
        clock.elapsed().as_nanos() as f64 / (batches * BATCH as u64) as f64
    }
}

/// xorshift64: a generator that costs next to nothing beside a cache miss.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(end)) >> 64) as u64
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(
        || std::env::consts::ARCH.to_string(),
        |(_, name)| name.trim().to_string(),
    )
}
