//! `warp devices`, `jobs`, `explain`: looking at things.

use experiment::LabError;
use experiment::definition::Experiment;
use experiment::profile::Profile;
use experiment::run_options::RunOptions;
use experiment::selection::Selection;
use experiment::twin;
use report::catalogue::Kind;
use report::describe;
use report::rows::wrapped;
use workload::fio::{self, FioOption};

use crate::arguments::{Devices, Explain, Jobs};
use crate::{Outcome, bad_option, print, studies};

pub fn devices(command: &Devices) -> Result<Outcome, LabError> {
    let Some(name) = &command.name else {
        return studies::list_kind(Kind::Devices, &command.output);
    };
    let profile = Profile::find(name)?;
    if command.output.is_json() {
        print(&format!(
            "{}\n",
            serde_json::json!({ "name": profile.name, "title": profile.title, "notes": profile.notes, "values": profile.sources, "ensemble": profile.ensemble })
        ));
    } else {
        let format = command.output.tables();
        let ensemble = describe::ensemble(&profile);
        let ensemble = if ensemble.is_empty() {
            String::new()
        } else {
            ensemble.shown(format)
        };
        print(&format!(
            "{}{}{ensemble}\n{}",
            format.words(&format!("{}: {}\n", profile.name, profile.title)),
            describe::sources(&profile).shown(format),
            format.words(&profile.notes)
        ));
    }
    Ok(Outcome::Done)
}

pub fn jobs(command: &Jobs) -> Result<Outcome, LabError> {
    if command.options {
        print(&fio::manual());
        return Ok(Outcome::Done);
    }
    let Some(name) = &command.name else {
        return studies::list_kind(Kind::Jobs, &command.output);
    };
    // The same road as that of `warp run`, so that both accept the same.
    let experiment = Experiment::of_workload(name, &command.device);
    let selection = Selection {
        run: RunOptions {
            write_capacities: Some(1.0),
            ..RunOptions::default()
        },
        ..Selection::default()
    };
    let plan = simulate::run::prepare(experiment.select(&selection)?.cells)?.remove(0);
    let Some(jobs) = plan.cell().workload.jobs() else {
        return Err(bad_option(name, "is no job file; `warp run` runs it"));
    };
    let streams = plan.streams()?;
    if command.output.is_json() {
        let without_effect = jobs.without_effect();
        let without_effect: serde_json::Map<String, serde_json::Value> = without_effect
            .iter()
            .map(|(option, why)| (option.name.to_string(), (*why).into()))
            .collect();
        print(&format!(
            "{}\n",
            serde_json::json!({
                "file": jobs.file,
                "device": plan.cell().key.device,
                "streams": streams,
                "without_effect": without_effect,
            })
        ));
        return Ok(Outcome::Done);
    }
    let format = command.output.tables();
    print(&format!(
        "{}{}{}",
        format.words(&format!("{} on {}\n", jobs.file, plan.cell().key.device)),
        describe::streams(&streams).shown(format),
        format.words(&wrapped(&without_effect(&jobs.without_effect())))
    ));
    Ok(Outcome::Done)
}

/// What was accepted and changes nothing, by its reason.
fn without_effect(options: &[(&FioOption, &str)]) -> String {
    let reasons = options.chunk_by(|(_, one), (_, next)| one == next);
    let line = |group: &[(&FioOption, &str)]| {
        let names: Vec<&str> = group.iter().map(|(option, _)| option.name).collect();
        format!("without effect: {} ({})\n", names.join(", "), group[0].1)
    };
    reasons.map(line).collect()
}

pub fn explain(command: &Explain) -> Result<Outcome, LabError> {
    let profile = Profile::find(&command.device)?;
    let config = profile.config(&command.set.iter().cloned().collect())?;
    let (config, layout) = twin::twin(&profile.name, &config, command.scale)?;
    if command.output.is_json() {
        print(&format!(
            "{}\n",
            serde_json::json!({ "config": config, "layout": layout, "memory_bytes": layout.memory_bytes() })
        ));
    } else {
        print(&format!(
            "{}{}",
            command
                .output
                .tables()
                .words(&format!("{}: {}\n", profile.name, profile.title)),
            describe::layout(&config, &layout).shown(command.output.tables())
        ));
    }
    Ok(Outcome::Done)
}
