//! Traces one event in a tracefs instance.
//!
//! ```text
//! mkdir instances/warp-capture-PID -> filter, buffer, enable -> trace_pipe -> lines -> rmdir
//! dynamic_events <- definition (write hints)                                     -> removal
//! ```
//!
//! An instance has its own buffers, so other traces on the machine are unaffected and invisible.
//! The kernel counts the events that overflow the buffers. Each capture removes the instances of
//! killed ones.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::CaptureError;

/// Mount points of tracefs on present and older kernels.
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const PREFIX: &str = "warp-capture-";
const READ_BYTES: usize = 256 << 10;

/// Group of an event that a capture defines is this prefix and the process.
const GROUP_PREFIX: &str = "warp_capture_";
/// Fields of a bio in the event of hints. The names follow `struct bio` of Linux 6.16 or newer.
const STREAM_FIELD: &str = "stream=bio->bi_write_stream:u8 ";
const HINT_FIELDS: &str = "hint=bio->bi_write_hint:u8 ";
const BIO_FIELDS: &str = "dev=bio->bi_bdev->bd_dev:u32 sector=bio->bi_iter.bi_sector:u64 bytes=bio->bi_iter.bi_size:u32 op=bio->bi_opf:x32 comm=$comm";

#[derive(Clone, Debug)]
pub struct TracedEvent {
    group: String,
    pub name: &'static str,
    /// True if the capture defines the event, from `block:block_bio_queue`.
    is_defined: bool,
}

impl TracedEvent {
    pub fn of_block(name: &'static str) -> TracedEvent {
        TracedEvent { group: "block".to_string(), name, is_defined: false }
    }

    /// Event of the requests with their write hints and streams.
    pub fn with_hints() -> TracedEvent {
        TracedEvent { group: format!("{GROUP_PREFIX}{}", std::process::id()), name: "hints", is_defined: true }
    }

    fn folder(&self, root: &Path) -> PathBuf {
        root.join("events").join(&self.group).join(self.name)
    }

    /// Defines the event. Kernels before 6.16 have no write streams, and those before 6.9 no hints.
    fn define(&self, root: &Path) -> Result<(), CaptureError> {
        let defined = [STREAM_FIELD, ""].iter().any(|stream| {
            let (group, name) = (&self.group, self.name);
            let line = format!("t:{group}/{name} block_bio_queue {HINT_FIELDS}{stream}{BIO_FIELDS}\n");
            append(root, &line).is_ok()
        });
        if defined { Ok(()) } else { Err(CaptureError::NoHints) }
    }

    fn remove(&self, root: &Path) {
        if self.is_defined {
            drop(append(root, &format!("-:{}/{}\n", self.group, self.name)));
        }
    }
}

fn append(root: &Path, line: &str) -> io::Result<()> {
    File::options().append(true).open(root.join("dynamic_events"))?.write_all(line.as_bytes())
}

/// Tracefs instance, removed on drop.
#[derive(Debug)]
pub struct Instance {
    root: PathBuf,
    path: PathBuf,
    event: TracedEvent,
    /// Closed before the instance is removed, because the kernel keeps an instance with a reader.
    pipe: Option<File>,
    buffer: Vec<u8>,
    /// Start of an incomplete line.
    pending: Vec<u8>,
}

impl Instance {
    /// Starts to trace an event for these disks (kernel numbers), with this
    /// buffer size per processor, bytes.
    pub fn start(event: TracedEvent, disks: &[(u32, u32)], buffer_bytes: u64) -> Result<Instance, CaptureError> {
        Instance::start_in(&find_root()?, event, disks, buffer_bytes)
    }

    fn start_in(
        root: &Path,
        event: TracedEvent,
        disks: &[(u32, u32)],
        buffer_bytes: u64,
    ) -> Result<Instance, CaptureError> {
        let instances = root.join("instances");
        remove_left_over(&instances);
        remove_left_over_events(root);
        if event.is_defined {
            event.define(root)?;
        } else if !event.folder(root).is_dir() {
            return Err(CaptureError::NoEvent(event.name));
        }
        let path = instances.join(format!("{PREFIX}{}", std::process::id()));
        let root = root.to_path_buf();
        let buffer = vec![0; READ_BYTES];
        let mut instance = Instance { root, path, event, pipe: None, buffer, pending: Vec::new() };
        // From here on, a failed start removes the instance and the event.
        let path = &instance.path;
        std::fs::create_dir(path).map_err(|source| denied(path, source))?;
        instance.pipe = Some(set_up(path, &instance.event, disks, buffer_bytes)?);
        Ok(instance)
    }

