//! Records the disk requests of programs: the kernel's block events as a trace with thread and
//! file.
//!
//! ```text
//! disks (sysfs) -> tracefs instance -> events -> pending requests \
//! file systems of the disks -> file maps, about once a second       > lines of a capture
//! ```
//!
//! The kernel reports the thread of a request. The capture finds the file by location. It maps the
//! files of the disk's file systems at the start, every second and at the end. The file of a
//! request is taken from the next map, or else from the previous one. Data in neither map
//! (metadata, the journal, files that existed only between two maps) has no file. Write-back is
//! attributed to the thread that issues it. All kernel workers count as `kworker`.
//!
//! Memory is bounded by the kernel's buffers, a second of requests and two maps. Events that
//! overflow the buffers are lost and counted. The kernel's own events contain no write
//! hints, so a capture of hints defines an event. Passthrough commands have no location. The capture itself sends only the writes of `syncfs` to
//! the disk.

pub mod events;
mod files;
mod tracefs;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use events::WriteHint;
use events::{DiskOperation, TraceEvent};
use files::{FileMap, Mount};
use tracefs::{Instance, TracedEvent};

pub const HEADER: &str = "time,process,file,operation,offset,length";
/// Suffix of the first line with several disks. Each line then ends with the disk.
const DISK_COLUMN: &str = ",disk";

/// Interval of the file maps, limited to a tenth of the time.
const MAP_EVERY: Duration = Duration::from_secs(1);
const MAP_SHARE: u32 = 10;
const PENDING_MAX: usize = 1 << 20;
/// Time without an event after which the final flush is considered complete.
const QUIET: Duration = Duration::from_millis(200);

