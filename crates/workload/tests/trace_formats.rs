//! Tests of the parsers of all trace formats, on good and bad lines.

use std::io::{Cursor, Write};

use workload::trace::{BlkparseAction, PlacementRule, TraceFormat, TraceReader, TraceRecord, TraceSettings};
use workload::{PlacementIndex, RequestOperation, WorkloadError, WorkloadTarget};

fn reader(text: &str, settings: &TraceSettings) -> Result<TraceReader, WorkloadError> {
    TraceReader::from_stream("trace.txt", Cursor::new(text.as_bytes().to_vec()), settings)
}

fn read(text: &str, settings: &TraceSettings) -> Result<Vec<TraceRecord>, WorkloadError> {
    let mut reader = reader(text, settings)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    assert!(matches!(reader.next_record(), Ok(None)), "the end is not the end");
    Ok(records)
}

fn record(time_ns: u64, operation: RequestOperation, volume: u32, offset_bytes: u64, bytes: u32) -> TraceRecord {
    TraceRecord { time_ns, operation, volume, process: 0, file: 0, offset_bytes, bytes, latency_ns: 0, placement: None }
}

const MSR: &str = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
                   128166372016382155,usr,0,Write,2517696512,4096,703\n\
                   128166372026382245,usr,1,Write,0,512,1\n";
const ALIBABA: &str = "0,R,126703644672,4096,1577808000000626\n\
                       17,W,8192,65536,1577808000000627\n\
                       0,W,0,512,1577808001000626\n";
const TENCENT: &str = "1538323200,12910952,128,0,1063\n1538323201,6338688,8,1,1627\n1538323200,0,0,1,1627\n";
const BLKPARSE: &str = "\
  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  P   R [kjournald]
  8,0    3        3     0.000002197   697  Q   W 223490 + 8 [kjournald]
  8,0    3        4     0.000005000   697  D   W 223490 + 8 [kjournald]
  8,0    1        5     0.000006000   700  D   R 16 + 256 [fio]
  8,0    1        6     0.000007000   700  D FWFSM 8 + 8 [fio]
  8,0    1        7     0.000008000   700  D  FN [fio]
259,1    1        8     0.000009000   700  D  DS 2048 + 2048 [fio]
  8,0    1        9     0.000010000     0  C   W 223490 + 8 [0]
  8,0    1       10     0.000011000   700  m   N cfq700 slice expired
CPU0 (8,0):
 Reads Queued:           1,      128KiB\t Writes Queued:           1,        4KiB
Total (8,0):
 Events (8,0): 10 entries
";
const IOLOG_2: &str = "fio version 2 iolog\n/dev/sdb add\n/dev/sdb open\n/dev/sdb write 4096 8192\n/dev/sdb wait 250 0\n\
                       /dev/sdb sync 0 0\n/dev/sdc trim 0 1048576\n/dev/sdb read 512 512 3\n/dev/sdb close\n";
const IOLOG_3: &str = "fio version 3 iolog\n3 /dev/sdb add\n4 /dev/sdb open\n10 /dev/sdb write 4096 8192 2\n\
                       17 /dev/sdb datasync 0 0\n260 /dev/sdb trim 0 4096 -\n";

use RequestOperation::{Read, Trim, Write as W};

#[test]
fn the_msr_trace_has_filetimes_bytes_and_a_host_with_disks() {
    let wanted = [
        record(0, Read, 0, 7_014_609_920, 24576),
        record(1_332_052_600, W, 0, 2_517_696_512, 4096),
        record(2_332_061_600, W, 1, 0, 512),
    ];
    // Response times are in units of 100 ns, too.
    let wanted: Vec<TraceRecord> = wanted
        .into_iter()
        .zip([4_128_600, 70_300, 100])
        .map(|(record, latency_ns)| TraceRecord { latency_ns, ..record })
        .collect();
    assert_eq!(read(MSR, &TraceSettings::default()).unwrap(), wanted);
}

#[test]
fn the_alibaba_trace_has_microseconds_and_bytes() {
    let wanted = [
        record(0, Read, 0, 126_703_644_672, 4096),
        record(1_000, W, 1, 8192, 65536),
        record(1_000_000_000, W, 0, 0, 512),
    ];
    assert_eq!(read(ALIBABA, &TraceSettings::default()).unwrap(), wanted);
    let header = "device_id,opcode,offset,length,timestamp\n".to_string();
    assert_eq!(read(&(header + ALIBABA), &TraceSettings::default()).unwrap(), wanted);
}

