//! Files of a characterization, for the fit and for publication.
//!
//! ```text
//! drive.json, journal.jsonl, jobs/PROBE.fio, samples/PROBE.parquet, measurements.csv, times.csv
//! ```
//!
//! `docs/reference/characterization.md` describes each column. A file is replaced as a whole, so a
//! reader never meets half of one.

use std::fs::create_dir_all;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use analysis::export::{ExportTable, write_parquet};
use experiment::files::write_atomically;

use crate::CharacterizeError;
use crate::identity::DriveIdentity;
use crate::journal::{Journal, ProbeResult, ProbeSample, WafResult};
use crate::plan::{Plan, ProbeWork};

/// Standard deviation of a ratio of rates, as a share of it, without a counter of media bytes. The
/// ratios of a served drive with a known write amplification were up to 8 % off.
const RATE_SIGMA: f64 = 0.05;
/// Probes with other request sizes than `uniform`, or with writes that the buffer may absorb.
const OTHER_REQUESTS: [&str; 5] = ["sequential", "hot_overwrite", "blocks_large", "blocks_medium", "blocks_small"];

#[derive(Clone, Debug)]
pub struct ResultFolder {
    path: PathBuf,
}

impl ResultFolder {
    /// Creates the folder, or takes an existing one.
    pub fn create(path: &Path) -> Result<ResultFolder, CharacterizeError> {
        for part in ["jobs", "samples"] {
            let failed = |source| CharacterizeError::File { path: path.display().to_string(), source };
            create_dir_all(path.join(part)).map_err(failed)?;
        }
        Ok(ResultFolder { path: path.to_path_buf() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn journal_in(folder: &Path) -> PathBuf {
        folder.join("journal.jsonl")
    }

    pub fn job(&self, probe: &str) -> PathBuf {
        self.path.join("jobs").join(format!("{probe}.fio"))
    }

    pub fn write(&self, path: &Path, text: &str) -> Result<(), CharacterizeError> {
        Ok(write_atomically(path, |out| out.write_all(text.as_bytes()))?)
    }

    /// Prepares an existing folder to continue. The files of its completed probes are complete
    /// afterwards.
    ///
    /// # Errors
    /// A job file is not that of its completed probe.
    pub fn restore(&self, plan: &Plan, journal: &Journal) -> Result<(), CharacterizeError> {
        for (name, _) in journal.results() {
            self.write_samples(name, &journal.samples(name))?;
            let work = plan.probes.iter().find(|probe| probe.name == name).map(|probe| &probe.work);
            let Some(ProbeWork::Job { text, .. }) = work else { continue };
            let path = self.job(name);
            match base::input::read_text(&path, base::input::TEXT_BYTES_MAX) {
                Ok(found) if found == *text => {}
                Err(error) if error.kind() == ErrorKind::NotFound => self.write(&path, text)?,
                _ => {
                    return Err(CharacterizeError::Refused(format!(
                        "{} is not the job of the completed probe {name}, perhaps because it was cut or edited. \
                         Remove the file, and the same command writes it again",
                        path.display()
                    )));
                }
            }
        }
        Ok(())
    }

    /// Writes all files but the journal and the jobs.
    pub fn update(&self, drive: &DriveIdentity, journal: &Journal) -> Result<(), CharacterizeError> {
        let mut drive = drive.clone();
        for (_, outcome) in journal.results() {
            if let (ProbeResult::ReclaimUnit { bytes }, Some(fdp)) = (outcome, &mut drive.fdp) {
                fdp.reclaim_unit_writable_bytes = *bytes;
            }
        }
        let json = serde_json::to_string_pretty(&drive).expect("an identity has only names and numbers");
        self.write(&self.path.join("drive.json"), &(json + "\n"))?;
        self.write(&self.path.join("measurements.csv"), &measurements(&drive, journal))?;
        self.write(&self.path.join("times.csv"), &times(journal))?;
        Ok(())
    }

    pub fn write_samples(&self, probe: &str, samples: &[ProbeSample]) -> Result<(), CharacterizeError> {
        let path = self.path.join("samples").join(format!("{probe}.parquet"));
        // The first row is the reading before the workload.
        let counter = |value: Option<u64>| value.map(|_| 0);
        let begin = samples.first().map(|first| ProbeSample {
            media_bytes: counter(first.media_bytes),
            erased_bytes: counter(first.erased_bytes),
            ..ProbeSample::default()
        });
        let all: Vec<ProbeSample> = begin.iter().chain(samples).copied().collect();
        let waf = |index: usize| interval_waf(&all[index.checked_sub(1)?], &all[index]);
        let rows: Vec<(ProbeSample, Option<f64>)> =
            all.iter().enumerate().map(|(index, sample)| (*sample, waf(index))).collect();
        let table = ExportTable::single_batch(&rows, |columns| {
            columns
                .u64("host_bytes", |row| row.0.host_bytes)
                .optional_u64("media_bytes", |row| row.0.media_bytes)
                .optional_u64("erased_bytes", |row| row.0.erased_bytes)
                .f64("seconds", |row| row.0.seconds)
                .optional_f64("waf", |row| row.1)
        });
        Ok(write_parquet(&path, table)?)
    }
}

/// Write amplification between two samples. `None` without a counter.
fn interval_waf(before: &ProbeSample, after: &ProbeSample) -> Option<f64> {
    let host = after.host_bytes.checked_sub(before.host_bytes).filter(|host| *host > 0)?;
    let media = after.media_bytes?.checked_sub(before.media_bytes.unwrap_or(0))?;
    Some(media as f64 / host as f64)
}

fn measurements(drive: &DriveIdentity, journal: &Journal) -> String {
    let mut text = String::from(
        "probe,workload,waf,sigma,relative_to,drive_writes,precondition_drive_writes,tail_drive_writes,steady,use,source\n",
    );
    let of_uniform = journal.results().find_map(|(probe, outcome)| match outcome {
        ProbeResult::Waf(result) if probe == "uniform" => Some(result.value),
        _ => None,
    });
    for (probe, outcome) in journal.results() {
        let ProbeResult::Waf(result) = outcome else { continue };
        let (waf, sigma, relative_to) = match (&drive.counter, of_uniform) {
            (Some(_), _) => (result.value, result.sigma, ""),
            (None, Some(_)) if probe == "uniform" => {
                text += &row(drive, probe, result, ",", "");
                continue;
            }
            // Rates compare the work of the flash only between requests of one size in a steady state.
            (None, Some(uniform)) if result.is_steady && !OTHER_REQUESTS.contains(&probe) => {
                let ratio = result.value / uniform;
                (ratio, (result.sigma / uniform).max(RATE_SIGMA * ratio), "uniform")
            }
            (None, _) => continue,
        };
        text += &row(drive, probe, result, &format!("{waf:.5},{sigma:.5}"), relative_to);
    }
    text
}

/// Line of a probe, with its write amplification and standard deviation as they are printed.
fn row(drive: &DriveIdentity, probe: &str, result: &WafResult, waf: &str, relative_to: &str) -> String {
    let usage = if result.is_holdout { "holdout" } else { "fit" };
    format!(
        "{probe},jobs/{probe}.fio,{waf},{relative_to},{:.4},1,{:.4},{},{usage},\"measured {}, probe {probe}\"\n",
        result.drive_writes, result.tail_drive_writes, result.is_steady, drive.date
    )
}

fn times(journal: &Journal) -> String {
    let mut text = String::from("probe,what,unit,value,block_bytes,queue_depth\n");
    for (probe, outcome) in journal.results() {
        let ProbeResult::Times { rows } = outcome else { continue };
        for row in rows {
            let (what, unit, value) = (&row.what, &row.unit, row.value);
            text += &format!("{probe},{what},{unit},{value:.4},{},{}\n", row.block_bytes, row.queue_depth);
        }
    }
    text
}
