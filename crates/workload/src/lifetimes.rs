//! Data lifetimes of a workload. A lifetime is the distance, in bytes written, from a write to its
//! overwrite or trim.
//!
//! Placement gains only from differences between lifetimes, so a model of a program is as good as
//! its lifetimes. Data that survives the workload has lived at least until the end. Kaplan and
//! Meier's estimate (J. Am. Stat. Assoc. 53, 1958) includes such data. A histogram of the dead data
//! alone would underestimate long lifetimes.

use crate::classifier::{trimmed_units, units, written_units};
use crate::{IoRequest, RequestOperation, WorkloadTarget};

/// Bits of a distance that a bin keeps. Bins are at most 1.6 % wide.
const BIN_BITS: u32 = 7;
const BINS_PER_OCTAVE: u64 = 1 << (BIN_BITS - 1);
const BINS: usize = ((64 - BIN_BITS as u64 + 2) * BINS_PER_OCTAVE) as usize;
/// Bits of the write counter, in units. The bits above hold the stream.
const POSITION_BITS: u32 = 48;
const _: () = assert!(POSITION_BITS + u16::BITS == u64::BITS, "the write counter and a stream fill a word");

fn bin(distance: u64) -> usize {
    let shift = (u64::BITS - distance.leading_zeros()).saturating_sub(BIN_BITS);
    (u64::from(shift) * BINS_PER_OCTAVE + (distance >> shift)) as usize
}

/// Returns the largest distance in a bin.
fn bin_end(bin: usize) -> u64 {
    let bin = bin as u64;
    let shift = (bin / BINS_PER_OCTAVE).saturating_sub(1);
    let kept = bin - shift * BINS_PER_OCTAVE;
    ((u128::from(kept) + 1) << shift).saturating_sub(1).min(u128::from(u64::MAX)) as u64
}

/// Lifetimes of a set of written units, as counts per bin of distance.
#[derive(Clone, Debug)]
struct LifetimeCounts {
    /// Units that were overwritten or trimmed at this distance.
    ended: Vec<u64>,
    /// Units that were still valid at this distance when the workload ended.
    open: Vec<u64>,
    written: u64,
}

impl LifetimeCounts {
    fn new() -> LifetimeCounts {
        LifetimeCounts { ended: vec![0; BINS], open: vec![0; BINS], written: 0 }
    }
}

/// Measures the lifetimes of the data that a workload writes. Needs 8 bytes for each unit of the
/// drive.
pub struct LifetimeObserver {
    unit_bytes: u64,
    /// Number (from 1) and stream of each unit's last write. 0 for a unit without data.
    born: Vec<u64>,
    /// Units written so far.
    position: u64,
    all: LifetimeCounts,
    streams: Vec<LifetimeCounts>,
}

impl LifetimeObserver {
    /// Creates an observer of a workload with `streams` streams on this target.
    pub fn new(target: &WorkloadTarget, streams: usize) -> LifetimeObserver {
        LifetimeObserver {
            unit_bytes: target.unit_bytes(),
            born: vec![0; units(target)],
            position: 0,
            all: LifetimeCounts::new(),
            streams: vec![LifetimeCounts::new(); streams],
        }
    }

    /// Bytes written so far, in whole units.
    pub fn written_bytes(&self) -> u64 {
        self.position * self.unit_bytes
    }

    /// Records the next request.
    ///
    /// # Panics
    /// Panics if the request is outside the target or its stream does not exist.
    pub fn observe(&mut self, request: &IoRequest) {
        match request.operation {
            RequestOperation::Read => {}
            RequestOperation::Write => {
                for unit in written_units(request, self.unit_bytes) {
                    self.end(unit);
                    self.position += 1;
                    assert!(self.position < 1 << POSITION_BITS, "2^48 units are not written in a run");
                    self.born[unit as usize] = u64::from(request.stream) << POSITION_BITS | self.position;
                    self.all.written += 1;
                    self.streams[usize::from(request.stream)].written += 1;
                }
            }
            RequestOperation::Trim => {
                for unit in trimmed_units(request, self.unit_bytes) {
                    self.end(unit);
                }
            }
        }
    }

