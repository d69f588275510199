//! NVMe/TCP transport (TCP Transport Specification): the headers of the protocol data units (PDUs) and their codes.
//!
//! Header and data digests (CRC-32C, 4 bytes each), padding and data follow a header and are not part of it. The TLS
//! handshake is not here.

use bitfield_struct::bitfield;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::{CompletionEntry, SubmissionEntry};

/// The TCP port of NVMe I/O controllers, as assigned by IANA.
pub const PORT: u16 = 4420;
/// The TCP port of NVMe discovery controllers, as assigned by IANA.
pub const DISCOVERY_PORT: u16 = 8009;
/// Length of a header digest or data digest, in bytes.
pub const DIGEST_LENGTH: usize = 4;
/// PDU format version of ICReq and ICResp.
pub const PFV_1_0: u16 = 0;

codes! {
    /// PDU Type.
    PduType(u8, from_u8) {
        IcReq = 0x00 => "ICReq",
        IcResp = 0x01 => "ICResp",
        H2cTermReq = 0x02 => "H2CTermReq",
        C2hTermReq = 0x03 => "C2HTermReq",
        CapsuleCmd = 0x04 => "CapsuleCmd",
        CapsuleResp = 0x05 => "CapsuleResp",
        H2cData = 0x06 => "H2CData",
        C2hData = 0x07 => "C2HData",
        R2t = 0x09 => "R2T",
    }
}

impl PduType {
    /// The length of the header (HLEN) of this type, in bytes.
    pub const fn header_length(self) -> u8 {
        match self {
            PduType::IcReq | PduType::IcResp => 128,
            PduType::CapsuleCmd => 72,
            _ => 24,
        }
    }

    /// Whether hosts send this type, and controllers receive it.
    pub const fn is_from_host(self) -> bool {
        matches!(
            self,
            PduType::IcReq | PduType::H2cTermReq | PduType::CapsuleCmd | PduType::H2cData
        )
    }
}

/// PDU common header.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct CommonHeader {
    /// PDU Type: a [`PduType`].
    pub pdu_type: u8,
    /// PDU type specific flags.
    pub flags: PduFlags,
    /// PDU Header Length, bytes, without the header digest.
    pub hlen: u8,
    /// PDU Data Offset, bytes from the start of the PDU; 0 without data.
    pub pdo: u8,
    /// PDU Length, bytes, with header, digests, padding and data.
    pub plen: U32,
}

layout! { CommonHeader, 8, pdu_type @ 0, flags @ 1, hlen @ 2, pdo @ 3, plen @ 4 }

impl CommonHeader {
    /// Of a PDU of `bytes` bytes in all, with data at `data_offset`, or without if that is 0.
    pub fn new(kind: PduType, flags: PduFlags, data_offset: u8, bytes: u32) -> CommonHeader {
        CommonHeader {
            pdu_type: kind.code(),
            flags,
            hlen: kind.header_length(),
            pdo: data_offset,
            plen: bytes.into(),
        }
    }
}

/// Flags of the PDU common header; which are allowed depends on the type.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PduFlags {
    /// HDGSTF: a header digest is present.
    pub hdgst: bool,
    /// DDGSTF: a data digest is present.
    pub ddgst: bool,
    /// LAST_PDU: the last data PDU of an R2T or of a command (H2CData, C2HData).
    pub last_pdu: bool,
    /// SUCCESS: the command is complete, no CapsuleResp follows (C2HData with LAST_PDU).
    pub success: bool,
    #[bits(4)]
    __: u8,
}

/// ICReq: Initialize Connection Request.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct IcReq {
    /// Common header.
    pub ch: CommonHeader,
    /// PDU Format Version: [`PFV_1_0`].
    pub pfv: U16,
    /// Host PDU Data Alignment, dwords, zeroes based, at most 31.
    pub hpda: u8,
    /// Digests the host asks for.
    pub dgst: DigestFlags,
    /// Maximum Number of Outstanding R2Ts per command, zeroes based.
    pub maxr2t: U32,
    /// Reserved.
    pub _reserved16: [u8; 112],
}

layout! { IcReq, 128, ch @ 0, pfv @ 8, hpda @ 10, dgst @ 11, maxr2t @ 12 }

/// ICResp: Initialize Connection Response.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct IcResp {
    /// Common header.
    pub ch: CommonHeader,
    /// PDU Format Version: [`PFV_1_0`].
    pub pfv: U16,
    /// Controller PDU Data Alignment, dwords, zeroes based, at most 31.
    pub cpda: u8,
    /// Digests that will be used.
    pub dgst: DigestFlags,
    /// Maximum Host to Controller Data length of one H2CData PDU, bytes, at least 4096.
    pub maxh2cdata: U32,
    /// Reserved.
    pub _reserved16: [u8; 112],
}

layout! { IcResp, 128, ch @ 0, pfv @ 8, cpda @ 10, dgst @ 11, maxh2cdata @ 12 }

