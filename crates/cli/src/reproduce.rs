//! `warp reproduce`.

use lab::cell::RunSettings;
use lab::experiment::Experiment;
use lab::judge::Judge;
use lab::run::CellResult;
use lab::selection::Selection;
use lab::{LabError, export, golden, rows};

use crate::arguments::Reproduce;
use crate::execute;
use crate::{Outcome, print};

pub fn reproduce(command: &Reproduce) -> Result<Outcome, LabError> {
    let names = if command.experiments.is_empty() {
        Experiment::names()
    } else {
        command.experiments.clone()
    };
    // Everything is read before anything runs, so that a mistake in the last file does not cost the first's results.
    let experiments: Vec<Experiment> = names
        .iter()
        .map(|name| Experiment::find(name))
        .collect::<Result<_, _>>()?;
    let progress = execute::stoppable();
    let mut outcome = Outcome::Done;
    for experiment in &experiments {
        let runs = experiment.select(&Selection {
            quick: command.quick,
            ..command.settings.selection()
        })?;
        let plans = lab::run::prepare(runs.cells)?;
        let (results, stopped) = execute::run_cells(&plans, false, None, &progress)?;
        if stopped {
            if !results.is_empty() && !command.json {
                print(&format!(
                    "{} (stopped)\n{}\n",
                    experiment.title,
                    rows::write_amplifications(&results, &experiment.axes()).text()
                ));
            }
            return Ok(Outcome::Stopped);
        }
        let holds = if command.quick {
            compare_golden(command, experiment, &results)?
        } else {
            compare_paper(command, experiment, &runs.settings, &results)
        };
        if !holds {
            outcome = Outcome::Failed;
        }
    }
    Ok(outcome)
}

/// Prints the paper's numbers beside ours and the verdicts; true if every claim holds.
fn compare_paper(command: &Reproduce, experiment: &Experiment, settings: &RunSettings, results: &[CellResult]) -> bool {
    let judge = Judge::new(experiment, results, settings.tail_capacities);
    let verdicts = judge.verdicts();
    if command.json {
        print(&format!("{}\n", export::judged_json(experiment, &judge, results)));
    } else {
        print(&format!("{} ({})\n", experiment.title, experiment.source));
        let numbers = if experiment.published.is_empty() {
            rows::write_amplifications(results, &experiment.axes())
        } else {
            rows::comparisons(&judge.comparisons())
        };
        print(&format!("{}\n{}\n", numbers.text(), rows::verdicts(&verdicts).text()));
    }
    verdicts.iter().all(|verdict| verdict.holds)
}

/// Compares with the golden results, or takes the results as golden; true if nothing differs.
fn compare_golden(command: &Reproduce, experiment: &Experiment, results: &[CellResult]) -> Result<bool, LabError> {
    let path = golden::path(&experiment.slug);
    let rows = golden::rows(results);
    if command.bless {
        golden::write(&path, &rows)?;
        print(&format!("{}: wrote {} golden rows\n", experiment.slug, rows.len()));
        return Ok(true);
    }
    let differences = golden::differences(&golden::read(&path)?, &rows);
    match differences.len() {
        0 => print(&format!("{}: {} cells as golden\n", experiment.slug, rows.len())),
        count => {
            print(&format!(
                "{}: {count} differences in {} cells from {path}\n",
                experiment.slug,
                rows.len()
            ));
            print(&format!("  {}\n", differences.join("\n  ")));
        }
    }
    Ok(differences.is_empty())
}
