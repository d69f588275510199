//! `warp run`: converts arguments to a selection, and results to tables and files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use analysis::claim_checker::ClaimChecker;
use analysis::export::{self, parquet, tables};
use analysis::store::RunProvenance;
use experiment::{Experiment, LabError, RunChange, RunOverrides, RunSet, RunSpec, feedback, workloads};
use report::rows;
use report::rows::TextFormat;
use report::{PlotLibrary, write_judged};
use simulate::run::{ExecutionOptions, RefusedCell, RunPlan, RunResult};
use simulate::warning::WarningCommand;

use crate::arguments::{RunArgs, format_option, typed_line, typed_size};
use crate::execute;
use crate::output::{self, OutputContent, OutputFile, is_standard_output, print_error};
use crate::{ExitOutcome, bad_option, print, results, studies};

/// Runs the target. `is_bare` is true if the command line is just `warp run`.
pub fn run(command: &RunArgs, is_bare: bool) -> Result<ExitOutcome, LabError> {
    let Some(target) = &command.target else {
        // Options without a target are a mistake. `warp run` alone prints how to start.
        return if is_bare {
            Ok(studies::print_introduction())
        } else {
            Err(bad_option(
                "warp run",
                "the target is missing. Name an experiment, a job file or a workload (`warp list` shows them)",
            ))
        };
    };
    execute::listen();
    let experiment = match &command.load_snapshot {
        Some(snapshot) => Experiment::from_workload(target, &snapshot.display().to_string()),
        None => Experiment::find_or_workload(target, command.device.as_deref())?,
    };
    let selected = experiment.select(&selection(command, target)?)?;
    let RunSet { mut experiment, settings, form, cells, capacity_notes } = selected;
    let (plans, refused) = simulate::run::prepare_possible(cells)?;
    let cache = |plan: &RunPlan| workloads::cache_sentence(target, &plan.cell().workload, plan.target().device_bytes);
    if let Some(sentence) = plans.first().and_then(cache) {
        experiment.notes = sentence;
    }
    check_destinations(command, &experiment, &plans)?;
    let folder = report_folder(command, &experiment);
    if command.save_snapshot.as_ref().is_some_and(|path| path.starts_with(&folder)) {
        // The device is saved at the end of its run, before the report exists.
        std::fs::create_dir_all(&folder).map_err(|source| LabError::output(&folder, source))?;
    }
    let progress = execute::stoppable();
    let begun = Instant::now();
    let options = ExecutionOptions {
        keep_gc_log: true,
        save: command.save_snapshot.as_deref(),
        fio_logs: true,
        ..ExecutionOptions::default()
    };
    let (results, intervals, stopped) = execute::run_cells(&plans, options, &progress)?;
    let origin = RunProvenance {
        target,
        title: &experiment.title,
        options: typed_options(command),
        seconds: begun.elapsed().as_secs_f64(),
        cells: plans.iter().map(RunPlan::cell).collect(),
    };
    let mut judge = ClaimChecker::new(&experiment, form, &results, settings.tail_drive_writes);
    judge.intervals = &intervals;
    judge.refused = &refused;
    if !command.output.is_json() && documents(command).all(|(_, path)| !is_standard_output(path)) {
        for note in &capacity_notes {
            print(&command.output.tables().words(&rows::wrapped(&format!("{note}\n"))));
        }
    }
    print_results(command, &judge, &origin)?;
    Ok(match (stopped, refused.is_empty()) {
        (true, _) => ExitOutcome::Stopped,
        (false, true) => ExitOutcome::Done,
        (false, false) => ExitOutcome::Failed,
    })
}

fn selection(command: &RunArgs, target: &str) -> Result<RunOverrides, LabError> {
    let feedback = command.feedback.map(|policy| {
        let settings = feedback::FeedbackSettings::new(policy);
        feedback::FeedbackSettings {
            every_capacities: command.feedback_every.unwrap_or(settings.every_capacities),
            ..settings
        }
    });
    Ok(RunOverrides {
        device: command.device.clone(),
        capacity_bytes: command.capacity,
        snapshot: command.load_snapshot.clone(),
        change: RunChange {
            feedback,
            ..RunChange::from_settings(&command.columns.overrides(target, &command.selection.settings())?)
        },
        ..command.selection.selection()
    })
}

