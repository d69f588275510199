//! Metrics: names of the numbers of a result in experiments, claims and tables.
//!
//! `docs/reference/experiments.md` describes their TOML form. A metric is `None` if its event did
//! not occur, or if it needs timing that the device lacks.

use serde::{Deserialize, Serialize};
use workload::RequestOperation;

/// A number from a result. Capacities are the device's logical capacity.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Media bytes / host bytes over the whole run.
    #[default]
    WriteAmplification,
    /// Write amplification at the end of the run (`run.tail_drive_writes`).
    TailWriteAmplification,
    /// Write amplification of the last writes of the run, which are this many capacities.
    LastWriteAmplification(f64),
    /// (host + copied) / host of one handle.
    HandleWriteAmplification(u16),
    /// Host bytes of one handle, in capacities.
    HandleHostCapacities(u16),
    /// Bytes copied out of one handle's reclaim units, in capacities.
    HandleCopiedCapacities(u16),
    /// Bytes copied out of the shared pool, in capacities.
    SharedCopiedCapacities,
    /// Maximum / mean erase count of blocks.
    EraseImbalance,
    /// Maximum - minimum erase count of blocks.
    EraseSpread,
    /// A statistic of the latencies, microseconds.
    LatencyUs(LatencyMetric),
    Iops(RateWindow),
    /// Bandwidth, 10^6 bytes per second.
    BandwidthMbS(RateWindow),
    /// Standard deviation / mean of the bandwidth over time.
    BandwidthVariation(RateWindow),
    /// Share of the requests that waited for garbage collection, 0 to 1.
    GcWaitShare(RequestFilter),
    /// Mean wait of the requests that waited, microseconds. 0 if none did.
    GcWaitUs(RequestFilter),
    /// Named measure of the workload, or of the device for a tenant (`hit_ratio`,
    /// `cache.write_amplification`).
    Measure(String),
    /// Named measure of bytes written, converted to bytes of flash by the write amplification at
    /// the end of the run (`written_bytes_per_page`: bytes of flash per page).
    MeasureOnFlash(String),
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RequestFilter {
    /// Section of the job file. Default: all jobs of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// `read`, `write` or `trim`. Default: all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<RequestOperation>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyMetric {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<RequestOperation>,
    /// Statistic. Omitted if a list of published numbers or a claim about it supplies the
    /// statistic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistic: Option<LatencyStatistic>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateWindow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<RequestOperation>,
    /// Start as a share of the job's measured time, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<f64>,
    /// End as a share of the job's measured time, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum LatencyStatistic {
    Mean,
    Stdev,
    Min,
    Max,
    /// `p99.9`: value that this percentage of the requests does not exceed.
    Percentile(f64),
}

impl TryFrom<String> for LatencyStatistic {
    type Error = String;

    fn try_from(text: String) -> Result<LatencyStatistic, String> {
        let percentile = |text: &str| text.strip_prefix('p')?.parse::<f64>().ok();
        match text.as_str() {
            "mean" => Ok(LatencyStatistic::Mean),
            "stdev" => Ok(LatencyStatistic::Stdev),
            "min" => Ok(LatencyStatistic::Min),
            "max" => Ok(LatencyStatistic::Max),
            other => match percentile(other) {
                Some(percent) if percent > 0.0 && percent <= 100.0 => Ok(LatencyStatistic::Percentile(percent)),
                _ => Err(format!(
                    "statistic {other:?} is unknown. Use mean, stdev, min, max, or a percentile such as p99.9"
                )),
            },
        }
    }
}

impl From<LatencyStatistic> for String {
    fn from(statistic: LatencyStatistic) -> String {
        match statistic {
            LatencyStatistic::Mean => "mean".to_string(),
            LatencyStatistic::Stdev => "stdev".to_string(),
            LatencyStatistic::Min => "min".to_string(),
            LatencyStatistic::Max => "max".to_string(),
            LatencyStatistic::Percentile(percent) => format!("p{percent}"),
        }
    }
}

impl Metric {
    pub fn name(&self) -> String {
        match self {
            Metric::WriteAmplification => "WAF".to_string(),
            Metric::TailWriteAmplification => "WAF at the end".to_string(),
            Metric::LastWriteAmplification(capacities) => format!("WAF of the last {capacities} x capacity"),
            Metric::HandleWriteAmplification(handle) => format!("WAF of RUH {handle}"),
            Metric::HandleHostCapacities(handle) => format!("host x capacity of RUH {handle}"),
            Metric::HandleCopiedCapacities(handle) => format!("copied x capacity of RUH {handle}"),
            Metric::SharedCopiedCapacities => "copied x capacity of shared".to_string(),
            Metric::EraseImbalance => "most / mean erase count".to_string(),
            Metric::EraseSpread => "most - fewest erases".to_string(),
            Metric::LatencyUs(of) => {
                let statistic = of.statistic.map_or_else(|| "all".to_string(), String::from);
                format!("latency {statistic}, us{}", describe_filter(of.job.as_ref(), of.direction))
            }
            Metric::Iops(of) => format!("IOPS{}", of.name()),
            Metric::BandwidthMbS(of) => format!("MB/s{}", of.name()),
            Metric::BandwidthVariation(of) => format!("variation of MB/s{}", of.name()),
            Metric::GcWaitShare(of) => {
                format!("waited for GC, share{}", describe_filter(of.job.as_ref(), of.direction))
            }
            Metric::GcWaitUs(of) => format!("wait for GC, us{}", describe_filter(of.job.as_ref(), of.direction)),
            Metric::Measure(name) => name.replace('_', " "),
            Metric::MeasureOnFlash(name) => format!("{} on flash", name.replace('_', " ")),
        }
    }