#[test]
fn the_tencent_trace_has_seconds_and_sectors() {
    // A line of length 0 is no request.
    let wanted = [record(0, Read, 0, 12_910_952 * 512, 128 * 512), record(1_000_000_000, W, 1, 6_338_688 * 512, 4096)];
    assert_eq!(read(TENCENT, &TraceSettings::default()).unwrap(), wanted);
}

#[test]
fn blkparse_prints_a_request_several_times_and_one_counts() {
    let issued = |time_ns, operation, volume, process, sector: u64, sectors: u32| TraceRecord {
        process,
        ..record(time_ns, operation, volume, sector * 512, sectors * 512)
    };
    let wanted = [
        issued(0, W, 0, 0, 223_490, 8),
        issued(1_000, Read, 0, 1, 16, 256),
        issued(2_000, W, 0, 1, 8, 8),
        issued(4_000, Trim, 1, 1, 2048, 2048),
    ];
    assert_eq!(read(BLKPARSE, &TraceSettings::default()).unwrap(), wanted);
    for (action, count) in [(BlkparseAction::Queued, 1), (BlkparseAction::Completed, 1)] {
        let settings = TraceSettings { blkparse_action: action, ..TraceSettings::default() };
        assert_eq!(read(BLKPARSE, &settings).unwrap().len(), count, "{action:?}");
    }
}

#[test]
fn iologs_have_waits_or_times_and_may_have_placement() {
    let wanted = [
        record(0, W, 0, 4096, 8192),
        record(250_000, Trim, 1, 0, 1 << 20),
        TraceRecord { placement: Some(PlacementIndex(3)), ..record(250_000, Read, 0, 512, 512) },
    ];
    assert_eq!(read(IOLOG_2, &TraceSettings::default()).unwrap(), wanted);
    let wanted = [
        TraceRecord { placement: Some(PlacementIndex(2)), ..record(0, W, 0, 4096, 8192) },
        record(250_000, Trim, 0, 0, 4096),
    ];
    assert_eq!(read(IOLOG_3, &TraceSettings::default()).unwrap(), wanted);
}

/// Settings with a `csv` table.
fn csv(table: &str) -> TraceSettings {
    toml::from_str(&format!("format = \"csv\"\n[csv]\n{table}")).unwrap()
}

#[test]
fn columns_can_be_named_or_numbered() {
    // The block traces of SYSTOR '17 have names in the first line, seconds with a fraction, and an
    // empty column.
    let systor = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                  1456095600.5,0.002,W,1,4096,8192\n\
                  1456095600.750001,,R,2,0,512\n";
    let by_name = "volume = \"LUN\"\noffset.column = \"Offset\"\nlength.column = \"Size\"\noperation.column = \"IOType\"\n\
                   time = { column = \"Timestamp\", unit = \"s\" }\n";
    let by_number = "header = true\nvolume = 4\noffset.column = 5\nlength.column = 6\noperation.column = 3\n\
                     time = { column = 1, unit = \"s\" }\n";
    let wanted = [record(0, W, 0, 4096, 8192), record(250_001_000, Read, 1, 0, 512)];
    assert_eq!(read(systor, &csv(by_name)).unwrap(), wanted);
    assert_eq!(read(systor, &csv(by_number)).unwrap(), wanted);

    // UMass has sectors and bytes in one line. FIU has blanks as separators and the process in a
    // column.
    let umass =
        csv("volume = 1\noffset = { column = 2, unit = \"sectors\" }\nlength.column = 3\noperation.column = 4\n\
                     time = { column = 5, unit = \"s\" }\n");
    let wanted = [record(0, W, 0, 303_567 * 512, 3584), record(26_214_000, Read, 1, 55_590 * 512, 3072)];
    let text = "0,303567,3584,w,0.000000\n1,55590,3072,r,0.026214\n";
    assert_eq!(read(text, &umass).unwrap(), wanted);
    let fiu = csv("delimiter = \"blanks\"\nprocess = 3\ntime = { column = 1, unit = \"ns\" }\noperation.column = 6\n\
                   offset = { column = 4, unit = \"sectors\" }\nlength = { column = 5, unit = \"sectors\" }\n");
    let text = "# comment\n89966590863 4892 syslogd 904265560 8 W 6 0 md5\n\n89966590963 2 kjournald 8 8 R 6 0 md5\n";
    let second = TraceRecord { process: 1, ..record(100, Read, 0, 4096, 4096) };
    assert_eq!(read(text, &fiu).unwrap(), [record(0, W, 0, 904_265_560 * 512, 4096), second]);
}