/// Formats the options that change the run.
fn typed_options(command: &RunArgs) -> String {
    let capacity = typed_size("capacity", command.capacity);
    let snapshot = format_option("load-snapshot", command.load_snapshot.as_ref().map(|path| path.display()));
    typed_line(capacity.into_iter().chain(snapshot).chain(command.selection.command_line()))
}

/// Location of the plotting library of a report.
pub fn library(single_file: bool) -> PlotLibrary {
    if single_file { PlotLibrary::Embedded } else { PlotLibrary::SeparateFile }
}

fn report_folder(command: &RunArgs, experiment: &Experiment) -> PathBuf {
    let default = || PathBuf::from("out").join(&experiment.slug);
    command.out.clone().unwrap_or_else(default)
}

/// Document about a run, written beside the report.
#[derive(Clone, Copy)]
enum Document {
    Events,
    Series,
    FioJson,
}

impl Document {
    fn print(self, axes: &[String], results: &[RunResult]) {
        match self {
            Document::Events => output::stream(|out| parquet::write(out, tables::gc_log(axes, results))),
            Document::Series => output::stream(|out| parquet::write(out, tables::samples(axes, results))),
            Document::FioJson => print(&fio_json_of(results)),
        }
    }

    fn write(self, path: &Path, axes: &[String], results: &[RunResult]) -> Result<(), LabError> {
        match self {
            Document::Events => export::write_parquet(path, tables::gc_log(axes, results)),
            Document::Series => export::write_parquet(path, tables::samples(axes, results)),
            Document::FioJson => {
                let text = fio_json_of(results);
                experiment::files::write_atomically(path, |file| file.write_all(text.as_bytes()))
            }
        }
    }
}

/// Requested documents with their files or standard output.
fn documents(command: &RunArgs) -> impl Iterator<Item = (Document, &Path)> {
    let options = [
        (Document::Events, &command.events),
        (Document::Series, &command.series),
        (Document::FioJson, &command.fio_json),
    ];
    options.into_iter().filter_map(|(document, path)| Some((document, path.as_deref()?)))
}

/// Rejects unwritable destinations and impossible documents before the hours of a run.
fn check_destinations(command: &RunArgs, experiment: &Experiment, plans: &[RunPlan]) -> Result<(), LabError> {
    if command.fio_json.is_some() {
        check_fio_json(plans)?;
    }
    if command.events.is_some() && plans.iter().any(|plan| plan.cell().array.is_some()) {
        let problem = "an array keeps no log of the collections of its drives. Leave the option out";
        return Err(bad_option("--events", problem));
    }
    check_fio_logs(plans)?;
    let options = [
        ("--save-snapshot", &command.save_snapshot, OutputContent::Random),
        ("--events", &command.events, OutputContent::Binary),
        ("--series", &command.series, OutputContent::Binary),
        ("--fio-json", &command.fio_json, OutputContent::Text),
    ];
    let destinations: Vec<OutputFile<'_>> = options
        .into_iter()
        .filter_map(|(option, path, content)| {
            let path = path.as_deref()?;
            Some(OutputFile { option, path, content })
        })
        .collect();
    output::check(&destinations, Some(&report_folder(command, experiment)), command.output.is_json())
}

/// Rejects fio's JSON unless there is one run with timing.
fn check_fio_json(plans: &[RunPlan]) -> Result<(), LabError> {
    let [plan] = plans else {
        let problem = format!("fio's JSON describes one run, but there are {}. Select one run", plans.len());
        return Err(bad_option("--fio-json", problem));
    };
    if !plan.is_timed() {
        let problem = format!("{} has no timing, so there are no latencies for fio's JSON", plan.cell().key.device);
        return Err(bad_option("--fio-json", problem));
    }
    Ok(())
}

/// Rejects fio's logs unless there is one run with timing.
fn check_fio_logs(plans: &[RunPlan]) -> Result<(), LabError> {
    for plan in plans {
        if plans.len() > 1 {
            refuse_logs(plan.cell(), format!("a log describes one run, but there are {}", plans.len()))?;
        }
        if plan.cell().array.is_some() {
            refuse_logs(plan.cell(), "an array has no logs of its jobs".to_string())?;
        }
        if !plan.is_timed() {
            let device = &plan.cell().key.device;
            refuse_logs(plan.cell(), format!("{device} has no timing, so there are no values over time to log"))?;
        }
        let jobs = plan.cell().workload.jobs().map_or(&[][..], |file| &file.jobs);
        let prefixes = jobs.iter().flat_map(|job| job.logs.asked()).map(|(_, prefix)| prefix);
        // An empty prefix stands for the job's name, which gives a file in this folder.
        for prefix in prefixes.filter(|prefix| !prefix.is_empty()) {
            output::check_file(Path::new(&format!("{prefix}.log")))?;
        }
    }
    Ok(())
}

