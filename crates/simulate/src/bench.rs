//! Benchmark of `warp bench`: costs of the model relative to costs of the machine's memory.
//!
//! The yardstick is a batched random read-modify-write over an array of the size of the device's
//! L2P map, on huge pages. Yardstick and device alternate, so the ratio holds on a shared machine
//! with varying speed. Only this module of the crate reads a clock.

use std::time::Instant;

use memmap2::MmapMut;
use serde::Serialize;
use ssd::config::Geometry;
use ssd::timing::{ChannelTiming, ControllerTiming, LinkTiming, NandTiming};
use ssd::{Device, DeviceConfig, DeviceEvent, EventSink, Lpn, Nanos, Placement, TimingConfig, WriteRequest};

use crate::request_mapper::RequestMapper;
use crate::run::{ProgressObserver, StepLimit};
use crate::run_recorder::RunRecorder;
use crate::timed::Runner;
use applications::WorkloadSpec;
use experiment::run_options::RunSettings;
use experiment::scaled_model;
use workload::WorkloadTarget;
use workload::fio;

/// Writes per batch of the device, and additions per batch of the yardstick.
const BATCH: usize = 64;
const PAGE_BYTES: u64 = 4096;

#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    pub workload: String,
    /// Nanoseconds per page programmed (by host and copies) or read. Median of the rounds.
    pub media_page_ns: f64,
    /// Nanoseconds per page that the host wrote or read.
    pub host_page_ns: f64,
    /// Write amplification in the rounds.
    pub write_amplification: f64,
    /// `media_page_ns` relative to the yardstick. Median of the rounds.
    pub ratio: f64,
}

/// Results of the benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct BenchResult {
    /// Processor, as the system names it.
    pub processor: String,
    pub capacity_bytes: u64,
    pub reclaim_unit_bytes: u64,
    pub over_provisioning: f64,
    /// Nanoseconds per random read-modify-write of a 4-byte entry in an array of the L2P's size.
    /// Median.
    pub yardstick_ns: f64,
    pub rows: Vec<BenchRow>,
}

/// Settings of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct BenchSettings {
    pub capacity_bytes: u64,
    pub over_provisioning: f64,
    /// Rounds. Each measures the yardstick and a quarter of a drive write.
    pub rounds: u32,
}

impl Default for BenchSettings {
    fn default() -> Self {
        BenchSettings { capacity_bytes: 64 << 30, over_provisioning: 0.28, rounds: 7 }
    }
}

impl BenchSettings {
    /// Bytes that all workloads write: a fill, two drive writes and the rounds each. Timed ones
    /// write less.
    fn host_bytes(&self) -> u64 {
        let rounds = u64::from(self.rounds);
        let untimed = 4 * (4 * 3 + rounds);
        let timed = (4 * 2 + rounds) + 4;
        (untimed + timed) * self.capacity_bytes / 4
    }

    /// Returns the device with timing of a data centre TLC drive.
    fn timed_device(&self) -> DeviceConfig {
        let mut config = self.device();
        config.geometry.program_unit_bytes = Some(32 << 10);
        config.timing = Some(TimingConfig {
            nand: NandTiming {
                page_bytes: 16 << 10,
                bits_per_cell: 2,
                read_ns: vec![45_000],
                program_ns: 400_000,
                erase_ns: 3_000_000,
                suspend_ns: Some(20_000),
            },
            channel: ChannelTiming { bytes_per_second: 2_000_000_000, command_ns: 200 },
            controller: ControllerTiming {
                cores: 8,
                read_ns: 4000,
                write_ns: 4000,
                page_ns: 100,
                read_pipeline_ns: 5000,
                write_pipeline_ns: 5000,
            },
            link: LinkTiming { generation: 4, lanes: 4, payload_share: 0.9 },
            write_buffer_bytes: 64 << 20,
            read_cache_bytes: 0,
            tails: Vec::new(),
        });
        config
    }

    /// A drive with the reclaim units of WARP, section 5, at the default capacity. Units of other
    /// capacities follow the rule of `--capacity`.
    fn device(&self) -> DeviceConfig {
        let default = DeviceConfig {
            geometry: Geometry {
                capacity_bytes: Some(BenchSettings::default().capacity_bytes),
                over_provisioning: self.over_provisioning,
                reclaim_unit_bytes: 256 << 20,
                mapping_unit_bytes: PAGE_BYTES,
                ..Geometry::default()
            },
            seed: 1,
            ..DeviceConfig::default()
        };
        let sized = scaled_model::resized("bench", &default, self.capacity_bytes);
        sized.expect("the device of the benchmark is possible")
    }
}