    /// Returns the bin of a unit's age and its stream, or `None` for a unit without data.
    fn life(&self, born: u64) -> Option<(usize, usize)> {
        let number = born & ((1 << POSITION_BITS) - 1);
        (number > 0).then(|| (bin(self.position - number + 1), (born >> POSITION_BITS) as usize))
    }

    fn end(&mut self, unit: u64) {
        let born = std::mem::take(&mut self.born[unit as usize]);
        if let Some((bin, stream)) = self.life(born) {
            self.all.ended[bin] += 1;
            self.streams[stream].ended[bin] += 1;
        }
    }

    /// Returns the survival function of all streams together, and of each stream.
    pub fn finish(mut self) -> (SurvivalCurve, Vec<SurvivalCurve>) {
        for unit in std::mem::take(&mut self.born) {
            if let Some((bin, stream)) = self.life(unit) {
                self.all.open[bin] += 1;
                self.streams[stream].open[bin] += 1;
            }
        }
        let written: u64 = self.streams.iter().map(|lives| lives.written).sum();
        assert_eq!(written, self.all.written, "the streams count other units than the workload wrote");
        let survival = |lives: &LifetimeCounts| SurvivalCurve::estimate(lives, self.unit_bytes);
        (survival(&self.all), self.streams.iter().map(survival).collect())
    }
}

/// Share of the written data that lives longer than a distance.
#[derive(Clone, Debug)]
pub struct SurvivalCurve {
    unit_bytes: u64,
    /// Surviving share after each bin, up to the longest observed lifetime.
    alive: Vec<f64>,
    /// Units written.
    written: u64,
    /// Units still valid at the end.
    open: u64,
}

impl SurvivalCurve {
    /// Computes Kaplan and Meier's estimate.
    fn estimate(lives: &LifetimeCounts, unit_bytes: u64) -> SurvivalCurve {
        let open: u64 = lives.open.iter().sum();
        let mut at_risk = open + lives.ended.iter().sum::<u64>();
        assert_eq!(at_risk, lives.written, "every unit written has ended or is there");
        let mut share = 1.0;
        let mut alive = Vec::new();
        for (ended, open) in lives.ended.iter().zip(&lives.open) {
            if at_risk == 0 {
                break;
            }
            assert!(ended + open <= at_risk, "{ended} units end and {open} stay of {at_risk}");
            share *= 1.0 - *ended as f64 / at_risk as f64;
            at_risk -= ended + open;
            alive.push(share);
        }
        assert_eq!(at_risk, 0, "units are in no bin of lifetimes");
        SurvivalCurve { unit_bytes, alive, written: lives.written, open }
    }

    /// Bytes written, in whole units.
    pub fn written_bytes(&self) -> u64 {
        self.written * self.unit_bytes
    }

    /// Share of the written data that was still valid at the end.
    pub fn open_share(&self) -> f64 {
        if self.written == 0 { 0.0 } else { self.open as f64 / self.written as f64 }
    }

