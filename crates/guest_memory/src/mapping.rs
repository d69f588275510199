//! A mapped part of a file of somebody else's.

#![expect(unsafe_code, reason = "copying from and to where others write meanwhile")]

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use prefetch::Room;
use rustix::fs::FileType;
use rustix::io::Errno;
use thiserror::Error;

use crate::signal;

/// A part of the memory is not there: its file was shortened, or the file system has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a part of the shared memory is gone")]
pub struct Gone;

/// A mapped part of a file. It can be sent to another thread, but is used by one at a time.
///
/// An access that fails is ended at the first byte that it finds gone, and a copy goes through its bytes in an order that
/// nobody knows: the library's choice depends on the processor and on the addresses. So after an error nothing is known of the
/// part before the gone byte either, except where a function says so. What lies outside the range is as it was.
#[derive(Debug)]
pub struct Mapping {
    map: MmapRaw,
    writable: bool,
    /// Of one thread at a time.
    of: PhantomData<Cell<()>>,
}

/// What tells a file system of huge pages.
const HUGETLBFS_MAGIC: libc::c_long = 0x9584_58f6;
/// What tells a file system that another program serves.
const FUSE_MAGIC: libc::c_long = 0x6573_5546;

impl Mapping {
    /// Maps `bytes` of a file from `offset` on, which is a multiple of the page size.
    ///
    /// # Errors
    /// The file ends earlier, is no regular file, is one of FUSE, or of huge pages that these are not; or the system
    /// does not map it.
    pub fn new(file: OwnedFd, offset: u64, bytes: u64, writable: bool) -> io::Result<Mapping> {
        signal::install()?;
        let bytes = usize::try_from(bytes).map_err(|_| Errno::INVAL)?;
        let end = offset.checked_add(bytes as u64).ok_or(Errno::INVAL)?;
        let about = rustix::fs::fstat(&file)?;
        let length = about.st_size;
        if bytes == 0 || u64::try_from(length).is_ok_and(|length| end > length) {
            return Err(Errno::INVAL.into());
        }
        let system = rustix::fs::fstatfs(&file)?;
        // What another program answers for can keep whoever touches it waiting for ever.
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile || system.f_type == FUSE_MAGIC {
            let sentence = "shared memory is a regular file of tmpfs, hugetlbfs or a local disk, not a device or FUSE";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
        }
        let page_bytes = usize::try_from(system.f_bsize).map_err(|_| Errno::INVAL)?;
        if !offset.is_multiple_of(system_page_bytes() as u64) {
            return Err(Errno::INVAL.into());
        }
        // The kernel maps whole huge pages, and unmaps nothing else.
        let whole_pages = bytes.is_multiple_of(page_bytes) && offset.is_multiple_of(page_bytes as u64);
        if system.f_type == HUGETLBFS_MAGIC && !whole_pages {
            let sentence =
                format!("a part of a file of huge pages is a multiple of {page_bytes} bytes, and begins at one");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
        }
        // As QEMU's memory is given to devices: shared, and taken when it is touched.
        let mut options = MmapOptions::new();
        options.offset(offset).len(bytes).no_reserve_swap();
        let map = match writable {
            true => options.map_raw(&file)?,
            false => options.map_raw_read_only(&file)?,
        };
        Ok(Mapping {
            map,
            writable,
            of: PhantomData,
        })
    }

