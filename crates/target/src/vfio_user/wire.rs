//! The messages of the vfio-user protocol: their layouts, and their transfer through a Unix socket.
//!
//! A message is a header of 16 bytes, a body with the size given in the header, and file
//! descriptors. The descriptors arrive with the first byte. The size of a body is limited to
//! [`MESSAGE_BYTES_MAX`]. The kernel closes file descriptors beyond [`DESCRIPTORS_MAX`] or beyond
//! the limit of the process, and the server refuses such a message.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Most bytes of data in a region access, as the capabilities report.
pub const DATA_BYTES_MAX: usize = 1 << 20;
/// Most file descriptors of a message, as the capabilities report.
pub const DESCRIPTORS_MAX: usize = 16;
const MESSAGE_BYTES_MAX: usize = DATA_BYTES_MAX + 4096;

/// Commands that this server implements. Others get an error.
pub mod command {
    pub const VERSION: u16 = 1;
    pub const DMA_MAP: u16 = 2;
    pub const DMA_UNMAP: u16 = 3;
    pub const DEVICE_GET_INFO: u16 = 4;
    pub const DEVICE_GET_REGION_INFO: u16 = 5;
    pub const DEVICE_GET_IRQ_INFO: u16 = 7;
    pub const DEVICE_SET_IRQS: u16 = 8;
    pub const REGION_READ: u16 = 9;
    pub const REGION_WRITE: u16 = 10;
    pub const DEVICE_RESET: u16 = 13;
}

/// Header flag: the message is a reply.
const FLAG_REPLY: u32 = 0x1;
/// Header flag: the sender expects no reply.
const FLAG_NO_REPLY: u32 = 0x10;
/// Header flag: the reply is an error.
const FLAG_ERROR: u32 = 0x20;

/// Header of every message.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct VfioHeader {
    pub message_id: u16,
    pub command: u16,
    /// Bytes of the whole message.
    pub bytes: u32,
    pub flags: u32,
    pub error: u32,
}

/// Body of VERSION. Text follows.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct VfioVersion {
    pub major: u16,
    pub minor: u16,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct DmaMap {
    pub argument_bytes: u32,
    pub flags: u32,
    pub offset: u64,
    pub address: u64,
    pub bytes: u64,
}

/// DMA_MAP flag: the device may read.
pub const MAP_READ: u32 = 1;
/// DMA_MAP flag: the device may write.
pub const MAP_WRITE: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct DmaUnmap {
    pub argument_bytes: u32,
    pub flags: u32,
    pub address: u64,
    pub bytes: u64,
}

/// DMA_UNMAP flag: all ranges.
pub const UNMAP_ALL: u32 = 4;

/// Body of DEVICE_GET_INFO and its reply.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct DeviceInfo {
    pub argument_bytes: u32,
    pub flags: u32,
    pub regions: u32,
    pub interrupts: u32,
}

/// DEVICE_GET_INFO flags: PCI device with reset support.
pub const DEVICE_FLAGS: u32 = 0b11;

/// Body of DEVICE_GET_REGION_INFO and its reply. Capabilities follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RegionInfo {
    pub argument_bytes: u32,
    pub flags: u32,
    pub index: u32,
    pub capability_offset: u32,
    pub bytes: u64,
    /// Offset of the region in the file that the reply carries.
    pub offset: u64,
}

pub const REGION_READ: u32 = 1;
/// The region can be written.
pub const REGION_WRITE: u32 = 2;
/// Parts of the region can be mapped.
pub const REGION_MMAP: u32 = 4;
pub const REGION_CAPABILITIES: u32 = 8;

/// The region capability that lists the mappable areas of a region, here a single one.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SparseMmap {
    pub id: u16,
    pub version: u16,
    pub next: u32,
    pub areas: u32,
    pub reserved: u32,
    pub offset: u64,
    pub bytes: u64,
}

/// Body of DEVICE_GET_IRQ_INFO and its reply.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct InterruptInfo {
    pub argument_bytes: u32,
    pub flags: u32,
    pub index: u32,
    pub count: u32,
}

/// DEVICE_GET_IRQ_INFO flag: signalled by event file descriptors.
pub const INTERRUPT_EVENTFD: u32 = 1;

/// Body of DEVICE_SET_IRQS. With `SET_DATA_BOOL` a byte for each vector follows.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SetInterrupts {
    pub argument_bytes: u32,
    pub flags: u32,
    pub index: u32,
    pub start: u32,
    pub count: u32,
}

