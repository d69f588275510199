//! Tests of binary traces, built byte by byte from their documentation, and of object traces.

mod support;

use std::io::Cursor;

use workload::trace::{
    AddressMapping, FileIdentity, PlacementRule, ProcessIdentity, TraceFormat, TraceReader, TraceRecord, TraceSettings,
};
use workload::{RequestOperation, WorkloadError, WorkloadTarget};

use RequestOperation::{Read, Trim, Write as W};

fn read_as(name: &str, bytes: &[u8], settings: &TraceSettings) -> Result<Vec<TraceRecord>, WorkloadError> {
    let mut reader = TraceReader::from_stream(name, Cursor::new(bytes.to_vec()), settings)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    assert!(matches!(reader.next_record(), Ok(None)), "the end is not the end");
    Ok(records)
}

fn read(bytes: &[u8], settings: &TraceSettings) -> Result<Vec<TraceRecord>, WorkloadError> {
    read_as("trace.bin", bytes, settings)
}

fn record(time_ns: u64, operation: RequestOperation, offset_bytes: u64, bytes: u32) -> TraceRecord {
    TraceRecord {
        time_ns,
        operation,
        volume: 0,
        process: 0,
        file: 0,
        offset_bytes,
        bytes,
        placement: None,
        latency_ns: 0,
    }
}

/// Concatenates byte strings.
fn joined<const BYTES: usize>(parts: [&[u8]; BYTES]) -> Vec<u8> {
    parts.concat()
}

const QUEUED: u32 = 1;
const ISSUED: u32 = 7;
const COMPLETED: u32 = 8;
const WRITE: u32 = 1 << 17;
const READ: u32 = 1 << 16;
const DISCARD: u32 = 1 << 29;
const PASSTHROUGH: u32 = 1 << 25;
const NOTIFY: u32 = 1 << 26;
const CGROUP: u32 = 1 << 8;

/// `struct blk_io_trace` and its payload.
fn event(time_ns: u64, sector: u64, bytes: u32, action: u32, pid: u32, more: &[u8]) -> Vec<u8> {
    let device: u32 = 259 << 20 | 1;
    joined([
        &0x6561_7407u32.to_le_bytes(),
        &1u32.to_le_bytes(),
        &time_ns.to_le_bytes(),
        &sector.to_le_bytes(),
        &bytes.to_le_bytes(),
        &action.to_le_bytes(),
        &pid.to_le_bytes(),
        &device.to_le_bytes(),
        &0u32.to_le_bytes(),
        &[0, 0],
        &(more.len() as u16).to_le_bytes(),
        more,
    ])
}

fn name(time_ns: u64, pid: u32, name: &str) -> Vec<u8> {
    let mut text = [0; 16];
    text[..name.len()].copy_from_slice(name.as_bytes());
    event(time_ns, 0, 0, NOTIFY, pid, &text)
}

#[test]
fn blktrace_has_events_of_any_length_and_one_action_counts() {
    let bytes = [
        name(0, 9, "fio"),
        event(1000, 2048, 4096, WRITE | QUEUED, 9, &[]),
        event(1500, 2048, 4096, WRITE | ISSUED | CGROUP, 9, &[7; 8]),
        event(1600, 0, 0, WRITE | ISSUED, 9, &[]),
        event(1700, 5, 4096, WRITE | PASSTHROUGH | ISSUED, 9, b"a command"),
        event(2500, 16, 8192, READ | ISSUED, 10, &[]),
        event(3500, 32, 1 << 20, WRITE | DISCARD | ISSUED, 9, &[]),
        event(4500, 2048, 4096, WRITE | COMPLETED, 0, &[]),
    ]
    .concat();
    let second = TraceRecord { process: 1, ..record(1000, Read, 8192, 8192) };
    let wanted = [record(0, W, 1 << 20, 4096), second, record(2000, Trim, 16384, 1 << 20)];
    assert_eq!(read(&bytes, &TraceSettings::default()).unwrap(), wanted);
    let compressed = zstd::encode_all(&bytes[..], 1).unwrap();
    assert_eq!(read(&compressed, &TraceSettings::default()).unwrap(), wanted);
}

