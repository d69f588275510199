//! Page maps: logical to physical (L2P), physical to logical ([`reverse`]), and the bitmap of valid
//! physical pages.
//!
//! The maps are flat arrays on huge pages (except for the entries of the reverse map), because one
//! or two cache misses per page dominate the cost of small random writes. New memory from the
//! kernel is zero, so zero encodes an empty entry, and L2P entries are stored inverted. The maps do
//! not know reclaim units.

pub(crate) mod packed;
mod reverse;
pub(crate) mod undo;

use std::ops::Range;

use bytemuck::Pod;
use memmap2::MmapMut;

use prefetch::prefetch;

use crate::cast::{count, index, narrow};
use crate::types::{Lpn, MappedRun, Ppn};
use packed::PackedUnits;
pub(crate) use reverse::Cursor;
use reverse::ReverseMap;
use undo::ActiveUndo;

/// Zero-initialized array of fixed size in its own memory mapping. Becomes resident as it is
/// touched. Uses huge pages where available, unless the array requests small pages.
pub(crate) struct ZeroedArray<T> {
    /// Only the elements, so that an access computes no length.
    memory: MmapMut,
    page: PageSize,
    element: std::marker::PhantomData<T>,
}

/// Page size of an array's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageSize {
    /// Small pages, for arrays that are touched sparsely and in order.
    Small,
    /// Huge pages where available, for arrays that are touched everywhere.
    Huge,
}

/// Element that can be read and written individually, without the checks of a slice conversion.
pub(crate) trait Element: Pod {
    /// Reads the element at an index of an array's bytes.
    fn load(bytes: &[u8], at: usize) -> Self;
    /// Replaces the element at an index. Returns the previous one.
    fn replace(bytes: &mut [u8], at: usize, value: Self) -> Self;
}

macro_rules! element {
    ($($element:ty),*) => {$(
        impl Element for $element {
            #[inline]
            fn load(bytes: &[u8], at: usize) -> Self {
                Self::from_ne_bytes(bytes.as_chunks().0[at])
            }

            #[inline]
            fn replace(bytes: &mut [u8], at: usize, value: Self) -> Self {
                let place = &mut bytes.as_chunks_mut().0[at];
                Self::from_ne_bytes(std::mem::replace(place, value.to_ne_bytes()))
            }
        }
    )*};
}

element!(u8, u32, u64);

impl<T: Element> ZeroedArray<T> {
    /// Allocates an array on huge pages.
    ///
    /// # Errors
    /// The system has no memory or no address space for the array.
    pub(crate) fn zeroed(len: usize) -> std::io::Result<ZeroedArray<T>> {
        ZeroedArray::zeroed_on(len, PageSize::Huge)
    }

    fn zeroed_on(len: usize, page: PageSize) -> std::io::Result<ZeroedArray<T>> {
        assert!(len > 0, "the page maps have entries");
        let memory = MmapMut::map_anon(len * size_of::<T>())?;
        #[cfg(target_os = "linux")]
        // A kernel without transparent huge pages returns an error. The maps then use small pages.
        let _ = memory.advise(match page {
            PageSize::Small => memmap2::Advice::NoHugePage,
            PageSize::Huge => memmap2::Advice::HugePage,
        });
        let array = ZeroedArray { memory, page, element: std::marker::PhantomData };
        assert_eq!(array.get().len(), len, "the system returned another amount of memory than requested");
        Ok(array)
    }

    /// Populates all of the memory now with all threads of the pool, which is faster than page
    /// faults on one thread. On a system without this feature, the memory is populated on access.
    fn populate(&self) {
        #[cfg(target_os = "linux")]
        {
            use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

            const PIECE_BYTES: usize = 64 << 20;
            let memory = &self.memory;
            let pieces = (0..memory.len()).into_par_iter().step_by(PIECE_BYTES);
            pieces.for_each(|first| {
                let bytes = PIECE_BYTES.min(memory.len() - first);
                let _ = memory.advise_range(memmap2::Advice::PopulateWrite, first, bytes);
            });
        }
    }

    fn try_clone(&self) -> std::io::Result<ZeroedArray<T>> {
        /// Granularity at which zeroes are skipped, so that they stay unpopulated in the copy.
        const BLOCK_BYTES: usize = 4096;
        let mut copy = ZeroedArray::zeroed_on(self.get().len(), self.page)?;
        let blocks = copy.memory.chunks_mut(BLOCK_BYTES).zip(self.memory.chunks(BLOCK_BYTES));
        for (to, from) in blocks.filter(|(_, from)| from.iter().any(|byte| *byte != 0)) {
            to.copy_from_slice(from);
        }
        Ok(copy)
    }

