//! Counters of a drive over hours, for `warp watch`.
//!
//! ```text
//! WatchedDrive::read -> WearSample, at times -> host_bytes_by_handle
//!                                            -> SteadyForecast, seconds_of_life
//! ```
//!
//! The module only reads log pages. It needs no FDP. A drive with fewer counters gives fewer
//! numbers.

use initiator::command::log_page_command;
use initiator::inspect::decode::HandleStatus;
use initiator::inspect::feedback_logs::{MonitoredNamespace, WatchError};
use initiator::inspect::{CommandPort, InspectError, QueueKind, ocp_smart_log};
use nvme_spec::LogId;
use nvme_spec::log::SmartLog;
use simulate::steady::{ROUNDS, SLOPE, SteadyState};

/// Bytes of a data unit of the SMART log.
const DATA_UNIT_BYTES: u128 = 512_000;
/// Bytes of a unit of the endurance estimate.
const ENDURANCE_UNIT_BYTES: u128 = 1_000_000_000;
/// Host bytes of a round, x capacity, as in a probe of a characterization.
const ROUND_CAPACITIES: f64 = 0.25;

/// Counters at one time. Fields of pages that the drive lacks are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WearSample {
    /// Seconds since the start.
    pub seconds: f64,
    /// Host bytes, from the FDP statistics or the SMART log.
    pub host_bytes: Option<u128>,
    /// Media bytes, from the FDP statistics or the OCP log.
    pub media_bytes: Option<u128>,
    pub erased_bytes: Option<u128>,
    pub percentage_used: Option<u8>,
    /// Physical media units written of the OCP log over the drive's life, bytes.
    pub physical_bytes: Option<u128>,
    /// Endurance estimate of the OCP log, media bytes over the drive's life.
    pub endurance_bytes: Option<u128>,
    /// Placement handles with the space left in their reclaim units.
    pub handles: Vec<HandleStatus>,
}

pub struct WatchedDrive<P> {
    port: P,
    placement: Option<MonitoredNamespace>,
    /// Size of a reclaim unit, logical blocks.
    unit_blocks: u64,
}

impl<P: CommandPort> WatchedDrive<P> {
    /// Opens a drive. FDP is used if it is enabled.
    pub fn open(mut port: P, nsid: u32) -> Result<WatchedDrive<P>, WatchError> {
        let placement = MonitoredNamespace::find_if_enabled(&mut port, nsid)?.ok();
        Ok(WatchedDrive { port, placement, unit_blocks: 0 })
    }

    pub fn has_placement(&self) -> bool {
        self.placement.is_some()
    }

    /// Capacity of the namespace, bytes. `None` without FDP.
    pub fn capacity_bytes(&self) -> Option<u64> {
        self.placement.as_ref().map(MonitoredNamespace::bytes)
    }

    /// Reads all counters.
    ///
    /// # Errors
    /// The drive is gone, or rejects a page that it had.
    pub fn read(&mut self, seconds: f64) -> Result<WearSample, WatchError> {
        let mut sample = WearSample { seconds, ..WearSample::default() };
        if let Some(page) = smart_log(&mut self.port)? {
            sample.host_bytes = page.duw.get().checked_mul(DATA_UNIT_BYTES);
            sample.percentage_used = Some(page.pused);
        }
        if let Some(page) = ocp_smart_log(&mut self.port)? {
            sample.media_bytes = Some(page.pmuw.get());
            sample.physical_bytes = sample.media_bytes;
            let endurance = page.eest.get().checked_mul(ENDURANCE_UNIT_BYTES);
            sample.endurance_bytes = endurance.filter(|bytes| *bytes > 0);
        }
        if let Some(namespace) = &self.placement {
            let logs = namespace.sample(&mut self.port)?;
            sample.host_bytes = Some(logs.statistics.host_bytes_written);
            sample.media_bytes = Some(logs.statistics.media_bytes_written);
            sample.erased_bytes = Some(logs.statistics.media_bytes_erased);
            let most = logs.handles.iter().map(|handle| handle.blocks_left).max();
            self.unit_blocks = self.unit_blocks.max(most.unwrap_or(0));
            sample.handles = logs.handles;
        }
        Ok(sample)
    }

    /// Host bytes that each placement handle received between two samples, from the space left in
    /// their reclaim units. `None` if units ended so often that the sum has several solutions.
    pub fn host_bytes_by_handle(&self, before: &WearSample, after: &WearSample) -> Option<Vec<u64>> {
        let block_bytes = self.placement.as_ref()?.block_bytes;
        let host_bytes = after.host_bytes?.checked_sub(before.host_bytes?)?;
        let host_blocks = u64::try_from(host_bytes).ok()? / block_bytes;
        let left = |sample: &WearSample| sample.handles.iter().map(|handle| handle.blocks_left).collect::<Vec<_>>();
        let blocks = blocks_by_handle(&left(before), &left(after), self.unit_blocks, host_blocks)?;
        blocks.into_iter().map(|blocks| blocks.checked_mul(block_bytes)).collect()
    }
}

