//! Policies of a caller: they replace the device's victim selection or the workload's placement
//! during runs.
//!
//! ```text
//! workload -> batch of requests -> PlacementPolicy -> Device -> collection -> VictimPolicy
//! ```
//!
//! A factory creates separate policies for each run. Results are deterministic if the policies are.

#![warn(missing_docs)]

use std::sync::{Arc, Mutex};

use ssd::gc::VictimPolicy;
use workload::{IoRequest, PlacementIndex, RequestOperation, WorkloadError};

/// Factory of a victim policy for a run.
pub type MakeVictimPolicy<'a> = &'a (dyn Fn() -> Box<dyn VictimPolicy + Send + Sync> + Sync);
/// Factory of a placement policy for a run.
pub type MakePlacementPolicy<'a> = &'a (dyn Fn() -> Box<dyn PlacementPolicy> + Sync);

/// Policies of a run. None by default.
#[derive(Clone, Copy, Default)]
pub struct Policies<'a> {
    /// Selects the reclaim unit to collect, instead of `gc.victim_policy`.
    pub victim: Option<MakeVictimPolicy<'a>>,
    /// Selects the placement of writes, instead of the workload.
    pub placement: Option<MakePlacementPolicy<'a>>,
}

/// A placement index for each request, or none.
pub type RequestPlacements = Vec<Option<PlacementIndex>>;

/// Selects the placement of writes.
pub trait PlacementPolicy: Send {
    /// Appends a placement index for each of these requests, the next ones of the workload in
    /// order. Values for requests other than writes have no effect. A page is a mapping unit of the
    /// drive.
    ///
    /// # Errors
    /// The reason for a failure, one sentence. The run then ends.
    fn place(
        &mut self,
        requests: &[IoRequest],
        page_bytes: u64,
        placements: &mut RequestPlacements,
    ) -> Result<(), String>;
}

/// A policy and its answers.
struct Consultation {
    policy: Box<dyn PlacementPolicy>,
    /// Last answers of the policy.
    placements: RequestPlacements,
}

/// Placement policy of one run. Its jobs share it.
#[derive(Clone)]
pub(crate) struct PolicyPlacer {
    consultation: Arc<Mutex<Consultation>>,
    page_bytes: u64,
    placement_count: u16,
}

impl PolicyPlacer {
    pub(crate) fn new(policy: Box<dyn PlacementPolicy>, page_bytes: u64, placement_count: u16) -> PolicyPlacer {
        assert!(placement_count > 0, "a namespace has a placement");
        let consultation = Consultation { policy, placements: Vec::new() };
        PolicyPlacer { consultation: Arc::new(Mutex::new(consultation)), page_bytes, placement_count }
    }

