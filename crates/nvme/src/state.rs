//! The non-volatile state of a subsystem, which must survive a power cycle. It excludes data and
//! mapping.
//!
//! [`crate::media::Media::store_state`] stores the state before the completion of each command that
//! changed it. Checkpoints store it too, for the counters. The form is a version followed by
//! postcard.

use std::collections::{BTreeMap, BTreeSet};

use nvme_spec::command::SanitizeCdw10;
use nvme_spec::log::DeviceSelfTestLog;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::controller::{HostIdentity, HostTransport};
use crate::fdp::FdpState;
use crate::latency_monitor::LatencyMonitor;
use crate::media::MonotonicCounters;
use crate::namespaces::Namespaces;
use crate::setup::{COUNT_MAX, NAMESPACES_MAX};

/// Version of the stored form. It grows with every change of a stored type.
const VERSION: u32 = 4;

/// The non-volatile state. See the module documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NonVolatileState {
    /// Namespaces of the drive.
    pub namespaces: Namespaces,
    /// Flexible Data Placement settings and event logs.
    pub fdp: FdpState,
    /// Saved feature values, by feature identifier and a second key. The second key is the
    /// namespace, or another selector of the feature (see `admin::features`).
    pub saved_features: BTreeMap<(u8, u32), u32>,
    /// Counters of the SMART log.
    pub smart: SmartCounters,
    /// The last sanitize operation.
    pub sanitize: SanitizeOutcome,
    /// Results of device self-tests, newest first, at most 20.
    pub self_tests: Vec<SelfTest>,
    /// Last host of each I/O controller, by controller identifier. A returning host gets the same
    /// controller with its attached namespaces.
    pub holders: BTreeMap<u16, (HostTransport, HostIdentity)>,
    /// Namespaces and controllers whose attachment comes only from another controller of the same
    /// host.
    pub inherited: BTreeSet<(u32, u16)>,
    /// Latency monitor, which records slow commands.
    pub latency_monitor: LatencyMonitor,
}

/// Counters of the SMART log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SmartCounters {
    /// Bytes that hosts read.
    pub host_bytes_read: u64,
    /// Bytes that hosts wrote.
    pub host_bytes_written: u64,
    /// Read and Compare commands.
    pub read_commands: u64,
    /// Host write commands.
    pub write_commands: u64,
    /// Write commands that did not start and end at mapping unit boundaries.
    pub unaligned_writes: u64,
    /// Power-on time before the current start, in nanoseconds.
    pub powered_on_ns: u64,
    /// Estimated time of command processing, in nanoseconds.
    pub busy_ns: u64,
    /// Starts of the drive.
    pub power_cycles: u64,
    /// Starts after a missing shutdown.
    pub unsafe_shutdowns: u64,
    /// Commands that failed because of the storage.
    pub media_errors: u64,
    /// Error log entries over the drive's lifetime.
    pub error_log_entries: u64,
    #[serde(skip)]
    media_errors_before: u64,
}

impl SmartCounters {
    pub(crate) fn start(&mut self) {
        self.power_cycles += 1;
        self.media_errors_before = self.media_errors;
    }

    pub(crate) fn has_new_media_errors(&self) -> bool {
        assert!(self.media_errors >= self.media_errors_before, "counters never fall");
        self.media_errors > self.media_errors_before
    }

    /// Raises counters to values that hosts read earlier. Used after a crash lost the stored
    /// counters.
    pub fn raise(&mut self, at_least: &MonotonicCounters) {
        self.host_bytes_read = self.host_bytes_read.max(at_least.host_bytes_read);
        self.host_bytes_written = self.host_bytes_written.max(at_least.host_bytes_written);
        self.read_commands = self.read_commands.max(at_least.read_commands);
        self.write_commands = self.write_commands.max(at_least.write_commands);
    }
}

/// Result of the last sanitize operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SanitizeOutcome {
    /// The drive was never sanitized.
    #[default]
    Never,
    /// The operation is running. It restarts after a power loss.
    Running {
        /// Command dword 10 of the Sanitize command (action, AUSE, NDAS).
        dword10: u32,
    },
    /// The operation succeeded.
    Succeeded {
        /// Command dword 10 of the Sanitize command.
        dword10: u32,
        /// A write followed the operation.
        written_since: bool,
    },
    /// The operation failed.
    Failed {
        /// Command dword 10 of the Sanitize command.
        dword10: u32,
        /// The host left the failure mode (Exit Failure Mode).
        exited: bool,
    },
}

