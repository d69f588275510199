//! From bytes to commands: PDUs are looked at, capsules become ready commands, data goes to the command it is for.

use nvme_spec::tcp::{CapsuleCmd, CommonHeader, DIGEST_LENGTH, FatalErrorStatus, H2cData, IcReq, PFV_1_0, PduType};
use zerocopy::FromBytes;

use super::{BATCH_COMMANDS, CloseReason, DataRequest, IncomingData, Progress, ReadyCommand, Session};
use crate::tcp::pdu::{self, Agreement, BUFFERED_PDU_BYTES_MAX, Digests, Fault, Layout};

impl Session {
    /// Looks at the input until there is no whole PDU any more, or enough to do. Returns whether it was the former.
    pub(super) fn parse(&mut self) -> Result<bool, CloseReason> {
        // What a command before the queue is connected means depends on the one before it.
        let most = if self.endpoint.queue.is_some() {
            BATCH_COMMANDS
        } else {
            1
        };
        while self.ready.len() < most {
            match self.parse_one() {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(fault) => {
                    self.terminate(fault);
                    return Err(CloseReason::Fatal(fault));
                }
            }
        }
        Ok(false)
    }

    /// Adds a C2HTermReq, the last thing that the host hears.
    fn terminate(&mut self, fault: Fault) {
        // What the host sent as the header, as far as it is there.
        let bytes = self.input.bytes();
        let said = bytes.get(2).map_or(0, |&header_bytes| usize::from(header_bytes));
        let header = bytes[..said.min(bytes.len()).min(nvme_spec::tcp::TERM_REQ_MAX_DATA)].to_vec();
        self.output.terminate(fault, &header);
    }

    fn agreement(&self) -> Agreement {
        Agreement {
            initialized: self.initialized,
            digests: self.digests,
            h2c_data_bytes_max: self.context.options.h2c_data_bytes_max as usize,
        }
    }

    /// Returns whether there was something to look at.
    fn parse_one(&mut self) -> Result<bool, Fault> {
        if let Some(receiving) = &self.receiving {
            return Ok(if receiving.left > 0 {
                self.take_data()
            } else {
                self.finish_data()
            });
        }
        let Ok((common, _)) = CommonHeader::read_from_prefix(self.input.bytes()) else {
            return Ok(false);
        };
        let layout = Layout::of(&common, &self.agreement())?;
        // Data of an H2CData PDU is not waited for: it goes to its command as it comes.
        let needed = if layout.kind == PduType::H2cData {
            layout.data_offset
        } else {
            layout.total_bytes()
        };
        assert!(needed <= BUFFERED_PDU_BYTES_MAX, "it fits into the input buffer");
        if self.input.bytes().len() < needed {
            return Ok(false);
        }
        pdu::check_header_digest(&layout, self.input.bytes())?;
        match layout.kind {
            PduType::IcReq => self.initialize()?,
            PduType::CapsuleCmd => self.take_capsule(&layout)?,
            PduType::H2cData => self.begin_data(&layout)?,
            // The host ends the connection.
            _ => self.closing = true,
        }
        self.input.consume(needed);
        Ok(true)
    }

    fn initialize(&mut self) -> Result<(), Fault> {
        let (request, _) = IcReq::read_from_prefix(self.input.bytes()).expect("the whole PDU is there");
        let unsupported = |information| Fault {
            status: FatalErrorStatus::UnsupportedParameter,
            information,
        };
        if request.pfv.get() != PFV_1_0 {
            return Err(unsupported(8));
        }
        if request.hpda > 31 {
            return Err(Fault::field(10));
        }
        self.initialized = true;
        self.digests = Digests {
            header: request.dgst.hdgst_enable(),
            data: request.dgst.ddgst_enable(),
        };
        self.output
            .initialize(self.digests, self.context.options.h2c_data_bytes_max);
        self.output.digests = self.digests;
        self.output.data_alignment = (usize::from(request.hpda) + 1) * 4;
        Ok(())
    }

    fn take_capsule(&mut self, layout: &Layout) -> Result<(), Fault> {
        let queue_entries = self
            .endpoint
            .queue
            .as_ref()
            .map_or(1, |queue| usize::from(queue.entries));
        if self.outstanding >= queue_entries {
            // More commands than the queue has entries.
            return Err(Fault::of(FatalErrorStatus::PduSequenceError));
        }
        self.outstanding += 1;
        let mut data = if layout.data_bytes > 0 {
            self.spare.take()
        } else {
            Vec::new()
        };
        let pdu = self.input.bytes();
        let (capsule, _) = CapsuleCmd::ref_from_prefix(pdu).expect("the whole PDU is there");
        let mut damaged = false;
        if layout.data_bytes > 0 {
            let (in_capsule, digest) = pdu[layout.data_offset..].split_at(layout.data_bytes);
            data.clear();
            data.extend_from_slice(in_capsule);
            damaged = layout.data_digest && crc32c::crc32c(in_capsule) != pdu::digest_at(digest);
        }
        let progress = Progress::Capsule(capsule.ccsqe);
        self.bytes_in_flight += data.len();
        self.ready.push_back(ReadyCommand {
            progress,
            data,
            damaged,
        });
        Ok(())
    }

