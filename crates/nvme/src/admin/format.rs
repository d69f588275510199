//! Format NVM, which changes the LBA format of namespaces and erases their data.
//!
//! All erase types have the same effect. The device deallocates the namespace's pages, and the
//! storage discards their bytes, which then read as zeroes. A cryptographic erase does the same,
//! because the drive has no key to destroy. A format completes with its command.

use nvme_spec::command::{FormatNvmCdw10, SubmissionEntry};
use nvme_spec::{NSID_ALL, Status};

use super::self_test::SelfTestEnd;
use crate::completion::{CommandResult, Execution};
use crate::error::{Failure, Parameter};
use crate::namespace::{BlockSet, FORMATS, PageExtent};
use crate::subsystem::Subsystem;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormatRequest {
    nsid: u32,
    format: u8,
    extended_metadata: bool,
}

pub(super) fn parse(entry: &SubmissionEntry) -> Result<FormatRequest, Failure> {
    /// Highest secure erase setting, cryptographic erase.
    const SES_MAX: u8 = 2;
    let dword = FormatNvmCdw10::from_bits(entry.cdw10.get());
    if dword.ses() > SES_MAX {
        let cause = format!("secure erase setting {} does not exist", dword.ses());
        return Err(Failure::invalid_field(Parameter::dword(10, 9), cause));
    }
    let format = dword.lbafu() << 4 | dword.lbafl();
    check_format(format, Parameter::dword(10, 0))?;
    // PIL is ignored without protection information, and MSET without metadata.
    if dword.pi() != 0 {
        let cause = "protection information is not supported (DPC)";
        return Err(Failure::new(Status::INVALID_FORMAT, cause).at(Parameter::dword(10, 5)));
    }
    Ok(FormatRequest { nsid: entry.nsid.get(), format, extended_metadata: dword.mset() && has_metadata(format) })
}

pub(super) fn check_format(format: u8, parameter: Parameter) -> Result<(), Failure> {
    if usize::from(format) < FORMATS.len() {
        return Ok(());
    }
    let cause = format!("LBA format {format} does not exist. The formats are 0 to {}", FORMATS.len() - 1);
    Err(Failure::new(Status::INVALID_FORMAT, cause).at(parameter))
}

/// True if an existing LBA format has metadata. Without metadata, MSET and FLBAS bit 4 are ignored.
pub(super) fn has_metadata(format: u8) -> bool {
    FORMATS[usize::from(format)].metadata_bytes > 0
}

impl Subsystem {
    pub(super) fn format(&mut self, id: u16, settings: &FormatRequest) -> CommandResult {
        self.check_metadata_location(id, settings.format, settings.extended_metadata, Parameter::dword(10, 4))?;
        let nsids: Vec<u32> = match settings.nsid {
            NSID_ALL => self.namespaces_of(id).map(|(nsid, _)| nsid).collect(),
            nsid => self.state.namespaces.active(id, nsid).map(|_| vec![nsid])?,
        };
        self.state.namespaces.check_unprotected(nsids.iter().copied())?;
        if self.state.fdp.enabled {
            for &nsid in &nsids {
                let handles = &self.state.namespaces.get(nsid).placement_handles;
                self.state.namespaces.check_shared_format(handles, settings.format, &nsids, Parameter::dword(10, 0))?;
            }
        }
        // The state is stored before the data is erased. A state that cannot be stored changes no
        // data.
        let before = self.state.namespaces.clone();
        nsids.iter().for_each(|&nsid| self.change_format(nsid, settings));
        self.assert_namespaces();
        let stored = self.store_state();
        let erased = stored.and_then(|()| {
            let extents = nsids.iter().flat_map(|&nsid| self.state.namespaces.get(nsid).extents.clone());
            self.erase_extents(&extents.collect::<Vec<_>>())
        });
        if let Err(failure) = erased {
            self.state.namespaces = before;
            // If storing fails too, the next change stores the state.
            let _ = self.store_state();
            return Err(failure);
        }
        for &nsid in &nsids {
            let (before, now) = (before.get(nsid), self.state.namespaces.get(nsid));
            if (now.format, now.extended_metadata) != (before.format, before.extended_metadata) {
                self.controllers.note_namespace_changed(nsid, &before.attached);
            }
        }
        self.end_self_test_of(SelfTestEnd::Formatted, &nsids);
        // Makes the erasure durable, so that a power loss cannot bring the data back.
        Ok(Execution::after(true))
    }

    /// Applies the changes of a format other than the erasure.
    fn change_format(&mut self, nsid: u32, settings: &FormatRequest) {
        let page_bytes = self.page_bytes();
        let namespace = self.state.namespaces.get_mut(nsid);
        namespace.uncorrectable = BlockSet::default();
        if namespace.format != settings.format {
            namespace.format = settings.format;
            namespace.blocks = (namespace.pages() * page_bytes) >> namespace.block_bytes_log2();
        }
        namespace.extended_metadata = settings.extended_metadata;
        assert!(
            namespace.blocks << namespace.block_bytes_log2() <= namespace.pages() * page_bytes,
            "the blocks fit into the pages"
        );
    }

    pub(super) fn erase_extents(&mut self, extents: &[PageExtent]) -> Result<(), Failure> {
        extents.iter().try_for_each(|&extent| self.erase_pages(extent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(dword: FormatNvmCdw10) -> Result<(u8, bool), Status> {
        let entry = SubmissionEntry { cdw10: dword.into_bits().into(), ..SubmissionEntry::default() };
        parse(&entry).map(|settings| (settings.format, settings.extended_metadata)).map_err(|failure| failure.status)
    }

    #[test]
    fn both_halves_of_the_format_count() {
        assert_eq!(parsed(FormatNvmCdw10::new().with_lbafl(1)), Ok((1, false)));
        assert_eq!(parsed(FormatNvmCdw10::new().with_lbafl(1).with_lbafu(1)), Err(Status::INVALID_FORMAT));
        assert_eq!(parsed(FormatNvmCdw10::new().with_mset(true).with_pil(true).with_ses(2)), Ok((0, false)));
        assert_eq!(parsed(FormatNvmCdw10::new().with_mset(true).with_lbafl(2)), Ok((2, true)));
        assert_eq!(parsed(FormatNvmCdw10::new().with_lbafl(3)), Ok((3, false)));
        assert_eq!(parsed(FormatNvmCdw10::new().with_ses(3)), Err(Status::INVALID_FIELD));
    }
}
