//! Running cells with a progress bar and Ctrl-C.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lab::LabError;
use lab::run::{CellResult, Prepared, Progress, Watch};

/// A run shows a bar when it takes longer than this.
const QUIET: Duration = Duration::from_secs(2);

/// Progress that Ctrl-C stops. The second Ctrl-C ends the program at once.
pub fn stoppable() -> Arc<Progress> {
    let progress = Arc::new(Progress::default());
    let handler = Arc::clone(&progress);
    let installed = ctrlc::set_handler(move || {
        if handler.stop.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(crate::STOPPED));
        }
        eprintln!("\nwarp: stopping; press Ctrl-C again to leave without results");
    });
    // Only fails when a handler is there already, in which case Ctrl-C works.
    drop(installed);
    progress
}

/// Runs `work` while a bar on standard error follows its progress.
pub fn with_bar<T: Send>(progress: &Progress, host_bytes: u64, cells: usize, work: impl FnOnce() -> T + Send) -> T {
    let begun = Instant::now();
    let offset = progress.host_bytes.load(Ordering::Relaxed);
    let cells_offset = progress.cells.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let worker = scope.spawn(work);
        let mut bar: Option<ProgressBar> = None;
        while !worker.is_finished() {
            std::thread::sleep(Duration::from_millis(50));
            if bar.is_none() && begun.elapsed() > QUIET && std::io::stderr().is_terminal() {
                bar = Some(new_bar(host_bytes, begun.elapsed()));
            }
            if let Some(bar) = &bar {
                bar.set_position(progress.host_bytes.load(Ordering::Relaxed) - offset);
                let done = progress.cells.load(Ordering::Relaxed) - cells_offset;
                bar.set_message(format!("{done} of {cells} runs done"));
            }
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn new_bar(host_bytes: u64, elapsed: Duration) -> ProgressBar {
    let template = "{bar:30} {percent:>3} %  {binary_bytes} of {binary_total_bytes} written, {msg}, {eta} left";
    let style = ProgressStyle::with_template(template)
        .expect("the template is valid")
        .progress_chars("=> ");
    ProgressBar::new(host_bytes).with_style(style).with_elapsed(elapsed)
}

/// Runs cells and says whether they were stopped.
pub fn run_cells(
    prepared: &[Prepared],
    gc_log: bool,
    progress: &Progress,
) -> Result<(Vec<CellResult>, bool), LabError> {
    let host_bytes = prepared.iter().map(|cell| cell.host_bytes).sum();
    let budget = lab::run::memory_available();
    let work = || lab::run::run_all(prepared, gc_log, budget, progress);
    let results = with_bar(progress, host_bytes, prepared.len(), work)?;
    Ok((results, progress.stopped()))
}
