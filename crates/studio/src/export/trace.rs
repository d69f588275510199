//! Exports a session as a trace for Perfetto and `chrome://tracing`.
//!
//! ```text
//! process per lane: track per reclaim group (collections as slices), track per handle (open and close as instants),
//!                   counters of write amplification and free units
//!     in virtual time also: tracks of host requests, of each channel and of each die
//! ```
//!
//! The axis is virtual time if the lane has it. For other lanes the axis is host bytes written. One
//! microsecond is a mebibyte, and the length of a collection is its copied bytes. The trace states
//! its axis.

use serde_json::{Value, json};
use simulate::timed::measure::TimedRequest;
use ssd::BoundedLog;
use ssd::timing::{BusyInterval, WorkKind};
use workload::RequestOperation;

use super::{ExportData, ExportLane};
use crate::frames::UnitEventRecord;
use crate::records::LoggedEvent;

/// Host bytes per microsecond on the axis of a lane without virtual time.
const BYTES_A_MICROSECOND: f64 = 1_048_576.0;
/// Maximum tracks of a reclaim group for overlapping collections.
const TRACKS_MAX: usize = 8;
/// First track numbers of owners, dies, channels and requests. Groups start at 0.
const OWNER_TRACKS: usize = 1 << 20;
const DIE_TRACKS: usize = 2 << 20;
const CHANNEL_TRACKS: usize = 3 << 20;
const REQUEST_TRACKS: usize = 4 << 20;

pub fn text(material: &ExportData) -> String {
    let mut events = Vec::new();
    for (index, lane) in material.lanes.iter().enumerate() {
        Tracks::new(index, lane, &mut events).write();
    }
    let lanes = material.lanes.iter().map(|lane| {
        json!({
            "name": lane.plan.order.name,
            "axis": axis(lane),
            "events_left_out": lane.log.left_out,
            "requests_left_out": requests(lane).map(BoundedLog::overwritten),
            "dies_and_channels_complete_from_ns": lane.plan.plan.is_timed().then_some(lane.activity.complete_from),
        })
    });
    let metadata = json!({
        "made_by": format!("warp studio {}", env!("CARGO_PKG_VERSION")),
        "title": material.prepared.experiment.title,
        "lanes": lanes.collect::<Vec<Value>>(),
    });
    json!({ "displayTimeUnit": "ns", "otherData": metadata, "traceEvents": events }).to_string()
}

fn requests(lane: &ExportLane) -> Option<&BoundedLog<TimedRequest>> {
    let timed = lane.result.as_ref()?.timed.as_ref()?;
    timed.request_log.as_ref().map(|log| &log.requests)
}

fn axis(lane: &ExportLane) -> &'static str {
    if lane.plan.plan.is_timed() {
        "virtual time"
    } else {
        "host bytes written (1 microsecond is 1 MiB, and a collection is as long as the bytes that it copied)"
    }
}

struct Tracks<'a> {
    process: usize,
    lane: &'a ExportLane,
    events: &'a mut Vec<Value>,
    /// Ends of the last slices on the tracks of each group.
    ends: Vec<Vec<f64>>,
}

