//! Logs of bandwidth, latency and IOPS in fio's format (`write_bw_log`, `write_lat_log`,
//! `write_iops_log`).
//!
//! ```text
//! NAME_bw.N.log      milliseconds, bandwidth, direction, request's bytes, [offset,] 0
//! NAME_lat.N.log     milliseconds, latency in ns, ...; NAME_clat.N.log the same;
//!                    NAME_slat.N.log 0 (submission takes no time)
//! NAME_iops.N.log    milliseconds, 1, ...; with averages a second's requests
//! ```
//!
//! N is fio's number of the job's instance. Each request has a line, at its completion time since
//! the start of the measurement. With `log_avg_msec`, each direction has a line per window
//! (`stat.c`: `add_log_sample`, `__add_samples`; `iolog.c`: `flush_samples`). The first completion
//! after a window ends it. Latencies after the last such request get a line at the job's end
//! (`finalize_logs`). Requests in flight at the end of the time therefore often make two lines of
//! one millisecond, in fio too. As in fio, bandwidth is in kB/s for a request and in KiB/s for a
//! window. Requests stay in memory until they complete, so the queue depth bounds memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use ssd::Nanos;
use workload::IoRequest;
use workload::fio::{Job, LogChoice};

use experiment::error::LabError;

const MILLISECOND_NS: Nanos = 1_000_000;

/// Request in flight, ordered by completion time and submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LoggedRequest {
    at: Nanos,
    sequence: u64,
    latency_ns: Nanos,
    direction: usize,
    bytes: u64,
    offset_bytes: u64,
}

/// Counts of a direction since its last line.
#[derive(Clone, Copy, Debug, Default)]
struct LogWindow {
    requests: u64,
    bytes: u64,
    /// Requests since the last latency line. A completion ends such a line, not a window.
    latencies: u64,
    latency_ns: u128,
    /// Start of that line's window.
    latency_from_ms: u64,
}

struct FioLogFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl FioLogFile {
    fn create(path: PathBuf) -> Result<FioLogFile, LabError> {
        let file = File::create(&path).map_err(|source| LabError::output(&path, source))?;
        let file = BufWriter::new(file);
        Ok(FioLogFile { path, file })
    }

    fn line(&mut self, ms: u64, value: u64, direction: usize, rest: &str) -> Result<(), LabError> {
        let written = writeln!(self.file, "{ms}, {value}, {direction}, {rest}, 0");
        written.map_err(|source| LabError::output(&self.path, source))
    }

    fn close(mut self) -> Result<(), LabError> {
        self.file.flush().map_err(|source| LabError::output(&self.path, source))
    }
}

/// Logs of one instance of a job.
pub(super) struct FioLog {
    bandwidth: Option<FioLogFile>,
    /// lat, clat, slat.
    latency: Option<[FioLogFile; 3]>,
    requests: Option<FioLogFile>,
    window_ms: u64,
    with_offset: bool,
    sequence: u64,
    on_their_way: BinaryHeap<Reverse<LoggedRequest>>,
    windows: [LogWindow; 3],
    /// End of the window of bandwidth and IOPS.
    window_until_ms: u64,
    /// Time of the last completion or of the job's end.
    last_ms: u64,
}

impl FioLog {
    /// Creates the files of an instance. Replaces those of another run.
    pub(super) fn create(job: &Job, thread_number: u32) -> Result<FioLog, LabError> {
        let choice: &LogChoice = &job.logs;
        let file = |prefix: &Option<String>, kind: &str| -> Result<Option<FioLogFile>, LabError> {
            let prefix = prefix.as_ref().map(|prefix| if prefix.is_empty() { &job.name } else { prefix });
            let path = prefix.map(|prefix| PathBuf::from(format!("{prefix}_{kind}.{thread_number}.log")));
            path.map(FioLogFile::create).transpose()
        };
        let latency = [file(&choice.latency, "lat")?, file(&choice.latency, "clat")?, file(&choice.latency, "slat")?];
        let latency = match latency {
            [Some(all), Some(completion), Some(submission)] => Some([all, completion, submission]),
            _ => None,
        };
        Ok(FioLog {
            bandwidth: file(&choice.bandwidth, "bw")?,
            latency,
            requests: file(&choice.requests, "iops")?,
            window_ms: choice.window_ms,
            with_offset: choice.with_offset,
            sequence: 0,
            on_their_way: BinaryHeap::new(),
            windows: [LogWindow::default(); 3],
            window_until_ms: choice.window_ms,
            last_ms: 0,
        })
    }

    /// Records a submission. `completes_at` counts from the start of the measurement.
    pub(super) fn submitted(&mut self, completes_at: Nanos, latency_ns: Nanos, request: &IoRequest) {
        self.sequence += 1;
        self.on_their_way.push(Reverse(LoggedRequest {
            at: completes_at,
            sequence: self.sequence,
            latency_ns,
            direction: request.operation as usize,
            bytes: u64::from(request.bytes),
            offset_bytes: request.offset_bytes,
        }));
    }