    /// How many bytes are mapped.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    /// Copies from there.
    ///
    /// # Errors
    /// A part of it is gone; every byte of `data` is as it was, or a copy.
    ///
    /// # Panics
    /// The range is not inside the mapping.
    #[inline]
    pub fn read(&self, offset: usize, data: &mut [u8]) -> Result<(), Gone> {
        let (from, to) = (self.place(offset, data.len()), data.as_mut_ptr());
        let bytes = data.len();
        // SAFETY: both are valid for as many bytes, and do not overlap: a mapping is nobody's slice. The other side may
        // write meanwhile; then these are any bytes.
        self.access(|| unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) })
    }

    /// The same into room for it.
    ///
    /// # Errors
    /// A part of it is gone; every byte of the room is as it was, or a copy.
    ///
    /// # Panics
    /// As [`Mapping::read`].
    #[inline]
    pub fn read_into(&self, offset: usize, room: Room<'_>) -> Result<(), Gone> {
        let bytes = room.len();
        let from = self.place(offset, bytes);
        // SAFETY: so many bytes are there, and none of them in the room: as in `read`.
        self.access(|| unsafe { room.put_from(from) })
    }

    /// Appends a copy of `bytes` bytes to `data`.
    ///
    /// # Errors
    /// A part of it is gone; nothing is appended.
    ///
    /// # Panics
    /// The range is not inside the mapping.
    pub fn append(&self, offset: usize, bytes: usize, data: &mut Vec<u8>) -> Result<(), Gone> {
        let from = self.place(offset, bytes);
        data.reserve(bytes);
        let space = data.spare_capacity_mut();
        assert!(space.len() >= bytes, "it was reserved");
        let to: *mut u8 = space.as_mut_ptr().cast();
        // SAFETY: as in `read`; the room is there.
        self.access(|| unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) })?;
        // SAFETY: so many bytes were just written there.
        unsafe { data.set_len(data.len() + bytes) };
        Ok(())
    }

    /// Copies to there.
    ///
    /// # Errors
    /// A part of it is gone. Of the part that is there every byte is as it was, or written: whether any is, and which, nobody
    /// knows.
    ///
    /// # Panics
    /// The range is not inside the mapping, or that is read-only.
    #[inline]
    pub fn write(&self, offset: usize, data: &[u8]) -> Result<(), Gone> {
        assert!(self.writable, "a read-only mapping is not written");
        let (from, to) = (data.as_ptr(), self.place(offset, data.len()));
        // SAFETY: as in `read`.
        self.access(|| unsafe { std::ptr::copy_nonoverlapping(from, to, data.len()) })
    }

    /// Reads a number; what the other side wrote before it is visible afterwards (acquire).
    ///
    /// # Errors
    /// It is gone.
    ///
    /// # Panics
    /// It is not inside the mapping, or not aligned.
    #[inline]
    pub fn load(&self, offset: usize) -> Result<u32, Gone> {
        let number = self.number(offset);
        let mut value = 0;
        self.access(|| value = number.load(Ordering::Acquire))?;
        Ok(value)
    }

    /// Writes a number; whoever sees it sees what was written before (release).
    ///
    /// # Errors
    /// It is gone: nothing is written.
    ///
    /// # Panics
    /// It is not inside the mapping, or not aligned, or that is read-only.
    #[inline]
    pub fn store(&self, offset: usize, value: u32) -> Result<(), Gone> {
        assert!(self.writable, "a read-only mapping is not written");
        let number = self.number(offset);
        self.access(|| number.store(value, Ordering::Release))
    }

    /// Copies entries to there, one behind the other, so that whoever sees the last four bytes of one sees all of it, and what was written
    /// before (release).
    ///
    /// # Errors
    /// A part of it is gone. The last four bytes of an entry are written only after the rest of it and all of those before it, so
    /// whoever sees them still sees all of that. Of the others any bytes but the last four may be written.
    ///
    /// # Panics
    /// The range is not inside the mapping, the last four bytes of an entry are not aligned, or that is read-only.
    #[inline]
    pub fn publish(&self, offset: usize, entries: &[[u8; 16]]) -> Result<(), Gone> {
        assert!(self.writable, "a read-only mapping is not written");
        let bytes = size_of_val(entries);
        let first = self.place(offset, bytes);
        assert!(first.cast::<u32>().is_aligned(), "numbers are aligned");
        self.access(|| {
            for (place, entry) in entries.iter().enumerate() {
                let (start, last) = entry.split_last_chunk::<4>().expect("16 bytes");
                // SAFETY: as in `read`; it is `start` that is copied. The number behind it is inside the mapping, aligned as the first entry
                // is, and lives as long; the other side uses atomic accesses too, or gets any value.
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
        assert!(place.is_aligned(), "numbers are aligned");
        // SAFETY: it is inside the mapping, aligned, and lives as long; the other side uses atomic accesses too, or
        // gets any value.
        unsafe { AtomicU32::from_ptr(place) }
    }

    /// Where bytes of the mapping are.
    #[inline]
    fn place(&self, offset: usize, bytes: usize) -> *mut u8 {
        let inside = offset <= self.bytes() && bytes <= self.bytes() - offset;
        assert!(inside, "{bytes} bytes from {offset} on, of {}", self.bytes());
        // SAFETY: inside the mapping.
        unsafe { self.map.as_mut_ptr().add(offset) }
    }

    /// Does what touches this mapping.
    #[inline]
    fn access(&self, touch: impl FnOnce()) -> Result<(), Gone> {
        let start = self.map.as_ptr().addr();
        // SAFETY: what is done here are copies, and atomic accesses to numbers, of bytes that mean nothing if it fails.
        let done = unsafe { signal::survive(start, start + self.bytes(), touch) };
        done.then_some(()).ok_or(Gone)
    }
}

fn system_page_bytes() -> usize {
    // SAFETY: it only tells a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("every system has pages")
}
