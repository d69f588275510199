//! Random arrivals of an open loop (`rate_process=poisson`).
//!
//! The gaps between requests are exponential, from the generator that fio seeds for them
//! (`FIO_RAND_POISSON_OFF`). fio computes gaps in microseconds from the smallest block. Here gaps
//! are in nanoseconds from the request sent, so that a rate in bytes holds with requests of several
//! sizes. Reads and writes of a mixed job share one process, which is equivalent to two.

use super::plan::JobPlan;
use super::power::ln;
use super::random::{Purpose, Taus88};

/// The gaps between a job's requests.
#[derive(Debug, Clone)]
pub struct Arrivals(Taus88);

impl Arrivals {
    /// Creates the arrivals of one instance of a job.
    pub fn new(plan: &JobPlan) -> Arrivals {
        Arrivals(Taus88::new(plan.seeds.seed(Purpose::Arrival)))
    }

    /// Returns the next gap for this mean, nanoseconds.
    pub fn next_gap_ns(&mut self, mean_ns: f64) -> u64 {
        // The fraction must not be 0, whose logarithm is infinite.
        assert!(mean_ns.is_finite() && mean_ns >= 0.0, "{mean_ns} is not a time between requests");
        let fraction = 1.0 - self.0.next_fraction();
        assert!(fraction > 0.0, "the logarithm of the fraction is finite");
        (mean_ns * -ln(fraction)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::WorkloadTarget;

    #[test]
    fn gaps_are_exponential_and_the_same_each_time() {
        let job = parse("[a]\nrw=write\n", "test.fio").unwrap().jobs.remove(0);
        let target = WorkloadTarget { device_bytes: 1 << 30, ..WorkloadTarget::default() };
        let plan = JobPlan::new(&job, 0, target).unwrap();
        let gaps = || {
            let mut arrivals = Arrivals::new(&plan);
            (0..100_000).map(|_| arrivals.next_gap_ns(10_000.0)).collect::<Vec<_>>()
        };
        let first = gaps();
        assert_eq!(first, gaps());
        let mean = first.iter().sum::<u64>() as f64 / first.len() as f64;
        assert!((mean / 10_000.0 - 1.0).abs() < 0.01, "{mean}");
        // An exponential distribution has a share of 1/e above its mean.
        let above = first.iter().filter(|gap| **gap > 10_000).count() as f64 / first.len() as f64;
        assert!((above - (-1.0_f64).exp()).abs() < 0.005, "{above}");
    }
}
