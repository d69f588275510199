//! Reader of cache operations from trace files.
//!
//! ```text
//! files (plain, gzip, zstd) -> lines -> row (kvcache, cdn, twitter, oracle_general)
//!   -> one operation per repetition, suffix and piece
//! ```
//!
//! The name or first line of a file selects its format, unless the settings do. A malformed row
//! ends the run with an error that names file and line, or is counted. Only one line is in memory
//! at a time.
//!
//! If a cache has a share of the working set, `footprint` first estimates the working set of the
//! files. Each line then stands for several keys, or some keys are dropped. A cache of any size
//! thus sees its share.
//!
//! The reader ignores times. Operations follow each other as fast as the cache accepts them, and
//! items never expire.

mod footprint;
mod row;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::CacheOperation;
use row::{CacheTraceRow, RowParser};
use workload::WorkloadError;
use workload::random::mix;
use workload::trace::{MooncakeRequest, ObjectRequest, ReadOutcome, RecordReader, file_bytes, spool};

/// Remedy for a bad line.
const SKIP: &str = ". Correct the line, or skip such lines with --set workload.skip_bad_lines=true";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheTraceFormat {
    /// Detects the format from the first line of each file.
    Auto,
    /// CacheLib's key-value traces (cachelib/cachebench/workload/KVReplayGenerator.h). A header
    /// names the columns (`key`, `op`, `size`, `op_count`, `key_size`, ...). Without a header they
    /// have this order.
    Kvcache,
    /// CacheLib's CDN traces (cachelib/cachebench/workload/PieceWiseReplayGenerator.h). Objects are
    /// cached in pieces of 64 KiB.
    Cdn,
    /// Twitter's cache traces (README of github.com/twitter/cache-trace).
    Twitter,
    /// libCacheSim's oracleGeneral (`oracleGeneralBin.h`). Each record is a get of an object with a
    /// size. `Auto` recognizes it by the name of the file.
    OracleGeneral,
}

impl CacheTraceFormat {
    /// Detects a cache trace by its name or first line. Returns `None` for any other file and for
    /// one that cannot be read.
    pub fn recognize(file: &Path) -> Option<CacheTraceFormat> {
        if ObjectRequest::is_named_so(&file.display().to_string()) {
            return Some(CacheTraceFormat::OracleGeneral);
        }
        RowParser::recognize(RecordReader::open(file, Arc::default()).ok()?.first())
    }
}

/// True if a file begins like Mooncake's traces.
pub fn is_mooncake(file: &Path) -> bool {
    let Ok(lines) = RecordReader::open(file, Arc::default()) else {
        return false;
    };
    lines.first().starts_with(b"{") && matches!(MooncakeRequest::parse(lines.first()), Ok(Some(_)))
}

/// Trace files and their read settings.
#[derive(Clone)]
pub(crate) struct CacheTraceFiles {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) format: CacheTraceFormat,
    /// Keys that each line stands for.
    pub(crate) amplification: u32,
    pub(crate) skip_bad_lines: bool,
    /// Wanted bytes of keys and values of all lines. Overrides `amplification`.
    pub(crate) working_set_bytes: Option<u64>,
}

/// Reader of trace files, one after another.
pub(crate) struct CacheTrace {
    files: Vec<String>,
    format: CacheTraceFormat,
    amplification: u32,
    /// Largest hash of the keys in the sample.
    hash_max: u64,
    skip_bad_lines: bool,
    endless: bool,
    /// Number of the file after the open one.
    next_file: usize,
    open: Option<(RecordReader, RowParser)>,
    row: CacheTraceRow,
    /// Operations of the row already returned, over all suffixes.
    done: u32,
    bytes_read: Arc<AtomicU64>,
    bytes_total: u64,
    bad_lines: u64,
    /// Operations since the last start of the files. An endless trace without operations must not
    /// loop.
    since_start: u64,
}

impl CacheTrace {
    /// Opens the first file. If a working set is wanted, estimates that of the files first.
    pub(crate) fn new(settings: CacheTraceFiles, endless: bool) -> Result<CacheTrace, WorkloadError> {
        let mut bytes_total = 0;
        for file in &settings.files {
            bytes_total +=
                file_bytes(file).map_err(|source| WorkloadError::Io { file: spool::display_name(file), source })?;
        }
        let sample = footprint::KeySample::new(&settings)?;
        let mut trace = CacheTrace {
            files: settings.files.iter().map(|file| file.display().to_string()).collect(),
            format: settings.format,
            amplification: sample.amplification,
            hash_max: sample.hash_max,
            skip_bad_lines: settings.skip_bad_lines,
            endless,
            next_file: 0,
            open: None,
            row: CacheTraceRow::default(),
            done: 0,
            bytes_read: Arc::default(),
            bytes_total,
            bad_lines: 0,
            since_start: 0,
        };
        trace.open_next()?;
        Ok(trace)
    }

