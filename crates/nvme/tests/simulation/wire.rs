//! A second implementation of the standard's layouts, for entries from fields and fields from
//! pages.
//!
//! The module uses no bit fields of `nvme_spec`, so that it detects misplaced fields there.

use nvme_spec::command::SubmissionEntry;
use zerocopy::FromBytes;

/// A submission queue entry, less its command identifier and data pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    /// Byte 0.
    pub opcode: u8,
    /// Byte 1, with FUSE in bits 1:0 and PSDT in bits 7:6.
    pub flags: u8,
    /// Dword 1.
    pub nsid: u32,
    /// Dwords 10 to 15.
    pub cdw: [u32; 6],
}

impl Wire {
    /// An opcode for a namespace.
    pub fn new(opcode: u8, nsid: u32) -> Wire {
        Wire { opcode, nsid, ..Wire::default() }
    }

    /// Sets a command dword, 10 to 15.
    pub fn dword(mut self, number: usize, value: u32) -> Wire {
        self.cdw[number - 10] = value;
        self
    }

    /// Sets dwords 10 and 11 to a 64-bit number.
    pub fn lba(self, lba: u64) -> Wire {
        self.dword(10, lba as u32).dword(11, (lba >> 32) as u32)
    }

    /// Submission queue entry with a command identifier.
    pub fn entry(&self, cid: u16) -> SubmissionEntry {
        let mut bytes = [0u8; 64];
        bytes[0] = self.opcode;
        bytes[1] = self.flags;
        bytes[2..4].copy_from_slice(&cid.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.nsid.to_le_bytes());
        for (place, value) in bytes[40..].chunks_exact_mut(4).zip(self.cdw) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        SubmissionEntry::read_from_bytes(&bytes).expect("64 bytes")
    }
}

/// A 16-bit number of a page.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("2 bytes"))
}

/// A 32-bit number of a page.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

/// A 64-bit number of a page.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// A 128-bit number of a page.
pub fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(bytes[at..at + 16].try_into().expect("16 bytes"))
}
