//! Traces one event in a tracefs instance.
//!
//! ```text
//! mkdir instances/warp-capture-PID -> filter, buffer, enable -> trace_pipe -> lines -> rmdir
//! ```
//!
//! An instance has its own buffers, so other traces on the machine are unaffected and invisible.
//! The kernel counts the events that overflow the buffers. Each capture removes the instances of
//! killed ones.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::CaptureError;

/// Mount points of tracefs on present and older kernels.
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const PREFIX: &str = "warp-capture-";
const READ_BYTES: usize = 256 << 10;

/// Tracefs instance, removed on drop.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    event: &'static str,
    /// Closed before the instance is removed, because the kernel keeps an instance with a reader.
    pipe: Option<File>,
    buffer: Vec<u8>,
    /// Start of an incomplete line.
    pending: Vec<u8>,
}

impl Instance {
    /// Starts to trace an event of the group `block` for these disks (kernel numbers), with this
    /// buffer size per processor, bytes.
    ///
    /// # Errors
    /// The kernel has no tracing or denies access.
    pub fn start(event: &'static str, disks: &[(u32, u32)], buffer_bytes: u64) -> Result<Instance, CaptureError> {
        Instance::start_in(&find_root()?, event, disks, buffer_bytes)
    }

    fn start_in(
        root: &Path,
        event: &'static str,
        disks: &[(u32, u32)],
        buffer_bytes: u64,
    ) -> Result<Instance, CaptureError> {
        if !root.join("events/block").join(event).is_dir() {
            return Err(CaptureError::NoEvent(event));
        }
        let instances = root.join("instances");
        remove_left_over(&instances);
        let path = instances.join(format!("{PREFIX}{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|source| denied(&path, source))?;
        let started = set_up(&path, event, disks, buffer_bytes);
        match started {
            Ok(pipe) => {
                Ok(Instance { path, event, pipe: Some(pipe), buffer: vec![0; READ_BYTES], pending: Vec::new() })
            }
            Err(error) => {
                remove(&path);
                Err(error)
            }
        }
    }

    /// Calls `line` for each new line. Returns false if there were no lines.
    ///
    /// # Errors
    /// The lines cannot be read.
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
    ///
    /// # Errors
    /// The trace cannot be stopped.
    pub fn stop(&self) -> Result<(), CaptureError> {
        set(&enable_file(&self.path, self.event), "0")
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

fn set_up(path: &Path, event: &str, disks: &[(u32, u32)], buffer_bytes: u64) -> Result<File, CaptureError> {
    // All processors share one clock.
    set(&path.join("trace_clock"), "mono")?;
    set(&path.join("buffer_size_kb"), &(buffer_bytes / 1024).max(1).to_string())?;
    let numbers = disks.iter().map(|(major, minor)| format!("dev == {}", (major << 20) | minor));
    let filter = numbers.collect::<Vec<String>>().join(" || ");
    set(&path.join("events/block").join(event).join("filter"), &filter)?;
    let pipe = path.join("trace_pipe");
    let opened = File::options().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(&pipe);
    let opened = opened.map_err(|source| denied(&pipe, source))?;
    set(&enable_file(path, event), "1")?;
    Ok(opened)
}

fn enable_file(instance: &Path, event: &str) -> PathBuf {
    instance.join("events/block").join(event).join("enable")
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
        let error = Instance::start_in(root.path(), "block_rq_issue", &[(259, 0)], 4096).unwrap_err();
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