/// Runs the benchmark. `None` if a caller stopped it.
pub fn bench(settings: &BenchSettings, watch: &dyn ProgressObserver) -> Option<BenchResult> {
    watch.add_expected(settings.host_bytes());
    let config = settings.device();
    let yardstick = Yardstick::new(settings.capacity_bytes / PAGE_BYTES);
    let mut bench = Bench { settings, watch, yardstick, rows: Vec::new(), yards: Vec::new() };
    let silent = || Device::new(&config).expect("the device of the benchmark is possible");
    bench.measure("4 KiB random", silent(), Pattern::Random, 1)?;
    bench.measure("128 KiB random", silent(), Pattern::Random, 32)?;
    bench.measure("128 KiB sequential", silent(), Pattern::Sequential, 32)?;
    let counting = Device::with_sink(&config, CountingSink(0)).expect("the device of the benchmark is possible");
    bench.measure("4 KiB random, events on", counting, Pattern::Random, 1)?;
    bench.measure_timed("4 KiB random, QD 32, timed", "randwrite")?;
    bench.measure_timed("4 KiB random read, QD 32, timed", "randread")?;
    Some(BenchResult {
        processor: processor(),
        capacity_bytes: settings.capacity_bytes,
        reclaim_unit_bytes: config.geometry.reclaim_unit_bytes,
        over_provisioning: settings.over_provisioning,
        yardstick_ns: median(bench.yards),
        rows: bench.rows,
    })
}

/// Sink with minimal work.
struct CountingSink(u64);

impl EventSink for CountingSink {
    fn event(&mut self, event: &DeviceEvent) {
        self.0 += u64::from(matches!(event, DeviceEvent::Reclaim(_)));
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Pattern {
    Random,
    Sequential,
}

struct RoundPages {
    /// Pages programmed or read.
    media: u64,
    /// Pages that the host wrote or read.
    host: u64,
}

/// A benchmark in progress.
struct Bench<'a> {
    settings: &'a BenchSettings,
    watch: &'a dyn ProgressObserver,
    yardstick: Yardstick,
    rows: Vec<BenchRow>,
    /// Measurements of the yardstick.
    yards: Vec<f64>,
}

impl Bench<'_> {
    /// Brings a device to steady state (one sequential fill, two drive writes of the pattern) and
    /// measures rounds.
    fn measure<S: EventSink>(&mut self, name: &str, mut device: Device<S>, pattern: Pattern, pages: u32) -> Option<()> {
        let watch = self.watch;
        let capacity = u64::from(device.layout().logical_pages);
        let mut writer = PatternWriter { random: XorShift(0x9E37_79B9_7F4A_7C15), position: 0, writes: Vec::new() };
        writer.write(&mut device, Pattern::Sequential, 32, capacity, watch)?;
        writer.write(&mut device, pattern, pages, 2 * capacity, watch)?;
        self.measure_rounds(name, capacity / 4, || {
            let start = device.stats().clone();
            writer.write(&mut device, pattern, pages, capacity / 4, watch)?;
            let done = device.stats().since(&start);
            Some(RoundPages {
                media: done.media_bytes_written() / PAGE_BYTES,
                host: done.host_bytes_written() / PAGE_BYTES,
            })
        })
    }

