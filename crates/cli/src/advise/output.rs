//! Output of a reading: lines of JSON, and a table. A terminal shows one table and redraws it.
//! Other outputs get a table for each reading.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ::advise::{Advice, Advisor, EventLoss, OwnerMove};
use base::HumanBytes;
use experiment::LabError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use initiator::inspect::feedback_logs::LogSample;
use report::rows::{CellValue, ReportTable, TextFormat};
use serde::Serialize;

use super::notice::Notice;
use crate::arguments::AdviseArgs;
use crate::output::is_standard_output;
use crate::{AnyError, bad_option, print};

/// Maximum number of owners in a table. JSON has all owners.
const ROWS_MAX: usize = 20;

/// Results of a reading. docs/reference/advise.md describes its JSON.
#[derive(Serialize)]
pub struct AdviceRecord<'a> {
    reading: u32,
    /// Time of this machine, milliseconds since 1970.
    time_unix_ms: u64,
    host_bytes: u64,
    copied_bytes: u64,
    /// Write amplification since the last reading, `None` if the host wrote no data.
    write_amplification: Option<f64>,
    events: usize,
    events_without_block: usize,
    events_without_owner: usize,
    loss: EventLoss,
    handles: Vec<HandleRecord<'a>>,
    owners: Vec<EvidenceRecord<'a>>,
    moves: Vec<MoveRecord<'a>>,
    notices: &'a [Notice],
}

/// Placement identifier of the namespace.
#[derive(Serialize)]
struct HandleRecord<'a> {
    placement_identifier: u16,
    reclaim_unit_handle: u16,
    blocks_left: u64,
    used: &'a str,
}

/// Evidence that an owner's data needs another placement identifier.
#[derive(Serialize)]
struct EvidenceRecord<'a> {
    owner: &'a str,
    /// Placement identifier of the data in the events.
    found_with: u16,
    /// Placement identifier that the owner writes with, if known.
    placement: Option<u16>,
    events: f64,
    events_total: u64,
    moved_bytes: u64,
    confidence: f64,
}

/// Advice to move an owner.
#[derive(Serialize)]
struct MoveRecord<'a> {
    owner: &'a str,
    from: u16,
    to: u16,
    reason: String,
    expected_saving_bytes: u64,
    carried_out: bool,
}

impl<'a> AdviceRecord<'a> {
    pub fn new(
        advice: &Advice,
        carried_out: &[bool],
        advisor: &'a Advisor,
        sample: &'a LogSample,
        notices: &'a [Notice],
    ) -> AdviceRecord<'a> {
        let written = advice.host_bytes + advice.copied_bytes;
        AdviceRecord {
            reading: advice.reading,
            time_unix_ms: target::actions::unix_ms(SystemTime::now()),
            host_bytes: advice.host_bytes,
            copied_bytes: advice.copied_bytes,
            write_amplification: (advice.host_bytes > 0).then(|| written as f64 / advice.host_bytes as f64),
            events: advice.events,
            events_without_block: advice.events_without_block,
            events_without_owner: advice.events_without_owner,
            loss: advice.loss,
            handles: handles(sample),
            owners: rows(advisor),
            moves: steps(&advice.moves, carried_out, advisor),
            notices,
        }
    }
}

fn handles(sample: &LogSample) -> Vec<HandleRecord<'_>> {
    let used = |handle: u16| {
        let usage = sample.usage.get(usize::from(handle));
        usage.map_or("not listed", |usage| usage.used.as_str())
    };
    let handle = |status: &initiator::inspect::decode::HandleStatus| HandleRecord {
        placement_identifier: status.placement_identifier,
        reclaim_unit_handle: status.reclaim_unit_handle,
        blocks_left: status.blocks_left,
        used: used(status.reclaim_unit_handle),
    };
    sample.handles.iter().map(handle).collect()
}

/// All evidence, strongest first.
fn rows(advisor: &Advisor) -> Vec<EvidenceRecord<'_>> {
    let mut rows: Vec<EvidenceRecord> = advisor
        .evidence()
        .rows()
        .map(|row| EvidenceRecord {
            owner: &advisor.owners().owners()[row.owner].name,
            found_with: row.placement,
            placement: advisor.placements()[row.owner],
            events: row.events,
            events_total: row.events_total,
            moved_bytes: row.moved_bytes as u64,
            confidence: row.confidence,
        })
        .collect();
    rows.sort_by(|one, other| other.events.total_cmp(&one.events));
    rows
}

