//! `warp run`: arguments to a selection, results to tables and files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lab::cell::RunSettings;
use lab::experiment::Experiment;
use lab::interval::Intervals;
use lab::judge::Judge;
use lab::report::Report;
use lab::run::{CellResult, RunPlan};
use lab::selection::{RunSet, Selection};
use lab::store::Origin;
use lab::{LabError, export, feedback, rows};

use crate::arguments::Run;
use crate::execute;
use crate::{Outcome, bad_option, print, runs, studies};

pub fn run(command: &Run) -> Result<Outcome, LabError> {
    let Some(target) = &command.target else {
        // Options without anything to run are a mistake; nothing at all is a question.
        return match std::env::args_os().count() {
            ..=2 => Ok(studies::doors()),
            _ => Err(bad_option(
                "warp run",
                "name what to run; `warp list` shows what there is",
            )),
        };
    };
    let experiment = match &command.from {
        Some(snapshot) => Experiment::of_workload(target, &snapshot.display().to_string()),
        None => Experiment::find_or_workload(target, command.device.as_deref())?,
    };
    check_destinations(command, &experiment)?;
    let RunSet {
        experiment,
        settings,
        cells,
    } = experiment.select(&selection(command))?;
    let plans = lab::run::prepare(cells)?;
    let progress = execute::stoppable();
    let begun = Instant::now();
    let (results, intervals, stopped) = execute::run_cells(&plans, true, command.save.as_deref(), &progress)?;
    let origin = Origin {
        target,
        title: &experiment.title,
        seconds: begun.elapsed().as_secs_f64(),
        cells: plans.iter().map(RunPlan::cell).collect(),
    };
    present(command, &experiment, &settings, &results, &intervals, &origin)?;
    Ok(if stopped { Outcome::Stopped } else { Outcome::Done })
}

fn selection(command: &Run) -> Selection {
    let feedback = command.feedback.map(|policy| {
        let settings = feedback::Settings::new(policy);
        feedback::Settings {
            every_capacities: command.feedback_every.unwrap_or(settings.every_capacities),
            ..settings
        }
    });
    Selection {
        device: command.device.clone(),
        capacity_bytes: command.capacity,
        snapshot: command.from.clone(),
        timed: command.untimed.then_some(false),
        feedback,
        ..command.settings.selection()
    }
}

/// Folder of the report.
fn report_folder(command: &Run, experiment: &Experiment) -> PathBuf {
    let default = || PathBuf::from("out").join(&experiment.slug);
    command.out.clone().unwrap_or_else(default)
}

/// Refuses destinations that cannot be written before hours are spent on what goes there.
fn check_destinations(command: &Run, experiment: &Experiment) -> Result<(), LabError> {
    let out = report_folder(command, experiment);
    let existing = out.ancestors().find(|folder| folder.exists());
    if existing.is_some_and(|folder| !folder.is_dir()) {
        let problem = "is not a folder, nor can one be made there; give another --out";
        return Err(LabError::invalid(&out.display().to_string(), problem));
    }
    // The folder of the report is made before the other results are written, but after the snapshot.
    let fio_json = command.fio_json.clone().filter(|path| path.as_os_str() != "-");
    let results = [&command.events, &command.series, &fio_json].map(|path| (path, true));
    for (path, after_report) in results.into_iter().chain([(&command.save, false)]) {
        let Some(path) = path else { continue };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let will_exist = |folder: &Path| folder.is_dir() || (after_report && out.starts_with(folder));
        if path.is_dir() || !folder.is_none_or(will_exist) {
            let problem = "cannot be written; give a file in a folder that exists";
            return Err(LabError::invalid(&path.display().to_string(), problem));
        }
    }
    Ok(())
}

/// Tables or JSON, the report, the files that were asked for.
fn present(
    command: &Run,
    experiment: &Experiment,
    settings: &RunSettings,
    results: &[CellResult],
    intervals: &Intervals,
    origin: &Origin<'_>,
) -> Result<(), LabError> {
    if results.is_empty() {
        eprintln!("warp: stopped before anything was measured");
        return Ok(());
    }
    let judge = Judge::new(experiment, results, settings.tail_capacities).with_intervals(intervals);
    let fio = fio_json(command, results)?;
    let json = export::judged_json(experiment, &judge, results);
    let quiet = command.json || command.fio_json.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if command.json {
        print(&format!("{json}\n"));
    } else if !quiet {
        print(&rows::results(
            &experiment.title,
            &experiment.axes(),
            results,
            intervals,
            command.handles,
        ));
    }
    let folder = report_folder(command, experiment);
    let report_file = folder.join("report.html");
    let axes = experiment.axes();
    let report = Report {
        title: &experiment.title,
        source: &experiment.source,
        notes: &experiment.notes,
        axes: &axes,
        tail_capacities: settings.tail_capacities,
        results,
        intervals,
        comparisons: &judge.comparisons(),
        verdicts: &judge.verdicts(),
    };
    std::fs::create_dir_all(&folder).map_err(|source| LabError::Io {
        file: folder.display().to_string(),
        source,
    })?;
    report.write(&report_file)?;
    let mut written = vec![report_file];
    if let Some(path) = &command.events {
        export::write_gc_log(path, &axes, results)?;
        written.push(path.clone());
    }
    if let Some(path) = &command.series {
        export::write_series(path, &axes, results)?;
        written.push(path.clone());
    }
    if let (Some(path), Some(text)) = (&command.fio_json, fio) {
        if path.as_os_str() == "-" {
            print(&text);
        } else {
            export::write_atomically(path, |file| file.write_all(text.as_bytes()))?;
            written.push(path.clone());
        }
    }
    let kept = runs::keep(command, origin, &json);
    if !quiet {
        let names: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
        let kept = kept.map_or_else(String::new, |id| format!("; kept as {id} (warp runs)"));
        print(&format!("wrote {}{kept}\n", names.join(", ")));
    }
    Ok(())
}

/// fio's JSON of the one result, if it was asked for.
fn fio_json(command: &Run, results: &[CellResult]) -> Result<Option<String>, LabError> {
    if command.fio_json.is_none() {
        return Ok(None);
    }
    let [result] = results else {
        let problem = format!("there are {} runs; fio's JSON is about one", results.len());
        return Err(bad_option("--fio-json", problem));
    };
    let Some(timed) = &result.timed else {
        let problem = format!("{} has no timing, so there are no latencies", result.key.device);
        return Err(bad_option("--fio-json", problem));
    };
    let text = serde_json::to_string_pretty(&lab::timed::to_fio_json(timed)).expect("JSON serializes");
    Ok(Some(format!("{text}\n")))
}
