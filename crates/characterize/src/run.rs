//! Executes the probes of a plan.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use experiment::{Experiment, RunOptions, RunOverrides};
use initiator::drive::{DataPort, DriveOperation, DriveRequest, OpenNamespace, WearReading};
use simulate::steady::{ROUNDS, SteadyState};
use workload::{IoRequest, RequestOperation, RequestSource, Workload as _, WorkloadTarget};

use crate::folder::ResultFolder;
use crate::identity::DriveIdentity;
use crate::journal::{Journal, JournalRecord, ProbeResult, ProbeSample, WafResult};
use crate::plan::{Plan, Probe, ProbeWork};
use crate::{CharacterizeError, times};

/// Samples of a drive write.
const SAMPLES_PER_DRIVE_WRITE: u64 = 32;
/// Samples of a round. [`ROUNDS`] rounds must agree before a probe is steady.
const SAMPLES_PER_ROUND: usize = 8;
const DRIVE_WRITES_PER_ROUND: f64 = SAMPLES_PER_ROUND as f64 / SAMPLES_PER_DRIVE_WRITE as f64;
/// Commands in flight during a probe.
const DEPTH: usize = 32;
/// Request size of a fill, bytes, and its commands in flight.
const FILL_BYTES: u64 = 256 << 10;
const FILL_DEPTH: usize = 16;
/// Largest range of a deallocation, bytes.
const DEALLOCATE_BYTES: u64 = 1 << 30;
/// Requests per batch from the workload.
const BATCH_REQUESTS: usize = 256;
/// Seed of all workloads. Jobs with other seeds give the same write amplification.
const SEED: u64 = 1;
/// Host bytes that a full drive takes before it must have collected, x capacity, if it does not
/// count erased bytes.
const COLLECTS_AFTER: f64 = 0.6;
/// Ratio of a half 95 % interval and a standard deviation, normal distribution.
pub const HALF_WIDTH_PER_SIGMA: f64 = 1.96;
/// Smallest standard deviation of a write amplification, as a share of it. The counters have steps.
const SIGMA_MIN: f64 = 0.002;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbePhase {
    Filling,
    Writing,
    Loading,
}

#[derive(Clone, Copy, Debug)]
pub struct ProbeProgress {
    pub phase: ProbePhase,
    /// Completed share of the phase, 0 to 1.
    pub share: f64,
    pub drive_writes: f64,
    /// Write amplification of the last round, `None` without a counter.
    pub waf: Option<f64>,
}

/// Receives the progress, and stops the characterization.
pub trait ProbeObserver: Sync {
    fn begin_probe(&self, index: usize, plan: &Plan, seconds_left: f64);
    fn report(&self, progress: ProbeProgress);
    fn end_probe(&self, probe: &Probe, outcome: &ProbeResult);
    fn should_stop(&self) -> bool;
}

pub struct Characterization<'a, P> {
    pub drive: &'a mut OpenNamespace<P>,
    pub identity: &'a DriveIdentity,
    pub folder: &'a ResultFolder,
    pub journal: &'a mut Journal,
    pub observer: &'a dyn ProbeObserver,
    /// Time after which no probe begins.
    pub deadline: Option<Instant>,
}

