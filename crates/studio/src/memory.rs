//! Shares memory between sessions. The memory of a run and its workload is reserved before it is
//! allocated.

use base::HumanBytes;
use experiment::LabError;
use simulate::live::{MemoryAccount, MemoryShare};
use simulate::run::MemoryNeed;

use crate::lane::LANE_STATE_BYTES;

/// Reserves memory for a lane: its run and its page state. Checkpoints of other lanes are dropped
/// for it.
///
/// # Errors
/// The memory is insufficient. The message has a remedy.
pub fn share(memory: &MemoryAccount, need: &MemoryNeed) -> Result<MemoryShare, LabError> {
    let bytes = need.bytes().saturating_add(LANE_STATE_BYTES);
    memory.reserve(bytes).map_err(|left| {
        let problem = format!(
            "the run needs {}, but the sessions have {} left. Run a smaller scaled model (scale 1/512) or a smaller \
             workload, or end another session",
            HumanBytes(bytes),
            HumanBytes(left)
        );
        LabError::invalid("memory", problem)
    })
}