    /// Column of the table of cells with this metric, if any.
    pub fn column(&self) -> Option<&str> {
        match self {
            Metric::WriteAmplification => Some("write_amplification"),
            Metric::TailWriteAmplification => Some("tail_write_amplification"),
            Metric::Measure(name) => Some(name),
            _ => None,
        }
    }

    pub fn is_write_amplification(&self) -> bool {
        use Metric::{HandleWriteAmplification, LastWriteAmplification, TailWriteAmplification, WriteAmplification};
        matches!(
            self,
            WriteAmplification | TailWriteAmplification | LastWriteAmplification(_) | HandleWriteAmplification(_)
        )
    }

    /// Returns true if errors are stated in percent, because values are large or diverse.
    pub fn is_relative(&self) -> bool {
        matches!(self, Metric::LatencyUs(_) | Metric::Iops(_) | Metric::BandwidthMbS(_) | Metric::MeasureOnFlash(_))
    }

    /// Returns the latency metric with this statistic, or another metric unchanged.
    pub fn with_statistic(&self, statistic: Option<LatencyStatistic>) -> Metric {
        match self {
            Metric::LatencyUs(of) => {
                Metric::LatencyUs(LatencyMetric { statistic: statistic.or(of.statistic), ..of.clone() })
            }
            other => other.clone(),
        }
    }

    /// Returns true if `other` is the same metric. A latency without statistic covers all its
    /// statistics.
    pub fn covers(&self, other: &Metric) -> bool {
        match (self, other) {
            (Metric::LatencyUs(one), Metric::LatencyUs(other)) if one.statistic.is_none() => {
                (&one.job, one.direction) == (&other.job, other.direction)
            }
            _ => self == other,
        }
    }

    /// Rejects a metric without a number.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Metric::LatencyUs(of) if of.statistic.is_none() => {
                Err("latency_us needs a statistic, such as p99.9".to_string())
            }
            Metric::Iops(of) | Metric::BandwidthMbS(of) | Metric::BandwidthVariation(of) => of.check(),
            Metric::LastWriteAmplification(capacities) if capacities.is_nan() || *capacities <= 0.0 => Err(format!(
                "last_write_amplification = {capacities} is out of range. Give a number of capacities above 0"
            )),
            _ => Ok(()),
        }
    }
}

fn describe_filter(job: Option<&String>, direction: Option<RequestOperation>) -> String {
    let job = job.map(|job| format!(" of {job}")).unwrap_or_default();
    let direction = direction.map_or("", |direction| match direction {
        RequestOperation::Read => ", reads",
        RequestOperation::Write => ", writes",
        RequestOperation::Trim => ", trims",
    });
    job + direction
}

impl RateWindow {
    fn name(&self) -> String {
        let whose = describe_filter(self.job.as_ref(), self.direction);
        if self.from.is_none() && self.to.is_none() {
            return whose;
        }
        let (from, to) = self.window();
        format!("{whose}, {:.0} % to {:.0} % of its time", from * 100.0, to * 100.0)
    }

    pub fn window(&self) -> (f64, f64) {
        (self.from.unwrap_or(0.0), self.to.unwrap_or(1.0))
    }

    fn check(&self) -> Result<(), String> {
        let (from, to) = self.window();
        if (0.0..=1.0).contains(&from) && (0.0..=1.0).contains(&to) && from < to {
            return Ok(());
        }
        Err(format!(
            "from = {from} and to = {to} are not a window. Both must be between 0 and 1, and from the smaller one"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Holder {
        metric: Metric,
    }

    fn metric(text: &str) -> Result<Metric, String> {
        let holder: Result<Holder, _> = toml::from_str(&format!("metric = {text}"));
        holder.map(|holder| holder.metric).map_err(|error| error.to_string())
    }

    #[test]
    fn the_documented_forms_are_read() {
        let latency = metric(r#"{ latency_us = { job = "reader", direction = "read", statistic = "p99.9" } }"#);
        let latency = latency.expect("it is a metric");
        assert_eq!(latency.name(), "latency p99.9, us of reader, reads");
        let open = metric(r#"{ latency_us = { job = "reader", direction = "read" } }"#).expect("it is a metric");
        assert!(open.covers(&latency) && !latency.covers(&open) && open.check().is_err());
        assert_eq!(open.with_statistic(Some(LatencyStatistic::Percentile(99.9))), latency);
        for text in [
            "\"write_amplification\"",
            "{ iops = { job = \"a\" } }",
            "{ bandwidth_mb_s = {} }",
            "{ bandwidth_variation = { from = 0.5 } }",
            "{ gc_wait_share = { job = \"a\" } }",
            "{ gc_wait_us = { direction = \"write\" } }",
            "{ handle_write_amplification = 1 }",
            "{ last_write_amplification = 0.25 }",
        ] {
            metric(text).expect(text).check().expect(text);
        }
        let empty = metric("{ last_write_amplification = 0.0 }").expect("a form").check();
        assert!(empty.expect_err("no writes").contains("above 0"));
        let wrong = metric(r#"{ latency_us = { statistic = "median" } }"#).expect_err("it is none");
        assert!(wrong.contains("p99.9"), "{wrong}");
        assert!(metric("{ iops = { from = 0.9, to = 0.1 } }").expect("a form").check().is_err());
    }
}
