//! `warp results`: lists and shows stored runs, and compares two results.

use analysis::compare;
use analysis::store::{ResultStore, RunProvenance, StoredRuns};
use experiment::LabError;
use report::rows;
use serde_json::Value;

use crate::arguments::{CompareArgs, ListResults, ResultsArgs, ResultsCommand, SaveRunArgs, ShowResult};
use crate::{ExitOutcome, bad_option, print};

/// Stores a run unless `--no-keep` is given, and returns its short name. A failure to store is
/// printed and ignored, because the result is valid anyway.
pub fn save_run(choice: &SaveRunArgs, origin: &RunProvenance<'_>, result: &Value) -> Option<String> {
    if choice.no_keep {
        return None;
    }
    match ResultStore::for_user().and_then(|store| store.save(origin, result)) {
        Ok(id) => Some(id),
        Err(error) => {
            crate::output::print_error(&format!(
                "the run is not stored ({error}). Choose another folder with WARP_RUNS, or give --no-keep"
            ));
            None
        }
    }
}

pub fn results(results: &ResultsArgs) -> Result<ExitOutcome, LabError> {
    match &results.command {
        ResultsCommand::List(command) => list(&ResultStore::for_user()?, command),
        ResultsCommand::Show(command) => show(&ResultStore::for_user()?, command),
        ResultsCommand::Compare(command) => compare(command),
    }
}

fn list(store: &ResultStore, command: &ListResults) -> Result<ExitOutcome, LabError> {
    let StoredRuns { runs, unreadable } = store.runs(command.limit as usize)?;
    for problem in &unreadable {
        crate::output::print_error(&format!("left out: {problem}"));
    }
    if command.output.is_json() {
        let rows = Value::Array(runs.iter().map(analysis::store::StoredRun::row_json).collect());
        print(&format!("{rows}\n"));
        return Ok(ExitOutcome::Done);
    }
    if runs.is_empty() {
        print(&format!("{} has no stored runs yet\n", store.folder().display()));
        return Ok(ExitOutcome::Done);
    }
    let format = command.output.tables();
    let all = store.count()?;
    let rest = match all.saturating_sub(runs.len() + unreadable.len()) {
        0 => String::new(),
        more => format.words(&format!("and {more} older runs (--limit)\n")),
    };
    print(&format!("{}{rest}", rows::kept_runs(&runs).render(format)));
    Ok(ExitOutcome::Done)
}

fn show(store: &ResultStore, command: &ShowResult) -> Result<ExitOutcome, LabError> {
    let run = store.find(&command.id)?;
    Ok(command.output.print(&run.document, |format| {
        let (about, cells) = rows::kept_run(&run);
        about.render(format) + &cells.render(format)
    }))
}

fn compare(command: &CompareArgs) -> Result<ExitOutcome, LabError> {
    let comparison = compare::find(&command.a, &command.b)?;
    let written = match &command.out {
        None => None,
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .map_err(|error| bad_option("--out", format!("{}: {error}", folder.display())))?;
            let file = folder.join("report.html");
            report::write_comparison(&comparison, &file)?;
            Some(file)
        }
    };
    if command.output.is_json() {
        print(&format!("{}\n", comparison.to_json()));
        return Ok(ExitOutcome::Done);
    }
    print(&rows::comparison(&comparison).render(command.output.tables()));
    if let Some(file) = written {
        print(&command.output.tables().words(&format!("wrote {}\n", file.display())));
    }
    Ok(ExitOutcome::Done)
}
