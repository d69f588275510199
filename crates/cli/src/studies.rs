//! `warp list`, `warp new`, and the introduction that `warp run` prints without a target.

use experiment::LabError;
use report::catalogue::{CatalogueEntry, EntryKind};

use crate::arguments::{ListArgs, NewArgs, NewCommand, OutputFormat};
use crate::{ExitOutcome, print};

/// Introduction of `warp run` without a target.
const DOORS: &str = "\
Three ways to start

To evaluate a workload (a fio job file, a block trace, or a model of a program)
    warp whatif trace.csv --drive 3.84TB --op 7%
    warp run my.fio --device ssd_a --scale 1/512 --untimed
    warp run kvcache_202206 --device ssd_a --scale 1/512 --drive-writes 3
To try an idea for a drive or a policy, or to reproduce a figure of a paper
    warp new experiment my_study, then warp run my_study
    warp reproduce --quick three_stream
To test software that should use Flexible Data Placement, on a served drive
    warp serve --device ssd_a --capacity 8G --tcp 127.0.0.1:4420

`warp list` shows all experiments, devices, jobs and workloads.
";

pub fn print_introduction() -> ExitOutcome {
    print(DOORS);
    ExitOutcome::Done
}

pub fn list(command: &ListArgs) -> Result<ExitOutcome, LabError> {
    match command.what {
        Some(kind) => list_kind(kind, &command.output),
        None => list_all(&command.output),
    }
}

fn list_kind(kind: EntryKind, output: &OutputFormat) -> Result<ExitOutcome, LabError> {
    let entries = kind.entries()?;
    Ok(output.print(&entries, |format| kind.table(&entries).render(format)))
}

fn list_all(output: &OutputFormat) -> Result<ExitOutcome, LabError> {
    let all = EntryKind::ALL.map(|kind| Ok((kind, kind.entries()?)));
    let all: Vec<(EntryKind, Vec<CatalogueEntry>)> = all.into_iter().collect::<Result<_, LabError>>()?;
    let fields = all.iter().map(|(kind, entries)| (kind.name().to_string(), serde_json::json!(entries)));
    Ok(output.print(&serde_json::Value::Object(fields.collect()), |format| {
        let tables: Vec<String> = all.iter().map(|(kind, entries)| kind.table(entries).render(format)).collect();
        tables.join("\n")
    }))
}

pub fn new(command: &NewArgs) -> Result<ExitOutcome, LabError> {
    let NewCommand::Experiment { name } = &command.what;
    let files = experiment::template::write(name)?;
    let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    print(&format!("wrote {}\nwarp run {}\n", files.join(", "), experiment::template::shell_word(name)));
    Ok(ExitOutcome::Done)
}
