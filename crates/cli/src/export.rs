//! `warp export`: writes a workload as fio iologs for replay on a real drive.

use std::io;
use std::path::Path;

use experiment::{Experiment, LabError, RunChange, RunOptions, RunOverrides, ScaleChoice};
use simulate::run::{ProgressObserver, RunProgress};
use workload::trace::{self, Arrival, ExportSettings, ExportSource, ExportSummary, IologVersion, TimedSource};
use workload::{IoRequest, RequestSource, WorkloadError};

use crate::arguments::ExportArgs;
use crate::execute;
use crate::output;
use crate::{ExitOutcome, bad_option, print};

pub fn export(command: &ExportArgs) -> Result<ExitOutcome, LabError> {
    let experiment = Experiment::from_workload(&command.workload, &command.device);
    let selection = RunOverrides {
        change: RunChange::from_settings(&command.columns.overrides(&command.workload, &command.set)?),
        capacity_bytes: command.capacity,
        run: RunOptions {
            scale: command.capacity.is_none().then_some(ScaleChoice::Fixed(command.scale)),
            timed: Some(false),
            // The number of requests bounds an endless workload.
            drive_writes: command.requests.map(|_| 1.0),
            ..RunOptions::default()
        },
        ..RunOverrides::default()
    };
    let plans = simulate::run::prepare(experiment.select(&selection)?.cells)?;
    let to_standard_output = output::is_standard_output(&command.to);
    if command.per_placement && to_standard_output {
        return Err(bad_option(
            "--per-placement",
            "cannot write to standard output, because each placement identifier has its own file. Give a folder",
        ));
    } else if command.per_placement {
        output::check(&[], Some(&command.to), false)?;
    } else if to_standard_output {
        // Standard output needs no check and receives the iolog as it is made.
    } else if command.to.is_dir() {
        let to = command.to.display().to_string();
        return Err(bad_option(&to, "is a folder. Give a file, or --per-placement"));
    } else {
        output::check_file(&command.to)?;
    }
    let progress = execute::stoppable();
    let recorded = match command.iolog_version {
        2 => None,
        _ => plans[0]
            .recorded_source()
            .map_err(|error| bad_option("--iolog-version", format!("version 3 has recorded times, but {error}")))?,
    };
    let has_times = recorded.is_some();
    let settings = ExportSettings {
        file: command.file.clone(),
        version: match command.iolog_version {
            2 => IologVersion::Two,
            _ => IologVersion::Three,
        },
        requests_max: command.requests,
        ..ExportSettings::default()
    };
    let (mut with_times, mut without);
    let feed = match recorded {
        Some(source) => {
            with_times = InterruptibleSource { source, progress: &progress };
            ExportSource::Timed(&mut with_times)
        }
        None => {
            let source = plans[0].source()?;
            without = InterruptibleSource { source, progress: &progress };
            ExportSource::Untimed(&mut without)
        }
    };
    let exported = if command.per_placement {
        per_placement(command, feed, &settings, &experiment.slug)
    } else if to_standard_output {
        standard_output(feed, &settings)
    } else {
        one_file(command, feed, &settings)
    };
    if progress.should_stop() {
        return Ok(ExitOutcome::Stopped);
    }
    let exported = exported?;
    if to_standard_output {
        return Ok(ExitOutcome::Done);
    }
    let note = match (command.iolog_version, has_times) {
        (3, false) => "The workload has no recorded times. All timestamps are 0, and fio replays as fast as it can.\n",
        _ => "",
    };
    print(&format!(
        "wrote {} requests, {} bytes, to {}\n{note}",
        exported.requests,
        exported.bytes,
        command.to.display()
    ));
    Ok(ExitOutcome::Done)
}

/// Workload that returns an error after Ctrl-C, so that a partial export never looks complete.
struct InterruptibleSource<'a, S: ?Sized> {
    source: Box<S>,
    progress: &'a RunProgress,
}

impl<S: ?Sized> InterruptibleSource<'_, S> {
    fn check(&self) -> Result<(), WorkloadError> {
        match self.progress.should_stop() {
            true => Err(WorkloadError::setting("export", "stopped")),
            false => Ok(()),
        }
    }
}

impl<S: RequestSource + ?Sized> RequestSource for InterruptibleSource<'_, S> {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        self.check()?;
        self.source.next_batch(requests, limit)
    }

    fn streams(&self) -> Vec<String> {
        self.source.streams()
    }
}

impl<S: TimedSource + ?Sized> TimedSource for InterruptibleSource<'_, S> {
    fn next_timed_batch(
        &mut self,
        requests: &mut Vec<IoRequest>,
        arrivals: &mut Vec<Arrival>,
        limit: usize,
    ) -> Result<usize, WorkloadError> {
        self.check()?;
        self.source.next_timed_batch(requests, arrivals, limit)
    }

    fn names(&self, most: usize) -> [Vec<String>; 2] {
        self.source.names(most)
    }
}

/// Writes only the iolog to standard output.
fn standard_output(feed: ExportSource<'_>, settings: &ExportSettings) -> Result<ExportSummary, LabError> {
    const NAME: &str = "standard output";
    match trace::export(feed, settings, NAME, io::stdout().lock()) {
        Err(WorkloadError::Io { file, source }) if file == NAME => output::unwritten(&source),
        exported => Ok(exported?),
    }
}

fn one_file(
    command: &ExportArgs,
    feed: ExportSource<'_>,
    settings: &ExportSettings,
) -> Result<ExportSummary, LabError> {
    let mut exported = Ok(ExportSummary::default());
    let written = experiment::files::write_atomically(&command.to, |file| {
        exported = trace::export(feed, settings, &command.to.display().to_string(), file);
        // The match below distinguishes errors of the workload from errors of the file.
        exported.as_ref().map(|_| ()).map_err(|_| io::Error::other("stopped"))
    });
    match exported {
        Ok(exported) => written.map(|()| exported),
        Err(error) => Err(output_error(&command.to, error)),
    }
}

/// Writes a folder of iologs atomically. The files are written to a temporary folder and moved
/// after the last one is complete.
fn per_placement(
    command: &ExportArgs,
    feed: ExportSource<'_>,
    settings: &ExportSettings,
    slug: &str,
) -> Result<ExportSummary, LabError> {
    let to = command.to.as_path();
    let failed = |source| LabError::output(to, source);
    std::fs::create_dir_all(to).map_err(failed)?;
    let parts = tempfile::Builder::new().prefix(".").suffix(".part").tempdir_in(to).map_err(failed)?;
    let mut exported = trace::export_per_placement(feed, settings, parts.path(), slug)
        .map_err(|error| output_error(parts.path(), error))?;
    for file in &mut exported.files {
        let place = to.join(file.file_name().expect("an iolog has a name"));
        std::fs::rename(&*file, &place).map_err(failed)?;
        *file = place;
    }
    Ok(exported)
}

/// Classifies an error as one of the output or of the workload.
fn output_error(to: &Path, error: WorkloadError) -> LabError {
    match error {
        WorkloadError::Io { file, source } if Path::new(&file).starts_with(to) => LabError::output(to, source),
        other => other.into(),
    }
}
