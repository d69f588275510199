//! Effects of a command on the drive, and its expected completion (result, data, durability).

mod admin;
mod features;
mod io;

use super::judge::{Objection, Submission};
use super::model::{AsyncEvent, EVENT_TYPES, Model, Namespace, TRANSFER_MAX, status};
use super::operation::{Command, DirectiveReceive, GetFeature, GetLog, Range, SetFeature};

/// A successful completion as the drive gave it.
#[derive(Clone, Debug)]
pub struct Success {
    /// Dwords 0 and 1.
    pub result: u64,
    /// Data for the host.
    pub data: Vec<u8>,
    /// The completion waits for durability.
    pub durable: bool,
}

/// Result of a check. The error describes the difference.
pub type Check = Result<(), String>;

/// Checks that two values are equal.
pub fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Check {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what} is {found:?}, must be {expected:?}"))
}

/// Checks that two byte strings are equal.
pub fn same_bytes(what: &str, found: &[u8], expected: &[u8]) -> Check {
    // The common case, and much faster than a byte-wise comparison.
    if found == expected {
        return Ok(());
    }
    equal(&format!("{what}: length"), found.len(), expected.len())?;
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => {
            let end = (at + 16).min(found.len());
            Err(format!("{what}: from byte {at} on {:02x?}, must be {:02x?}", &found[at..end], &expected[at..end]))
        }
    }
}

/// Direction of a command's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    None,
    ToDrive,
    ToHost,
}

impl Model {
    /// Data transfer of a valid command, as the bytes of data and of metadata in a separate buffer.
    pub fn transfer(&self, controller: u16, submission: &Submission) -> (Way, u64, u64) {
        let to_host = |bytes: u64| {
            if bytes == 0 { (Way::None, 0, 0) } else { (Way::ToHost, bytes, 0) }
        };
        let of_blocks = |way: Way, nsid: u32, range: Range| {
            let namespace = self.active(controller, nsid);
            let fits = |its: &&Namespace| u64::from(range.count) * its.block_bytes() <= TRANSFER_MAX;
            namespace.filter(fits).map_or((Way::None, 0, 0), |namespace| {
                let (data, metadata) = namespace.transfer_bytes(range.count.into());
                (way, data, metadata)
            })
        };
        match &submission.command {
            Command::Read { nsid, range } => of_blocks(Way::ToHost, *nsid, *range),
            Command::Write { nsid, range, .. } | Command::Compare { nsid, range, .. } => {
                of_blocks(Way::ToDrive, *nsid, *range)
            }
            Command::HandleStatus { nsid, operation: 1, dwords } => {
                let handles = self.active(controller, *nsid).map_or(0, |namespace| namespace.handles.len());
                let descriptors = handles as u64 * u64::from(self.configuration().groups);
                to_host((16 + 32 * descriptors).min(u64::from(*dwords) * 4))
            }
            Command::Identify { .. } => to_host(4096),
            Command::GetLog(GetLog { dwords, .. }) if u64::from(*dwords) * 4 > TRANSFER_MAX => (Way::None, 0, 0),
            Command::GetLog(GetLog { dwords, .. }) => to_host(u64::from(*dwords) * 4),
            Command::DirectiveReceive(DirectiveReceive { dwords, .. }) => to_host((u64::from(*dwords) * 4).min(4096)),
            Command::GetFeature(GetFeature { select: 3, .. }) => (Way::None, 0, 0),
            Command::GetFeature(GetFeature { feature, dword11, .. }) => to_host(match feature {
                0x0e => 8,
                0x16 => 512,
                0x1e => u64::from(dword11 >> 16 & 0xff).min(EVENT_TYPES.len() as u64) * 2,
                0x81 if dword11 & 1 == 1 => 16,
                0x81 => 8,
                _ => 0,
            }),
            _ if submission.data.is_empty() => (Way::None, 0, 0),
            _ => (Way::ToDrive, submission.data.len() as u64, 0),
        }
    }

    /// Applies a successful command without objections.
    pub fn apply(&mut self, controller: u16, submission: &Submission, success: &Success) -> Check {
        let (way, data, metadata) = self.transfer(controller, submission);
        let expected_bytes = if way == Way::ToHost { data + metadata } else { 0 };
        equal("bytes for the host", success.data.len() as u64, expected_bytes)?;
        let durable = self.must_be_durable(&submission.command);
        equal("waits for durability", success.durable, durable)?;
        if !has_result(&submission.command) {
            equal("result", success.result, 0)?;
        }
        if submission.command.is_admin() {
            self.apply_admin(controller, submission, success)
        } else {
            self.apply_io(submission, success)
        }
    }

    /// True if a command's completion promises durability.
    pub fn must_be_durable(&self, command: &Command) -> bool {
        let through = match command {
            Command::Flush { .. } => true,
            Command::Write { fua, .. } | Command::WriteZeroes { fua, .. } | Command::Copy { fua, .. } => {
                *fua || !self.cache_is_on()
            }
            // Erased data must not come back.
            Command::Manage { .. } | Command::Format(_) => true,
            // The cache is flushed before it is disabled. Lost data of a protected namespace could
            // not be written again.
            Command::SetFeature(SetFeature { feature: 0x06, dword11, .. }) => dword11 & 1 == 0,
            Command::SetFeature(SetFeature { feature: 0x84, dword11, .. }) => dword11 & 7 == 1,
            _ => false,
        };
        through && self.drive.cached
    }

    // -------------------------------------------------------------------------- after failures --

    /// Applies the effects of a command that fails with one of its objections.
    pub fn apply_failure(&mut self, submission: &Submission, found: Objection) {
        let Objection { status, do_not_retry } = found;
        if let Command::Compare { nsid, range, .. } = submission.command
            && status == status::COMPARE_FAILURE
        {
            // The data was read, and the command is completed.
            self.count_read(nsid, range);
        }
        // Blocks marked by Write Uncorrectable stay unreadable, and are no media errors.
        let of_media = matches!(status, status::WRITE_FAULT | status::UNRECOVERED_READ) && !do_not_retry;
        if !of_media {
            return;
        }
        self.counters.media_errors += 1;
        // The storage failed when the data was about to be placed.
        match submission.command {
            Command::Write { nsid, placement, .. }
            | Command::WriteZeroes { nsid, placement, .. }
            | Command::Copy { nsid, placement, .. } => {
                self.choose_placement(nsid, placement);
            }
            _ => {}
        }
    }

    /// An event reports invalid doorbell writes.
    pub fn note_doorbell(&mut self, controller: u16, event: AsyncEvent) {
        self.controllers.get_mut(&controller).expect("connected").raise(event);
    }
}

/// True if completion dword 0 or 1 has a result.
fn has_result(command: &Command) -> bool {
    matches!(
        command,
        Command::GetFeature(_)
            | Command::SetFeature(SetFeature { feature: 7, .. })
            | Command::AsyncEvent
            | Command::Abort { .. }
            | Command::Create(_)
    )
}
