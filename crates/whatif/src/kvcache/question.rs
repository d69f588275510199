//! The question, the facts of its drive and its trace, and the workload of one of its drives.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use experiment::{LabError, Profile, RunChange, Scale, SettingOverrides, scaled_model};
use ssd::config::Geometry;
use ssd::{DeviceConfig, DeviceLayout, TimingConfig};
use toml::{Table, Value};
use workload::trace::{MooncakeRequest, ReadOutcome, RecordReader};

use super::models::LanguageModel;
use crate::economics::WearModel;
use crate::economics::within;

/// Largest number of drives of a plan.
pub(super) const DRIVES_MAX: u32 = 100_000;
/// Tokens of a block in Mooncake's traces (README of kvcache-ai/Mooncake).
const TRACE_TOKENS: u32 = 512;
/// Largest chunk of `kvcache_tier`.
const CHUNK_BYTES_MAX: f64 = 1024.0 * 1024.0 * 1024.0;
/// Sessions of a drive with which the search for the number of drives begins at most.
const SESSIONS_MAX: f64 = 100_000.0;
/// Tokens of a chunk of LMCache by default (its setting `chunk_size`).
pub(super) const LMCACHE_TOKENS: u32 = 256;
/// Unit of the sizes of chunks.
const BLOCK_BYTES: f64 = 4096.0;

/// Repetition of the beginnings of earlier requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptReuse {
    /// Conversations of people, as `conversation` of `kvcache_tier`.
    Chat,
    /// Tasks of agents, as `agent` of `kvcache_tier`.
    Agent,
    /// A trace in Mooncake's format.
    Trace(PathBuf),
}

impl PromptReuse {
    /// Kind of the requests in `kvcache_tier`.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            PromptReuse::Chat => "conversation",
            PromptReuse::Agent => "agent",
            PromptReuse::Trace(_) => "mooncake",
        }
    }

    /// Time between two turns of a session, seconds. Assumed, as `kvcache_tier` does.
    pub(super) fn think_seconds(&self) -> f64 {
        if *self == PromptReuse::Agent { 5.0 } else { 60.0 }
    }

    /// Mean tokens that a turn adds, and tokens of the prompt with which a session begins. Assumed,
    /// as `kvcache_tier` does in chunks of 256.
    pub(super) fn tokens(&self) -> [u32; 2] {
        if *self == PromptReuse::Agent { [256, 4096] } else { [512, 512] }
    }
}

/// Tokens with which a session ends.
const CONTEXT_TOKENS: u32 = 128_000;

/// Bytes per second that a drive can move.
#[derive(Clone, Copy, Debug)]
pub(super) struct DriveSpeed {
    /// Over its link, in each direction.
    pub(super) link: f64,
    /// To its flash, if all dies program.
    pub(super) programs: f64,
}

impl DriveSpeed {
    fn new(timing: &TimingConfig, geometry: &Geometry) -> DriveSpeed {
        let planes = [geometry.channels, geometry.dies_per_channel, geometry.planes_per_die];
        let planes: f64 = planes.map(f64::from).iter().product();
        DriveSpeed {
            link: timing.link.bytes_per_second() as f64,
            programs: planes * timing.one_shot_bytes() as f64 * 1e9 / timing.nand.program_ns as f64,
        }
    }
}

/// Requests of a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceRate {
    pub(super) requests: u64,
    pub(super) seconds: f64,
}

impl TraceRate {
    fn read(file: &Path) -> Result<TraceRate, LabError> {
        let place = file.display().to_string();
        let invalid = |problem: String| LabError::invalid(&place, problem);
        let mut lines = RecordReader::open(file, Arc::default()).map_err(|error| invalid(error.to_string()))?;
        let (mut requests, mut first_ns, mut last_ns) = (0, u64::MAX, 0);
        loop {
            let line = lines.take_line().map_err(|error| invalid(error.to_string()))?;
            let parsed = match line {
                ReadOutcome::End => break,
                ReadOutcome::Text(line) => MooncakeRequest::parse(line),
                ReadOutcome::TooLong(_) => Err("the line is longer than 64 KiB".to_string()),
            };
            if let Some(request) = parsed.map_err(|problem| invalid(format!("line {}: {problem}", lines.number())))? {
                requests += 1;
                (first_ns, last_ns) = (first_ns.min(request.time_ns()), last_ns.max(request.time_ns()));
            }
        }
        let seconds = last_ns.saturating_sub(first_ns) as f64 / 1e9;
        if requests < 2 || seconds <= 0.0 {
            return Err(invalid("has no rate, because it needs two requests at different times".to_string()));
        }
        Ok(TraceRate { requests, seconds })
    }
}

