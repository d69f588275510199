//! Benchmarks of the transports: an initiator, and the figure beside the machine's own limit.
//!
//! The drive is served by the caller in the same process, on threads whose names it tells, so that their processor time
//! can be measured; nothing of what serves is linked here.

pub mod tcp;
pub mod vfio_user;
pub mod waits;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The threads of this process whose names start so.
fn threads(name: &str) -> impl Iterator<Item = PathBuf> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let is_meant =
        move |task: &PathBuf| std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.starts_with(name));
    tasks.map(|task| task.path()).filter(is_meant)
}

/// Processor time that threads had up to a moment.
struct ThreadTimes<'a> {
    name: &'a str,
    busy: HashMap<PathBuf, Duration>,
}

impl ThreadTimes<'_> {
    /// Of the threads whose names start so, until now.
    fn until_now(name: &str) -> ThreadTimes<'_> {
        let busy = threads(name).map(|thread| {
            let time = busy(&thread);
            (thread, time)
        });
        ThreadTimes {
            name,
            busy: busy.collect(),
        }
    }

    /// What those that are still there have had since. Others that end meanwhile do not count.
    fn since(&self) -> Duration {
        let before = |thread: &PathBuf| self.busy.get(thread).copied().unwrap_or_default();
        let since = |thread: PathBuf| busy(&thread).saturating_sub(before(&thread));
        threads(self.name).map(since).sum()
    }
}

/// Time that a thread had a processor, from the kernel's accounts; zero if it keeps none.
fn busy(thread: &Path) -> Duration {
    let accounts = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let busy_ns = accounts.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(busy_ns.unwrap_or(0))
}