fn steps<'a>(moves: &[OwnerMove], carried_out: &[bool], advisor: &'a Advisor) -> Vec<MoveRecord<'a>> {
    let step = |(step, &carried_out): (&OwnerMove, &bool)| MoveRecord {
        owner: &advisor.owners().owners()[step.owner].name,
        from: step.from,
        to: step.to,
        reason: step.reason.to_string(),
        expected_saving_bytes: step.expected_saving_bytes,
        carried_out,
    };
    moves.iter().zip(carried_out).map(step).collect()
}

/// Destinations of the readings.
pub struct AdviceOutput {
    text: TextStyle,
    json: Option<JsonLines>,
    total: AdviceTotals,
}

enum JsonLines {
    StandardOutput,
    /// A file, which contains complete lines only.
    File {
        path: PathBuf,
        file: File,
        bytes: u64,
    },
}

impl JsonLines {
    fn open(path: &Path) -> Result<JsonLines, LabError> {
        if is_standard_output(path) {
            return Ok(JsonLines::StandardOutput);
        }
        Ok(JsonLines::File {
            path: path.to_path_buf(),
            file: File::create(path).map_err(|source| LabError::output(path, source))?,
            bytes: 0,
        })
    }

    fn add(&mut self, line: &str) -> Result<(), LabError> {
        match self {
            JsonLines::StandardOutput => print(line),
            JsonLines::File { path, file, bytes } => {
                if let Err(error) = file.write_all(line.as_bytes()) {
                    // Removes an incomplete line. A device or a pipe cannot be truncated, so the
                    // result is ignored.
                    let _ = file.set_len(*bytes);
                    return Err(LabError::output(path, error));
                }
                *bytes += line.len() as u64;
            }
        }
        Ok(())
    }
}

/// Destination of the JSON lines, if any.
pub fn json_to(command: &AdviseArgs) -> Result<Option<&Path>, LabError> {
    match (command.output.is_json(), command.json.as_deref()) {
        (false, file) => Ok(file),
        (true, None) => Ok(Some(Path::new("-"))),
        (true, Some(_)) => Err(bad_option(
            "--format",
            "json cannot be combined with --json FILE, which writes the same lines. Remove one of the two",
        )),
    }
}

enum TextStyle {
    /// One table, redrawn in place.
    Live(ProgressBar),
    /// A block for each reading.
    Blocks(TextFormat),
    /// No text, because standard output is JSON.
    None,
}

#[derive(Default)]
struct AdviceTotals {
    readings: u32,
    events: usize,
    host_bytes: u64,
    copied_bytes: u64,
    moves: usize,
    carried_out: usize,
}

impl AdviceOutput {
    pub fn new(command: &AdviseArgs) -> Result<AdviceOutput, LabError> {
        let json = json_to(command)?;
        let format = command.output.tables(&io::stdout());
        let text = match format {
            _ if json.is_some_and(is_standard_output) => TextStyle::None,
            TextFormat::Lines if io::stdout().is_terminal() => {
                let style = ProgressStyle::with_template("{msg}").expect("the template is valid");
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
                TextStyle::Live(bar.with_style(style))
            }
            format => TextStyle::Blocks(format),
        };
        Ok(AdviceOutput { text, json: json.map(JsonLines::open).transpose()?, total: AdviceTotals::default() })
    }

    pub fn print(&mut self, record: &AdviceRecord<'_>) -> Result<(), AnyError> {
        self.total.add(record);
        match &self.text {
            TextStyle::Live(bar) => bar.set_message(text(record, TextFormat::Lines)),
            TextStyle::Blocks(format) => print(&format!("{}\n", text(record, *format))),
            TextStyle::None => {}
        }
        if let Some(json) = &mut self.json {
            json.add(&format!("{}\n", serde_json::to_string(record)?))?;
        }
        Ok(())
    }

    /// Keeps the last table on the terminal and prints the totals.
    pub fn finish(&self) {
        let format = match &self.text {
            TextStyle::Live(bar) => {
                bar.abandon();
                print("\n");
                TextFormat::Lines
            }
            TextStyle::Blocks(format) => *format,
            TextStyle::None => return,
        };
        print(&format.words(&format!("{}\n", self.total.text())));
    }
}

