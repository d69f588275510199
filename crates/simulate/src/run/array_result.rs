//! Result of a run on an array: bytes by cause, drives and rebuilds.

use array::{ArraySettings, IoCause, MemberIo};
use serde::Serialize;
use ssd::{DeviceStats, Nanos, WearSummary};
use workload::{RequestOperation, WorkloadMeasure};

/// I/O of the drives with one cause: reads, writes, deallocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CauseCounts {
    pub ios: [u64; 3],
    pub bytes: [u64; 3],
}

/// A drive of an array, or one that it had before.
#[derive(Clone, Debug, Serialize)]
pub struct ArrayDriveResult {
    /// Place in the array.
    pub drive: u16,
    /// `works`, `failed` or `replaced`.
    pub state: &'static str,
    /// Counters since the workload or the drive began.
    pub stats: DeviceStats,
    pub wear: WearSummary,
    /// Share of the rated erases that its blocks have used, if the profile has an endurance.
    pub life_used: Option<f64>,
}

/// A rebuild or scrub.
#[derive(Clone, Debug, Serialize)]
pub struct RebuildResult {
    /// The event, as it is written in settings.
    pub event: String,
    /// Bytes of the workload before it.
    pub host_bytes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Duration in virtual time.
    pub duration_ns: Option<Nanos>,
}

impl RebuildResult {
    /// Adds the I/O of a row.
    pub(super) fn count(&mut self, ios: &[MemberIo]) {
        for io in ios {
            match io.operation {
                RequestOperation::Read => self.bytes_read += io.bytes,
                RequestOperation::Write => self.bytes_written += io.bytes,
                RequestOperation::Trim => unreachable!("a rebuild deallocates nothing"),
            }
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct ArrayResult {
    pub settings: ArraySettings,
    /// Capacity that the host sees, bytes.
    pub capacity_bytes: u64,
    /// Bytes of the workload: reads, writes, deallocations.
    pub host_bytes: [u64; 3],
    /// Bytes of the workload that the log-structured layer had in memory, at the begin and the end.
    pub buffered_bytes: [u64; 2],
    /// By [`IoCause`], in its order.
    pub causes: Vec<CauseCounts>,
    /// Drives in their order, then those that the array had before.
    pub drives: Vec<ArrayDriveResult>,
    pub rebuilds: Vec<RebuildResult>,
    /// Number of events of the settings that happened, from the first.
    pub events_done: usize,
    /// Bytes that the host had written at each sample of the run.
    pub samples: Vec<u64>,
}

impl ArrayResult {
    pub fn cause(&self, cause: IoCause) -> CauseCounts {
        self.causes[cause as usize]
    }

    pub fn host(&self, operation: RequestOperation) -> u64 {
        self.host_bytes[operation as usize]
    }

    /// Bytes that the drives received, all causes together.
    pub fn member_bytes_written(&self) -> u64 {
        self.causes.iter().map(|counts| counts.bytes[RequestOperation::Write as usize]).sum()
    }

    /// Write amplification of the array itself: bytes that the drives received / bytes of the host.
    pub fn host_write_amplification(&self) -> f64 {
        self.member_bytes_written() as f64 / self.host(RequestOperation::Write).max(1) as f64
    }

    /// Bytes of flash / bytes of the host. `stats` are the counters of all drives.
    pub fn total_write_amplification(&self, stats: &DeviceStats) -> f64 {
        stats.media_bytes_written() as f64 / self.host(RequestOperation::Write).max(1) as f64
    }

    /// Share of a cause in the bytes that the drives received.
    pub fn share(&self, cause: IoCause) -> f64 {
        let bytes = self.cause(cause).bytes[RequestOperation::Write as usize];
        bytes as f64 / self.member_bytes_written().max(1) as f64
    }

    /// Difference of the mean erases of the most and the least worn drive, relative to the mean.
    pub fn wear_spread(&self) -> f64 {
        let erases = self.drives.iter().filter(|drive| drive.state == "works").map(|drive| drive.wear.mean_erases());
        let erases: Vec<f64> = erases.collect();
        let mean = erases.iter().sum::<f64>() / erases.len().max(1) as f64;
        let most = erases.iter().copied().fold(0.0, f64::max);
        let fewest = erases.iter().copied().fold(f64::INFINITY, f64::min);
        if mean > 0.0 { (most - fewest) / mean } else { 0.0 }
    }

    /// Figures of the array, as claims and tables name them. The device-side write amplification is
    /// `device`, and the total one is that of `stats` for the whole run and `tail_total` at its end.
    pub(super) fn measures(&self, stats: &DeviceStats, device: f64, tail_total: f64) -> Vec<WorkloadMeasure> {
        let name = |name: &str| format!("array.{name}");
        let (read, written) = (RequestOperation::Read as usize, RequestOperation::Write as usize);
        let mut measures = vec![
            WorkloadMeasure::new(name("host_write_amplification"), self.host_write_amplification()),
            WorkloadMeasure::new(name("device_write_amplification"), device),
            WorkloadMeasure::new(name("total_write_amplification"), self.total_write_amplification(stats)),
            WorkloadMeasure::new(name("tail_total_write_amplification"), tail_total),
            WorkloadMeasure::new(name("parity_share"), self.share(IoCause::Parity)),
            WorkloadMeasure::new(name("wear_spread"), self.wear_spread()),
        ];
        for cause in IoCause::ALL {
            let bytes = self.cause(cause).bytes;
            for (direction, bytes) in [("read", bytes[read]), ("written", bytes[written])] {
                if bytes > 0 {
                    let name = name(&format!("{}.bytes_{direction}", cause.name()));
                    measures.push(WorkloadMeasure::new(name, bytes as f64));
                }
            }
        }
        let durations: Vec<Nanos> = self.rebuilds.iter().filter_map(|rebuild| rebuild.duration_ns).collect();
        if !durations.is_empty() {
            let seconds = durations.iter().sum::<Nanos>() as f64 / 1e9;
            measures.push(WorkloadMeasure::new(name("resync_seconds"), seconds));
        }
        measures
    }
}