#[test]
fn csv_words_units_and_placement_are_those_of_the_table() {
    let settings = csv("delimiter = \"tab\"\nplacement = 5\n\
                        offset = { column = 1, unit = \"pages\" }\nlength = { column = 2, unit = \"kib\" }\n\
                        operation = { column = 3, read = [\"0\"], write = [\"1\"], trim = [\"3\"], ignore = [\"2\"] }\n");
    let text = "7\t4\t1\tx\t5\n8\t8\t0\tx\t\n9\t4\t2\tx\t1\n9\t4\t3\tx\t-\n";
    let first = TraceRecord { placement: Some(PlacementIndex(5)), ..record(0, W, 0, 7 * 4096, 4096) };
    let wanted = [first, record(0, Read, 0, 8 * 4096, 8192), record(0, Trim, 0, 9 * 4096, 4096)];
    assert_eq!(read(text, &settings).unwrap(), wanted);
}

/// A format, a good line of it, and bad lines with the name of the bad field.
type Spoilt = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const SPOILT: [Spoilt; 6] = [
    (
        "msr",
        "1,usr,0,Read,1,1,1",
        &[
            ("x,usr,0,Read,1,1,1", "timestamp"),
            ("184467440737095517,usr,0,Read,1,1,1", "timestamp"),
            ("1,usr,0,read,1,1,1", "type"),
            ("1,usr,0,Read,-1,1,1", "offset"),
            ("1,usr,0,Read,1,1.5,1", "size"),
            ("1,usr,0,Read,1,1", "size"),
            ("1,usr,0,Read,1,1,", "response time"),
            ("1,usr", "host name"),
            ("1,usr,0,Read,1,4294967296,1", "length"),
            ("1,usr,0,Read,576460752303423488,1,1", "offset"),
        ],
    ),
    (
        "alibaba",
        "1,R,1,1,1",
        &[
            ("1,X,1,1,1", "opcode"),
            ("1,R,,1,1", "offset"),
            ("1,R,1,,1", "size"),
            ("1,R,1,1,1,1", "timestamp"),
            ("1,R,1,1", "size"),
            ("1", "device"),
        ],
    ),
    (
        "tencent",
        "1,1,1,1,1",
        &[
            ("1,1,1,2,1", "I/O type"),
            ("1,1,1,1,", "volume"),
            ("1,1,1,1", "I/O type"),
            ("1,36028797018963968,1,1,1", "offset"),
            ("1.5,1,1,1,1", "timestamp"),
        ],
    ),
    (
        "blkparse",
        "8,0 1 1 0.1 1 D W 1 + 1 [x]",
        &[
            ("8 1 1 0.1 1 D W 1 + 1 [x]", "device"),
            ("8,0 1 1 0,1 1 D W 1 + 1 [x]", "time"),
            ("8,0 1 1 0.1 1 D X 1 + 1 [x]", "operation"),
            ("8,0 1 1 0.1 1 D W 1 - 1 [x]", "sector"),
            ("8,0 1 1 0.1 1 D W x + 1 [x]", "sector"),
            ("8,0 1 1 0.1 1 D W 1 +", "line"),
            ("8,0 1 1", "line"),
        ],
    ),
    (
        "iolog",
        "/f write 0 1",
        &[
            ("/f write 0", "length"),
            ("/f write x 1", "offset"),
            ("/f erase 0 1", "action"),
            ("/f", "action"),
            ("/f write 0 1 x", "placement"),
            ("/f write 0 1 65536", "placement"),
            ("/f wait x", "time"),
        ],
    ),
    (
        "csv",
        "1,1,R,1",
        &[
            ("1,1,X,1", "operation"),
            ("1,1,R", "time"),
            ("1,1,R,x", "time"),
            (",1,R,1", "offset"),
            ("1,0x10,R,1", "length"),
            ("1", "operation"),
        ],
    ),
];