    #[inline]
    pub(crate) fn at(&self, at: usize) -> T {
        T::load(&self.memory, at)
    }

    #[inline]
    pub(crate) fn set(&mut self, at: usize, value: T) {
        let _ = self.replace(at, value);
    }

    #[inline]
    pub(crate) fn replace(&mut self, at: usize, value: T) -> T {
        T::replace(&mut self.memory, at, value)
    }

    #[inline]
    pub(crate) fn get(&self) -> &[T] {
        bytemuck::cast_slice(&self.memory)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.memory)
    }
}

impl<T: Element> Clone for ZeroedArray<T> {
    fn clone(&self) -> Self {
        self.try_clone().expect("address space for a copy of the page maps")
    }
}

#[derive(Clone)]
pub(crate) struct PageMaps {
    /// `!ppn` for each logical page. 0 means unmapped.
    l2p_inverted: ZeroedArray<u32>,
    /// Logical page of each physical page. Meaningless for invalid pages.
    reverse: ReverseMap,
    /// One bit for each physical page, set if the page is valid.
    valid: ZeroedArray<u64>,
    /// Undo log of changes to `l2p_inverted`, active during a checkpoint.
    undo: ActiveUndo,
    /// Packed reverse map of closed reclaim units, on drives that need little memory.
    packing: Option<PackedUnits>,
}

impl PageMaps {
    /// Clones the maps.
    ///
    /// # Errors
    /// The system has no address space for the copy.
    pub(crate) fn try_clone(&self) -> std::io::Result<PageMaps> {
        Ok(PageMaps {
            l2p_inverted: self.l2p_inverted.try_clone()?,
            reverse: self.reverse.try_clone()?,
            valid: self.valid.try_clone()?,
            undo: ActiveUndo::default(),
            packing: self.packing.clone(),
        })
    }

    /// Creates empty maps. Pages are erased in multiples of `slice_pages`, aligned to it.
    ///
    /// # Errors
    /// The system has no memory or no address space for the maps.
    pub(crate) fn new(logical_pages: u32, physical_pages: u32, slice_pages: u32) -> std::io::Result<PageMaps> {
        assert!(
            0 < logical_pages && logical_pages < physical_pages,
            "{physical_pages} pages of flash are too few for {logical_pages} logical pages"
        );
        assert!(physical_pages < Ppn::UNMAPPED.0, "the last number of a page means that there is none");
        Ok(PageMaps {
            l2p_inverted: ZeroedArray::zeroed(index(logical_pages))?,
            reverse: ReverseMap::new(physical_pages, slice_pages)?,
            valid: ZeroedArray::zeroed(index(physical_pages.div_ceil(64)))?,
            undo: ActiveUndo::default(),
            packing: None,
        })
    }

    /// Populates the memory of the L2P map, the largest of the maps (see
    /// [`ZeroedArray::populate`]).
    pub(crate) fn populate(&self) {
        self.l2p_inverted.populate();
    }

    #[inline]
    pub(crate) fn lookup(&self, lpn: Lpn) -> Ppn {
        Ppn(!self.l2p_inverted.at(lpn.index()))
    }

    /// Logical page that was last written to a physical page. Counts a bit for each page of a
    /// region.
    pub(crate) fn logical(&self, ppn: Ppn) -> Lpn {
        self.reverse.logical(ppn)
    }