/// A model, its requests and a drive.
#[derive(Clone, Debug)]
pub struct KvCacheQuestion {
    pub model: LanguageModel,
    pub requests_per_second: f64,
    pub reuse: PromptReuse,
    pub device: String,
    /// Number of drives. `None` searches for the smallest.
    pub drives: Option<u32>,
    /// Years that a drive has to last.
    pub years: f64,
    /// Tokens of a chunk. A trace has chunks of 512.
    pub chunk_tokens: u32,
    /// Inference servers that share a drive, each with a tier of its own.
    pub servers: u32,
    /// Part of the drive for the tiers, percent.
    pub used_percent: f64,
    /// Missed chunks that are written, percent.
    pub admit_percent: f64,
    /// Writes a chunk only at its second request.
    pub admit_second_request: bool,
    /// Largest write, bytes.
    pub write_bytes: u64,
    /// Share of the hits that memory above the tier serves, 0 to 1. They are not read from drives.
    pub memory_hits: f64,
    /// Settings of the device and the workload by path.
    pub overrides: SettingOverrides,
    pub scale: Option<Scale>,
    pub seed: u64,
}

/// A question with the facts of its drive and its trace.
pub struct KvCachePlan {
    pub(super) question: KvCacheQuestion,
    pub(super) trace: Option<TraceRate>,
    pub(super) config: DeviceConfig,
    pub(super) has_ensemble: bool,
    pub(super) wear: WearModel,
    /// `None` for a device without timing.
    pub(super) speed: Option<DriveSpeed>,
    pub(super) scale: Scale,
}

impl KvCacheQuestion {
    pub(super) fn chunk_tokens(&self) -> u32 {
        if matches!(self.reuse, PromptReuse::Trace(_)) { TRACE_TOKENS } else { self.chunk_tokens }
    }

    /// Checks the question and reads the drive's profile and the trace.
    ///
    /// # Errors
    /// A number is out of range, the device is unknown or has no endurance, or the trace cannot be
    /// read.
    pub fn plan(self) -> Result<KvCachePlan, LabError> {
        within("requests (--requests)", self.requests_per_second, 1e-6, 1e9)?;
        within("years (--years)", self.years, 0.01, 100.0)?;
        within("chunk_tokens (--chunk-tokens)", self.chunk_tokens.into(), 16.0, 16_384.0)?;
        within("servers (--servers)", self.servers.into(), 1.0, 64.0)?;
        within("memory_hits (--memory-hits), percent", self.memory_hits * 100.0, 0.0, 99.9)?;
        within("admit (--admit), percent", self.admit_percent, 1.0, 100.0)?;
        within("used (--used), percent", self.used_percent, 0.1, 100.0)?;
        let chunk_bytes = f64::from(self.chunk_tokens()) * self.model.token_bytes as f64;
        within("the bytes of a chunk (--chunk-tokens times the bytes of a token)", chunk_bytes, 1.0, CHUNK_BYTES_MAX)?;
        within("write_size (--write-size), bytes", self.write_bytes as f64, BLOCK_BYTES, CHUNK_BYTES_MAX)?;
        within("drives (--drives)", self.drives.unwrap_or(1).into(), 1.0, DRIVES_MAX.into())?;
        let trace = match &self.reuse {
            PromptReuse::Trace(file) => Some(TraceRate::read(file)?),
            _ => None,
        };
        let of_device = RunChange::from_settings(&self.overrides).device;
        let profile = Profile::find(&self.device)?;
        let config = profile.config(&of_device)?;
        let layout = DeviceLayout::new(&config);
        let layout = layout.map_err(|error| LabError::Device { device: self.device.clone(), error })?;
        let Some(endurance) = &config.endurance else {
            let problem = "its profile has no endurance, so its life is unknown. Add rated_erases in [endurance]";
            return Err(LabError::invalid(&self.device, problem));
        };
        let wear = WearModel {
            capacity_bytes: layout.capacity_bytes(),
            physical_bytes: u64::from(layout.physical_pages) * layout.page_bytes,
            rated_erases: endurance.rated_erases,
            drive_writes_per_day: 1.0,
        };
        let speed = config.timing.as_ref().map(|timing| DriveSpeed::new(timing, &config.geometry));
        let scale = match self.scale {
            Some(scale) => scale,
            None => scaled_model::sizes(&self.device, &config, None)?[0],
        };
        Ok(KvCachePlan { has_ensemble: profile.ensemble.is_some(), question: self, trace, config, wear, speed, scale })
    }
}

