//! Steady-state detection: whether the write amplification of a run is stable, and its confidence
//! interval.
//!
//! ```text
//! samples -> write amplification of the last five drive writes
//!         -> is_steady (ends the run), mean and interval (SteadyState)
//! ```
//!
//! The rule follows SNIA's Solid State Storage Performance Test Specification (2.0.1, "Steady
//! State"). Over five rounds, the range must stay within a share of the average, and so must the
//! ends of the best-fit line. A round is one drive write and its measure is write amplification.
//! The shares are a quarter of SNIA's 20 % and 10 %. Write amplification moves slowly and hardly
//! fluctuates, so SNIA's shares would end runs in the middle of their rise. A drive without garbage
//! collection is new, not steady. So each round must have reclaimed a unit.
//!
//! The caller runs the workload and checks after each drive write.

use serde::Serialize;

use crate::run::RunSample;

/// Drive writes in the window.
pub const ROUNDS: usize = 5;
/// Maximum range of the rounds' write amplification, as a share of their mean.
pub const RANGE: f64 = 0.05;
/// Maximum difference between the ends of the best-fit line, as a share of the mean.
pub const SLOPE: f64 = 0.025;
/// Student's t for a 95 % confidence interval of the mean of [`ROUNDS`] batches.
const STUDENT_T: f64 = 2.776;
const _: () = assert!(ROUNDS == 5, "STUDENT_T is that of four degrees of freedom");

/// Last drive writes of a run that waited for steady state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SteadyState {
    pub reached: bool,
    /// Mean write amplification of the rounds.
    pub waf: f64,
    /// Half of the 95 % confidence interval of `waf`, from batch means.
    pub half_width: f64,
    /// Range of the rounds, as a share of the mean.
    pub range: f64,
    /// Difference between the ends of the best-fit line, as a share of the mean.
    pub slope: f64,
    /// Drive writes before the rounds.
    pub after_capacities: f64,
}

impl SteadyState {
    /// Assesses the end of a run's samples. `None` if the run has too few drive writes.
    /// `capacity_bytes` is that of the drive.
    pub fn assess(samples: &[RunSample], capacity_bytes: u64) -> Option<SteadyState> {
        let last = samples.last()?;
        let mut ends = vec![last];
        for round in 1..=ROUNDS as u64 {
            let before = last.host_bytes.checked_sub(round * capacity_bytes)?;
            let sample = samples.iter().rev().find(|sample| sample.host_bytes <= before);
            // The samples do not include the beginning of the run.
            match sample {
                Some(sample) => ends.push(sample),
                None => break,
            }
        }
        let mut rounds: Vec<(f64, bool)> = ends.windows(2).map(|pair| round(pair[1], pair[0])).collect();
        if rounds.len() + 1 == ROUNDS {
            rounds.push(round(&beginning(last), ends[ends.len() - 1]));
        }
        (rounds.len() == ROUNDS).then(|| {
            rounds.reverse();
            let collected = rounds.iter().all(|(_, collected)| *collected);
            let rounds: Vec<f64> = rounds.iter().map(|(waf, _)| *waf).collect();
            SteadyState::from_rounds(&rounds, collected, last.host_bytes as f64 / capacity_bytes as f64)
        })
    }

