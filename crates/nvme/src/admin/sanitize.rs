//! Sanitize, which makes all data ever written unreadable, in the background.
//!
//! ```text
//! Sanitize command -> state Running (stored) -> each tick erases a piece -> durable
//!                                            -> Succeeded or Failed (stored)
//! ```
//!
//! Block erase and cryptographic erase have the same effect on the whole drive, allocated or not.
//! The device deallocates the pages, and the storage discards their data and metadata. The
//! operation survives resets and begins again after a restart.
//!
//! Overwrite and media verification are not supported. Feature 17h selects the treatment of
//! sanitizing without deallocation. The drive refuses it, or deallocates anyway.

use nvme_spec::command::{SanitizeAction, SanitizeCdw10, SubmissionEntry};
use nvme_spec::feature::SanitizeConfig;
use nvme_spec::{FeatureId, LogId, Status};

use super::self_test::SelfTestEnd;
use crate::completion::{CommandResult, Execution};
use crate::error::{Failure, Parameter};
use crate::media::Media;
use crate::namespace::BlockSet;
use crate::state::SanitizeOutcome;
use crate::subsystem::Subsystem;

/// Fewest bytes erased in one tick, few enough that no command waits long for a tick.
const PIECE_BYTES_MIN: u64 = 256 << 20;
/// Most pieces of a whole drive. They bound the operation to half a minute of ticks for every
/// capacity.
const PIECES_MAX: u64 = 512;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SanitizeRequest {
    ExitFailureMode,
    Start(SanitizeCdw10),
}

pub(super) fn parse(entry: &SubmissionEntry) -> Result<SanitizeRequest, Failure> {
    let dword = SanitizeCdw10::from_bits(entry.cdw10.get());
    match SanitizeAction::from_u8(dword.sanact()) {
        Some(SanitizeAction::ExitFailureMode) => return Ok(SanitizeRequest::ExitFailureMode),
        Some(SanitizeAction::BlockErase | SanitizeAction::CryptoErase) => {}
        _ => {
            let cause = format!("sanitize action {} is not supported (SANICAP)", dword.sanact());
            return Err(Failure::invalid_field(Parameter::dword(10, 0), cause));
        }
    }
    if dword.emvs() {
        let cause = "the media verification state is not supported (SANICAP.VERS)";
        return Err(Failure::invalid_field(Parameter::dword(10, 10), cause));
    }
    Ok(SanitizeRequest::Start(dword))
}

/// True if a log page may be read during a sanitize operation or after a failed one. These pages
/// have no user data.
pub(super) fn is_log_allowed(log: LogId) -> bool {
    matches!(
        log,
        LogId::SupportedLogPages
            | LogId::ErrorInformation
            | LogId::SmartHealth
            | LogId::FirmwareSlot
            | LogId::ChangedAttachedNamespaceList
            | LogId::CommandsSupportedAndEffects
            | LogId::FeatureIdentifiersSupportedAndEffects
            | LogId::NvmeMiCommandsSupportedAndEffects
            | LogId::SanitizeStatus
    )
}

fn piece_pages(capacity_bytes: u64, page_bytes: u64) -> u32 {
    let bytes = PIECE_BYTES_MIN.max(capacity_bytes.div_ceil(PIECES_MAX));
    assert!(bytes * PIECES_MAX >= capacity_bytes, "the pieces are the drive");
    bytes.div_ceil(page_bytes) as u32
}