    #[inline]
    pub(crate) fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid.at(index(ppn.0 / 64)) >> (ppn.0 % 64) & 1 == 1
    }

    /// Prefetches the entries of logical pages, so that their cache misses overlap.
    #[inline]
    pub(crate) fn prefetch_places(&self, pages: impl Iterator<Item = Lpn>) {
        let l2p = self.l2p_inverted.get();
        pages.for_each(|lpn| prefetch(l2p, lpn.index()));
    }

    /// Prefetches the memory that invalidating logical pages touches. Call it after a prefetch of
    /// their entries.
    #[inline]
    pub(crate) fn prefetch_valid(&self, pages: impl Iterator<Item = Lpn>) {
        let (l2p, valid) = (self.l2p_inverted.get(), self.valid.get());
        pages.for_each(|lpn| prefetch(valid, index(!l2p[lpn.index()] / 64)));
    }

    /// Physical page of `lpn`, and the length of the run from `lpn` on that is mapped to
    /// consecutive physical pages, at most `pages_max`. Unmapped pages also form runs.
    #[inline(always)]
    pub(crate) fn mapped_run(&self, lpn: Lpn, pages_max: u32) -> (Ppn, u32) {
        if pages_max == 1 {
            return (self.lookup(lpn), 1);
        }
        let entries = &self.l2p_inverted.get()[lpn.index()..][..index(pages_max)];
        (Ppn(!entries[0]), run_length(entries))
    }

    /// Maps `pages` logical pages from `lpn` on to the physical pages from `ppn` on, and marks
    /// these valid.
    #[inline(always)]
    pub(crate) fn map(&mut self, lpn: Lpn, ppn: Ppn, pages: u32) {
        if let Some(log) = &mut self.undo.0 {
            log.log_remap(self.l2p_inverted.get(), lpn, pages);
        }
        if pages == 1 {
            self.l2p_inverted.set(lpn.index(), !ppn.0);
            self.reverse.append(ppn.0, lpn.0, 1);
            return self.set_valid(ppn, 1);
        }
        fill_run(&mut self.l2p_inverted.get_mut()[lpn.index()..][..index(pages)], ppn.0);
        self.reverse.append(ppn.0, lpn.0, pages);
        self.set_valid(ppn, pages);
    }

    pub(crate) fn unmap(&mut self, lpn: Lpn, pages: u32) {
        if let Some(log) = &mut self.undo.0 {
            log.log_unmap(self.l2p_inverted.get(), lpn, pages);
        }
        self.l2p_inverted.get_mut()[lpn.index()..][..index(pages)].fill(0);
    }

    /// Maps runs of valid pages to consecutive physical pages from `to` on. Returns the number of
    /// pages. The old physical pages remain marked valid.
    #[inline]
    pub(crate) fn relocate(&mut self, runs: &[MappedRun], to: Ppn) -> u32 {
        /// Prefetch distance in runs.
        const AHEAD: usize = 32;
        if let Some(log) = &mut self.undo.0 {
            log.log_moves(runs);
        }
        let l2p = self.l2p_inverted.get_mut();
        for soon in runs.iter().take(AHEAD) {
            prefetch_run(l2p, soon);
        }
        let mut new = to.0;
        let ahead = runs.len().min(AHEAD);
        let (first, last) = runs.split_at(runs.len() - ahead);
        for (run, later) in first.iter().zip(&runs[ahead..]) {
            prefetch_run(l2p, later);
            new = move_run(l2p, run, new);
        }
        for run in last {
            new = move_run(l2p, run, new);
        }
        let pages = new - to.0;
        append_runs(&mut self.reverse, &mut self.valid, to.0, runs, pages);
        pages
    }

    /// Maps a logical page to a physical page. Returns the previous physical page. The caller
    /// completes the other steps of [`PageMaps::map`] with [`PageMaps::end_moves`].
    #[inline(always)]
    pub(crate) fn move_page(&mut self, lpn: Lpn, ppn: Ppn) -> Ppn {
        if let Some(log) = &mut self.undo.0 {
            log.log_remap(self.l2p_inverted.get(), lpn, 1);
        }
        Ppn(!self.l2p_inverted.replace(lpn.index(), !ppn.0))
    }

    /// Updates the reverse map of the physical pages from `ppn` on. The caller marks them valid
    /// with [`PageMaps::set_valid`].
    #[inline]
    pub(crate) fn end_moves(&mut self, ppn: Ppn, lpns: impl Iterator<Item = Lpn>) {
        self.reverse.append_all(ppn.0, lpns.map(|lpn| (lpn.0, 1)));
    }

    /// Cursor at the physical pages from `ppn` on, for [`PageMaps::gather`].
    pub(crate) fn cursor(&self, ppn: Ppn) -> Cursor {
        self.reverse.cursor(ppn.0)
    }

    /// Appends to `runs` the valid pages within `first..end` of the 64 pages at the cursor, and
    /// advances the cursor. Returns their number.
    #[inline]
    pub(crate) fn gather(&self, cursor: &mut Cursor, first: u32, end: u32, runs: &mut Vec<MappedRun>) -> u32 {
        let base = cursor.first_page();
        assert!(base < end, "valid pages are searched behind the end of a reclaim unit");
        let mut bits = self.valid.at(index(base / 64));
        if base < first {
            bits &= u64::MAX << (first - base);
        }
        if u64::from(base) + 64 > u64::from(end) {
            bits &= u64::MAX >> (64 - (end - base));
        }
        self.reverse.valid_runs(cursor, bits, runs);
        bits.count_ones()
    }

    /// Marks invalid pages valid.
    #[inline]
    pub(crate) fn set_valid(&mut self, ppn: Ppn, pages: u32) {
        set_valid(&mut self.valid, ppn.0, pages);
    }

    /// Marks valid pages invalid.
    #[inline]
    pub(crate) fn clear_valid(&mut self, ppn: Ppn, pages: u32) {
        for_words(&mut self.valid, ppn.0, pages, |word, mask| {
            assert_eq!(*word & mask, mask, "a page is invalidated twice");
            *word &= !mask;
        });
    }

    /// Marks pages invalid in any state.
    pub(crate) fn erase(&mut self, ppn: Ppn, pages: u32) {
        for_words(&mut self.valid, ppn.0, pages, |word, mask| *word &= !mask);
        self.reverse.erase(ppn.0, pages);
    }

    #[inline]
    pub(crate) fn count_valid(&self, ppn: Ppn, pages: u32) -> u32 {
        let (first, end) = (u64::from(ppn.0), u64::from(ppn.0) + u64::from(pages));
        let mut count = 0;
        for word in first / 64..end.div_ceil(64) {
            let base = word * 64;
            let mut bits = self.valid.get()[index(narrow(word))];
            if base < first {
                bits &= u64::MAX << (first - base);
            }
            if base + 64 > end {
                bits &= u64::MAX >> (base + 64 - end);
            }
            count += bits.count_ones();
        }
        assert!(count <= pages, "{count} of {pages} pages are valid");
        count
    }

    /// Bits of up to 64 pages from `ppn` on, set for valid pages.
    #[inline]
    pub(crate) fn valid_bits(&self, ppn: Ppn, pages: u32) -> u64 {
        assert!((1..=64).contains(&pages), "{pages} pages do not fit a word");
        let (at, offset) = (index(ppn.0 / 64), ppn.0 % 64);
        let mut bits = self.valid.at(at) >> offset;
        if offset + pages > 64 {
            bits |= self.valid.at(at + 1) << (64 - offset);
        }
        bits & (u64::MAX >> (64 - pages))
    }

    /// Returns true if none of the pages is valid.
    pub(crate) fn is_blank(&self, ppn: Ppn, pages: u32) -> bool {
        if ppn.0.is_multiple_of(64) && pages.is_multiple_of(64) {
            let words = &self.valid.get()[index(ppn.0 / 64)..][..index(pages / 64)];
            return words.iter().all(|word| *word == 0);
        }
        self.count_valid(ppn, pages) == 0
    }

    /// Copies L2P entries in their snapshot encoding. Replaces the contents of `entries`.
    pub(crate) fn copy_entries(&self, pages: Range<u32>, entries: &mut Vec<u32>) {
        entries.clear();
        entries.extend_from_slice(&self.l2p_inverted.get()[index(pages.start)..index(pages.end)]);
    }

    /// Prefetches the memory that [`PageMaps::restore`] touches. Each run is an L2P entry and a
    /// number of pages.
    pub(crate) fn prefetch_restored(&self, runs: &[[u32; 2]]) {
        let valid = self.valid.get();
        runs.iter().for_each(|[entry, _]| prefetch(valid, index(!entry / 64)));
    }

    /// Restores a run of mapped logical pages from a snapshot, or describes the conflict.
    /// [`PageMaps::restore_reverse`] must follow after all runs.
    pub(crate) fn restore(&mut self, lpn: Lpn, ppn: Ppn, pages: u32) -> Result<(), String> {
        let physical_pages = self.reverse.physical_pages();
        if ppn.0 >= physical_pages || pages > physical_pages - ppn.0 {
            return Err(format!("maps logical page {} to a page beyond its flash", lpn.0));
        }
        if self.count_valid(ppn, pages) > 0 {
            return Err(format!("maps logical page {} to the physical page of another one", lpn.0));
        }
        fill_run(&mut self.l2p_inverted.get_mut()[lpn.index()..][..index(pages)], ppn.0);
        self.set_valid(ppn, pages);
        Ok(())
    }

    /// Builds the reverse map after the last [`PageMaps::restore`].
    pub(crate) fn restore_reverse(&mut self) {
        let entries = self.l2p_inverted.get();
        let runs = || {
            let mut end = 0;
            let next = move || {
                let lpn = end;
                let left = entries.get(lpn..).filter(|left| !left.is_empty())?;
                let pages = run_length(left);
                end += index(pages);
                Some((left[0], count(lpn), pages))
            };
            std::iter::from_fn(next).filter(|(entry, _, _)| *entry != 0)
        };
        for (entry, _, pages) in runs() {
            self.reverse.restore_start(!entry, pages);
        }
        let mut restoring = self.reverse.restore_runs();
        for (entry, lpn, pages) in runs() {
            restoring.run(!entry, lpn, pages);
        }
    }
}