    /// Calls `line` for each new line. Returns false if there were no lines.
    pub fn read_lines(&mut self, mut line: impl FnMut(&str)) -> Result<bool, CaptureError> {
        let pipe = self.pipe.as_mut().expect("it is closed at the end");
        let bytes = match pipe.read(&mut self.buffer) {
            Ok(bytes) => bytes,
            Err(error) if [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted].contains(&error.kind()) => 0,
            Err(source) => return Err(failed(&self.path.join("trace_pipe"), source)),
        };
        self.pending.extend_from_slice(&self.buffer[..bytes]);
        let end = self.pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for text in self.pending[..end].split(|byte| *byte == b'\n') {
            line(&String::from_utf8_lossy(text));
        }
        self.pending.drain(..end);
        Ok(bytes > 0)
    }

    /// Stops the trace. Earlier events can still be read.
    pub fn stop(&self) -> Result<(), CaptureError> {
        set(&self.event.folder(&self.path).join("enable"), "0")
    }

    pub fn dropped_events(&self) -> u64 {
        let processors = std::fs::read_dir(self.path.join("per_cpu")).into_iter().flatten().flatten();
        let lost_of = |stats: String| {
            let lost = stats.lines().filter_map(|line| line.split_once(": "));
            let lost = lost.filter(|(name, _)| ["overrun", "dropped events"].contains(name));
            lost.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum::<u64>()
        };
        let stats = processors.filter_map(|processor| std::fs::read_to_string(processor.path().join("stats")).ok());
        stats.map(lost_of).sum()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.pipe = None;
        remove(&self.path);
        self.event.remove(&self.root);
    }
}

fn remove(path: &Path) {
    drop(std::fs::write(path.join("tracing_on"), "0"));
    drop(std::fs::remove_dir(path));
}

/// Removes instances of captures that no longer run.
fn remove_left_over(instances: &Path) {
    for entry in std::fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            remove(&entry.path());
        }
    }
}

/// Removes events of captures that no longer run.
fn remove_left_over_events(root: &Path) {
    for entry in std::fs::read_dir(root.join("events")).into_iter().flatten().flatten() {
        let group = entry.file_name().to_string_lossy().into_owned();
        let process = group.strip_prefix(GROUP_PREFIX);
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            TracedEvent { group, ..TracedEvent::with_hints() }.remove(root);
        }
    }
}

pub fn find_root() -> Result<PathBuf, CaptureError> {
    let roots = ROOTS.map(PathBuf::from);
    let found = roots.iter().find(|root| root.join("instances").is_dir());
    // A folder without permission looks empty.
    let closed = |root: &&PathBuf| {
        let opened = std::fs::read_dir(root);
        opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    match (found, roots.iter().find(closed)) {
        (Some(root), _) => Ok(root.clone()),
        (None, Some(root)) => Err(denied(root, io::ErrorKind::PermissionDenied.into())),
        (None, None) => Err(CaptureError::NoTracing),
    }
}

fn set_up(path: &Path, event: &TracedEvent, disks: &[(u32, u32)], buffer_bytes: u64) -> Result<File, CaptureError> {
    // All processors share one clock.
    set(&path.join("trace_clock"), "mono")?;
    set(&path.join("buffer_size_kb"), &(buffer_bytes / 1024).max(1).to_string())?;
    let numbers = disks.iter().map(|(major, minor)| format!("dev == {}", (major << 20) | minor));
    let filter = numbers.collect::<Vec<String>>().join(" || ");
    set(&event.folder(path).join("filter"), &filter)?;
    let pipe = path.join("trace_pipe");
    let opened = File::options().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(&pipe);
    let opened = opened.map_err(|source| denied(&pipe, source))?;
    set(&event.folder(path).join("enable"), "1")?;
    Ok(opened)
}

fn set(file: &Path, value: &str) -> Result<(), CaptureError> {
    std::fs::write(file, value).map_err(|source| denied(file, source))
}

fn denied(path: &Path, source: io::Error) -> CaptureError {
    if source.kind() == io::ErrorKind::PermissionDenied {
        return CaptureError::NotAllowed(path.to_path_buf());
    }
    failed(path, source)
}

fn failed(path: &Path, source: io::Error) -> CaptureError {
    CaptureError::Io { path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_the_event_is_said() {
        let root = tempfile::tempdir().expect("a folder");
        let error =
            Instance::start_in(root.path(), TracedEvent::of_block("block_rq_issue"), &[(259, 0)], 4096).unwrap_err();
        assert!(error.to_string().contains("has no event block:block_rq_issue"), "{error}");
    }

    #[test]
    fn instances_of_processes_that_are_gone_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (gone, here, other) = (
            folder.path().join("warp-capture-999999999"),
            folder.path().join(format!("warp-capture-{}", std::process::id())),
            folder.path().join("other"),
        );
        for path in [&gone, &here, &other] {
            std::fs::create_dir(path).expect("a folder");
        }
        remove_left_over(folder.path());
        // The `tracing_on` file of the removal remains in a plain folder.
        let stopped = [&gone, &here, &other].map(|path| path.join("tracing_on").exists());
        assert_eq!(stopped, [true, false, false]);
    }
}
