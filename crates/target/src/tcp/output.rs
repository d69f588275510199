//! Output to the host. Headers gather in one buffer, data stays in place, and one vectored write
//! sends all of it.

use std::io::IoSlice;
use std::ops::Range;

use nvme_spec::CompletionEntry;
use nvme_spec::tcp::{
    C2hData, CapsuleResp, CommonHeader, DIGEST_LENGTH, DigestFlags, IcResp, PFV_1_0, PduFlags, PduType, R2t,
    TERM_REQ_MAX_DATA, TermReq,
};
use zerocopy::IntoBytes;

use super::pdu::{Digests, TerminationError};

enum OutputPart {
    Headers(Range<usize>),
    Data(Vec<u8>),
}

/// The pending output of a connection.
#[derive(Default)]
pub struct OutputQueue {
    pub digests: Digests,
    /// Data starts at a multiple of this many bytes from the start of its PDU (HPDA). 0 and 4 are
    /// equivalent.
    pub data_alignment: usize,
    headers: Vec<u8>,
    pieces: Vec<OutputPart>,
    bytes: usize,
}

/// Content of a C2HData PDU.
pub struct ReadData {
    pub cid: u16,
    pub bytes: Vec<u8>,
    /// The data completes the command, without a response capsule.
    pub success: bool,
}

