//! One client's connection: receives its messages and answers them in order.
//!
//! This thread keeps the configuration space and asks the worker for all other data. It never waits
//! for a command of the drive. An invalid request gets an error as its answer, and the connection
//! continues. Only a malformed message ends the connection.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nvme::pcie::{DOORBELL_BYTES, REGISTER_BYTES};
use nvme_spec::pci::EXTENDED_CONFIG_SPACE_SIZE;
use rustix::io::Errno;
use zerocopy::IntoBytes;

use super::config_space::{BarLayout, ConfigEffect, ConfigSpace};
use super::memory::GuestRange;
use super::vectors::VectorChange;
use super::wire::{self, BodyReader, VfioHeader, command};
use super::worker::{QueueWorker, WorkerHandle};
use crate::account::GuestBudget;

const REGION_BAR0: u32 = 0;
/// VFIO region index of configuration space.
const REGION_CONFIG: u32 = 7;
/// Number of VFIO regions of a PCI function.
const REGIONS: u32 = 9;
/// VFIO interrupt index of MSI-X.
const INTERRUPT_MSIX: u32 = 2;
/// Number of VFIO interrupt indexes of a PCI function.
const INTERRUPT_KINDS: u32 = 5;
/// Capabilities that the server reports.
const CAPABILITIES: &str = r#"{"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576}}"#;
const _: () =
    assert!(wire::DESCRIPTORS_MAX == 16 && wire::DATA_BYTES_MAX == 1048576, "the limit equals that in CAPABILITIES");

/// The parts of a device that all its clients share.
pub struct SharedDevice {
    pub layout: BarLayout,
    pub requests: WorkerHandle,
    /// The file of the doorbells, if clients may map them.
    pub doorbells: Option<OwnedFd>,
    pub doorbell_messages: Arc<AtomicU64>,
    /// Longest time until a client sends its version.
    pub greeting: Duration,
}

struct ClientConnection<'a> {
    device: &'a SharedDevice,
    config: ConfigSpace,
    negotiated: bool,
    account: GuestBudget,
    /// True after a refusal was logged. Each client gets one log message.
    has_logged_refusal: Cell<bool>,
}

#[derive(Default)]
struct MessageReply {
    body: Vec<u8>,
    with_doorbells: bool,
}

impl MessageReply {
    fn new(body: impl IntoBytes + zerocopy::Immutable) -> MessageReply {
        MessageReply { body: body.as_bytes().to_vec(), with_doorbells: false }
    }
}

/// Serves a client until it leaves.
pub fn serve(device: &SharedDevice, stream: &UnixStream) -> io::Result<()> {
    let mut connection = ClientConnection {
        device,
        config: ConfigSpace::new(device.layout),
        negotiated: false,
        account: GuestBudget::new(),
        has_logged_refusal: Cell::new(false),
    };
    let mut body = Vec::new();
    // The timeout limits the wait of other clients. After its version a client may be silent, as an
    // idle guest is.
    stream.set_read_timeout(Some(device.greeting))?;
    while let Some((header, descriptors)) = wire::receive(stream, &mut body)? {
        let was_negotiated = connection.negotiated;
        let answer = match descriptors {
            Some(descriptors) => connection.answer(&header, BodyReader(&body), descriptors),
            None => {
                connection
                    .log_refusal("a message's file descriptors could not be received. Raise the limit of `ulimit -n`");
                Err(Errno::MFILE.into())
            }
        };
        if connection.negotiated && !was_negotiated {
            stream.set_read_timeout(None)?;
        }
        if !header.wants_reply() {
            continue;
        }
        match answer {
            Ok(answer) => {
                let doorbells = device.doorbells.as_ref().filter(|_| answer.with_doorbells);
                wire::reply(stream, &header, &answer.body, doorbells.map(AsFd::as_fd))?;
            }
            Err(error) => wire::reply_error(stream, &header, &error)?,
        }
    }
    Ok(())
}

