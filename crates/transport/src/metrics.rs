//! What a served drive shows over HTTP: Prometheus metrics at `/metrics`; its faults at `/faults`, where they can be
//! changed by whoever shows the token.

use std::fmt;
use std::sync::Arc;

use base::table;
use nvme::Integrity;
use nvme::fault::{FaultsReport, Plan};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use ssd::{Nanos, OwnerStats};

use crate::error::ServeError;
use crate::http::{Change, HttpOptions, HttpServer, Page, Site};
use crate::status::Status;
use crate::{Clock, Shared, locked};

/// Makes the metrics of a moment when they are asked for.
struct DriveCollector(Shared);

impl fmt::Debug for DriveCollector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DriveCollector")
    }
}

/// Starts to serve them.
///
/// # Errors
/// As [`HttpServer::start`].
pub fn start(options: HttpOptions, shared: Shared, clock: Clock) -> Result<HttpServer, ServeError> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(DriveCollector(Arc::clone(&shared))));
    let has_token = options.token.is_some();
    let drive = Arc::clone(&shared);
    let pages = move |path: &str| match path {
        "/metrics" => {
            let mut body = String::new();
            text::encode(&mut body, &registry).expect("a string takes everything");
            let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            Some(Page { content_type, body })
        }
        FAULTS if has_token => Some(faults_page(&drive)),
        _ => None,
    };
    let changes = move |path: &str, change: Change| {
        (path == FAULTS).then(|| {
            set_faults(&shared, clock, change)?;
            Ok(faults_page(&shared))
        })
    };
    let site = Site {
        hint: "the metrics are at /metrics\n",
        pages: Box::new(pages),
        changes: Some(Box::new(changes)),
    };
    HttpServer::start("metrics", options, site)
}

/// Where faults are.
pub const FAULTS: &str = "/faults";

/// What is planned and what has come of it, as JSON; `null` without a plan.
fn faults_page(shared: &Shared) -> Page {
    let report = locked(shared).faults();
    Page {
        content_type: "application/json",
        body: serde_json::to_string(&report).expect("a report serializes"),
    }
}

/// Plans faults, or takes them back. The plan is read before the drive is held.
fn set_faults(shared: &Shared, clock: Clock, change: Change) -> Result<(), String> {
    let plan = match change {
        Change::Put(text) => Some(Plan::parse(&text).map_err(|error| error.to_string())?),
        Change::Delete => None,
    };
    let set = locked(shared).set_faults(clock.now(), plan);
    set.map_err(|error| error.to_string())
}

/// A number of the whole drive: name, help, value.
type Row = (&'static str, &'static str, fn(&Status) -> u64);
type GaugeRow = (&'static str, &'static str, fn(&Status) -> f64);
/// A number of each handle.
type HandleRow = (&'static str, &'static str, fn(&OwnerStats) -> u64);

/// Counters of bytes; the others count what their names say.
const BYTE_COUNTERS: &[Row] = &table! {
    "warp_host_written": "Bytes written by hosts (HBMW)" => |status| status.stats.host_bytes_written(),
    "warp_media_written": "Bytes written to media (MBMW)" => |status| status.stats.media_bytes_written(),
    "warp_media_erased": "Bytes erased (MBE)" => |status| status.stats.media_bytes_erased(),
    "warp_host_read": "Bytes read by hosts" => |status| status.host_bytes_read,
};

const COUNTERS: &[Row] = &table! {
    "warp_read_commands": "Commands that read" => |status| status.read_commands,
    "warp_write_commands": "Commands that wrote" => |status| status.write_commands,
    "warp_media_errors": "Commands that failed with the storage" => |status| status.media_errors,
    "warp_collections": "Reclaim units reclaimed" => |status| {
        let stats = &status.stats;
        stats.background_collections + stats.foreground_collections + stats.forced_collections
    },
    "warp_scrub_passes": "Times that all data was looked through" => |status| integrity(status).passes,
    "warp_scrub_pages": "Pages with checksums that scrubs looked at" => |status| integrity(status).pages_checked,
    "warp_scrub_damaged_pages": "Pages that were not what was written, again in each pass"
        => |status| integrity(status).pages_damaged,
    "warp_fdp_events_overwritten": "FDP events lost to newer ones" => |status| status.events_overwritten,
};

