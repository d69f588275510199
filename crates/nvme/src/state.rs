//! The non-volatile state of a subsystem: what a power cycle must not change, apart from data and mapping.
//!
//! It is stored through [`crate::media::Media::keep`] whenever a command changes it, before the command completes, and
//! at every checkpoint (for the counters). The form is postcard behind a version.

use std::collections::{BTreeMap, BTreeSet};

use nvme_spec::command::SanitizeCdw10;
use nvme_spec::log::DeviceSelfTestLog;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::controller::{Host, Transport};
use crate::fdp::FdpState;
use crate::latency_monitor::LatencyMonitor;
use crate::media::Counters;
use crate::namespaces::Namespaces;
use crate::setup::{COUNT_MAX, NAMESPACES_MAX};

/// Version of the stored form; grows with every change of a stored type.
const VERSION: u32 = 4;

/// See the module.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Persistent {
    /// The namespaces.
    pub namespaces: Namespaces,
    /// Flexible Data Placement: whether, which configuration, the event logs.
    pub fdp: FdpState,
    /// Values of features that were saved: by feature identifier and namespace, or what else a feature has several
    /// values for (see `admin::features`).
    pub saved_features: BTreeMap<(u8, u32), u32>,
    /// Counters of the SMART log.
    pub smart: SmartCounters,
    /// The last sanitize operation.
    pub sanitize: SanitizeOutcome,
    /// The results of device self-tests, newest first; at most 20.
    pub self_tests: Vec<SelfTest>,
    /// The host that had an I/O controller last, by identifier: it has it again when it comes back, and with it the
    /// namespaces that are attached to it.
    pub holders: BTreeMap<u16, (Transport, Host)>,
    /// Namespaces that a controller has only because others of its host have them, with that controller.
    pub inherited: BTreeSet<(u32, u16)>,
    /// Which commands took long.
    pub latency_monitor: LatencyMonitor,
}

/// What the SMART log counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SmartCounters {
    /// Bytes that hosts read.
    pub host_bytes_read: u64,
    /// Bytes that hosts wrote.
    pub host_bytes_written: u64,
    /// Read and Compare commands.
    pub read_commands: u64,
    /// Write commands.
    pub write_commands: u64,
    /// Those of them that did not begin and end with a mapping unit.
    pub unaligned_writes: u64,
    /// Time that the drive was up before this start.
    pub powered_on_ns: u64,
    /// Time that it was busy with commands, estimated.
    pub busy_ns: u64,
    /// Starts.
    pub power_cycles: u64,
    /// Starts that found the drive not shut down.
    pub unsafe_shutdowns: u64,
    /// Commands that failed because the storage did.
    pub media_errors: u64,
    /// Entries ever made in the error log.
    pub error_log_entries: u64,
    /// Media errors before this start.
    #[serde(skip)]
    media_errors_before: u64,
}

impl SmartCounters {
    /// The drive starts.
    pub(crate) fn start(&mut self) {
        self.power_cycles += 1;
        self.media_errors_before = self.media_errors;
    }

    /// Whether the storage failed since the start.
    pub(crate) fn has_new_media_errors(&self) -> bool {
        assert!(self.media_errors >= self.media_errors_before, "counters never fall");
        self.media_errors > self.media_errors_before
    }

    /// Raises the counters to what hosts were told before what is stored was lost, as far as they are below.
    pub fn raise(&mut self, at_least: &Counters) {
        self.host_bytes_read = self.host_bytes_read.max(at_least.host_bytes_read);
        self.host_bytes_written = self.host_bytes_written.max(at_least.host_bytes_written);
        self.read_commands = self.read_commands.max(at_least.read_commands);
        self.write_commands = self.write_commands.max(at_least.write_commands);
    }
}