#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("cannot access {} ({source})", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "this kernel has no tracing at /sys/kernel/tracing, so requests cannot be captured. Mount it with `mount -t \
         tracefs nodev /sys/kernel/tracing`, or in a container capture on the host. Or record with blktrace elsewhere \
         and give its files to `warp whatif`"
    )]
    NoTracing,
    #[error("only root may trace requests through {}. Run the command with sudo", .0.display())]
    NotAllowed(PathBuf),
    #[error(
        "this kernel has no event block:{0} (it was built without CONFIG_BLK_DEV_IO_TRACE or block events), so \
         requests cannot be captured. Record on another machine"
    )]
    NoEvent(&'static str),
    #[error(
        "this kernel does not show write hints. It needs Linux 6.9 or newer with CONFIG_PROBE_EVENTS_BTF_ARGS. Use \
         `warp guest` for a kernel that has them"
    )]
    NoHints,
    #[error("{} is not a block device. Give a disk or a partition, such as /dev/nvme0n1", .0.display())]
    NoDisk(PathBuf),
    #[error("{0} was given twice. Give each disk once, and the whole disk instead of several partitions")]
    Twice(String),
}

/// Checks that the kernel's tracing is usable.
pub fn check() -> Result<(), CaptureError> {
    tracefs::find_root().map(drop)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Name of the whole disk, such as `nvme0n1`.
    pub name: String,
    /// Major and minor numbers of the disk and its partitions.
    numbers: Vec<(u32, u32)>,
    /// Captured range, first byte and first byte after it.
    range: (u64, u64),
    /// Number of the captured partition, `None` for the whole disk.
    partition: Option<(u32, u32)>,
    /// The kernel sends no requests to the disk itself: an array, a mapped disk, or several paths to
    /// a disk, each a hidden disk without a number.
    is_stacked: bool,
}

impl Disk {
    /// Opens a disk by its device file.
    pub fn open(device: &Path) -> Result<Disk, CaptureError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| CaptureError::Io { path, source }
        };
        let metadata = std::fs::metadata(device).map_err(failed(device))?;
        if !metadata.file_type().is_block_device() {
            return Err(CaptureError::NoDisk(device.to_path_buf()));
        }
        let number = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
        let link = PathBuf::from(format!("/sys/dev/block/{}:{}", number.0, number.1));
        let entry = link.canonicalize().map_err(failed(&link))?;
        let is_partition = entry.join("partition").exists();
        let whole = if is_partition { entry.parent().unwrap_or(&entry) } else { &entry };
        let start = if is_partition { sectors_in(&entry.join("start")) } else { 0 };
        let mut numbers: Vec<(u32, u32)> = number_in(whole).into_iter().collect();
        for part in std::fs::read_dir(whole).into_iter().flatten().flatten() {
            if part.path().join("partition").exists() {
                numbers.extend(number_in(&part.path()));
            }
        }
        let parent = whole.join("device").canonicalize().unwrap_or_default();
        let parent = parent.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Disk {
            name: whole.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            numbers,
            range: (start, start + sectors_in(&entry.join("size"))),
            partition: is_partition.then_some(number),
            is_stacked: parent.starts_with("nvme-subsys") || ["md", "dm"].iter().any(|kind| whole.join(kind).is_dir()),
        })
    }

    /// File systems whose files are mapped.
    fn mounts(&self) -> Vec<Mount> {
        let wanted = |mount: &Mount| match self.partition {
            Some(partition) => mount.number == partition,
            None => self.numbers.contains(&mount.number),
        };
        files::mounts().into_iter().filter(wanted).collect()
    }
}

/// Disks of this machine with hardware of their own: no arrays, mapped disks and paths to a disk.
pub fn physical_disks() -> Result<Vec<Disk>, CaptureError> {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_hidden = |entry: &Path| std::fs::read_to_string(entry.join("hidden")).is_ok_and(|text| text.trim() == "1");
    let mut found: Vec<PathBuf> = entries.filter(|entry| entry.join("device").exists() && !is_hidden(entry)).collect();
    found.sort();
    let device = |entry: &PathBuf| Path::new("/dev").join(entry.file_name().unwrap_or_default());
    found.iter().map(|entry| Disk::open(&device(entry))).collect()
}

/// Name of the traced event. The default event follows merging. Stacked disks need the event before
/// it, because only the disks below them get requests.
fn event(disks: &[Disk]) -> &'static str {
    if disks.iter().any(|disk| disk.is_stacked) { "block_bio_queue" } else { "block_rq_issue" }
}

/// Converts a number of sectors in a sysfs file to bytes.
fn sectors_in(file: &Path) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.trim().parse::<u64>().unwrap_or(0) * 512
}

fn number_in(entry: &Path) -> Option<(u32, u32)> {
    files::parse_number(std::fs::read_to_string(entry.join("dev")).ok()?.trim())
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub requests: u64,
    pub bytes_written: u64,
    /// Bytes of write requests to known files.
    pub bytes_of_files: u64,
    /// Events lost because the kernel's buffers were full.
    pub lost: u64,
    /// Kernel lines in an unknown format.
    pub unknown: u64,
    /// Reason why files are unknown, if any.
    pub without_files: Option<String>,
    /// Written bytes by hint, in a capture with hints.
    pub hints: BTreeMap<HintedWrites, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HintedWrites {
    pub thread: String,
    /// Name of the file with `#` for each number. Empty for metadata and unknown files.
    pub file_kind: String,
    pub hint: WriteHint,
}

/// Maximum entries of [`Summary::hints`]. Further kinds of files count as [`OTHER_FILES`].
const HINTED_MAX: usize = 4096;
const OTHER_FILES: &str = "(other files)";

impl Summary {
    fn add_hint(&mut self, thread: &str, file: &str, hint: WriteHint, bytes: u64) {
        let mut kind = Vec::new();
        base::file_kind(file.as_bytes(), &mut kind);
        let file_kind = String::from_utf8_lossy(&kind).into_owned();
        let mut key = HintedWrites { thread: thread.to_string(), file_kind, hint };
        if self.hints.len() >= HINTED_MAX && !self.hints.contains_key(&key) {
            key.file_kind = OTHER_FILES.to_string();
        }
        *self.hints.entry(key).or_default() += bytes;
    }
}