/// Result of a device self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfTest {
    /// Self-test code, 1 short, 2 extended.
    pub code: u8,
    /// Result code of the standard, such as 0 for success and 1 for an abort by the host.
    pub result: u8,
    /// Power-on hours at the end of the test.
    pub power_on_hours: u64,
    /// Namespace under test.
    pub nsid: u32,
}

/// Stored state that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    /// The state comes from another version of WARP.
    #[error("the stored state has version {found}, but this program reads version {VERSION}")]
    Version {
        /// Version of the stored state.
        found: u32,
    },
    /// The state is damaged.
    #[error("the stored state is damaged ({0})")]
    Damaged(String),
}

impl NonVolatileState {
    /// Removes inherited attachments, because a restart ends all controllers.
    pub(crate) fn end_inheritances(&mut self) {
        for (nsid, controller) in std::mem::take(&mut self.inherited) {
            if let Some(namespace) = self.namespaces.find_mut(nsid) {
                namespace.attached.remove(&controller);
            }
        }
    }

    /// Serializes the state.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        bytes.extend(postcard::to_stdvec(self).expect("a state serializes"));
        bytes
    }

    /// Deserializes the state.
    ///
    /// # Errors
    /// The state has another version, or is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<NonVolatileState, StateError> {
        let Some((version, rest)) = bytes.split_first_chunk::<4>() else {
            return Err(StateError::Damaged("it ends early".to_string()));
        };
        let found = u32::from_le_bytes(*version);
        if found != VERSION {
            return Err(StateError::Version { found });
        }
        let state: NonVolatileState =
            postcard::from_bytes(rest).map_err(|error| StateError::Damaged(error.to_string()))?;
        state.check_numbers().map_err(StateError::Damaged)?;
        Ok(state)
    }

    fn check_numbers(&self) -> Result<(), String> {
        self.namespaces.check_numbers()?;
        let smart = &self.smart;
        let counters = [
            self.namespaces.created,
            smart.host_bytes_read,
            smart.host_bytes_written,
            smart.read_commands,
            smart.write_commands,
            smart.unaligned_writes,
            smart.powered_on_ns,
            smart.busy_ns,
            smart.power_cycles,
            smart.unsafe_shutdowns,
            smart.media_errors,
            smart.error_log_entries,
            self.fdp.events.host().overwritten(),
            self.fdp.events.controller().overwritten(),
        ];
        if let Some(counter) = counters.iter().find(|counter| **counter > COUNT_MAX) {
            return Err(format!("a counter is {counter}, which is impossible"));
        }
        self.fdp.events.check()?;
        if self.self_tests.len() > DeviceSelfTestLog::default().result.len() {
            return Err("the state has more self-test results than the log can contain".to_string());
        }
        if self.inherited.iter().any(|(nsid, _)| !(1..=NAMESPACES_MAX).contains(nsid)) {
            return Err("the state has an impossible inherited namespace".to_string());
        }
        self.latency_monitor.check()
    }
}

impl SanitizeOutcome {
    /// Sanitize command that began the operation, or zero for none.
    pub(crate) fn command(&self) -> SanitizeCdw10 {
        SanitizeCdw10::from_bits(match *self {
            SanitizeOutcome::Never => 0,
            SanitizeOutcome::Running { dword10 }
            | SanitizeOutcome::Succeeded { dword10, .. }
            | SanitizeOutcome::Failed { dword10, .. } => dword10,
        })
    }

    /// Records a write after a successful sanitize, which ends "global data erased". Returns true
    /// for the first such write.
    pub(crate) fn note_write(&mut self) -> bool {
        match self {
            SanitizeOutcome::Succeeded { written_since, .. } => !std::mem::replace(written_since, true),
            _ => false,
        }
    }

    pub(crate) fn notes_writes(&self) -> bool {
        matches!(self, SanitizeOutcome::Succeeded { written_since: false, .. })
    }
}
