//! Tenants, which share one drive. Each tenant has a workload and a part of the logical blocks, of
//! the placement indices and of the bandwidth.
//!
//! ```text
//! workload of a tenant -> offsets moved, placement indices mapped
//!   -> merged by bytes (stride scheduling) -> requests
//! ```
//!
//! A tenant sees a drive of its own with its share of the capacity and its placement indices.
//! Tenants issue bytes in fixed proportions. A tenant that ends leaves its share to the rest. The
//! module has no clock, so a rate is a proportion.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::source::OwnedRange;
use crate::{
    IoRequest, PlacementIndex, RequestSource, Workload, WorkloadError, WorkloadMeasure, WorkloadTarget, deserialize,
};

/// Requests per batch of a tenant.
const RUN_LENGTH: usize = 64;

/// All tenants with their workloads, in the order of their logical blocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TenantWorkloads<W> {
    tenants: Vec<Tenant<W>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Tenant<W> {
    name: String,
    /// As in [`TenantSettings`].
    share_percent: f64,
    rate: f64,
    placement_indices: Vec<PlacementIndex>,
    workload: W,
}

/// A tenant, as written in the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantSettings {
    /// Share of the logical capacity, percent.
    share_percent: f64,
    /// Bytes issued in proportion to the other tenants. 0 issues no requests.
    #[serde(default = "one")]
    rate: f64,
    /// Placement indices of the namespace that the tenant may use. The first is its default. With
    /// an empty list, writes carry no directive.
    #[serde(default)]
    placement_indices: Vec<PlacementIndex>,
    workload: Table,
}

fn one() -> f64 {
    1.0
}

/// Reads the workload of a tenant from its table. The first argument is the table's name in
/// messages.
pub type ReadWorkload<'a, W> = &'a dyn Fn(&str, &Table) -> Result<W, WorkloadError>;

impl<W: Workload> TenantWorkloads<W> {
    /// Reads the settings from a table `tenants`, keyed by name, in the order on the drive.
    ///
    /// # Errors
    /// Fails if a setting is unknown or impossible.
    pub fn parse(place: &str, table: &Table, read: ReadWorkload<'_, W>) -> Result<TenantWorkloads<W>, WorkloadError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Tenants {
            tenants: Table,
        }
        let Tenants { tenants } = deserialize(place, Value::Table(table.clone()))?;
        let mut checked: Vec<Tenant<W>> = Vec::new();
        for (name, value) in tenants {
            let place = format!("{place}.tenants.{name}");
            let settings: TenantSettings = deserialize(&place, value)?;
            settings.check(&place)?;
            let workload = read(&format!("{place}.workload"), &settings.workload)?;
            checked.push(Tenant {
                name,
                share_percent: settings.share_percent,
                rate: settings.rate,
                placement_indices: settings.placement_indices,
                workload,
            });
        }
        let percent: f64 = checked.iter().map(|tenant| tenant.share_percent).sum();
        if checked.is_empty() || percent > 100.0 + 1e-9 {
            let problem = format!(
                "use {percent} % of the capacity in total. Define at least one tenant, and give all of them \
                         at most 100 %"
            );
            return Err(WorkloadError::setting(format!("{place}.tenants"), problem));
        }
        Ok(TenantWorkloads { tenants: checked })
    }

    /// Files that the workloads read when they run.
    pub fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let files = self.tenants.iter_mut().map(|tenant| tenant.workload.files_mut());
        files.flatten().collect()
    }

    /// Maximum memory of the sources of all tenants, bytes.
    ///
    /// # Errors
    /// Fails if a tenant's workload does not fit its share.
    pub fn memory_bytes(&self, target: &WorkloadTarget) -> Result<u64, WorkloadError> {
        let (mut bytes, mut percent) = (0_u64, 0.0);
        for tenant in &self.tenants {
            let from = percent;
            percent += tenant.share_percent;
            let (part, _) = target.part(from, percent);
            bytes = bytes.saturating_add(tenant.workload.memory_bytes(&part)?);
        }
        Ok(bytes)
    }

    /// Builds the source of all tenants' requests on a drive.
    ///
    /// # Errors
    /// Fails if a tenant's workload does not fit its share or a placement index does not exist.
    pub fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<Tenants, WorkloadError> {
        let mut tenants = Vec::new();
        let (mut percent, mut streams) = (0.0, 0_u16);
        for (index, tenant) in self.tenants.iter().enumerate() {
            let from = percent;
            percent += tenant.share_percent;
            let running = tenant.run(target, (from, percent), streams, seed.wrapping_add(index as u64))?;
            let more = u16::try_from(running.stream_names.len()).ok();
            streams = more.and_then(|more| streams.checked_add(more)).ok_or_else(|| {
                let problem = "have more than 65535 streams in total. Use fewer jobs or tenants";
                WorkloadError::setting("tenants", problem)
            })?;
            let before = tenants.last().map_or(0, |before: &ActiveTenant| before.range.end);
            assert!(
                before <= running.range.start,
                "tenant {} begins at {}, and the one before ends at {before}",
                running.name,
                running.range.start
            );
            tenants.push(running);
        }
        Ok(Tenants { tenants })
    }
}