impl Subsystem {
    pub(crate) fn check_no_sanitize(&self) -> Result<(), Failure> {
        if self.background.is_sanitizing() {
            return Err(Failure::new(Status::SANITIZE_IN_PROGRESS, "a sanitize operation is in progress").retryable());
        }
        match self.state.sanitize {
            SanitizeOutcome::Failed { exited: false, .. } => {
                let cause = "the last sanitize operation failed. Sanitize again, or exit failure mode";
                Err(Failure::new(Status::SANITIZE_FAILED, cause))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn start_sanitize(&mut self, request: &SanitizeRequest) -> CommandResult {
        if self.background.is_sanitizing() {
            let cause = "a sanitize operation is already in progress";
            return Err(Failure::new(Status::SANITIZE_IN_PROGRESS, cause).retryable());
        }
        let &SanitizeRequest::Start(start) = request else {
            return self.exit_failure_mode();
        };
        if start.ndas() && !self.sanitizes_despite_no_deallocate() {
            let cause = "feature 17h inhibits a sanitize operation without deallocation (SANICAP.NDI)";
            return Err(Failure::invalid_field(Parameter::dword(10, 9), cause));
        }
        if self.is_in_restricted_failure() && start.ause() {
            let cause = "the last sanitize operation failed in restricted mode. Sanitize again without allowing an \
                         unrestricted exit";
            return Err(Failure::new(Status::SANITIZE_FAILED, cause).at(Parameter::dword(10, 3)));
        }
        let namespaces = &self.state.namespaces;
        namespaces.check_unprotected(namespaces.iter().map(|(nsid, _)| nsid))?;
        let before = self.state.sanitize;
        self.state.sanitize = SanitizeOutcome::Running { dword10: start.into_bits() };
        self.store_state_or(|subsystem| subsystem.state.sanitize = before)?;
        self.end_self_test(SelfTestEnd::Sanitized, |_| true);
        self.controllers.forget_sanitize_events();
        self.background.begin_sanitize(&self.state.sanitize, self.device.layout().logical_pages);
        assert!(self.background.is_sanitizing(), "a recorded sanitize operation is in progress");
        Ok(Execution::DONE)
    }

    /// No-Deallocate Response Mode of feature 17h. True if a request without deallocation is
    /// carried out with deallocation and a later warning. False if it is an error.
    fn sanitizes_despite_no_deallocate(&self) -> bool {
        let configured = self.shared_features.value(FeatureId::SanitizeConfig, 0).unwrap_or(0);
        SanitizeConfig::from_bits(configured).nodrm()
    }

    /// True if the last sanitize operation failed and did not allow an unrestricted exit (AUSE).
    fn is_in_restricted_failure(&self) -> bool {
        match self.state.sanitize {
            SanitizeOutcome::Failed { dword10, .. } => !SanitizeCdw10::from_bits(dword10).ause(),
            _ => false,
        }
    }

    fn exit_failure_mode(&mut self) -> CommandResult {
        if self.is_in_restricted_failure() {
            let cause = "the failed sanitize operation was in restricted mode, so exit is not possible. Sanitize again";
            return Err(Failure::new(Status::SANITIZE_FAILED, cause));
        }
        let before = self.state.sanitize;
        if let SanitizeOutcome::Failed { exited, .. } = &mut self.state.sanitize {
            *exited = true;
            self.store_state().inspect_err(|_| self.state.sanitize = before)?;
        }
        Ok(Execution::DONE)
    }

    /// Erases the next piece of the drive, if a sanitize operation runs.
    ///
    /// The last step waits for durability with the subsystem locked. A power loss must not undo a
    /// sanitize operation that was reported as completed.
    pub(crate) fn continue_sanitize(&mut self) {
        let piece_pages = piece_pages(self.capacity_bytes(), self.page_bytes());
        let Some(sanitizing) = &mut self.background.sanitize else {
            return;
        };
        let (piece, is_last) = sanitizing.next_piece(piece_pages);
        match self.erase_pages(piece) {
            Ok(()) if !is_last => {}
            Ok(()) => {
                let durable = self.media.flush_handle();
                self.finish_sanitize(durable.is_none_or(|durable| durable.flush().is_ok()));
            }
            Err(_) => self.finish_sanitize(false),
        }
    }

    fn finish_sanitize(&mut self, succeeded: bool) {
        let SanitizeOutcome::Running { dword10 } = self.state.sanitize else {
            unreachable!("a sanitize operation is in progress");
        };
        let ended = self.background.sanitize.take();
        assert!(ended.is_some(), "only a sanitize operation in progress ends");
        let failed = SanitizeOutcome::Failed { dword10, exited: false };
        self.state.sanitize = failed;
        if succeeded {
            self.state.sanitize = SanitizeOutcome::Succeeded { dword10, written_since: false };
            for (_, namespace) in self.state.namespaces.iter_mut() {
                namespace.uncorrectable = BlockSet::default();
            }
        }
        // A result that cannot be stored does not count. The drive stays in the failure mode, and a
        // restart begins the operation again.
        if self.store_state().is_err() {
            self.state.sanitize = failed;
        }
        let ended = !matches!(self.state.sanitize, SanitizeOutcome::Running { .. });
        assert!(ended && !self.background.is_sanitizing(), "no sanitize operation is in progress");
        let succeeded = matches!(self.state.sanitize, SanitizeOutcome::Succeeded { .. });
        let deallocated = succeeded && self.state.sanitize.command().ndas();
        self.controllers.note_sanitize_completed(deallocated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_drive_is_erased_in_large_pieces() {
        assert_eq!(piece_pages(8 << 30, 4096), 1 << 16);
        let pages = 7_680_000_000_000 / 4096;
        let pieces = pages / u64::from(piece_pages(pages * 4096, 4096));
        assert!((500..=512).contains(&pieces), "{pieces}");
    }
}
