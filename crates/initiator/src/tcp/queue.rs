//! Queue of the initiator, one connection that sends commands and receives completions and data.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read};
use std::net::TcpStream;
use std::ops::Range;

use nvme_spec::command::{
    PSDT_SGL_MPTR_CONTIGUOUS, SGL_SUBTYPE_OFFSET, SGL_SUBTYPE_TRANSPORT_A, SglIdentifier, SglType,
};
use nvme_spec::tcp::{
    C2hData, CapsuleCmd, CapsuleResp, CommonHeader, DIGEST_LENGTH, DigestFlags, H2cData, IcReq, IcResp, PFV_1_0,
    PduFlags, PduType, R2t, TermReq,
};
use nvme_spec::{CompletionEntry, SglDescriptor, Status, StatusField, SubmissionEntry};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use zerocopy::{FromBytes, IntoBytes};

use super::{HostOptions, InitiatorError};

/// Size of the read buffer, bytes. Data for a known command bypasses it.
const BUFFER_BYTES: usize = 256 << 10;
/// Minimum remaining data, bytes, for which a read takes few bytes after it.
const LARGE_DATA_BYTES: usize = 16 << 10;
/// Bytes read after large data, enough for a few headers.
const BEHIND_LARGE_DATA_BYTES: usize = 1 << 10;
/// Maximum pieces of output per system call. The system's limit is 1024.
const PIECES_MAX: usize = 512;
/// In-capsule data limit of admin queues and of the Connect command, bytes, fixed by the TCP
/// Transport Specification.
const ADMIN_IN_CAPSULE_BYTES: usize = 8192;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandData {
    None,
    ToController(Vec<u8>),
    /// Buffer for data from the controller, as long as its maximum.
    ToHost(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedCommand {
    /// Command identifier, as returned by [`TcpQueue::submit`].
    pub cid: u16,
    pub entry: CompletionEntry,
    /// Buffer of the command. For data from the controller, bytes after
    /// [`CompletedCommand::received`] are unchanged.
    pub data: Vec<u8>,
    pub received: usize,
}

struct OutstandingCommand {
    data: Vec<u8>,
    to_host: bool,
    received: usize,
    /// Bytes that the controller has requested by R2T.
    requested: usize,
}

enum UnsentPart {
    Headers(Range<usize>),
    Data { cid: u16, range: Range<usize> },
}

struct IncomingData {
    cid: u16,
    at: usize,
    left: usize,
    digest: Option<u32>,
    /// The data also completes the command, without a response capsule.
    success: bool,
}

pub struct TcpQueue {
    stream: TcpStream,
    options: HostOptions,
    header_digest: bool,
    data_digest: bool,
    h2c_data_bytes_max: usize,
    in_capsule_bytes_max: usize,
    pending: Vec<Option<OutstandingCommand>>,
    /// Free command identifiers, next one last.
    free: Vec<u16>,
    headers: Vec<u8>,
    output: VecDeque<UnsentPart>,
    /// Read buffer. The bytes `start..end` are not parsed yet.
    input: Box<[u8]>,
    start: usize,
    end: usize,
    receiving: Option<IncomingData>,
    completed: VecDeque<CompletedCommand>,
    /// Consecutive omitted completions, each without a submission queue head.
    heads_left_out: usize,
}

fn io(action: &'static str) -> impl Fn(std::io::Error) -> InitiatorError {
    move |source| InitiatorError::Io { action, source }
}

fn protocol_error(cause: impl Into<String>) -> InitiatorError {
    InitiatorError::Protocol(cause.into())
}

impl TcpQueue {
    /// Opens a connection and negotiates digests. The queue is not connected yet.
    pub fn open(options: &HostOptions, entries: u16) -> Result<TcpQueue, InitiatorError> {
        let stream = TcpStream::connect_timeout(&options.address, options.timeout).map_err(io("connecting"))?;
        stream.set_nodelay(true).map_err(io("setting up the socket"))?;
        stream.set_read_timeout(Some(options.timeout)).map_err(io("setting up the socket"))?;
        let mut queue = TcpQueue {
            stream,
            options: options.clone(),
            header_digest: false,
            data_digest: false,
            h2c_data_bytes_max: 0,
            in_capsule_bytes_max: options.in_capsule_bytes.min(ADMIN_IN_CAPSULE_BYTES),
            pending: (0..entries).map(|_| None).collect(),
            // Identifiers start at 0.
            free: (0..entries).rev().collect(),
            headers: Vec::new(),
            output: VecDeque::new(),
            input: vec![0; BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            receiving: None,
            completed: VecDeque::new(),
            heads_left_out: 0,
        };
        queue.initialize()?;
        Ok(queue)
    }

    fn initialize(&mut self) -> Result<(), InitiatorError> {
        let request = IcReq {
            ch: CommonHeader::new(PduType::IcReq, PduFlags::new(), 0, size_of::<IcReq>() as u32),
            pfv: PFV_1_0.into(),
            hpda: self.options.data_alignment,
            dgst: DigestFlags::new()
                .with_hdgst_enable(self.options.header_digest)
                .with_ddgst_enable(self.options.data_digest),
            ..IcReq::default()
        };
        self.add_header(request.as_bytes());
        self.flush()?;
        while self.unread().len() < size_of::<IcResp>() {
            self.check_terminated()?;
            self.fill()?;
        }
        let (response, _) = IcResp::read_from_prefix(self.unread()).expect("the header is complete");
        if response.ch.pdu_type != PduType::IcResp.code() {
            self.check_terminated()?;
            return Err(protocol_error("it does not answer with an ICResp"));
        }
        self.start += size_of::<IcResp>();
        self.header_digest = response.dgst.hdgst_enable();
        self.data_digest = response.dgst.ddgst_enable();
        self.h2c_data_bytes_max = response.maxh2cdata.get() as usize;
        if self.h2c_data_bytes_max < 4096 || response.pfv.get() != PFV_1_0 {
            return Err(protocol_error("its ICResp is invalid"));
        }
        Ok(())
    }

    pub fn outstanding(&self) -> usize {
        self.pending.len() - self.free.len()
    }

    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Maximum data of an H2CData PDU that the controller accepts, bytes.
    pub fn h2c_data_bytes_max(&self) -> usize {
        self.h2c_data_bytes_max
    }

    /// Sends a command and waits for its completion. Other completions are kept for
    /// [`TcpQueue::wait`].
    ///
    /// # Errors
    /// The connection fails. A failed command is not an error but a completion.
    ///
    /// # Panics
    /// No entry is free.
    pub fn command(&mut self, entry: SubmissionEntry, data: CommandData) -> Result<CompletedCommand, InitiatorError> {
        let cid = self.submit(entry, data);
        loop {
            self.flush()?;
            if let Some(index) = self.completed.iter().position(|completed| completed.cid == cid) {
                return Ok(self.completed.remove(index).expect("it was just found"));
            }
            self.receive()?;
        }
    }

    /// Sets the controller's limit of in-capsule data. The limit of the options still applies.
    pub(super) fn limit_in_capsule_bytes(&mut self, bytes: usize) {
        self.in_capsule_bytes_max = self.options.in_capsule_bytes.min(bytes);
    }

    /// Prepares a command for sending and returns its identifier.
    ///
    /// # Panics
    /// No entry is free.
    pub fn submit(&mut self, mut entry: SubmissionEntry, data: CommandData) -> u16 {
        let cid = self.free.pop().expect("an entry is free for the command");
        let (data, to_host) = match data {
            CommandData::None => (Vec::new(), false),
            CommandData::ToController(data) => (data, false),
            CommandData::ToHost(data) => (data, true),
        };
        let in_capsule = !to_host && !data.is_empty() && data.len() <= self.in_capsule_bytes_max;
        entry.cid = cid.into();
        entry.flags.set_psdt(PSDT_SGL_MPTR_CONTIGUOUS);
        if !data.is_empty() {
            entry.set_sgl1(describe(data.len(), in_capsule));
        }
        let bytes = if in_capsule { data.len() } else { 0 };
        self.pending[usize::from(cid)] = Some(OutstandingCommand { data, to_host, received: 0, requested: 0 });
        let offset = self.header_end(size_of::<CapsuleCmd>());
        let total = offset + if bytes > 0 { bytes + self.data_digest_bytes() } else { 0 };
        let capsule = CapsuleCmd {
            ch: CommonHeader::new(
                PduType::CapsuleCmd,
                self.flags(bytes > 0),
                if bytes > 0 { offset as u8 } else { 0 },
                total as u32,
            ),
            ccsqe: entry,
        };
        self.add_with_digest(capsule.as_bytes());
        if bytes > 0 {
            self.add_data(cid, 0..bytes);
        }
        cid
    }

    /// Sends the pending output and returns the next completion.
    pub fn wait(&mut self) -> Result<CompletedCommand, InitiatorError> {
        loop {
            self.flush()?;
            if let Some(completed) = self.completed.pop_front() {
                return Ok(completed);
            }
            self.receive()?;
        }
    }

    pub fn poll(&mut self) -> Option<CompletedCommand> {
        self.completed.pop_front()
    }

    // ------------------------------------------------------------------------------------------------- sending --

    fn header_end(&self, header_bytes: usize) -> usize {
        header_bytes + if self.header_digest { DIGEST_LENGTH } else { 0 }
    }

    fn data_digest_bytes(&self) -> usize {
        if self.data_digest { DIGEST_LENGTH } else { 0 }
    }

    fn flags(&self, with_data: bool) -> PduFlags {
        PduFlags::new().with_hdgst(self.header_digest).with_ddgst(with_data && self.data_digest)
    }

    fn add_with_digest(&mut self, header: &[u8]) {
        self.add_header(header);
        if self.header_digest {
            self.add_header(&crc32c::crc32c(header).to_le_bytes());
        }
    }

    fn add_header(&mut self, header: &[u8]) {
        let start = self.headers.len();
        self.headers.extend_from_slice(header);
        let end = self.headers.len();
        match self.output.back_mut() {
            Some(UnsentPart::Headers(range)) if range.end == start => range.end = end,
            _ => self.output.push_back(UnsentPart::Headers(start..end)),
        }
    }

    fn add_data(&mut self, cid: u16, range: Range<usize>) {
        let digest = self.data_digest.then(|| {
            let pending = self.pending[usize::from(cid)].as_ref().expect("an outstanding command");
            crc32c::crc32c(&pending.data[range.clone()])
        });
        self.output.push_back(UnsentPart::Data { cid, range });
        if let Some(digest) = digest {
            self.add_header(&digest.to_le_bytes());
        }
    }

    /// Sends all pending output. Receives while the controller accepts none.
    pub fn flush(&mut self) -> Result<(), InitiatorError> {
        while !self.output.is_empty() {
            match self.send_some() {
                Ok(bytes) => self.note_sent(bytes),
                Err(Errno::AGAIN) => self.wait_for_room()?,
                Err(Errno::INTR) => {}
                Err(error) => {
                    // The controller may have sent the reason.
                    self.receive()?;
                    return Err(io("sending")(error.into()));
                }
            }
        }
        Ok(())
    }

    fn send_some(&self) -> Result<usize, Errno> {
        let slice = |piece: &UnsentPart| match piece {
            UnsentPart::Headers(range) => &self.headers[range.clone()],
            UnsentPart::Data { cid, range } => {
                let pending = self.pending[usize::from(*cid)].as_ref().expect("an outstanding command");
                &pending.data[range.clone()]
            }
        };
        let pieces = self.output.iter().take(PIECES_MAX);
        let slices: Vec<IoSlice<'_>> = pieces.map(|piece| IoSlice::new(slice(piece))).collect();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.stream, &slices, &mut SendAncillaryBuffer::default(), flags)
    }

    fn note_sent(&mut self, mut bytes: usize) {
        while let Some(UnsentPart::Headers(range) | UnsentPart::Data { range, .. }) = self.output.front_mut() {
            if bytes < range.len() {
                range.start += bytes;
                return;
            }
            bytes -= range.len();
            self.output.pop_front();
        }
        self.headers.clear();
    }

    fn wait_for_room(&mut self) -> Result<(), InitiatorError> {
        let timeout = Timespec::try_from(self.options.timeout).expect("a reasonable time");
        let mut descriptors = [PollFd::new(&self.stream, PollFlags::IN | PollFlags::OUT)];
        let ready = match poll(&mut descriptors, Some(&timeout)) {
            // A signal, such as Ctrl-C. The caller tries again.
            Err(Errno::INTR) => return Ok(()),
            ready => ready.map_err(|error| io("waiting")(error.into()))?,
        };
        let events = descriptors[0].revents();
        if ready == 0 {
            return Err(io("sending")(ErrorKind::TimedOut.into()));
        }
        if events.contains(PollFlags::IN) { self.receive() } else { Ok(()) }
    }

    // ----------------------------------------------------------------------------------------------- receiving --

    fn unread(&self) -> &[u8] {
        &self.input[self.start..self.end]
    }

    /// Reads available bytes, and waits for at least one.
    fn fill(&mut self) -> Result<(), InitiatorError> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.input.len() {
            self.input.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let mut space = &mut self.input[self.end..];
        let mut direct: &mut [u8] = &mut [];
        if let Some(receiving) = self.receiving.as_ref().filter(|_| self.start == self.end) {
            let pending = self.pending[usize::from(receiving.cid)].as_mut().expect("an outstanding command");
            direct = &mut pending.data[receiving.at..][..receiving.left];
        }
        let direct_bytes = direct.len();
        if direct_bytes >= LARGE_DATA_BYTES {
            // Bytes after large data are probably more of the same data. Reading them to their
            // place later is faster than copying them.
            let bytes = space.len().min(BEHIND_LARGE_DATA_BYTES);
            space = &mut space[..bytes];
        }
        let mut slices = [IoSliceMut::new(direct), IoSliceMut::new(space)];
        let bytes = loop {
            match self.stream.read_vectored(&mut slices) {
                Ok(0) => return Err(InitiatorError::Closed),
                Ok(bytes) => break bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(io("waiting for the controller")(error)),
            }
        };
        let direct_bytes = direct_bytes.min(bytes);
        if direct_bytes > 0 {
            self.note_data(direct_bytes);
        }
        self.end += bytes - direct_bytes;
        Ok(())
    }

    /// Reads once and parses all complete PDUs.
    fn receive(&mut self) -> Result<(), InitiatorError> {
        self.fill()?;
        while self.parse_one()? {}
        // Answers to R2Ts are sent immediately. If a send is in progress, it includes them.
        if self.output.is_empty() { Ok(()) } else { self.send_without_waiting() }
    }

    fn send_without_waiting(&mut self) -> Result<(), InitiatorError> {
        match self.send_some() {
            Ok(bytes) => {
                self.note_sent(bytes);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(io("sending")(error.into())),
        }
    }

    fn check_terminated(&self) -> Result<(), InitiatorError> {
        match TermReq::read_from_prefix(self.unread()) {
            Ok((request, _)) if request.ch.pdu_type == PduType::C2hTermReq.code() => {
                Err(InitiatorError::Terminated { status: request.fes.get(), information: request.fei.get() })
            }
            _ => Ok(()),
        }
    }

    fn parse_one(&mut self) -> Result<bool, InitiatorError> {
        if self.receiving.is_some() {
            return self.take_data();
        }
        let Ok((common, _)) = CommonHeader::read_from_prefix(self.unread()) else {
            return Ok(false);
        };
        let kind = PduType::from_u8(common.pdu_type);
        let kind = kind.ok_or_else(|| protocol_error(format!("the PDU type {:#x} is unknown", common.pdu_type)))?;
        let header_bytes = usize::from(kind.header_length());
        if kind == PduType::C2hTermReq {
            self.check_terminated()?;
            return Ok(false);
        }
        let header_end = self.header_end(header_bytes);
        let needed = if kind == PduType::C2hData { usize::from(common.pdo).max(header_end) } else { header_end };
        if self.unread().len() < needed {
            return Ok(false);
        }
        self.check_header(&common, header_bytes)?;
        match kind {
            PduType::CapsuleResp => {
                self.heads_left_out = 0;
                let (response, _) = CapsuleResp::read_from_prefix(self.unread()).expect("the header is complete");
                self.complete(response.rccqe)?;
            }
            PduType::C2hData => self.begin_data()?,
            PduType::R2t => self.answer_request()?,
            _ => return Err(protocol_error(format!("it sent an unexpected {kind}"))),
        }
        self.start += needed;
        Ok(true)
    }

    fn check_header(&self, common: &CommonHeader, header_bytes: usize) -> Result<(), InitiatorError> {
        if usize::from(common.hlen) != header_bytes || common.flags.hdgst() != self.header_digest {
            return Err(protocol_error("the length or the digest flag of a header is wrong"));
        }
        if self.header_digest {
            let (header, rest) = self.unread().split_at(header_bytes);
            if rest[..DIGEST_LENGTH] != crc32c::crc32c(header).to_le_bytes() {
                return Err(protocol_error("a header digest does not match"));
            }
        }
        Ok(())
    }

    fn outstanding_command(&mut self, cid: u16) -> Result<&mut OutstandingCommand, InitiatorError> {
        let pending = self.pending.get_mut(usize::from(cid)).and_then(Option::as_mut);
        pending.ok_or_else(|| protocol_error(format!("command {cid} is not outstanding")))
    }

    fn complete(&mut self, entry: CompletionEntry) -> Result<(), InitiatorError> {
        let cid = entry.cid.get();
        self.outstanding_command(cid)?;
        let pending = self.pending[usize::from(cid)].take().expect("it was just found");
        // Pending data of a completed command must not be sent any more.
        self.output.retain(|piece| !matches!(piece, UnsentPart::Data { cid: other, .. } if *other == cid));
        self.free.push(cid);
        self.completed.push_back(CompletedCommand { cid, entry, data: pending.data, received: pending.received });
        Ok(())
    }

    fn begin_data(&mut self) -> Result<(), InitiatorError> {
        let (header, _) = C2hData::read_from_prefix(self.unread()).expect("the header is complete");
        let (at, bytes) = (header.datao.get() as usize, header.datal.get() as usize);
        let alignment = (usize::from(self.options.data_alignment) + 1) * 4;
        let flags = header.ch.flags;
        let digest = flags.ddgst().then_some(0);
        let offset = usize::from(header.ch.pdo);
        let total = offset + bytes + if flags.ddgst() { DIGEST_LENGTH } else { 0 };
        let smallest = self.header_end(size_of::<C2hData>());
        if offset < smallest || !offset.is_multiple_of(alignment) || total != header.ch.plen.get() as usize {
            return Err(protocol_error("a C2HData PDU has a wrong data offset or length"));
        }
        if flags.ddgst() != self.data_digest || (flags.success() && !flags.last_pdu()) {
            return Err(protocol_error("a C2HData PDU has wrong flags"));
        }
        let cid = header.cccid.get();
        let pending = self.outstanding_command(cid)?;
        if !pending.to_host || at != pending.received || bytes > pending.data.len() - at {
            return Err(protocol_error("C2HData is out of range"));
        }
        self.receiving = Some(IncomingData { cid, at, left: bytes, digest, success: flags.success() });
        Ok(())
    }

    /// Moves data out of the input buffer. Returns true if parsing can continue.
    fn take_data(&mut self) -> Result<bool, InitiatorError> {
        let receiving = self.receiving.as_ref().expect("a data PDU is in reception");
        let bytes = (self.end - self.start).min(receiving.left);
        if bytes > 0 {
            let pending = self.pending[usize::from(receiving.cid)].as_mut().expect("an outstanding command");
            pending.data[receiving.at..][..bytes].copy_from_slice(&self.input[self.start..][..bytes]);
            self.start += bytes;
            self.note_data(bytes);
        }
        let receiving = self.receiving.as_ref().expect("a data PDU is in reception");
        if receiving.left > 0 {
            return Ok(false);
        }
        if let Some(digest) = receiving.digest {
            let Some(expected) = self.unread().first_chunk::<DIGEST_LENGTH>() else {
                return Ok(false);
            };
            if *expected != digest.to_le_bytes() {
                return Err(protocol_error("a data digest does not match"));
            }
            self.start += DIGEST_LENGTH;
        }
        let receiving = self.receiving.take().expect("a data PDU is in reception");
        if receiving.success {
            self.heads_left_out += 1;
            // With flow control, at most a tenth of the queue may complete without a reported head.
            if self.options.flow_control && self.heads_left_out >= (self.pending.len() / 10).max(1) {
                let count = self.heads_left_out;
                let why = format!("{count} consecutive completions did not report the submission queue head");
                return Err(protocol_error(why));
            }
            self.complete(CompletionEntry {
                cid: receiving.cid.into(),
                status: StatusField::from_status(Status::SUCCESS),
                ..CompletionEntry::default()
            })?;
        }
        Ok(true)
    }

    fn note_data(&mut self, bytes: usize) {
        let receiving = self.receiving.as_mut().expect("a data PDU is in reception");
        let pending = self.pending[usize::from(receiving.cid)].as_mut().expect("an outstanding command");
        if let Some(digest) = &mut receiving.digest {
            *digest = crc32c::crc32c_append(*digest, &pending.data[receiving.at..][..bytes]);
        }
        pending.received += bytes;
        receiving.at += bytes;
        receiving.left -= bytes;
    }

    /// Sends the data requested by an R2T, in PDUs that the controller accepts.
    fn answer_request(&mut self) -> Result<(), InitiatorError> {
        let (request, _) = R2t::read_from_prefix(self.unread()).expect("the header is complete");
        let (mut at, bytes) = (request.r2to.get() as usize, request.r2tl.get() as usize);
        let cid = request.cccid.get();
        let pending = self.outstanding_command(cid)?;
        if pending.to_host || bytes == 0 || at + bytes > pending.data.len() {
            return Err(protocol_error("an R2T is out of range"));
        }
        // Data that is requested again and again would fill the memory of the host.
        pending.requested += bytes;
        if pending.requested > pending.data.len() {
            return Err(protocol_error("R2Ts request more data than the command has"));
        }
        let end = at + bytes;
        while at < end {
            let length = (end - at).min(self.h2c_data_bytes_max);
            let offset = self.header_end(size_of::<H2cData>());
            let flags = self.flags(true).with_last_pdu(at + length == end);
            let header = H2cData {
                ch: CommonHeader::new(
                    PduType::H2cData,
                    flags,
                    offset as u8,
                    (offset + length + self.data_digest_bytes()) as u32,
                ),
                cccid: cid.into(),
                ttag: request.ttag,
                datao: (at as u32).into(),
                datal: (length as u32).into(),
                ..H2cData::default()
            };
            self.add_with_digest(header.as_bytes());
            self.add_data(cid, at..at + length);
            at += length;
        }
        Ok(())
    }
}

fn describe(bytes: usize, in_capsule: bool) -> SglDescriptor {
    let (kind, subtype) = if in_capsule {
        (SglType::DataBlock, SGL_SUBTYPE_OFFSET)
    } else {
        (SglType::TransportDataBlock, SGL_SUBTYPE_TRANSPORT_A)
    };
    SglDescriptor {
        length: (bytes as u32).into(),
        id: SglIdentifier::new().with_sgl_type(kind.code()).with_subtype(subtype),
        ..SglDescriptor::default()
    }
}
