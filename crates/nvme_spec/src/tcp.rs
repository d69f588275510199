//! NVMe/TCP transport (TCP Transport Specification), with the headers and codes of its protocol
//! data units (PDUs).
//!
//! Header and data digests (CRC-32C, 4 bytes each), padding and data follow a header and are not
//! part of it. The TLS handshake is missing.

use zerocopy::little_endian::{U16, U32};

use crate::command::{CompletionEntry, SubmissionEntry};

/// The TCP port of NVMe I/O controllers, as assigned by IANA.
pub const PORT: u16 = 4420;
/// Length of a header digest or data digest, in bytes.
pub const DIGEST_LENGTH: usize = 4;
/// PDU format version of ICReq and ICResp.
pub const PFV_1_0: u16 = 0;

layout! {
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

    /// True for types that hosts send and controllers receive.
    pub const fn is_from_host(self) -> bool {
        matches!(self, PduType::IcReq | PduType::H2cTermReq | PduType::CapsuleCmd | PduType::H2cData)
    }
}

layout! {
    CommonHeader(8) {
        pdu_type @ 0: u8 => "PDU Type, a [`PduType`].",
        flags @ 1: PduFlags => "PDU type specific flags.",
        hlen @ 2: u8 => "PDU Header Length, bytes, without the header digest.",
        pdo @ 3: u8 => "PDU Data Offset, in bytes from the start of the PDU, or 0 without data.",
        plen @ 4: U32 => "PDU Length, bytes, with header, digests, padding and data.",
    }
}

impl CommonHeader {
    /// Builds the header of a PDU of `bytes` bytes. Data starts at `data_offset`, 0 for no data.
    pub fn new(kind: PduType, flags: PduFlags, data_offset: u8, bytes: u32) -> CommonHeader {
        CommonHeader { pdu_type: kind.code(), flags, hlen: kind.header_length(), pdo: data_offset, plen: bytes.into() }
    }
}

layout! {
    /// Flags of the PDU common header. The type determines the allowed flags.
    PduFlags(u8) {
        hdgst: bool => "HDGSTF, a header digest is present.",
        ddgst: bool => "DDGSTF, a data digest is present.",
        last_pdu: bool => "Last data PDU of an R2T or of a command, in H2CData and C2HData (LAST_PDU).",
        success: bool => "The command is complete without a CapsuleResp, in C2HData with LAST_PDU (SUCCESS).",
        __(4): u8,
    }

    /// ICReq, Initialize Connection Request.
    IcReq(128) {
        ch @ 0: CommonHeader => "Common header.",
        pfv @ 8: U16 => "PDU Format Version, [`PFV_1_0`].",
        hpda @ 10: u8 => "Host PDU Data Alignment, dwords, zeroes based, at most 31.",
        dgst @ 11: DigestFlags => "Digests the host asks for.",
        maxr2t @ 12: U32 => "Maximum Number of Outstanding R2Ts per command, zeroes based.",
        _reserved16 @ 16: [u8; 112],
    }

    /// ICResp, Initialize Connection Response.
    IcResp(128) {
        ch @ 0: CommonHeader => "Common header.",
        pfv @ 8: U16 => "PDU Format Version, [`PFV_1_0`].",
        cpda @ 10: u8 => "Controller PDU Data Alignment, dwords, zeroes based, at most 31.",
        dgst @ 11: DigestFlags => "Digests that the connection uses.",
        maxh2cdata @ 12: U32 => "Maximum Host to Controller Data length of one H2CData PDU, bytes, at least 4096.",
        _reserved16 @ 16: [u8; 112],
    }

    /// DGST of ICReq and ICResp.
    DigestFlags(u8) {
        hdgst_enable: bool => "HDGST_ENABLE, header digests.",
        ddgst_enable: bool => "DDGST_ENABLE, data digests.",
        __(6): u8,
    }

    /// Terminate Connection Request (H2CTermReq and C2HTermReq). Up to 128 bytes of the offending
    /// PDU follow.
    TermReq(24) {
        ch @ 0: CommonHeader => "Common header.",
        fes @ 8: U16 => "Fatal Error Status, a [`FatalErrorStatus`].",
        fei @ 10: U32 => "Fatal Error Information, the offset of a wrong header field or the wrong digest.",
        _reserved14 @ 14: [u8; 10],
    }
}

/// The most bytes of the offending PDU that a termination request holds after its header.
pub const TERM_REQ_MAX_DATA: usize = 128;

layout! {
    /// Fatal Error Status of a termination request.
    FatalErrorStatus(u16, from_u16) {
        InvalidPduHeaderField = 0x01 => "Invalid PDU Header Field",
        PduSequenceError = 0x02 => "PDU Sequence Error",
        HeaderDigestError = 0x03 => "Header Digest Error",
        DataTransferOutOfRange = 0x04 => "Data Transfer Out of Range",
        LimitExceeded = 0x05 => "Data Transfer Limit Exceeded or R2T Limit Exceeded",
        UnsupportedParameter = 0x06 => "Unsupported Parameter",
    }

    /// CapsuleCmd header. In-capsule data may follow at the data offset.
    CapsuleCmd(72) {
        ch @ 0: CommonHeader => "Common header.",
        ccsqe @ 8: SubmissionEntry => "Command Capsule Submission Queue Entry.",
    }

    CapsuleResp(24) {
        ch @ 0: CommonHeader => "Common header.",
        rccqe @ 8: CompletionEntry => "Response Capsule Completion Queue Entry.",
    }

    /// H2CData header, Host To Controller Data Transfer.
    H2cData(24) {
        ch @ 0: CommonHeader => "Common header.",
        cccid @ 8: U16 => "Command Capsule Command ID.",
        ttag @ 10: U16 => "Transfer Tag, of the R2T.",
        datao @ 12: U32 => "Data Offset, bytes from the start of the command's data.",
        datal @ 16: U32 => "Data Length, bytes.",
        _reserved20 @ 20: [u8; 4],
    }

    /// C2HData header, Controller To Host Data Transfer.
    C2hData(24) {
        ch @ 0: CommonHeader => "Common header.",
        cccid @ 8: U16 => "Command Capsule Command ID.",
        _reserved10 @ 10: [u8; 2],
        datao @ 12: U32 => "Data Offset, bytes from the start of the command's data.",
        datal @ 16: U32 => "Data Length, bytes.",
        _reserved20 @ 20: [u8; 4],
    }

    /// Ready to Transfer (R2T).
    R2t(24) {
        ch @ 0: CommonHeader => "Common header.",
        cccid @ 8: U16 => "Command Capsule Command ID.",
        ttag @ 10: U16 => "Transfer Tag.",
        r2to @ 12: U32 => "Requested Data Offset, bytes from the start of the command's data.",
        r2tl @ 16: U32 => "Requested Data Length, bytes.",
        _reserved20 @ 20: [u8; 4],
    }
}