    /// The header of an H2CData PDU is there.
    fn begin_data(&mut self, layout: &Layout) -> Result<(), Fault> {
        let (header, _) = H2cData::read_from_prefix(self.input.bytes()).expect("the header is there");
        let tag = usize::from(header.ttag.get());
        let Some(Some(requested)) = self.requested.get(tag) else {
            return Err(Fault::field(10));
        };
        if requested.command.entry.cid != header.cccid {
            return Err(Fault::field(8));
        }
        if header.datal.get() as usize != layout.data_bytes {
            return Err(Fault::field(16));
        }
        let left = requested.data.len() - requested.received;
        if header.datao.get() as usize != requested.received || layout.data_bytes > left {
            return Err(Fault::of(FatalErrorStatus::DataTransferOutOfRange));
        }
        if header.ch.flags.last_pdu() != (layout.data_bytes == left) {
            return Err(Fault::field(1));
        }
        self.receiving = Some(IncomingData {
            tag,
            left: layout.data_bytes,
            digest: layout.data_digest.then_some(0),
        });
        Ok(())
    }

    /// Moves data that is in the input buffer to its command.
    fn take_data(&mut self) -> bool {
        let receiving = self.receiving.as_ref().expect("data is coming in");
        let available = self.input.bytes();
        let bytes = available.len().min(receiving.left);
        if bytes == 0 {
            return false;
        }
        let requested = self.requested[receiving.tag].as_mut().expect("it is receiving");
        requested.data[requested.received..][..bytes].copy_from_slice(&available[..bytes]);
        self.input.consume(bytes);
        self.note_data(bytes);
        true
    }

    /// So many bytes were added to the data of the command that is receiving.
    pub(super) fn note_data(&mut self, bytes: usize) {
        let receiving = self.receiving.as_mut().expect("data is coming in");
        let requested = self.requested[receiving.tag].as_mut().expect("it is receiving");
        if let Some(digest) = &mut receiving.digest {
            *digest = crc32c::crc32c_append(*digest, &requested.data[requested.received..][..bytes]);
        }
        requested.received += bytes;
        receiving.left -= bytes;
    }

    /// All data of the PDU is there. Returns whether its digest is as well.
    fn finish_data(&mut self) -> bool {
        let receiving = self.receiving.as_ref().expect("data is coming in");
        let requested = self.requested[receiving.tag].as_mut().expect("it is receiving");
        if let Some(digest) = receiving.digest {
            if self.input.bytes().len() < DIGEST_LENGTH {
                return false;
            }
            requested.damaged |= pdu::digest_at(self.input.bytes()) != digest;
            self.input.consume(DIGEST_LENGTH);
        }
        if requested.received == requested.data.len() {
            let requested = self.requested[receiving.tag].take().expect("it is receiving");
            self.ready.push_back(ReadyCommand {
                progress: Progress::Transferred(requested.command),
                data: requested.data,
                damaged: requested.damaged,
            });
        }
        self.receiving = None;
        true
    }

    /// Asks for the data of the commands that there is room for.
    pub(super) fn grant(&mut self) {
        while let Some(command) = self.ungranted.front() {
            let bytes = command.transfer.bytes;
            if !self.has_room_for(bytes) {
                return;
            }
            let command = self.ungranted.pop_front().expect("just looked at");
            self.bytes_in_flight += bytes;
            let mut data = self.spare.take();
            data.resize(bytes, 0);
            let cid = command.entry.cid.get();
            let requested = DataRequest {
                command,
                data,
                received: 0,
                damaged: false,
            };
            let free = self.requested.iter().position(Option::is_none);
            let tag = free.unwrap_or_else(|| {
                self.requested.push(None);
                self.requested.len() - 1
            });
            self.requested[tag] = Some(requested);
            self.output.request_data(cid, tag as u16, bytes as u32);
        }
    }

    /// One command always has room, so that none waits for ever.
    fn has_room_for(&self, bytes: usize) -> bool {
        self.bytes_in_flight == 0 || self.bytes_in_flight + bytes <= self.context.options.limits.bytes_in_flight
    }
}
