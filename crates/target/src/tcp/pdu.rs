//! PDUs from a host: locates their parts and detects errors.
//!
//! [`PduLayout::parse`] needs only the first 8 bytes. A PDU with a false length thus ends the
//! connection before the session waits for the rest. All functions here depend only on bytes. The
//! module `session` reads and answers.

use nvme_spec::tcp::{CommonHeader, DIGEST_LENGTH, FatalErrorStatus, PduType, TERM_REQ_MAX_DATA};

/// Most data in bytes in a command capsule of an admin queue, or before Connect. The TCP Transport
/// Specification fixes this value.
pub const ADMIN_IN_CAPSULE_BYTES: usize = 8192;
/// Most data in bytes in a command capsule of an I/O queue, as IOCCSZ of Identify Controller
/// reports it.
pub const IO_IN_CAPSULE_BYTES: usize = nvme::admin::identify::IN_CAPSULE_DATA_BYTES as usize;

/// An error that ends the connection with a C2HTermReq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminationError {
    /// Fatal Error Status (FES).
    pub status: FatalErrorStatus,
    /// Fatal Error Information (FEI): the offset of a header field, or the received header digest.
    pub information: u32,
}

impl TerminationError {
    /// A header field has an invalid value.
    pub const fn field(offset: u32) -> TerminationError {
        TerminationError { status: FatalErrorStatus::InvalidPduHeaderField, information: offset }
    }

    pub const fn new(status: FatalErrorStatus) -> TerminationError {
        TerminationError { status, information: 0 }
    }
}

/// Offsets of the fields of the common header, for [`TerminationError::field`].
const PDU_TYPE: u32 = 0;
const FLAGS: u32 = 1;
const HLEN: u32 = 2;
const PDO: u32 = 3;
const PLEN: u32 = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    pub header: bool,
    pub data: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct NegotiatedParameters {
    /// True after the exchange of ICReq and ICResp.
    pub initialized: bool,
    pub digests: Digests,
    /// Most data in one H2CData PDU (MAXH2CDATA).
    pub h2c_data_bytes_max: usize,
    /// Most data in a command capsule, in bytes.
    pub in_capsule_bytes_max: usize,
}

/// Locations of the parts of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PduLayout {
    /// PDU type, one that hosts send.
    pub kind: PduType,
    /// Bytes of the header, without its digest.
    pub header_bytes: usize,
    /// True if a header digest follows.
    pub header_digest: bool,
    /// Offset of the data from the start of the PDU. Without data, the end of header and digest.
    pub data_offset: usize,
    pub data_bytes: usize,
    /// True if a data digest follows the data.
    pub data_digest: bool,
}

impl PduLayout {
    /// The layout that a common header describes.
    pub fn parse(header: &CommonHeader, agreement: &NegotiatedParameters) -> Result<PduLayout, TerminationError> {
        let kind = PduType::from_u8(header.pdu_type).filter(|kind| kind.is_from_host());
        let kind = kind.ok_or(TerminationError::field(PDU_TYPE))?;
        let initializes = kind == PduType::IcReq;
        if kind != PduType::H2cTermReq && initializes == agreement.initialized {
            return Err(TerminationError::new(FatalErrorStatus::PduSequenceError));
        }
        let header_bytes = usize::from(kind.header_length());
        if usize::from(header.hlen) != header_bytes {
            return Err(TerminationError::field(HLEN));
        }
        let length = header.plen.get() as usize;
        match kind {
            PduType::IcReq | PduType::H2cTermReq => {
                let most = if initializes { header_bytes } else { header_bytes + TERM_REQ_MAX_DATA };
                if length < header_bytes || length > most {
                    return Err(TerminationError::field(PLEN));
                }
                Ok(PduLayout {
                    kind,
                    header_bytes,
                    header_digest: false,
                    data_offset: header_bytes,
                    data_bytes: length - header_bytes,
                    data_digest: false,
                })
            }
            _ => PduLayout::with_data(kind, header, agreement),
        }
    }