impl<P: DataPort> Characterization<'_, P> {
    /// Runs the probes of a plan. Returns false if the observer stopped
    /// them, or the deadline passed.
    ///
    /// # Errors
    /// The drive rejects a command or is gone, or a file cannot be written. The journal keeps all
    /// completed probes.
    pub fn run(&mut self, plan: &Plan) -> Result<bool, CharacterizeError> {
        self.folder.update(self.identity, self.journal)?;
        for (index, probe) in plan.probes.iter().enumerate() {
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(false);
            }
            let fill_rate = self.journal.fill_rate().unwrap_or(crate::plan::FILL_RATE_ASSUMED);
            let left = plan.probes[index..].iter();
            let seconds_left = left.map(|probe| plan.seconds(probe, self.identity.capacity_bytes, fill_rate)).sum();
            self.observer.begin_probe(index, plan, seconds_left);
            self.journal.append(JournalRecord::Begin { probe: probe.name.to_string() })?;
            let outcome = match &probe.work {
                ProbeWork::Job { text, is_holdout } => {
                    self.run_job(probe.name, text, *is_holdout, plan.drive_writes_max)?.map(ProbeResult::Waf)
                }
                ProbeWork::Times if self.fill()? => {
                    let report = |share| {
                        self.observer.report(ProbeProgress {
                            phase: ProbePhase::Loading,
                            share,
                            drive_writes: 0.0,
                            waf: None,
                        });
                    };
                    let should_stop = || self.observer.should_stop();
                    times::measure(self.drive, plan.load_seconds, &report, &should_stop)?
                        .map(|rows| ProbeResult::Times { rows })
                }
                ProbeWork::Times => None,
                ProbeWork::ReclaimUnit => Some(ProbeResult::ReclaimUnit { bytes: self.reclaim_unit_bytes()? }),
            };
            // A probe that was stopped has no result.
            let Some(outcome) = outcome.filter(|_| !self.observer.should_stop()) else { return Ok(false) };
            self.folder.write_samples(probe.name, &self.journal.samples(probe.name))?;
            self.observer.end_probe(probe, &outcome);
            self.journal.append(JournalRecord::End { probe: probe.name.to_string(), outcome })?;
            self.folder.update(self.identity, self.journal)?;
        }
        Ok(true)
    }

    /// Deallocates the whole namespace and writes it in order. Returns false if the observer
    /// stopped it.
    fn fill(&mut self) -> Result<bool, CharacterizeError> {
        let capacity = self.drive.bytes();
        let mut offset = 0;
        while offset < capacity && !self.observer.should_stop() {
            let bytes = DEALLOCATE_BYTES.min(capacity - offset);
            self.drive.deallocate(offset, bytes)?;
            offset += bytes;
        }
        let begun = Instant::now();
        let mut offset = 0;
        let observer = self.observer;
        let next = || {
            if offset == capacity || observer.should_stop() {
                return None;
            }
            if offset.is_multiple_of(FILL_BYTES * 64) {
                let share = offset as f64 / capacity as f64;
                observer.report(ProbeProgress { phase: ProbePhase::Filling, share, drive_writes: 0.0, waf: None });
            }
            let bytes = FILL_BYTES.min(capacity - offset);
            offset += bytes;
            Some(DriveRequest { operation: DriveOperation::Write(None), offset_bytes: offset - bytes, bytes })
        };
        self.drive.transfer(FILL_DEPTH, next, |_, _| ())?;
        let is_complete = offset == capacity;
        if is_complete && self.journal.fill_rate().is_none() {
            let bytes_per_second = capacity as f64 / begun.elapsed().as_secs_f64().max(1e-3);
            self.journal.append(JournalRecord::FillRate { bytes_per_second })?;
        }
        Ok(is_complete)
    }

    fn run_job(
        &mut self,
        name: &str,
        text: &str,
        is_holdout: bool,
        drive_writes_max: f64,
    ) -> Result<Option<WafResult>, CharacterizeError> {
        let path = self.folder.job(name);
        self.folder.write(&path, text)?;
        let mut source = BatchedSource::open(&path, self.drive.bytes(), self.drive.handles().len())?;
        if !self.fill()? {
            return Ok(None);
        }
        let capacity = self.drive.bytes();
        let sample_bytes = (capacity / SAMPLES_PER_DRIVE_WRITE).max(1);
        let samples_max = (drive_writes_max * SAMPLES_PER_DRIVE_WRITE as f64).ceil() as usize;
        let before = self.drive.wear()?;
        let begun = Instant::now();
        let (mut samples, mut sent_bytes) = (Vec::<ProbeSample>::new(), 0);
        loop {
            let sent = self.send(&mut source, sample_bytes)?;
            if self.observer.should_stop() {
                return Ok(None);
            }
            assert!(sent > 0, "a job of a probe writes");
            sent_bytes += sent;
            let sample = sample(&before, &self.drive.wear()?, sent_bytes, begun.elapsed())?;
            if sample.media_bytes == Some(0) && samples.len() as u64 >= SAMPLES_PER_DRIVE_WRITE / 2 {
                let problem = "the drive's counter of media bytes does not move, although half a drive write was sent. \
                               Choose another folder and --without-counters";
                return Err(CharacterizeError::Refused(problem.to_string()));
            }
            samples.push(sample);
            self.journal.append(JournalRecord::Sample { probe: name.to_string(), sample })?;
            let rounds = rounds(&samples);
            let drive_writes = sent_bytes as f64 / capacity as f64;
            self.observer.report(ProbeProgress {
                phase: ProbePhase::Writing,
                share: samples.len() as f64 / samples_max as f64,
                drive_writes,
                waf: sample.media_bytes.and(rounds.last().copied()),
            });
            let is_last = samples.len() >= samples_max;
            if rounds.len() < ROUNDS || !(samples.len().is_multiple_of(SAMPLES_PER_ROUND) || is_last) {
                continue;
            }
            let state = SteadyState::from_rounds(&rounds, is_collecting(&samples, drive_writes), drive_writes);
            if state.reached || is_last {
                let sigma = (state.half_width / HALF_WIDTH_PER_SIGMA).max(SIGMA_MIN * state.waf);
                return Ok(Some(WafResult {
                    value: state.waf,
                    sigma,
                    drive_writes,
                    tail_drive_writes: ROUNDS as f64 * DRIVE_WRITES_PER_ROUND,
                    is_steady: state.reached,
                    is_holdout,
                }));
            }
        }
    }

    /// Sends requests until so many bytes are written. Returns the bytes written.
    fn send(&mut self, source: &mut BatchedSource, bytes_max: u64) -> Result<u64, CharacterizeError> {
        let observer = self.observer;
        // Another thread calls `next` on a drive of this machine.
        let failed = Mutex::new(None);
        let block_bytes = self.drive.block_bytes();
        let mut written = 0;
        let next = || {
            if written >= bytes_max || observer.should_stop() {
                return None;
            }
            let request = match source.next() {
                Ok(request) => request?,
                Err(error) => {
                    *failed.lock().expect("no thread panics with the lock") = Some(error.into());
                    return None;
                }
            };
            let bytes = u64::from(request.bytes);
            if !request.offset_bytes.is_multiple_of(block_bytes) || !bytes.is_multiple_of(block_bytes) {
                let problem = format!(
                    "a request of {bytes} bytes at byte {} is not in blocks of {block_bytes} bytes",
                    request.offset_bytes
                );
                *failed.lock().expect("no thread panics with the lock") = Some(CharacterizeError::Refused(problem));
                return None;
            }
            let operation = match request.operation {
                RequestOperation::Read => DriveOperation::Read,
                RequestOperation::Trim => DriveOperation::Deallocate,
                RequestOperation::Write => {
                    written += u64::from(request.bytes);
                    DriveOperation::Write(request.placement.map(|index| index.index()))
                }
            };
            Some(DriveRequest { operation, offset_bytes: request.offset_bytes, bytes })
        };
        self.drive.transfer(DEPTH, next, |_, _| ())?;
        match failed.into_inner().expect("all threads have ended") {
            Some(error) => Err(error),
            None => Ok(written),
        }
    }

    /// Writes to the last placement index in order until RUAMW rises, which is the start of a new
    /// reclaim unit. `None` if it never does.
    fn reclaim_unit_bytes(&mut self) -> Result<Option<u64>, CharacterizeError> {
        let Some(fdp) = &self.identity.fdp else { return Ok(None) };
        let placement = self.drive.handles().len() - 1;
        let block_bytes = self.drive.block_bytes();
        let step = (fdp.reclaim_unit_bytes / 64).clamp(block_bytes, 1 << 20) / block_bytes * block_bytes;
        let limit = fdp.reclaim_unit_bytes.saturating_mul(2).min(self.drive.bytes());
        let mut offset_bytes = 0;
        let mut left = self.drive.blocks_left(placement)?;
        while offset_bytes + step <= limit && !self.observer.should_stop() {
            let operation = DriveOperation::Write(Some(placement));
            let mut request = Some(DriveRequest { operation, offset_bytes, bytes: step });
            self.drive.transfer(1, || request.take(), |_, _| ())?;
            offset_bytes += step;
            let now = self.drive.blocks_left(placement)?;
            if now > left {
                // The step wrote the old unit's last blocks, and the rest of it the new unit's first.
                let in_new = (step / block_bytes).saturating_sub(left);
                return Ok(now.checked_add(in_new).and_then(|blocks| blocks.checked_mul(block_bytes)));
            }
            left = now;
        }
        Ok(None)
    }
}

