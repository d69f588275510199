//! `warp drive faults`: injects, shows or clears faults on a served drive.

use std::fmt::Write;
use std::path::Path;

use base::input::TEXT_BYTES_MAX;
use experiment::LabError;
use nvme::fault::{FaultPlan, FaultsReport};
use target::http::{self, ChangeRequest};
use target::monitor::metrics::FAULTS;

use crate::arguments::FaultsArgs;
use crate::token::token;
use crate::{AnyError, ExitOutcome, bad_option, print, read_text};

/// HTTP status of success.
const OK: u16 = 200;

pub fn faults(command: &FaultsArgs) -> Result<ExitOutcome, AnyError> {
    let token = token(&command.token)?;
    let change = match &command.file {
        Some(file) => {
            plan(file)?;
            Some(ChangeRequest::Put(read_text(file, TEXT_BYTES_MAX)?))
        }
        None => command.clear.then_some(ChangeRequest::Delete),
    };
    let address = command.address;
    let (status, answer) = http::send_request(address, &token, FAULTS, change).map_err(|error| {
        bad_option(&address.to_string(), format!("{error}. Give the address of warp serve --metrics"))
    })?;
    if status != OK {
        return Err(bad_option(&address.to_string(), answer.trim_end()).into());
    }
    let unreadable = |_| {
        bad_option(
            &address.to_string(),
            "the answer has another format. Use the same version for warp serve and warp drive faults",
        )
    };
    let report: Option<FaultsReport> = serde_json::from_str(&answer).map_err(unreadable)?;
    print(&described(report.as_ref()));
    Ok(ExitOutcome::Done)
}

pub fn plan(file: &Path) -> Result<FaultPlan, LabError> {
    let name = file.display().to_string();
    let text = read_text(file, TEXT_BYTES_MAX)?;
    FaultPlan::parse(&text).map_err(|error| LabError::invalid(&name, error.to_string()))
}

/// Formats the planned faults with the number of their occurrences as a table.
fn described(report: Option<&FaultsReport>) -> String {
    let Some(report) = report else {
        return "no faults are planned\n".to_string();
    };
    let mut text = format!("seed {}, {} I/O commands since the start of the plan\n", report.seed, report.commands);
    let width = report.faults.iter().map(|fault| fault.name.chars().count()).max().unwrap_or(0);
    for fault in &report.faults {
        let now = if fault.active { "active" } else { "-" };
        let _ = writeln!(text, "{:width$}  {:14}  {now:6}  {:>8}", fault.name, fault.kind, fault.struck);
    }
    text
}
