//! `warp drive inspect`: decodes the FDP logs of a drive or the stored state of a served drive.

use std::path::Path;

use base::input::RESULT_BYTES_MAX;
use initiator::inspect::FdpReport;
use initiator::inspect::decode::{self, FdpEventRecord};
use nvme_spec::LogId;
use report::rows::{CellValue, ReportTable, TextFormat};

use crate::arguments::InspectArgs;
use crate::target::{DriveTarget, stored_drive};
use crate::{AnyError, ExitOutcome, bad_option};

pub fn inspect(command: &InspectArgs) -> Result<ExitOutcome, AnyError> {
    let target = DriveTarget::parse("TARGET", &command.target, &command.host)?;
    match target.report(command.endurance_group)? {
        Err(file) => inspect_file(command, file),
        Ok(_) if command.log.is_some() => {
            Err(bad_option("--log", "applies only to a file with a raw log page. Remove the option").into())
        }
        Ok(_) if command.scrub => Err(bad_option(
            "--scrub",
            "applies only to the data file of a served drive. Remove the option, or give that file",
        )
        .into()),
        Ok(report) => Ok(show_report(command, &report)),
    }
}

/// Decodes a raw log page, a data file or a snapshot.
fn inspect_file(command: &InspectArgs, file: &Path) -> Result<ExitOutcome, AnyError> {
    if command.scrub {
        let report = target::storage::scrub(file)?;
        command.output.print(&report, |format| format.words(&report.to_string()));
        return Ok(if report.pages_damaged > 0 { ExitOutcome::Failed } else { ExitOutcome::Done });
    }
    if let Some(log) = command.log {
        return raw_log(command, file, log);
    }
    let drive = stored_drive(file)?;
    Ok(command.output.print(&drive, |format| format.words(&drive.to_string())))
}

/// Decodes a log page from a file of another program, such as nvme-cli.
fn raw_log(command: &InspectArgs, path: &Path, log: u8) -> Result<ExitOutcome, AnyError> {
    let bytes = base::input::read(path, RESULT_BYTES_MAX).map_err(|error| format!("{}: {error}", path.display()))?;
    let output = &command.output;
    Ok(match LogId::from_u8(log) {
        Some(LogId::FdpConfigurations) => {
            let all = decode::configurations(&bytes)?;
            output.print(&all, |format| configurations(&all, format))
        }
        Some(LogId::ReclaimUnitHandleUsage) => {
            let all = decode::usage(&bytes)?;
            output.print(&all, |format| format.words(&usage(&all)))
        }
        Some(LogId::FdpStatistics) => {
            let counts = decode::statistics(&bytes)?;
            output.print(&counts, |format| format.words(&statistics(&counts)))
        }
        Some(LogId::FdpEvents) => {
            let all = decode::events(&bytes)?;
            output.print(&all, |format| events(&all, format))
        }
        _ => {
            let problem = format!("{log:#04x} is not an FDP log page. Give 0x20, 0x21, 0x22 or 0x23");
            return Err(bad_option("--log", problem).into());
        }
    })
}

fn show_report(command: &InspectArgs, report: &FdpReport) -> ExitOutcome {
    command.output.print(report, |format| {
        let words = |text: String| format.words(&text);
        let mut text = words(format!("{} {} firmware {}\n", report.model, report.serial, report.firmware));
        if !report.supported {
            return text + &words("The controller does not support Flexible Data Placement.\n".to_string());
        }
        text += &configurations(&report.configurations, format);
        let Some(enabled) = &report.enabled else {
            return text + &words("\nFlexible Data Placement is not enabled.\n".to_string());
        };
        text += &words(format!("\n{}", usage(&enabled.usage)));
        text += &words(format!("\n{}", statistics(&enabled.statistics)));
        for namespace in &enabled.namespaces {
            let note = format!("Placement identifiers of namespace {}", namespace.nsid);
            let rows = ReportTable::default().numbers("", ["PID", "RUH", "blocks left"]);
            let mut rows = rows.numbers("s", ["time left"]).note(note);
            for handle in &namespace.handles {
                rows.add([
                    CellValue::Index(handle.placement_identifier.into()),
                    CellValue::Index(handle.reclaim_unit_handle.into()),
                    CellValue::Count(handle.blocks_left),
                    reported(handle.seconds_left),
                ]);
            }
            text += &format!("\n{}", rows.render(format));
        }
        text += &format!("{}{}", words("\nHost events\n".to_string()), events(&enabled.host_events, format));
        let controller = events(&enabled.controller_events, format);
        text + &words("\nController events\n".to_string()) + &controller
    })
}

/// Formats a number. 0 means "not reported" and gives an empty cell.
fn reported(value: u32) -> CellValue {
    CellValue::optional((value > 0).then_some(value), |value| CellValue::Count(value.into()))
}

fn configurations(all: &[decode::FdpConfiguration], format: TextFormat) -> String {
    let rows = ReportTable::default().labels(["FDP configuration"]).texts(["valid"]).numbers("", ["RGs", "RG bits"]);
    let rows = rows.texts(["RUHs"]).numbers("", ["RU size"]);
    let mut rows = rows.numbers("s", ["time limit"]).numbers("", ["PIDs per namespace"]);
    for (index, configuration) in all.iter().enumerate() {
        rows.add([
            index.to_string().into(),
            if configuration.valid { "yes" } else { "no" }.into(),
            CellValue::Count(configuration.reclaim_groups.into()),
            CellValue::Count(configuration.reclaim_group_bits.into()),
            handles(&configuration.handles).into(),
            CellValue::Bytes(configuration.reclaim_unit_bytes),
            reported(configuration.time_limit_s),
            CellValue::Count(configuration.placement_identifiers_max.into()),
        ]);
    }
    rows.render(format)
}

/// Summarizes runs of equal types, for example "8 initially isolated".
fn handles(types: &[String]) -> String {
    let runs = types.chunk_by(|one, next| one == next);
    let runs: Vec<String> = runs.map(|run| format!("{} {}", run.len(), run[0])).collect();
    runs.join(", ")
}

fn usage(all: &[decode::HandleUse]) -> String {
    let uses: Vec<String> = all.iter().map(|handle| handle.used.clone()).collect();
    format!("Reclaim unit handles: {}\n", handles(&uses))
}

fn statistics(statistics: &decode::FdpByteCounts) -> String {
    let waf = statistics.write_amplification.map_or("-".to_string(), |waf| format!("{waf:.3}"));
    format!(
        "HBMW {} bytes, MBMW {} bytes, MBE {} bytes, write amplification {waf}\n",
        statistics.host_bytes_written, statistics.media_bytes_written, statistics.media_bytes_erased
    )
}

fn events(all: &[FdpEventRecord], format: TextFormat) -> String {
    if all.is_empty() {
        return format.words("none\n");
    }
    let rows = ReportTable::default().numbers("ms", ["time"]).texts(["event"]);
    let mut rows = rows.numbers("", ["NSID", "PID", "RG", "RUH", "blocks moved", "LBA"]);
    let index = |value: Option<u64>| CellValue::optional(value, CellValue::Index);
    for event in all {
        rows.add([
            CellValue::Index(event.timestamp_ms),
            event.event.as_str().into(),
            index(event.nsid.map(u64::from)),
            index(event.placement_identifier.map(u64::from)),
            index(event.reclaim_group.map(u64::from)),
            index(event.reclaim_unit_handle.map(u64::from)),
            index(event.blocks_moved.map(u64::from)),
            index(event.lba),
        ]);
    }
    rows.render(format)
}