#[test]
fn processes_are_told_apart_by_number_or_by_name() {
    // Two workers with the same name, and a process without a known name.
    let bytes = [
        name(0, 9, "rocksdb:low"),
        name(0, 10, "rocksdb:low"),
        event(1, 0, 512, WRITE | ISSUED, 9, &[]),
        event(2, 8, 512, WRITE | ISSUED, 10, &[]),
        event(3, 16, 512, WRITE | ISSUED, 11, &[]),
    ]
    .concat();
    let text = "259,1 0 1 0.0 9 D W 0 + 1 [rocksdb:low]\n259,1 0 1 0.1 10 D W 8 + 1 [rocksdb:low]\n\
                259,1 0 1 0.2 11 D W 16 + 1 []\n";
    for (identity, wanted) in [(ProcessIdentity::Number, [0, 1, 2]), (ProcessIdentity::Name, [0, 0, 1])] {
        let settings =
            TraceSettings { placement: PlacementRule::Process, process_by: identity, ..TraceSettings::default() };
        let processes = |bytes: &[u8]| read(bytes, &settings).unwrap().iter().map(|record| record.process).collect();
        let (of_binary, of_text): (Vec<u32>, Vec<u32>) = (processes(&bytes), processes(text.as_bytes()));
        assert_eq!((&of_binary[..], &of_text[..]), (&wanted[..], &wanted[..]), "{identity:?}");
    }
}

#[test]
fn files_of_processors_are_merged_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let at = |time_ns: u64| event(time_ns, time_ns, 512, WRITE | ISSUED, 1, b"12345");
    std::fs::write(path("a.blktrace.0"), [at(10), at(40), at(50)].concat()).unwrap();
    std::fs::write(path("a.blktrace.1"), [at(20), at(30), at(60)].concat()).unwrap();
    std::fs::write(path("a.blktrace.2"), []).unwrap();
    std::fs::write(path("b.blktrace.0"), at(5)).unwrap();
    let times = |files: &[&str]| {
        let settings =
            TraceSettings { files: files.iter().map(|name| path(name)).collect(), ..TraceSettings::default() };
        let mut reader = settings.reader().unwrap();
        let mut passes = Vec::new();
        for _ in 0..2 {
            let mut offsets = Vec::new();
            while let Some(record) = reader.next_record().unwrap() {
                offsets.push(record.offset_bytes / 512);
            }
            assert_eq!(reader.progress().bytes_read(), reader.progress().bytes_total());
            passes.push(offsets);
            assert!(reader.rewind());
        }
        assert_eq!(passes[0], passes[1]);
        passes.remove(0)
    };
    assert_eq!(times(&["a.blktrace.0"]), [10, 20, 30, 40, 50, 60]);
    assert_eq!(times(&["a.blktrace.0", "a.blktrace.1", "b.blktrace.0"]), [10, 20, 30, 40, 50, 60, 5]);
    let of_file = |name: &str| TraceSettings { files: vec![path(name)], ..TraceSettings::default() };
    let memory_bytes = |mapping: AddressMapping, name: &str| {
        let settings = TraceSettings { mapping, ..of_file(name) };
        settings.memory_bytes(&WorkloadTarget::default())
    };
    let [three_files, one_file] =
        ["a.blktrace.0", "b.blktrace.0"].map(|name| memory_bytes(AddressMapping::Modulo, name));
    assert_eq!(three_files - one_file, 2 * (512 << 10), "two further files");
    let of_named = [0, 1, 2].map(|file| memory_bytes(AddressMapping::Compact, &format!("a.blktrace.{file}")));
    assert_eq!(of_named, [of_named[0]; 3], "the records of all files count, whichever is named");
    std::fs::write(path("a.blktrace.1"), [at(20), vec![0; 60]].concat()).unwrap();
    let settings = of_file("a.blktrace.0");
    let error = settings.reader().err().unwrap().to_string();
    assert!(error.contains("a.blktrace.1, the event is not"), "{error}");
}

fn vscsi_1(command: u16, sector: u64, bytes: u32, time_us: u64) -> Vec<u8> {
    joined([
        &7u32.to_le_bytes(),
        &bytes.to_le_bytes(),
        &1u32.to_le_bytes(),
        &command.to_le_bytes(),
        &0x0100u16.to_le_bytes(),
        &sector.to_le_bytes(),
        &time_us.to_le_bytes(),
    ])
}