    fn with_data(
        kind: PduType,
        header: &CommonHeader,
        agreement: &NegotiatedParameters,
    ) -> Result<PduLayout, TerminationError> {
        let digests = agreement.digests;
        let header_bytes = usize::from(header.hlen);
        let header_end = header_bytes + if digests.header { DIGEST_LENGTH } else { 0 };
        let length = header.plen.get() as usize;
        if header.flags.hdgst() != digests.header {
            return Err(TerminationError::field(FLAGS));
        }
        if length < header_end {
            return Err(TerminationError::field(PLEN));
        }
        let mut layout = PduLayout {
            kind,
            header_bytes,
            header_digest: digests.header,
            data_offset: header_end,
            data_bytes: 0,
            data_digest: false,
        };
        if length == header_end {
            return if kind == PduType::H2cData { Err(TerminationError::field(PLEN)) } else { Ok(layout) };
        }
        if header.flags.ddgst() != digests.data {
            return Err(TerminationError::field(FLAGS));
        }
        layout.data_offset = usize::from(header.pdo);
        layout.data_digest = digests.data;
        if layout.data_offset < header_end || !layout.data_offset.is_multiple_of(4) {
            return Err(TerminationError::field(PDO));
        }
        let data_end = length.checked_sub(layout.digest_bytes());
        let data_bytes = data_end.and_then(|end| end.checked_sub(layout.data_offset));
        layout.data_bytes = data_bytes.filter(|&bytes| bytes > 0).ok_or(TerminationError::field(PLEN))?;
        assert_eq!(
            layout.data_offset + layout.data_bytes + layout.digest_bytes(),
            length,
            "the parts of a PDU are the whole PDU"
        );
        match kind {
            PduType::H2cData if layout.data_bytes > agreement.h2c_data_bytes_max => {
                Err(TerminationError::new(FatalErrorStatus::LimitExceeded))
            }
            PduType::CapsuleCmd if layout.data_bytes > agreement.in_capsule_bytes_max => {
                Err(TerminationError::field(PLEN))
            }
            _ => Ok(layout),
        }
    }

    /// Bytes that must arrive before the PDU is parsed. The data of a command streams to its
    /// command instead.
    pub fn needed_bytes(&self) -> usize {
        if matches!(self.kind, PduType::CapsuleCmd | PduType::H2cData) {
            self.data_offset
        } else {
            self.data_offset + self.data_bytes
        }
    }

    pub fn digest_bytes(&self) -> usize {
        if self.data_digest { DIGEST_LENGTH } else { 0 }
    }
}

/// Largest number of bytes parsed as a whole: a header with the largest data offset, or a
/// termination request.
pub const LOOKED_AT_BYTES_MAX: usize = 255 + TERM_REQ_MAX_DATA;

/// Checks the digest behind a header. `pdu` contains at least the header and its digest.
pub fn check_header_digest(layout: &PduLayout, pdu: &[u8]) -> Result<(), TerminationError> {
    if !layout.header_digest {
        return Ok(());
    }
    assert!(
        pdu.len() >= layout.header_bytes + DIGEST_LENGTH,
        "{} bytes have arrived, a header of {} and its digest among them",
        pdu.len(),
        layout.header_bytes
    );
    let (header, rest) = pdu.split_at(layout.header_bytes);
    let received = digest_at(rest);
    if crc32c::crc32c(header) != received {
        return Err(TerminationError { status: FatalErrorStatus::HeaderDigestError, information: received });
    }
    Ok(())
}