#[derive(Clone, Debug)]
struct PendingRequest {
    disk: usize,
    time_us: u64,
    thread: String,
    operation: DiskOperation,
    offset_bytes: u64,
    bytes: u64,
    hint: Option<WriteHint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureContents {
    /// Requests as the drive gets them.
    Requests,
    /// Requests before merging, and the write hints in [`Summary::hints`].
    Hints,
}

pub struct BlockCapture<W> {
    instance: Instance,
    event: &'static str,
    contents: CaptureContents,
    recorder: TraceLineWriter<W>,
    /// End of the last mapping of files, and its duration.
    mapped: Instant,
    mapping: Duration,
}

impl<W: Write> BlockCapture<W> {
    /// Starts a capture with this buffer size per processor, bytes. With several disks, a column
    /// names the disk.
    ///
    /// # Errors
    /// The kernel has no tracing or denies access, a disk is given twice, or `out` cannot be
    /// written.
    pub fn start(
        disks: Vec<Disk>,
        contents: CaptureContents,
        out: W,
        buffer_bytes: u64,
    ) -> Result<BlockCapture<W>, CaptureError> {
        for (place, disk) in disks.iter().enumerate() {
            if disks[..place].iter().any(|other| other.name == disk.name) {
                return Err(CaptureError::Twice(disk.name.clone()));
            }
        }
        let numbers: Vec<(u32, u32)> = disks.iter().flat_map(|disk| disk.numbers.iter().copied()).collect();
        let traced = match contents {
            CaptureContents::Requests => TracedEvent::of_block(event(&disks)),
            CaptureContents::Hints => TracedEvent::with_hints(),
        };
        let event = traced.name;
        let instance = Instance::start(traced, &numbers, buffer_bytes)?;
        let recorder = TraceLineWriter::new(out, disks)?;
        let mut capture =
            BlockCapture { instance, event, contents, recorder, mapped: Instant::now(), mapping: Duration::ZERO };
        capture.map_files()?;
        Ok(capture)
    }

    /// Reads new events. Returns false if there were no events.
    pub fn poll(&mut self) -> Result<bool, CaptureError> {
        let (recorder, event) = (&mut self.recorder, self.event);
        let parse = match self.contents {
            CaptureContents::Requests => events::parse,
            CaptureContents::Hints => events::parse_hints,
        };
        let has_events = self.instance.read_lines(|line| recorder.take(parse(line, event)))?;
        let is_due = self.mapped.elapsed() >= MAP_EVERY.max(self.mapping * MAP_SHARE);
        if is_due || self.recorder.pending.len() >= PENDING_MAX {
            self.map_files()?;
        }
        Ok(has_events)
    }

    /// Flushes the file systems, records the resulting requests and ends the capture.
    pub fn finish(mut self) -> Result<(Summary, W), CaptureError> {
        for recorded in &self.recorder.disks {
            for mount in recorded.disk.mounts() {
                mount.synchronise();
            }
        }
        let mut last = Instant::now();
        while last.elapsed() < QUIET {
            if self.poll()? {
                last = Instant::now();
            }
            std::thread::sleep(QUIET / 20);
        }
        self.instance.stop()?;
        while self.poll()? {}
        self.map_files()?;
        self.recorder.summary.lost = self.instance.dropped_events();
        Ok((self.recorder.summary, self.recorder.out))
    }

    fn map_files(&mut self) -> Result<(), CaptureError> {
        let begun = Instant::now();
        let mounts: Vec<Vec<Mount>> = self.recorder.disks.iter().map(|recorded| recorded.disk.mounts()).collect();
        // Names of files then begin with the mount point.
        let are_several = mounts.iter().flatten().count() > 1;
        let mut maps = Vec::with_capacity(mounts.len());
        for mounts in &mounts {
            maps.push(FileMap::from_mounts(mounts, are_several).unwrap_or_else(|error| {
                self.recorder.summary.without_files = Some(error.to_string());
                FileMap::default()
            }));
        }
        self.mapping = begun.elapsed();
        self.mapped = Instant::now();
        self.recorder.write_pending(maps)
    }
}

struct CapturedDisk {
    disk: Disk,
    before: FileMap,
}

struct TraceLineWriter<W> {
    out: W,
    disks: Vec<CapturedDisk>,
    pending: Vec<PendingRequest>,
    began_us: Option<u64>,
    names: ThreadNames,
    summary: Summary,
}

impl<W: Write> TraceLineWriter<W> {
    fn new(mut out: W, disks: Vec<Disk>) -> Result<TraceLineWriter<W>, CaptureError> {
        let column = if disks.len() > 1 { DISK_COLUMN } else { "" };
        writeln!(out, "{HEADER}{column}").map_err(unwritten)?;
        let disks = disks.into_iter().map(|disk| CapturedDisk { disk, before: FileMap::default() });
        Ok(TraceLineWriter {
            out,
            disks: disks.collect(),
            pending: Vec::new(),
            began_us: None,
            names: ThreadNames::default(),
            summary: Summary::default(),
        })
    }