    /// Returns the distance, bytes, within which this share of the written data dies. `None` if the
    /// workload ended before that.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let bin = self.alive.iter().position(|alive| 1.0 - alive >= share)?;
        Some(bin_end(bin).saturating_mul(self.unit_bytes))
    }

    /// Bytes of a unit. Distances are multiples of it.
    pub fn unit_bytes(&self) -> u64 {
        self.unit_bytes
    }

    /// Distances at which data died, bytes, ascending, each with the share that has died by then.
    pub fn steps(&self) -> impl Iterator<Item = (u64, f64)> {
        let before = std::iter::once(1.0).chain(self.alive.iter().copied());
        let bins = self.alive.iter().zip(before).enumerate();
        bins.filter(|(_, (alive, before))| *alive < before)
            .map(|(bin, (alive, _))| (bin_end(bin).saturating_mul(self.unit_bytes), 1.0 - alive))
    }

    /// Returns the largest difference between two survival functions and its distance in bytes.
    /// This is Kolmogorov and Smirnov's statistic, up to the longest lifetimes seen on both sides.
    /// Returns 0 if either side wrote no data.
    ///
    /// # Panics
    /// Panics if the unit sizes differ.
    pub fn distance(&self, other: &SurvivalCurve) -> (f64, u64) {
        assert_eq!(self.unit_bytes, other.unit_bytes, "units are of one size");
        let differences = self.alive.iter().zip(&other.alive).map(|(own, other)| (own - other).abs());
        let largest = differences.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        largest.map_or((0.0, 0), |(bin, difference)| (difference, bin_end(bin).saturating_mul(self.unit_bytes)))
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;
    use crate::random::below;

    const UNITS: u64 = 1000;

    fn target() -> WorkloadTarget {
        WorkloadTarget { device_bytes: UNITS * 4096, placement_count: 8, endless: true, scaled_model: None }
    }

    fn request(operation: RequestOperation, unit: u64, count: u32, stream: u16) -> IoRequest {
        IoRequest { stream, operation, offset_bytes: unit * 4096, bytes: count * 4096, placement: None }
    }

    fn write(unit: u64) -> IoRequest {
        request(RequestOperation::Write, unit, 1, 0)
    }

    #[test]
    fn bins_are_in_order_and_narrow() {
        let mut last = 0;
        for distance in (0..5000).chain((13..64).map(|bit| (1_u64 << bit) - 1)).chain([u64::MAX]) {
            let bin = bin(distance);
            assert!(bin >= last && bin < BINS, "{distance}: bin {bin}");
            let end = bin_end(bin);
            assert!(end >= distance && end - distance <= distance / 64, "{distance}: ends at {end}");
            last = bin;
        }
    }

    #[test]
    fn what_is_written_in_a_circle_lives_for_a_circle() {
        let mut observer = LifetimeObserver::new(&target(), 1);
        for number in 0..10 * UNITS {
            observer.observe(&write(number % UNITS));
        }
        let (all, streams) = observer.finish();
        assert_eq!(all.written_bytes(), 10 * UNITS * 4096);
        assert_eq!(all.quantile(0.01), all.quantile(0.99), "all live equally long");
        let life = all.quantile(0.5).expect("nine circles ended") as f64 / 4096.0;
        assert!((1.0..1.02).contains(&(life / UNITS as f64)), "{life}");
        assert_eq!(streams[0].distance(&all).0, 0.0);
        assert!((all.open_share() - 0.1).abs() < 1e-9);
    }

    #[test]
    fn uniform_overwrites_live_geometrically_whatever_is_cut_off() {
        for drives in [1, 3, 30] {
            let mut observer = LifetimeObserver::new(&target(), 2);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
            for unit in 0..UNITS {
                observer.observe(&request(RequestOperation::Write, unit, 1, 1));
            }
            for _ in 0..drives * UNITS {
                observer.observe(&write(below(&mut random, UNITS)));
            }
            let (_, streams) = observer.finish();
            let life = streams[0].quantile(0.5).expect("half ends within 0.7 of the drive") as f64 / 4096.0;
            let expected = UNITS as f64 * 2.0_f64.ln();
            assert!((0.85..1.15).contains(&(life / expected)), "{drives}: {life} for {expected}");
        }
    }

    #[test]
    fn a_trim_ends_a_life_and_streams_are_apart() {
        let mut observer = LifetimeObserver::new(&target(), 2);
        observer.observe(&request(RequestOperation::Write, 0, 4, 0));
        observer.observe(&request(RequestOperation::Write, 100, 16, 1));
        observer.observe(&request(RequestOperation::Trim, 0, 4, 1));
        observer.observe(&request(RequestOperation::Trim, 0, 4, 1));
        observer.observe(&request(RequestOperation::Read, 100, 16, 0));
        observer.observe(&request(RequestOperation::Write, 200, 8, 1));
        let (all, streams) = observer.finish();
        assert_eq!(streams[0].open_share(), 0.0);
        assert_eq!(streams[0].quantile(1.0), Some(20 * 4096));
        assert_eq!(streams[1].open_share(), 1.0);
        assert_eq!(streams[1].quantile(0.01), None);
        assert_eq!(streams[0].distance(&streams[1]).0, 1.0, "all of one is gone when all of the other is there");
        assert_eq!(all.written_bytes(), 28 * 4096);
    }
}
