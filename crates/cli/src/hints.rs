//! `warp hints`: shows which write hints and streams the writes of a program carry at the drive.

use std::io::{self, Write};

use base::HumanBytes;
use host_tools::capture::{BlockCapture, CaptureContents, Disk, HintedWrites, Summary, physical_disks};
use report::rows::{CellValue, ReportTable};

use crate::arguments::HintsArgs;
use crate::capture::{outcome, print_doubts, record};
use crate::output::print_error;
use crate::{AnyError, ExitOutcome, bad_option};

/// Names of the values of `F_SET_RW_HINT`.
const LIFETIMES: [&str; 6] = ["not set", "none", "short", "medium", "long", "extreme"];
/// Maximum rows of the table. The last one joins the rest.
const ROWS_MAX: usize = 20;

pub fn hints(command: &HintsArgs) -> Result<ExitOutcome, AnyError> {
    host_tools::capture::check()?;
    let disks = match command.device.as_slice() {
        [] => physical_disks()?,
        devices => devices.iter().map(|device| Disk::open(device)).collect::<Result<_, _>>()?,
    };
    if disks.is_empty() {
        return Err(bad_option("--device", "this machine has no disk of its own. Name a block device").into());
    }
    let names: Vec<String> = disks.iter().map(|disk| disk.name.clone()).collect();
    let capture = BlockCapture::start(disks, CaptureContents::Hints, io::sink(), command.buffer)?;
    let (status, summary, _) = record(capture, &command.command)?;
    if command.output.is_json() {
        // An error of standard error cannot be reported, so the result is ignored.
        let _ = writeln!(io::stderr().lock(), "{}", json(&summary));
    } else {
        print_error(&sentence(&summary, &names.join(", ")));
        let text = table(&summary).render(command.output.tables(&io::stderr()));
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
    print_doubts(&summary);
    Ok(outcome(status))
}

/// Share of the written bytes that fulfil a condition, percent.
fn percent(summary: &Summary, condition: impl Fn(&HintedWrites) -> bool) -> u64 {
    let bytes: u64 = summary.hints.iter().filter(|(row, _)| condition(row)).map(|(_, bytes)| bytes).sum();
    (u128::from(bytes) * 100).checked_div(u128::from(summary.bytes_written)).unwrap_or(0) as u64
}

fn sentence(summary: &Summary, disks: &str) -> String {
    let (hinted, streamed) =
        (percent(summary, |row| row.hint.lifetime > 1), percent(summary, |row| row.hint.stream > 0));
    let written = HumanBytes(summary.bytes_written);
    format!("{written} were written to {disks}. {hinted} % of it carried a hint, and {streamed} % a write stream")
}

fn lifetime(value: u8) -> String {
    LIFETIMES.get(usize::from(value)).map_or_else(|| value.to_string(), |name| (*name).to_string())
}

/// The rows with the most bytes first.
fn rows(summary: &Summary) -> Vec<(&HintedWrites, u64)> {
    let mut rows: Vec<(&HintedWrites, u64)> = summary.hints.iter().map(|(row, bytes)| (row, *bytes)).collect();
    rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    rows
}

fn table(summary: &Summary) -> ReportTable {
    let mut table = ReportTable::default().labels(["process", "file", "hint", "stream"]).numbers("", ["written"]);
    let rows = rows(summary);
    let (shown, rest) = rows.split_at(rows.len().min(ROWS_MAX));
    for (row, bytes) in shown {
        let file = if row.file_kind.is_empty() { "(none)" } else { &row.file_kind };
        let stream = if row.hint.stream == 0 { "none".to_string() } else { row.hint.stream.to_string() };
        let texts = [row.thread.clone(), file.to_string(), lifetime(row.hint.lifetime), stream];
        table.add(texts.into_iter().map(CellValue::from).chain([CellValue::Bytes(*bytes)]));
    }
    if !rest.is_empty() {
        let bytes = rest.iter().map(|(_, bytes)| bytes).sum();
        let texts = [format!("{} more", rest.len()), String::new(), String::new(), String::new()];
        table.add(texts.into_iter().map(CellValue::from).chain([CellValue::Bytes(bytes)]));
    }
    table
}

fn json(summary: &Summary) -> serde_json::Value {
    let row = |(row, bytes): (&HintedWrites, u64)| {
        serde_json::json!({
            "process": row.thread, "file": row.file_kind, "hint": lifetime(row.hint.lifetime),
            "stream": row.hint.stream, "bytes_written": bytes,
        })
    };
    let rows: Vec<_> = rows(summary).into_iter().map(row).collect();
    serde_json::json!({ "bytes_written": summary.bytes_written, "lost_events": summary.lost, "writes": rows })
}

#[cfg(test)]
mod tests {
    use host_tools::capture::WriteHint;
    use report::rows::TextFormat;

    use super::*;

    #[test]
    fn writes_are_shown_by_bytes_and_the_rest_in_one_row() {
        let mut summary = Summary { bytes_written: 22 * 4096 + 100 * 4096, ..Summary::default() };
        let key = |number: u8, lifetime, stream| HintedWrites {
            thread: format!("t{number:02}"),
            file_kind: "db/#.sst".to_string(),
            hint: WriteHint { lifetime, stream },
        };
        summary.hints.insert(key(50, 2, 1), 100 * 4096);
        for number in 0..22 {
            summary.hints.insert(key(number, 0, 0), 4096);
        }
        let csv = table(&summary).render(TextFormat::Csv);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[..2], ["process,file,hint,stream,written (bytes)", "t50,db/#.sst,short,1,409600"]);
        assert_eq!(lines[2], "t00,db/#.sst,not set,none,4096");
        assert_eq!((lines.len(), lines[21]), (22, "3 more,,,,12288"));
        let said = sentence(&summary, "nvme0n1");
        assert_eq!(said, "488 KiB were written to nvme0n1. 81 % of it carried a hint, and 81 % a write stream");
        assert_eq!(json(&summary)["writes"][0]["stream"], 1);
    }
}