impl AdviceTotals {
    fn add(&mut self, record: &AdviceRecord<'_>) {
        self.readings += 1;
        self.events += record.events;
        // The first reading covers traffic before the start.
        if record.reading > 1 {
            self.host_bytes += record.host_bytes;
            self.copied_bytes += record.copied_bytes;
        }
        self.moves = record.moves.len();
        self.carried_out += record.moves.iter().filter(|step| step.carried_out).count();
    }

    fn text(&self) -> String {
        let mut text = format!(
            "total of {} readings: {} new events, {} written, {} copied",
            self.readings,
            self.events,
            HumanBytes(self.host_bytes),
            HumanBytes(self.copied_bytes)
        );
        if self.host_bytes > 0 {
            let amplification = (self.host_bytes + self.copied_bytes) as f64 / self.host_bytes as f64;
            let _ = write!(text, ", write amplification {amplification:.3}");
        }
        let _ = write!(text, ", {} moves carried out, {} advised in the last reading", self.carried_out, self.moves);
        text
    }
}

/// Text of a reading, without the final newline.
fn text(record: &AdviceRecord<'_>, format: TextFormat) -> String {
    let waf = record.write_amplification.map_or("-".to_string(), |waf| format!("{waf:.3}"));
    let mut text = format!(
        "reading {}: {} written, {} copied, write amplification {waf}, {} new events{}\n",
        record.reading,
        HumanBytes(record.host_bytes),
        HumanBytes(record.copied_bytes),
        record.events,
        match record.loss {
            EventLoss::None => "",
            EventLoss::Wrapped => ", older events lost",
            EventLoss::Cleared => ", log cleared",
        }
    );
    for notice in record.notices {
        let _ = writeln!(text, "! {notice}");
    }
    let _ = writeln!(text, "blocks left in reclaim units: {}", available_writes(&record.handles));
    let without = |step: &&MoveRecord| !record.owners.iter().any(|row| row.owner == step.owner);
    let mut below = String::new();
    if record.owners.is_empty() && record.moves.is_empty() {
        text += "no evidence yet\n";
    } else {
        for step in record.moves.iter().filter(without) {
            let _ = writeln!(below, "{}: {}", step.owner, advice_text(step));
        }
        if record.owners.len() > ROWS_MAX {
            let _ = writeln!(below, "and {} more", record.owners.len() - ROWS_MAX);
        }
    }
    let table = if record.owners.is_empty() { String::new() } else { owners(record).render(format) };
    let all = format!("{}{table}{}", format.words(&text), format.words(&below));
    all.trim_end().to_string()
}

/// RUAMW (reclaim unit available media writes) of each placement identifier, logical blocks.
fn available_writes(handles: &[HandleRecord<'_>]) -> String {
    let each = |handle: &HandleRecord| format!("{}: {}", handle.placement_identifier, handle.blocks_left);
    let mut all: Vec<String> = handles.iter().take(ROWS_MAX).map(each).collect();
    if handles.len() > ROWS_MAX {
        all.push(format!("and {} more", handles.len() - ROWS_MAX));
    }
    all.join(", ")
}

fn owners(record: &AdviceRecord<'_>) -> ReportTable {
    let rows = ReportTable::default().labels(["owner", "placement"]);
    let mut rows = rows.numbers("", ["events", "copied by GC", "confidence"]).texts(["advice"]);
    for row in record.owners.iter().take(ROWS_MAX) {
        let is_it = |step: &&MoveRecord| step.owner == row.owner && step.from == row.found_with;
        let advice = record.moves.iter().find(is_it).map_or(String::new(), advice_text);
        let placement = match row.placement {
            Some(now) if now != row.found_with => format!("{} (now {now})", row.found_with),
            _ => row.found_with.to_string(),
        };
        rows.add([
            row.owner.into(),
            placement.into(),
            CellValue::Fixed(row.events, 1),
            CellValue::Bytes(row.moved_bytes),
            CellValue::Fixed(row.confidence, 2),
            advice.into(),
        ]);
    }
    rows
}

fn advice_text(step: &MoveRecord<'_>) -> String {
    format!(
        "move to {}, saves about {}{}",
        step.to,
        HumanBytes(step.expected_saving_bytes),
        if step.carried_out { " (carried out)" } else { "" }
    )
}
