//! A mapped part of a file that another process shares.

#![expect(unsafe_code, reason = "copies from and to memory that other processes write concurrently")]

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use prefetch::NonTemporalBuf;
use rustix::fs::FileType;
use rustix::io::Errno;
use thiserror::Error;

use crate::signal;

/// A part of the shared memory is missing, because its file was shortened or the file system is
/// full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a part of the shared memory is missing, because its file was shortened or its file system is full")]
pub struct AccessFault;

/// A mapped part of a file. It can move to another thread, but only one thread uses it at a time.
///
/// A failed access ends at the first missing byte that it touches. The order of a copy is
/// unspecified, because the library chooses it by processor and addresses. After an error, bytes
/// before the missing byte are therefore unspecified too, unless a function states more. Bytes
/// outside the range do not change.
///
/// An access panics if it is not inside the mapping or not aligned, or writes to a read-only mapping.
#[derive(Debug)]
pub struct SharedMapping {
    map: MmapRaw,
    writable: bool,
    /// Makes the type `!Sync`.
    not_sync: PhantomData<Cell<()>>,
}

const HUGETLBFS_MAGIC: libc::c_long = 0x9584_58f6;
/// File system type of FUSE, whose files another program serves.
const FUSE_MAGIC: libc::c_long = 0x6573_5546;