    /// Measures rounds of a workload beside the yardstick at `yard_pages`. `None` if stopped.
    fn measure_rounds(
        &mut self,
        name: &str,
        yard_pages: u64,
        mut round: impl FnMut() -> Option<RoundPages>,
    ) -> Option<()> {
        let (mut media_ns, mut host_ns, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let mut total = RoundPages { media: 0, host: 0 };
        for _ in 0..self.settings.rounds {
            let yard = self.yardstick.measure(yard_pages);
            let clock = Instant::now();
            let pages = round()?;
            let elapsed = clock.elapsed().as_nanos() as f64;
            media_ns.push(elapsed / pages.media as f64);
            host_ns.push(elapsed / pages.host as f64);
            ratios.push(elapsed / pages.media as f64 / yard);
            self.yards.push(yard);
            total.media += pages.media;
            total.host += pages.host;
        }
        self.rows.push(BenchRow {
            workload: name.to_string(),
            media_page_ns: median(media_ns),
            host_page_ns: median(host_ns),
            write_amplification: total.media as f64 / total.host as f64,
            ratio: median(ratios),
        });
        Some(())
    }

    /// Fills a device with timing and measures rounds in virtual time. Write workloads first overwrite
    /// the drive at random.
    fn measure_timed(&mut self, name: &str, rw: &str) -> Option<()> {
        const SECOND_NS: Nanos = 1_000_000_000;
        let (config, watch) = (self.settings.timed_device(), self.watch);
        let mut device =
            Device::with_sink(&config, RunRecorder::new(false, true)).expect("the device of the benchmark is possible");
        let capacity = u64::from(device.layout().logical_pages);
        let layout = device.layout().clone();
        let runner = |jobs: &str, start: Nanos, device: &Device<RunRecorder>| {
            let jobs: WorkloadSpec = fio::parse(jobs, "bench").expect("the jobs of the benchmark are right").into();
            let target = WorkloadTarget { device_bytes: capacity * PAGE_BYTES, ..WorkloadTarget::default() };
            let mapper = RequestMapper::new(&layout, &layout.handle_list());
            let runner = Runner::new(&jobs, &target, 1, &RunSettings::default(), mapper);
            let mut runner = runner.expect("they fit the device");
            runner.begin(start, device);
            runner
        };
        let drive = |runner: &mut Runner, device: &mut Device<RunRecorder>, requests: u64, bytes: u64| {
            let mut left = requests;
            while left > 0 {
                if watch.should_stop() {
                    return None;
                }
                let some = left.min(64 * 1024);
                let stride = StepLimit { requests: some, host_bytes: u64::MAX, pages: u64::MAX };
                let _ = runner.advance(device, stride).expect("a job file has nothing to read");
                watch.add_completed(some * bytes);
                left -= some;
            }
            Some(())
        };
        let mut fill = runner("[fill]\nrw=write\nbs=1m\niodepth=8\nruntime=1d\ntime_based\n", 0, &device);
        drive(&mut fill, &mut device, capacity / 256, 1 << 20)?;
        let start = fill.now + 10 * SECOND_NS;
        let jobs = format!("[measure]\nrw={rw}\nnorandommap\niodepth=32\nruntime=100d\ntime_based\n");
        let mut work = runner(&jobs, start, &device);
        let writes = rw == "randwrite";
        if writes {
            drive(&mut work, &mut device, capacity, PAGE_BYTES)?;
        }
        self.measure_rounds(name, capacity / 4, || {
            let start = device.stats().clone();
            let bytes = if writes { PAGE_BYTES } else { 0 };
            drive(&mut work, &mut device, capacity / 4, bytes)?;
            let host = capacity / 4;
            let media = if writes { device.stats().since(&start).media_bytes_written() / PAGE_BYTES } else { host };
            Some(RoundPages { media, host })
        })
    }
}

/// Writes a pattern through the device's batch call.
struct PatternWriter {
    random: XorShift,
    position: u64,
    writes: Vec<WriteRequest>,
}

impl PatternWriter {
    fn write<S: EventSink>(
        &mut self,
        device: &mut Device<S>,
        pattern: Pattern,
        pages: u32,
        total_pages: u64,
        watch: &dyn ProgressObserver,
    ) -> Option<()> {
        let extents = u64::from(device.layout().logical_pages) / u64::from(pages);
        assert!(extents > 0, "a drive holds no extent of {pages} pages");
        let mut left = total_pages / u64::from(pages);
        while left > 0 {
            if watch.should_stop() {
                return None;
            }
            // A thousand batches between two checks of the stop switch.
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
                    self.writes.push(WriteRequest {
                        first: Lpn((extent * u64::from(pages)) as u32),
                        pages,
                        host_bytes: u64::from(pages) * PAGE_BYTES,
                        placement: Placement::handle(0),
                    });
                }
                todo -= self.writes.len() as u64;
                let _ = device.write_batch(0, &self.writes).expect("the extents are within the device");
            }
            watch.add_completed(chunk * u64::from(pages) * PAGE_BYTES);
        }
        Some(())
    }
}

/// Batched random read-modify-write of the machine's memory.
struct Yardstick {
    memory: MmapMut,
    random: XorShift,
}

impl Yardstick {
    fn new(entries: u64) -> Yardstick {
        let mut memory = MmapMut::map_anon(entries as usize * 4).expect("memory for the yardstick");
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        memory.fill(1); // Resident, as the L2P of a full device is.
        Yardstick { memory, random: XorShift(0xD1B5_4A32_D192_ED03) }
    }

    /// Nanoseconds per entry, over `count` entries.
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

/// xorshift64: a generator whose cost is negligible beside a cache miss.
struct XorShift(u64);

impl XorShift {
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
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_string(), |(_, name)| name.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timed_rows_are_measured() {
        let settings = BenchSettings { capacity_bytes: 8 << 30, rounds: 3, ..BenchSettings::default() };
        let yardstick = Yardstick::new(settings.capacity_bytes / PAGE_BYTES);
        let mut bench = Bench { settings: &settings, watch: &(), yardstick, rows: Vec::new(), yards: Vec::new() };
        for (rw, collects) in [("randwrite", true), ("randread", false)] {
            bench.measure_timed(rw, rw).expect("nobody stopped it");
            let row = bench.rows.last().expect("it has a row");
            println!("{row:?}: {:.2} M page operations/s", 1e3 / row.media_page_ns);
            assert!(row.media_page_ns > 0.0 && row.host_page_ns >= row.media_page_ns);
            assert_eq!(row.write_amplification > 1.1, collects);
        }
    }
}
