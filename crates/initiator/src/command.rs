//! Builds submission queue entries for any transport.

use nvme_spec::command::{GetLogPageCdw10, GetLogPageCdw11, IdentifyCdw10, ReadWriteCdw12};
use nvme_spec::directive::DirectiveType;
use nvme_spec::{AdminOpcode, Cns, IoOpcode, LogId, SubmissionEntry};

/// Admin command without command-specific fields.
pub fn admin_entry(opcode: AdminOpcode) -> SubmissionEntry {
    SubmissionEntry { opcode: opcode.code(), ..SubmissionEntry::default() }
}

pub fn identify_command(cns: Cns, nsid: u32) -> SubmissionEntry {
    SubmissionEntry {
        opcode: AdminOpcode::Identify.code(),
        nsid: nsid.into(),
        cdw10: IdentifyCdw10::new().with_cns(cns.code()).into_bits().into(),
        ..SubmissionEntry::default()
    }
}

/// Get Log Page of `bytes` bytes (a multiple of 4) at an offset. Events are retained in the log for
/// other hosts.
pub fn log_page_command(log: LogId, specific: u8, group: u16, offset: u64, bytes: u32) -> SubmissionEntry {
    let dwords = bytes / 4 - 1;
    let dword10 =
        GetLogPageCdw10::new().with_lid(log.code()).with_lsp(specific).with_rae(true).with_numdl(dwords as u16);
    let dword11 = GetLogPageCdw11::new().with_numdu((dwords >> 16) as u16).with_lsi(group);
    SubmissionEntry {
        opcode: AdminOpcode::GetLogPage.code(),
        cdw10: dword10.into_bits().into(),
        cdw11: dword11.into_bits().into(),
        cdw12: (offset as u32).into(),
        cdw13: ((offset >> 32) as u32).into(),
        ..SubmissionEntry::default()
    }
}

/// Read, Write, Compare, Verify or Write Zeroes of `blocks` logical blocks.
pub fn block_command(opcode: IoOpcode, nsid: u32, first: u64, blocks: u32) -> SubmissionEntry {
    SubmissionEntry {
        opcode: opcode.code(),
        nsid: nsid.into(),
        cdw10: (first as u32).into(),
        cdw11: ((first >> 32) as u32).into(),
        cdw12: (blocks - 1).into(),
        ..SubmissionEntry::default()
    }
}

/// Write of `blocks` logical blocks, with a data placement directive if an identifier is given.
pub fn write_command(nsid: u32, first: u64, blocks: u32, placement_identifier: Option<u16>) -> SubmissionEntry {
    let entry = block_command(IoOpcode::Write, nsid, first, blocks);
    let Some(identifier) = placement_identifier else {
        return entry;
    };
    let dword12 = ReadWriteCdw12::from_bits(entry.cdw12.get()).with_dtype(DirectiveType::DataPlacement.code());
    SubmissionEntry { cdw12: dword12.into_bits().into(), cdw13: (u32::from(identifier) << 16).into(), ..entry }
}
