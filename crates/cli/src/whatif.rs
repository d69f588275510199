//! `warp whatif`: a question to the lab, its answer to a sentence, tables and a report.

use std::path::{Path, PathBuf};

use lab::LabError;
use lab::rows::{self, Column, Rows, Value};
use lab::whatif::{Answer, Factors, Question, Study};

use crate::arguments::WhatIf;
use crate::execute;
use crate::output::{self, complain};
use crate::run::library;
use crate::{Outcome, print};

pub fn whatif(command: &WhatIf) -> Result<Outcome, LabError> {
    let workloads = workloads(&command.workload)?;
    let studies: Vec<(PathBuf, Study)> = workloads
        .iter()
        .map(|workload| {
            let study = question(command, workload).study()?;
            Ok((report_folder(command, &study, workloads.len()), study))
        })
        .collect::<Result<_, LabError>>()?;
    for (folder, _) in &studies {
        output::check(&[], Some(folder), command.json)?;
        std::fs::create_dir_all(folder).map_err(|source| LabError::output(folder, source))?;
    }
    let mut answers = Vec::new();
    let progress = execute::stoppable();
    for (folder, study) in &studies {
        let runs = study.experiment.variants.len();
        let Some(answer) = execute::with_bar(&progress, runs, || study.run(!command.no_interval, &*progress))? else {
            complain("stopped before everything was measured, so there is no answer");
            return Ok(Outcome::Stopped);
        };
        answer.write_report(library(command.single_file), &folder.join("report.html"))?;
        if !command.json {
            print(&text(&answer, &folder.join("report.html")));
        }
        answers.push(answer);
    }
    if command.json {
        let of_one = answers.len() == 1 && !Path::new(&command.workload).is_dir();
        let json = if of_one {
            serde_json::to_string_pretty(&answers[0])
        } else {
            serde_json::to_string_pretty(&answers)
        };
        print(&format!("{}\n", json.expect("an answer is JSON")));
    } else if answers.len() > 1 {
        print(&format!("\n{}", side_by_side(&answers).text()));
    }
    Ok(Outcome::Done)
}

/// The workload, or those in a folder.
fn workloads(name: &str) -> Result<Vec<String>, LabError> {
    if !Path::new(name).is_dir() {
        return Ok(vec![name.to_string()]);
    }
    let failed = |source| LabError::Io {
        file: name.to_string(),
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(name).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        // Files of a trace that are read together are one workload.
        let is_first = || workload::trace::files_of(&path).first() == Some(&path);
        if path.is_file() && !is_hidden && is_first() {
            files.push(path.display().to_string());
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(LabError::invalid(
            name,
            "is an empty folder; put traces, job files or workloads in it",
        ));
    }
    Ok(files)
}

fn question(command: &WhatIf, workload: &str) -> Question {
    let defaults = Factors::default();
    let question = Question::new(workload);
    Question {
        device: command.device.clone(),
        drive_bytes: command.drive,
        over_provisioning: command.op,
        fill: command.fill.unwrap_or(question.fill),
        drive_writes_per_day: command.rate,
        scale: command.scale,
        write_capacities: command.write,
        overrides: command.set.iter().cloned().collect(),
        seed: command.seed,
        factors: Factors {
            dollars_per_terabyte: command.dollars_per_tb.unwrap_or(defaults.dollars_per_terabyte),
            embodied_kg_per_gigabyte: command.carbon_per_gb.unwrap_or(defaults.embodied_kg_per_gigabyte),
        },
        ..question
    }
}

/// Folder of the report: each workload of a folder has its own.
fn report_folder(command: &WhatIf, study: &Study, count: usize) -> PathBuf {
    let slug = &study.experiment.slug;
    match &command.out {
        Some(out) if count > 1 => out.join(slug),
        Some(out) => out.clone(),
        None => PathBuf::from("out").join(format!("whatif-{slug}")),
    }
}

fn text(answer: &Answer, report: &Path) -> String {
    let mut text = format!("{}\n{}", rows::wrapped(&answer.headline), answer.rows().text());
    if !answer.how.is_empty() {
        text += &format!("\nHow ({}):\n", answer.best.as_deref().unwrap_or_default());
        text += &answer
            .how
            .iter()
            .map(|line| rows::wrapped(&format!("  {line}")))
            .collect::<String>();
    }
    text += "\n";
    text += &answer.notes.iter().map(|note| rows::wrapped(note)).collect::<String>();
    text + &format!("wrote {}\n", report.display())
}

/// The answers about a folder, a row each.
fn side_by_side(answers: &[Answer]) -> Rows {
    let columns = ["none", "best", "oracle"].map(|heading| Column::number(heading, ""));
    let columns = [Column::label("workload")]
        .into_iter()
        .chain(columns)
        .chain([Column::text("best placement")]);
    let mut rows = Rows::new(columns);
    for answer in answers {
        let of = |name: &str| {
            let row = answer.placements.iter().find(|row| row.name == name);
            Value::optional(row, |row| Value::Amplification(row.write_amplification))
        };
        let best = answer.best.clone().unwrap_or_else(|| "none".to_string());
        rows.add([
            Value::Text(answer.workload.clone()),
            of("none"),
            of(&best),
            of("oracle"),
            Value::Text(best),
        ]);
    }
    rows
}