/// DEVICE_SET_IRQS flag: no data.
pub const SET_DATA_NONE: u32 = 1;
/// A byte for each vector: 0 or 1.
pub const SET_DATA_BOOL: u32 = 2;
/// A file descriptor for each vector.
pub const SET_DATA_EVENTFD: u32 = 4;
/// The action is to trigger the vectors or to set their triggers.
pub const SET_ACTION_TRIGGER: u32 = 32;

/// Body of REGION_READ, REGION_WRITE and their replies. Data follows.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RegionAccess {
    pub offset: u64,
    pub region: u32,
    pub count: u32,
}

impl VfioHeader {
    /// Returns whether the sender waits for a reply.
    pub fn wants_reply(&self) -> bool {
        self.flags & FLAG_NO_REPLY == 0
    }
}

/// A message's body, read piece by piece. A missing piece is the peer's error.
pub struct BodyReader<'a>(pub &'a [u8]);

impl<'a> BodyReader<'a> {
    /// Takes a structure.
    pub fn take<T: FromBytes>(&mut self) -> io::Result<T> {
        let (value, rest) = T::read_from_prefix(self.0).map_err(|_| invalid())?;
        self.0 = rest;
        Ok(value)
    }

    pub fn bytes(&mut self, count: u32) -> io::Result<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count as usize).ok_or_else(invalid)?;
        self.0 = rest;
        Ok(bytes)
    }
}

/// "Invalid argument", the error for an invalid message.
pub fn invalid() -> io::Error {
    io::Error::from_raw_os_error(rustix::io::Errno::INVAL.raw_os_error())
}

/// Receives a message. The body goes to `body`. The result contains the header and the file
/// descriptors, with `None` in their place if some were lost. The whole result is `None` if the
/// peer has left.
///
/// # Errors
/// The connection failed, or the peer sent a malformed message. The connection is unusable then.
pub fn receive(stream: &UnixStream, body: &mut Vec<u8>) -> io::Result<Option<(VfioHeader, Option<Vec<OwnedFd>>)>> {
    let mut header = VfioHeader::new_zeroed();
    let mut descriptors = Vec::new();
    let (got, is_whole) = receive_with_descriptors(stream, header.as_mut_bytes(), &mut descriptors)?;
    if got == 0 {
        return Ok(None);
    }
    let mut reader = stream;
    reader.read_exact(&mut header.as_mut_bytes()[got..])?;
    let bytes = header.bytes as usize;
    if !(size_of::<VfioHeader>()..=MESSAGE_BYTES_MAX).contains(&bytes) {
        let cause = format!("a message has {bytes} bytes, which is outside the limits");
        return Err(io::Error::new(io::ErrorKind::InvalidData, cause));
    }
    body.resize(bytes - size_of::<VfioHeader>(), 0);
    reader.read_exact(body)?;
    Ok(Some((header, is_whole.then_some(descriptors))))
}

/// Receives bytes. Returns their number, and whether all descriptors sent with them arrived.
fn receive_with_descriptors(
    stream: &UnixStream,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<(usize, bool)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(stream, &mut [IoSliceMut::new(bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            result => break result?,
        }
    };
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    Ok((received.bytes, !received.flags.contains(ReturnFlags::CTRUNC)))
}

/// Answers a message, with an optional file descriptor.
pub fn reply(stream: &UnixStream, to: &VfioHeader, body: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let header = VfioHeader {
        message_id: to.message_id,
        command: to.command,
        bytes: (size_of::<VfioHeader>() + body.len()) as u32,
        flags: FLAG_REPLY,
        error: 0,
    };
    let mut message = Vec::with_capacity(header.bytes as usize);
    message.extend_from_slice(header.as_bytes());
    message.extend_from_slice(body);
    assert!(
        message.len() <= MESSAGE_BYTES_MAX,
        "the answer to command {} has {} bytes, at most {MESSAGE_BYTES_MAX}",
        to.command,
        message.len()
    );
    let sent = match descriptor {
        None => 0,
        Some(descriptor) => send_with_descriptor(stream, &message, descriptor)?,
    };
    let mut writer = stream;
    writer.write_all(&message[sent..])
}

fn send_with_descriptor(stream: &UnixStream, message: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<usize> {
    let descriptors = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fits = ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    assert!(fits, "the space is for one descriptor");
    let sent = sendmsg(stream.as_fd(), &[IoSlice::new(message)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(sent)
}

/// Answers a message with an error.
pub fn reply_error(stream: &UnixStream, to: &VfioHeader, error: &io::Error) -> io::Result<()> {
    let header = VfioHeader {
        message_id: to.message_id,
        command: to.command,
        bytes: size_of::<VfioHeader>() as u32,
        flags: FLAG_REPLY | FLAG_ERROR,
        error: error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error()) as u32,
    };
    let mut writer = stream;
    writer.write_all(header.as_bytes())
}
