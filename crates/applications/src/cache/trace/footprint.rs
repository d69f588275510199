//! Estimate of a trace's working set, and the key sample that scales it to a wanted size.
//!
//! The estimate reads the first operations and keeps a sample of keys, those with the smallest
//! hashes. The bytes of the sample divided by its share of the hash space estimate the bytes of all
//! keys. The method is that of Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST
//! 2015. Memory does not grow with the files.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use base::FileState;
use rustc_hash::FxHashMap;

use super::{CacheTrace, CacheTraceFiles, CacheTraceFormat};
use workload::WorkloadError;
use workload::trace::spool;

/// Number of operations in the estimate.
const OPERATIONS_MAX: u64 = 1_000_000;
/// Maximum number of keys in a sample. Above it, the sample drops half of the hashes.
const KEYS_MAX: usize = 1 << 16;
/// Maximum number of keys per line.
pub(super) const AMPLIFICATION_MAX: u32 = 65_536;

/// Selection of keys, and their multiplication.
pub(super) struct KeySample {
    /// Keys that each line stands for.
    pub(super) amplification: u32,
    /// Largest hash in the sample.
    pub(super) hash_max: u64,
}

impl KeySample {
    pub(super) fn new(files: &CacheTraceFiles) -> Result<KeySample, WorkloadError> {
        let whole = KeySample { amplification: files.amplification, hash_max: u64::MAX };
        let Some(wanted_bytes) = files.working_set_bytes else {
            return Ok(whole);
        };
        let bytes = known_footprint(files)?;
        if bytes == 0.0 {
            let name = files.files.first().map_or_else(String::new, |file| spool::display_name(file));
            let problem = "requests no object with a size, so the cache would stay empty";
            return Err(WorkloadError::setting(name, problem));
        }
        let ratio = wanted_bytes as f64 / bytes;
        Ok(if ratio >= 1.0 {
            KeySample { amplification: ratio.round().min(f64::from(AMPLIFICATION_MAX)) as u32, ..whole }
        } else {
            KeySample { amplification: 1, hash_max: (ratio * u64::MAX as f64) as u64 }
        })
    }
}

/// Number of cached estimates.
const ESTIMATES_MAX: usize = 64;

/// State of the files and read settings of an estimate.
#[derive(PartialEq)]
struct EstimateInputs {
    files: Vec<FileState>,
    format: CacheTraceFormat,
    skip_bad_lines: bool,
}

impl EstimateInputs {
    /// Returns `None` if the contents may change undetected, such as a stream or a file without
    /// times.
    fn new(files: &CacheTraceFiles) -> Option<EstimateInputs> {
        let state = |file: &PathBuf| FileState::read(file).ok().filter(|_| file.is_file());
        Some(EstimateInputs {
            files: files.files.iter().map(state).collect::<Option<_>>()?,
            format: files.format,
            skip_bad_lines: files.skip_bad_lines,
        })
    }
}

/// Cached [`footprint`], shared by all placements of an experiment. It is computed again only if
/// the files change.
fn known_footprint(files: &CacheTraceFiles) -> Result<f64, WorkloadError> {
    static LOOKS: Mutex<Vec<(EstimateInputs, f64)>> = Mutex::new(Vec::new());
    let Some(look) = EstimateInputs::new(files) else {
        return footprint(files);
    };
    // Held during the estimate, so that other threads wait for the same result.
    let mut looks = LOOKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, bytes)) = looks.iter().find(|(known, _)| *known == look) {
        return Ok(*bytes);
    }
    let bytes = footprint(files)?;
    if looks.len() == ESTIMATES_MAX {
        looks.remove(0);
    }
    looks.push((look, bytes));
    Ok(bytes)
}

/// Estimated bytes of all keys and values, from the first operations.
fn footprint(files: &CacheTraceFiles) -> Result<f64, WorkloadError> {
    let mut trace =
        CacheTrace::new(CacheTraceFiles { amplification: 1, working_set_bytes: None, ..files.clone() }, false)?;
    let mut sizes: FxHashMap<u64, u32> = FxHashMap::default();
    let mut halvings = 0;
    for _ in 0..OPERATIONS_MAX {
        let Some(operation) = trace.next()? else { break };
        let Some(bytes) = operation.bytes.filter(|_| operation.key <= u64::MAX >> halvings) else {
            continue;
        };
        sizes.insert(operation.key, bytes);
        while sizes.len() > KEYS_MAX {
            halvings += 1;
            sizes.retain(|key, _| *key <= u64::MAX >> halvings);
        }
    }
    let bytes: u64 = sizes.values().map(|bytes| u64::from(*bytes)).sum();
    Ok(bytes as f64 * 2f64.powi(halvings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn files_are_looked_at_again_only_when_they_have_changed() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"key,op,size,op_count,key_size\na,SET,92,1,8\n").unwrap();
        let files = CacheTraceFiles {
            files: vec![file.path().to_path_buf()],
            format: CacheTraceFormat::Auto,
            amplification: 1,
            skip_bad_lines: false,
            working_set_bytes: None,
        };
        let bytes = || known_footprint(&files).unwrap();
        assert_eq!(bytes(), 100.0);
        // Changed contents of the same length and time go undetected, so the file is not read
        // again.
        let modified = file.path().metadata().unwrap().modified().unwrap();
        let other = b"key,op,size,op_count,key_size\na,SET,42,1,8\n";
        std::fs::write(file.path(), other).unwrap();
        file.as_file().set_modified(modified).unwrap();
        assert_eq!(bytes(), 100.0);
        file.as_file().set_modified(modified + std::time::Duration::from_secs(1)).unwrap();
        assert_eq!(bytes(), 50.0);
    }
}