/// Rejects a job file that requests logs over time (`write_bw_log` and others).
pub fn refuse_logs(cell: &RunSpec, problem: String) -> Result<(), LabError> {
    let jobs = cell.workload.jobs().map_or(&[][..], |file| &file.jobs);
    match jobs.iter().find_map(|job| Some((job, job.logs.asked_by()?))) {
        None => Ok(()),
        Some((job, option)) => {
            let remedy = "Remove it, or run the file once on a device with timing";
            Err(job.error(option, problem, remedy).into())
        }
    }
}

/// Writes the report and the requested files. Then prints tables or JSON, even if a file failed.
fn print_results(command: &RunArgs, judge: &ClaimChecker<'_>, origin: &RunProvenance<'_>) -> Result<(), LabError> {
    let ClaimChecker { experiment, results, intervals, refused, .. } = *judge;
    if results.is_empty() {
        print_error("stopped before the first measurement");
        return Ok(());
    }
    let written = write_files(command, judge);
    let axes = experiment.axes();
    let printed = documents(command).find(|(_, path)| is_standard_output(path));
    // The run is stored before it is printed, because a closed pipe ends the program.
    let json = export::judged_json(judge);
    let stored_id = results::save_run(&command.keep, origin, &json);
    if command.output.is_json() {
        print(&format!("{json}\n"));
    } else if let Some((document, _)) = printed {
        document.print(&axes, results);
    } else {
        if Experiment::is_workload(origin.target) {
            print(&command.output.tables().words(&rows::wrapped(&experiment.notes)));
        }
        print(&rows::results(
            &experiment.title,
            &axes,
            results,
            intervals,
            command.handles,
            WarningCommand::Run,
            command.output.tables(),
        ));
        print(&refused_text(refused, command.output.tables()));
    }
    let written = written?;
    if !command.output.is_json() && printed.is_none() {
        let names: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
        let stored = stored_id.map_or_else(String::new, |id| format!(", stored as {id} (warp results list)"));
        let line = format!("wrote {}{stored}\n", names.join(", "));
        print(&command.output.tables().words(&line));
    }
    Ok(())
}

/// Text about the cells that could not run, empty if all ran.
pub fn refused_text(cells: &[RefusedCell], format: TextFormat) -> String {
    match cells {
        [] => String::new(),
        cells => format!("{}\n", rows::refused(cells).render(format)),
    }
}

/// Writes the report and the requested files, and returns their names. A failure does not prevent
/// the other files.
fn write_files(command: &RunArgs, judge: &ClaimChecker<'_>) -> Result<Vec<PathBuf>, LabError> {
    let folder = report_folder(command, judge.experiment);
    let axes = judge.experiment.axes();
    let mut written = Vec::new();
    let mut outcome = Ok(());
    let mut wrote = |path: &Path, result: Result<(), LabError>| {
        outcome = std::mem::replace(&mut outcome, Ok(())).and(result);
        written.push(path.to_path_buf());
    };
    let file = folder.join("report.html");
    let made = std::fs::create_dir_all(&folder).map_err(|source| LabError::output(&folder, source));
    wrote(&file, made.and_then(|()| write_judged(judge, library(command.single_file), &file)));
    for (document, path) in documents(command).filter(|(_, path)| !is_standard_output(path)) {
        wrote(path, document.write(path, &axes, judge.results));
    }
    outcome.and(check_saved(command, judge.results)).map(|()| written)
}

/// Returns an error if the device should have been saved and was not.
fn check_saved(command: &RunArgs, results: &[RunResult]) -> Result<(), LabError> {
    let problem = results.iter().find_map(|result| result.unsaved.clone());
    match (&command.save_snapshot, problem) {
        (Some(path), Some(problem)) => Err(LabError::output(path, io::Error::other(problem))),
        _ => Ok(()),
    }
}

fn fio_json_of(results: &[RunResult]) -> String {
    let timed = results[0].timed.as_ref().expect("`check_fio_json` rejects runs without timing");
    let text = serde_json::to_string_pretty(&simulate::timed::to_fio_json(timed)).expect("JSON serializes");
    format!("{text}\n")
}
