//! `warp reproduce`: runs experiments and compares them with the papers.

use std::time::Instant;

use analysis::claim_checker::{ClaimChecker, PaperComparison};
use analysis::claims_record::ClaimsRecord;
use analysis::export;
use analysis::fidelity::FidelityPage;
use analysis::golden;
use analysis::interval::Intervals;
use analysis::store::RunProvenance;
use experiment::{Experiment, ExperimentForm, LabError, RunOverrides, RunSettings};
use report::rows;
use serde_json::Value as Json;
use simulate::run::{ExecutionOptions, RefusedCell, RunPlan, RunResult};
use simulate::warning::WarningCommand;

use crate::arguments::{ReproduceArgs, typed_line};
use crate::execute;
use crate::output::{self, OutputContent, OutputFile};
use crate::run::refused_text;
use crate::{ExitOutcome, print, results};

pub fn reproduce(command: &ReproduceArgs) -> Result<ExitOutcome, LabError> {
    let names = if command.experiments.is_empty() { Experiment::names() } else { command.experiments.clone() };
    // All files are read before the first run, so that a mistake in the last file costs no results.
    let experiments: Vec<Experiment> = names.iter().map(|name| Experiment::find(name)).collect::<Result<_, _>>()?;
    let pages = [("--claims", &command.claims), ("--fidelity", &command.fidelity)];
    let pages = pages.into_iter().filter_map(|(option, path)| {
        let path = path.as_deref()?;
        // Each page is rewritten after each experiment.
        let content = OutputContent::Random;
        Some(OutputFile { option, path, content })
    });
    output::check(&pages.collect::<Vec<_>>(), None, false)?;
    let progress = execute::stoppable();
    let record = command.claims.as_deref();
    let mut record = record.map(|path| ClaimsRecord::new(path, &experiments)).transpose()?;
    let page = command.fidelity.as_deref();
    let mut page = page.map(|path| FidelityPage::new(path, &experiments)).transpose()?;
    let mut report = ClaimReporter::new(command);
    for experiment in &experiments {
        let selected = experiment.select(&RunOverrides { quick: command.quick, ..command.selection.selection() })?;
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
            let tail_drive_writes = selected.settings.tail_drive_writes;
            let mut judge = ClaimChecker::new(experiment, ExperimentForm::Full, &results, tail_drive_writes);
            judge.intervals = &intervals;
            judge.refused = &refused;
            let elapsed = begun.elapsed();
            let json = export::judged_json(&judge);
            let origin = RunProvenance {
                target: &experiment.slug,
                title: &experiment.title,
                options: typed_line(command.selection.command_line()),
                seconds: elapsed.as_secs_f64(),
                cells: plans.iter().map(RunPlan::cell).collect(),
            };
            let stored_id = results::save_run(&command.keep, &origin, &json);
            report.compare_paper(&judge);
            report.add_document(json, stored_id);
            let record = record.as_mut();
            let recorded = record.map(|record| record.add(experiment, elapsed, &judge.verdicts(), &judge.regression()));
            let page = page.as_mut().map(|page| page.add(experiment, judge.comparisons()));
            if let Some(Err(error)) = [recorded, page].into_iter().flatten().find(Result::is_err) {
                // The results so far must not be lost with the page.
                report.end(&[]);
                return Err(error);
            }
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
        ClaimReporter { command, outcome: ExitOutcome::Done, documents: Vec::new(), comparisons: Vec::new() }
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
            let format = self.command.output.tables();
            let lines = [rows::score(&self.comparisons), rows::covered(&self.comparisons)].concat();
            for line in lines.lines() {
                print(&format.words(&rows::wrapped(&format!("all experiments: {line}"))));
            }
        }
    }

    /// Prints the paper's numbers beside ours, and the verdicts.
    fn compare_paper(&mut self, judge: &ClaimChecker<'_>) {
        let ClaimChecker { experiment, results, intervals, .. } = *judge;
        let (verdicts, regression) = (judge.verdicts(), judge.regression());
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
            let words = [rows::score(&of_experiment), rows::covered(&of_experiment)].concat();
            print(&format!(
                "{}{above}{}{warnings}\n{}\n",
                numbers.render(format),
                format.words(&rows::wrapped(&words)),
                rows::judged(&verdicts, &regression, &experiment.ledger, format)
            ));
        }
        self.comparisons.extend(of_experiment);
        let mut all = verdicts.iter().chain(&regression);
        self.count(all.all(|verdict| verdict.holds != Some(false)));
    }

    /// Adds the result as a document, or prints the name of the stored run.
    fn add_document(&mut self, document: Json, id: Option<String>) {
        // JSON is printed at the end. Text was printed before.
        if self.command.output.is_json() {
            self.documents.push(document);
        } else if let Some(id) = id {
            print(&self.command.output.tables().words(&format!("stored as {id} (warp results list)\n\n")));
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
            "claims_judged": judged[0],
            "regression_judged": judged[1],
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
        judged: [usize; 2],
        claims_hold: bool,
    ) -> Result<(), LabError> {
        if !claims_hold {
            self.print(&format!("{slug}: {path} was not updated, because the claims above do not hold\n"));
            return Ok(());
        }
        golden::write(path, rows)?;
        self.print(&format!(
            "{slug}: wrote {} golden rows, {} claims and {} regression tests hold\n",
            rows.len(),
            judged[0],
            judged[1]
        ));
        Ok(())
    }
}

/// Describes the differences from the golden results.
fn described(slug: &str, path: &str, differences: &[String], cells: usize, judged: [usize; 2]) -> String {
    if differences.is_empty() {
        let [claims, regression] = judged;
        return format!(
            "{slug}: {cells} cells equal the golden results, {claims} claims and {regression} regression tests judged\n"
        );
    }
    let count = differences.len();
    format!("{slug}: {cells} cells differ from {path} in {count} places\n  {}\n", differences.join("\n  "))
}