/// Blocks written through each handle. The space left falls with each write and starts again with a
/// new unit, so it gives the blocks modulo a unit. The total decides how many whole units to add.
fn blocks_by_handle(before: &[u64], after: &[u64], unit: u64, total: u64) -> Option<Vec<u64>> {
    if before.len() != after.len() || unit == 0 {
        return None;
    }
    let mut blocks: Vec<u64> = before
        .iter()
        .zip(after)
        .map(
            |(&before, &after)| {
                if after <= before { before - after } else { before.saturating_add(unit.saturating_sub(after)) }
            },
        )
        .collect();
    let known = blocks.iter().try_fold(0_u64, |sum, blocks| sum.checked_add(*blocks))?;
    let missing = total.checked_sub(known)?;
    if missing == 0 {
        return Some(blocks);
    }
    // Whole units are missing. With several handles, any of them may have written these units.
    match &mut blocks[..] {
        [only] if missing.is_multiple_of(unit) => *only += missing,
        _ => return None,
    }
    Some(blocks)
}

/// Reads the SMART log of the controller. `None` if the drive lacks it.
fn smart_log(port: &mut impl CommandPort) -> Result<Option<SmartLog>, WatchError> {
    let mut data = [0; size_of::<SmartLog>()];
    let mut entry = log_page_command(LogId::SmartHealth, 0, 0, 0, data.len() as u32);
    entry.nsid = u32::MAX.into();
    match port.receive(QueueKind::Admin, entry, &mut data) {
        Ok(_) => Ok(Some(zerocopy::transmute!(data))),
        Err(InspectError::Refused { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Write amplification between two samples. `None` without counters, or without writes.
pub fn interval_waf(before: &WearSample, after: &WearSample) -> Option<f64> {
    let host = after.host_bytes?.checked_sub(before.host_bytes?)?;
    let media = after.media_bytes?.checked_sub(before.media_bytes?)?;
    (host > 0).then(|| media as f64 / host as f64)
}

/// Distance from steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SteadyForecast {
    /// Write amplification is steady.
    Steady { waf: f64 },
    /// It changes by less in each round. `drive_writes` more make it steady.
    Approaching { waf: f64, drive_writes: f64 },
    /// It changes without a visible end.
    Changing { waf: f64 },
    /// Too few bytes are written. `drive_writes` more allow a judgement.
    TooEarly { drive_writes: f64 },
    /// More than a round is written between two readings.
    TooFewReadings,
}

impl SteadyForecast {
    /// Judges samples of a drive of this capacity. `None` without counters.
    pub fn of(samples: &[WearSample], capacity_bytes: u64) -> Option<SteadyForecast> {
        let (first, last) = (samples.first()?, samples.last()?);
        last.media_bytes?;
        let round_bytes = (capacity_bytes as f64 * ROUND_CAPACITIES) as u128;
        let written = last.host_bytes?.checked_sub(first.host_bytes?)?;
        let needed = round_bytes * ROUNDS as u128;
        let mut ends = vec![last];
        for round in 1..=ROUNDS as u128 {
            let Some(bytes) = last.host_bytes?.checked_sub(round * round_bytes) else { break };
            let Some(sample) = samples.iter().rev().find(|one| one.host_bytes <= Some(bytes)) else { break };
            ends.push(sample);
        }
        ends.reverse();
        let rounds: Vec<f64> = ends.windows(2).filter_map(|pair| interval_waf(pair[0], pair[1])).collect();
        if rounds.len() < ROUNDS && written >= needed {
            return Some(SteadyForecast::TooFewReadings);
        }
        if rounds.len() < ROUNDS {
            let drive_writes = needed.saturating_sub(written) as f64 / capacity_bytes as f64;
            return Some(SteadyForecast::TooEarly { drive_writes });
        }
        let is_collecting = ends.windows(2).all(|pair| match (pair[0].erased_bytes, pair[1].erased_bytes) {
            (Some(before), Some(after)) => after > before,
            _ => true,
        });
        let state = SteadyState::from_rounds(&rounds, is_collecting, written as f64 / capacity_bytes as f64);
        if state.reached {
            return Some(SteadyForecast::Steady { waf: state.waf });
        }
        // The change of a round shrinks by a constant share on the way to a steady state.
        let waf = rounds[ROUNDS - 1];
        let (early, late) = (rounds[2] - rounds[0], rounds[4] - rounds[2]);
        let share = late / early;
        if !(0.0..1.0).contains(&share) || late == 0.0 {
            return Some(SteadyForecast::Changing { waf });
        }
        let pairs = ((SLOPE * waf / 2.0) / late.abs()).ln() / share.ln();
        let drive_writes = (2.0 * pairs.max(0.0) + ROUNDS as f64) * ROUND_CAPACITIES;
        Some(SteadyForecast::Approaching { waf, drive_writes })
    }
}

/// Seconds until the drive's endurance is used at the rate of the samples, with the source of the
/// number. `None` if the drive reports no endurance or the time is too short.
pub fn seconds_of_life(samples: &[WearSample]) -> Option<(f64, &'static str)> {
    let (first, last) = (samples.first()?, samples.last()?);
    let seconds = last.seconds - first.seconds;
    if seconds <= 0.0 {
        return None;
    }
    if let (Some(endurance), Some(before), Some(after)) =
        (last.endurance_bytes, first.physical_bytes, last.physical_bytes)
        && after > before
    {
        let rate = (after - before) as f64 / seconds;
        return Some((endurance.saturating_sub(after) as f64 / rate, "the OCP endurance estimate"));
    }
    let (before, after) = (f64::from(first.percentage_used?), f64::from(last.percentage_used?));
    (after > before).then(|| ((100.0 - after).max(0.0) / (after - before) * seconds, "the SMART percentage used"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_handles_are_exact_or_unknown() {
        assert_eq!(blocks_by_handle(&[10, 50], &[4, 50], 100, 6), Some(vec![6, 0]));
        assert_eq!(blocks_by_handle(&[10, 50], &[90, 20], 100, 50), Some(vec![20, 30]), "a unit ended");
        assert_eq!(blocks_by_handle(&[10], &[90], 100, 220), Some(vec![220]), "three units ended");
        assert_eq!(
            blocks_by_handle(&[100, 50], &[100, 40], 100, 110),
            None,
            "the other handle may have written a unit"
        );
        assert_eq!(blocks_by_handle(&[10, 50], &[90, 20], 100, 150), None, "either handle had a unit more");
        assert_eq!(blocks_by_handle(&[10], &[4], 100, 5), None, "another namespace was written");
        assert_eq!(blocks_by_handle(&[10], &[4, 4], 100, 6), None);
    }

    /// Samples every tenth of a drive write with these write amplifications of a quarter.
    fn samples(quarters: &[f64]) -> Vec<WearSample> {
        let (mut host, mut media) = (0.0, 0.0);
        let mut samples = vec![sample(0.0, 0.0)];
        for waf in quarters {
            for _ in 0..5 {
                host += 50.0;
                media += 50.0 * waf;
                samples.push(sample(host, media));
            }
        }
        samples
    }

    fn sample(host: f64, media: f64) -> WearSample {
        let [host_bytes, media_bytes] = [host, media].map(|bytes| Some(bytes as u128));
        WearSample { seconds: host, host_bytes, media_bytes, erased_bytes: media_bytes, ..WearSample::default() }
    }

    #[test]
    fn the_way_to_steady_state_is_foreseen() {
        let of = |quarters: &[f64]| SteadyForecast::of(&samples(quarters), 1000);
        assert_eq!(of(&[2.0; 2]), Some(SteadyForecast::TooEarly { drive_writes: 0.75 }));
        assert!(matches!(of(&[2.0; 5]), Some(SteadyForecast::Steady { waf }) if (waf - 2.0).abs() < 1e-9));
        // 3 - 2 * 0.8^n is within 1.25 % of its end after 18 rounds, and five of these must agree.
        let rising: Vec<f64> = (0..5).map(|round| 3.0 - 2.0 * 0.8_f64.powi(round)).collect();
        let Some(SteadyForecast::Approaching { drive_writes, .. }) = of(&rising) else { panic!("it rises") };
        assert!((3.0..6.0).contains(&drive_writes), "{drive_writes}");
        assert!(matches!(of(&[1.0, 1.1, 1.3, 1.6, 2.0]), Some(SteadyForecast::Changing { .. })));
        assert_eq!(SteadyForecast::of(&[WearSample::default()], 1000), None, "no counter");
    }

    #[test]
    fn life_comes_from_the_endurance_estimate_or_the_percentage() {
        let mut samples = samples(&[2.0; 4]);
        assert_eq!(seconds_of_life(&samples), None);
        samples[0].percentage_used = Some(10);
        samples.last_mut().expect("samples").percentage_used = Some(11);
        assert_eq!(seconds_of_life(&samples), Some((89.0 * 1000.0, "the SMART percentage used")));
        for sample in &mut samples {
            sample.physical_bytes = sample.media_bytes;
        }
        samples.last_mut().expect("samples").endurance_bytes = Some(4000);
        assert_eq!(seconds_of_life(&samples), Some((1000.0, "the OCP endurance estimate")));
    }
}
