//! The doorbell page: shared memory that the client maps, so that a store to memory rings a
//! doorbell.

use std::io;
use std::os::fd::OwnedFd;

use guest_memory::SharedMapping;
use nvme::pcie::{DOORBELL_BYTES, Doorbells, REGISTER_BYTES};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

const _: () = assert!(
    REGISTER_BYTES.is_multiple_of(4096) && DOORBELL_BYTES.is_multiple_of(4096),
    "the doorbells are whole pages"
);

/// The server's mapping of the doorbells.
pub struct DoorbellPage {
    map: SharedMapping,
}

/// Reason why accesses to doorbells never fail.
const SEALED: &str = "the file of the doorbells is sealed";

impl DoorbellPage {
    /// Creates the page and its file. The file begins with unmapped space for the registers, so
    /// that file offsets equal offsets in BAR0.
    pub fn new() -> io::Result<(DoorbellPage, OwnedFd)> {
        let file = memfd_create("warp-doorbells", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, REGISTER_BYTES + DOORBELL_BYTES)?;
        // Clients receive this file. If a client could shorten it, this process would end with
        // SIGBUS.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let map = SharedMapping::new(file.try_clone()?, REGISTER_BYTES, DOORBELL_BYTES, true)?;
        Ok((DoorbellPage { map }, file))
    }
}

impl Doorbells for DoorbellPage {
    #[inline]
    fn load(&self, index: usize) -> u32 {
        u32::from_le(self.map.load(index * 4).expect(SEALED))
    }

    fn store(&self, index: usize, value: u32) {
        self.map.store(index * 4, value.to_le()).expect(SEALED);
    }
}
