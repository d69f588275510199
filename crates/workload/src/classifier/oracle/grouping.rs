//! Optimal grouping of lifetimes, so that the pages of a reclaim unit die as close together as the
//! number of groups allows.
//!
//! The space of a reclaim unit becomes free when its last page dies. A page that dies earlier is
//! garbage until then. Each page therefore costs its distance from the longest lifetime in its
//! group. The chosen groups are contiguous in lifetime and have the least total cost. Dynamic
//! programming over a sample gives the exact optimum. Streams of fixed lifetimes with a group for
//! each cost 0.
//!
//! Distances are between square roots of lifetimes. With the lifetimes themselves, the
//! longest-lived pages would get most groups. The drive does not wait for those but copies them
//! once, and a longer horizon makes the result worse. On `volume` over twelve drive writes,
//! horizons of 2, 4, 8 and 16 drive writes then give 2.05, 1.75, 1.41 and 1.43. With the roots they
//! give 1.99, 1.67, 1.37 and 1.35.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Maximum number of sampled lifetimes.
const SAMPLE: usize = 512;

/// Longest lifetime of each group but the last, ascending, at most `groups - 1` values.
pub(super) fn boundaries(lifetimes: &[u64], groups: usize) -> Vec<u64> {
    assert!(groups > 0 && !lifetimes.is_empty());
    // One random element per row of consecutive writes, because writes may alternate periodically.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(lifetimes.len() as u64);
    let rows = lifetimes.chunks(lifetimes.len().div_ceil(SAMPLE));
    let mut sample: Vec<u64> = rows.map(|row| row[(random.next_u64() % row.len() as u64) as usize]).collect();
    assert!(sample.len() <= SAMPLE, "{} lifetimes are sampled, at most {SAMPLE}", sample.len());
    sample.sort_unstable();
    // 256 times the root, in whole numbers.
    let roots: Vec<u64> = sample.iter().map(|lifetime| (lifetime << 16).isqrt()).collect();
    let sums: Vec<u64> = std::iter::once(0)
        .chain(roots.iter().scan(0, |sum, root| {
            *sum += root;
            Some(*sum)
        }))
        .collect();
    // Cost of a group of the lifetimes `from..to`.
    let cost = |from: usize, to: usize| (to - from) as u64 * roots[to - 1] - (sums[to] - sums[from]);
    let count = sample.len();
    let mut least: Vec<u64> = (0..=count).map(|to| if to == 0 { 0 } else { cost(0, to) }).collect();
    // For each number of groups and each end, the start of the last group of the best solution.
    let mut begins: Vec<Vec<u16>> = Vec::new();
    for _ in 1..groups.min(count) {
        let mut better = least.clone();
        let mut begin = vec![0; count + 1];
        for to in 1..=count {
            for (from, before) in least[..to].iter().enumerate().skip(1) {
                let here = before + cost(from, to);
                if here < better[to] {
                    better[to] = here;
                    begin[to] = from as u16;
                }
            }
        }
        least = better;
        begins.push(begin);
    }
    let mut end = count;
    let mut ends: Vec<u64> = Vec::new();
    for begin in begins.iter().rev() {
        // 0 means that one group fewer is as good.
        if begin[end] > 0 {
            end = begin[end].into();
            ends.push(sample[end - 1]);
        }
    }
    ends.reverse();
    ends.dedup();
    assert!(ends.len() < groups && ends.is_sorted(), "{groups} groups have the boundaries {ends:?}");
    ends
}

/// Group of a lifetime, 0 for the shortest.
pub(super) fn group(boundaries: &[u64], lifetime: u64) -> u16 {
    boundaries.partition_point(|boundary| *boundary < lifetime) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_lifetimes_have_groups_of_their_own() {
        let lifetimes: Vec<u64> = (0..5000).map(|write| [10, 700, 720, 90_000][write % 4]).collect();
        let boundaries = boundaries(&lifetimes, 4);
        assert_eq!(boundaries, [10, 700, 720]);
        let groups: Vec<u16> = [10, 700, 720, 90_000].map(|lifetime| group(&boundaries, lifetime)).to_vec();
        assert_eq!(groups, [0, 1, 2, 3]);
        assert_eq!(super::boundaries(&lifetimes, 2), [720]);
        assert_eq!(super::boundaries(&lifetimes, 1), Vec::<u64>::new());
        assert_eq!(super::boundaries(&lifetimes, 9).len(), 3, "more groups than lifetimes are of no use");
    }

    #[test]
    fn evenly_spread_lifetimes_have_wider_groups_where_they_are_longer() {
        // Cost is least if the density of boundaries is the root of that of the values. The values
        // are roots of lifetimes, so boundary i of k is at (i / k)^(4/3) of the longest lifetime.
        let lifetimes: Vec<u64> = (0..8000).map(|write| 1 + write * 7919 % 8000).collect();
        let boundaries = boundaries(&lifetimes, 8);
        assert_eq!(boundaries.len(), 7);
        for (boundary, index) in boundaries.iter().zip(1..) {
            let wanted = 8000.0 * (f64::from(index) / 8.0).powf(4.0 / 3.0);
            assert!((*boundary as f64 - wanted).abs() < 500.0, "{boundary}, {wanted} expected");
        }
    }
}
