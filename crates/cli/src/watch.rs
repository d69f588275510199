//! `warp watch`: write amplification of a drive over hours, from its log pages.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use analysis::export::{ExportTable, write_parquet};
use base::HumanBytes;
use characterize::watch::{SteadyForecast, WatchedDrive, WearSample, interval_waf, seconds_of_life};
use experiment::files::write_atomically;
use initiator::inspect::CommandPort;
use report::rows::{CellValue, ReportTable};

use crate::advise::InterruptFlag;
use crate::arguments::WatchArgs;
use crate::target::open_for_reading;
use crate::{AnyError, ExitOutcome, print};

/// Readings that are kept. A year of minutes is half of it.
const SAMPLES_MAX: usize = 1 << 20;
/// Readings between two writes of the Parquet file.
const READINGS_PER_FILE: usize = 60;
/// Readings between two headings of the table.
const READINGS_PER_HEADING: usize = 20;
/// Failed readings in a row after which the drive counts as gone.
const FAILURES_MAX: u32 = 3;
const SECONDS_PER_YEAR: f64 = 365.25 * 86400.0;

pub fn watch(command: &WatchArgs) -> Result<ExitOutcome, AnyError> {
    let (port, nsid) = open_for_reading("DRIVE", &command.target, &command.host)?;
    let stop = InterruptFlag::install()?;
    let mut drive = WatchedDrive::open(port, nsid).map_err(|error| format!("{}: {error}", command.target))?;
    let begun = Instant::now();
    let mut samples = vec![drive.read(0.0)?];
    print(&introduction(&command.target, &drive, &samples[0]));
    let readings = command.readings.unwrap_or(u64::MAX);
    let (mut failures, mut outcome) = (0, ExitOutcome::Done);
    for reading in 1..=readings {
        // Readings keep their times, however long one takes.
        let due = command.every.saturating_mul(u32::try_from(reading).unwrap_or(u32::MAX));
        if stop.is_pressed_within(due.saturating_sub(begun.elapsed()).max(Duration::from_millis(1))) {
            outcome = ExitOutcome::Stopped;
            break;
        }
        match drive.read(begun.elapsed().as_secs_f64()) {
            Ok(sample) => {
                failures = 0;
                if samples.len() == SAMPLES_MAX {
                    samples.remove(1);
                }
                samples.push(sample);
            }
            Err(error) => {
                failures += 1;
                crate::output::print_error(&format!("{}: {error}", command.target));
                if failures == FAILURES_MAX {
                    outcome = ExitOutcome::Failed;
                    break;
                }
                continue;
            }
        }
        let heading = (samples.len() - 2).is_multiple_of(READINGS_PER_HEADING);
        print(&row(command, &drive, &samples, heading));
        if let Some(path) = &command.prometheus {
            write_prometheus(path, &drive, &samples)?;
        }
        if samples.len().is_multiple_of(READINGS_PER_FILE) {
            write_samples(command, &samples)?;
        }
    }
    write_samples(command, &samples)?;
    print(&summary(&drive, &samples));
    Ok(outcome)
}

fn introduction(target: &str, drive: &WatchedDrive<impl CommandPort>, first: &WearSample) -> String {
    let source = match (drive.has_placement(), first.media_bytes) {
        (true, _) => "host and media bytes from the FDP statistics",
        (false, Some(_)) => "host bytes from the SMART log, media bytes from the OCP log C0h",
        (false, None) => "host bytes from the SMART log. The drive reports no media bytes, so its WAF is unknown",
    };
    format!("{target}: {source}\n")
}

/// A reading as a line of the table.
fn row(command: &WatchArgs, drive: &WatchedDrive<impl CommandPort>, samples: &[WearSample], heading: bool) -> String {
    let (first, before, last) = (&samples[0], &samples[samples.len() - 2], &samples[samples.len() - 1]);
    let mut table = ReportTable::default().numbers("min", ["time"]).numbers("MB/s", ["host", "media"]);
    table = table.numbers("", ["WAF", "since start"]).texts(["MB/s by handle"]);
    let seconds = (last.seconds - before.seconds).max(1e-9);
    let rate = |before: Option<u128>, after: Option<u128>| {
        let bytes = after.and_then(|after| after.checked_sub(before?));
        CellValue::optional(bytes, |bytes| CellValue::Fixed(bytes as f64 / 1e6 / seconds, 1))
    };
    let waf = |since: &WearSample| CellValue::optional(interval_waf(since, last), CellValue::Amplification);
    let handles = drive.host_bytes_by_handle(before, last).map_or("-".to_string(), |bytes| {
        let each: Vec<String> = bytes.iter().map(|bytes| format!("{:.1}", *bytes as f64 / 1e6 / seconds)).collect();
        each.join(" ")
    });
    table.add([
        CellValue::Fixed(last.seconds / 60.0, 1),
        rate(before.host_bytes, last.host_bytes),
        rate(before.media_bytes, last.media_bytes),
        waf(before),
        waf(first),
        handles.into(),
    ]);
    let text = table.render(command.output.tables(&std::io::stdout()));
    if heading { text } else { text.lines().next_back().map_or(String::new(), |line| format!("{line}\n")) }
}

