//! Runs cells with a progress bar and stops them at Ctrl-C.

use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use analysis::interval::Intervals;
use experiment::LabError;
use indicatif::{ProgressBar, ProgressStyle};
use simulate::run::{ExecutionOptions, ProgressObserver, RunPlan, RunProgress, RunResult};

/// Runs longer than this show a progress bar.
const QUIET: Duration = Duration::from_secs(2);
/// Interval at which the progress bar is drawn.
const REDRAW_EVERY: Duration = Duration::from_millis(50);

/// Progress of the current run, set by the first run.
static RUNNING: OnceLock<Arc<RunProgress>> = OnceLock::new();

/// Progress that Ctrl-C stops. A second Ctrl-C ends the program immediately.
pub fn stoppable() -> Arc<RunProgress> {
    listen();
    Arc::clone(RUNNING.get_or_init(Arc::default))
}

/// Installs the Ctrl-C handler. Before the first run, for example while a workload is read, the
/// handler prints a sentence and ends the program.
pub fn listen() {
    let installed = ctrlc::set_handler(move || {
        let Some(running) = RUNNING.get() else {
            crate::output::print_error("stopped before the first run");
            std::process::exit(i32::from(crate::STOPPED));
        };
        if running.stop.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(crate::STOPPED));
        }
        crate::output::print_error("stopping. Press Ctrl-C again to end without results");
    });
    // Installation fails only if a handler is installed already. Ctrl-C then stops the run through
    // that handler.
    drop(installed);
}

/// Runs `work` and shows its progress in a bar on standard error.
pub fn with_bar<T: Send>(progress: &RunProgress, cells: usize, work: impl FnOnce() -> T + Send) -> T {
    let counters = [&progress.expected, &progress.completed, &progress.cells_completed, &progress.cells_expected];
    let before = counters.map(|counter| counter.load(Ordering::Relaxed));
    std::thread::scope(|scope| {
        // The worker drops its end when it is done, also by a panic.
        let (working, ended) = mpsc::channel::<()>();
        let worker = scope.spawn(move || {
            let _working = working;
            work()
        });
        let outlasts = |time| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
        if std::io::stderr().is_terminal() && outlasts(QUIET) {
            let bar = new_bar(QUIET);
            while outlasts(REDRAW_EVERY) {
                let now = counters.map(|counter| counter.load(Ordering::Relaxed));
                bar.set_length(now[0] - before[0]);
                bar.set_position(now[1] - before[1]);
                // `warp whatif` learns the number of ensemble runs only from its first runs.
                let all = (now[3] - before[3]).max(cells as u64);
                bar.set_message(format!("{} of {all} runs done", now[2] - before[2]));
            }
            bar.finish_and_clear();
        }
        match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn new_bar(elapsed: Duration) -> ProgressBar {
    let template = "{bar:30} {percent:>3} %  {msg}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is valid").progress_chars("=> ");
    ProgressBar::new(0).with_style(style).with_elapsed(elapsed)
}

/// Runs plans. Returns the results of the profiles, the results of their ensembles, and true if
/// Ctrl-C stopped the runs.
pub fn run_cells(
    plans: &[RunPlan],
    options: ExecutionOptions<'_>,
    progress: &RunProgress,
) -> Result<(Vec<RunResult>, Intervals, bool), LabError> {
    let work = || simulate::run::run_all_with(plans, options, progress);
    let results = with_bar(progress, plans.len(), work)?;
    let (results, intervals) = Intervals::split(results);
    Ok((results, intervals, progress.should_stop()))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_end_of_the_work_is_the_end_of_the_wait() {
        let fastest = (0..20).map(|number| {
            let begun = Instant::now();
            assert_eq!(with_bar(&RunProgress::default(), 1, || number), number);
            begun.elapsed()
        });
        assert!(fastest.min() < Some(REDRAW_EVERY / 2));
    }
}
