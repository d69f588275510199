//! What goes out to the host: headers are gathered in one buffer, data stays where it is, and all of it leaves in one
//! vectored write.

use std::io::IoSlice;
use std::ops::Range;

use nvme_spec::CompletionEntry;
use nvme_spec::tcp::{
    C2hData, CapsuleResp, CommonHeader, DIGEST_LENGTH, DigestFlags, IcResp, PFV_1_0, PduFlags, PduType, R2t, TermReq,
};
use zerocopy::IntoBytes;

use super::pdu::{Digests, Fault};

/// A part of the output.
enum Piece {
    /// Bytes of the header buffer.
    Headers(Range<usize>),
    /// Data of a command.
    Data(Vec<u8>),
}

/// See the module.
#[derive(Default)]
pub struct Output {
    /// Digests that the host wants.
    pub digests: Digests,
    /// Data starts at a multiple of this many bytes from the start of its PDU (HPDA); 0 and 4 are the same.
    pub data_alignment: usize,
    headers: Vec<u8>,
    pieces: Vec<Piece>,
    bytes: usize,
}

/// What a C2HData PDU is about.
pub struct Data {
    pub cid: u16,
    pub bytes: Vec<u8>,
    /// The command is complete with it; no response capsule follows.
    pub success: bool,
}

impl Output {
    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn initialize(&mut self, digests: Digests, h2c_data_bytes_max: u32) {
        let response = IcResp {
            ch: common(PduType::IcResp, PduFlags::new(), 0, 0),
            pfv: PFV_1_0.into(),
            dgst: DigestFlags::new()
                .with_hdgst_enable(digests.header)
                .with_ddgst_enable(digests.data),
            maxh2cdata: h2c_data_bytes_max.into(),
            ..IcResp::default()
        };
        self.add_header(response.as_bytes());
    }

    /// C2HTermReq, with the header of the PDU that is the cause.
    pub fn terminate(&mut self, fault: Fault, header: &[u8]) {
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
        let response = CapsuleResp {
            ch: common(PduType::CapsuleResp, self.header_flags(), 0, digests),
            rccqe: completion,
        };
        self.add_with_digest(response.as_bytes());
    }

    /// R2T for all of a command's data.
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

    /// C2HData with all of a command's data.
    pub fn send_data(&mut self, data: Data) {
        self.add_data_header(data.cid, data.bytes.len(), data.success);
        let digest = self.digests.data.then(|| crc32c::crc32c(&data.bytes));
        self.bytes += data.bytes.len();
        self.pieces.push(Piece::Data(data.bytes));
        if let Some(digest) = digest {
            self.add_header(&digest.to_le_bytes());
        }
    }

    /// The same with `bytes` bytes that `append` adds to the headers: little data costs less to copy there than as a part of its own. Nothing
    /// is sent if it fails.
    ///
    /// # Errors
    /// What `append` fails with.
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
        assert_eq!(self.headers.len() - start, bytes, "it is what the header says");
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
        let data_digest = if self.digests.data { DIGEST_LENGTH } else { 0 };
        let flags = self
            .header_flags()
            .with_ddgst(self.digests.data)
            .with_last_pdu(true)
            .with_success(success);
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

    /// The buffer of headers ended at `start`, and ends at `end` now.
    fn note_headers(&mut self, start: usize, end: usize) {
        self.bytes = self.bytes + end - start;
        match self.pieces.last_mut() {
            Some(Piece::Headers(range)) => {
                assert_eq!(range.end, start, "the last headers end with the buffer");
                range.end = end;
            }
            _ => self.pieces.push(Piece::Headers(start..end)),
        }
    }

    /// Everything that waits, in order.
    pub fn slices<'a>(&'a self) -> Vec<IoSlice<'a>> {
        let slice = |piece: &'a Piece| match piece {
            Piece::Headers(range) => IoSlice::new(&self.headers[range.clone()]),
            Piece::Data(data) => IoSlice::new(data),
        };
        self.pieces.iter().map(slice).collect()
    }

    /// Everything is sent. The data's buffers are handed back.
    pub fn clear(&mut self, mut reuse: impl FnMut(Vec<u8>)) {
        self.headers.clear();
        self.bytes = 0;
        for piece in self.pieces.drain(..) {
            if let Piece::Data(data) = piece {
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
