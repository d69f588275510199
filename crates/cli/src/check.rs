//! `warp drive check`: checks the write amplification of a drive against limits.

use std::path::Path;

use initiator::inspect::FdpReport;
use initiator::inspect::decode::FdpByteCounts;

use crate::arguments::{CheckArgs, HandleLimit};
use crate::output::print_error;
use crate::target::{DriveTarget, stored_drive};
use crate::{AnyError, ExitOutcome, bad_option, print};

/// Limit, with the write amplification that it applies to.
struct LimitOutcome {
    /// Description of the write amplification, for messages.
    subject: String,
    at_most: f64,
    /// `None` if the host wrote no data. The limit then counts as exceeded.
    measured: Option<f64>,
}

impl LimitOutcome {
    fn is_met(&self) -> bool {
        self.measured.is_some_and(|waf| waf <= self.at_most)
    }

    fn sentence(&self) -> String {
        let LimitOutcome { subject, at_most, .. } = self;
        match self.measured {
            Some(waf) if self.is_met() => format!("{subject} is {waf:.3}, at most {at_most}"),
            Some(waf) => format!("{subject} is {waf:.3}, above {at_most}"),
            None => format!("{subject} is unknown, because nothing was written"),
        }
    }
}

pub fn check(command: &CheckArgs) -> Result<ExitOutcome, AnyError> {
    let name = command.target.as_str();
    let target = DriveTarget::parse("TARGET", name, &command.host)?;
    if !matches!(target, DriveTarget::File(_)) && !command.handle.is_empty() {
        let problem = "the FDP logs of a drive have no counters per handle. Stop the server and give the drive's \
                       data file (`warp serve --data FILE`)";
        return Err(bad_option("--handle", problem).into());
    }
    let all: Vec<LimitOutcome> = match target.report(command.endurance_group)? {
        Ok(report) => check_logs(command, report)?,
        Err(file) => check_file(command, file)?,
    };
    let broken = all.iter().filter(|limit| !limit.is_met());
    let broken: Vec<String> = broken.map(LimitOutcome::sentence).collect();
    if broken.is_empty() {
        let all: Vec<String> = all.iter().map(LimitOutcome::sentence).collect();
        print(&format!("{name}: {}\n", all.join(" and ")));
        return Ok(ExitOutcome::Done);
    }
    print_error(&format!("{name}: {}", broken.join(" and ")));
    Ok(ExitOutcome::Failed)
}

/// Checks the logs of a drive, which have no counters per handle.
fn check_logs(command: &CheckArgs, report: FdpReport) -> Result<Vec<LimitOutcome>, AnyError> {
    let Some(enabled) = report.enabled else {
        let problem = "Flexible Data Placement is not enabled, so the drive has no FDP counters. Enable it on the \
                       drive first";
        return Err(bad_option(&command.target, problem).into());
    };
    let FdpByteCounts { write_amplification, .. } = enabled.statistics;
    Ok(check_drive(command, write_amplification).into_iter().collect())
}

/// Checks the stored counters of a drive that was served from a file.
fn check_file(command: &CheckArgs, file: &Path) -> Result<Vec<LimitOutcome>, AnyError> {
    let stored = stored_drive(file)?;
    let Some(device) = stored.device else {
        return Err(bad_option(&command.target, "no counters are stored yet. Stop the server with Ctrl-C first").into());
    };
    if stored.state.is_some_and(|state| !state.clean) {
        let problem = "the drive is being served or was killed, so its stored counters are incomplete. Stop the server with \
             Ctrl-C first";
        return Err(bad_option(&command.target, problem).into());
    }
    let mut all: Vec<LimitOutcome> = check_drive(command, device.write_amplification).into_iter().collect();
    for &HandleLimit { handle, at_most } in &command.handle {
        let Some(row) = device.stats.handles.get(usize::from(handle)) else {
            let last = device.stats.handles.len() - 1;
            return Err(bad_option(
                "--handle",
                format!("the drive has no reclaim unit handle {handle}. Give 0 to {last}"),
            )
            .into());
        };
        all.push(LimitOutcome {
            subject: format!("write amplification of reclaim unit handle {handle}"),
            at_most,
            measured: row.write_amplification(),
        });
    }
    Ok(all)
}

fn check_drive(command: &CheckArgs, measured: Option<f64>) -> Option<LimitOutcome> {
    command.waf_at_most.map(|at_most| LimitOutcome { subject: "write amplification".to_string(), at_most, measured })
}