impl SharedMapping {
    /// Maps `bytes` of a file from `offset` on. The offset must be a multiple of the page size.
    ///
    /// # Errors
    /// The file is too short, not a regular file, on FUSE, or on hugetlbfs without whole huge
    /// pages. Or the system does not map it.
    pub fn new(file: OwnedFd, offset: u64, bytes: u64, writable: bool) -> io::Result<SharedMapping> {
        signal::install()?;
        let bytes = usize::try_from(bytes).map_err(|_| Errno::INVAL)?;
        let end = offset.checked_add(bytes as u64).ok_or(Errno::INVAL)?;
        let about = rustix::fs::fstat(&file)?;
        let length = about.st_size;
        if bytes == 0 || u64::try_from(length).is_ok_and(|length| end > length) {
            return Err(Errno::INVAL.into());
        }
        let system = rustix::fs::fstatfs(&file)?;
        // A FUSE server could block an access to its file for ever.
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile || system.f_type == FUSE_MAGIC {
            let sentence =
                "shared memory must be a regular file of tmpfs, hugetlbfs or a local disk, not a device or FUSE";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
        }
        let page_bytes = usize::try_from(system.f_bsize).map_err(|_| Errno::INVAL)?;
        if !offset.is_multiple_of(system_page_bytes() as u64) {
            return Err(Errno::INVAL.into());
        }
        // The kernel maps and unmaps only whole huge pages.
        let whole_pages = bytes.is_multiple_of(page_bytes) && offset.is_multiple_of(page_bytes as u64);
        if system.f_type == HUGETLBFS_MAGIC && !whole_pages {
            let sentence = format!("a part of a huge-page file must start and end at a multiple of {page_bytes} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
        }
        // Mapped like memory for a QEMU device: shared, and allocated on the first access.
        let mut options = MmapOptions::new();
        options.offset(offset).len(bytes).no_reserve_swap();
        let map = match writable {
            true => options.map_raw(&file)?,
            false => options.map_raw_read_only(&file)?,
        };
        Ok(SharedMapping { map, writable, not_sync: PhantomData })
    }

    #[inline]
    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    /// Copies from the mapping to `data`.
    ///
    /// # Errors
    /// A part of the memory is missing. Every byte of `data` is unchanged or a copy.
    #[inline]
    pub fn read(&self, offset: usize, data: &mut [u8]) -> Result<(), AccessFault> {
        let (from, to) = (self.place(offset, data.len()), data.as_mut_ptr());
        let bytes = data.len();
        // SAFETY: both are valid for `bytes` bytes. They do not overlap, because no slice refers to
        // a mapping. The other side may write concurrently, which makes the copied bytes arbitrary.
        self.access(|| unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) })
    }

    /// Copies from the mapping into `buffer`.
    ///
    /// # Errors
    /// A part of the memory is missing. Every byte of the buffer is unchanged or a copy.
    #[inline]
    pub fn read_into(&self, offset: usize, buffer: NonTemporalBuf<'_>) -> Result<(), AccessFault> {
        let bytes = buffer.len();
        let from = self.place(offset, bytes);
        // SAFETY: as in `read`, `bytes` bytes are valid and none of them is in the buffer.
        self.access(|| unsafe { buffer.copy_from_ptr(from) })
    }

    /// Appends a copy of `bytes` bytes to `data`.
    ///
    /// # Errors
    /// A part of the memory is missing. `data` does not change.
    pub fn append(&self, offset: usize, bytes: usize, data: &mut Vec<u8>) -> Result<(), AccessFault> {
        let from = self.place(offset, bytes);
        data.reserve(bytes);
        let space = data.spare_capacity_mut();
        assert!(space.len() >= bytes, "it was reserved");
        let to: *mut u8 = space.as_mut_ptr().cast();
        // SAFETY: as in `read`, and the capacity suffices.
        self.access(|| unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) })?;
        // SAFETY: the copy has initialized `bytes` bytes there.
        unsafe { data.set_len(data.len() + bytes) };
        Ok(())
    }

    /// Copies `data` to the mapping.
    ///
    /// # Errors
    /// A part of the memory is missing. An unspecified subset of the existing bytes is written.
    #[inline]
    pub fn write(&self, offset: usize, data: &[u8]) -> Result<(), AccessFault> {
        assert!(self.writable, "a read-only mapping is not written");
        let (from, to) = (data.as_ptr(), self.place(offset, data.len()));
        // SAFETY: as in `read`.
        self.access(|| unsafe { std::ptr::copy_nonoverlapping(from, to, data.len()) })
    }

    /// Reads a number. Earlier writes of the other side are visible afterwards (acquire).
    ///
    /// # Panics
    /// Panics if the number is not aligned or not inside the mapping.
    #[inline]
    pub fn load(&self, offset: usize) -> Result<u32, AccessFault> {
        let number = self.number(offset);
        let mut value = 0;
        self.access(|| value = number.load(Ordering::Acquire))?;
        Ok(value)
    }

    /// Writes a number. A reader of the number also sees all earlier writes (release).
    ///
    /// # Errors
    /// The number is missing, and no byte is written.
    #[inline]
    pub fn store(&self, offset: usize, value: u32) -> Result<(), AccessFault> {
        assert!(self.writable, "a read-only mapping is not written");
        let number = self.number(offset);
        self.access(|| number.store(value, Ordering::Release))
    }

    /// Copies entries to the mapping in order. A reader of an entry's last four bytes also sees the
    /// whole entry and all earlier writes (release).
    ///
    /// # Errors
    /// A part of the memory is missing. The last four bytes of an entry are written only after its
    /// other bytes and all previous entries, so the guarantee for readers still holds. Of the
    /// remaining entries any bytes except the last four may be written.
    #[inline]
    pub fn publish(&self, offset: usize, entries: &[[u8; 16]]) -> Result<(), AccessFault> {
        assert!(self.writable, "a read-only mapping is not written");
        let bytes = size_of_val(entries);
        let first = self.place(offset, bytes);
        assert!(first.cast::<u32>().is_aligned(), "a number in shared memory must be aligned to 4 bytes");
        self.access(|| {
            for (place, entry) in entries.iter().enumerate() {
                let (start, last) = entry.split_last_chunk::<4>().expect("16 bytes");
                // SAFETY: as in `read`, for a copy of `start`. The number behind it is inside the
                // mapping, aligned like the first entry, and lives as long. The other side uses
                // atomic accesses too, or gets an arbitrary value.
                unsafe {
                    let to = first.add(place * size_of_val(entry));
                    std::ptr::copy_nonoverlapping(start.as_ptr(), to, start.len());
                    let number = AtomicU32::from_ptr(to.add(start.len()).cast());
                    number.store(u32::from_ne_bytes(*last), Ordering::Release);
                }
            }
        })
    }

    #[inline]
    fn number(&self, offset: usize) -> &AtomicU32 {
        let place = self.place(offset, size_of::<u32>()).cast::<u32>();
        assert!(place.is_aligned(), "a number in shared memory must be aligned to 4 bytes");
        // SAFETY: the number is inside the mapping, aligned, and lives as long. The other side uses
        // atomic accesses too, or gets an arbitrary value.
        unsafe { AtomicU32::from_ptr(place) }
    }

    #[inline]
    fn place(&self, offset: usize, bytes: usize) -> *mut u8 {
        let inside = offset <= self.bytes() && bytes <= self.bytes() - offset;
        assert!(inside, "{bytes} bytes at {offset} exceed a mapping of {} bytes", self.bytes());
        // SAFETY: inside the mapping.
        unsafe { self.map.as_mut_ptr().add(offset) }
    }

    #[inline]
    fn access(&self, touch: impl FnOnce()) -> Result<(), AccessFault> {
        let start = self.map.as_ptr().addr();
        // SAFETY: the accesses are copies and atomic accesses to numbers. Their results are not
        // used after a failure.
        let done = unsafe { signal::survive(start, start + self.bytes(), touch) };
        done.then_some(()).ok_or(AccessFault)
    }
}

fn system_page_bytes() -> usize {
    // SAFETY: the call only returns a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("every system has pages")
}
