//! Long work beside Python: on a thread of its own without the interpreter's lock, while the calling thread listens for Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use simulate::run::Progress;

/// How often the interpreter is asked whether Ctrl-C was pressed.
const LISTEN_EVERY: Duration = Duration::from_millis(50);

/// Does `work` to its end, or until Ctrl-C, which stops `progress` and is then raised; `tick` is called every 50 ms, and an error of
/// it stops the work too.
pub fn stoppable<T: Send>(
    py: Python<'_>,
    progress: &Progress,
    mut tick: impl FnMut() -> PyResult<()>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let listener = thread::current();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _wake = Wake(&listener, &done);
            // The interpreter knows this thread from now on: policies that it calls need not be introduced each time.
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

/// Says that the work is done, even if it panics.
struct Wake<'a>(&'a thread::Thread, &'a AtomicBool);

impl Drop for Wake<'_> {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Release);
        self.0.unpark();
    }
}