/// Rejects a percentage that is not a share of a drive. `place` is the table's name in messages.
///
/// # Errors
/// Fails if `share_percent` is not above 0 and at most 100.
pub fn check_share(place: &str, share_percent: f64) -> Result<(), WorkloadError> {
    if share_percent > 0.0 && share_percent <= 100.0 {
        return Ok(());
    }
    let setting = format!("{place}.share_percent = {share_percent}");
    Err(WorkloadError::setting(setting, "must be above 0 and at most 100"))
}

impl TenantSettings {
    fn check(&self, place: &str) -> Result<(), WorkloadError> {
        check_share(place, self.share_percent)?;
        if !(self.rate >= 0.0 && self.rate.is_finite()) {
            let setting = format!("{place}.rate = {}", self.rate);
            return Err(WorkloadError::setting(setting, "must be 0 or more"));
        }
        Ok(())
    }
}

impl<W: Workload> Tenant<W> {
    /// Starts the tenant's workload on a part of the drive.
    fn run(
        &self,
        target: &WorkloadTarget,
        (from_percent, to_percent): (f64, f64),
        first_stream: u16,
        seed: u64,
    ) -> Result<ActiveTenant, WorkloadError> {
        let (part, range) = target.part(from_percent, to_percent);
        let placement_indices = &self.placement_indices;
        if let Some(index) = placement_indices.iter().find(|index| index.0 >= target.placement_count)
            && target.placement_count > 0
        {
            let setting = format!("placement index {index} of tenant {}", self.name);
            let problem = format!(
                "does not exist. Use placement indices from 0 to {}, which the namespace has",
                target.placement_count - 1
            );
            return Err(WorkloadError::setting(setting, problem));
        }
        let has_placement = target.placement_count > 0 && !placement_indices.is_empty();
        let own =
            WorkloadTarget { placement_count: if has_placement { placement_indices.len() as u16 } else { 0 }, ..part };
        if self.workload.is_paced() {
            let setting = format!("workload.pace of tenant {}", self.name);
            let problem = "is not supported, because only a cache that has the drive for itself has a pace. Set the \
                           tenant's rate instead";
            return Err(WorkloadError::setting(setting, problem));
        }
        let source = self.workload.source(&own, seed)?;
        let prefixed = |name: &String| format!("{}/{name}", self.name);
        Ok(ActiveTenant {
            name: self.name.clone(),
            stream_names: source.streams().iter().map(prefixed).collect(),
            source,
            ready: Vec::new(),
            first_stream,
            range,
            placement_indices: if has_placement { placement_indices.clone() } else { Vec::new() },
            rate: self.rate,
            issued_bytes: 0,
            written_bytes: 0,
            has_ended: self.rate == 0.0,
        })
    }
}