const GAUGES: &[GaugeRow] = &table! {
    "warp_completions_due": "Completions that had a time, because the device has timing"
        => |status| status.lateness.completions as f64,
    "warp_lateness_p50_seconds": "Half of these were no later" => |status| seconds(status.lateness.p50_ns),
    "warp_lateness_p99_seconds": "99 % of these were no later" => |status| seconds(status.lateness.p99_ns),
    "warp_lateness_max_seconds": "None of these was later" => |status| seconds(status.lateness.max_ns),
    "warp_write_amplification": "MBMW / HBMW since the drive was made"
        => |status| status.stats.write_amplification().unwrap_or(f64::NAN),
    "warp_logical_pages_mapped": "Logical pages that hold data" => |status| status.live_pages as f64,
    "warp_logical_pages": "Logical pages of the drive" => |status| status.logical_pages as f64,
    "warp_controllers": "Enabled controllers" => |status| status.controllers as f64,
    "warp_fdp_enabled": "Whether Flexible Data Placement is enabled" => |status| f64::from(u8::from(status.fdp)),
};

const HANDLE_BYTE_COUNTERS: &[HandleRow] = &table! {
    "warp_handle_host_written": "Bytes written by hosts through a handle" => |row| row.host_bytes_written,
};

const HANDLE_COUNTERS: &[HandleRow] = &table! {
    "warp_handle_pages_copied": "Pages that collection copied out of its reclaim units" => |row| row.gc_pages_copied,
    "warp_handle_units_opened": "Reclaim units opened for it" => |row| row.units_opened,
    "warp_handle_units_reclaimed": "Its reclaim units that were reclaimed" => |row| row.units_reclaimed,
};

/// Each fault of a plan.
fn encode_faults(encoder: &mut DescriptorEncoder<'_>, report: &FaultsReport) -> Result<(), fmt::Error> {
    let (name, help) = (
        "warp_faults_struck",
        "Commands that a fault struck; of a state, how often it began",
    );
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for fault in &report.faults {
        let labels = [("fault", fault.name.as_str()), ("kind", &*fault.kind)];
        ConstCounter::new(fault.struck).encode(family.encode_family(&labels)?)?;
    }
    let (name, help) = (
        "warp_fault_active",
        "Whether the time of a fault has come and is not over",
    );
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for fault in &report.faults {
        let labels = [("fault", fault.name.as_str()), ("kind", &*fault.kind)];
        ConstGauge::new(i64::from(fault.active)).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn integrity(status: &Status) -> Integrity {
    status.integrity.unwrap_or_default()
}

fn seconds(ns: Nanos) -> f64 {
    ns as f64 / 1e9
}

impl Collector for DriveCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let status = Status::of(&locked(&self.0), 0);
        let tables: [(&[Row], Option<&Unit>); 2] = [(BYTE_COUNTERS, Some(&Unit::Bytes)), (COUNTERS, None)];
        for (rows, unit) in tables {
            for (name, help, value) in rows {
                let descriptor = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
                ConstCounter::new(value(&status)).encode(descriptor)?;
            }
        }
        for (name, help, value) in GAUGES {
            let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value(&status)).encode(descriptor)?;
        }
        if let Some(faults) = &status.faults {
            encode_faults(&mut encoder, faults)?;
        }
        let tables: [(&[HandleRow], Option<&Unit>); 2] =
            [(HANDLE_BYTE_COUNTERS, Some(&Unit::Bytes)), (HANDLE_COUNTERS, None)];
        for (rows, unit) in tables {
            for (name, help, value) in rows {
                let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
                for (handle, row) in status.stats.handles.iter().enumerate() {
                    ConstCounter::new(value(row)).encode(family.encode_family(&[("ruh", handle.to_string())])?)?;
                }
            }
        }
        Ok(())
    }
}