/// Requests of a job, in batches.
struct BatchedSource {
    source: Box<dyn RequestSource>,
    batch: Vec<IoRequest>,
    at: usize,
}

impl BatchedSource {
    fn open(path: &Path, capacity_bytes: u64, handles: usize) -> Result<BatchedSource, CharacterizeError> {
        let path = path.to_str().ok_or_else(|| {
            CharacterizeError::Refused(format!("{} is not UTF-8. Choose another folder", path.display()))
        })?;
        let run = RunOptions { timed: Some(false), drive_writes: Some(1.0), ..RunOptions::default() };
        let selection = RunOverrides { run, ..RunOverrides::default() };
        let cells = Experiment::from_workload(path, "warp_default").select(&selection)?.cells;
        assert_eq!(cells.len(), 1, "a job file is one run");
        let target = WorkloadTarget {
            device_bytes: capacity_bytes,
            placement_count: handles as u16,
            endless: true,
            scaled_model: None,
        };
        Ok(BatchedSource { source: cells[0].workload.source(&target, SEED)?, batch: Vec::new(), at: 0 })
    }

    fn next(&mut self) -> Result<Option<IoRequest>, workload::WorkloadError> {
        if self.at == self.batch.len() {
            self.batch.clear();
            self.at = 0;
            if self.source.next_batch(&mut self.batch, BATCH_REQUESTS)? == 0 {
                return Ok(None);
            }
        }
        self.at += 1;
        Ok(Some(self.batch[self.at - 1]))
    }
}

