//! HTTP interface of a served drive: Prometheus metrics at `/metrics`, and its faults at `/faults`
//! for clients with the token.
//!
//! All counters are of one moment. Occupancy of handles and wear of blocks come from the last scan
//! of all reclaim units ([`crate::monitor::unit_scanner`]), which may be slightly older. The
//! Grafana dashboard `docs/grafana.json` shows all metrics.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use base::table;
use nvme::ScrubResults;
use nvme::fault::FaultsReport;
use nvme::traffic::{CommandKind, DOUBLINGS, LatencyHistogram};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use ssd::device::Occupancy;
use ssd::event::Trigger;
use ssd::{Nanos, OwnerStats, UnitOwner};

use crate::actions;
use crate::error::ServeError;
use crate::http::{Audience, HttpOptions, HttpServer, RequestBody};
use crate::monitor::status::DriveStatus;
use crate::monitor::unit_scanner::{ReclaimUnitScanner, UnitSnapshot};
use crate::storage::CheckpointMonitor;
use crate::{ServerClock, SharedSubsystem, lock};

struct DriveCollector {
    shared: SharedSubsystem,
    checkpoints: Arc<CheckpointMonitor>,
    census: Mutex<ReclaimUnitScanner>,
}

impl fmt::Debug for DriveCollector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DriveCollector")
    }
}

pub fn start(
    options: HttpOptions,
    shared: SharedSubsystem,
    checkpoints: Arc<CheckpointMonitor>,
    clock: ServerClock,
) -> Result<HttpServer, ServeError> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(DriveCollector {
        checkpoints,
        census: Mutex::new(ReclaimUnitScanner::new(Arc::clone(&shared), clock)),
        shared: Arc::clone(&shared),
    }));
    let registry = Arc::new(registry);
    let metrics = async move || {
        let mut body = String::new();
        text::encode(&mut body, &registry).expect("a string takes everything");
        let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        ([(CONTENT_TYPE, content_type)], body)
    };
    let drive = Arc::clone(&shared);
    let faults = async move || Json(actions::faults(&drive));
    let plan = move |text: Option<&str>| {
        let planned = actions::plan_faults(&shared, clock, text);
        planned.map(Json).map_err(|refused| (StatusCode::BAD_REQUEST, format!("{refused}\n")))
    };
    let clear = plan.clone();
    let faults = get(faults)
        .put(async move |RequestBody(text): RequestBody| plan(Some(&text)))
        .delete(async move || clear(None));
    // Without a token all users of this machine may read the metrics, but none may make changes.
    let only_read = (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")], NO_CHANGES);
    let routes = Router::new().route("/metrics", get(metrics)).fallback(async move |method: Method| match method {
        Method::GET | Method::HEAD => (StatusCode::NOT_FOUND, "the metrics are at /metrics\n").into_response(),
        _ => only_read.into_response(),
    });
    let routes = match options.token {
        Some(_) => routes.route(FAULTS, faults),
        None => routes,
    };
    HttpServer::start("metrics", options, Audience::Programs, routes)
}

const NO_CHANGES: &str = "only GET and HEAD are allowed. Changes need a server with a token (--metrics-token FILE)\n";

pub const FAULTS: &str = "/faults";

/// A number of the whole drive: name, help, value.
type Row = (&'static str, &'static str, fn(&DriveStatus) -> u64);
type GaugeRow = (&'static str, &'static str, fn(&DriveStatus) -> f64);
type HandleRow = (&'static str, &'static str, fn(&OwnerStats) -> u64);

/// Counters of bytes. Names of other counters state their unit.
const BYTE_COUNTERS: &[Row] = &table! {
    "warp_host_written": "Bytes written by hosts (HBMW)" => |status| status.stats.host_bytes_written(),
    "warp_media_written": "Bytes written to media (MBMW)" => |status| status.stats.media_bytes_written(),
    "warp_media_overhead": "Bytes of the drive's own within the bytes written to media"
        => |status| status.stats.overhead_pages() * status.stats.page_bytes,
    "warp_media_erased": "Bytes erased (MBE)" => |status| status.stats.media_bytes_erased(),
    "warp_host_read": "Bytes read by hosts" => |status| status.host_bytes_read,
};

const COUNTERS: &[Row] = &table! {
    "warp_read_commands": "Read commands" => |status| status.read_commands,
    "warp_write_commands": "Write commands" => |status| status.write_commands,
    "warp_media_errors": "Commands that failed because of the storage" => |status| status.media_errors,
    "warp_scrub_passes": "Completed scrubs of all data" => |status| integrity(status).passes,
    "warp_scrub_pages": "Pages with checksums that scrubs checked" => |status| integrity(status).pages_checked,
    "warp_scrub_damaged_pages": "Damaged pages that scrubs found, counted in each pass"
        => |status| integrity(status).pages_damaged,
    "warp_checkpoints": "Completed checkpoints since the start of the server" => |status| status.checkpoints.made,
    "warp_checkpoints_failed": "Failed checkpoints" => |status| status.checkpoints.failed,
    "warp_fdp_events_overwritten": "FDP events that newer ones replaced" => |status| status.events_overwritten,
};

