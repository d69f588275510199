//! Runs long work on its own thread without the interpreter's lock, and polls for Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use simulate::run::RunProgress;

/// Interval at which the interpreter checks for Ctrl-C.
const LISTEN_EVERY: Duration = Duration::from_millis(50);

/// Runs `work` to its end. Ctrl-C or an error of `tick`, which is called every 50 ms, stops
/// `progress` and is raised when `work` returns.
pub fn stoppable<T: Send>(
    py: Python<'_>,
    progress: &RunProgress,
    mut tick: impl FnMut() -> PyResult<()>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let listener = thread::current();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _wake = WakeOnDrop(&listener, &done);
            // Attach the thread for all of the work, so that each call of a policy is cheaper.
            Python::attach(|py| py.detach(work))
        });
        let mut stopped_by = None;
        while !done.load(Ordering::Acquire) {
            py.detach(|| thread::park_timeout(LISTEN_EVERY));
            if stopped_by.is_none() {
                stopped_by = py.check_signals().and_then(|()| tick()).err();
                if stopped_by.is_some() {
                    progress.stop.store(true, Ordering::Relaxed);
                }
            }
        }
        let result = py.detach(|| worker.join());
        let result = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        stopped_by.map_or(Ok(result), Err)
    })
}

/// Signals on drop that the work has ended, even by a panic.
struct WakeOnDrop<'a>(&'a thread::Thread, &'a AtomicBool);

impl Drop for WakeOnDrop<'_> {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Release);
        self.0.unpark();
    }
}