    fn take(&mut self, event: TraceEvent<'_>) {
        let request = match event {
            TraceEvent::Request(request) => request,
            TraceEvent::Nothing => return,
            TraceEvent::Unknown => {
                self.summary.unknown += 1;
                return;
            }
        };
        let has_number = |recorded: &CapturedDisk| recorded.disk.numbers.contains(&request.disk);
        let Some(disk) = self.disks.iter().position(has_number) else {
            return;
        };
        let (first, end) = self.disks[disk].disk.range;
        if (first..end).contains(&request.offset_bytes) {
            self.pending.push(PendingRequest {
                disk,
                time_us: request.time_us,
                thread: self.names.of(request.thread),
                operation: request.operation,
                offset_bytes: request.offset_bytes,
                bytes: request.bytes,
                hint: request.hint,
            });
        }
    }

    /// Writes pending requests with the files of these maps (one per disk) or of the previous ones.
    fn write_pending(&mut self, maps: Vec<FileMap>) -> Result<(), CaptureError> {
        let are_several = self.disks.len() > 1;
        for request in self.pending.drain(..) {
            let began = *self.began_us.get_or_insert(request.time_us);
            let since = request.time_us.saturating_sub(began);
            let recorded = &self.disks[request.disk];
            let file = maps[request.disk].find(request.offset_bytes);
            let file = file.or_else(|| recorded.before.find(request.offset_bytes));
            let (seconds, micros) = (since / 1_000_000, since % 1_000_000);
            let (letter, at, bytes) = (request.operation.letter(), request.offset_bytes, request.bytes);
            let (thread, name) = (&request.thread, file.unwrap_or_default());
            write!(self.out, "{seconds}.{micros:06},{thread},{name},{letter},{at},{bytes}").map_err(unwritten)?;
            if are_several {
                write!(self.out, ",{}", recorded.disk.name).map_err(unwritten)?;
            }
            self.out.write_all(b"\n").map_err(unwritten)?;
            self.summary.requests += 1;
            if request.operation == DiskOperation::Write {
                self.summary.bytes_written += bytes;
                self.summary.bytes_of_files += if file.is_some() { bytes } else { 0 };
                if let Some(hint) = request.hint {
                    self.summary.add_hint(thread, name, hint, bytes);
                }
            }
        }
        for (recorded, map) in self.disks.iter_mut().zip(maps) {
            recorded.before = map;
        }
        Ok(())
    }
}

fn unwritten(source: io::Error) -> CaptureError {
    CaptureError::Io { path: PathBuf::from("the capture"), source }
}

/// Thread names for captures, without characters that end a column.
#[derive(Debug, Default)]
struct ThreadNames {
    /// Names of io_uring workers, with the names of the threads they work for.
    workers: BTreeMap<String, String>,
}

impl ThreadNames {
    /// Returns the name for a capture. All kernel workers share one name. An io_uring worker
    /// (`iou-wrk-697`, `iou-sqp-697`) gets the name of its thread.
    fn of(&mut self, name: &str) -> String {
        if name.starts_with("kworker/") {
            return "kworker".to_string();
        }
        let worker = name.strip_prefix("iou-wrk-").or_else(|| name.strip_prefix("iou-sqp-"));
        let Some(thread) = worker.and_then(|thread| thread.parse::<u32>().ok()) else {
            return files::escaped(name);
        };
        let known = self.workers.entry(name.to_string()).or_insert_with(|| {
            let found = std::fs::read_to_string(format!("/proc/{thread}/comm"));
            // The thread may have ended.
            found.map_or_else(|_| files::escaped(name), |found| files::escaped(found.trim_end()))
        });
        known.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(name: &str, minor: u32) -> Disk {
        Disk {
            name: name.to_string(),
            numbers: vec![(259, minor)],
            range: (0, 1 << 30),
            partition: None,
            is_stacked: false,
        }
    }

    #[test]
    fn several_disks_have_a_column_and_files_of_their_own() {
        let disks = vec![disk("nvme0n1", 0), disk("nvme0n2", 3)];
        let mut recorder = TraceLineWriter::new(Vec::new(), disks).expect("memory");
        for number in ["259,3", "259,0", "259,7"] {
            let line = format!("x-1 [000] ..... 10.000000: block_rq_issue: {number} WS 4096 () 0 + 8 none,0,0 [fio]");
            recorder.take(events::parse(&line, "block_rq_issue"));
        }
        let map = |name: &str| FileMap::new([(name.to_string(), vec![(0, 4096)])]);
        recorder.write_pending(vec![map("data"), map("log")]).expect("memory");
        let text = String::from_utf8(recorder.out).expect("text");
        let wanted = format!("{HEADER},disk\n0.000000,fio,log,W,0,4096,nvme0n2\n0.000000,fio,data,W,0,4096,nvme0n1\n");
        assert_eq!(text, wanted);
    }

    #[test]
    fn requests_are_of_the_file_that_is_there_next_or_was_before() {
        let mut recorder = TraceLineWriter::new(Vec::new(), vec![disk("nvme0n1", 0)]).expect("memory");
        let head = "x-1 [000] ..... 10.000000: block_rq_issue: 259,0";
        let issue = |recorder: &mut TraceLineWriter<Vec<u8>>, text: &str| {
            let line = format!("{head} {text}");
            recorder.take(events::parse(&line, "block_rq_issue"));
        };
        let map = |files: &[(&str, u64, u64)]| {
            FileMap::new(files.iter().map(|(name, from, to)| (name.to_string(), vec![(*from, *to)])))
        };
        recorder.write_pending(vec![map(&[("old", 0, 4096), ("a,b", 8192, 16384)])]).expect("memory");
        issue(&mut recorder, "WS 4096 () 0 + 8 none,0,0 [kworker/u4:1]");
        issue(&mut recorder, "W 4096 () 16 + 8 none,0,0 [fio]");
        issue(&mut recorder, "D 4096 () 64 + 8 none,0,0 [fio]");
        issue(&mut recorder, "W 512 () 2097152 + 1 none,0,0 [beyond]");
        issue(&mut recorder, "what is this");
        recorder.write_pending(vec![map(&[("new", 8192, 12288)])]).expect("memory");
        let text = String::from_utf8(recorder.out).expect("text");
        let wanted = format!(
            "{HEADER}\n0.000000,kworker,old,W,0,4096\n0.000000,fio,new,W,8192,4096\n0.000000,fio,,D,32768,4096\n"
        );
        assert_eq!(text, wanted);
        let summary =
            Summary { requests: 3, bytes_written: 8192, bytes_of_files: 8192, unknown: 1, ..Summary::default() };
        assert_eq!(recorder.summary, summary);
    }

    #[test]
    fn workers_are_whom_they_work_for() {
        let own = std::fs::read_to_string(format!("/proc/{}/comm", std::process::id())).expect("a name");
        let mut names = ThreadNames::default();
        assert_eq!(names.of(&format!("iou-wrk-{}", std::process::id())), files::escaped(own.trim_end()));
        let plain =
            ["kworker/u8:3-events", "iou-wrk-x", "iou-sqp-4294967295", "rocksdb:low0"].map(|name| names.of(name));
        assert_eq!(plain, ["kworker", "iou-wrk-x", "iou-sqp-4294967295", "rocksdb:low0"]);
    }

    #[test]
    fn what_is_no_disk_is_refused() {
        let refused = |path: &str| Disk::open(Path::new(path)).unwrap_err().to_string();
        assert!(refused("/dev/null").starts_with("/dev/null is not a block device. Give a disk"));
        assert!(refused("/dev/no_such_disk").starts_with("cannot access /dev/no_such_disk (No such file"));
    }
}
