//! The doorbell page: a page of shared memory that the client maps, so that ringing a doorbell is a store to memory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use guest_memory::Mapping;
use nvme::pcie::{DOORBELL_BYTES, Doorbells, REGISTER_BYTES};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

/// See the module.
pub struct DoorbellPage {
    map: Mapping,
}

/// Why no doorbell is ever gone.
const SEALED: &str = "the file of the doorbells is sealed";

/// The file behind the page. It begins with the registers, which nobody maps, so that offsets in the file are those of
/// BAR0.
pub struct DoorbellFile(OwnedFd);

impl DoorbellPage {
    /// Makes a page.
    ///
    /// # Errors
    /// The system has no memory for it.
    pub fn new() -> io::Result<(DoorbellPage, DoorbellFile)> {
        let file = memfd_create("warp-doorbells", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, REGISTER_BYTES + DOORBELL_BYTES)?;
        // Clients get this file; one that shortened it would end this process with SIGBUS.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let map = Mapping::new(file.try_clone()?, REGISTER_BYTES, DOORBELL_BYTES, true)?;
        Ok((DoorbellPage { map }, DoorbellFile(file)))
    }
}

impl AsFd for DoorbellFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
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