/// How the last sanitize operation ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SanitizeOutcome {
    /// There never was one.
    #[default]
    Never,
    /// It is under way; after a power loss it begins again.
    Running {
        /// Command dword 10 of the Sanitize command: action, AUSE, NDAS.
        dword10: u32,
    },
    /// It succeeded.
    Succeeded {
        /// Command dword 10.
        dword10: u32,
        /// Whether the drive was written to since.
        written_since: bool,
    },
    /// It failed.
    Failed {
        /// Command dword 10.
        dword10: u32,
        /// Whether the host left the failure mode (Exit Failure Mode).
        exited: bool,
    },
}

/// Result of a device self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfTest {
    /// Self-test code: 1 short, 2 extended.
    pub code: u8,
    /// Result code of the standard: 0 completed without error, 1 aborted by the host, ...
    pub result: u8,
    /// Power-on hours then.
    pub power_on_hours: u64,
    /// Namespace it was for.
    pub nsid: u32,
}

/// Stored state that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    /// Written by another version of WARP.
    #[error("the stored state has version {found}; this program reads version {VERSION}")]
    Version {
        /// The version found.
        found: u32,
    },
    /// It is not what was written.
    #[error("the stored state is damaged ({0})")]
    Damaged(String),
}

impl Persistent {
    /// All controllers are gone: they lose what they had only because others of their hosts had it.
    pub(crate) fn end_inheritances(&mut self) {
        for (nsid, controller) in std::mem::take(&mut self.inherited) {
            if let Some(namespace) = self.namespaces.find_mut(nsid) {
                namespace.attached.remove(&controller);
            }
        }
    }

    /// The stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        bytes.extend(postcard::to_stdvec(self).expect("a state serializes"));
        bytes
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// It is of another version, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Persistent, StateError> {
        let Some((version, rest)) = bytes.split_first_chunk::<4>() else {
            return Err(StateError::Damaged("it ends early".to_string()));
        };
        let found = u32::from_le_bytes(*version);
        if found != VERSION {
            return Err(StateError::Version { found });
        }
        let state: Persistent = postcard::from_bytes(rest).map_err(|error| StateError::Damaged(error.to_string()))?;
        state.check_numbers().map_err(StateError::Damaged)?;
        Ok(state)
    }

    /// Whether the numbers are such that there can be, whatever the drive is like; otherwise which is not.
    fn check_numbers(&self) -> Result<(), String> {
        self.namespaces.check_numbers()?;
        let smart = &self.smart;
        let counters = [
            self.namespaces.created(),
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
            return Err(format!("a counter is {counter}, higher than can be"));
        }
        self.fdp.events.check()?;
        if self.self_tests.len() > DeviceSelfTestLog::default().result.len() {
            return Err("there are more results of self-tests than are kept".to_string());
        }
        if self
            .inherited
            .iter()
            .any(|(nsid, _)| !(1..=NAMESPACES_MAX).contains(nsid))
        {
            return Err("a namespace was inherited that there cannot be".to_string());
        }
        self.latency_monitor.check()
    }
}

impl SanitizeOutcome {
    /// The command that began the operation; zero if there never was one.
    pub(crate) fn command(&self) -> SanitizeCdw10 {
        SanitizeCdw10::from_bits(match *self {
            SanitizeOutcome::Never => 0,
            SanitizeOutcome::Running { dword10 }
            | SanitizeOutcome::Succeeded { dword10, .. }
            | SanitizeOutcome::Failed { dword10, .. } => dword10,
        })
    }

    /// The drive is written to: a successful sanitize is history ("global data erased" no longer holds). Returns
    /// whether it was not before.
    pub(crate) fn note_write(&mut self) -> bool {
        match self {
            SanitizeOutcome::Succeeded { written_since, .. } => !std::mem::replace(written_since, true),
            _ => false,
        }
    }

    /// Whether [`SanitizeOutcome::note_write`] would change something.
    pub(crate) fn notes_writes(&self) -> bool {
        matches!(
            self,
            SanitizeOutcome::Succeeded {
                written_since: false,
                ..
            }
        )
    }
}
