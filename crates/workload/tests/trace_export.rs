//! Tests of exporting any workload to fio iologs and reading it back.

mod support;

use std::io::Cursor;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use support::{UNIT, all, drive, replay, source, with};
use workload::trace::{
    AddressMapping, ExportSettings, ExportSource, IologVersion, PlacementRule, TimedSource, TraceFormat, TraceReader,
    TraceSettings, export, export_per_placement,
};
use workload::{IoRequest, PlacementIndex, RequestOperation, RequestSource, WorkloadError};

/// A workload with all kinds of requests.
struct RandomSource {
    random: Xoshiro256PlusPlus,
    left: usize,
    units: u64,
}

fn anything(left: usize) -> RandomSource {
    RandomSource { random: Xoshiro256PlusPlus::seed_from_u64(5), left, units: 5_000 }
}

impl RequestSource for RandomSource {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        let issued = limit.min(self.left);
        self.left -= issued;
        for _ in 0..issued {
            let mut below = |limit: u64| self.random.next_u64() % limit;
            let operation = RequestOperation::ALL[below(3) as usize];
            let (offset_bytes, bytes) = match below(2) {
                0 => (below(self.units) * UNIT, (below(8) + 1) * UNIT),
                _ => (below(self.units * 8) * 512, below(10_000) + 1),
            };
            let placement = (operation == RequestOperation::Write).then(|| below(5)).filter(|choice| *choice < 4);
            requests.push(IoRequest {
                stream: 0,
                operation,
                offset_bytes,
                bytes: bytes as u32,
                placement: placement.map(|choice| PlacementIndex(choice as u16)),
            });
        }
        Ok(issued)
    }

    fn streams(&self) -> Vec<String> {
        vec!["anything".into()]
    }
}

fn exported(feed: ExportSource, settings: &ExportSettings) -> String {
    let mut text = Vec::new();
    export(feed, settings, "out.iolog", &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn what_is_exported_comes_back_request_for_request() {
    let wanted = all(&mut anything(20_000));
    let import = TraceSettings { placement: PlacementRule::Column, ..with(AddressMapping::Modulo) };
    // The last request may exceed the range of units that offsets are drawn from.
    let target = drive(6_000);
    for version in [IologVersion::Two, IologVersion::Three] {
        let settings = ExportSettings { version, ..ExportSettings::default() };
        let text = exported(ExportSource::Untimed(&mut anything(20_000)), &settings);
        assert!(replay(&text, &import, &target) == wanted, "{version:?}");
        // Exports again, from a trace source that reads the iolog.
        let again = exported(ExportSource::Untimed(&mut source(&text, &import, &target)), &settings);
        assert!(again == text, "{version:?}");
    }
}

#[test]
fn times_survive_in_version_3_to_the_microsecond() {
    let text = "0,W,0,4096,1577808000000626\n0,R,4096,512,1577808000000926\n0,W,8192,4096,1577808003000626\n";
    let settings = with(AddressMapping::Modulo);
    let timed = |text: &str| {
        let (mut requests, mut arrivals) = (Vec::new(), Vec::new());
        source(text, &settings, &drive(10)).next_timed_batch(&mut requests, &mut arrivals, 100).unwrap();
        let times: Vec<u64> = arrivals.iter().map(|arrival| arrival.time_ns).collect();
        (requests, times)
    };
    let three = ExportSettings { version: IologVersion::Three, ..ExportSettings::default() };
    let iolog = exported(ExportSource::Timed(&mut source(text, &settings, &drive(10))), &three);
    assert_eq!(
        iolog,
        "fio version 3 iolog\n0 /dev/ng0n1 add\n0 /dev/ng0n1 open\n0 /dev/ng0n1 write 0 4096\n\
         300 /dev/ng0n1 read 4096 512\n3000000 /dev/ng0n1 write 8192 4096\n3000000 /dev/ng0n1 close\n"
    );
    assert_eq!(timed(&iolog), timed(text));
    assert_eq!(timed(&iolog).1, [0, 300_000, 3_000_000_000]);
}

#[test]
fn an_endless_workload_is_exported_up_to_a_limit() {
    let settings = ExportSettings { requests_max: Some(10_000), placement_column: false, ..ExportSettings::default() };
    let mut text = Vec::new();
    let written = export(ExportSource::Untimed(&mut anything(usize::MAX)), &settings, "out", &mut text).unwrap();
    let wanted = all(&mut anything(10_000));
    assert_eq!(written.requests, 10_000);
    assert_eq!(written.bytes, wanted.iter().map(|request| u64::from(request.bytes)).sum::<u64>());
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), 10_000 + 4);
    assert!(text.lines().skip(3).take(10_000).all(|line| line.split(' ').count() == 4));
}

#[test]
fn a_file_per_placement_identifier_and_a_job_file_for_all() {
    let directory = tempfile::tempdir().unwrap();
    let settings = ExportSettings::default();
    let written =
        export_per_placement(ExportSource::Untimed(&mut anything(5_000)), &settings, directory.path(), "any").unwrap();
    let names: Vec<String> =
        written.files.iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["any.none.iolog", "any.0.iolog", "any.1.iolog", "any.2.iolog", "any.3.iolog", "any.fio"]);
    let wanted = all(&mut anything(5_000));
    let import = TraceSettings { placement: PlacementRule::Column, ..with(AddressMapping::Modulo) };
    for (file, placement) in
        written.files.iter().zip([None, Some(0), Some(1), Some(2), Some(3)].map(|index| index.map(PlacementIndex)))
    {
        let text = std::fs::read_to_string(file).unwrap();
        let of_it: Vec<IoRequest> = wanted.iter().copied().filter(|request| request.placement == placement).collect();
        assert!(replay(&text, &import, &drive(6_000)) == of_it, "{placement:?}");
    }
    let jobs = std::fs::read_to_string(written.files.last().unwrap()).unwrap();
    for placement in 0..4 {
        let job = format!("[placement-{placement}]\nread_iolog=any.{placement}.iolog\nfdp=1\nplids={placement}\n");
        assert!(jobs.contains(&job), "{jobs}");
    }
    assert!(jobs.contains("[no-placement]\nread_iolog=any.none.iolog\n") && !jobs.contains("any.4"), "{jobs}");
}

#[test]
fn a_workload_that_fails_is_not_exported_as_if_it_had_ended() {
    let text = "fio version 2 iolog\na write 0 4096\nnonsense\n";
    let mut source = source(text, &with(AddressMapping::Modulo), &drive(10));
    let error = export(ExportSource::Untimed(&mut source), &ExportSettings::default(), "out", &mut Vec::new());
    assert!(error.unwrap_err().to_string().starts_with("trace.txt:3: "));
    let format = TraceSettings { format: Some(TraceFormat::Iolog), ..TraceSettings::default() };
    assert!(TraceReader::from_stream("x", Cursor::new(Vec::new()), &format).unwrap().next_record().unwrap().is_none());
}