const GAUGES: &[GaugeRow] = &table! {
    "warp_completions_due": "Completions with a due time, on a drive with timing"
        => |status| status.lateness.completions as f64,
    "warp_lateness_p50_seconds": "Median lateness of completions" => |status| seconds(status.lateness.p50_ns),
    "warp_lateness_p99_seconds": "99th percentile of the lateness of completions"
        => |status| seconds(status.lateness.p99_ns),
    "warp_lateness_max_seconds": "Maximum lateness of completions" => |status| seconds(status.lateness.max_ns),
    "warp_checkpoint_seconds": "Duration of the last checkpoint" => |status| status.checkpoints.last.as_secs_f64(),
    "warp_checkpoint_longest_hold_seconds": "Longest time that a checkpoint locked the drive and hosts waited"
        => |status| status.checkpoints.lock_time_max.as_secs_f64(),
    "warp_write_amplification": "MBMW / HBMW since the drive was created"
        => |status| status.stats.write_amplification().unwrap_or(f64::NAN),
    "warp_page_bytes": "Bytes of a page, the unit of the page counts" => |status| status.stats.page_bytes as f64,
    "warp_free_reclaim_units": "Free space, as a number of reclaim units of the largest size"
        => |status| status.free_units as f64,
    "warp_background_watermark_reclaim_units": "Low watermark. Background collection runs while no more reclaim units are \
                                           free"
        => |status| status.background_watermark_units as f64,
    "warp_foreground_watermark_reclaim_units": "High watermark. Hosts wait for collection if fewer reclaim units would be \
                                           free"
        => |status| status.foreground_watermark_units as f64,
    "warp_logical_pages_mapped": "Logical pages with data" => |status| status.live_pages as f64,
    "warp_logical_pages": "Logical pages of the drive" => |status| status.logical_pages as f64,
    "warp_controllers": "Enabled controllers" => |status| status.controllers as f64,
    "warp_fdp_enabled": "1 if Flexible Data Placement is enabled, else 0" => |status| f64::from(u8::from(status.fdp)),
};

const HANDLE_BYTE_COUNTERS: &[HandleRow] = &table! {
    "warp_handle_host_written": "Bytes that hosts wrote through the handle" => |row| row.host_bytes_written,
};

const HANDLE_COUNTERS: &[HandleRow] = &table! {
    "warp_handle_pages_absorbed": "Pages of host writes that replaced a page in the write buffer"
        => |row| row.host_pages_absorbed,
    "warp_handle_pages_received": "Pages that collection copied into reclaim units of the handle"
        => |row| row.gc_pages_received,
    "warp_handle_pages_erased": "Pages erased with reclaim units of the handle, the wear that its data caused"
        => |row| row.pages_erased,
    "warp_handle_pages_copied": "Pages that collection copied out of reclaim units of the handle"
        => |row| row.gc_pages_copied,
    "warp_handle_pages_wear_levelled": "Pages of the handle that static wear levelling copied to worn blocks"
        => |row| row.wear_levelling_pages,
    "warp_handle_units_opened": "Reclaim units opened for the handle" => |row| row.units_opened,
    "warp_handle_units_reclaimed": "Reclaim units of the handle that were reclaimed" => |row| row.units_reclaimed,
};

type HoldingRow = (&'static str, &'static str, fn(&Occupancy) -> u64);

const HOLDINGS: &[HoldingRow] = &table! {
    "warp_handle_reclaim_units": "Open and closed reclaim units of the handle" => |row| row.units,
    "warp_handle_pages": "Pages in reclaim units of the handle" => |row| row.pages,
    "warp_handle_valid_pages": "Valid pages in reclaim units of the handle" => |row| row.valid_pages,
};

type WearRow = (&'static str, &'static str, fn(&UnitSnapshot) -> f64);

const WEAR: &[WearRow] = &table! {
    "warp_block_erases_min": "Minimum erases of a block" => |units| f64::from(units.wear.fewest_erases),
    "warp_block_erases_avg": "Mean erases of a block" => |units| units.wear.mean_erases(),
    "warp_block_erases_max": "Maximum erases of a block" => |units| f64::from(units.wear.most_erases),
};

/// Label of an owner of reclaim units.
fn ruh(owner: UnitOwner) -> String {
    owner.handle().map_or_else(|| "shared".to_string(), |handle| handle.0.to_string())
}