struct ActiveTenant {
    name: String,
    stream_names: Vec<String>,
    source: Box<dyn RequestSource>,
    /// Requests produced and not yet issued, next one last.
    ready: Vec<IoRequest>,
    /// Number of the tenant's first stream among all streams.
    first_stream: u16,
    /// Byte range of the tenant on the drive.
    range: std::ops::Range<u64>,
    placement_indices: Vec<PlacementIndex>,
    rate: f64,
    issued_bytes: u64,
    written_bytes: u64,
    has_ended: bool,
}

impl ActiveTenant {
    /// Progress of the tenant, as the time in which its rate issues the bytes issued so far.
    fn time(&self) -> f64 {
        self.issued_bytes as f64 / self.rate
    }

    fn next(&mut self) -> Result<Option<IoRequest>, WorkloadError> {
        if self.ready.is_empty() {
            self.source.next_batch(&mut self.ready, RUN_LENGTH)?;
            assert!(
                self.ready.len() <= RUN_LENGTH,
                "tenant {} gives {} requests, at most {RUN_LENGTH} are wanted",
                self.name,
                self.ready.len()
            );
            self.ready.reverse();
        }
        let Some(mut request) = self.ready.pop() else {
            self.has_ended = true;
            return Ok(None);
        };
        request.offset_bytes += self.range.start;
        assert!(
            request.offset_bytes + u64::from(request.bytes) <= self.range.end,
            "the workload of tenant {} leaves its part of the drive",
            self.name
        );
        request.stream += self.first_stream;
        self.issued_bytes += u64::from(request.bytes);
        if request.operation == crate::RequestOperation::Write {
            self.written_bytes += u64::from(request.bytes);
            let index = request.placement.unwrap_or(PlacementIndex::FIRST).index();
            request.placement = self.placement_indices.get(index).copied();
        }
        Ok(Some(request))
    }
}

/// The requests of all tenants.
pub struct Tenants {
    tenants: Vec<ActiveTenant>,
}