impl KvCachePlan {
    pub(super) fn chunk_bytes(&self) -> f64 {
        f64::from(self.question.chunk_tokens()) * self.question.model.token_bytes as f64
    }

    /// Number of drives with which the search begins.
    pub(super) fn first_drives(&self) -> u32 {
        let sessions = self.question.requests_per_second * self.question.reuse.think_seconds();
        (sessions / SESSIONS_MAX).ceil().clamp(1.0, f64::from(DRIVES_MAX)) as u32
    }

    /// Workload of one of `drives` drives, with a class for each server.
    ///
    /// Independent sessions at `n` times the rate of a trace are modelled by as many workers, each
    /// with the trace. A fraction of a worker has smaller chunks, so that its tier lasts longer.
    pub(super) fn workload(&self, drives: u32) -> Table {
        let question = &self.question;
        let servers = f64::from(question.servers);
        let of_server = question.requests_per_second / f64::from(drives) / servers;
        let (requests, workers, chunk_bytes) = match (&question.reuse, &self.trace) {
            (PromptReuse::Trace(file), Some(trace)) => {
                let traces = of_server / (trace.requests as f64 / trace.seconds);
                let workers = traces.ceil().clamp(1.0, (4096.0 / servers).floor());
                let files = Value::from(vec![file.display().to_string()]);
                let requests = Table::from_iter([
                    ("kind".to_string(), question.reuse.kind().into()),
                    ("files".to_string(), files),
                ]);
                (requests, workers, self.chunk_bytes() * traces / workers)
            }
            (reuse, _) => {
                let chunks = |tokens: u32| f64::from(tokens) / f64::from(question.chunk_tokens);
                let [turn, prompt] = reuse.tokens();
                let sessions = (of_server * reuse.think_seconds()).round().clamp(1.0, 1e7);
                let requests = Table::from_iter([
                    ("kind".to_string(), reuse.kind().into()),
                    ("sessions".to_string(), Value::Integer(sessions as i64)),
                    ("think_seconds".to_string(), reuse.think_seconds().into()),
                    ("turn_chunks".to_string(), chunks(turn).into()),
                    ("system_chunks".to_string(), Value::Integer(chunks(prompt).round() as i64)),
                    ("context_chunks".to_string(), Value::Integer(chunks(CONTEXT_TOKENS).round() as i64)),
                ]);
                (requests, 1.0, self.chunk_bytes())
            }
        };
        let chunk_bytes = (chunk_bytes / BLOCK_BYTES).round().max(1.0) * BLOCK_BYTES;
        let class = Table::from_iter([
            ("workers".to_string(), Value::Integer(workers as i64)),
            ("chunk_bytes".to_string(), Value::Integer(chunk_bytes as i64)),
            ("admit_percent".to_string(), question.admit_percent.into()),
            ("admit_second_request".to_string(), question.admit_second_request.into()),
            ("requests".to_string(), requests.into()),
        ]);
        let classes = (0..question.servers).map(|server| (format!("server{server:02}"), Value::Table(class.clone())));
        let classes: Table = classes.collect();
        Table::from_iter([
            ("kind".to_string(), "kvcache_tier".into()),
            ("used_percent".to_string(), question.used_percent.into()),
            ("write_bytes".to_string(), Value::Integer(question.write_bytes as i64)),
            ("classes".to_string(), Value::Table(classes)),
        ])
    }
}