impl<'a> Tracks<'a> {
    fn new(process: usize, lane: &'a ExportLane, events: &'a mut Vec<Value>) -> Tracks<'a> {
        Tracks { process, lane, events, ends: vec![Vec::new(); usize::from(lane.plan.plan.layout().groups)] }
    }

    fn write(mut self) {
        self.name("process_name", 0, &self.lane.plan.order.name);
        for logged in &self.lane.log.events {
            match logged.record.kind {
                3 => self.collection(logged),
                kind => self.instant(kind, &logged.record),
            }
        }
        for (group, tracks) in std::mem::take(&mut self.ends).iter().enumerate() {
            for track in 0..tracks.len() {
                let more = if track > 0 { format!(" ({})", track + 1) } else { String::new() };
                self.name("thread_name", group * TRACKS_MAX + track, &format!("reclaim group {group}{more}"));
            }
        }
        let handles = self.lane.plan.plan.layout().handles.len();
        for owner in 0..handles {
            self.name("thread_name", OWNER_TRACKS + owner, &format!("RUH {owner}"));
        }
        self.name("thread_name", OWNER_TRACKS + handles, "shared pool");
        for (host_bytes, media_bytes, beside) in self.lane.series.samples() {
            let at = self.at(host_bytes, beside.now_ns);
            if host_bytes > 0.0 {
                self.counter("write amplification", at, media_bytes / host_bytes);
            }
            self.counter("free units", at, beside.free_units as f64);
        }
        self.requests();
        let activity = &self.lane.activity;
        let dies_of_channel = (activity.dies.len() / activity.channels.len().max(1)).max(1);
        for (die, pieces) in activity.dies.iter().enumerate() {
            let name = format!("channel {} die {}", die / dies_of_channel, die % dies_of_channel);
            self.pieces(DIE_TRACKS + die, &name, pieces);
        }
        for (channel, pieces) in activity.channels.iter().enumerate() {
            self.pieces(CHANNEL_TRACKS + channel, &format!("channel {channel}"), pieces);
        }
    }

    /// Adds the work of a die or a channel.
    fn pieces(&mut self, track: usize, name: &str, pieces: &[BusyInterval]) {
        self.name("thread_name", track, name);
        for piece in pieces {
            let work = match piece.work {
                WorkKind::Read => "read",
                WorkKind::Program => "program",
                WorkKind::Collection => "collection",
            };
            self.events.push(json!({
                "ph": "X", "pid": self.process, "tid": track, "name": work, "cat": work,
                "ts": piece.from as f64 / 1e3, "dur": (piece.until - piece.from) as f64 / 1e3,
            }));
        }
    }

    /// Adds the host requests, on as many tracks as requests in flight.
    fn requests(&mut self) {
        let Some(requests) = requests(self.lane) else { return };
        let jobs = &self.lane.result.as_ref().and_then(|result| result.timed.as_ref());
        let jobs = &jobs.expect("requests are of a run in virtual time").jobs;
        let mut ends: Vec<u64> = Vec::new();
        for request in requests.iter() {
            let free = ends.iter().position(|end| *end <= request.submitted_at);
            let track = free.unwrap_or_else(|| {
                ends.push(0);
                ends.len() - 1
            });
            ends[track] = request.submitted_at + request.latency_ns;
            let operation = match request.operation {
                RequestOperation::Read => "read",
                RequestOperation::Write => "write",
                RequestOperation::Trim => "trim",
            };
            self.events.push(json!({
                "ph": "X", "pid": self.process, "tid": REQUEST_TRACKS + track, "name": format!("{operation} {}", request.bytes), "cat": operation,
                "ts": request.submitted_at as f64 / 1e3, "dur": request.latency_ns as f64 / 1e3,
                "args": {
                    "job": jobs[request.job].name, "offset_bytes": request.offset_bytes, "bytes": request.bytes,
                    "waited_for_collection_ns": request.waited_ns,
                },
            }));
        }
        for track in 0..ends.len() {
            self.name("thread_name", REQUEST_TRACKS + track, &format!("requests {}", track + 1));
        }
    }

    /// Position on the axis, microseconds.
    fn at(&self, host_bytes: f64, now_ns: u64) -> f64 {
        if self.lane.plan.plan.is_timed() { now_ns as f64 / 1e3 } else { host_bytes / BYTES_A_MICROSECOND }
    }

    fn name(&mut self, kind: &str, track: usize, name: &str) {
        self.events
            .push(json!({ "ph": "M", "pid": self.process, "tid": track, "name": kind, "args": { "name": name } }));
    }

    fn counter(&mut self, name: &str, at: f64, value: f64) {
        self.events.push(json!({ "ph": "C", "pid": self.process, "name": name, "ts": at, "args": { name: value } }));
    }

    fn instant(&mut self, kind: u8, record: &UnitEventRecord) {
        let name = match kind {
            1 => format!("open {}", record.unit),
            2 => format!("close {}", record.unit),
            _ => format!("redirect {} pages", record.pages),
        };
        let at = self.at(record.host_bytes as f64, record.now_ns);
        self.events.push(json!({
            "ph": "i", "s": "t", "pid": self.process, "tid": OWNER_TRACKS + usize::from(record.owner), "name": name, "ts": at,
            "args": { "unit_pages": record.pages, "written_pages": record.valid_pages, "host_bytes": record.host_bytes },
        }));
    }

    fn collection(&mut self, logged: &LoggedEvent) {
        let record = &logged.record;
        let begin = self.at(record.host_bytes as f64, record.now_ns);
        let page_bytes = self.lane.plan.plan.layout().page_bytes;
        let long = if self.lane.plan.plan.is_timed() {
            logged.elapsed_ns as f64 / 1e3
        } else {
            (u64::from(record.copied_pages) * page_bytes) as f64 / BYTES_A_MICROSECOND
        };
        let group = usize::from(logged.group);
        let track = self.track(group, begin, long);
        let cause = ["background", "foreground", "forced"][usize::from(record.reason)];
        self.events.push(json!({
            "ph": "X", "pid": self.process, "tid": group * TRACKS_MAX + track, "name": format!("collect {}", record.unit), "cat": cause,
            "ts": begin, "dur": long,
            "args": {
                "cause": cause, "victim_owner": record.owner, "destination_owner": record.destination_owner, "unit_pages": record.pages,
                "valid_pages": record.valid_pages, "copied_pages": record.copied_pages, "host_bytes": record.host_bytes,
            },
        }));
    }

    /// Free track of a group at this time, or the track that is free first.
    fn track(&mut self, group: usize, begin: f64, long: f64) -> usize {
        let ends = &mut self.ends[group];
        let free = ends.iter().position(|end| *end <= begin);
        let track = free.unwrap_or_else(|| {
            if ends.len() < TRACKS_MAX {
                ends.push(0.0);
                return ends.len() - 1;
            }
            let first = ends.iter().enumerate().min_by(|one, other| one.1.total_cmp(other.1));
            first.expect("a group has tracks").0
        });
        ends[track] = begin + long;
        track
    }
}
