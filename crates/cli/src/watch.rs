//! `warp watch`: write amplification of a drive over hours, from its log pages.

use std::io::Write as _;
use std::time::{Duration, Instant};

use analysis::export::{ExportTable, write_parquet};
use base::HumanBytes;
use characterize::watch::{SteadyForecast, WatchedDrive, WearSample, interval_waf, seconds_of_life};
use experiment::files::write_atomically;
use initiator::inspect::CommandPort;

use crate::advise::InterruptFlag;
use crate::arguments::WatchArgs;
use crate::output::print_error;
use crate::target::{named, open_for_reading};
use crate::{AnyError, ExitOutcome, print};

/// Readings that are kept. A year of minutes is half of it.
const SAMPLES_MAX: usize = 1 << 20;
/// Readings between two writes of the Parquet file.
const READINGS_PER_FILE: usize = 60;
const HEADING: &str =
    "    time      host     media     WAF   since  MB/s by handle\n     min      MB/s      MB/s           start\n";
/// Readings between two headings of the table.
const READINGS_PER_HEADING: usize = 20;
/// Failed readings in a row after which the drive counts as gone.
const FAILURES_MAX: u32 = 3;
const SECONDS_PER_YEAR: f64 = 365.25 * 86400.0;

pub fn watch(command: &WatchArgs) -> Result<ExitOutcome, AnyError> {
    let open = || -> Result<WatchedDrive<Box<dyn CommandPort>>, AnyError> {
        let (port, nsid) = open_for_reading("TARGET", &command.target, &command.host)?;
        Ok(WatchedDrive::open(port, nsid).map_err(|error| named(&command.target, &error))?)
    };
    let stop = InterruptFlag::install()?;
    let mut drive = open()?;
    let begun = Instant::now();
    let mut samples = vec![drive.read(0.0).map_err(|error| named(&command.target, &error))?];
    // A file that cannot be written is found before hours have passed.
    write_prometheus(command, &drive, &samples)?;
    write_samples(command, &samples)?;
    say(command, &introduction(&command.target, &drive, &samples[0]));
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
                print_error(&named(&command.target, &error));
                if failures == FAILURES_MAX {
                    outcome = ExitOutcome::Failed;
                    break;
                }
                // The drive may answer a new connection, for example after a restart.
                if let Ok(again) = open() {
                    drive = again;
                }
                continue;
            }
        }
        print(&row(command, &drive, &samples));
        // A disk that is full for a moment must not end a watch of days.
        let mut written = write_prometheus(command, &drive, &samples);
        if samples.len().is_multiple_of(READINGS_PER_FILE) {
            written = written.and(write_samples(command, &samples));
        }
        if let Err(error) = written {
            print_error(&error.to_string());
        }
    }
    say(command, &summary(&drive, &samples));
    write_samples(command, &samples)?;
    Ok(outcome)
}

/// Prints words beside the readings. With JSON they go to standard error.
fn say(command: &WatchArgs, text: &str) {
    if command.json { eprint!("{text}") } else { print(text) }
}

fn introduction(target: &str, drive: &WatchedDrive<impl CommandPort>, first: &WearSample) -> String {
    let source = match (drive.has_placement(), first.media_bytes) {
        (true, _) => "host and media bytes from the FDP statistics",
        (false, Some(_)) => "host bytes from the SMART log, media bytes from the OCP log C0h",
        (false, None) => "host bytes from the SMART log. The drive reports no media bytes, so its WAF is unknown",
    };
    format!("{target}: {source}\n")
}

/// The last reading as a line, with a heading from time to time, or as JSON.
fn row(command: &WatchArgs, drive: &WatchedDrive<impl CommandPort>, samples: &[WearSample]) -> String {
    let (first, before, last) = (&samples[0], &samples[samples.len() - 2], &samples[samples.len() - 1]);
    let seconds = (last.seconds - before.seconds).max(1e-9);
    let handles = drive.host_bytes_by_handle(before, last);
    if command.json {
        let line = serde_json::json!({
            "seconds": last.seconds,
            "host_bytes": last.host_bytes,
            "media_bytes": last.media_bytes,
            "erased_bytes": last.erased_bytes,
            "percentage_used": last.percentage_used,
            "waf": interval_waf(before, last),
            "waf_since_start": interval_waf(first, last),
            "host_bytes_by_handle": handles,
        });
        return format!("{line}\n");
    }
    let number = |value: Option<f64>, digits: usize| value.map_or("-".to_string(), |value| format!("{value:.digits$}"));
    let rate = |before: Option<u128>, after: Option<u128>| {
        let bytes = after.and_then(|after| after.checked_sub(before?));
        number(bytes.map(|bytes| bytes as f64 / 1e6 / seconds), 1)
    };
    let handles = handles.map_or("-".to_string(), |bytes| {
        let each: Vec<String> = bytes.iter().map(|bytes| format!("{:.1}", *bytes as f64 / 1e6 / seconds)).collect();
        each.join(" ")
    });
    let heading = if (samples.len() - 2).is_multiple_of(READINGS_PER_HEADING) { HEADING } else { "" };
    format!(
        "{heading}{:>8.1} {:>9} {:>9} {:>7} {:>7}  {handles}\n",
        last.seconds / 60.0,
        rate(before.host_bytes, last.host_bytes),
        rate(before.media_bytes, last.media_bytes),
        number(interval_waf(before, last), 3),
        number(interval_waf(first, last), 3),
    )
}

/// Time until steady state and until the end of the drive's life.
fn summary(drive: &WatchedDrive<impl CommandPort>, samples: &[WearSample]) -> String {
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    let seconds = last.seconds - first.seconds;
    let (Some(before), Some(after)) = (first.host_bytes, last.host_bytes) else {
        return "The drive reports no host bytes.\n".to_string();
    };
    let Some(bytes) = after.checked_sub(before) else {
        return "The counters of the drive decreased, so another client may have reset it.\n".to_string();
    };
    let written = HumanBytes(u64::try_from(bytes).unwrap_or(u64::MAX));
    let mut text = format!("{written} from the host in {}.\n", span(seconds));
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
            Some(SteadyForecast::TooFewReadings) => {
                "Too much was written between two readings to say if the WAF is steady. Read more often.\n".to_string()
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
    command: &WatchArgs,
    drive: &WatchedDrive<impl CommandPort>,
    samples: &[WearSample],
) -> Result<(), AnyError> {
    let Some(path) = &command.prometheus else { return Ok(()) };
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
    let before = &samples[samples.len().saturating_sub(2)];
    if let Some(bytes) = drive.host_bytes_by_handle(before, last) {
        text += "# TYPE warp_watch_handle_bytes gauge\n";
        for (handle, bytes) in bytes.iter().enumerate() {
            text += &format!("warp_watch_handle_bytes{{placement_handle=\"{handle}\"}} {bytes}\n");
        }
    }
    Ok(write_atomically(path, |out| out.write_all(text.as_bytes()))?)
}