fn encode_collections(encoder: &mut DescriptorEncoder<'_>, status: &DriveStatus) -> Result<(), fmt::Error> {
    let stats = &status.stats;
    let by_trigger = [
        (Trigger::Background, stats.background_collections),
        (Trigger::Foreground, stats.foreground_collections),
        (Trigger::Forced, stats.forced_collections),
    ];
    let help = "Reclaim units reclaimed, by trigger";
    let mut family = encoder.encode_descriptor("warp_collections", help, None, MetricType::Counter)?;
    for (trigger, count) in by_trigger {
        ConstCounter::new(count).encode(family.encode_family(&[("trigger", trigger.name())])?)?;
    }
    Ok(())
}

/// Latencies of commands, with a bucket for each doubling of a microsecond.
fn encode_latencies(encoder: &mut DescriptorEncoder<'_>, status: &DriveStatus) -> Result<(), fmt::Error> {
    let help = "Time of an I/O command from its execution to its earliest completion";
    let name = "warp_command_latency";
    let mut family = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
    for (kind, histogram) in CommandKind::ALL.iter().zip(&status.latencies) {
        let labels = [("command", kind.name())];
        let mut encoder = family.encode_family(&labels)?;
        let sum = seconds(histogram.sum_ns());
        encoder.encode_histogram::<NoLabelSet>(sum, histogram.count(), &buckets(histogram), None)?;
    }
    Ok(())
}

/// Upper bounds in seconds, and the count of each single bucket.
fn buckets(histogram: &LatencyHistogram) -> Vec<(f64, u64)> {
    let mut before = 0;
    let mut bucket = |upper: f64, within: u64| {
        assert!(within >= before, "{within} commands are within {upper} s, {before} are within less");
        (upper, within - std::mem::replace(&mut before, within))
    };
    let doublings = (0..=DOUBLINGS).map(|doublings| {
        let upper_ns = 1000 << doublings;
        bucket(seconds(upper_ns), histogram.count_within(doublings))
    });
    let mut buckets: Vec<(f64, u64)> = doublings.collect();
    buckets.push(bucket(f64::INFINITY, histogram.count()));
    buckets
}

/// Occupancy of handles, and wear of blocks.
fn encode_units(encoder: &mut DescriptorEncoder<'_>, units: &UnitSnapshot) -> Result<(), fmt::Error> {
    for (name, help, value) in HOLDINGS {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for row in &units.holdings {
            ConstGauge::new(value(row) as f64).encode(family.encode_family(&[("ruh", ruh(row.owner))])?)?;
        }
    }
    for (name, help, value) in WEAR {
        let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value(units)).encode(descriptor)?;
    }
    Ok(())
}

/// Counters and state of each planned fault.
fn encode_faults(encoder: &mut DescriptorEncoder<'_>, report: &FaultsReport) -> Result<(), fmt::Error> {
    let (name, help) =
        ("warp_faults_struck", "Commands that the fault hit, or for a state the number of times that it began");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for fault in &report.faults {
        let labels = [("fault", fault.name.as_str()), ("kind", &*fault.kind)];
        ConstCounter::new(fault.struck).encode(family.encode_family(&labels)?)?;
    }
    let (name, help) = ("warp_fault_active", "1 while the fault is active, else 0");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for fault in &report.faults {
        let labels = [("fault", fault.name.as_str()), ("kind", &*fault.kind)];
        ConstGauge::new(i64::from(fault.active)).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn integrity(status: &DriveStatus) -> ScrubResults {
    status.integrity.unwrap_or_default()
}

fn seconds(ns: Nanos) -> f64 {
    ns as f64 / 1e9
}

impl Collector for DriveCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        // A scan that panicked has left no partial state.
        let units = self.census.lock().unwrap_or_else(PoisonError::into_inner).poll();
        let status = DriveStatus { checkpoints: self.checkpoints.status(), ..DriveStatus::new(&lock(&self.shared), 0) };
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
        encode_collections(&mut encoder, &status)?;
        encode_latencies(&mut encoder, &status)?;
        if let Some(units) = &units {
            encode_units(&mut encoder, units)?;
        }
        if let Some(faults) = &status.faults {
            encode_faults(&mut encoder, faults)?;
        }
        let tables: [(&[HandleRow], Option<&Unit>); 2] =
            [(HANDLE_BYTE_COUNTERS, Some(&Unit::Bytes)), (HANDLE_COUNTERS, None)];
        for (rows, unit) in tables {
            for (name, help, value) in rows {
                let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
                for (owner, row) in status.stats.owners() {
                    ConstCounter::new(value(row)).encode(family.encode_family(&[("ruh", ruh(owner))])?)?;
                }
            }
        }
        Ok(())
    }
}
