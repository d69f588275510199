//! `warp results`: lists and shows stored runs, and compares two results.

use analysis::compare;
use analysis::store::{KeptRuns, Origin, Store};
use experiment::LabError;
use report::rows;
use serde_json::Value;

use crate::arguments::{Compare, Keep, ListResults, Results, ResultsCommand, ShowResult};
use crate::{Outcome, bad_option, print};

/// Stores a run unless `--no-keep` is given, and returns its short name. A failure to store is
/// printed and ignored, because the result is valid anyway.
pub fn keep(choice: &Keep, origin: &Origin<'_>, result: &Value) -> Option<String> {
    if choice.no_keep {
        return None;
    }
    match Store::of_user().and_then(|store| store.keep(origin, result)) {
        Ok(id) => Some(id),
        Err(error) => {
            crate::output::complain(&format!(
                "the run is not stored ({error}). Choose another folder with WARP_RUNS, or give --no-keep"
            ));
            None
        }
    }
}

pub fn results(results: &Results) -> Result<Outcome, LabError> {
    match &results.command {
        ResultsCommand::List(command) => list(&Store::of_user()?, command),
        ResultsCommand::Show(command) => show(&Store::of_user()?, command),
        ResultsCommand::Compare(command) => compare(command),
    }
}

fn list(store: &Store, command: &ListResults) -> Result<Outcome, LabError> {
    let KeptRuns { runs, unreadable } = store.runs(command.limit as usize)?;
    for problem in &unreadable {
        crate::output::complain(&format!("left out: {problem}"));
    }
    if command.output.is_json() {
        let rows = Value::Array(runs.iter().map(analysis::store::KeptRun::row_json).collect());
        print(&format!("{rows}\n"));
        return Ok(Outcome::Done);
    }
    if runs.is_empty() {
        print(&format!("{} has no stored runs yet\n", store.folder().display()));
        return Ok(Outcome::Done);
    }
    let format = command.output.tables();
    let all = store.count()?;
    let rest = match all.saturating_sub(runs.len() + unreadable.len()) {
        0 => String::new(),
        more => format.words(&format!("and {more} older runs (--limit)\n")),
    };
    print(&format!("{}{rest}", rows::kept_runs(&runs).shown(format)));
    Ok(Outcome::Done)
}

fn show(store: &Store, command: &ShowResult) -> Result<Outcome, LabError> {
    let run = store.find(&command.id)?;
    if command.output.is_json() {
        print(&format!("{}\n", run.document));
    } else {
        let (about, cells) = rows::kept_run(&run);
        let format = command.output.tables();
        print(&format!("{}{}", about.shown(format), cells.shown(format)));
    }
    Ok(Outcome::Done)
}

fn compare(command: &Compare) -> Result<Outcome, LabError> {
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
        return Ok(Outcome::Done);
    }
    print(&rows::comparison(&comparison).shown(command.output.tables()));
    if let Some(file) = written {
        print(&command.output.tables().words(&format!("wrote {}\n", file.display())));
    }
    Ok(Outcome::Done)
}
