//! `warp inspect`: the FDP logs of a drive, or what a served drive has stored.

use std::net::SocketAddr;
use std::path::Path;

use base::Bytes;
use comfy_table::{Table, presets};
use host::inspect::decode::{self, EventRecord};
use host::inspect::passthrough::Passthrough;
use host::inspect::remote::{Remote, Visitor};
use host::inspect::{FdpReport, report};
use lab::LabError;
use nvme_spec::LogId;
use serde::Serialize;

use crate::arguments::Inspect;
use crate::{AnyError, Outcome, bad_option, print};

pub fn inspect(command: &Inspect) -> Result<Outcome, AnyError> {
    let target = command.target.as_str();
    if let Some(address) = tcp_address("warp inspect", target)? {
        let mut port = Remote::connect(address, &visitor(&command.host_nqn, &command.secret)?)?;
        return show_report(command, &report(&mut port, command.endurance_group)?);
    }
    if target.starts_with("/dev/") {
        let mut port = Passthrough::open(Path::new(target))?;
        return show_report(command, &report(&mut port, command.endurance_group)?);
    }
    let path = Path::new(target);
    match command.log {
        Some(log) => raw_log(command, path, log),
        None => stored(command, path),
    }
}

/// The address of a target on NVMe/TCP; `None` if it is something else.
pub fn tcp_address(command: &str, target: &str) -> Result<Option<SocketAddr>, LabError> {
    let Some(address) = target.strip_prefix("tcp:") else {
        return Ok(None);
    };
    let address = address.parse().map_err(|_| {
        bad_option(
            command,
            format!("{target:?}: give tcp:ADDRESS:PORT, such as tcp:127.0.0.1:4420"),
        )
    });
    address.map(Some)
}

/// Who the options say that we are.
pub fn visitor(host_nqn: &Option<String>, secret: &Option<String>) -> Result<Visitor, AnyError> {
    let secret = secret.as_deref().map(str::parse).transpose();
    Ok(Visitor {
        host_nqn: host_nqn.clone(),
        secret: secret.map_err(|error| bad_option("--secret", error))?,
    })
}

fn show<T: Serialize>(command: &Inspect, value: &T, text: impl FnOnce(&T) -> String) -> Result<Outcome, AnyError> {
    match command.json {
        true => print(&format!("{}\n", serde_json::to_string(value)?)),
        false => print(&text(value)),
    }
    Ok(Outcome::Done)
}

/// A log page that another program wrote to a file.
fn raw_log(command: &Inspect, path: &Path, log: u8) -> Result<Outcome, AnyError> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    match LogId::from_u8(log) {
        Some(LogId::FdpConfigurations) => show(command, &decode::configurations(&bytes)?, |all| configurations(all)),
        Some(LogId::ReclaimUnitHandleUsage) => show(command, &decode::usage(&bytes)?, |all| usage(all)),
        Some(LogId::FdpStatistics) => show(command, &decode::statistics(&bytes)?, statistics),
        Some(LogId::FdpEvents) => show(command, &decode::events(&bytes)?, |all| events(all)),
        _ => Err(bad_option(
            "--log",
            format!("{log:#04x} is not an FDP log page; give 0x20, 0x21, 0x22 or 0x23"),
        )
        .into()),
    }
}

/// A snapshot of a device, or the data file of a served drive.
fn stored(command: &Inspect, path: &Path) -> Result<Outcome, AnyError> {
    let stored = transport::drive::stored(path)?;
    show(command, &stored, ToString::to_string)
}

fn show_report(command: &Inspect, report: &FdpReport) -> Result<Outcome, AnyError> {
    show(command, report, |report| {
        let mut text = format!("{} {} firmware {}\n", report.model, report.serial, report.firmware);
        if !report.supported {
            return text + "The controller does not support Flexible Data Placement.\n";
        }
        text += &configurations(&report.configurations);
        let Some(enabled) = &report.enabled else {
            return text + "\nFlexible Data Placement is not enabled.\n";
        };
        text += &format!("\n{}", usage(&enabled.usage));
        text += &format!("\n{}", statistics(&enabled.statistics));
        for namespace in &enabled.namespaces {
            let mut table = table(["PID", "RUH", "blocks left", "seconds left"]);
            for handle in &namespace.handles {
                table.add_row([
                    handle.placement_identifier.to_string(),
                    handle.reclaim_unit_handle.to_string(),
                    handle.blocks_left.to_string(),
                    nonzero(handle.seconds_left),
                ]);
            }
            text += &format!("\nPlacement identifiers of namespace {}\n{table}\n", namespace.nsid);
        }
        text += &format!("\nHost events\n{}", events(&enabled.host_events));
        text + &format!("\nController events\n{}", events(&enabled.controller_events))
    })
}

pub fn table<const COLUMNS: usize>(header: [&str; COLUMNS]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY).set_header(header);
    table
}

/// A number, or a dash where 0 means "not reported".
fn nonzero(value: u32) -> String {
    match value {
        0 => "-".to_string(),
        value => value.to_string(),
    }
}

fn configurations(all: &[decode::Configuration]) -> String {
    let mut table = table([
        "FDP configuration",
        "valid",
        "RGs",
        "RG bits",
        "RUHs",
        "RU size",
        "time limit s",
        "PIDs per namespace",
    ]);
    for (index, configuration) in all.iter().enumerate() {
        table.add_row([
            index.to_string(),
            if configuration.valid { "yes" } else { "no" }.to_string(),
            configuration.reclaim_groups.to_string(),
            configuration.reclaim_group_bits.to_string(),
            handles(&configuration.handles),
            Bytes(configuration.reclaim_unit_bytes).to_string(),
            nonzero(configuration.time_limit_s),
            configuration.placement_identifiers_max.to_string(),
        ]);
    }
    format!("{table}\n")
}

/// Equal types in a row as "8 initially isolated".
fn handles(types: &[String]) -> String {
    let runs = types.chunk_by(|one, next| one == next);
    let runs: Vec<String> = runs.map(|run| format!("{} {}", run.len(), run[0])).collect();
    runs.join(", ")
}

fn usage(all: &[decode::HandleUse]) -> String {
    let uses: Vec<String> = all.iter().map(|handle| handle.used.clone()).collect();
    format!("Reclaim unit handles: {}\n", handles(&uses))
}

fn statistics(statistics: &decode::Statistics) -> String {
    let waf = statistics
        .write_amplification
        .map_or("-".to_string(), |waf| format!("{waf:.3}"));
    format!(
        "HBMW {} bytes, MBMW {} bytes, MBE {} bytes: write amplification {waf}\n",
        statistics.host_bytes_written, statistics.media_bytes_written, statistics.media_bytes_erased
    )
}

fn events(all: &[EventRecord]) -> String {
    if all.is_empty() {
        return "none\n".to_string();
    }
    let mut table = table(["time ms", "event", "NSID", "PID", "RG", "RUH", "blocks moved", "LBA"]);
    let cell = |value: Option<u64>| value.map_or("-".to_string(), |value| value.to_string());
    for event in all {
        table.add_row([
            event.timestamp_ms.to_string(),
            event.event.clone(),
            cell(event.nsid.map(u64::from)),
            cell(event.placement_identifier.map(u64::from)),
            cell(event.reclaim_group.map(u64::from)),
            cell(event.reclaim_unit_handle.map(u64::from)),
            cell(event.blocks_moved.map(u64::from)),
            cell(event.lba),
        ]);
    }
    format!("{table}\n")
}
