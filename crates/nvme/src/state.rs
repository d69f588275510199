//! The non-volatile state of a subsystem: what a power cycle must not change, apart from data and mapping.
//!
//! It is stored through [`crate::media::Media::keep`] whenever a command changes it, before the command completes, and
//! at every checkpoint (for the counters). The form is postcard behind a version.

use std::collections::{BTreeMap, BTreeSet};

use nvme_spec::command::{SanitizeCdw10, SelfTestCode};
use nvme_spec::log::DeviceSelfTestLog;
use serde::{Deserialize, Serialize};
use ssd::{Layout, Nanos, RuhId};
use thiserror::Error;

use crate::controller::{Host, Transport};
use crate::fdp::FdpState;
use crate::latency_monitor::LatencyMonitor;
use crate::media::Counters;
use crate::namespace::{Extent, Namespace};
use crate::setup::{COUNT_MAX, NAMESPACES_MAX};

/// Version of the stored form; grows with every change of a stored type.
const VERSION: u32 = 4;
/// Time that a short self-test takes: long enough to be seen by a host that looks every second.
const SHORT_SELF_TEST_NS: Nanos = 2_000_000_000;
/// Time that an extended self-test takes; Identify Controller says it in minutes (EDSTT).
pub(crate) const EXTENDED_SELF_TEST_NS: Nanos = 10_000_000_000;

/// See the module.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Persistent {
    /// Namespaces by NSID - 1; created but perhaps not attached.
    pub namespaces: Vec<Option<Namespace>>,
    /// Namespaces ever created: no two have the same globally unique identifier.
    pub namespaces_created: u64,
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
}

impl SmartCounters {
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

/// A self-test under way. A restart of the drive forgets it.
#[derive(Clone, Debug)]
pub(crate) struct RunningTest {
    pub(crate) controller: u16,
    pub(crate) nsid: u32,
    pub(crate) code: SelfTestCode,
    pub(crate) since: Nanos,
}

impl RunningTest {
    /// Time that the test takes.
    pub(crate) fn duration(&self) -> Nanos {
        match self.code {
            SelfTestCode::Short => SHORT_SELF_TEST_NS,
            _ => EXTENDED_SELF_TEST_NS,
        }
    }

    /// Current operation and percent of it, for the Device Self-test log.
    pub(crate) fn progress(&self, now: Nanos) -> (u8, u8) {
        let percent = now.saturating_sub(self.since).min(self.duration()) * 100 / self.duration();
        (self.code.code(), percent as u8)
    }
}

/// A sanitize operation under way. What it is, is in the non-volatile state; how far it is, is not.
#[derive(Debug)]
pub(crate) struct SanitizeProgress {
    /// Pages from the start of the drive that are done; always fewer than there are.
    pages_done: u32,
    pages: u32,
}

impl SanitizeProgress {
    /// The operation that a stored state says is under way: after a restart it begins again.
    pub(crate) fn resumed(outcome: &SanitizeOutcome, pages: u32) -> Option<SanitizeProgress> {
        let running = matches!(outcome, SanitizeOutcome::Running { .. });
        running.then_some(SanitizeProgress { pages_done: 0, pages })
    }

    /// How far it is, in 65536ths (SPROG). FFFFh would say that nothing is under way.
    pub(crate) fn progress(&self) -> u16 {
        let done = (u64::from(self.pages_done) << 16) / u64::from(self.pages);
        done.min(0xfffe) as u16
    }

    /// The next piece to erase, of `pages_max` at most, and whether it is the last.
    pub(crate) fn next_piece(&mut self, pages_max: u32) -> (Extent, bool) {
        assert!(
            self.pages_done < self.pages,
            "something is left until the operation ends"
        );
        let left = self.pages - self.pages_done;
        let piece = Extent {
            first: self.pages_done,
            pages: left.min(pages_max),
        };
        let is_last = piece.pages == left;
        if !is_last {
            self.pages_done += piece.pages;
        }
        (piece, is_last)
    }
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
            if let Some(Some(namespace)) = self.namespaces.get_mut(nsid as usize - 1) {
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
        if self.namespaces.len() > NAMESPACES_MAX as usize {
            return Err(format!(
                "{} namespaces, there are {NAMESPACES_MAX} at most",
                self.namespaces.len()
            ));
        }
        for (nsid, namespace) in (1u32..).zip(&self.namespaces) {
            let problem = namespace.as_ref().map_or(Ok(()), Namespace::check);
            problem.map_err(|problem| format!("namespace {nsid} {problem}"))?;
        }
        let smart = &self.smart;
        let counters = [
            self.namespaces_created,
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

    /// Whether the namespaces can be those of a drive with this device: each is inside the drive and has its pages for itself,
    /// its blocks fit into them, its handles exist, and a private one has at most one controller. Otherwise what does not fit.
    ///
    /// # Errors
    /// A sentence without its end.
    pub fn check_namespaces(&self, layout: &Layout) -> Result<(), String> {
        let mut extents: Vec<Extent> = Vec::new();
        for (nsid, namespace) in (1u32..).zip(&self.namespaces) {
            let Some(namespace) = namespace else { continue };
            let bytes = u128::from(namespace.blocks) << namespace.block_bytes_log2();
            let room = u128::from(namespace.pages()) * u128::from(layout.page_bytes);
            if namespace.blocks == 0 || bytes > room {
                return Err(format!("namespace {nsid} has {bytes} bytes in {room}"));
            }
            let is_known = |handle: &RuhId| handle.0 < layout.handle_count();
            if namespace.placement_handles.is_empty() || !namespace.placement_handles.iter().all(is_known) {
                return Err(format!(
                    "namespace {nsid} has placement handles that the device has not"
                ));
            }
            let controllers = namespace.attached.len();
            if !namespace.shared && controllers > 1 {
                return Err(format!("namespace {nsid} is private to {controllers} controllers"));
            }
            extents.extend(&namespace.extents);
        }
        extents.sort_unstable_by_key(|extent| extent.first);
        let mut free_from = 0;
        for Extent { first, pages } in extents {
            if first < free_from || pages == 0 {
                return Err(format!("namespaces overlap at page {first}"));
            }
            free_from = first.saturating_add(pages);
        }
        if free_from > layout.logical_pages {
            return Err(format!(
                "namespaces reach to page {free_from}, the drive has {}",
                layout.logical_pages
            ));
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_never_says_done() {
        let progress = |pages_done, pages| SanitizeProgress { pages_done, pages }.progress();
        assert_eq!(progress(0, 7), 0);
        assert_eq!(progress(1, 2), 0x8000);
        assert_eq!(progress(u32::MAX - 1, u32::MAX), 0xfffe);
        assert!(SanitizeProgress::resumed(&SanitizeOutcome::Never, 7).is_none());
        assert!(SanitizeProgress::resumed(&SanitizeOutcome::Running { dword10: 2 }, 7).is_some());
    }
}
