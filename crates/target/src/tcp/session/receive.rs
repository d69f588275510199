//! Turns bytes into commands. Parses PDUs, makes capsules ready commands, and moves data to its
//! command.

use nvme::IoCommand;
use nvme_spec::tcp::{CapsuleCmd, CommonHeader, DIGEST_LENGTH, FatalErrorStatus, H2cData, IcReq, PFV_1_0, PduType};
use zerocopy::FromBytes;

use super::{
    ArrivingCommand, ArrivingData, BATCH_COMMANDS, CommandStage, DisconnectReason, ReadyCommand, ReceiveState,
    TcpSession,
};
use crate::tcp::pdu::{
    self, ADMIN_IN_CAPSULE_BYTES, Digests, IO_IN_CAPSULE_BYTES, LOOKED_AT_BYTES_MAX, NegotiatedParameters, PduLayout,
    TerminationError,
};

impl TcpSession {
    /// Parses the input until no whole PDU is left or enough commands are ready. Returns true in
    /// the first case.
    pub(super) fn parse(&mut self) -> Result<bool, DisconnectReason> {
        while !self.has_enough() {
            match self.parse_one() {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(fault) => {
                    self.terminate(fault);
                    return Err(DisconnectReason::Fatal(fault));
                }
            }
        }
        Ok(false)
    }

    /// Returns whether ready commands must be executed before more input is parsed. Their execution
    /// never waits for input of the host.
    pub(super) fn has_enough(&self) -> bool {
        let limit = self.context.options.limits.bytes_in_flight;
        match self.ready.len() {
            0 => false,
            // Before Connect, the meaning of a command depends on the previous command.
            _ if self.endpoint.queue.is_none() => true,
            ready => ready >= BATCH_COMMANDS || self.bytes_in_flight >= limit,
        }
    }

    /// Adds a C2HTermReq, the last PDU that the host receives.
    fn terminate(&mut self, fault: TerminationError) {
        // The PDU's header as the host sent it, as far as it has arrived.
        let bytes = self.input.bytes();
        let said = bytes.get(2).map_or(0, |&header_bytes| usize::from(header_bytes));
        let header = bytes[..said.min(bytes.len()).min(nvme_spec::tcp::TERM_REQ_MAX_DATA)].to_vec();
        self.output.terminate(fault, &header);
    }

    fn agreement(&self) -> NegotiatedParameters {
        NegotiatedParameters {
            initialized: self.initialized,
            digests: self.digests,
            h2c_data_bytes_max: self.context.options.h2c_data_bytes_max as usize,
            in_capsule_bytes_max: match &self.endpoint.queue {
                Some(queue) if queue.id > 0 => IO_IN_CAPSULE_BYTES,
                _ => ADMIN_IN_CAPSULE_BYTES,
            },
        }
    }

    /// Parses one PDU or a part of its data. Returns false if the input is incomplete.
    fn parse_one(&mut self) -> Result<bool, TerminationError> {
        if let Some(receiving) = &self.receiving {
            return Ok(if receiving.left > 0 { self.take_data() } else { self.finish_data() });
        }
        let Ok((common, _)) = CommonHeader::read_from_prefix(self.input.bytes()) else {
            return Ok(false);
        };
        let layout = PduLayout::parse(&common, &self.agreement())?;
        let needed = layout.needed_bytes();
        assert!(needed <= LOOKED_AT_BYTES_MAX, "it fits into the input buffer");
        if self.input.bytes().len() < needed {
            return Ok(false);
        }
        pdu::check_header_digest(&layout, self.input.bytes())?;
        let mut taken = needed;
        match layout.kind {
            PduType::IcReq => self.initialize()?,
            PduType::CapsuleCmd => taken = self.take_capsule(&layout)?,
            PduType::H2cData => self.begin_data(&layout)?,
            // The host terminates the connection.
            _ => self.closing = true,
        }
        self.input.consume(taken);
        Ok(true)
    }

    fn initialize(&mut self) -> Result<(), TerminationError> {
        let (request, _) = IcReq::read_from_prefix(self.input.bytes()).expect("the whole PDU is there");
        let unsupported =
            |information| TerminationError { status: FatalErrorStatus::UnsupportedParameter, information };
        if request.pfv.get() != PFV_1_0 {
            return Err(unsupported(8));
        }
        if request.hpda > 31 {
            return Err(TerminationError::field(10));
        }
        self.initialized = true;
        self.digests = Digests { header: request.dgst.hdgst_enable(), data: request.dgst.ddgst_enable() };
        self.output.initialize(self.digests, self.context.options.h2c_data_bytes_max);
        self.output.digests = self.digests;
        self.output.data_alignment = (usize::from(request.hpda) + 1) * 4;
        Ok(())
    }

    /// Parses a capsule. Returns the number of bytes taken from the input.
    fn take_capsule(&mut self, layout: &PduLayout) -> Result<usize, TerminationError> {
        let queue_entries = self.endpoint.queue.as_ref().map_or(1, |queue| usize::from(queue.entries));
        if self.outstanding >= queue_entries {
            // More commands than the queue has entries.
            return Err(TerminationError::new(FatalErrorStatus::PduSequenceError));
        }
        self.outstanding += 1;
        let pdu = self.input.bytes();
        let (capsule, _) = CapsuleCmd::ref_from_prefix(pdu).expect("the header is there");
        let parsed = self.endpoint.io_queue().and_then(|_| IoCommand::parse(&capsule.ccsqe));
        let progress = CommandStage::Capsule(capsule.ccsqe, parsed);
        let behind_header = layout.data_bytes + layout.digest_bytes();
        let Some(behind) = pdu[layout.data_offset..].get(..behind_header) else {
            let command = self.make_room(progress, layout.data_bytes);
            self.expect_data(ReceiveState::Capsule(command), layout);
            return Ok(layout.data_offset);
        };
        // Most capsules have arrived completely.
        let (in_capsule, digest) = behind.split_at(layout.data_bytes);
        let mut data = Vec::new();
        if !in_capsule.is_empty() {
            data = self.spare.take();
            data.clear();
            data.extend_from_slice(in_capsule);
        }
        self.bytes_in_flight += data.len();
        self.ready.push_back(ReadyCommand {
            progress,
            data,
            damaged: layout.data_digest && crc32c::crc32c(in_capsule) != pdu::digest_at(digest),
        });
        Ok(layout.data_offset + behind_header)
    }

