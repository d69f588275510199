//! Benchmark of traces, in requests per second on one core.
//!
//! Run `cargo bench -p warp-workload --bench trace [-- FORMAT]`. The files are in memory, so that
//! only the reader is measured. Times are the thread's processor time, so that other processes
//! matter little. Each figure is the best of three passes over 4 million lines.

use std::io::Cursor;

use workload::trace::{AddressMapping, TraceReader, TraceSettings, TraceSource};
use workload::{RequestSource, WorkloadTarget};

const LINES: u64 = 4_000_000;
const PASSES: usize = 3;
/// 8 TB of traced volumes.
const UNITS: u64 = 1 << 31;

/// Pseudorandom addresses, nine of ten in a tenth of the units.
fn unit(line: u64) -> u64 {
    let random = (line ^ line >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    match random % 10 {
        0 => random % UNITS,
        _ => random % (1 << 20),
    }
}

fn text(line_of: &dyn Fn(u64, u64) -> String) -> Vec<u8> {
    (0..LINES).flat_map(|line| line_of(line, unit(line)).into_bytes()).collect()
}

/// Processor time of this thread, seconds.
fn processor_seconds() -> f64 {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts processor time");
    let running = schedule.split(' ').next().expect("the first number is the time of running");
    running.parse::<f64>().expect("it is in nanoseconds") / 1e9
}

/// Reads a trace and returns requests per second of processor time.
fn replay(text: &[u8], settings: &TraceSettings) -> f64 {
    let target = WorkloadTarget { device_bytes: 7_680_000_000_000, ..WorkloadTarget::default() };
    let reader = TraceReader::from_stream("trace", Cursor::new(text.to_vec()), settings).expect("a known format");
    let mut source = TraceSource::new(settings, reader, &target, 0).expect("a drive that is large enough");
    let mut requests = Vec::with_capacity(4096);
    let mut count = 0;
    let start = processor_seconds();
    loop {
        requests.clear();
        match source.next_batch(&mut requests, 4096).expect("a good trace") {
            0 => return count as f64 / (processor_seconds() - start),
            issued => count += issued,
        }
    }
}

fn main() {
    let alibaba =
        |line: u64, unit: u64| format!("{},W,{},4096,{}\n", unit % 1000, unit * 4096, 1_577_808_000_000_000 + line);
    let tencent = |line: u64, unit: u64| format!("{},{},8,1,{}\n", 1_538_323_200 + line / 1000, unit * 8, unit % 1000);
    let msr = |line: u64, unit: u64| {
        let time = 128_166_372_003_061_629 + line * 1000;
        format!("{time},usr,{},Write,{},4096,41286\n", unit % 3, unit * 4096)
    };
    let blkparse = |line: u64, unit: u64| {
        format!("259,0    3 {line:8} {:5}.{:09} {:5}  D  WS {} + 8 [fio]\n", line / 1000, line % 1000, 697, unit * 8)
    };
    let iolog = |line: u64, unit: u64| match line {
        0 => "fio version 2 iolog\n/dev/nvme0n1 add\n/dev/nvme0n1 open\n".to_string(),
        _ => format!("/dev/nvme0n1 write {} 4096\n", unit * 4096),
    };
    let csv = "format = \"csv\"\n[csv]\nvolume = 1\noperation.column = 2\noffset.column = 3\nlength.column = 4\n\
               time = { column = 5, unit = \"us\" }\n";
    let csv: TraceSettings = toml::from_str(csv).expect("a table of columns");
    let plain = TraceSettings::default();
    type Line<'a> = &'a dyn Fn(u64, u64) -> String;
    let formats: [(&str, Line, &TraceSettings); 6] = [
        ("alibaba", &alibaba, &plain),
        ("tencent", &tencent, &plain),
        ("msr", &msr, &plain),
        ("blkparse", &blkparse, &plain),
        ("iolog", &iolog, &plain),
        ("csv", &alibaba, &csv),
    ];
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for (format, line, settings) in formats {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == format) {
            continue;
        }
        let text = text(line);
        for mapping in [AddressMapping::Modulo, AddressMapping::Compact] {
            let settings = TraceSettings { mapping, ..settings.clone() };
            let rates = (0..PASSES).map(|_| replay(&text, &settings));
            let best = rates.fold(0.0, f64::max);
            println!("{format:10} {mapping:?}: {:.2} million requests/s", best / 1e6);
        }
    }
}