/// Counters since the start of a probe.
fn sample(
    before: &WearReading,
    now: &WearReading,
    sent_bytes: u64,
    elapsed: Duration,
) -> Result<ProbeSample, CharacterizeError> {
    let difference = |before: Option<u128>, now: Option<u128>| match (before, now) {
        (Some(before), Some(now)) => {
            let bytes = now.checked_sub(before).and_then(|bytes| u64::try_from(bytes).ok());
            let problem = "the drive's counters of bytes written decreased during a probe. Check if another client reset the drive";
            bytes.map(Some).ok_or_else(|| CharacterizeError::Refused(problem.to_string()))
        }
        _ => Ok(None),
    };
    Ok(ProbeSample {
        host_bytes: difference(before.host_bytes, now.host_bytes)?.unwrap_or(sent_bytes),
        media_bytes: difference(before.media_bytes, now.media_bytes)?,
        erased_bytes: difference(before.erased_bytes, now.erased_bytes)?,
        seconds: elapsed.as_secs_f64(),
    })
}

/// Write amplification of the last [`ROUNDS`] rounds, or of fewer at the start. Without a counter,
/// seconds per host byte, which are proportional to it while the flash limits the rate.
fn rounds(samples: &[ProbeSample]) -> Vec<f64> {
    let end = |rounds_back: usize| samples.len().checked_sub(rounds_back * SAMPLES_PER_ROUND);
    let at = |count: usize| count.checked_sub(1).map_or_else(ProbeSample::default, |index| samples[index]);
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map_while(|back| {
            let (before, after) = (at(end(back + 1)?), at(end(back)?));
            let host = after.host_bytes.saturating_sub(before.host_bytes).max(1) as f64;
            Some(match after.media_bytes {
                Some(media) => media.saturating_sub(before.media_bytes.unwrap_or(0)) as f64 / host,
                None => (after.seconds - before.seconds).max(0.0) / host,
            })
        })
        .collect();
    rounds.reverse();
    rounds
}

/// True if the drive reclaimed units in the last round.
fn is_collecting(samples: &[ProbeSample], drive_writes: f64) -> bool {
    let last = samples[samples.len() - 1];
    let before = samples.len().checked_sub(SAMPLES_PER_ROUND + 1).map_or_else(ProbeSample::default, |at| samples[at]);
    match (before.erased_bytes, last.erased_bytes) {
        (before, Some(erased)) => erased > before.unwrap_or(0),
        _ => drive_writes >= COLLECTS_AFTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_the_last_equal_parts() {
        let sample = |index: u64| ProbeSample {
            host_bytes: 10 * index,
            media_bytes: Some(if index > 8 { 30 * index - 160 } else { 10 * index }),
            erased_bytes: None,
            seconds: index as f64,
        };
        let samples: Vec<ProbeSample> = (1..=16).map(sample).collect();
        assert_eq!(rounds(&samples), [1.0, 3.0]);
        let unknown: Vec<ProbeSample> = samples.iter().map(|one| ProbeSample { media_bytes: None, ..*one }).collect();
        assert_eq!(rounds(&unknown), [0.1, 0.1]);
    }
}