    /// Assesses the write amplification of [`ROUNDS`] equal rounds.
    ///
    /// # Arguments
    /// `collected`: each round reclaimed a unit. `capacities`: drive writes up to the end of the
    /// rounds.
    ///
    /// # Panics
    /// The number of rounds is another.
    pub fn from_rounds(rounds: &[f64], collected: bool, capacities: f64) -> SteadyState {
        assert_eq!(rounds.len(), ROUNDS, "the confidence interval is that of {ROUNDS} rounds");
        let count = rounds.len() as f64;
        let mean = rounds.iter().sum::<f64>() / count;
        let most = rounds.iter().copied().fold(f64::MIN, f64::max);
        let least = rounds.iter().copied().fold(f64::MAX, f64::min);
        let variance = rounds.iter().map(|waf| (waf - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // Least-squares line, over its whole length.
        let middle = (count - 1.0) / 2.0;
        let offsets = || (0..rounds.len()).map(|index| index as f64 - middle);
        let rise: f64 = offsets().zip(rounds).map(|(x, waf)| x * (waf - mean)).sum();
        let slope = rise / offsets().map(|x| x * x).sum::<f64>() * (count - 1.0);
        let (range, slope) = ((most - least) / mean, slope.abs() / mean);
        SteadyState {
            reached: collected && range <= RANGE && slope <= SLOPE,
            waf: mean,
            half_width: STUDENT_T * (variance / count).sqrt(),
            range,
            slope,
            after_capacities: (capacities - count).max(0.0),
        }
    }
}

/// Sample before the first write.
fn beginning(like: &RunSample) -> RunSample {
    RunSample {
        host_bytes: 0,
        media_bytes: 0,
        owners: vec![Default::default(); like.owners.len()],
        units: Vec::new(),
        valid_pages: Vec::new(),
    }
}

/// Write amplification between two samples, and true if a unit was reclaimed.
fn round(before: &RunSample, after: &RunSample) -> (f64, bool) {
    let reclaimed = |sample: &RunSample| sample.owners.iter().map(|owner| owner.units_reclaimed).sum::<u64>();
    assert!(
        after.host_bytes >= before.host_bytes && after.media_bytes >= before.media_bytes,
        "a sample at {} host and {} media bytes follows one at {} and {}",
        after.host_bytes,
        after.media_bytes,
        before.host_bytes,
        before.media_bytes
    );
    let host = (after.host_bytes - before.host_bytes).max(1);
    let media = after.media_bytes - before.media_bytes;
    (media as f64 / host as f64, reclaimed(after) > reclaimed(before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssd::OwnerStats;

    const CAPACITY: u64 = 1000;

    /// Samples of drive writes with these write amplifications, ten per drive write.
    fn samples(rounds: &[f64], reclaims: bool) -> Vec<RunSample> {
        let (mut host, mut media, mut reclaimed) = (0, 0.0, 0);
        let mut samples = Vec::new();
        for waf in rounds {
            for _ in 0..10 {
                host += CAPACITY / 10;
                media += CAPACITY as f64 / 10.0 * waf;
                reclaimed += u64::from(reclaims);
                let owner = OwnerStats { units_reclaimed: reclaimed, ..OwnerStats::default() };
                samples.push(RunSample {
                    host_bytes: host,
                    media_bytes: media as u64,
                    owners: vec![owner],
                    units: vec![1],
                    valid_pages: vec![1],
                });
            }
        }
        samples
    }

    fn state(rounds: &[f64]) -> Option<SteadyState> {
        SteadyState::assess(&samples(rounds, true), CAPACITY)
    }

    #[test]
    fn five_drive_writes_that_agree_are_steady() {
        assert_eq!(state(&[2.0; 4]), None);
        let flat = state(&[2.0; 5]).expect("five");
        assert!(flat.reached && flat.half_width < 1e-9 && flat.after_capacities == 0.0, "{flat:?}");
        let later = state(&[1.0, 1.5, 2.0, 2.0, 2.02, 1.98, 2.0]).expect("five");
        assert!(later.reached && later.after_capacities == 2.0, "{later:?}");
        // t of four degrees of freedom, standard error of 2.00 2.00 2.02 1.98 2.00.
        assert!((later.half_width - 2.776 * (0.0002_f64 / 5.0).sqrt()).abs() < 1e-6, "{later:?}");
    }

    #[test]
    fn a_rise_a_scatter_and_a_new_drive_are_not() {
        let rising = state(&[1.90, 1.92, 1.94, 1.96, 1.98]).expect("five");
        assert!(!rising.reached && rising.range < RANGE && rising.slope > SLOPE, "{rising:?}");
        let scattered = state(&[2.0, 2.12, 2.0, 2.12, 2.0]).expect("five");
        assert!(!scattered.reached && scattered.range > RANGE && scattered.slope < SLOPE, "{scattered:?}");
        let new = SteadyState::assess(&samples(&[1.0; 6], false), CAPACITY).expect("five");
        assert!(!new.reached && new.range == 0.0, "a drive that never collected is new: {new:?}");
    }
}
