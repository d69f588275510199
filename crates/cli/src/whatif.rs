//! `warp whatif`: builds a study from the options, runs it, and prints its answer.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use analysis::store::RunProvenance;
use experiment::{LabError, SettingOverrides, find, workloads};
use report::rows::{self, CellValue, ReportTable, TextFormat};
use ssd::DeviceLayout;
use whatif::{ArrayQuestion, Factors, WhatIfAnswer, WhatIfQuestion, WhatIfStudy};

use crate::arguments::{WhatIfArgs, format_option, typed_line, typed_settings, typed_size};
use crate::execute;
use crate::output::{self, print_error};
use crate::run::library;
use crate::{ExitOutcome, bad_option, print, results};

pub fn whatif(command: &WhatIfArgs) -> Result<ExitOutcome, LabError> {
    execute::listen();
    if let Some(array) = &command.array {
        return whatif_array(command, array);
    }
    let is_folder = Path::new(&command.workload).is_dir();
    let mut answers = Vec::new();
    let mut unanswered = Vec::new();
    let mut studies = Vec::new();
    find::check_path(&command.workload)?;
    let workloads = if is_folder { workloads::files_in(&command.workload)? } else { vec![command.workload.clone()] };
    for workload in workloads {
        match question(command, &workload).and_then(WhatIfQuestion::study) {
            Ok(study) => {
                let cache = cache_sentence(command, &study, &workload)?;
                studies.push((report_folder(command, &study, is_folder.then_some(&workload)), cache, study));
            }
            // In a folder, a failed workload does not prevent the other answers.
            Err(problem) if is_folder => unanswered.push(problem.to_string()),
            Err(problem) => return Err(problem),
        }
    }
    if studies.is_empty() {
        let problem = format!("no workload in the folder can be evaluated. The first problem is {}", unanswered[0]);
        return Err(LabError::invalid(&command.workload, problem));
    }
    for (folder, ..) in &studies {
        output::check(&[], Some(folder), command.output.is_json())?;
        std::fs::create_dir_all(folder).map_err(|source| LabError::output(folder, source))?;
    }
    let progress = execute::stoppable();
    for (folder, cache, study) in &studies {
        let begun = Instant::now();
        let runs = study.experiment.variants.len();
        let Some(mut answer) = execute::with_bar(&progress, runs, || study.run(!command.no_uncertainty, &*progress))?
        else {
            print_error("stopped before the last measurement, so there is no answer");
            return Ok(ExitOutcome::Stopped);
        };
        if let Some(sentence) = cache {
            answer.notes.insert(0, sentence.clone());
        }
        answer.write_report(library(command.single_file), &folder.join("report.html"))?;
        let stored = save_run(command, study, &answer, begun.elapsed())?;
        if !command.output.is_json() {
            let format = command.output.tables();
            let heading = is_folder.then_some(&answer.workload).into_iter().chain(cache);
            let heading: String = heading.map(|line| format.words(&rows::wrapped(line))).collect();
            print(&format!(
                "{heading}{}{}",
                text(&answer, cache.iter().count(), format),
                format.words(&format!("wrote {}{stored}\n", folder.join("report.html").display()))
            ));
        }
        answers.push(answer);
    }
    if command.output.is_json() {
        let json =
            if is_folder { serde_json::to_string_pretty(&answers) } else { serde_json::to_string_pretty(&answers[0]) };
        print(&format!("{}\n", json.expect("an answer is JSON")));
    } else if is_folder {
        print(&format!("\n{}", side_by_side(&answers).render(command.output.tables())));
    }
    for problem in &unanswered {
        print_error(&format!("no answer for {problem}"));
    }
    Ok(if unanswered.is_empty() { ExitOutcome::Done } else { ExitOutcome::Failed })
}

fn whatif_array(command: &WhatIfArgs, array: &SettingOverrides) -> Result<ExitOutcome, LabError> {
    let unused = [
        ("--drive", command.drive.is_some()),
        ("--fill", command.fill.is_some()),
        ("--rate", command.rate.is_some()),
        ("--dollars-per-tb", command.dollars_per_tb.is_some()),
        ("--carbon-per-gb", command.carbon_per_gb.is_some()),
        ("--out", command.out.is_some()),
        ("--single-file", command.single_file),
    ];
    if let Some((option, _)) = unused.into_iter().find(|(_, is_given)| *is_given) {
        return Err(bad_option(option, "the answer for an array does not use this option. Leave it out"));
    }
    let mut overrides = command.columns.overrides(&command.workload, &command.set)?;
    overrides.extend(command.op.map(|share| ("geometry.over_provisioning".to_string(), share.into())));
    let question = ArrayQuestion {
        workload: command.workload.clone(),
        device: command.device.clone(),
        array: array.clone(),
        overrides,
        scale: command.scale,
        drive_writes: command.drive_writes,
        seed: command.seed,
    };
    let prepared = question.prepare()?;
    let progress = execute::stoppable();
    let runs = prepared.0.len();
    let Some(answer) = execute::with_bar(&progress, runs, || question.answer(prepared, &*progress))? else {
        print_error("stopped before the last measurement, so there is no answer");
        return Ok(ExitOutcome::Stopped);
    };
    if command.output.is_json() {
        print(&format!("{}\n", serde_json::to_string_pretty(&answer).expect("an answer is JSON")));
    } else {
        let format = command.output.tables();
        let notes: String = answer.notes.iter().map(|note| rows::wrapped(note)).collect();
        let headline = format.words(&format!("{}\n", rows::wrapped(&answer.headline)));
        print(&format!("{headline}{}\n{}", answer.table().render(format), format.words(&notes)));
    }
    Ok(ExitOutcome::Done)
}

