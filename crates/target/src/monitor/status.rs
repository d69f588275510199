//! Status of a served drive at one moment, for the status line and the metrics.

use nvme::completion_lag::CompletionLag;
use nvme::fault::FaultsReport;
use nvme::traffic::LatencyHistogram;
use nvme::{ScrubResults, Subsystem};
use ssd::{DeviceStats, Nanos, OwnerStats};

use crate::storage::CheckpointStatus;

/// Status of a served drive. Two of them give rates.
#[derive(Clone, Debug)]
pub struct DriveStatus {
    /// Nanoseconds since the server's start.
    pub at: Nanos,
    /// Number of enabled controllers.
    pub controllers: usize,
    /// Read commands since the drive's creation.
    pub read_commands: u64,
    /// Write commands since the drive's creation.
    pub write_commands: u64,
    pub host_bytes_read: u64,
    pub stats: DeviceStats,
    /// Logical pages that hold data.
    pub live_pages: u64,
    pub logical_pages: u64,
    /// Free space in units of the largest reclaim unit.
    pub free_units: u64,
    /// Background GC runs while at most this many units are free, over all reclaim groups.
    pub background_watermark_units: u64,
    /// Hosts wait for GC while fewer units than this would be free, over all reclaim groups.
    pub foreground_watermark_units: u64,
    /// Latencies of I/O commands since the drive was opened, by kind.
    pub latencies: [LatencyHistogram; 3],
    /// True if Flexible Data Placement is enabled.
    pub fdp: bool,
    /// Host events and controller events in the FDP logs, since the drive's creation.
    pub events: [u64; 2],
    /// Events in these logs that newer ones have overwritten.
    pub events_overwritten: u64,
    /// Commands that failed because of the storage.
    pub media_errors: u64,
    /// Delays of completions behind their due times.
    pub lateness: CompletionLag,
    /// Planned and triggered faults.
    pub faults: Option<FaultsReport>,
    /// Results of scrubs, `None` without checksums.
    pub integrity: Option<ScrubResults>,
    /// Statistics of checkpoints, if the caller has them.
    pub checkpoints: CheckpointStatus,
}

impl DriveStatus {
    /// Current status of a drive, without its checkpoints.
    pub fn new(subsystem: &Subsystem, now: Nanos) -> DriveStatus {
        let (device, state) = (subsystem.device(), subsystem.state());
        let layout = device.layout();
        let units_of = |slices: u64| slices / u64::from(layout.slices_per_superblock);
        let (live_pages, logical_pages) = (device.live_pages(), u64::from(layout.logical_pages));
        assert!(live_pages <= logical_pages, "{live_pages} of {logical_pages} logical pages hold data");
        let all_groups = |slices: u64| units_of(slices * u64::from(layout.groups));
        DriveStatus {
            at: now,
            controllers: subsystem.controllers().filter(|controller| controller.is_ready()).count(),
            read_commands: state.smart.read_commands,
            write_commands: state.smart.write_commands,
            host_bytes_read: state.smart.host_bytes_read,
            stats: device.stats().clone(),
            live_pages,
            logical_pages,
            free_units: units_of(device.free_slices()),
            background_watermark_units: all_groups(layout.background_free_slices),
            foreground_watermark_units: all_groups(layout.foreground_free_slices),
            latencies: subsystem.latencies().clone(),
            fdp: state.fdp.enabled,
            events: [state.fdp.events.host().end(), state.fdp.events.controller().end()],
            events_overwritten: state.fdp.events.host().overwritten() + state.fdp.events.controller().overwritten(),
            media_errors: state.smart.media_errors,
            lateness: subsystem.pacing().lateness(),
            faults: subsystem.faults(),
            integrity: subsystem.scrub_results(),
            checkpoints: CheckpointStatus::default(),
        }
    }

    pub fn since(&self, earlier: &DriveStatus) -> Rates {
        let seconds = (self.at.saturating_sub(earlier.at)).max(1) as f64 / 1e9;
        let stats = self.stats.since(&earlier.stats);
        let per_second = |now: u64, then: u64| now.wrapping_sub(then) as f64 / seconds;
        Rates {
            reads_per_second: per_second(self.read_commands, earlier.read_commands),
            writes_per_second: per_second(self.write_commands, earlier.write_commands),
            read_bytes_per_second: per_second(self.host_bytes_read, earlier.host_bytes_read),
            write_bytes_per_second: stats.host_bytes_written() as f64 / seconds,
            write_amplification: stats.write_amplification(),
        }
    }

    /// One status line: rates and write amplification since `earlier`, total write amplification,
    /// and that of each handle in use.
    pub fn line(&self, earlier: &DriveStatus) -> String {
        let rates = self.since(earlier);
        let waf = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.2}"));
        let mut line = format!(
            "{} host{}  read {:.1}k IOPS {:.0} MB/s  write {:.1}k IOPS {:.0} MB/s  {:.0} % full  WAF now {} all {}",
            self.controllers,
            if self.controllers == 1 { "" } else { "s" },
            rates.reads_per_second / 1e3,
            rates.read_bytes_per_second / 1e6,
            rates.writes_per_second / 1e3,
            rates.write_bytes_per_second / 1e6,
            100.0 * self.live_pages as f64 / self.logical_pages.max(1) as f64,
            waf(rates.write_amplification),
            waf(self.stats.write_amplification()),
        );
        let in_use = |row: &&(usize, &OwnerStats)| row.1.host_pages_written > 0;
        let rows: Vec<(usize, &OwnerStats)> =
            self.stats.handles.iter().enumerate().filter(|row| in_use(&row)).collect();
        if self.fdp && rows.len() > 1 {
            for (handle, row) in rows {
                line += &format!("  RUH{handle} {}", waf(row.write_amplification()));
            }
        }
        if self.lateness.completions > 0 {
            let us = |ns: Nanos| ns as f64 / 1e3;
            line += &format!("  late p50 {:.0} p99 {:.0} us", us(self.lateness.p50_ns), us(self.lateness.p99_ns));
        }
        let struck = self.faults.iter().flat_map(|faults| &faults.faults).filter(|fault| fault.struck > 0);
        for (index, fault) in struck.enumerate() {
            line += if index == 0 { "  faults: " } else { ", " };
            line += &format!("{} {}", fault.name, fault.struck);
        }
        if let Some((copied, parts)) = self.checkpoints.under_way {
            line += &format!("  storing {} %", u64::from(copied) * 100 / u64::from(parts.max(1)));
        }
        let damaged = self.integrity.map_or(0, |integrity| integrity.pages_damaged);
        if damaged > 0 {
            line += &format!("  {damaged} DAMAGED pages found");
        }
        line
    }
}

/// Rates between two statuses.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub reads_per_second: f64,
    pub writes_per_second: f64,
    pub read_bytes_per_second: f64,
    pub write_bytes_per_second: f64,
    /// Write amplification between the two, `None` without writes.
    pub write_amplification: Option<f64>,
}
