//! The memory that sessions share: what a run takes, its workload included, is set aside before any of it is built.

use base::Bytes;
use experiment::LabError;
use simulate::live::{MemoryAccount, MemoryShare};
use simulate::run::MemoryNeed;

use crate::lane::TOLD_BYTES;

/// Memory for a lane: its run, and what is told of it. Checkpoints of other lanes give way to it.
///
/// # Errors
/// There is not so much: says what to do.
pub fn share(memory: &MemoryAccount, need: &MemoryNeed) -> Result<MemoryShare, LabError> {
    let bytes = need.bytes().saturating_add(TOLD_BYTES);
    memory.take(bytes).map_err(|left| {
        let problem = format!(
            "the run needs {}, and {} of the sessions' memory are left; run a smaller twin (scale 1/512) or a smaller workload, or end \
             another session",
            Bytes(bytes),
            Bytes(left)
        );
        LabError::invalid("memory", problem)
    })
}
