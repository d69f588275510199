//! `warp reproduce`: runs experiments and compares them with the papers.

use std::time::Instant;

use analysis::claim_checker::{ClaimChecker, PaperComparison};
use analysis::claims_record::ClaimsRecord;
use analysis::export;
use analysis::golden;
use analysis::interval::Intervals;
use analysis::store::RunProvenance;
use experiment::LabError;
use experiment::definition::Experiment;
use experiment::run_options::RunSettings;
use experiment::selection::{ExperimentForm, RunOverrides};
use report::rows;
use serde_json::Value as Json;
use simulate::run::{ExecutionOptions, RefusedCell, RunPlan, RunResult};
use simulate::warning::WarningCommand;

use crate::arguments::{ReproduceArgs, typed_line};
use crate::execute;
use crate::output;
use crate::run::refused_text;
use crate::{ExitOutcome, bad_option, print, results};

pub fn reproduce(command: &ReproduceArgs) -> Result<ExitOutcome, LabError> {
    let names = if command.experiments.is_empty() {
        Experiment::names()
    } else {
        command.experiments.clone()
    };
    // All files are read before the first run, so that a mistake in the last file costs no results.
    let experiments: Vec<Experiment> = names
        .iter()
        .map(|name| Experiment::find(name))
        .collect::<Result<_, _>>()?;
    if let Some(path) = &command.claims {
        if output::is_standard_output(path) {
            return Err(bad_option(
                "--claims",
                "standard output cannot take this file, which is rewritten after each experiment. Give a file",
            ));
        }
        output::check_file(path)?;
    }
    let progress = execute::stoppable();
    let mut record = command
        .claims
        .as_deref()
        .map(|path| ClaimsRecord::new(path, &experiments));
    let mut report = ClaimReporter::new(command);
    for experiment in &experiments {
        let selected = experiment.select(&RunOverrides {
            quick: command.quick,
            ..command.selection.selection()
        })?;
        let (plans, refused) = simulate::run::prepare_possible(selected.cells)?;
        let begun = Instant::now();
        let (results, intervals, stopped) = execute::run_cells(&plans, ExecutionOptions::default(), &progress)?;
        if stopped {
            report.report_stopped(experiment, &results, &intervals);
            report.end(&[]);
            return Ok(ExitOutcome::Stopped);
        }
        report.report_refused(&refused);
        if command.quick {
            report.compare_golden(experiment, &selected.settings, &results, &refused)?;
        } else {
            // `reproduce` checks the claims even if options changed the experiment.
            let judge = ClaimChecker::new(
                experiment,
                ExperimentForm::Full,
                &results,
                selected.settings.tail_drive_writes,
            )
            .with_intervals(&intervals)
            .with_refused(&refused);
            if let Some(record) = &mut record {
                record.add(experiment, begun.elapsed(), judge.verdicts())?;
            }
            let json = export::judged_json(experiment, &judge, &results);
            let origin = RunProvenance {
                target: &experiment.slug,
                title: &experiment.title,
                options: typed_line(command.selection.command_line()),
                seconds: begun.elapsed().as_secs_f64(),
                cells: plans.iter().map(RunPlan::cell).collect(),
            };
            let stored_id = results::save_run(&command.keep, &origin, &json);
            report.compare_paper(experiment, &judge, &results, &intervals);
            report.add_document(json, stored_id);
        }
    }
    report.end(&names);
    Ok(report.outcome)
}

/// Reporter of the results. It prints text immediately and JSON at the end, because JSON is one
/// document.
struct ClaimReporter<'a> {
    command: &'a ReproduceArgs,
    outcome: ExitOutcome,
    documents: Vec<Json>,
    comparisons: Vec<PaperComparison>,
}