fn vscsi_2(command: u16, sector: u64, bytes: u32, time_us: u64) -> Vec<u8> {
    joined([
        &command.to_le_bytes(),
        &0x0200u16.to_le_bytes(),
        &7u32.to_le_bytes(),
        &bytes.to_le_bytes(),
        &1u32.to_le_bytes(),
        &sector.to_le_bytes(),
        &time_us.to_le_bytes(),
        &33u64.to_le_bytes(),
    ])
}

#[test]
fn vscsi_is_known_in_both_versions_by_its_first_records() {
    type Make = fn(u16, u64, u32, u64) -> Vec<u8>;
    for make in [vscsi_1 as Make, vscsi_2] {
        let bytes = [
            make(0x2a, 8, 4096, 100),
            make(0x28, 1 << 30, 512, 103),
            make(0x12, 0, 36, 104),
            make(0x8a, 16, 8192, 105),
            make(0x42, 16, 0, 106),
        ]
        .concat();
        let wanted = [record(0, W, 4096, 4096), record(3000, Read, 1 << 39, 512), record(5000, W, 8192, 8192)];
        assert_eq!(read(&bytes, &TraceSettings::default()).unwrap(), wanted);
        assert_eq!(read(&make(0x2a, 1, 512, 0), &TraceSettings::default()).unwrap().len(), 1);
    }
}

fn object(seconds: u32, id: u64, bytes: u32, next: i64) -> Vec<u8> {
    joined([&seconds.to_le_bytes(), &id.to_le_bytes(), &bytes.to_le_bytes(), &next.to_le_bytes()])
}

#[test]
fn objects_are_written_read_and_die_and_leave_their_place() {
    let bytes = [
        object(100, u64::MAX, 5000, 2),
        object(100, 2, 4096, 4),
        object(101, u64::MAX, 5000, -1),
        // Has the same size in units as the deallocated object.
        object(101, 3, 8192, 9),
        // Has grown and therefore moves.
        object(102, 2, 4097, i64::MAX),
        object(102, 4, 1, -1),
        object(102, 5, 0, -1),
    ]
    .concat();
    let second = 1_000_000_000;
    let wanted = [
        record(0, W, 0, 5000),
        record(0, W, 8192, 4096),
        record(second, Read, 0, 5000),
        record(second, Trim, 0, 5000),
        record(second, W, 0, 8192),
        record(2 * second, W, 12288, 4097),
        record(2 * second, Trim, 8192, 4096),
        record(2 * second, Trim, 12288, 4097),
        record(2 * second, W, 8192, 1),
        record(2 * second, Trim, 8192, 1),
    ];
    let found = read_as("x.oracleGeneral.zst", &zstd::encode_all(&bytes[..], 1).unwrap(), &TraceSettings::default());
    assert_eq!(found.unwrap(), wanted);
}

const MOONCAKE: &str = "{\"timestamp\": 0, \"input_length\": 1500, \"output_length\": 9, \"hash_ids\": [0, 1, 2]}\n\
                        {\"timestamp\": 27.5, \"input_length\": 900, \"output_length\": 1, \"hash_ids\": [0, 3]}\n\
                        {\"timestamp\": 30, \"hash_ids\": []}\n";

#[test]
fn known_blocks_of_tokens_are_read_and_new_ones_written() {
    let unit = 65536;
    let settings = TraceSettings { kv_block_bytes: unit, ..TraceSettings::default() };
    let block = |time_ns, operation, id: u64| record(time_ns, operation, id * unit, unit as u32);
    let wanted = [block(0, W, 0), block(0, W, 1), block(0, W, 2), block(27_500_000, Read, 0), block(27_500_000, W, 3)];
    assert_eq!(read(MOONCAKE.as_bytes(), &settings).unwrap(), wanted);
}

