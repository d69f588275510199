//! Tests that bounds on a workload's memory and on the cost of a batch hold before the workload is
//! built.

use workload::trace::{AddressMapping, TraceReader, TraceSettings, TraceSource};
use workload::{IoRequest, RequestOperation, RequestSource, Workload, WorkloadTarget, fio};

const GIB: u64 = 1 << 30;

fn drive(device_bytes: u64) -> WorkloadTarget {
    WorkloadTarget { device_bytes, ..WorkloadTarget::default() }
}

fn memory_bytes(jobs: &str, device_bytes: u64) -> u64 {
    let file = fio::parse(jobs, "test.fio").unwrap_or_else(|error| panic!("{error}"));
    Workload::memory_bytes(&file, &drive(device_bytes)).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(jobs: &str) -> String {
    let parsed = fio::parse(jobs, "test.fio").map_err(|error| error.to_string());
    let memory = parsed.and_then(|file| {
        let bytes = Workload::memory_bytes(&file, &drive(480 * GIB));
        bytes.map_err(|error| error.to_string())
    });
    memory.expect_err("it is too much")
}

/// A trace of one file with operation, offset and length.
fn trace(lines: impl Iterator<Item = String>, mapping: AddressMapping, target: &WorkloadTarget) -> TraceSource {
    let settings =
        TraceSettings { format: Some(workload::trace::TraceFormat::Iolog), mapping, ..TraceSettings::default() };
    let text = format!("fio version 2 iolog\n/a add\n/a open\n{}", lines.collect::<String>()).into_bytes();
    let reader = TraceReader::from_stream("test", std::io::Cursor::new(text), &settings).expect("it is a trace");
    TraceSource::new(&settings, reader, target, 1).expect("it fits the drive")
}

#[test]
fn a_random_map_says_how_large_it_is_before_it_is_made() {
    let map_bytes = memory_bytes("[a]\nrw=randwrite\nbsrange=1-64k\n", 480 * GIB);
    assert!((60 * GIB..62 * GIB).contains(&map_bytes), "{map_bytes}");
    let ordinary = memory_bytes("[a]\nrw=randwrite\n", 480 * GIB);
    assert!((15 << 20..17 << 20).contains(&ordinary), "{ordinary}");
    let without = memory_bytes("[a]\nrw=randwrite\nbsrange=1-64k\nnorandommap\n", 480 * GIB);
    assert!(without < 1 << 20, "{without}");
}

#[test]
fn what_is_read_back_counts() {
    let jobs = "[a]\nrw=randwrite\nnorandommap\nverify=crc32c\n";
    let pieces = 480 * GIB / 4096;
    assert!(memory_bytes(jobs, 480 * GIB) > 32 * pieces);
    let map_twice = memory_bytes("[a]\nrw=randwrite\nverify=crc32c\n", 480 * GIB);
    assert!(map_twice > 2 * pieces / 8, "{map_twice}");
}

#[test]
fn job_files_are_as_large_as_fios() {
    let sections =
        |count: usize, more: &str| (0..count).map(|number| format!("[{number}]\n{more}")).collect::<String>();
    fio::parse(&sections(4096, ""), "test.fio").expect("fio takes as many");
    let too_many = refusal(&sections(40_000, ""));
    assert!(too_many.contains("more than 4096 jobs"), "{too_many}");
    let too_many = refusal("[a]\nnumjobs=4000\n[b]\nnumjobs=97\n");
    assert!(too_many.contains("more than 4096 jobs"), "{too_many}");
    let long = format!("[global]\n{}{}", format!("filename=/dev/{}\n", "x".repeat(8000)).repeat(2), sections(2000, ""));
    assert!(refusal(&long).contains("inherit"), "{}", refusal(&long));
    let line = refusal(&format!("[a]\nfilename={}\n", "x".repeat(1 << 20)));
    assert!(line.contains("Write at most 8192") && line.len() < 1000, "{line}");
    let sizes = refusal(&format!("[a]\nbssplit={}\n", vec!["4k/"; 65].join(":")));
    assert!(sizes.contains("at most 64"), "{sizes}");
    let zones = refusal(&format!("[a]\nrandom_distribution=zoned:{}\n", vec!["0/0"; 257].join(":")));
    assert!(zones.contains("at most 256"), "{zones}");
}

#[test]
fn sums_of_many_zipf_distributions_are_refused() {
    let job = |theta: usize| format!("[{theta}]\nrw=randwrite\nrandom_distribution=zipf:1.{theta:04}\n");
    let few: String = (1..20).map(job).collect();
    assert!(memory_bytes(&few, 480 * GIB) > 0);
    let many = refusal(&(1..60).map(job).collect::<String>());
    assert!(many.contains("same theta"), "{many}");
}

/// fio would draw forever, because no possible size fits the rest of the region.
#[test]
fn a_size_that_never_fits_is_the_smallest() {
    let jobs = "[a]\nrw=randwrite\nnorandommap\nbssplit=4k/0:64k/100\nsize=68k\nio_size=1m\n";
    let file = fio::parse(jobs, "test.fio").expect("a job");
    let mut source = file.source(&drive(GIB), 1).expect("it fits");
    let mut requests = Vec::new();
    while source.next_batch(&mut requests, 64).expect("requests") > 0 {}
    assert!(requests.iter().any(|request| request.bytes == 4096), "{requests:?}");
    assert!(requests.iter().all(|request| request.offset_bytes + u64::from(request.bytes) <= 68 << 10));
}

/// Without the bitmaps of written pieces this takes half an hour.
#[test]
fn trims_of_what_was_never_written_cost_little() {
    let written = (0..8).map(|number: u64| format!("/a write {} 4096\n", number << 31));
    let trims = (0..300_000).map(|number: u64| format!("/a trim {} 2147483648\n", ((number % 8) << 31) + 4096));
    let mut source = trace(written.chain(trims), AddressMapping::Compact, &drive(64 * GIB));
    let mut requests = Vec::new();
    while source.next_batch(&mut requests, 1024).expect("requests") > 0 {}
    // The last 4 KiB of a trim are the unit at the beginning of the next 2 GiB.
    assert!(requests.len() > 8);
    let trims = requests.iter().filter(|request| request.operation == RequestOperation::Trim);
    assert!(trims.clone().all(|trim| trim.bytes == 4096));
    assert_eq!(trims.count(), 300_000 / 8 * 7);
}

#[test]
fn a_batch_of_large_requests_is_short() {
    let lines = || (0..64).map(|number: u64| format!("/a write {} 1073741824\n", (number % 4) << 30));
    let mut source = trace(lines(), AddressMapping::Compact, &drive(8 * GIB));
    let (mut all, mut batches) = (Vec::<IoRequest>::new(), 0);
    loop {
        let came = source.next_batch(&mut all, 1024).expect("requests");
        assert!(came <= 5, "{came} requests of a gibibyte in a batch");
        batches += 1;
        if came == 0 {
            break;
        }
    }
    assert_eq!(all.len(), 64, "{batches} batches");
    assert!(all.iter().all(|request| u64::from(request.bytes) == GIB));
}