/// The digest at the start of `bytes`.
///
/// # Panics
/// Panics if `bytes` has fewer than 4 bytes.
pub fn digest_at(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..DIGEST_LENGTH].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use nvme_spec::tcp::PduFlags;

    use super::*;

    const OPEN: NegotiatedParameters = NegotiatedParameters {
        initialized: true,
        digests: Digests { header: false, data: false },
        h2c_data_bytes_max: 65536,
        in_capsule_bytes_max: 8192,
    };

    fn header(kind: PduType, pdo: u8, length: u32) -> CommonHeader {
        CommonHeader {
            pdu_type: kind.code(),
            hlen: kind.header_length(),
            pdo,
            plen: length.into(),
            ..CommonHeader::default()
        }
    }

    #[test]
    fn capsules_with_and_without_data() {
        let plain = PduLayout::parse(&header(PduType::CapsuleCmd, 0, 72), &OPEN).unwrap();
        assert_eq!((plain.data_bytes, plain.needed_bytes()), (0, 72));
        let full = PduLayout::parse(&header(PduType::CapsuleCmd, 72, 72 + 8192), &OPEN).unwrap();
        assert_eq!((full.data_offset, full.data_bytes, full.needed_bytes()), (72, 8192, 72));
        let digests = Digests { header: true, data: true };
        let mut with_digests = header(PduType::CapsuleCmd, 76, 76 + 512 + 4);
        with_digests.flags = PduFlags::new().with_hdgst(true).with_ddgst(true);
        let with_digests = PduLayout::parse(&with_digests, &NegotiatedParameters { digests, ..OPEN }).unwrap();
        assert_eq!((with_digests.data_offset, with_digests.data_bytes, with_digests.data_digest), (76, 512, true));
    }

    #[test]
    fn every_lie_in_the_common_header_is_found() {
        use FatalErrorStatus::{LimitExceeded, PduSequenceError};
        let closed = NegotiatedParameters { initialized: false, ..OPEN };
        let of = |header: CommonHeader| PduLayout::parse(&header, &OPEN).unwrap_err();
        assert_eq!(of(header(PduType::CapsuleResp, 0, 24)), TerminationError::field(0));
        let mut unknown = header(PduType::CapsuleCmd, 0, 72);
        unknown.pdu_type = 0x7e;
        assert_eq!(of(unknown), TerminationError::field(0));
        assert_eq!(of(header(PduType::IcReq, 0, 128)), TerminationError::new(PduSequenceError));
        let early = PduLayout::parse(&header(PduType::CapsuleCmd, 0, 72), &closed);
        assert_eq!(early.unwrap_err(), TerminationError::new(PduSequenceError));
        assert_eq!(PduLayout::parse(&header(PduType::IcReq, 0, 129), &closed).unwrap_err(), TerminationError::field(4));
        let mut short = header(PduType::CapsuleCmd, 0, 72);
        short.hlen = 71;
        assert_eq!(of(short), TerminationError::field(2));
        let mut flags = header(PduType::CapsuleCmd, 0, 72);
        flags.flags = PduFlags::new().with_hdgst(true);
        assert_eq!(of(flags), TerminationError::field(1));
        let mut flags = header(PduType::CapsuleCmd, 72, 76);
        flags.flags = PduFlags::new().with_ddgst(true);
        assert_eq!(of(flags), TerminationError::field(1));
        assert_eq!(of(header(PduType::CapsuleCmd, 0, 71)), TerminationError::field(4));
        assert_eq!(of(header(PduType::CapsuleCmd, 0, 76)), TerminationError::field(3));
        assert_eq!(of(header(PduType::CapsuleCmd, 73, 80)), TerminationError::field(3));
        assert_eq!(of(header(PduType::CapsuleCmd, 80, 80)), TerminationError::field(4));
        assert_eq!(of(header(PduType::CapsuleCmd, 72, 72 + 8193)), TerminationError::field(4));
        assert_eq!(of(header(PduType::CapsuleCmd, 72, u32::MAX)), TerminationError::field(4));
        assert_eq!(of(header(PduType::H2cData, 0, 24)), TerminationError::field(4));
        assert_eq!(of(header(PduType::H2cData, 24, 24 + 65540)), TerminationError::new(LimitExceeded));
        assert_eq!(of(header(PduType::H2cTermReq, 0, 24 + 129)), TerminationError::field(4));
    }
}
