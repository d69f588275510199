//! `warp devices`, `jobs`, `explain`: looking at things.

use lab::catalogue::Kind;
use lab::profile::{Overrides, Profile};
use lab::workloads::read_jobs;
use lab::{LabError, describe, twin};
use workload::Target;
use workload::fio::{self, Schedule};

use crate::arguments::{Devices, Explain, Jobs};
use crate::{Outcome, print, studies};

pub fn devices(command: &Devices) -> Result<Outcome, LabError> {
    let Some(name) = &command.name else {
        return studies::list_kind(Kind::Devices, command.json);
    };
    let profile = Profile::find(name)?;
    if command.json {
        print(&format!(
            "{}\n",
            serde_json::json!({ "name": profile.name, "title": profile.title, "notes": profile.notes, "values": profile.sources, "ensemble": profile.ensemble })
        ));
    } else {
        let ensemble = describe::ensemble(&profile);
        let ensemble = if ensemble.is_empty() {
            String::new()
        } else {
            ensemble.text()
        };
        print(&format!(
            "{}: {}\n{}{ensemble}\n{}",
            profile.name,
            profile.title,
            describe::sources(&profile).text(),
            profile.notes
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
        return studies::list_kind(Kind::Jobs, false);
    };
    let jobs = read_jobs(name, &[])?;
    let profile = Profile::find(&command.device)?;
    let (_, layout) = twin::twin(&profile.name, &profile.config(&Overrides::new())?, twin::Scale::FULL)?;
    let target = Target {
        device_bytes: u64::from(layout.logical_pages) * layout.page_bytes,
        placement_count: layout.placement_count(),
        endless: true,
        twin: None,
    };
    let schedule = Schedule::new(&jobs, &target)?;
    print(&format!("{} on {}\n", jobs.file, profile.name));
    for stream in schedule.describe() {
        print(&format!("{stream}\n"));
    }
    Ok(Outcome::Done)
}

pub fn explain(command: &Explain) -> Result<Outcome, LabError> {
    let profile = Profile::find(&command.device)?;
    let config = profile.config(&command.set.iter().cloned().collect())?;
    let (config, layout) = twin::twin(&profile.name, &config, command.scale)?;
    if command.json {
        print(&format!(
            "{}\n",
            serde_json::json!({ "config": config, "layout": layout, "memory_bytes": layout.memory_bytes() })
        ));
    } else {
        print(&format!(
            "{}: {}\n{}",
            profile.name,
            profile.title,
            describe::layout(&config, &layout).text()
        ));
    }
    Ok(Outcome::Done)
}
