//! `warp reproduce`.

use std::time::Instant;

use lab::cell::RunSettings;
use lab::experiment::Experiment;
use lab::interval::Intervals;
use lab::judge::Judge;
use lab::record::ClaimsRecord;
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
    let mut record = command
        .claims
        .as_deref()
        .map(|path| ClaimsRecord::new(path, &experiments));
    let mut outcome = Outcome::Done;
    let mut published = Vec::new();
    for experiment in &experiments {
        let runs = experiment.select(&Selection {
            quick: command.quick,
            ..command.settings.selection()
        })?;
        let plans = lab::run::prepare(runs.cells)?;
        let begun = Instant::now();
        let (results, intervals, stopped) = execute::run_cells(&plans, false, None, &progress)?;
        if stopped {
            if !results.is_empty() && !command.json {
                print(&format!(
                    "{} (stopped)\n{}{}\n",
                    experiment.title,
                    rows::write_amplifications(&results, &experiment.axes(), &intervals).text(),
                    rows::doubts(&results)
                ));
            }
            return Ok(Outcome::Stopped);
        }
        let holds = if command.quick {
            compare_golden(command, experiment, &runs.settings, &results)?
        } else {
            let judge = Judge::new(experiment, &results, runs.settings.tail_capacities).with_intervals(&intervals);
            if let Some(record) = &mut record {
                record.add(experiment, begun.elapsed(), judge.verdicts())?;
            }
            published.extend(judge.comparisons());
            compare_paper(command, experiment, &judge, &results, &intervals)
        };
        if !holds {
            outcome = Outcome::Failed;
        }
    }
    if experiments.len() > 1 && !command.json {
        let covered = rows::covered(&published);
        print(&if covered.is_empty() {
            covered
        } else {
            format!("all experiments: {covered}")
        });
    }
    Ok(outcome)
}

/// Prints the paper's numbers beside ours and the verdicts; true if every claim holds.
fn compare_paper(
    command: &Reproduce,
    experiment: &Experiment,
    judge: &Judge<'_>,
    results: &[CellResult],
    intervals: &Intervals,
) -> bool {
    let verdicts = judge.verdicts();
    let comparisons = judge.comparisons();
    if command.json {
        print(&format!("{}\n", export::judged_json(experiment, judge, results)));
    } else {
        print(&format!("{} ({})\n", experiment.title, experiment.source));
        let numbers = if experiment.published.is_empty() {
            rows::write_amplifications(results, &experiment.axes(), intervals)
        } else {
            rows::comparisons(&comparisons)
        };
        let above = rows::above_the_oracle(results, &experiment.axes());
        let above = above.map(|rows| rows.text()).unwrap_or_default();
        let doubts = rows::doubts(results);
        print(&format!(
            "{}{above}{}{doubts}\n{}\n",
            numbers.text(),
            rows::covered(&comparisons),
            rows::verdicts(&verdicts).text()
        ));
    }
    verdicts.iter().all(|verdict| verdict.holds)
}

/// Judges the claims that are marked for the quick form, and compares with the golden results, or takes the results as
/// golden; true if nothing is wrong. Golden results under which a claim is broken are not taken: they would hide that
/// for good.
fn compare_golden(
    command: &Reproduce,
    experiment: &Experiment,
    settings: &RunSettings,
    results: &[CellResult],
) -> Result<bool, LabError> {
    let slug = &experiment.slug;
    let path = golden::path(slug);
    let rows = golden::rows(results);
    let (judged, problems) = Judge::new(experiment, results, settings.tail_capacities).quick_problems();
    for problem in &problems {
        print(&format!("{slug}: claim {problem}\n"));
    }
    if command.bless {
        if problems.is_empty() {
            golden::write(&path, &rows)?;
            print(&format!(
                "{slug}: wrote {} golden rows; {judged} claims hold\n",
                rows.len()
            ));
        } else {
            print(&format!(
                "{slug}: NOT blessed: {path} stays as it was until the claims above are right\n"
            ));
        }
        return Ok(problems.is_empty());
    }
    let differences = golden::differences(&golden::read(&path)?, &rows);
    if differences.is_empty() {
        print(&format!(
            "{slug}: {} cells as golden; {judged} claims judged\n",
            rows.len()
        ));
    } else {
        let (count, cells) = (differences.len(), rows.len());
        print(&format!(
            "{slug}: {count} differences in {cells} cells from {path}\n  {}\n",
            differences.join("\n  ")
        ));
    }
    Ok(differences.is_empty() && problems.is_empty())
}