#[test]
fn hashes_of_64_bits_name_blocks_of_tokens() {
    let unit = 65536;
    let settings = TraceSettings { kv_block_bytes: unit, ..TraceSettings::default() };
    let text = "{\"timestamp\": 0, \"hash_ids\": [7, 18446744073709551615, 9223372036854775808]}\n\
                {\"timestamp\": 1, \"hash_ids\": [7, 9223372036854775808, -9223372036854775807, 3]}\n";
    let block = |ms: u64, operation, number: u64| record(ms * 1_000_000, operation, number * unit, unit as u32);
    let wanted = [
        block(0, W, 0),
        block(0, W, 1),
        block(0, W, 2),
        block(1, Read, 0),
        block(1, Read, 2),
        block(1, W, 3),
        block(1, W, 4),
    ];
    assert_eq!(read(text.as_bytes(), &settings).unwrap(), wanted);
}

#[test]
fn a_trace_of_objects_that_begins_again_writes_again() {
    let folder = tempfile::tempdir().unwrap();
    let objects = [object(1, 1, 4096, 2), object(1, 2, 100, 9), object(2, 1, 4096, 7)].concat();
    for (name, bytes) in [("a.oracleGeneral", &objects[..]), ("b.jsonl", MOONCAKE.as_bytes())] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let settings = TraceSettings { files: vec![path], ..TraceSettings::default() };
        let mut reader = settings.reader().unwrap();
        let mut pass = || {
            let mut requests = Vec::new();
            while let Some(record) = reader.next_record().unwrap() {
                requests.push((record.operation, record.offset_bytes));
            }
            assert!(reader.rewind());
            requests
        };
        let first = pass();
        assert!(first.contains(&(Read, 0)) && first.contains(&(W, 0)), "{name}");
        assert_eq!(pass(), first, "{name}");
    }
}

#[test]
fn captures_have_files_and_processes() {
    let capture = "time,process,file,operation,offset,length\n\
                   0.000001,fio,db/wal,W,4096,4096\n0.5,kworker,db/000012.sst,W,8192,4096\n\
                   0.6,fio,db/wal,R,4096,512\n0.7,fio,,D,0,65536\n";
    let with = |time_ns, process, file, operation, offset, bytes| TraceRecord {
        process,
        file,
        ..record(time_ns, operation, offset, bytes)
    };
    let wanted = [
        with(0, 0, 0, W, 4096, 4096),
        with(499_999_000, 1, 1, W, 8192, 4096),
        with(599_999_000, 0, 0, Read, 4096, 512),
        with(699_999_000, 0, 2, Trim, 0, 65536),
    ];
    for placement in [PlacementRule::File, PlacementRule::Process] {
        let settings = TraceSettings { placement, ..TraceSettings::default() };
        assert_eq!(read(capture.as_bytes(), &settings).unwrap(), wanted);
        let placements: Vec<u16> = support::replay(capture, &settings, &support::drive(100))
            .iter()
            .filter_map(|request| Some(request.placement?.0))
            .collect();
        assert_eq!(placements, [0, 1], "{placement:?}");
    }
    let settings = TraceSettings { placement: PlacementRule::File, ..TraceSettings::default() };
    let error = read(b"0,R,0,4096,1\n", &settings).unwrap_err().to_string();
    assert!(error.contains("placement = \"file\" needs a trace with files"), "{error}");
}

#[test]
fn disks_of_a_capture_are_volumes() {
    let capture = "time,process,file,operation,offset,length,disk\n\
                   0,db,data,W,0,4096,nvme0n1\n0.5,db,log,W,0,4096,nvme0n2\n0.6,db,data,W,0,4096,nvme0n1\n";
    let settings = TraceSettings { placement: PlacementRule::Volume, ..TraceSettings::default() };
    let requests = support::replay(capture, &settings, &support::drive(100));
    let found: Vec<(u64, Option<u16>)> =
        requests.iter().map(|request| (request.offset_bytes, request.placement.map(|index| index.0))).collect();
    assert_eq!(found, [(0, Some(0)), (4096, Some(1)), (0, Some(0))]);
}

#[test]
fn files_of_a_kind_have_names_that_differ_in_numbers() {
    let names = ["db/000012.sst", "db/000013.log", "db/000014.sst", "wal", "", "db/9.sst"];
    let lines = names.map(|name| format!("0.1,db,{name},W,0,4096\n"));
    let capture = format!("time,process,file,operation,offset,length\n{}", lines.concat());
    let files = |file_by| {
        let settings = TraceSettings { file_by, ..TraceSettings::default() };
        let records = read(capture.as_bytes(), &settings).unwrap();
        records.iter().map(|record| record.file).collect::<Vec<u32>>()
    };
    assert_eq!(files(FileIdentity::Name), [0, 1, 2, 3, 4, 5]);
    assert_eq!(files(FileIdentity::Kind), [0, 1, 0, 2, 3, 0]);
}