    /// Number of lines skipped so far.
    pub(crate) fn bad_lines(&self) -> u64 {
        self.bad_lines
    }

    /// Fraction of the files already read.
    pub(crate) fn share_done(&self) -> Option<f64> {
        let read = self.bytes_read.load(Ordering::Relaxed) as f64;
        (!self.endless).then(|| (read / self.bytes_total.max(1) as f64).min(1.0))
    }

    fn io_error(&self, source: std::io::Error) -> WorkloadError {
        WorkloadError::Io { file: self.files[self.next_file.saturating_sub(1)].clone(), source }
    }

    /// Opens the next file. Returns false after the last one.
    fn open_next(&mut self) -> Result<bool, WorkloadError> {
        if self.next_file == self.files.len() && self.endless && self.since_start > 0 {
            (self.next_file, self.since_start) = (0, 0);
        }
        let Some(file) = self.files.get(self.next_file).cloned() else {
            self.open = None;
            return Ok(false);
        };
        self.next_file += 1;
        let lines =
            RecordReader::open(Path::new(&file), self.bytes_read.clone()).map_err(|source| self.io_error(source))?;
        let format = match self.format {
            CacheTraceFormat::Auto if ObjectRequest::is_named_so(&file) => CacheTraceFormat::OracleGeneral,
            format => format,
        };
        let reader =
            RowParser::new(format, lines.first()).map_err(|problem| WorkloadError::Line { file, line: 1, problem })?;
        self.open = Some((lines, reader));
        Ok(true)
    }

    /// Next operation, or `None` at the end of the files.
    pub(crate) fn next(&mut self) -> Result<Option<CacheOperation>, WorkloadError> {
        while self.done == self.row.operations() * self.amplification {
            if !self.next_row()? {
                return Ok(None);
            }
        }
        let operation = self.row.operation(self.done / self.amplification);
        let suffix = self.done % self.amplification;
        self.done += 1;
        self.since_start += 1;
        Ok(Some(CacheOperation {
            // The original key first, then the same key with suffixes.
            key: if suffix == 0 { operation.key } else { mix(operation.key ^ u64::from(suffix)) },
            ..operation
        }))
    }