/// Introductory sentence for a trace of cache requests.
fn cache_sentence(command: &WhatIfArgs, study: &WhatIfStudy, workload: &str) -> Result<Option<String>, LabError> {
    let cell = study.cells()?.remove(0);
    let layout =
        DeviceLayout::new(&cell.device).map_err(|error| LabError::Device { device: command.device.clone(), error })?;
    Ok(workloads::cache_sentence(workload, &cell.workload, layout.capacity_bytes()))
}

fn question(command: &WhatIfArgs, workload: &str) -> Result<WhatIfQuestion, LabError> {
    let defaults = Factors::default();
    let question = WhatIfQuestion::new(workload);
    Ok(WhatIfQuestion {
        device: command.device.clone(),
        drive_bytes: command.drive,
        over_provisioning: command.op,
        fill: command.fill,
        drive_writes_per_day: command.rate,
        scale: command.scale,
        drive_writes: command.drive_writes,
        overrides: command.columns.overrides(workload, &command.set)?,
        seed: command.seed,
        factors: Factors {
            dollars_per_terabyte: command.dollars_per_tb.unwrap_or(defaults.dollars_per_terabyte),
            embodied_kg_per_gigabyte: command.carbon_per_gb.unwrap_or(defaults.embodied_kg_per_gigabyte),
        },
        ..question
    })
}

/// Stores the run and returns the end of the output line, with the run's name.
fn save_run(
    command: &WhatIfArgs,
    study: &WhatIfStudy,
    answer: &WhatIfAnswer,
    elapsed: Duration,
) -> Result<String, LabError> {
    let cells = study.cells()?;
    let origin = RunProvenance {
        target: &answer.workload,
        title: &answer.headline,
        options: typed_options(command),
        seconds: elapsed.as_secs_f64(),
        cells: cells.iter().collect(),
    };
    let stored_id = results::save_run(&command.keep, &origin, &answer.results_json());
    Ok(stored_id.map_or_else(String::new, |id| format!(", stored as {id} (warp results list)")))
}

/// Formats the options that change the answer.
fn typed_options(command: &WhatIfArgs) -> String {
    let options = [
        typed_size("drive", command.drive),
        format_option("op", command.op),
        format_option("fill", command.fill),
        format_option("rate", command.rate),
        format_option("scale", command.scale),
        format_option("drive-writes", command.drive_writes),
    ];
    typed_line(options.into_iter().flatten().chain(typed_settings(&command.set)))
}

/// Folder of the report. Each workload of a folder has its own.
fn report_folder(command: &WhatIfArgs, study: &WhatIfStudy, of_folder: Option<&String>) -> PathBuf {
    let default = || PathBuf::from("out").join(format!("whatif-{}", study.experiment.slug));
    let Some(workload) = of_folder else {
        return command.out.clone().unwrap_or_else(default);
    };
    // The name includes the extension, because a.csv and a.fio are different workloads.
    let name = |path: &str| Path::new(path).file_name().unwrap_or_default().to_os_string();
    let all = || PathBuf::from("out").join(format!("whatif-{}", name(&command.workload).to_string_lossy()));
    command.out.clone().unwrap_or_else(all).join(name(workload))
}

/// Formats an answer, without its first `printed_notes` notes.
fn text(answer: &WhatIfAnswer, printed_notes: usize, format: TextFormat) -> String {
    let headline = format.words(&format!("{}\n", rows::wrapped(&answer.headline)));
    let table = answer.rows().render(format);
    let mut text = String::new();
    if !answer.how.is_empty() {
        text += &format!("\nHow ({}):\n", answer.advised().unwrap_or_default());
        text += &answer.how.iter().map(|line| rows::wrapped(&format!("  {line}"))).collect::<String>();
    }
    text += "\n";
    text += &answer.notes[printed_notes..].iter().map(|note| rows::wrapped(note)).collect::<String>();
    headline + &table + &format.words(&text)
}

/// Table of the answers for a folder, with a row per workload.
fn side_by_side(answers: &[WhatIfAnswer]) -> ReportTable {
    let rows = ReportTable::default().labels(["workload"]).numbers("", ["none", "host", "blocks", "oracle"]);
    let mut rows = rows.texts(["best for a host", "best for a layer"]);
    for answer in answers {
        let of = |name: &str| {
            let row = answer.placements.iter().find(|row| row.name == name);
            CellValue::optional(row, |row| CellValue::Amplification(row.write_amplification))
        };
        let named = |name: &Option<String>| CellValue::optional(name.clone(), CellValue::Text);
        let of_named = |name: &Option<String>| name.as_deref().map_or(CellValue::Nothing, of);
        rows.add([
            CellValue::Text(answer.workload.clone()),
            of("none"),
            of_named(&answer.best),
            of_named(&answer.classifier),
            of("oracle"),
            named(&answer.best),
            named(&answer.classifier),
        ]);
    }
    rows
}