/// DGST of ICReq and ICResp.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct DigestFlags {
    /// HDGST_ENABLE: header digests.
    pub hdgst_enable: bool,
    /// DDGST_ENABLE: data digests.
    pub ddgst_enable: bool,
    #[bits(6)]
    __: u8,
}

/// H2CTermReq and C2HTermReq: Terminate Connection Request. Up to 128 bytes of the offending PDU follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct TermReq {
    /// Common header.
    pub ch: CommonHeader,
    /// Fatal Error Status: a [`FatalErrorStatus`].
    pub fes: U16,
    /// Fatal Error Information: for header field errors the offset of the field, for digest errors the digest.
    pub fei: U32,
    /// Reserved.
    pub _reserved14: [u8; 10],
}

layout! { TermReq, 24, ch @ 0, fes @ 8, fei @ 10 }

/// The most bytes of the offending PDU that a termination request holds after its header.
pub const TERM_REQ_MAX_DATA: usize = 128;

codes! {
    /// Fatal Error Status of a termination request.
    FatalErrorStatus(u16, from_u16) {
        InvalidPduHeaderField = 0x01 => "Invalid PDU Header Field",
        PduSequenceError = 0x02 => "PDU Sequence Error",
        HeaderDigestError = 0x03 => "Header Digest Error",
        DataTransferOutOfRange = 0x04 => "Data Transfer Out of Range",
        LimitExceeded = 0x05 => "Data Transfer Limit Exceeded or R2T Limit Exceeded",
        UnsupportedParameter = 0x06 => "Unsupported Parameter",
    }
}

/// CapsuleCmd header; in-capsule data may follow at the data offset.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct CapsuleCmd {
    /// Common header.
    pub ch: CommonHeader,
    /// Command Capsule Submission Queue Entry.
    pub ccsqe: SubmissionEntry,
}

layout! { CapsuleCmd, 72, ch @ 0, ccsqe @ 8 }

/// CapsuleResp.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct CapsuleResp {
    /// Common header.
    pub ch: CommonHeader,
    /// Response Capsule Completion Queue Entry.
    pub rccqe: CompletionEntry,
}

layout! { CapsuleResp, 24, ch @ 0, rccqe @ 8 }

/// H2CData header: Host To Controller Data Transfer.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct H2cData {
    /// Common header.
    pub ch: CommonHeader,
    /// Command Capsule Command ID.
    pub cccid: U16,
    /// Transfer Tag, of the R2T.
    pub ttag: U16,
    /// Data Offset, bytes from the start of the command's data.
    pub datao: U32,
    /// Data Length, bytes.
    pub datal: U32,
    /// Reserved.
    pub _reserved20: [u8; 4],
}

layout! { H2cData, 24, ch @ 0, cccid @ 8, ttag @ 10, datao @ 12, datal @ 16 }

/// C2HData header: Controller To Host Data Transfer.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct C2hData {
    /// Common header.
    pub ch: CommonHeader,
    /// Command Capsule Command ID.
    pub cccid: U16,
    /// Reserved.
    pub _reserved10: [u8; 2],
    /// Data Offset, bytes from the start of the command's data.
    pub datao: U32,
    /// Data Length, bytes.
    pub datal: U32,
    /// Reserved.
    pub _reserved20: [u8; 4],
}

layout! { C2hData, 24, ch @ 0, cccid @ 8, datao @ 12, datal @ 16 }

/// R2T: Ready to Transfer.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct R2t {
    /// Common header.
    pub ch: CommonHeader,
    /// Command Capsule Command ID.
    pub cccid: U16,
    /// Transfer Tag.
    pub ttag: U16,
    /// Requested Data Offset, bytes from the start of the command's data.
    pub r2to: U32,
    /// Requested Data Length, bytes.
    pub r2tl: U32,
    /// Reserved.
    pub _reserved20: [u8; 4],
}

layout! { R2t, 24, ch @ 0, cccid @ 8, ttag @ 10, r2to @ 12, r2tl @ 16 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lengths_are_the_structures_sizes() {
        assert_eq!(usize::from(PduType::IcReq.header_length()), size_of::<IcReq>());
        assert_eq!(
            usize::from(PduType::CapsuleCmd.header_length()),
            size_of::<CapsuleCmd>()
        );
        assert_eq!(
            usize::from(PduType::CapsuleResp.header_length()),
            size_of::<CapsuleResp>()
        );
        assert_eq!(usize::from(PduType::R2t.header_length()), size_of::<R2t>());
        assert_eq!(usize::from(PduType::C2hTermReq.header_length()), size_of::<TermReq>());
    }

    #[test]
    fn data_header_bytes() {
        let mut ch = CommonHeader {
            pdu_type: PduType::C2hData.code(),
            hlen: 24,
            pdo: 24,
            ..CommonHeader::default()
        };
        ch.flags = PduFlags::new().with_last_pdu(true).with_success(true);
        ch.plen.set(24 + 4096);
        assert_eq!(ch.as_bytes(), [0x07, 0x0c, 0x18, 0x18, 0x18, 0x10, 0, 0]);
    }
}