    /// Reads up to the next valid row. Returns false at the end of the files.
    fn next_row(&mut self) -> Result<bool, WorkloadError> {
        self.done = 0;
        self.row = CacheTraceRow::default();
        loop {
            let Some((lines, reader)) = &mut self.open else {
                return Ok(false);
            };
            let record_bytes = reader.record_bytes();
            let taken = match record_bytes {
                Some(bytes) => lines.take_fixed_record(bytes),
                None => lines.take_line(),
            };
            let parsed = match taken {
                Ok(ReadOutcome::Text(text)) => reader.row(text),
                Ok(ReadOutcome::TooLong(_)) if record_bytes.is_some() => {
                    Err("the record is incomplete. Copy the file again".to_string())
                }
                Ok(ReadOutcome::TooLong(_)) => Err("the line is longer than any line of a cache trace".to_string()),
                Ok(ReadOutcome::End) => {
                    if !self.open_next()? {
                        return Ok(false);
                    }
                    continue;
                }
                Err(source) => return Err(self.io_error(source)),
            };
            let line = lines.number();
            match parsed {
                Ok(Some(row)) => {
                    self.row = row;
                    if self.hash_max == u64::MAX || row.operations() == 0 || row.operation(0).key <= self.hash_max {
                        return Ok(true);
                    }
                    self.row = CacheTraceRow::default();
                }
                Ok(None) => {}
                Err(_) if self.skip_bad_lines => self.bad_lines += 1,
                Err(problem) => {
                    let file = self.files[self.next_file - 1].clone();
                    let remedy = if record_bytes.is_some() { "" } else { SKIP };
                    let problem = problem + remedy;
                    return Err(WorkloadError::Line { file, line, problem });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::OperationKind;
    use super::*;
    use std::io::Write;

    fn trace_of(
        texts: &[&str],
        change: impl FnOnce(&mut CacheTraceFiles),
        endless: bool,
    ) -> (CacheTrace, Vec<tempfile::NamedTempFile>) {
        let files: Vec<tempfile::NamedTempFile> = texts
            .iter()
            .map(|text| {
                let mut file = tempfile::NamedTempFile::new().unwrap();
                file.write_all(text.as_bytes()).unwrap();
                file
            })
            .collect();
        let mut settings = CacheTraceFiles {
            files: files.iter().map(|file| file.path().to_path_buf()).collect(),
            format: CacheTraceFormat::Auto,
            amplification: 1,
            skip_bad_lines: false,
            working_set_bytes: None,
        };
        change(&mut settings);
        (CacheTrace::new(settings, endless).unwrap(), files)
    }

    fn all(trace: &mut CacheTrace) -> Vec<CacheOperation> {
        std::iter::from_fn(|| trace.next().unwrap()).collect()
    }

    fn kinds_and_sizes(operations: &[CacheOperation]) -> Vec<(OperationKind, Option<u32>)> {
        operations.iter().map(|operation| (operation.kind, operation.bytes)).collect()
    }

    const KV_2024: &str = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n\
        1,aa,48,GET,2,87,1,0,3,4\n1,bb,24,GET_LEASE,1,0,0,0,3,4\n2,bb,24,SET_LEASE,1,3000,0,0,3,4\n2,aa,48,DELETE,1,0,0,0,3,4\n";

    #[test]
    fn columns_of_key_value_traces_go_by_name() {
        let (mut trace, _files) = trace_of(&[KV_2024], |_| {}, false);
        let operations = all(&mut trace);
        use OperationKind::{Delete, Get, Set};
        let expected = [(Get, Some(135)), (Get, Some(135)), (Get, None), (Set, Some(3024)), (Delete, None)];
        assert_eq!(kinds_and_sizes(&operations), expected);
        assert_eq!(operations[0].key, operations[4].key);
        assert_eq!(operations[2].key, operations[3].key);
        assert_ne!(operations[0].key, operations[2].key);
        // The format of 2022, with and without header.
        let rows = "aa,GET,87,2,48\nbb,GET,0,1,24\nbb,SET,3000,1,24\naa,DELETE,0,1,48\n";
        for text in [rows.to_string(), format!("key,op,size,op_count,key_size\n{rows}")] {
            let (mut trace, _files) = trace_of(&[&text], |_| {}, false);
            assert_eq!(all(&mut trace), operations);
        }
    }

    #[test]
    fn twitter_traces_have_no_header() {
        let text = "0,nz:u:eeW,44,1030,7,set,300\n1,nz:u:eeW,44,0,7,get,0\n2,q,10,5,7,gets,0\n3,q,10,5,7,incr,9\n4,q,10,0,7,delete,0\n";
        let (mut trace, _files) = trace_of(&[text], |_| {}, false);
        use OperationKind::{Delete, Get, Set};
        let expected = [(Set, Some(1074)), (Get, None), (Get, Some(15)), (Set, Some(15)), (Delete, None)];
        assert_eq!(kinds_and_sizes(&all(&mut trace)), expected);
    }

    #[test]
    fn records_of_objects_are_gets() {
        let record = |object: u64, bytes: u32| {
            let next = u64::MAX.to_le_bytes();
            [&7_u32.to_le_bytes()[..], &object.to_le_bytes(), &bytes.to_le_bytes(), &next].concat()
        };
        let mut file = tempfile::Builder::new().suffix(".oracleGeneral").tempfile().unwrap();
        file.write_all(&[record(1, 5000), record(2, 0), record(1, 5000), record(3, 70)].concat()).unwrap();
        let files = CacheTraceFiles {
            files: vec![file.path().to_path_buf()],
            format: CacheTraceFormat::Auto,
            amplification: 1,
            skip_bad_lines: false,
            working_set_bytes: None,
        };
        let operations = all(&mut CacheTrace::new(files.clone(), false).unwrap());
        let expected = [5000, 5000, 70].map(|bytes| (OperationKind::Get, Some(bytes)));
        assert_eq!(kinds_and_sizes(&operations), expected);
        assert!(operations[0].key == operations[1].key && operations[1].key != operations[2].key);
        file.write_all(&[1, 2, 3]).unwrap();
        let mut trace = CacheTrace::new(files, false).unwrap();
        let error = (0..4).find_map(|_| trace.next().err()).unwrap().to_string();
        assert!(error.ends_with(":5: the record is incomplete. Copy the file again"), "{error}");
    }

    #[test]
    fn objects_of_a_cdn_come_in_pieces() {
        // Small object: header and body are one item. 200000 bytes: header, 3 x 64 KiB, 3392 bytes.
        let text = "1,small,1,1000,1200,200,-1,-1,60,1,0,x\n1,large,1,200000,200300,300,-1,-1,60,1,0,x\n\
            1,large,1,200000,1300,300,70000,70999,60,1,1,x\n";
        let (mut trace, _files) = trace_of(&[text], |_| {}, false);
        let operations = all(&mut trace);
        let sizes: Vec<u32> = operations.iter().map(|operation| operation.bytes.unwrap()).collect();
        assert_eq!(sizes, [1205, 305, 65_541, 65_541, 65_541, 3397, 305, 65_541]);
        let keys: Vec<u64> = operations.iter().map(|operation| operation.key).collect();
        assert_eq!(keys[1], keys[6], "the header of the same object");
        assert_eq!(keys[3], keys[7], "the range lies in its second piece");
        assert!(operations.iter().all(|operation| operation.kind == OperationKind::Get));
    }

    #[test]
    fn amplification_repeats_each_line_for_other_keys() {
        let (mut trace, _files) = trace_of(&[KV_2024], |settings| settings.amplification = 3, false);
        let operations = all(&mut trace);
        assert_eq!(operations.len(), 15);
        let mut keys: Vec<u64> = operations.iter().map(|operation| operation.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 6);
    }

    /// A cache of any size sees the same share of its working set: keys repeat or are dropped.
    #[test]
    fn a_working_set_is_as_large_as_it_is_to_be() {
        let keys = 20_000_u64;
        let lines: String = (0..keys).map(|key| format!("key{key},SET,{},1,8\n", 100 + key % 1000)).collect();
        let text = format!("key,op,size,op_count,key_size\n{lines}");
        let asked = |wanted: u64| {
            let (mut trace, _files) = trace_of(&[&text], |files| files.working_set_bytes = Some(wanted), false);
            let sizes: std::collections::BTreeMap<u64, u64> =
                all(&mut trace).iter().map(|operation| (operation.key, operation.bytes.unwrap().into())).collect();
            (sizes.values().sum::<u64>() as f64, sizes.len() as u64)
        };
        let (whole, count) = asked(1);
        assert!(count < 10, "{count} keys of {whole} bytes");
        for wanted in [1_000_000, 5_000_000, 130_000_000] {
            let (bytes, count) = asked(wanted);
            let ratio = bytes / wanted as f64;
            // Above the number of keys, the factor is a whole number.
            assert!((0.9..1.6).contains(&ratio), "{wanted}: {bytes} bytes of {count} keys");
        }
        let bad = |files: &mut CacheTraceFiles| files.working_set_bytes = Some(1 << 20);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"key,op,size\na,DELETE,0\n").unwrap();
        let (_, files) = trace_of(&["key,op,size\n"], |_| {}, false);
        let mut settings = CacheTraceFiles {
            files: files.iter().chain([&file]).map(|file| file.path().to_path_buf()).collect(),
            format: CacheTraceFormat::Auto,
            amplification: 1,
            skip_bad_lines: false,
            working_set_bytes: None,
        };
        bad(&mut settings);
        let error = CacheTrace::new(settings, false).err().unwrap().to_string();
        assert!(error.contains("no object with a size"), "{error}");
    }

    #[test]
    fn cache_traces_say_what_they_are_and_block_traces_are_none() {
        let recognize = |text: &str| RowParser::recognize(text.as_bytes());
        for (text, format) in [
            ("0,nz:u:eeW,44,1030,7,set,300", Some(CacheTraceFormat::Twitter)),
            ("op_time,key,key_size,op,op_count,size", Some(CacheTraceFormat::Kvcache)),
            ("aa,GET,87,2,48", Some(CacheTraceFormat::Kvcache)),
            ("1,small,1,1000,1200,200,-1,-1,60,1,0,x", Some(CacheTraceFormat::Cdn)),
            (
                "timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd,TTL,x",
                Some(CacheTraceFormat::Cdn),
            ),
            ("128166372003061629,usr,0,Write,8192,4096,153", None),
            ("419,W,8792731648,16384,1577808144360767", None),
            ("1538323200,12910952,128,0,1063", None),
            ("1,2,W,4,5,6,7,8,9,10,11,12", None),
            ("key,op", None),
            ("", None),
        ] {
            assert_eq!(recognize(text), format, "{text}");
        }
    }

    #[test]
    fn files_follow_each_other_and_an_endless_trace_begins_anew() {
        let (mut trace, _files) = trace_of(&[KV_2024, KV_2024], |_| {}, true);
        let operations: Vec<CacheOperation> = (0..20).map(|_| trace.next().unwrap().unwrap()).collect();
        assert_eq!(operations[..5], operations[15..]);
        assert_eq!(trace.share_done(), None);
        let (mut trace, _files) = trace_of(&["key,op,size\n"], |_| {}, true);
        assert_eq!(trace.next().unwrap(), None, "files without operations end even so");
    }

    #[test]
    fn a_bad_line_is_named_or_counted() {
        let text = format!("{KV_2024}3,cc,24,GET,1,many,0,0,3,4\n3,cc,24,POKE,1,1,0,0,3,4\n3,cc,24,GET,1,1,0,0,3,4\n");
        let (mut trace, _files) = trace_of(&[&text], |_| {}, false);
        let error = (0..6).find_map(|_| trace.next().err()).unwrap().to_string();
        assert!(error.contains(":6:") && error.contains("many"), "{error}");
        let (mut trace, _files) = trace_of(&[&text], |settings| settings.skip_bad_lines = true, false);
        assert_eq!((all(&mut trace).len(), trace.bad_lines()), (6, 2));
        assert_eq!(trace.share_done(), Some(1.0));
    }
}
