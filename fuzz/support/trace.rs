//! Properties of all traces with any bytes and format.

use std::io::{Cursor, Read};

use workload::trace::{
    AddressMapping, ExportSettings, ExportSource, IologVersion, PlacementRule, TraceReader, TraceRecord, TraceSettings,
    TraceSource, export,
};
use workload::{IoRequest, RequestSource, ScaledModel, WorkloadTarget};

/// Reader that returns a few bytes at a time.
struct Pieces {
    bytes: Cursor<Vec<u8>>,
    next: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.next = self.next % 7 + 1;
        let length = buffer.len().min(self.next);
        self.bytes.read(&mut buffer[..length])
    }
}

const UNIT: u64 = 4096;
/// Mapping units of the drive.
const UNITS: u64 = 1000;

fn drive(choice: u8) -> WorkloadTarget {
    let model = ScaledModel {
        denominator: 10,
        device_bytes: UNITS / 10 * UNIT,
        mapping_unit_bytes: UNIT,
        keep_requests: choice & 1 == 1,
    };
    WorkloadTarget {
        device_bytes: UNITS * UNIT,
        placement_count: 4,
        endless: false,
        scaled_model: (choice & 2 == 2).then_some(model),
    }
}

/// Returns the records up to the end or an error, and the error.
fn records(mut reader: TraceReader) -> (Vec<TraceRecord>, Option<String>) {
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => return (records, None),
            Err(error) => {
                assert!(matches!(reader.next_record(), Ok(None)), "there is something behind an error");
                return (records, Some(error.to_string()));
            }
        }
    }
}

/// Returns the requests up to the end or an error.
fn requests(mut source: TraceSource, batch: usize) -> Vec<IoRequest> {
    let mut requests = Vec::new();
    while let Ok(1..) = source.next_batch(&mut requests, batch) {}
    requests
}

/// Reads bytes as a trace with these settings in all ways, and compares the results.
pub fn check(choice: u8, bytes: &[u8], settings: &TraceSettings) {
    let whole = |settings: &TraceSettings| TraceReader::from_stream("trace", Cursor::new(bytes.to_vec()), settings);
    let Ok(reader) = whole(settings) else { return };
    let (strict, error) = records(reader);
    let pieces = Pieces { bytes: Cursor::new(bytes.to_vec()), next: 0 };
    let pieces = TraceReader::from_stream("trace", pieces, settings).expect("it could be opened before");
    let in_pieces = records(pieces);
    assert_eq!(in_pieces, (strict.clone(), error.clone()), "pieces of a stream are the stream");
    let skipping = TraceSettings { skip_bad_lines: true, ..settings.clone() };
    let (lenient, lenient_error) = records(whole(&skipping).expect("it could be opened before"));
    // Times count from the first request, which may be an invalid line.
    assert!(lenient.len() >= strict.len() && (error.is_some() || lenient_error.is_none()));
    assert_eq!(lenient[..strict.len()], strict, "the same comes before the first bad line");
    assert!(lenient.iter().all(|record| record.bytes > 0));
    check_replay(choice, &skipping, &whole);
}

fn check_replay<E: std::fmt::Debug>(
    choice: u8,
    settings: &TraceSettings,
    whole: &dyn Fn(&TraceSettings) -> Result<TraceReader, E>,
) {
    let target = drive(choice);
    let settings = TraceSettings {
        mapping: [AddressMapping::Modulo, AddressMapping::Scale, AddressMapping::Compact][usize::from(choice / 4) % 3],
        volume_bytes: Some(3 * UNITS * UNIT),
        volumes: 2,
        ..settings.clone()
    };
    let source = || {
        let reader = whole(&settings).expect("it could be opened before");
        TraceSource::new(&settings, reader, &target, choice.into()).expect("a drive of that size takes any trace")
    };
    let replayed = requests(source(), 64);
    assert_eq!(replayed, requests(source(), 3), "batches change nothing");
    for request in &replayed {
        let end = request.offset_bytes + u64::from(request.bytes);
        assert!(request.bytes > 0 && end <= target.capacity_bytes(), "{request:?}");
        assert!(request.placement.is_none_or(|placement| placement.0 < 4));
    }
    check_export(&target, source(), &replayed);
}

/// Checks that a written iolog gives the same requests.
fn check_export(target: &WorkloadTarget, mut source: TraceSource, replayed: &[IoRequest]) {
    let settings = ExportSettings {
        version: IologVersion::Three,
        requests_max: Some(replayed.len() as u64),
        ..ExportSettings::default()
    };
    let mut iolog = Vec::new();
    export(ExportSource::Timed(&mut source), &settings, "iolog", &mut iolog).expect("as many requests as came before");
    let import =
        TraceSettings { mapping: AddressMapping::Modulo, placement: PlacementRule::Column, ..TraceSettings::default() };
    let target = WorkloadTarget { device_bytes: target.capacity_bytes(), scaled_model: None, ..*target };
    let reader = TraceReader::from_stream("iolog", Cursor::new(iolog), &import).expect("it is an iolog");
    let source = TraceSource::new(&import, reader, &target, 0).expect("a drive of that size takes any trace");
    assert_eq!(requests(source, 64), replayed, "what was written is not what is read");
}