impl ClientConnection<'_> {
    /// Logs the reason for a refusal, once per client.
    fn log_refusal(&self, sentence: &str) {
        if !self.has_logged_refusal.replace(true) {
            eprintln!("warp: vfio-user: {sentence}");
        }
    }

    fn answer(
        &mut self,
        header: &VfioHeader,
        mut body: BodyReader<'_>,
        descriptors: Vec<OwnedFd>,
    ) -> io::Result<MessageReply> {
        if !self.negotiated && header.command != command::VERSION {
            return Err(wire::invalid());
        }
        match header.command {
            command::VERSION => self.version(&mut body),
            command::DMA_MAP => self.map(&mut body, descriptors),
            command::DMA_UNMAP => self.unmap(&mut body),
            command::DEVICE_GET_INFO => device_info(&mut body),
            command::DEVICE_GET_REGION_INFO => self.region_info(&mut body),
            command::DEVICE_GET_IRQ_INFO => self.interrupt_info(&mut body),
            command::DEVICE_SET_IRQS => self.set_interrupts(&mut body, descriptors),
            command::REGION_READ => self.read(&mut body),
            command::REGION_WRITE => self.write(&mut body, header.wants_reply()),
            command::DEVICE_RESET => self.reset(),
            _ => Err(Errno::NOTSUP.into()),
        }
    }

    fn version(&mut self, body: &mut BodyReader<'_>) -> io::Result<MessageReply> {
        let theirs: wire::VfioVersion = body.take()?;
        if theirs.major != 0 {
            return Err(wire::invalid());
        }
        self.negotiated = true;
        let ours = wire::VfioVersion { major: 0, minor: theirs.minor.min(1) };
        let mut answer = MessageReply::new(ours);
        answer.body.extend_from_slice(CAPABILITIES.as_bytes());
        answer.body.push(0);
        Ok(answer)
    }

    // --------------------------------------------------------------------------------------------- guest memory --

    fn map(&mut self, body: &mut BodyReader<'_>, descriptors: Vec<OwnedFd>) -> io::Result<MessageReply> {
        let map: wire::DmaMap = body.take()?;
        // A range without a file cannot be mapped. Examples are firmware and the device's own BARs.
        // A lost descriptor is handled earlier.
        let Some(file) = descriptors.into_iter().next() else {
            return Ok(MessageReply::default());
        };
        let (readable, writable) = (map.flags & wire::MAP_READ != 0, map.flags & wire::MAP_WRITE != 0);
        let shares = self.account.take(map.bytes).map_err(|sentence| {
            self.log_refusal(&sentence);
            io::Error::from(Errno::NOSPC)
        })?;
        let range = GuestRange::map(shares, map.address, map.bytes, file, map.offset, readable, writable)?;
        self.device.requests.request(|worker| worker.memory.add(range))??;
        Ok(MessageReply::default())
    }

    fn unmap(&mut self, body: &mut BodyReader<'_>) -> io::Result<MessageReply> {
        let unmap: wire::DmaUnmap = body.take()?;
        if unmap.flags & wire::UNMAP_ALL != 0 {
            self.device.requests.request(|worker| worker.memory.clear())?;
        } else {
            let (address, bytes) = (unmap.address, unmap.bytes);
            self.device.requests.request(move |worker| worker.memory.remove(address, bytes))??;
        }
        Ok(MessageReply::new(unmap))
    }

    // -------------------------------------------------------------------------------------------------- regions --

    fn region_bytes(&self, region: u32) -> u64 {
        match region {
            REGION_BAR0 => self.device.layout.bar_bytes(),
            REGION_CONFIG => EXTENDED_CONFIG_SPACE_SIZE as u64,
            _ => 0,
        }
    }

    fn region_info(&self, body: &mut BodyReader<'_>) -> io::Result<MessageReply> {
        let asked: wire::RegionInfo = body.take()?;
        if asked.index >= REGIONS {
            return Err(wire::invalid());
        }
        let mut info = wire::RegionInfo {
            argument_bytes: size_of::<wire::RegionInfo>() as u32,
            flags: 0,
            index: asked.index,
            capability_offset: 0,
            bytes: self.region_bytes(asked.index),
            offset: 0,
        };
        if info.bytes > 0 {
            info.flags = wire::REGION_READ | wire::REGION_WRITE;
        }
        if asked.index != REGION_BAR0 || self.device.doorbells.is_none() {
            return Ok(MessageReply::new(info));
        }
        // The doorbells can be mapped. If the client's buffer is too small, `argument_bytes` tells
        // it to ask again with more space.
        let sparse = wire::SparseMmap {
            id: 1,
            version: 1,
            next: 0,
            areas: 1,
            reserved: 0,
            offset: REGISTER_BYTES,
            bytes: DOORBELL_BYTES,
        };
        info.flags |= wire::REGION_MMAP | wire::REGION_CAPABILITIES;
        info.capability_offset = size_of::<wire::RegionInfo>() as u32;
        info.argument_bytes += size_of::<wire::SparseMmap>() as u32;
        let mut answer = MessageReply::new(info);
        if asked.argument_bytes >= info.argument_bytes {
            answer.body.extend_from_slice(sparse.as_bytes());
            assert_eq!(answer.body.len(), info.argument_bytes as usize, "the answer has the length that it states");
            answer.with_doorbells = true;
        }
        Ok(answer)
    }

    /// Takes the description of a region access and checks that it lies within the region.
    fn access(&self, body: &mut BodyReader<'_>) -> io::Result<wire::RegionAccess> {
        let access: wire::RegionAccess = body.take()?;
        let end = access.offset.checked_add(u64::from(access.count));
        if access.count as usize > wire::DATA_BYTES_MAX || end.is_none_or(|end| end > self.region_bytes(access.region))
        {
            return Err(wire::invalid());
        }
        Ok(access)
    }

    fn read(&self, body: &mut BodyReader<'_>) -> io::Result<MessageReply> {
        let access = self.access(body)?;
        let (offset, bytes) = (access.offset, access.count as usize);
        let data = match access.region {
            REGION_CONFIG => {
                let mut data = vec![0; bytes];
                self.config.read(offset, &mut data);
                data
            }
            _ => self.device.requests.request(move |worker| worker.read(offset, bytes))?,
        };
        assert_eq!(data.len(), bytes, "a read of region {} answers in full", access.region);
        let mut answer = MessageReply::new(access);
        answer.body.extend_from_slice(&data);
        Ok(answer)
    }

    fn write(&mut self, body: &mut BodyReader<'_>, wait: bool) -> io::Result<MessageReply> {
        let access = self.access(body)?;
        let data = body.bytes(access.count)?;
        if access.region == REGION_CONFIG {
            self.write_config(access.offset, data)?;
            return Ok(MessageReply::new(access));
        }
        let (offset, data) = (access.offset, data.to_vec());
        let is_doorbell = (REGISTER_BYTES..BarLayout::TABLE).contains(&offset);
        if is_doorbell {
            self.device.doorbell_messages.fetch_add(1, Ordering::Relaxed);
        }
        // A doorbell write has no result to wait for.
        if is_doorbell || !wait {
            self.device.requests.post(move |worker| worker.write(offset, &data))?;
        } else {
            self.device.requests.request(move |worker| worker.write(offset, &data))?;
        }
        Ok(MessageReply::new(access))
    }

    fn write_config(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let was_bus_master = self.config.is_bus_master();
        let effect = self.config.write(offset, data);
        let enabled = self.config.is_bus_master();
        let requests = &self.device.requests;
        if effect == ConfigEffect::FunctionReset {
            requests.request(QueueWorker::reset)?;
        } else if enabled != was_bus_master {
            requests.request(move |worker| worker.set_bus_master(enabled))?;
        }
        Ok(())
    }

    // ----------------------------------------------------------------------------------------------- interrupts --

    fn interrupt_info(&self, body: &mut BodyReader<'_>) -> io::Result<MessageReply> {
        let asked: wire::InterruptInfo = body.take()?;
        if asked.index >= INTERRUPT_KINDS {
            return Err(wire::invalid());
        }
        let is_msix = asked.index == INTERRUPT_MSIX;
        Ok(MessageReply::new(wire::InterruptInfo {
            argument_bytes: size_of::<wire::InterruptInfo>() as u32,
            flags: if is_msix { wire::INTERRUPT_EVENTFD } else { 0 },
            index: asked.index,
            count: if is_msix { u32::from(self.device.layout.vectors) } else { 0 },
        }))
    }

    fn set_interrupts(&mut self, body: &mut BodyReader<'_>, descriptors: Vec<OwnedFd>) -> io::Result<MessageReply> {
        let set: wire::SetInterrupts = body.take()?;
        let vectors = u32::from(self.device.layout.vectors);
        if set.index != INTERRUPT_MSIX {
            // Only MSI-X interrupts exist, so other kinds can only be switched off.
            return if set.count == 0 { Ok(MessageReply::default()) } else { Err(wire::invalid()) };
        }
        if set.start > vectors || set.count > vectors - set.start {
            return Err(wire::invalid());
        }
        // The client implements masking. It removes the vector's file descriptor.
        if set.flags & wire::SET_ACTION_TRIGGER == 0 {
            return Ok(MessageReply::default());
        }
        let count = set.count as usize;
        let change = if count == 0 {
            VectorChange::Off((vectors - set.start) as usize)
        } else if set.flags & wire::SET_DATA_NONE != 0 {
            VectorChange::Raise(vec![true; count])
        } else if set.flags & wire::SET_DATA_BOOL != 0 {
            VectorChange::Raise(body.bytes(set.count)?.iter().map(|byte| *byte != 0).collect())
        } else if set.flags & wire::SET_DATA_EVENTFD == 0 {
            return Err(wire::invalid());
        } else if descriptors.is_empty() {
            VectorChange::Off(count)
        } else if descriptors.len() == count {
            VectorChange::Set(descriptors)
        } else {
            return Err(wire::invalid());
        };
        let first = set.start as usize;
        self.device.requests.request(move |worker| worker.vectors.change(first, change))??;
        Ok(MessageReply::default())
    }

    fn reset(&mut self) -> io::Result<MessageReply> {
        self.config = ConfigSpace::new(self.device.layout);
        self.device.requests.request(QueueWorker::reset)?;
        Ok(MessageReply::default())
    }
}

fn device_info(body: &mut BodyReader<'_>) -> io::Result<MessageReply> {
    let _: wire::DeviceInfo = body.take()?;
    Ok(MessageReply::new(wire::DeviceInfo {
        argument_bytes: size_of::<wire::DeviceInfo>() as u32,
        flags: wire::DEVICE_FLAGS,
        regions: REGIONS,
        interrupts: INTERRUPT_KINDS,
    }))
}
