//! `warp export`: a workload as fio iologs, to be replayed on a real drive.

use lab::LabError;
use lab::experiment::Experiment;
use lab::selection::Selection;
use lab::twin::ScaleChoice;
use workload::trace::{self, ExportSettings, ExportSummary, Feed, IologVersion};

use crate::arguments::Export;
use crate::{Outcome, bad_option, print};

pub fn export(command: &Export) -> Result<Outcome, LabError> {
    let experiment = Experiment::of_workload(&command.workload, &command.device);
    let selection = Selection {
        overrides: command.set.iter().cloned().collect(),
        scale: Some(ScaleChoice::Fixed(command.scale)),
        timed: Some(false),
        // What never ends is cut off at the number of requests.
        write_capacities: command.requests.map(|_| 1.0),
        ..Selection::default()
    };
    let plans = lab::run::prepare(experiment.select(&selection)?.cells)?;
    let mut source = plans[0].source()?;
    let settings = ExportSettings {
        file: command.file.clone(),
        version: match command.iolog_version {
            2 => IologVersion::Two,
            _ => IologVersion::Three,
        },
        requests_max: command.requests,
        ..ExportSettings::default()
    };
    let feed = Feed::Untimed(&mut *source);
    let to = command.to.display().to_string();
    let exported = if command.per_placement {
        std::fs::create_dir_all(&command.to).map_err(|source| LabError::Io {
            file: to.clone(),
            source,
        })?;
        trace::export_per_placement(feed, &settings, &command.to, &experiment.slug)?
    } else {
        if command.to.is_dir() {
            return Err(bad_option(&to, "is a folder; give a file, or --per-placement"));
        }
        let mut exported = ExportSummary::default();
        lab::export::write_atomically(&command.to, |file| {
            exported = trace::export(feed, &settings, &to, file).map_err(std::io::Error::other)?;
            Ok(())
        })?;
        exported
    };
    print(&format!(
        "wrote {} requests, {} bytes, to {to}\n",
        exported.requests, exported.bytes
    ));
    Ok(Outcome::Done)
}
