//! One-line descriptions of the streams of a job file.

use serde::Serialize;

use super::{AddressPlan, Job, JobOperations, JobPlan, PlacementPlan};
use crate::{PlacementIndex, RequestOperation};

/// Description of one stream of a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamSummary {
    /// Number of the stream, as in [`IoRequest::stream`](crate::IoRequest::stream).
    pub stream: u16,
    /// Number of the stream's group. Groups run one after another.
    pub group: u16,
    /// Job name. Further instances of `numjobs` carry their number.
    pub name: String,
    /// `rw`
    pub rw: &'static str,
    /// Smallest request, bytes.
    pub min_request_bytes: u64,
    /// Largest request, bytes.
    pub max_request_bytes: u64,
    /// First byte of the region.
    pub start_bytes: u64,
    /// First byte after the region.
    pub end_bytes: u64,
    /// Distribution of the addresses.
    pub addresses: String,
    /// Share of the group's bytes while the whole group runs, percent. None in virtual time, where
    /// the drive decides.
    pub share_percent: Option<f64>,
    /// Description of the placement of writes.
    pub placement: String,
    /// Possible placements of the writes, distinct and ascending. `None` stands for no directive.
    /// Empty for a stream without writes.
    pub placements: Vec<Option<PlacementIndex>>,
}

impl StreamSummary {
    pub(super) fn new(job: &Job, instance: u32, stream: u16, group: u16, plan: &JobPlan) -> Self {
        assert!(
            plan.start_bytes + plan.region_bytes <= plan.device_bytes,
            "a region of {} bytes at {} exceeds a drive of {}",
            plan.region_bytes,
            plan.start_bytes,
            plan.device_bytes
        );
        let operations = plan.access.operations.iter();
        let blocks = operations.map(|operation| &plan.blocks[operation as usize]);
        Self {
            stream,
            group,
            name: if job.numjobs == 1 { job.name.clone() } else { format!("{}.{instance}", job.name) },
            rw: plan.access.name,
            min_request_bytes: blocks.clone().map(|block| block.min_bytes).min().expect("a job has an operation"),
            max_request_bytes: blocks.map(|block| block.max_bytes).max().expect("a job has an operation"),
            start_bytes: plan.start_bytes,
            end_bytes: plan.start_bytes + plan.region_bytes,
            addresses: describe_addresses(plan) + &describe_read_back(plan),
            share_percent: None,
            placement: describe_placement(plan),
            placements: placements(plan),
        }
    }
}

fn describe_addresses(plan: &JobPlan) -> String {
    use super::SkewKind::{Normal, Pareto, Zipf};
    let written = match plan.access.operations {
        JobOperations::Only(operation) => operation,
        JobOperations::ReadWrite | JobOperations::TrimWrite => RequestOperation::Write,
    };
    match &plan.addresses {
        AddressPlan::Sequential => "sequential".to_owned(),
        AddressPlan::Uniform { map: true } => "uniform, each block once per pass".to_owned(),
        AddressPlan::Uniform { map: false } => "uniform".to_owned(),
        AddressPlan::Skewed { kind: Zipf(theta), .. } => format!("zipf:{theta}"),
        AddressPlan::Skewed { kind: Pareto(h), .. } => format!("pareto:{h}"),
        AddressPlan::Skewed { kind: Normal(deviation), .. } => format!("normal:{deviation}"),
        AddressPlan::Sequence { blocks, .. } => format!("a sequence of {} blocks", blocks.len()),
        AddressPlan::Zoned(zones) | AddressPlan::ZonedAbsolute(zones) => {
            if zones[written as usize].is_empty() {
                return "uniform".to_owned();
            }
            let zones = zones[written as usize].iter().map(|zone| format!("{}/{}", zone.access_percent, zone.size));
            let name = if matches!(plan.addresses, AddressPlan::Zoned(_)) { "zoned" } else { "zoned_abs" };
            format!("{name}:{}", zones.collect::<Vec<_>>().join(":"))
        }
    }
}

fn describe_read_back(plan: &JobPlan) -> String {
    match plan.read_back {
        None => String::new(),
        Some(back) => match back.backlog {
            None => ", read back after each pass".to_owned(),
            Some((every, _)) => format!(", read back after each {every} writes"),
        },
    }
}

fn describe_placement(plan: &JobPlan) -> String {
    let list = |indices: &[PlacementIndex]| indices.iter().map(PlacementIndex::to_string).collect::<Vec<_>>().join(",");
    match &plan.placement {
        PlacementPlan::None => "none".to_owned(),
        PlacementPlan::RoundRobin(indices) if indices.len() == 1 => list(indices),
        PlacementPlan::RoundRobin(indices) => format!("{} in turn", list(indices)),
        PlacementPlan::Random(indices) => format!("{} at random", list(indices)),
        PlacementPlan::Scheme(entries) => format!("by {} address ranges", entries.len()),
    }
}

fn placements(plan: &JobPlan) -> Vec<Option<PlacementIndex>> {
    let mut placements: Vec<Option<PlacementIndex>> = match &plan.placement {
        _ if !plan.writes() => Vec::new(),
        PlacementPlan::None => vec![None],
        PlacementPlan::RoundRobin(indices) | PlacementPlan::Random(indices) => {
            indices.iter().copied().map(Some).collect()
        }
        PlacementPlan::Scheme(entries) => entries.iter().map(|entry| Some(entry.index)).collect(),
    };
    placements.sort_unstable();
    placements.dedup();
    placements
}