    /// Calls the policy and checks its answers.
    ///
    /// # Panics
    /// The number of answers differs from the number of requests.
    pub(crate) fn place(&self, requests: &mut [IoRequest]) -> Result<(), WorkloadError> {
        let error = |problem: String| WorkloadError::at("placement policy", problem);
        let mut consultation = self.consultation.lock().expect("a policy that panicked ended its run");
        let Consultation { policy, placements } = &mut *consultation;
        placements.clear();
        policy.place(requests, self.page_bytes, placements).map_err(error)?;
        assert_eq!(placements.len(), requests.len(), "a placement for each request");
        let count = self.placement_count;
        if let Some(index) = placements.iter().flatten().max().filter(|index| index.0 >= count) {
            let problem = format!(
                "the policy returned placement index {index}, but the drive has only 0 to \
                                   {}",
                count - 1
            );
            return Err(error(problem));
        }
        for (request, placement) in requests.iter_mut().zip(placements) {
            if request.operation == RequestOperation::Write {
                request.placement = *placement;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{ExecutionOptions, RunPlan, RunResult, prepare, run_all, run_all_with};
    use experiment::change::RunChange;
    use experiment::definition::Experiment;
    use experiment::run_options::RunOptions;
    use experiment::selection::RunOverrides;
    use ssd::RuId;
    use ssd::gc::{DeviceRng, VictimCandidates};

    /// Selects units in closing order, from the policy's view alone.
    struct OldestFirst;

    impl VictimPolicy for OldestFirst {
        fn select(&mut self, candidates: &VictimCandidates<'_>, _random: &mut DeviceRng) -> Option<RuId> {
            candidates.iter().min_by_key(|unit| candidates.unit(*unit).closed_sequence())
        }
    }

    /// Sends all writes through one placement index, or none.
    struct To(Option<PlacementIndex>);

    impl PlacementPolicy for To {
        fn place(
            &mut self,
            requests: &[IoRequest],
            page_bytes: u64,
            placements: &mut RequestPlacements,
        ) -> Result<(), String> {
            assert_eq!(page_bytes, 4096);
            placements.extend(requests.iter().map(|_| self.0));
            Ok(())
        }
    }

    fn cell(experiment: &str, variant: &str, policy: &str) -> Vec<RunPlan> {
        let experiment = Experiment::find(experiment).expect("it is built in");
        let only = experiment.variants.iter().any(|known| known.name == variant);
        let selection = RunOverrides {
            quick: true,
            run: RunOptions { variants: only.then(|| vec![variant.to_string()]), ..RunOptions::default() },
            change: RunChange::from_settings(&[("gc.victim_policy".to_string(), policy.into())].into_iter().collect()),
            ..RunOverrides::default()
        };
        let mut cells = experiment.select(&selection).expect("a selection").cells;
        cells.truncate(1);
        prepare(cells).expect("a cell")
    }

    fn run(prepared: &[RunPlan], policies: Policies<'_>) -> Result<RunResult, String> {
        let options = ExecutionOptions {
            policies,
            keep_gc_log: true,
            memory_budget_bytes: u64::MAX,
            ..ExecutionOptions::default()
        };
        let results = run_all_with(prepared, options, &());
        results.map(|mut results| results.remove(0)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_victim_policy_from_outside_gives_what_the_same_one_gives_inside() {
        let prepared = cell("three_stream", "FDP", "fifo");
        let inside = run_all(&prepared, true, u64::MAX, &()).expect("results").remove(0);
        let policies = Policies { victim: Some(&|| Box::new(OldestFirst)), ..Policies::default() };
        let outside = run(&prepared, policies).expect("a result");
        assert_eq!(inside.stats, outside.stats);
        let victims = |result: &RunResult| -> Vec<RuId> { result.gc_log.iter().map(|row| row.victim).collect() };
        assert_eq!(victims(&inside), victims(&outside));
        assert!(outside.gc_log.iter().any(|row| row.policy == "external"));
    }

    #[test]
    fn a_placement_policy_decides_instead_of_the_workload() {
        let to = |index: Option<u16>| move || -> Box<dyn PlacementPolicy> { Box::new(To(index.map(PlacementIndex))) };
        let run = |prepared: &[RunPlan], index| {
            let make = to(index);
            let policies = Policies { placement: Some(&make), ..Policies::default() };
            run(prepared, policies)
        };
        let placed = cell("three_stream", "FDP", "greedy");
        let unplaced = cell("three_stream", "NoFDP", "greedy");
        let expected = run_all(&unplaced, false, u64::MAX, &()).expect("results").remove(0);
        assert_eq!(run(&placed, None).expect("a result").stats, expected.stats);
        let elsewhere = run(&placed, Some(5)).expect("a result").stats;
        assert_eq!(elsewhere.handles[5].host_bytes_written, elsewhere.host_bytes_written());
        let error = run(&placed, Some(8)).expect_err("there are eight");
        assert_eq!(error, "placement policy: the policy returned placement index 8, but the drive has only 0 to 7");
    }

    #[test]
    fn a_placement_policy_decides_in_virtual_time_too() {
        let prepared = cell("noisy_neighbour", "", "greedy");
        let policies = Policies { placement: Some(&|| Box::new(To(Some(PlacementIndex(2))))), ..Policies::default() };
        let stats = run(&prepared, policies).expect("a result").stats;
        assert_eq!(stats.handles[2].host_bytes_written, stats.host_bytes_written());
        let policies = Policies { placement: Some(&|| Box::new(To(Some(PlacementIndex(99))))), ..Policies::default() };
        let error = run(&prepared, policies).expect_err("there are not as many");
        assert!(error.contains("returned placement index 99"), "{error}");
    }
}
