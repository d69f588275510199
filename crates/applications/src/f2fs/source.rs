//! Request source of F2FS: runs the operations of the personality and reports measures.

use super::file_system::FileSystem;
use super::hints::{F2fsWriter, Hint, HintPolicy, LogKind, STREAMS};
use super::layout::BLOCK_BYTES;
use super::output::WriteCount;
use super::personality::Personality;
use crate::queue::{RequestQueue, SteppedModel};
use crate::ratio;
use workload::{IoRequest, RequestSource, WorkloadError, WorkloadMeasure};

/// A file system under load. It never ends.
pub struct F2fs {
    pub(super) files: FileSystem,
    personality: Personality,
    hints: HintPolicy,
}

impl F2fs {
    pub(super) fn new(files: FileSystem, personality: Personality, hints: HintPolicy) -> F2fs {
        F2fs { files, personality, hints }
    }

    /// Writes with a hint. With `data`, counts only user data.
    fn with_hint(&self, hint: Hint, data: bool) -> WriteCount {
        let writers = LogKind::ALL.into_iter().map(F2fsWriter::Log).chain([F2fsWriter::Meta]);
        let carrying =
            writers.filter(|writer| self.hints.hint(*writer) == Some(hint)).filter(|writer| writer.is_data() || !data);
        sum(carrying.map(|writer| self.files.output.writers[writer.index()]))
    }

    fn hint_measures(&self, measures: &mut Vec<WorkloadMeasure>) {
        const HINTS: [Hint; 6] = [Hint::NotSet, Hint::None, Hint::Short, Hint::Medium, Hint::Long, Hint::Extreme];
        let all = sum(self.files.output.writers.into_iter());
        let data = sum(self.files.output.writers[..3].iter().copied());
        for (hint, name) in HINTS.into_iter().zip(Hint::NAMES) {
            let carrying = self.with_hint(hint, false);
            let carrying_data = self.with_hint(hint, true);
            measures.extend([
                WorkloadMeasure::new(format!("hint.{name}.share"), ratio(carrying.bytes, all.bytes)),
                WorkloadMeasure::new(format!("hint.{name}.request_share"), ratio(carrying.requests, all.requests)),
                WorkloadMeasure::new(format!("hint.{name}.data_share"), ratio(carrying_data.bytes, data.bytes)),
            ]);
        }
    }

    fn handle_measures(&self, measures: &mut Vec<WorkloadMeasure>) {
        let output = &self.files.output;
        let all = sum(output.handles.iter().copied());
        let data = sum(output.data_handles.iter().copied());
        let most = output.data_handles.iter().map(|handle| handle.bytes).max();
        measures.push(WorkloadMeasure::new("handle.largest.data_share", ratio(most.unwrap_or(0), data.bytes)));
        for (index, handle) in output.handles.iter().enumerate() {
            measures.push(WorkloadMeasure::new(format!("handle.{index}.share"), ratio(handle.bytes, all.bytes)));
        }
    }
}

fn sum(written: impl Iterator<Item = WriteCount>) -> WriteCount {
    written.fold(WriteCount::default(), |sum, part| WriteCount {
        bytes: sum.bytes + part.bytes,
        requests: sum.requests + part.requests,
    })
}

impl SteppedModel for F2fs {
    fn queue(&mut self) -> &mut RequestQueue {
        &mut self.files.output.queue
    }

    /// Executes one operation and the background work that follows.
    fn step(&mut self) -> Result<bool, WorkloadError> {
        let done = self.personality.step(&mut self.files).and_then(|()| self.files.background());
        done.map(|()| true).map_err(|_| {
            let setting = format!("a file system with {:.1} % of its blocks in use", 100.0 * self.files.utilization());
            WorkloadError::setting(setting, "has no room left. Use fewer or smaller files, or a larger drive")
        })
    }
}

impl RequestSource for F2fs {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        self.run_batch(requests, limit)
    }

    fn streams(&self) -> Vec<String> {
        STREAMS.into_iter().map(String::from).collect()
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        let files = &self.files;
        let (output, counters) = (&files.output, &files.counters);
        let blocks = counters.appended_blocks + counters.threaded_blocks + counters.in_place_blocks;
        let mut measures = vec![
            WorkloadMeasure::new("application_bytes", counters.application_bytes as f64),
            WorkloadMeasure::new("file_system_waf", ratio(output.bytes_written, counters.application_bytes)),
            WorkloadMeasure::new("utilization", files.utilization()),
            WorkloadMeasure::new("free_sections", f64::from(files.segments.free_sections())),
            WorkloadMeasure::new("threaded_share", ratio(counters.threaded_blocks, blocks)),
            WorkloadMeasure::new("in_place_share", ratio(counters.in_place_blocks, blocks)),
            WorkloadMeasure::new("cleaned_bytes", (counters.cleaned_blocks * BLOCK_BYTES) as f64),
            WorkloadMeasure::new("foreground_sections", counters.foreground_sections as f64),
            WorkloadMeasure::new("background_sections", counters.background_sections as f64),
            WorkloadMeasure::new("discarded_bytes", output.bytes_discarded as f64),
            WorkloadMeasure::new("waiting_discard_bytes", (files.discards.blocks * BLOCK_BYTES) as f64),
            WorkloadMeasure::new("checkpoints", counters.checkpoints as f64),
        ];
        for (name, written) in STREAMS.iter().zip(&output.writers) {
            measures
                .push(WorkloadMeasure::new(format!("log.{name}.share"), ratio(written.bytes, output.bytes_written)));
        }
        self.hint_measures(&mut measures);
        self.handle_measures(&mut measures);
        measures
    }
}