/// Defects of a file, and words of the resulting message.
#[test]
fn bad_records_are_named_by_their_number() {
    let good = event(0, 0, 512, WRITE | ISSUED, 1, &[]);
    let mut swapped = good.clone();
    swapped[..4].reverse();
    let mut older = good.clone();
    older[0] = 6;
    let long = event(0, 0, 512, WRITE | ISSUED, 1, &[0; 100]);
    let far = event(0, 1 << 50, 512, WRITE | ISSUED, 1, &[]);
    let with = |format| TraceSettings { format: Some(format), ..TraceSettings::default() };
    let scsi = vscsi_2(0x2a, 8, 512, 0);
    let bad: [(TraceFormat, Vec<u8>, &str); 9] = [
        (TraceFormat::Blktrace, [&good[..], &[0; 48]].concat(), "in record 2, the event is not an event of blktrace"),
        (TraceFormat::Blktrace, swapped, "in record 1, the byte order"),
        (TraceFormat::Blktrace, [&good[..], &older].concat(), "in record 2, the version of blktrace is not 7"),
        (TraceFormat::Blktrace, long[..100].to_vec(), "in record 1, the record is not complete"),
        (TraceFormat::Blktrace, [&good[..], &far].concat(), "in record 2, the offset"),
        (TraceFormat::Vscsi, [&scsi[..], &scsi[..13]].concat(), "in record 2, the record is not complete"),
        (TraceFormat::Vscsi, [&scsi[..], &[0; 40]].concat(), "in record 2, the version of the record"),
        (TraceFormat::OracleGeneral, object(0, 1, 1, -7), "in record 1, the next access is not"),
        (TraceFormat::OracleGeneral, vec![0; 23], "in record 1, the record is not complete"),
    ];
    for (format, bytes, wanted) in bad {
        let error = read(&bytes, &with(format)).unwrap_err().to_string();
        assert!(error.starts_with("trace.bin: in record ") && error.contains(wanted), "{format:?}: {error}");
    }
    for (line, wanted) in [
        ("{\"timestamp\": 1}", "trace.bin:4: the line is not JSON"),
        ("[1, 2]", "trace.bin:4: the line is not JSON"),
        ("{\"timestamp\": -1, \"hash_ids\": []}", "trace.bin:4: the timestamp"),
        ("{\"timestamp\": 1, \"hash_ids\": [18446744073709551616]}", "trace.bin:4: the line is not JSON"),
        ("{\"timestamp\": 1, \"hash_ids\": [-9223372036854775809]}", "trace.bin:4: the line is not JSON"),
        ("{\"timestamp\": 1, \"hash_ids\": [1.5]}", "trace.bin:4: the line is not JSON"),
    ] {
        let text = format!("{MOONCAKE}{line}\n");
        let error = read(text.as_bytes(), &TraceSettings::default()).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
    let settings = TraceSettings { skip_bad_lines: true, ..with(TraceFormat::Blktrace) };
    assert_eq!(read(&[good.clone(), far, good].concat(), &settings).unwrap().len(), 2);
}

#[test]
fn a_pipe_is_kept_so_that_it_can_be_read_again() {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    let (pipe, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"0,R,0,4096,1\n0,W,4096,4096,2\n").unwrap();
    drop(writer);
    // A shell names the pipe of `<(...)` like this.
    let settings =
        TraceSettings { files: vec![format!("/dev/fd/{}", pipe.as_raw_fd()).into()], ..TraceSettings::default() };
    for _ in 0..2 {
        let mut reader = settings.reader().unwrap();
        for _ in 0..2 {
            assert_eq!(reader.next_record().unwrap().unwrap().operation, Read);
            assert_eq!(reader.next_record().unwrap().unwrap().operation, W);
            assert_eq!(reader.next_record().unwrap(), None);
            assert!(reader.rewind());
        }
    }
}
