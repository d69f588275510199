//! Owners of the data of a workload.

use advise::{DataOwner, OwnerMap};
use applications::WorkloadSpec;
use workload::fio::{PlannedStream, StreamSummary, plan_streams};
use workload::{RequestSource, WorkloadTarget};

use super::FeedbackSettings;
use experiment::error::LabError;

/// Returns the owners of a workload's data. These are the parts that it names (SOC and LOC of a
/// cache, tenants) or the regions of a job file's jobs. `source` is the workload as it will run.
/// Only a job file in virtual time has none.
///
/// # Errors
/// The settings make no sense, or the workload does not name its parts.
pub(crate) fn owners(
    settings: &FeedbackSettings,
    workload: &WorkloadSpec,
    source: Option<&dyn RequestSource>,
    target: &WorkloadTarget,
) -> Result<OwnerMap, LabError> {
    let refused = |problem: String| LabError::invalid("feedback", problem);
    settings.check().map_err(refused)?;
    let owner = |range: workload::OwnedRange| DataOwner {
        name: range.name,
        extents: vec![(range.start_bytes, range.end_bytes)],
        placement: None,
    };
    let owners: Vec<DataOwner> = match workload.jobs() {
        Some(file) => owners_of_jobs(&plan_streams(file, target)?),
        None => source.map(RequestSource::owners).unwrap_or_default().into_iter().map(owner).collect(),
    };
    if owners.is_empty() {
        let problem = "this kind of workload does not name owners of logical blocks. Use a job file, a cache or \
                       tenants";
        return Err(refused(problem.to_string()));
    }
    OwnerMap::new(owners).map_err(|error| refused(error.to_string()))
}

/// Assigns every byte to the jobs of the last group that uses it, because fills precede the jobs
/// that they serve. Jobs that share a region are one owner there. A gap between regions, smaller
/// than a request, belongs to the owner before it.
fn owners_of_jobs(planned: &[PlannedStream<'_>]) -> Vec<DataOwner> {
    let summaries = || planned.iter().map(|stream| &stream.summary);
    let mut cuts: Vec<u64> = summaries().flat_map(|stream| [stream.start_bytes, stream.end_bytes]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut owners: Vec<DataOwner> = Vec::new();
    let mut before = None;
    for piece in cuts.windows(2) {
        let over: Vec<&StreamSummary> =
            summaries().filter(|stream| stream.start_bytes <= piece[0] && stream.end_bytes >= piece[1]).collect();
        let Some(group) = over.iter().map(|stream| stream.group).max() else {
            continue;
        };
        let here: Vec<&StreamSummary> = over.into_iter().filter(|stream| stream.group == group).collect();
        let least = here.iter().map(|stream| stream.max_request_bytes).max().unwrap_or(0);
        let name = here.iter().map(|stream| stream.name.as_str()).collect::<Vec<_>>().join("+");
        let known = owners.iter().position(|owner| owner.name == name);
        let index = match (known, before) {
            (None, Some(before)) if piece[1] - piece[0] < least => before,
            (Some(known), _) => known,
            (None, _) => {
                owners.push(DataOwner { name, extents: Vec::new(), placement: None });
                owners.len() - 1
            }
        };
        owners[index].extents.push((piece[0], piece[1]));
        before = Some(index);
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and extents of the owners of a job file on a drive of 1 MiB.
    fn owners(jobs: &str) -> Vec<(String, Vec<(u64, u64)>)> {
        let file = workload::fio::parse(jobs, "test.fio").expect("a job file");
        let target = WorkloadTarget { device_bytes: 1 << 20, placement_count: 4, endless: true, scaled_model: None };
        let planned = plan_streams(&file, &target).expect("it fits");
        let owners = owners_of_jobs(&planned).into_iter();
        owners.map(|owner| (owner.name, owner.extents)).collect()
    }

    #[test]
    fn the_last_group_owns_its_regions_and_jobs_in_one_region_are_one_owner() {
        let jobs = "[global]\nbs=4k\nrw=write\n[fill]\noffset=0\nsize=1m\n\
                    [a]\nstonewall\noffset=0\nsize=512k\n[b]\noffset=256k\nsize=512k\n";
        let kib = |from: u64, to: u64| vec![(from << 10, to << 10)];
        let expected = [("a", kib(0, 256)), ("a+b", kib(256, 512)), ("b", kib(512, 768)), ("fill", kib(768, 1024))];
        assert_eq!(owners(jobs), expected.map(|(name, extents)| (name.to_string(), extents)));
    }

    #[test]
    fn what_is_left_over_between_regions_has_no_name_of_its_own() {
        let jobs = "[global]\nrw=write\n[fill]\nbs=64k\noffset=0\nsize=1m\n\
                    [a]\nstonewall\nbs=4k\noffset=0\nsize=500k\n[b]\nbs=4k\noffset=512k\nsize=512k\n";
        let names: Vec<String> = owners(jobs).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
