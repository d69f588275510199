//! `warp run`.

use std::io::Write;
use std::path::{Path, PathBuf};

use lab::cell::RunSettings;
use lab::experiment::{Experiment, WorkloadChanges, is_workload, read_workload};
use lab::feedback;
use lab::judge::Judge;
use lab::report::Report;
use lab::run::{CellResult, RunPlan};
use lab::{LabError, export, table};

use crate::arguments::{Run, Settings};
use crate::execute;
use crate::{Outcome, bad_option, print};

pub fn run(command: &Run) -> Result<Outcome, LabError> {
    if let Some(snapshot) = &command.from {
        return continue_snapshot(command, snapshot);
    }
    let experiment = find(command)?;
    check_destinations(command, &experiment)?;
    let mut settings = apply(&experiment.run, &command.settings)?;
    if command.untimed {
        settings.timed = Some(false);
    }
    let mut cells = experiment.cells(&settings, &overrides(&command.settings.set)?)?;
    if let Some(device) = &command.device {
        cells.retain(|cell| cell.key.device == *device);
        if cells.is_empty() {
            let known = experiment.devices.join(", ");
            return Err(bad_option(
                "--device",
                format!("{} does not run on {device}; it runs on {known}", command.target),
            ));
        }
    }
    if let Some(capacity_bytes) = command.capacity {
        for cell in &mut cells {
            cell.device = lab::twin::resized(&cell.key.device, &cell.device, capacity_bytes)?;
        }
    }
    if let Some(policy) = command.feedback {
        for cell in &mut cells {
            let mut settings = feedback::Settings::new(policy);
            settings.every_capacities = command.feedback_every.unwrap_or(settings.every_capacities);
            cell.feedback = Some(settings);
        }
    }
    let prepared = lab::run::prepare(cells)?;
    if let Some(path) = &command.save {
        return run_and_save(command, &experiment, &prepared, path);
    }
    let progress = execute::stoppable();
    let (results, stopped) = execute::run_cells(&prepared, true, &progress)?;
    present(command, &experiment, &settings, &results)?;
    Ok(if stopped { Outcome::Stopped } else { Outcome::Done })
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

/// The experiment of this name; or the job file, workload or trace, as an experiment with one cell.
fn find(command: &Run) -> Result<Experiment, LabError> {
    let target = &command.target;
    if !is_workload(target) {
        return Experiment::find(target);
    }
    let device = command.device.as_deref().ok_or_else(|| {
        bad_option(
            target,
            "a workload needs a device; give --device NAME (`warp devices` lists them)",
        )
    })?;
    Ok(Experiment::of_workload(target, device))
}

/// The settings of a run with the command line's.
pub fn apply(run: &RunSettings, settings: &Settings) -> Result<RunSettings, LabError> {
    let mut run = run.clone();
    run.scale = settings.scale.unwrap_or(run.scale);
    if let Some(write) = settings.write {
        if !(write > 0.0 && write <= 1000.0) {
            return Err(bad_option(
                "--write",
                format!("{write} capacities: must be above 0 and at most 1000"),
            ));
        }
        run.write_capacities = Some(write);
    }
    if let Some(seconds) = settings.seconds {
        if !(1e-6..=1e6).contains(&seconds) {
            return Err(bad_option(
                "--seconds",
                format!("{seconds}: must be at least a microsecond and at most 1000000"),
            ));
        }
        run.seconds = Some(seconds);
    }
    if let Some(seed) = settings.seed {
        run.seeds = vec![seed];
    }
    Ok(run)
}

/// `PATH=VALUE` pairs; a value is TOML, or else a string.
pub fn overrides(set: &[String]) -> Result<lab::profile::Overrides, LabError> {
    let mut overrides = lab::profile::Overrides::new();
    for pair in set {
        let split = pair.split_once('=').filter(|(path, _)| !path.trim().is_empty());
        let (path, value) = split.ok_or_else(|| {
            bad_option(
                "--set",
                format!("{pair:?} is not of the form PATH=VALUE, e.g. geometry.over_provisioning=0.2"),
            )
        })?;
        let parsed = toml::from_str::<toml::Table>(&format!("value = {value}")).ok();
        let parsed = parsed.and_then(|mut table| table.remove("value"));
        overrides.insert(path.trim().to_string(), parsed.unwrap_or_else(|| value.trim().into()));
    }
    Ok(overrides)
}

/// Tables or JSON, the report, the files that were asked for.
fn present(
    command: &Run,
    experiment: &Experiment,
    settings: &RunSettings,
    results: &[CellResult],
) -> Result<(), LabError> {
    if results.is_empty() {
        eprintln!("warp: stopped before anything was measured");
        return Ok(());
    }
    let judge = Judge::new(experiment, results, settings.tail_capacities);
    let fio = fio_json(command, results)?;
    let quiet = command.json || command.fio_json.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if command.json {
        print(&format!("{}\n", export::judged_json(experiment, &judge, results)));
    } else if !quiet {
        print(&table::results(
            &experiment.title,
            &experiment.axes(),
            results,
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
    if !quiet {
        let names: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
        print(&format!("wrote {}\n", names.join(", ")));
    }
    Ok(())
}

/// fio's JSON of the one result, if it was asked for.
fn fio_json(command: &Run, results: &[CellResult]) -> Result<Option<String>, LabError> {
    if command.fio_json.is_none() {
        return Ok(None);
    }
    let [result] = results else {
        let problem = format!("{} is {} runs; fio's JSON is about one", command.target, results.len());
        return Err(bad_option("--fio-json", problem));
    };
    let Some(timed) = &result.timed else {
        let problem = format!("{} has no timing, so there are no latencies", result.key.device);
        return Err(bad_option("--fio-json", problem));
    };
    let text = serde_json::to_string_pretty(&lab::timed::to_fio_json(timed)).expect("JSON serializes");
    Ok(Some(format!("{text}\n")))
}

/// Runs a job file and keeps the device.
fn run_and_save(
    command: &Run,
    experiment: &Experiment,
    prepared: &[RunPlan],
    path: &Path,
) -> Result<Outcome, LabError> {
    let [cell] = prepared else {
        return Err(bad_option(
            "--save",
            format!(
                "{} is {} runs; only a workload on a device leaves one",
                command.target,
                prepared.len()
            ),
        ));
    };
    let progress = execute::stoppable();
    let work = || lab::run::run_and_save(cell, path, &*progress);
    let result = execute::with_bar(&progress, 1, work)?;
    let stopped = !result.complete;
    present(command, experiment, &experiment.run, &[result])?;
    Ok(if stopped { Outcome::Stopped } else { Outcome::Done })
}

/// Runs a job file on a device that was saved before.
fn continue_snapshot(command: &Run, snapshot: &Path) -> Result<Outcome, LabError> {
    let workload = read_workload(&command.target, &WorkloadChanges::default())?;
    let experiment = Experiment::of_workload(&command.target, &snapshot.display().to_string());
    check_destinations(command, &experiment)?;
    let settings = apply(&experiment.run, &command.settings)?;
    let progress = execute::stoppable();
    let continued = lab::run::Continuation {
        snapshot,
        workload,
        settings: settings.clone(),
        save: command.save.as_deref(),
    };
    let work = || lab::run::continue_snapshot(&continued, &*progress);
    let result = execute::with_bar(&progress, 1, work)?;
    let stopped = !result.complete;
    present(command, &experiment, &settings, &[result])?;
    Ok(if stopped { Outcome::Stopped } else { Outcome::Done })
}