/// A good line of every format, and variants that must be bad at line 3 of a file.
#[test]
fn a_bad_line_names_file_line_and_field_or_is_counted() {
    let csv = csv("offset.column = 1\nlength.column = 2\noperation.column = 3\ntime = { column = 4, unit = \"s\" }\n");
    for (format, good, bad_lines) in SPOILT {
        let first = if format == "iolog" { "fio version 2 iolog" } else { good };
        let mut settings = if format == "csv" { csv.clone() } else { TraceSettings::default() };
        settings.format = Some(toml::Value::String(format.into()).try_into().unwrap());
        let good_records = read(&format!("{first}\n{good}\n{good}\n"), &settings).unwrap().len();
        for (bad, field) in bad_lines {
            let text = format!("{first}\n{good}\n{bad}\n{good}\n");
            settings.skip_bad_lines = false;
            let error = read(&text, &settings).expect_err(bad).to_string();
            assert!(error.starts_with("trace.txt:3: "), "{format}: {error}");
            assert!(error.contains(field) && error.contains(bad), "{format}: {bad:?} gave {error:?}");
            settings.skip_bad_lines = true;
            let mut reader = reader(&text, &settings).unwrap();
            let mut count = 0;
            while reader.next_record().unwrap().is_some() {
                count += 1;
            }
            assert_eq!((count, reader.bad_lines()), (good_records, 1), "{format}: {bad:?}");
        }
    }
}

#[test]
fn what_no_line_can_mend_is_fatal_even_if_bad_lines_are_skipped() {
    let mut settings =
        TraceSettings { skip_bad_lines: true, format: Some(TraceFormat::Iolog), ..TraceSettings::default() };
    let error = read("fio version 1\n", &settings).unwrap_err().to_string();
    assert!(error.contains("trace.txt:1") && error.contains("fio version 2 iolog"), "{error}");
    settings = csv("offset.column = \"a\"\nlength.column = 2\noperation.column = 3\n");
    settings.skip_bad_lines = true;
    let error = read("x,y,z\n1,1,R\n", &settings).unwrap_err().to_string();
    assert!(error.contains("trace.txt:1") && error.contains("header"), "{error}");
}

#[test]
fn an_unknown_format_is_said_with_the_remedy() {
    let empty = reader("", &TraceSettings::default()).err().unwrap().to_string();
    assert!(empty.contains("trace.txt:1: the trace is empty"), "{empty}");
    for text in ["hello\n", "1,2,3\n"] {
        let error = reader(text, &TraceSettings::default()).err().unwrap().to_string();
        assert!(error.contains("trace.txt:1") && error.contains("--set workload.format=NAME"), "{error}");
    }
}

#[test]
fn a_torn_line_a_binary_file_and_a_cut_file_are_said_with_the_remedy() {
    let named =
        TraceSettings { columns: Some("time:us,-,op,offset,bytes".parse().unwrap()), ..TraceSettings::default() };
    let bad = read("7,x,W,4096\n", &named).unwrap_err().to_string();
    assert!(bad.ends_with("with --set workload.skip_bad_lines=true"), "{bad}");
    let negative = reader("1,host,0,Write,-4096,4096,1\n", &TraceSettings::default());
    let negative = negative.and_then(|mut reader| reader.next_record()).unwrap_err().to_string();
    assert!(negative.contains("the offset is not a whole number, 0 or more"), "{negative}");
    let binary = reader("\u{1}\u{2}\u{7f}ELF\u{0}\u{0}\n", &TraceSettings::default()).err().unwrap().to_string();
    assert!(binary.contains("Its first line is not text. "), "{binary}");
    let directory = tempfile::tempdir().unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(ALIBABA.repeat(100).as_bytes()).unwrap();
    let whole = gzip.finish().unwrap();
    let path = directory.path().join("cut.csv.gz");
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let settings = TraceSettings { files: vec![path], ..TraceSettings::default() };
    // A short file is cut off within the lines that its format is guessed from.
    let error = settings.reader().err().unwrap().to_string();
    assert!(error.contains("the compressed file is incomplete. Copy it again"), "{error}");
}