impl OutputQueue {
    /// Number of pending bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn initialize(&mut self, digests: Digests, h2c_data_bytes_max: u32) {
        let response = IcResp {
            ch: common(PduType::IcResp, PduFlags::new(), 0, 0),
            pfv: PFV_1_0.into(),
            dgst: DigestFlags::new().with_hdgst_enable(digests.header).with_ddgst_enable(digests.data),
            maxh2cdata: h2c_data_bytes_max.into(),
            ..IcResp::default()
        };
        self.add_header(response.as_bytes());
    }

    /// Adds a C2HTermReq with the header of the faulty PDU.
    pub fn terminate(&mut self, fault: TerminationError, header: &[u8]) {
        assert!(
            header.len() <= TERM_REQ_MAX_DATA,
            "a termination request quotes {} bytes, at most {TERM_REQ_MAX_DATA}",
            header.len()
        );
        let request = TermReq {
            ch: common(PduType::C2hTermReq, PduFlags::new(), 0, header.len()),
            fes: fault.status.code().into(),
            fei: fault.information.into(),
            ..TermReq::default()
        };
        self.add_header(request.as_bytes());
        self.add_header(header);
    }

    pub fn respond(&mut self, completion: CompletionEntry) {
        let digests = self.digest_bytes();
        let response =
            CapsuleResp { ch: common(PduType::CapsuleResp, self.header_flags(), 0, digests), rccqe: completion };
        self.add_with_digest(response.as_bytes());
    }

    /// Adds an R2T for all of a command's data.
    pub fn request_data(&mut self, cid: u16, tag: u16, bytes: u32) {
        let request = R2t {
            ch: common(PduType::R2t, self.header_flags(), 0, self.digest_bytes()),
            cccid: cid.into(),
            ttag: tag.into(),
            r2tl: bytes.into(),
            ..R2t::default()
        };
        self.add_with_digest(request.as_bytes());
    }

    /// Adds a C2HData PDU with all of a command's data.
    pub fn send_data(&mut self, data: ReadData) {
        self.add_data_header(data.cid, data.bytes.len(), data.success);
        let digest = self.digests.data.then(|| crc32c::crc32c(&data.bytes));
        self.bytes += data.bytes.len();
        self.pieces.push(OutputPart::Data(data.bytes));
        if let Some(digest) = digest {
            self.add_header(&digest.to_le_bytes());
        }
    }

    /// Like [`OutputQueue::send_data`], but `append` copies `bytes` bytes behind the header. A copy
    /// of little data costs less than a separate slice. If `append` fails, no bytes are added.
    pub fn send_little_data<E>(
        &mut self,
        cid: u16,
        bytes: usize,
        success: bool,
        append: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.headers.len();
        self.add_data_header(cid, bytes, success);
        let start = self.headers.len();
        if let Err(error) = append(&mut self.headers) {
            self.headers.truncate(before);
            self.note_headers(start, before);
            return Err(error);
        }
        assert_eq!(self.headers.len() - start, bytes, "the length is that of the header");
        self.note_headers(start, self.headers.len());
        if self.digests.data {
            let digest = crc32c::crc32c(&self.headers[start..]);
            self.add_header(&digest.to_le_bytes());
        }
        Ok(())
    }

    fn add_data_header(&mut self, cid: u16, bytes: usize, success: bool) {
        let header_end = size_of::<C2hData>() + self.digest_bytes();
        let offset = header_end.next_multiple_of(self.data_alignment.max(4));
        assert!(offset <= usize::from(u8::MAX), "data begins at byte {offset} of its PDU, which one byte can say");
        let data_digest = if self.digests.data { DIGEST_LENGTH } else { 0 };
        let flags = self.header_flags().with_ddgst(self.digests.data).with_last_pdu(true).with_success(success);
        let rest = offset - size_of::<C2hData>() + bytes + data_digest;
        let header = C2hData {
            ch: common(PduType::C2hData, flags, offset as u8, rest),
            cccid: cid.into(),
            datal: (bytes as u32).into(),
            ..C2hData::default()
        };
        self.add_with_digest(header.as_bytes());
        const PADDING: [u8; 128] = [0; 128];
        self.add_header(&PADDING[..offset - header_end]);
    }

    fn header_flags(&self) -> PduFlags {
        PduFlags::new().with_hdgst(self.digests.header)
    }

    fn digest_bytes(&self) -> usize {
        if self.digests.header { DIGEST_LENGTH } else { 0 }
    }

    fn add_with_digest(&mut self, header: &[u8]) {
        self.add_header(header);
        if self.digests.header {
            self.add_header(&crc32c::crc32c(header).to_le_bytes());
        }
    }

    fn add_header(&mut self, header: &[u8]) {
        let start = self.headers.len();
        self.headers.extend_from_slice(header);
        self.note_headers(start, self.headers.len());
    }

    /// Records that the header buffer has grown or shrunk from `start` to `end`.
    fn note_headers(&mut self, start: usize, end: usize) {
        assert_eq!(end, self.headers.len(), "the new end is that of the header buffer");
        self.bytes = self.bytes + end - start;
        match self.pieces.last_mut() {
            Some(OutputPart::Headers(range)) => {
                assert_eq!(range.end, start, "the last headers end with the buffer");
                range.end = end;
            }
            _ => self.pieces.push(OutputPart::Headers(start..end)),
        }
    }

    /// All pending output, in order.
    pub fn slices<'a>(&'a self) -> Vec<IoSlice<'a>> {
        let slice = |piece: &'a OutputPart| match piece {
            OutputPart::Headers(range) => IoSlice::new(&self.headers[range.clone()]),
            OutputPart::Data(data) => IoSlice::new(data),
        };
        self.pieces.iter().map(slice).collect()
    }

    /// Clears the output after it was sent. Passes the data's buffers to `reuse`.
    pub fn clear(&mut self, mut reuse: impl FnMut(Vec<u8>)) {
        self.headers.clear();
        self.bytes = 0;
        for piece in self.pieces.drain(..) {
            if let OutputPart::Data(data) = piece {
                reuse(data);
            }
        }
    }
}

/// The common header of a PDU that has `rest` bytes after its header.
fn common(kind: PduType, flags: PduFlags, data_offset: u8, rest: usize) -> CommonHeader {
    let bytes = usize::from(kind.header_length()) + rest;
    CommonHeader::new(kind, flags, data_offset, bytes as u32)
}
