//! Scaled models, which run the same job on a smaller model of the same drive.
//!
//! A model has the drive's shape at 1/d of its capacity. This module holds all rules for scaling
//! jobs.
//!
//! - Positions (region, zones, schemes) keep their proportion of the drive, aligned down to the
//!   mapping unit. They are first computed on the full-size drive, so that percentages and
//!   roundings are those of the full-size job. A region that begins inside a mapping unit also does
//!   so on the model.
//! - Request sizes shrink by d, but not below one mapping unit. A job whose requests cannot shrink
//!   far enough issues fewer of them. The bytes of a job thus shrink by exactly d. This holds for
//!   the job as a whole, for its sizes among each other and for its share among other jobs (see
//!   `schedule`).
//! - A write of a part of a mapping unit programs the whole unit. Jobs that write or trim such
//!   parts keep their request sizes and issue fewer requests.
//! - zipf, pareto and normal draw ranks from the full-size number of blocks. Each block of the
//!   model stands for the largest possible number of neighbouring ranks. After the same number of
//!   drive writes, the touched share of the region is then the same. The rest (uniform, zoned,
//!   sequential) is the same at every size.
//! - Counts of requests shrink with the bytes they stand for.
//! - On a device with timing neither sizes nor counts of requests shrink, because smaller requests
//!   are also faster.

use super::plan::{AddressPlan, BlockPlan, JobPlan, PlacementPlan, StridePlan};
use super::value::PerDirection;
use crate::{RequestOperation, ScaledModel};

impl ScaledModel {
    /// Scales a full-size plan. The region may become smaller than a block, which the caller
    /// reports as an error.
    pub(crate) fn shrink(&self, full: &JobPlan) -> JobPlan {
        let position = |bytes: u64| self.position(bytes, full.device_bytes);
        let start_bytes = position(full.start_bytes) + full.start_bytes % self.mapping_unit_bytes;
        let region_bytes = position(full.start_bytes + full.region_bytes).saturating_sub(start_bytes);
        let blocks = if self.keep_requests || self.has_parts(full) {
            full.blocks.clone()
        } else {
            full.blocks.each_ref().map(|block| self.shrink_block(block))
        };
        let mut plan = JobPlan { start_bytes, region_bytes, device_bytes: self.device_bytes, blocks, ..full.clone() };
        let min_bytes = plan.min_bytes();
        // Holes keep their proportion to the requests.
        let step_bytes = i128::from(full.step_bytes) * i128::from(min_bytes) / i128::from(full.min_bytes());
        plan.step_bytes = step_bytes as i64;
        plan.strides = full.strides.map(|strides| StridePlan {
            issued_bytes: self.amount(strides.issued_bytes).max(min_bytes),
            zone_bytes: self.amount(strides.zone_bytes).max(min_bytes),
            skipped_bytes: self.amount(strides.skipped_bytes),
        });
        // A job that fills its region on the drive also fills it on the model.
        plan.size_bytes =
            if full.size_bytes == full.region_bytes { region_bytes } else { self.amount(full.size_bytes) };
        plan.io_size_bytes = full.io_size_bytes.map(|bytes| self.amount(bytes).max(min_bytes));
        assert!(
            region_bytes <= self.device_bytes.saturating_sub(start_bytes) || region_bytes == 0,
            "the region of a scaled model is on its drive"
        );
        let bytes_per_request = full.mean_request_bytes() / self.denominator as f64 / plan.mean_request_bytes();
        if !self.keep_requests {
            plan.number_ios = full.number_ios.map(|count| (count as f64 * bytes_per_request).ceil() as u64);
        }
        match &mut plan.addresses {
            AddressPlan::Skewed { blocks, .. } => *blocks = (region_bytes / min_bytes).max(1),
            AddressPlan::ZonedAbsolute(zones) => self.shrink_zones(zones, full),
            AddressPlan::Sequential
            | AddressPlan::Uniform { .. }
            | AddressPlan::Zoned(_)
            | AddressPlan::Sequence { .. } => {}
        }
        if let PlacementPlan::Scheme(entries) = &mut plan.placement {
            for entry in entries {
                entry.start_bytes = position(entry.start_bytes);
                entry.end_bytes = position(entry.end_bytes);
            }
        }
        plan
    }

    /// True if requests that change data cover parts of mapping units.
    fn has_parts(&self, plan: &JobPlan) -> bool {
        let is_whole = |block: &BlockPlan| {
            let sizes = block.shares().map(|(bytes, _)| bytes);
            sizes.chain([block.min_bytes, block.align_bytes]).all(|bytes| self.is_whole(bytes))
        };
        let mut operations = plan.access.operations.iter();
        operations.any(|operation| operation != RequestOperation::Read && !is_whole(&plan.blocks[operation as usize]))
    }