/// Adds runs of `pages` pages in total to the reverse map and the bitmap, at consecutive physical
/// pages from `first` on.
#[inline(always)]
fn append_runs(reverse: &mut ReverseMap, valid: &mut ZeroedArray<u64>, first: u32, runs: &[MappedRun], pages: u32) {
    reverse.append_all(first, runs.iter().map(|run| (run.lpn.0, run.pages)));
    set_valid(valid, first, pages);
}

/// Prefetches the entries of a run's first and last page. The hardware prefetcher loads the entries
/// between them.
#[inline(always)]
fn prefetch_run(l2p: &[u32], run: &MappedRun) {
    prefetch(l2p, run.lpn.index());
    if run.pages > 1 {
        prefetch(l2p, run.lpn.index() + index(run.pages - 1));
    }
}

/// Maps a run to the physical pages from `to` on. Returns the physical page after the run.
#[inline(always)]
fn move_run(l2p: &mut [u32], &MappedRun { ppn, lpn, pages }: &MappedRun, to: u32) -> u32 {
    let is_there = if pages == 1 {
        std::mem::replace(&mut l2p[lpn.index()], !to) == !ppn.0
    } else {
        let entries = &mut l2p[lpn.index()..][..index(pages)];
        let is_there = entries[0] == !ppn.0 && run_length(entries) == pages;
        fill_run(entries, to);
        is_there
    };
    assert!(is_there, "the logical pages of a run are not mapped to the run");
    to + pages
}