/// Time until steady state and until the end of the drive's life.
fn summary(drive: &WatchedDrive<impl CommandPort>, samples: &[WearSample]) -> String {
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    let seconds = last.seconds - first.seconds;
    let bytes = last.host_bytes.and_then(|after| after.checked_sub(first.host_bytes?)).unwrap_or(0);
    let mut text =
        format!("{} from the host in {}.\n", HumanBytes(u64::try_from(bytes).unwrap_or(u64::MAX)), span(seconds));
    let rate = bytes as f64 / seconds.max(1e-9);
    if let Some(capacity) = drive.capacity_bytes().filter(|_| rate > 0.0) {
        let time = |drive_writes: f64| span(drive_writes * capacity as f64 / rate);
        text += &match SteadyForecast::of(samples, capacity) {
            None => String::new(),
            Some(SteadyForecast::Steady { waf }) => format!("The WAF is steady at {waf:.3}.\n"),
            Some(SteadyForecast::Approaching { waf, drive_writes }) => format!(
                "The WAF is {waf:.3} and not steady. At this rate it is steady in about {}.\n",
                time(drive_writes)
            ),
            Some(SteadyForecast::Changing { waf }) => {
                format!("The WAF is {waf:.3} and changes, so a steady state is not in sight.\n")
            }
            Some(SteadyForecast::TooEarly { drive_writes }) => format!(
                "It is too early to say if the WAF is steady. That needs {drive_writes:.2} more drive writes, {} at this rate.\n",
                time(drive_writes)
            ),
        };
    }
    if let Some((life, source)) = seconds_of_life(samples) {
        text += &format!("At this rate the drive lives {} more, by {source}.\n", span(life));
    }
    text
}

/// Time in the largest fitting unit.
pub fn span(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds if seconds < 3.0 * 86400.0 => format!("{:.1} h", seconds / 3600.0),
        seconds if seconds < SECONDS_PER_YEAR => format!("{:.0} days", seconds / 86400.0),
        seconds => format!("{:.1} years", seconds / SECONDS_PER_YEAR),
    }
}

fn write_samples(command: &WatchArgs, samples: &[WearSample]) -> Result<(), AnyError> {
    let Some(path) = &command.out else { return Ok(()) };
    let short = |bytes: Option<u128>| bytes.and_then(|bytes| u64::try_from(bytes).ok());
    let table = ExportTable::single_batch(samples, |columns| {
        columns
            .f64("seconds", |one| one.seconds)
            .optional_u64("host_bytes", move |one| short(one.host_bytes))
            .optional_u64("media_bytes", move |one| short(one.media_bytes))
            .optional_u64("erased_bytes", move |one| short(one.erased_bytes))
            .optional_u64("percentage_used", |one| one.percentage_used.map(u64::from))
    });
    Ok(write_parquet(path, table)?)
}

/// Writes the counters in the exposition format of Prometheus.
fn write_prometheus(
    path: &Path,
    drive: &WatchedDrive<impl CommandPort>,
    samples: &[WearSample],
) -> Result<(), AnyError> {
    let last = &samples[samples.len() - 1];
    let counters = [
        ("warp_watch_host_bytes_total", "counter", last.host_bytes),
        ("warp_watch_media_bytes_total", "counter", last.media_bytes),
        ("warp_watch_erased_bytes_total", "counter", last.erased_bytes),
        ("warp_watch_percentage_used", "gauge", last.percentage_used.map(u128::from)),
    ];
    let mut text = String::new();
    for (name, kind, value) in counters {
        if let Some(value) = value {
            text += &format!("# TYPE {name} {kind}\n{name} {value}\n");
        }
    }
    if let Some(waf) = interval_waf(&samples[0], last) {
        text += &format!("# TYPE warp_watch_waf gauge\nwarp_watch_waf {waf}\n");
    }
    if let Some(bytes) = drive.host_bytes_by_handle(&samples[samples.len() - 2], last) {
        text += "# TYPE warp_watch_handle_bytes gauge\n";
        for (handle, bytes) in bytes.iter().enumerate() {
            text += &format!("warp_watch_handle_bytes{{placement_handle=\"{handle}\"}} {bytes}\n");
        }
    }
    Ok(write_atomically(path, |out| out.write_all(text.as_bytes()))?)
}