    fn shrink_block(&self, block: &BlockPlan) -> BlockPlan {
        // Each size keeps its share of the bytes. A size that shrinks less than the rest becomes
        // rarer.
        let weights =
            block.shares().map(|(bytes, percent)| (self.size(bytes), percent * bytes as f64 / self.size(bytes) as f64));
        let mut split: Vec<(u64, f64)> = weights.collect();
        let total: f64 = split.iter().map(|(_, weight)| weight).sum();
        assert!(split.is_empty() || total > 0.0, "some size has a share");
        for (_, weight) in &mut split {
            *weight *= 100.0 / total;
        }
        BlockPlan {
            min_bytes: self.size(block.min_bytes),
            max_bytes: self.size(block.max_bytes),
            align_bytes: self.size(block.align_bytes),
            split,
        }
    }

    fn shrink_zones(&self, zones: &mut PerDirection<Vec<super::AccessZone>>, full: &JobPlan) {
        for zone in zones.iter_mut().flatten() {
            zone.size = self.position(zone.size, full.device_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{JobStream, parse};
    use super::*;
    use crate::IoRequest;
    use crate::WorkloadTarget;

    const UNIT: u64 = 4096;
    const FULL: u64 = 64 << 30;
    const SCALED_MODEL: ScaledModel =
        ScaledModel { denominator: 64, device_bytes: 1 << 30, mapping_unit_bytes: UNIT, keep_requests: false };

    fn plans(options: &str) -> (JobPlan, JobPlan) {
        let job = parse(&format!("[a]\n{options}\n"), "test.fio").unwrap().jobs.remove(0);
        let full = JobPlan::new(
            &job,
            0,
            WorkloadTarget { device_bytes: FULL, placement_count: 8, ..WorkloadTarget::default() },
        )
        .unwrap();
        let shrunk = SCALED_MODEL.shrink(&full);
        (full, shrunk)
    }

    fn requests(plan: JobPlan, count: usize) -> Vec<IoRequest> {
        let mut requests = Vec::new();
        JobStream::new(plan, 0).fill(&mut requests, count);
        requests
    }

    #[test]
    fn regions_keep_their_proportion_and_stay_next_to_each_other() {
        let (_, first) = plans("rw=write\nbs=128k\nsize=91%");
        let (_, second) = plans("rw=randwrite\noffset=91%");
        assert_eq!(first.start_bytes, 0);
        assert!(first.region_bytes.abs_diff((1 << 30) * 91 / 100) < 2 * UNIT);
        assert!(second.start_bytes.abs_diff(first.region_bytes) <= UNIT);
        assert_eq!(second.start_bytes + second.region_bytes, 1 << 30);
        for plan in [first, second] {
            assert_eq!((plan.start_bytes % UNIT, plan.region_bytes % UNIT), (0, 0));
        }
    }

    #[test]
    fn requests_shrink_to_the_mapping_unit_and_no_further() {
        let size = |options| plans(options).1.blocks[RequestOperation::Write as usize].min_bytes;
        assert_eq!(size("rw=write\nbs=4k"), UNIT);
        assert_eq!(size("rw=write\nbs=128k"), UNIT);
        assert_eq!(size("rw=write\nbs=1m"), 16 << 10);
        assert_eq!(size("rw=write\nbs=900k"), 12 << 10);
    }

    /// Bytes of the units that a plan's writes touch, per byte written.
    fn amplification(plan: JobPlan) -> f64 {
        let (mut units, mut bytes) = (0, 0);
        for request in requests(plan, 20_000) {
            if request.operation == RequestOperation::Write {
                let end = request.offset_bytes + u64::from(request.bytes);
                units += end.div_ceil(UNIT) - request.offset_bytes / UNIT;
                bytes += u64::from(request.bytes);
            }
        }
        (units * UNIT) as f64 / bytes as f64
    }

    #[test]
    fn parts_of_mapping_units_stay_parts() {
        for (options, expected) in [
            ("rw=randwrite\nbs=512\nnumber_ios=64000", 8.0),
            ("rw=write\nbs=512\nnumber_ios=64000", 8.0),
            ("rw=randwrite\nbs=6k\nba=2k\nnorandommap\nio_size=16g", 4.0 / 3.0),
            // 512 bytes touch one unit. 4 KiB touch two, except for one in eight requests.
            ("rw=randwrite\nbssplit=512/50:4k/50\nnorandommap\nio_size=1g", 2.875 * 4096.0 / 4608.0),
            ("rw=randwrite\noffset=2k\noffset_align=2k\nnorandommap\nio_size=16g", 2.0),
            ("rw=randrw\nbs=512,4k\nnorandommap\nio_size=1g", 1.0),
        ] {
            let (full, shrunk) = plans(options);
            for plan in [full, shrunk] {
                let found = amplification(plan);
                assert!((found / expected - 1.0).abs() < 0.02, "{options}: {found} for {expected}");
            }
        }
        let (_, shrunk) = plans("rw=randwrite\nbs=512\nnumber_ios=64000");
        assert_eq!(shrunk.number_ios, Some(1_000));
    }

    #[test]
    fn totals_shrink_exactly() {
        for options in [
            "rw=write\nbs=128k\nio_size=16g",
            "rw=randwrite\nnorandommap\nio_size=16g",
            "rw=write\nbs=128k\nnumber_ios=131072",
        ] {
            let (_, shrunk) = plans(options);
            let bytes: u64 = requests(shrunk, usize::MAX >> 1).iter().map(|request| u64::from(request.bytes)).sum();
            assert_eq!(bytes, (16 << 30) / 64, "{options}");
        }
    }

    #[test]
    fn a_sequential_pass_and_a_random_map_cover_the_scaled_model_once() {
        for options in ["rw=write\nbs=128k", "rw=randwrite"] {
            let (_, shrunk) = plans(options);
            let mut covered: Vec<u64> =
                requests(shrunk, usize::MAX >> 1).iter().map(|request| request.offset_bytes).collect();
            covered.sort_unstable();
            assert!(covered.iter().copied().eq((0..(1 << 30) / UNIT).map(|page| page * UNIT)), "{options}");
        }
    }

    /// Number of requests to each touched block, descending.
    fn hits(plan: JobPlan, count: usize) -> Vec<usize> {
        let mut hits = std::collections::HashMap::new();
        for request in requests(plan, count) {
            *hits.entry(request.offset_bytes).or_insert(0) += 1;
        }
        let mut counts: Vec<usize> = hits.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn the_hottest_blocks_of_the_drive_are_the_hottest_block_of_the_scaled_model() {
        let (full, shrunk) = plans("rw=randwrite\nrandom_distribution=zipf:1.2\nio_size=128g");
        let (full, model) = (hits(full, 100_000), hits(shrunk, 100_000));
        let hottest: usize = full[..64].iter().sum();
        assert!(
            hottest.abs_diff(model[0]) < 1_000,
            "{hottest} of 100000 on the drive, {} on the scaled model",
            model[0]
        );
        assert!(full[0] < model[0], "the blocks were not merged");
    }

    #[test]
    fn as_large_a_part_of_the_scaled_model_is_touched() {
        let (full, shrunk) = plans("rw=randwrite\nrandom_distribution=zipf:1.2\nio_size=128g");
        // Both get the same number of drive writes. The model has a 64th of the blocks and of the
        // requests.
        let (full, model) = (hits(full, 1_280_000).len(), hits(shrunk, 20_000).len());
        let ratio = model as f64 * 64.0 / full as f64;
        assert!((0.9..1.1).contains(&ratio), "{full} blocks of the drive, {model} of the scaled model's");
    }

    #[test]
    fn sizes_of_a_split_keep_their_shares_of_the_bytes() {
        let (full, shrunk) = plans("rw=randwrite\nnorandommap\nbssplit=128k/50:1m/50");
        let share = |plan: JobPlan, large: u64| {
            let requests = requests(plan, 50_000);
            let bytes = |request: &&IoRequest| u64::from(request.bytes);
            let total: u64 = requests.iter().map(|request| bytes(&request)).sum();
            requests.iter().filter(|request| bytes(request) == large).map(|request| bytes(&request)).sum::<u64>() as f64
                / total as f64
        };
        let (full, shrunk) = (share(full, 1 << 20), share(shrunk, 16 << 10));
        assert!((full - 8.0 / 9.0).abs() < 0.01 && (full - shrunk).abs() < 0.01, "{full} {shrunk}");
    }

    #[test]
    fn zones_in_bytes_shrink_with_the_drive() {
        let (_, shrunk) = plans("rw=randwrite\nrandom_distribution=zoned_abs:90/1g:10/63g");
        let requests = requests(shrunk, 20_000);
        let hot = requests.iter().filter(|request| request.offset_bytes < (1 << 30) / 64).count();
        assert!((17_800..18_200).contains(&hot), "{hot} of 20000");
    }
}