#[test]
fn files_follow_each_other_compressed_or_not_and_are_counted_as_they_lie_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(ALIBABA.as_bytes()).unwrap();
    std::fs::write(path("1.csv.gz"), gzip.finish().unwrap()).unwrap();
    // Detection uses magic bytes, not names.
    std::fs::write(path("2.csv"), zstd::encode_all(ALIBABA.as_bytes(), 3).unwrap()).unwrap();
    std::fs::write(path("3.csv"), ALIBABA).unwrap();
    let settings =
        TraceSettings { files: ["1.csv.gz", "2.csv", "3.csv"].map(path).to_vec(), ..TraceSettings::default() };
    let on_disk: u64 = settings.files.iter().map(|file| file.metadata().unwrap().len()).sum();
    let mut reader = settings.reader().unwrap();
    let progress = reader.progress();
    assert_eq!(progress.bytes_total(), on_disk);
    let one: Vec<TraceRecord> = read(ALIBABA, &TraceSettings::default()).unwrap();
    for _ in 0..2 {
        for _ in 0..3 {
            for wanted in &one {
                let mut found = reader.next_record().unwrap().unwrap();
                found.time_ns = wanted.time_ns;
                assert_eq!(found, *wanted);
            }
        }
        assert_eq!(reader.next_record().unwrap(), None);
        assert_eq!(progress.bytes_read(), on_disk);
        assert!(reader.rewind());
        assert_eq!(progress.bytes_read(), 0);
    }
}

#[test]
fn times_go_on_in_the_next_file_and_in_the_next_pass() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.iolog");
    std::fs::write(&file, "fio version 3 iolog\n5 /f write 0 1\n8 /f write 0 1\n").unwrap();
    let settings = TraceSettings { files: vec![file.clone(), file], ..TraceSettings::default() };
    let mut reader = settings.reader().unwrap();
    let mut times = Vec::new();
    for _ in 0..2 {
        while let Some(record) = reader.next_record().unwrap() {
            times.push(record.time_ns / 1000);
        }
        assert!(reader.rewind());
    }
    // The times are 5 and 8 after the first file's beginning, and 5 and 8 after its end at 8.
    assert_eq!(times, [0, 3, 8, 11, 11, 14, 19, 22]);
}

