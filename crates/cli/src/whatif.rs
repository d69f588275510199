//! `warp whatif`: a question to the lab, its answer to a sentence, tables and a report.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lab::LabError;
use lab::rows::{self, Column, Rows, Value};
use lab::store::Origin;
use lab::whatif::{Answer, Factors, Question, Study};

use crate::arguments::WhatIf;
use crate::execute;
use crate::output::{self, complain};
use crate::run::library;
use crate::{Outcome, print, runs};

pub fn whatif(command: &WhatIf) -> Result<Outcome, LabError> {
    let is_folder = Path::new(&command.workload).is_dir();
    let mut answers = Vec::new();
    let mut unanswered = Vec::new();
    let mut studies = Vec::new();
    for workload in workloads(&command.workload)? {
        match question(command, &workload).study() {
            Ok(study) => studies.push((report_folder(command, &study, is_folder.then_some(&workload)), study)),
            // One of a folder does not keep the others from their answers.
            Err(problem) if is_folder => unanswered.push(problem.to_string()),
            Err(problem) => return Err(problem),
        }
    }
    if studies.is_empty() {
        let problem = format!(
            "holds nothing that can be answered; the first problem is {}",
            unanswered[0]
        );
        return Err(LabError::invalid(&command.workload, problem));
    }
    for (folder, _) in &studies {
        output::check(&[], Some(folder), command.json)?;
        std::fs::create_dir_all(folder).map_err(|source| LabError::output(folder, source))?;
    }
    let progress = execute::stoppable();
    for (folder, study) in &studies {
        let begun = Instant::now();
        let runs = study.experiment.variants.len();
        let Some(answer) = execute::with_bar(&progress, runs, || study.run(!command.no_interval, &*progress))? else {
            complain("stopped before everything was measured, so there is no answer");
            return Ok(Outcome::Stopped);
        };
        answer.write_report(library(command.single_file), &folder.join("report.html"))?;
        let kept = keep(command, study, &answer, begun.elapsed())?;
        if !command.json {
            let heading = if is_folder {
                format!("{}\n", answer.workload)
            } else {
                String::new()
            };
            print(&format!(
                "{heading}{}{kept}\n",
                text(&answer, &folder.join("report.html"))
            ));
        }
        answers.push(answer);
    }
    if command.json {
        let json = if is_folder {
            serde_json::to_string_pretty(&answers)
        } else {
            serde_json::to_string_pretty(&answers[0])
        };
        print(&format!("{}\n", json.expect("an answer is JSON")));
    } else if is_folder {
        print(&format!("\n{}", side_by_side(&answers).text()));
    }
    for problem in &unanswered {
        complain(&format!("not answered: {problem}"));
    }
    Ok(if unanswered.is_empty() {
        Outcome::Done
    } else {
        Outcome::Failed
    })
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
        fill: command.fill,
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

/// Keeps what was run; returns what is said of that.
fn keep(command: &WhatIf, study: &Study, answer: &Answer, elapsed: Duration) -> Result<String, LabError> {
    let cells = study.cells()?;
    let origin = Origin {
        target: &answer.workload,
        title: &answer.headline,
        seconds: elapsed.as_secs_f64(),
        cells: cells.iter().collect(),
    };
    let kept = runs::keep(&command.keep, &origin, &answer.results_json());
    Ok(kept.map_or_else(String::new, |id| format!("; kept as {id} (warp runs)")))
}

/// Folder of the report: each workload of a folder has its own.
fn report_folder(command: &WhatIf, study: &Study, of_folder: Option<&String>) -> PathBuf {
    let default = || PathBuf::from("out").join(format!("whatif-{}", study.experiment.slug));
    let Some(workload) = of_folder else {
        return command.out.clone().unwrap_or_else(default);
    };
    // With its ending: a.csv and a.fio are two.
    let name = |path: &str| Path::new(path).file_name().unwrap_or_default().to_os_string();
    let all = || PathBuf::from("out").join(format!("whatif-{}", name(&command.workload).to_string_lossy()));
    command.out.clone().unwrap_or_else(all).join(name(workload))
}

fn text(answer: &Answer, report: &Path) -> String {
    let mut text = format!("{}\n{}", rows::wrapped(&answer.headline), answer.rows().text());
    if !answer.how.is_empty() {
        text += &format!("\nHow ({}):\n", answer.advised().unwrap_or_default());
        text += &answer
            .how
            .iter()
            .map(|line| rows::wrapped(&format!("  {line}")))
            .collect::<String>();
    }
    text += "\n";
    text += &answer.notes.iter().map(|note| rows::wrapped(note)).collect::<String>();
    text + &format!("wrote {}", report.display())
}

/// The answers about a folder, a row each.
fn side_by_side(answers: &[Answer]) -> Rows {
    let columns = ["none", "host", "blocks", "oracle"].map(|heading| Column::number(heading, ""));
    let columns = [Column::label("workload")]
        .into_iter()
        .chain(columns)
        .chain(["a host's best", "a layer's best"].map(Column::text));
    let mut rows = Rows::new(columns);
    for answer in answers {
        let of = |name: &str| {
            let row = answer.placements.iter().find(|row| row.name == name);
            Value::optional(row, |row| Value::Amplification(row.write_amplification))
        };
        let named = |name: &Option<String>| Value::optional(name.clone(), Value::Text);
        let of_named = |name: &Option<String>| name.as_deref().map_or(Value::Nothing, of);
        rows.add([
            Value::Text(answer.workload.clone()),
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