/// Maps L2P entries to the physical pages from `ppn` on.
#[inline(always)]
fn fill_run(entries: &mut [u32], ppn: u32) {
    // A bounded range needs one overflow check. An unbounded one needs a check for each element,
    // which costs a fifth.
    let end = ppn + count(entries.len());
    for (entry, physical) in entries.iter_mut().zip(ppn..end) {
        *entry = !physical;
    }
}

/// Length of the run at the start of some L2P entries.
#[inline(always)]
pub(crate) fn run_length(entries: &[u32]) -> u32 {
    let first = entries[0];
    let step = u32::from(first != 0);
    let mut expected = first;
    let mut pages = 0;
    // Inverted numbers decrease along a run. The number after the last page of the flash is
    // compared with no entry.
    let fall = [0, 1, 2, 3, 4, 5, 6, 7].map(|page| step * page);
    // Compares eight entries at a time without branches between them.
    for chunk in entries.as_chunks::<8>().0 {
        let differ = |differ, (entry, fall): (&u32, &u32)| differ | (entry ^ expected.wrapping_sub(*fall));
        if chunk.iter().zip(&fall).fold(0, differ) != 0 {
            break;
        }
        pages += 8;
        expected = expected.wrapping_sub(8 * step);
    }
    for &entry in &entries[index(pages)..] {
        if entry != expected {
            break;
        }
        pages += 1;
        expected = expected.wrapping_sub(step);
    }
    assert!(pages > 0, "an extent without pages is looked up");
    pages
}

#[inline]
fn for_words(words: &mut ZeroedArray<u64>, first: u32, count: u32, mut change: impl FnMut(&mut u64, u64)) {
    if count == 1 {
        let at = index(first / 64);
        let mut word = words.at(at);
        change(&mut word, 1 << (first % 64));
        return words.set(at, word);
    }
    let words = words.get_mut();
    words_of(first, count, |at, mask| change(&mut words[at], mask));
}

/// Calls `call` with each word that contains some of the bits, and a mask of these bits.
#[inline(always)]
fn words_of(first: u32, count: u32, mut call: impl FnMut(usize, u64)) {
    let (mut at, mut left) = (first, count);
    while left > 0 {
        let offset = at % 64;
        let here = left.min(64 - offset);
        call(index(at / 64), (u64::MAX >> (64 - here)) << offset);
        at += here;
        left -= here;
    }
}

#[inline]
fn set_valid(valid: &mut ZeroedArray<u64>, first: u32, pages: u32) {
    for_words(valid, first, pages, |word, mask| {
        assert_eq!(*word & mask, 0, "a page that holds valid data is programmed");
        *word |= mask;
    });
}