#[test]
fn errors_of_files_name_them() {
    let settings = TraceSettings { files: vec!["no/such/file.csv".into()], ..TraceSettings::default() };
    assert!(settings.reader().err().unwrap().to_string().starts_with("no/such/file.csv: "));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut.csv.gz");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(ALIBABA.repeat(1000).as_bytes()).unwrap();
    let whole = gzip.finish().unwrap();
    std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    let settings = TraceSettings { files: vec![path], ..TraceSettings::default() };
    let error = settings.reader().and_then(|mut reader| {
        while reader.next_record()?.is_some() {}
        Ok(())
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("cut.csv.gz"), "{error}");
}

/// A list of columns in one line equals the table of them, for all delimiters, with or without a
/// header.
#[test]
fn any_csv_is_read_by_a_list_of_its_columns() {
    let list = |columns: &str| TraceSettings { columns: Some(columns.parse().unwrap()), ..TraceSettings::default() };
    let wanted =
        vec![record(0, RequestOperation::Write, 0, 4096, 8192), record(2_500, RequestOperation::Read, 1, 512, 1024)];
    for (columns, text) in [
        ("time:us,-,op,offset,bytes,volume", "7,x,W,4096,8192,a\n9.5,x,R,512,1024,b\n"),
        (
            "bytes:sectors,offset:sectors,op:0/1,volume,time:us",
            "size;lba;rw;disk;us;more\n16;8;1;a;7;-\n2;1;0;b;9.5;-\n",
        ),
        (
            "op:READ/WRITE,offset:sectors,bytes:sectors,volume,time:us",
            "# recorded by somebody\nWRITE\t8\t16\ta\t7\nREAD\t1\t2\tb\t9.5\n",
        ),
    ] {
        assert_eq!(read(text, &list(columns)).unwrap(), wanted, "{columns}");
    }
    let error = read("7,x,W,4096\n", &list("time:us,-,op,offset,bytes")).unwrap_err().to_string();
    assert!(error.contains("trace.txt:1: the length is not a number"), "{error}");
}

/// A CSV of unknown format leads to a question about its columns, not to a silent guess.
#[test]
fn a_csv_of_no_known_format_is_guessed_at_with_a_question() {
    let refusal = |text: &str| reader(text, &TraceSettings::default()).err().unwrap().to_string();
    let asked = refusal("0.5,host,W,4096,8192,3\n0.9,host,R,1048576,4096,2\n");
    for words in [
        "trace.txt:1: the format of the trace is not known. Its first line is \"0.5,host,W",
        "column 5 the size in bytes?",
        "--columns time:s,-,op,offset,bytes",
    ] {
        assert!(asked.contains(words), "{asked}");
    }
    let unasked = refusal("one,two,three\nfour,five,six\n");
    assert!(unasked.contains("with --columns, for example time,op,offset,bytes"), "{unasked}");
}

/// Refused settings, and words of the resulting message.
const IMPOSSIBLE: [(&str, &str); 18] = [
    ("files = []", "files = [] names no file"),
    ("operations = []", "operations = [] selects no operation"),
    ("mapping = \"scale\"", "Set volume_bytes"),
    ("volumes = 0", "at least 1"),
    ("volume_bytes = \"8EiB\"\nvolumes = 9", "2^63"),
    ("placement = \"lba_ranges\"", "Set lba_ranges"),
    ("placement = \"request_size\"", "Set request_sizes_bytes"),
    ("placement = \"request_size\"\nrequest_sizes_bytes = [\"64KiB\", 4096]", "must be in ascending order"),
    (
        "placement = \"request_size\"\nrequest_sizes_bytes = [1, 2, 3]",
        "placement index 3 does not exist on the drive. Use 0 to 1",
    ),
    (
        "placement = \"lba_ranges\"\nlba_ranges = [{ start_bytes = 0, end_bytes = 1, placement = 2 }]",
        "placement index 2",
    ),
    ("placement = \"column\"", "placement = \"column\" needs a trace with"),
    ("placement = \"process\"", "placement = \"process\" needs a trace with"),
    ("format = \"csv\"", "add a table [workload.csv]"),
    ("format = \"msr\"\ncolumns = \"op,offset,bytes\"", "columns = \"op,offset,bytes\" cannot be combined"),
    ("columns = \"op,offset,bytes\"\n[csv]\noffset.column = 1\nlength.column = 1\noperation.column = 1", "Remove csv"),
    ("[csv]\noffset.column = 1\nlength.column = 1\noperation.column = 1", "csv needs format = \"csv\""),
    (
        "format = \"csv\"\n[csv]\noffset.column = 0\nlength.column = 1\noperation.column = 1",
        "Number the columns from 1",
    ),
    (
        "format = \"csv\"\n[csv]\nheader = false\noffset.column = \"x\"\nlength.column = 1\noperation.column = 1",
        "header",
    ),
];

#[test]
fn impossible_settings_are_refused_in_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.csv");
    std::fs::write(&file, ALIBABA).unwrap();
    let target = WorkloadTarget { device_bytes: 1 << 30, placement_count: 2, ..WorkloadTarget::default() };
    let with = |change: &dyn Fn(&mut TraceSettings)| {
        let mut settings = TraceSettings { files: vec![file.clone()], ..TraceSettings::default() };
        change(&mut settings);
        settings.source(&target, 0).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let parse = |text: &str| toml::from_str::<TraceSettings>(text).unwrap();
    assert_eq!(with(&|_| ()), "");
    for (change, wanted) in IMPOSSIBLE {
        let error = with(&|settings| {
            let files = std::mem::take(&mut settings.files);
            *settings = parse(change);
            if !change.starts_with("files") {
                settings.files = files;
            }
        });
        assert!(error.contains(wanted), "{change:?} gave {error:?}");
    }
    assert!(toml::from_str::<TraceSettings>("file = [\"x\"]").is_err());
}

#[test]
fn settings_come_back_as_they_were_written() {
    let mut settings = csv("offset.column = 1\nlength.column = \"x\"\noperation.column = 3\nvolume = 9\n");
    settings.files = vec!["a".into()];
    settings.placement = PlacementRule::Volume;
    settings.volume_bytes = Some(5);
    let text = toml::to_string(&settings).unwrap();
    assert_eq!(toml::from_str::<TraceSettings>(&text).unwrap(), settings, "{text}");
}
