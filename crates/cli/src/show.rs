//! `warp show`: describes devices, job files and fio options, and prints workloads and experiments.

use std::io::{self, IsTerminal};

use experiment::{Experiment, LabError, Profile, RunOptions, RunOverrides, scaled_model, workloads};
use report::describe;
use report::rows::{CellValue, ReportTable, wrapped};
use workload::fio::{self, FioOption};

use crate::arguments::{ShowArgs, ShowCommand, ShowDevice, ShowJob};
use crate::{ExitOutcome, bad_option, print};

pub fn show(show: &ShowArgs) -> Result<ExitOutcome, LabError> {
    match &show.command {
        ShowCommand::Device(command) => device(command),
        ShowCommand::Job(command) => job(command),
        ShowCommand::Workload(command) => Ok(text(&workloads::text_of_workload(&command.name)?)),
        ShowCommand::Experiment(command) => Ok(text(&Experiment::text(&command.name)?.text)),
        ShowCommand::FioOptions => Ok(fio_options()),
    }
}

fn text(file: &str) -> ExitOutcome {
    print(file);
    ExitOutcome::Done
}

fn fio_options() -> ExitOutcome {
    let manual = fio::manual();
    print(&if io::stdout().is_terminal() { tables_of(&manual) } else { manual });
    ExitOutcome::Done
}

fn device(command: &ShowDevice) -> Result<ExitOutcome, LabError> {
    let profile = Profile::find(&command.name)?;
    let settings = command.set.iter().cloned().collect();
    let config = profile.config(&settings)?;
    let config = match command.capacity {
        Some(capacity_bytes) => scaled_model::with_capacity(&profile.name, &config, capacity_bytes, &settings)?.config,
        None => config,
    };
    let (config, layout) = scaled_model::scaled_config(&profile.name, &config, command.scale)?;
    let json = serde_json::json!({
        "name": profile.name,
        "title": profile.title,
        "notes": profile.notes,
        "values": profile.sources,
        "ensemble": profile.ensemble,
        "config": config,
        "layout": layout,
        "memory_bytes": layout.memory_bytes(),
    });
    let ensemble = describe::ensemble(&profile);
    let tables = [describe::layout(&config, &layout), describe::sources(&profile)];
    let tables = tables.into_iter().chain((!ensemble.is_empty()).then_some(ensemble));
    Ok(command.output.print(&json, |format| {
        let tables: Vec<String> = tables.map(|table| table.render(format)).collect();
        let title = format.words(&wrapped(&format!("{}: {}\n", profile.name, profile.title)));
        format!("{title}{}\n{}", tables.join("\n"), format.words(&wrapped(&profile.notes)))
    }))
}

fn job(command: &ShowJob) -> Result<ExitOutcome, LabError> {
    let name = &command.name;
    // The same code as that of `warp run` prepares the file, so that both accept the same files.
    let experiment = Experiment::from_workload(name, &command.device);
    let selection = RunOverrides {
        run: RunOptions { drive_writes: Some(1.0), ..RunOptions::default() },
        ..RunOverrides::default()
    };
    let plan = simulate::run::prepare(experiment.select(&selection)?.cells)?.remove(0);
    let Some(jobs) = plan.cell().workload.jobs() else {
        return Err(bad_option(name, "is not a job file. Run it with `warp run`"));
    };
    let streams = plan.streams()?;
    let without: serde_json::Map<String, serde_json::Value> =
        jobs.without_effect().iter().map(|(option, why)| (option.name().to_string(), (*why).into())).collect();
    let device = &plan.cell().key.device;
    let json = serde_json::json!({
        "file": jobs.file,
        "device": device,
        "streams": streams,
        "without_effect": without,
    });
    Ok(command.output.print(&json, |format| {
        let title = format.words(&format!("{} on {device}\n", jobs.file));
        let without = format.words(&wrapped(&without_effect(&jobs.without_effect())));
        format!("{title}{}{without}", describe::streams(&streams).render(format))
    }))
}

/// Converts Markdown tables to terminal tables, each below its title.
fn tables_of(markdown: &str) -> String {
    let mut text = String::new();
    let mut table: Option<ReportTable> = None;
    for line in markdown.lines().chain(["###"]) {
        let cells = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"));
        match (cells, &mut table) {
            (Some(cells), None) => table = Some(ReportTable::default().texts(cells.split(" | "))),
            (Some(cells), Some(table)) => {
                table.add(cells.split(" | ").map(|cell| CellValue::from(cell.replace('`', ""))))
            }
            (None, _) if line.starts_with("###") => {
                text += &table.take().map_or_else(String::new, |table| table.text() + "\n");
                text += line.trim_start_matches(['#', ' ']);
                text += "\n";
            }
            _ => {}
        }
    }
    text.trim_end().to_string() + "\n"
}

/// Groups the accepted options without effect by their reason.
fn without_effect(options: &[(&FioOption, &str)]) -> String {
    let reasons = options.chunk_by(|(_, one), (_, next)| one == next);
    let line = |group: &[(&FioOption, &str)]| {
        let names: Vec<&str> = group.iter().map(|(option, _)| option.name()).collect();
        format!("options without effect: {} ({})\n", names.join(", "), group[0].1)
    };
    reasons.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_of_options_is_tables_on_a_terminal() {
        let text = tables_of(&fio::manual());
        assert!(text.starts_with("Options that act\n┌"), "{text}");
        for title in ["Options that are refused\n┌", "Options without effect\n┌", "│ rw, readwrite "] {
            assert!(text.contains(title), "{title}: {text}");
        }
        assert!(!text.contains("|---") && !text.contains('`'), "{text}");
    }
}