impl RequestSource for Tenants {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        let before = requests.len();
        while requests.len() < before + limit {
            let running = self.tenants.iter_mut().filter(|tenant| !tenant.has_ended);
            let Some(furthest_behind) = running.min_by(|one, other| one.time().total_cmp(&other.time())) else {
                break;
            };
            requests.extend(furthest_behind.next()?);
        }
        Ok(requests.len() - before)
    }

    fn streams(&self) -> Vec<String> {
        self.tenants.iter().flat_map(|tenant| tenant.stream_names.clone()).collect()
    }

    fn share_done(&self) -> Option<f64> {
        let share = |tenant: &ActiveTenant| {
            if tenant.has_ended { Some(1.0) } else { tenant.source.share_done() }
        };
        let shares: Option<Vec<f64>> = self.tenants.iter().map(share).collect();
        shares.map(|shares| shares.iter().sum::<f64>() / shares.len() as f64)
    }

    fn ranges(&self) -> Vec<OwnedRange> {
        let range = |tenant: &ActiveTenant| OwnedRange {
            name: tenant.name.clone(),
            start_bytes: tenant.range.start,
            end_bytes: tenant.range.end,
        };
        self.tenants.iter().map(range).collect()
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        let all: u64 = self.tenants.iter().map(|tenant| tenant.written_bytes).sum();
        let of = |tenant: &ActiveTenant| {
            let name = |part: &str| format!("{}.{part}", tenant.name);
            let mut measures = vec![
                WorkloadMeasure::new(name("bytes_written"), tenant.written_bytes as f64),
                WorkloadMeasure::new(name("write_share"), tenant.written_bytes as f64 / all.max(1) as f64),
            ];
            let own = tenant.source.measures().into_iter();
            measures.extend(own.map(|measure| WorkloadMeasure::new(name(&measure.name), measure.value)));
            measures
        };
        self.tenants.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestOperation, fio};

    const GIB: u64 = 1 << 30;

    fn tenants(text: &str, target: &WorkloadTarget) -> Result<Tenants, WorkloadError> {
        let read = |_: &str, table: &Table| {
            let name = table["file"].as_str().expect("a name");
            let text = match name {
                "random" => "[a]\nrw=randwrite\nbs=4k\n",
                "sequential" => "[b]\nrw=write\nbs=64k\nfdp=1\ndataplacement=fdp\nplids=1\n",
                other => panic!("{other}"),
            };
            Ok(fio::parse(text, name)?)
        };
        let table: Table = toml::from_str(text).expect("TOML");
        TenantWorkloads::parse("workload", &table, &read)?.source(target, 1)
    }

    const TWO: &str = r#"
        [tenants.one]
        share_percent = 25
        rate = 3
        placement_indices = [2]
        workload = { file = "random" }

        [tenants.other]
        share_percent = 75
        placement_indices = [0, 3]
        workload = { file = "sequential" }
    "#;

    fn target() -> WorkloadTarget {
        WorkloadTarget { device_bytes: 4 * GIB, placement_count: 8, endless: true, scaled_model: None }
    }

    #[test]
    fn each_has_its_blocks_its_placements_and_its_share() {
        let mut source = tenants(TWO, &target()).expect("two tenants");
        let mut requests = Vec::new();
        for batch in [1, 7, 100, 9892] {
            source.next_batch(&mut requests, batch).expect("requests");
        }
        let mut bytes = [0_u64; 2];
        for request in &requests {
            assert_eq!(request.operation, RequestOperation::Write);
            let end = request.offset_bytes + u64::from(request.bytes);
            match request.stream {
                0 => assert!(end <= GIB && request.placement == Some(PlacementIndex(2)), "{request:?}"),
                _ => {
                    assert!(request.offset_bytes >= GIB && request.placement == Some(PlacementIndex(3)), "{request:?}")
                }
            }
            bytes[usize::from(request.stream)] += u64::from(request.bytes);
        }
        assert!(bytes[0].abs_diff(3 * bytes[1]) <= 3 * 65536, "{bytes:?}");
        assert_eq!(source.streams(), ["one/a", "other/b"]);
        let share = source.measures()[1].clone();
        assert_eq!(share.name, "one.write_share");
        assert!((share.value - 0.75).abs() < 0.01, "{share:?}");
        assert_eq!(source.ranges()[1].start_bytes, GIB);
    }

    #[test]
    fn batches_do_not_matter() {
        let take = |batch: usize| {
            let mut source = tenants(TWO, &target()).expect("two tenants");
            let mut requests = Vec::new();
            while requests.len() < 5000 {
                let wanted = batch.min(5000 - requests.len());
                source.next_batch(&mut requests, wanted).expect("requests");
            }
            requests
        };
        assert!(take(1) == take(5000));
    }

    #[test]
    fn a_drive_without_placement_gets_none() {
        let target = WorkloadTarget { placement_count: 0, ..target() };
        let mut requests = Vec::new();
        tenants(TWO, &target).expect("two tenants").next_batch(&mut requests, 100).expect("requests");
        assert!(requests.iter().all(|request| request.placement.is_none()));
    }

    #[test]
    fn mistakes_name_the_tenant() {
        for (change, message) in [
            (("share_percent = 75", "share_percent = 76"), "workload.tenants use 101 % of the capacity in total"),
            (("rate = 3", "rate = -1"), "workload.tenants.one.rate = -1 must be 0 or more"),
            (
                ("[0, 3]", "[0, 9]"),
                "placement index 9 of tenant other does not exist. Use placement indices from 0 to 7, which the \
                 namespace has",
            ),
            (("rate = 3", "rat = 3"), "workload.tenants.one.rat: unknown field"),
            (
                ("placement_indices = [2]", "placement_ids = [2]"),
                "workload.tenants.one.placement_ids: unknown field `placement_ids` (did you mean placement_indices?), expected one of \
                 `share_percent`, `rate`, `placement_indices`",
            ),
        ] {
            let text = TWO.replace(change.0, change.1);
            let error = tenants(&text, &target()).err().expect("a mistake").to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