impl<'a> ClaimReporter<'a> {
    fn new(command: &'a ReproduceArgs) -> ClaimReporter<'a> {
        ClaimReporter {
            command,
            outcome: ExitOutcome::Done,
            documents: Vec::new(),
            comparisons: Vec::new(),
        }
    }

    fn print(&self, text: &str) {
        if !self.command.output.is_json() {
            print(&self.command.output.tables().words(text));
        }
    }

    /// Reports cells that could not run. The outcome is a failure then.
    fn report_refused(&mut self, cells: &[RefusedCell]) {
        self.print(&refused_text(cells, self.command.output.tables()));
        self.count(cells.is_empty());
    }

    /// Prints the results so far of a stopped experiment.
    fn report_stopped(&self, experiment: &Experiment, results: &[RunResult], intervals: &Intervals) {
        let format = self.command.output.tables();
        if !results.is_empty() {
            self.print(&format!(
                "{}{}{}\n",
                format.words(&format!("{} (stopped)\n", experiment.title)),
                rows::write_amplifications(results, &experiment.axes(), intervals).render(format),
                rows::warning_lines(results, WarningCommand::Run, format)
            ));
        }
    }

    /// Prints the end of the output. JSON is an object for a single named experiment, and an array
    /// for several.
    fn end(&mut self, names: &[String]) {
        if self.command.output.is_json() {
            let one = self.command.experiments.len() == 1;
            match self.documents.pop() {
                Some(document) if one => print(&format!("{document}\n")),
                last => {
                    self.documents.extend(last);
                    print(&format!("{}\n", Json::Array(std::mem::take(&mut self.documents))));
                }
            }
        } else if names.len() > 1 {
            let covered = rows::covered(&self.comparisons);
            print(&if covered.is_empty() {
                covered
            } else {
                format!("all experiments: {covered}")
            });
        }
    }

    /// Prints the paper's numbers beside ours, and the verdicts.
    fn compare_paper(
        &mut self,
        experiment: &Experiment,
        judge: &ClaimChecker<'_>,
        results: &[RunResult],
        intervals: &Intervals,
    ) {
        let verdicts = judge.verdicts();
        let of_experiment = judge.comparisons();
        if !self.command.output.is_json() {
            let format = self.command.output.tables();
            print(&format.words(&format!("{} ({})\n", experiment.title, experiment.source)));
            let numbers = if of_experiment.is_empty() {
                rows::write_amplifications(results, &experiment.axes(), intervals)
            } else {
                rows::comparisons(&of_experiment)
            };
            let above = rows::above_the_oracle(results, &experiment.axes());
            let above = above.map(|rows| rows.render(format)).unwrap_or_default();
            let warnings = rows::warning_lines(results, WarningCommand::Run, format);
            print(&format!(
                "{}{above}{}{warnings}\n{}\n",
                numbers.render(format),
                format.words(&rows::covered(&of_experiment)),
                rows::verdicts(&verdicts).render(format)
            ));
        }
        self.comparisons.extend(of_experiment);
        self.count(verdicts.iter().all(|verdict| verdict.holds != Some(false)));
    }

    /// Adds the result as a document, or prints the name of the stored run.
    fn add_document(&mut self, document: Json, id: Option<String>) {
        // JSON is printed at the end. Text was printed before.
        if self.command.output.is_json() {
            self.documents.push(document);
        } else if let Some(id) = id {
            print(
                &self
                    .command
                    .output
                    .tables()
                    .words(&format!("stored as {id} (warp results list)\n\n")),
            );
        }
    }

    /// Makes the outcome a failure unless `is_success`.
    fn count(&mut self, is_success: bool) {
        if !is_success {
            self.outcome = ExitOutcome::Failed;
        }
    }

    /// Checks the claims of the quick variant. Then compares the results with the golden ones, or
    /// replaces them. Results that break a claim never become golden, because they would hide the
    /// failure for good.
    fn compare_golden(
        &mut self,
        experiment: &Experiment,
        settings: &RunSettings,
        results: &[RunResult],
        refused: &[RefusedCell],
    ) -> Result<(), LabError> {
        let slug = &experiment.slug;
        let path = golden::path(slug);
        let rows = golden::rows(results);
        let (judged, problems) =
            ClaimChecker::new(experiment, ExperimentForm::Quick, results, settings.tail_drive_writes).quick_problems();
        for problem in &problems {
            self.print(&format!("{slug}: claim {problem}\n"));
        }
        let differences = if self.command.update_golden {
            self.update_golden(slug, &path, &rows, judged, problems.is_empty())?;
            Vec::new()
        } else {
            let differences = golden::differences(&golden::read(&path)?, &rows);
            self.print(&described(slug, &path, &differences, rows.len(), judged));
            differences
        };
        let mut document = serde_json::json!({
            "experiment": slug,
            "cells": rows.len(),
            "differences": differences,
            "claims_judged": judged,
            "claims_broken": problems,
        });
        if !refused.is_empty() {
            document["refused"] = export::refused_json(&experiment.axes(), refused);
        }
        self.documents.push(document);
        self.count(differences.is_empty() && problems.is_empty());
        Ok(())
    }

    fn update_golden(
        &self,
        slug: &str,
        path: &str,
        rows: &[golden::GoldenRow],
        judged: usize,
        claims_hold: bool,
    ) -> Result<(), LabError> {
        if !claims_hold {
            self.print(&format!(
                "{slug}: {path} was not updated, because the claims above do not hold\n"
            ));
            return Ok(());
        }
        golden::write(path, rows)?;
        self.print(&format!(
            "{slug}: wrote {} golden rows, {judged} claims hold\n",
            rows.len()
        ));
        Ok(())
    }
}

/// Describes the differences from the golden results.
fn described(slug: &str, path: &str, differences: &[String], cells: usize, judged: usize) -> String {
    if differences.is_empty() {
        return format!("{slug}: {cells} cells equal the golden results, {judged} claims judged\n");
    }
    let count = differences.len();
    format!(
        "{slug}: {cells} cells differ from {path} in {count} places\n  {}\n",
        differences.join("\n  ")
    )
}
