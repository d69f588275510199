//! Test that a reader's memory does not grow with the trace, on a trace larger than memory limits.
//!
//! `WARP_DEEP=1` reads 2 GB instead of 96 MB. The file has only one test, because the peak is that
//! of the process.

use std::io::Read;

use workload::trace::{AddressMapping, TraceReader, TraceSettings, TraceSource};
use workload::{RequestSource, WorkloadTarget};

/// An Alibaba trace of any length, generated on the fly.
struct GeneratedTrace {
    line: u64,
    bytes_left: u64,
    ready: Vec<u8>,
    taken: usize,
}

/// Volumes of the trace.
const VOLUMES: u64 = 1000;
/// Units of 4 KiB that the trace touches.
const UNITS: u64 = 1 << 16;

impl Read for GeneratedTrace {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        use std::io::Write;
        if self.taken == self.ready.len() && self.bytes_left > 0 {
            self.ready.clear();
            self.taken = 0;
            for _ in 0..100 {
                let unit = self.line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
                let time = 1_577_808_000_000_626 + self.line;
                writeln!(self.ready, "{},W,{},4096,{time}", unit % VOLUMES, unit * 4096)?;
                self.line += 1;
            }
            self.bytes_left = self.bytes_left.saturating_sub(self.ready.len() as u64);
        }
        let bytes = buffer.len().min(self.ready.len() - self.taken);
        buffer[..bytes].copy_from_slice(&self.ready[self.taken..][..bytes]);
        self.taken += bytes;
        Ok(bytes)
    }
}

/// Peak memory of this process, or its current memory if the system has no record of the peak,
/// bytes.
fn memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says how much memory a process has");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("it says the peak");
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn a_trace_of_any_length_needs_the_same_memory() {
    let deep = std::env::var_os("WARP_DEEP").is_some_and(|value| value != "0");
    let target = WorkloadTarget { device_bytes: UNITS * 4096, ..WorkloadTarget::default() };
    for mapping in [AddressMapping::Modulo, AddressMapping::Compact] {
        let settings = TraceSettings { mapping, ..TraceSettings::default() };
        let bytes = if deep { 1 << 30 } else { 48 << 20 };
        let stream = GeneratedTrace { line: 0, bytes_left: bytes, ready: Vec::new(), taken: 0 };
        let reader = TraceReader::from_stream("generated", stream, &settings).unwrap();
        let progress = reader.progress();
        let mut source = TraceSource::new(&settings, reader, &target, 0).unwrap();
        let mut requests = Vec::with_capacity(1024);
        // By now every unit has been touched once.
        let (early_at, every) = (16 << 20, 4 << 20);
        let (mut early, mut peak, mut next) = (0, 0, early_at);
        let mut count = 0u64;
        while source.next_batch(&mut requests, 1024).unwrap() > 0 {
            count += requests.len() as u64;
            requests.clear();
            if progress.bytes_read() >= next {
                next += every;
                peak = peak.max(memory_bytes());
                early = if early == 0 { peak } else { early };
            }
        }
        assert!(count > bytes / 50, "{count} requests");
        assert!(progress.bytes_read() >= bytes);
        let touched = source.measures().into_iter().find(|measure| measure.name == "trace.touched_units");
        assert!(touched.unwrap().value > UNITS as f64 * 0.6);
        assert!(early > 0, "the trace is longer than that");
        let grown = peak - early;
        assert!(grown < 1 << 20, "{mapping:?}: {grown} bytes more were needed while {bytes} were read");
        // Includes code, buffers, names, and 20 bytes per touched unit.
        assert!(peak < 64 << 20, "{mapping:?}: {peak} bytes at the peak");
    }
}