    /// Writes the completions up to `now`, which counts likewise.
    pub(super) fn write_until(&mut self, now: Nanos) -> Result<(), LabError> {
        while let Some(Reverse(entry)) = self.on_their_way.peek().copied().filter(|Reverse(entry)| entry.at <= now) {
            self.on_their_way.pop();
            self.last_ms = entry.at / MILLISECOND_NS;
            if self.window_ms == 0 {
                self.write(&entry)?;
            } else {
                self.average(&entry)?;
            }
        }
        Ok(())
    }

    /// Restarts the measurement with no request in flight. Existing lines stay, as in fio.
    pub(super) fn restart(&mut self) {
        assert!(self.on_their_way.is_empty(), "nothing is in flight");
        self.windows = [LogWindow::default(); 3];
        self.window_until_ms = self.window_ms;
    }

    /// Records the end of the job. `at` counts from the start of the measurement.
    pub(super) fn ended(&mut self, at: Nanos) {
        self.last_ms = self.last_ms.max(at / MILLISECOND_NS);
    }

    /// Writes the remaining lines.
    pub(super) fn close(mut self) -> Result<(), LabError> {
        self.write_until(Nanos::MAX)?;
        if self.window_ms > 0 {
            self.end_windows(self.last_ms)?;
            for direction in 0..self.windows.len() {
                self.write_mean_latency(self.last_ms, direction)?;
            }
        }
        let latency = self.latency.into_iter().flatten();
        let files = latency.chain(self.bandwidth).chain(self.requests);
        files.into_iter().try_for_each(FioLogFile::close)
    }

    fn write(&mut self, entry: &LoggedRequest) -> Result<(), LabError> {
        let ms = entry.at / MILLISECOND_NS;
        let rest =
            if self.with_offset { format!("{}, {}", entry.bytes, entry.offset_bytes) } else { entry.bytes.to_string() };
        let bytes_per_ms = entry.bytes * MILLISECOND_NS / entry.latency_ns.max(1);
        let latency = self.latency.iter_mut().flatten().zip([entry.latency_ns, entry.latency_ns, 0]);
        let others = [(&mut self.bandwidth, bytes_per_ms), (&mut self.requests, 1)];
        let others = others.into_iter().filter_map(|(file, value)| Some((file.as_mut()?, value)));
        for (file, value) in latency.chain(others) {
            file.line(ms, value, entry.direction, &rest)?;
        }
        Ok(())
    }

    fn average(&mut self, entry: &LoggedRequest) -> Result<(), LabError> {
        let ms = entry.at / MILLISECOND_NS;
        self.end_windows(ms)?;
        let window = &mut self.windows[entry.direction];
        window.requests += 1;
        window.bytes += entry.bytes;
        window.latencies += 1;
        window.latency_ns += u128::from(entry.latency_ns);
        assert!(
            ms >= window.latency_from_ms,
            "a completion at {ms} ms is in a window from {} ms",
            window.latency_from_ms
        );
        if ms - window.latency_from_ms >= self.window_ms {
            window.latency_from_ms = ms - ms % self.window_ms;
            self.write_mean_latency(ms, entry.direction)?;
        }
        Ok(())
    }

    /// Columns of a window in place of a request's bytes and offset.
    fn rest_of_window(&self) -> &'static str {
        if self.with_offset { "0, 0" } else { "0" }
    }

    fn write_mean_latency(&mut self, ms: u64, direction: usize) -> Result<(), LabError> {
        let rest = self.rest_of_window();
        let window = &mut self.windows[direction];
        let count = u128::from(std::mem::take(&mut window.latencies));
        let sum_ns = std::mem::take(&mut window.latency_ns);
        if count == 0 {
            return Ok(());
        }
        let mean_ns = ((2 * sum_ns + count) / (2 * count)) as u64;
        let mut files = self.latency.iter_mut().flatten().zip([mean_ns, mean_ns, 0]);
        files.try_for_each(|(file, value)| file.line(ms, value, direction, rest))
    }

    /// Writes the lines of bandwidth and IOPS of a window that ended, if it had requests.
    fn end_windows(&mut self, ms: u64) -> Result<(), LabError> {
        if ms < self.window_until_ms {
            return Ok(());
        }
        let (until_ms, rest) = (self.window_until_ms, self.rest_of_window());
        for (direction, window) in self.windows.iter_mut().enumerate().filter(|(_, window)| window.requests > 0) {
            let [bytes, requests] = [&mut window.bytes, &mut window.requests].map(std::mem::take);
            let per_second = |amount: u64| amount * 1000 / self.window_ms;
            if let Some(file) = &mut self.bandwidth {
                file.line(until_ms, per_second(bytes) / 1024, direction, rest)?;
            }
            if let Some(file) = &mut self.requests {
                file.line(until_ms, per_second(requests), direction, rest)?;
            }
        }
        self.window_until_ms = ms - ms % self.window_ms + self.window_ms;
        Ok(())
    }
}
