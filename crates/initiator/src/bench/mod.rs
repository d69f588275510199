//! Benchmarks of the transports, each beside the limit of the same machine.
//!
//! The caller serves the drive in the same process and names its threads, so that this module can
//! measure their processor time. This module links no server code.

pub mod tcp;
pub mod vfio_user;
pub mod wait_times;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn threads(name: &str) -> impl Iterator<Item = PathBuf> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let is_meant =
        move |task: &PathBuf| std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.starts_with(name));
    tasks.map(|task| task.path()).filter(is_meant)
}

struct ThreadTimes<'a> {
    name: &'a str,
    busy: HashMap<PathBuf, Duration>,
}

impl ThreadTimes<'_> {
    fn until_now(name: &str) -> ThreadTimes<'_> {
        let busy = threads(name).map(|thread| {
            let time = busy(&thread);
            (thread, time)
        });
        ThreadTimes { name, busy: busy.collect() }
    }

    /// Increase since then of the threads that still exist. Threads that ended do not count.
    fn since(&self) -> Duration {
        let before = |thread: &PathBuf| self.busy.get(thread).copied().unwrap_or_default();
        let since = |thread: PathBuf| busy(&thread).saturating_sub(before(&thread));
        threads(self.name).map(since).sum()
    }
}

/// Processor time of a thread from the kernel's statistics, zero if the kernel keeps none.
fn busy(thread: &Path) -> Duration {
    let accounts = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let busy_ns = accounts.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(busy_ns.unwrap_or(0))
}
