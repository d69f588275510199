//! Lifetimes of a workload's data, and the distance between the lifetimes of two workloads.
//!
//! ```text
//! Setup -> RunPlan -> RequestSource -> LifetimeObserver -> MeasuredLifetimes -> table, columns, JSON
//! ```
//!
//! The workload runs without a device, because lifetimes are its own property. On a scaled model,
//! bytes are those of the full drive.

use serde_json::{Value as Json, json};
use workload::RequestOperation;
use workload::lifetimes::{LifetimeObserver, SurvivalCurve};

use experiment::{Experiment, LabError, RunChange, RunOptions, RunOverrides, Scale, ScaleChoice, SettingOverrides};
use simulate::run::{ProgressObserver, RunPlan, RunProgress, UNWRITTEN_REQUESTS_MAX};

/// Version of the JSON. It increases when a key is removed or changes its meaning.
const VERSION: u32 = 1;
/// Requests per batch.
const BATCH: usize = 4096;
/// Shares of the written data whose lifetimes are printed.
pub const SHARES: [f64; 4] = [0.1, 0.25, 0.5, 0.9];

/// Layout of workloads, and length of the measurement.
#[derive(Clone, Debug)]
pub struct Setup {
    pub device: String,
    /// Capacity of the drive. With this field the drive is not scaled.
    pub capacity_bytes: Option<u64>,
    pub scale: Scale,
    /// Settings of the device by dotted path. Settings of the workload begin with `workload.`.
    pub overrides: SettingOverrides,
    /// Full drive writes after which an endless workload is stopped.
    pub drive_writes: f64,
}

pub const DEVICE: &str = "warp_default";
/// Default scale, for [`DEVICE`].
pub const SCALE: &str = "1/64";
/// Default length, full drive writes.
pub const WRITE_CAPACITIES: f64 = 4.0;

impl Setup {
    /// Measures a workload until it ends, has written enough, or is stopped.
    ///
    /// # Errors
    /// The workload or device is unknown, they do not fit, or the workload cannot be read or has no
    /// writes.
    pub fn measure(&self, workload: &str, progress: &RunProgress) -> Result<MeasuredLifetimes, LabError> {
        let selection = RunOverrides {
            change: RunChange::from_settings(&self.overrides),
            capacity_bytes: self.capacity_bytes,
            run: RunOptions {
                scale: self.capacity_bytes.is_none().then_some(ScaleChoice::Fixed(self.scale)),
                drive_writes: Some(self.drive_writes),
                timed: Some(false),
                ..RunOptions::default()
            },
            ..RunOverrides::default()
        };
        let experiment = Experiment::from_workload(workload, &self.device);
        let plans = simulate::run::prepare(experiment.select(&selection)?.cells)?;
        measure(workload, &plans[0], self.drive_writes, progress)
    }
}

#[derive(Clone, Debug)]
pub struct MeasuredLifetimes {
    pub name: String,
    /// Lifetimes of all streams together.
    pub all: SurvivalCurve,
    pub streams: Vec<(String, SurvivalCurve)>,
    /// Bytes of the drive per byte of the scaled model.
    denominator: u64,
}

impl MeasuredLifetimes {
    /// The whole workload without a name, and, if it has several streams, each stream with its
    /// name.
    pub fn parts(&self) -> impl Iterator<Item = (Option<&str>, &SurvivalCurve)> {
        let streams = self.streams.iter().filter(|_| self.streams.len() > 1);
        let streams = streams.map(|(name, survival)| (Some(name.as_str()), survival));
        [(None, &self.all)].into_iter().chain(streams)
    }

    /// Converts bytes of the scaled model to bytes of the drive.
    pub fn on_drive(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.denominator)
    }

    /// Bytes of the drive within which this share of a part ends. `None` if the run did not reach
    /// the share.
    pub fn quantile(&self, survival: &SurvivalCurve, share: f64) -> Option<u64> {
        survival.quantile(share).map(|bytes| self.on_drive(bytes))
    }
}

/// Measures the workload of a plan, as [`Setup::measure`].
fn measure(
    name: &str,
    plan: &RunPlan,
    drive_writes: f64,
    progress: &RunProgress,
) -> Result<MeasuredLifetimes, LabError> {
    let mut source = plan.source()?;
    let names = source.streams();
    let target = plan.target();
    let limit = (target.capacity_bytes() as f64 * drive_writes) as u64;
    let mut observer = LifetimeObserver::new(target, names.len());
    let mut requests = Vec::with_capacity(BATCH);
    let mut without_write = 0;
    while observer.written_bytes() < limit && without_write < UNWRITTEN_REQUESTS_MAX && !progress.should_stop() {
        requests.clear();
        if source.next_batch(&mut requests, BATCH)? == 0 {
            break;
        }
        let writes = requests.iter().any(|request| request.operation == RequestOperation::Write);
        without_write = if writes { 0 } else { without_write + requests.len() };
        for request in &requests {
            observer.observe(request);
        }
    }
    if observer.written_bytes() == 0 && !progress.should_stop() {
        return Err(LabError::invalid(name, "the workload writes nothing, so its data has no lifetimes"));
    }
    let (all, streams) = observer.finish();
    let streams = names.into_iter().zip(streams);
    Ok(MeasuredLifetimes {
        name: name.to_string(),
        all,
        streams: streams.filter(|(_, survival)| survival.written_bytes() > 0).collect(),
        denominator: target.denominator(),
    })
}

/// The Kolmogorov-Smirnov distance of two workloads, and its position in bytes.
///
/// # Errors
/// The workloads were measured at different scales, or in units of different sizes.
pub fn distance(a: &MeasuredLifetimes, b: &MeasuredLifetimes) -> Result<(f64, u64), LabError> {
    if (a.denominator, a.all.unit_bytes()) != (b.denominator, b.all.unit_bytes()) {
        let problem = format!(
            "the lifetimes are those of another scale, or of other mapping units, than those of {}. Give both the \
             same device and scale",
            a.name
        );
        return Err(LabError::invalid(&b.name, problem));
    }
    let (distance, at) = a.all.distance(&b.all);
    Ok((distance, a.on_drive(at)))
}

/// The lifetimes as JSON on one line.
pub fn to_json(measured: &[MeasuredLifetimes]) -> Result<Json, LabError> {
    let of = |workload: &MeasuredLifetimes, survival: &SurvivalCurve| {
        let quantiles = SHARES.map(|share| json!({ "share": share, "bytes": workload.quantile(survival, share) }));
        json!({
            "written_bytes": workload.on_drive(survival.written_bytes()),
            "end_within": quantiles,
            "there_at_the_end": survival.open_share(),
        })
    };
    let workloads = measured.iter().map(|workload| {
        let streams = workload.streams.iter();
        let streams = streams.map(|(name, survival)| json!({ "name": name, "lifetimes": of(workload, survival) }));
        json!({
            "name": workload.name,
            "lifetimes": of(workload, &workload.all),
            "streams": streams.collect::<Vec<_>>(),
        })
    });
    let mut json = json!({
        "format": "warp-lifetimes",
        "version": VERSION,
        "workloads": workloads.collect::<Vec<_>>(),
    });
    if let [a, b] = measured {
        let (distance, at) = distance(a, b)?;
        json["kolmogorov_smirnov"] = json!({ "distance": distance, "at_bytes": at });
    }
    Ok(json)
}