    /// Allocates a buffer for the arriving data of a command.
    fn make_room(&mut self, progress: CommandStage, bytes: usize) -> ArrivingCommand {
        self.bytes_in_flight += bytes;
        let mut data = self.spare.take();
        data.resize(bytes, 0);
        ArrivingCommand { ready: ReadyCommand { progress, data, damaged: false }, received: 0 }
    }

    /// Prepares for the data behind a header.
    fn expect_data(&mut self, receiver: ReceiveState, layout: &PduLayout) {
        assert!(self.receiving.is_none(), "the data of one PDU arrives at a time");
        assert!(layout.data_bytes > 0, "a PDU without data has nothing to wait for");
        self.receiving =
            Some(ArrivingData { receiver, left: layout.data_bytes, digest: layout.data_digest.then_some(0) });
    }

    /// Checks the header of an H2CData PDU and prepares for its data.
    fn begin_data(&mut self, layout: &PduLayout) -> Result<(), TerminationError> {
        let (header, _) = H2cData::read_from_prefix(self.input.bytes()).expect("the header is there");
        let tag = usize::from(header.ttag.get());
        let Some(Some(requested)) = self.requested.get(tag) else {
            return Err(TerminationError::field(10));
        };
        if requested.ready.progress.entry().cid != header.cccid {
            return Err(TerminationError::field(8));
        }
        if header.datal.get() as usize != layout.data_bytes {
            return Err(TerminationError::field(16));
        }
        let left = requested.ready.data.len() - requested.received;
        if header.datao.get() as usize != requested.received || layout.data_bytes > left {
            return Err(TerminationError::new(FatalErrorStatus::DataTransferOutOfRange));
        }
        if header.ch.flags.last_pdu() != (layout.data_bytes == left) {
            return Err(TerminationError::field(1));
        }
        self.expect_data(ReceiveState::Requested(tag), layout);
        Ok(())
    }

    /// Moves data from the input buffer to its command.
    fn take_data(&mut self) -> bool {
        let receiving = self.receiving.as_mut().expect("a data PDU is in reception");
        let available = self.input.bytes();
        let bytes = available.len().min(receiving.left);
        if bytes == 0 {
            return false;
        }
        let command = receiving.command(&mut self.requested);
        command.ready.data[command.received..][..bytes].copy_from_slice(&available[..bytes]);
        self.input.consume(bytes);
        self.note_data(bytes);
        true
    }

    /// Accounts for `bytes` added to the data of the receiving command.
    pub(super) fn note_data(&mut self, bytes: usize) {
        let receiving = self.receiving.as_mut().expect("a data PDU is in reception");
        assert!(bytes <= receiving.left, "{bytes} bytes arrive of the {} that are left of the PDU", receiving.left);
        let digest = receiving.digest;
        let command = receiving.command(&mut self.requested);
        let added = &command.ready.data[command.received..][..bytes];
        let digest = digest.map(|digest| crc32c::crc32c_append(digest, added));
        command.received += bytes;
        receiving.digest = digest;
        receiving.left -= bytes;
    }

    /// Finishes a PDU whose data is complete. Returns false if its digest has not arrived.
    fn finish_data(&mut self) -> bool {
        let mut receiving = self.receiving.take().expect("a data PDU is in reception");
        assert_eq!(receiving.left, 0, "a PDU ends with its last byte");
        if let Some(digest) = receiving.digest {
            if self.input.bytes().len() < DIGEST_LENGTH {
                self.receiving = Some(receiving);
                return false;
            }
            receiving.command(&mut self.requested).ready.damaged |= pdu::digest_at(self.input.bytes()) != digest;
            self.input.consume(DIGEST_LENGTH);
        }
        let arrived = match receiving.receiver {
            ReceiveState::Capsule(command) => Some(command),
            ReceiveState::Requested(tag) => self.requested[tag].take_if(|command| command.is_complete()),
        };
        if let Some(command) = arrived {
            assert!(command.is_complete(), "a command has all its data before it is carried out");
            self.ready.push_back(command.ready);
        }
        true
    }

    /// Requests the data of waiting commands within the limit.
    pub(super) fn grant(&mut self) {
        while let Some(command) = self.ungranted.front() {
            let bytes = command.transfer.bytes;
            if !self.has_room_for(bytes) {
                return;
            }
            let command = self.ungranted.pop_front().expect("the entry was checked before");
            let cid = command.entry.cid.get();
            let requested = self.make_room(CommandStage::Transferred(command), bytes);
            let free = self.requested.iter().position(Option::is_none);
            let tag = free.unwrap_or_else(|| {
                self.requested.push(None);
                self.requested.len() - 1
            });
            assert!(tag < self.outstanding, "transfer tag {tag} is one of {} outstanding commands", self.outstanding);
            self.requested[tag] = Some(requested);
            self.output.request_data(cid, tag as u16, bytes as u32);
        }
    }

    /// One command always fits, so that none waits for ever.
    fn has_room_for(&self, bytes: usize) -> bool {
        self.bytes_in_flight == 0 || self.bytes_in_flight + bytes <= self.context.options.limits.bytes_in_flight
    }
}
