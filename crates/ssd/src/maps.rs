//! The page maps: logical to physical (L2P), physical to logical ([`reverse`]), and which physical pages are valid.
//!
//! Flat arrays, on huge pages but for the entries of the reverse map, because at random small writes the device does a cache miss or two for
//! each page and nothing else. Memory that the kernel hands out is zero, so the encodings make zero mean "nothing": L2P entries are
//! stored inverted. Nothing here knows reclaim units.

mod reverse;
pub(crate) mod undo;

use std::ops::Range;

use bytemuck::Pod;
use memmap2::MmapMut;

use prefetch::prefetch;

use crate::cast::{count, index, narrow};
use crate::types::{Lpn, MappedRun, Ppn};
pub(crate) use reverse::Cursor;
use reverse::ReverseMap;
use undo::Undo;

/// A fixed-size array of its own memory, zero at first and then resident as it is touched: on huge pages where the system has them, unless
/// it is to lie on small ones.
pub(crate) struct ZeroedArray<T> {
    /// Just the elements, so that looking at one of them computes no length.
    memory: MmapMut,
    page: PageSize,
    element: std::marker::PhantomData<T>,
}

/// Pages of the machine's memory that an array lies on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageSize {
    /// As small as they are, for arrays that are touched in places only, and in order.
    Small,
    /// Huge where there are such, for arrays that are touched everywhere.
    Huge,
}

/// An element that is read and written by itself, without the checks that making a slice of all of them takes.
pub(crate) trait Element: Pod {
    /// The element at an index, of the bytes of an array.
    fn load(bytes: &[u8], at: usize) -> Self;
    /// Puts an element at an index; returns what was there.
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

element!(u32, u64);

impl<T: Element> ZeroedArray<T> {
    /// # Errors
    /// There is no memory for it, or no address space.
    pub(crate) fn zeroed(len: usize) -> std::io::Result<ZeroedArray<T>> {
        ZeroedArray::zeroed_on(len, PageSize::Huge)
    }

    fn zeroed_on(len: usize, page: PageSize) -> std::io::Result<ZeroedArray<T>> {
        assert!(len > 0, "the page maps have entries");
        let memory = MmapMut::map_anon(len * size_of::<T>())?;
        #[cfg(target_os = "linux")]
        // A kernel without transparent huge pages says no; the maps then work on small ones.
        let _ = memory.advise(match page {
            PageSize::Small => memmap2::Advice::NoHugePage,
            PageSize::Huge => memmap2::Advice::HugePage,
        });
        let array = ZeroedArray {
            memory,
            page,
            element: std::marker::PhantomData,
        };
        assert_eq!(
            array.get().len(),
            len,
            "the system gave other memory than was asked for"
        );
        Ok(array)
    }

    /// Has the system give all of its memory now, some of it to each thread of the pool, which takes less time than to be given it page by page on
    /// one. A system that cannot gives it later.
    fn populate(&self) {
        #[cfg(target_os = "linux")]
        {
            use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

            /// Memory that is asked for at a time.
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
        /// What is zero is so in the copy, without being touched.
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

/// See the module.
#[derive(Clone)]
pub(crate) struct Maps {
    /// `!ppn` for each logical page; 0 is "unmapped".
    l2p_inverted: ZeroedArray<u32>,
    /// Logical page of each physical page; meaningless where the page is not valid.
    reverse: ReverseMap,
    /// One bit for each physical page.
    valid: ZeroedArray<u64>,
    /// What every change of `l2p_inverted` is noted in first, while a checkpoint is being made.
    undo: Undo,
}

impl Maps {
    /// A copy.
    ///
    /// # Errors
    /// There is no address space for it.
    pub(crate) fn try_clone(&self) -> std::io::Result<Maps> {
        Ok(Maps {
            l2p_inverted: self.l2p_inverted.try_clone()?,
            reverse: self.reverse.try_clone()?,
            valid: self.valid.try_clone()?,
            undo: Undo::default(),
        })
    }

    /// `slice_pages`: what is erased together is some slices of so many pages, the first of them at 0.
    ///
    /// # Errors
    /// There is no memory for them, or no address space.
    pub(crate) fn new(logical_pages: u32, physical_pages: u32, slice_pages: u32) -> std::io::Result<Maps> {
        assert!(
            0 < logical_pages && logical_pages < physical_pages,
            "{physical_pages} pages of flash are too few for {logical_pages} logical pages"
        );
        assert!(
            physical_pages < Ppn::UNMAPPED.0,
            "the last number of a page means that there is none"
        );
        Ok(Maps {
            l2p_inverted: ZeroedArray::zeroed(index(logical_pages))?,
            reverse: ReverseMap::new(physical_pages, slice_pages)?,
            valid: ZeroedArray::zeroed(index(physical_pages.div_ceil(64)))?,
            undo: Undo::default(),
        })
    }

    /// See [`ZeroedArray::populate`]: of the mapping table, the largest of them.
    pub(crate) fn populate(&self) {
        self.l2p_inverted.populate();
    }

    #[inline]
    pub(crate) fn lookup(&self, lpn: Lpn) -> Ppn {
        Ppn(!self.l2p_inverted.at(lpn.index()))
    }

    /// The logical page that was written to a physical one last. Takes as long as counting a bit for each page of a region.
    pub(crate) fn logical(&self, ppn: Ppn) -> Lpn {
        self.reverse.logical(ppn)
    }

    #[inline]
    pub(crate) fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid.at(index(ppn.0 / 64)) >> (ppn.0 % 64) & 1 == 1
    }

    /// Asks for the entries of logical pages that will be read or written soon, so that their cache misses overlap.
    #[inline]
    pub(crate) fn prefetch_places(&self, pages: impl Iterator<Item = Lpn>) {
        let l2p = self.l2p_inverted.get();
        pages.for_each(|lpn| prefetch(l2p, lpn.index()));
    }

    /// Asks for what invalidating logical pages will touch, whose entries have been asked for before.
    #[inline]
    pub(crate) fn prefetch_valid(&self, pages: impl Iterator<Item = Lpn>) {
        let (l2p, valid) = (self.l2p_inverted.get(), self.valid.get());
        pages.for_each(|lpn| prefetch(valid, index(!l2p[lpn.index()] / 64)));
    }

    /// Length of the run from `lpn` on that is mapped to consecutive physical pages, at most `pages_max`, and where it
    /// is mapped to. A run of unmapped pages is a run too.
    #[inline(always)]
    pub(crate) fn mapped_run(&self, lpn: Lpn, pages_max: u32) -> (Ppn, u32) {
        if pages_max == 1 {
            return (self.lookup(lpn), 1);
        }
        let entries = &self.l2p_inverted.get()[lpn.index()..][..index(pages_max)];
        (Ppn(!entries[0]), run_length(entries))
    }

    /// Maps `pages` logical pages from `lpn` on to the physical ones from `ppn` on, which become valid.
    #[inline(always)]
    pub(crate) fn map(&mut self, lpn: Lpn, ppn: Ppn, pages: u32) {
        if let Some(log) = &mut self.undo.0 {
            log.note(self.l2p_inverted.get(), lpn, pages);
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
            log.note_unmapping(self.l2p_inverted.get(), lpn, pages);
        }
        self.l2p_inverted.get_mut()[lpn.index()..][..index(pages)].fill(0);
    }

    /// Moves runs of valid pages to consecutive physical pages from `to` on; returns how many pages. The old ones stay marked valid.
    #[inline]
    pub(crate) fn relocate(&mut self, runs: &[MappedRun], to: Ppn) -> u32 {
        /// Runs whose entries are asked for before they are needed.
        const AHEAD: usize = 32;
        if let Some(log) = &mut self.undo.0 {
            log.note_moves(runs);
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

    /// Says that a logical page is in a physical one now, and returns where it was. The rest of what [`Maps::map`] does remains for
    /// [`Maps::end_moves`].
    #[inline(always)]
    pub(crate) fn move_page(&mut self, lpn: Lpn, ppn: Ppn) -> Ppn {
        if let Some(log) = &mut self.undo.0 {
            log.note(self.l2p_inverted.get(), lpn, 1);
        }
        Ppn(!self.l2p_inverted.replace(lpn.index(), !ppn.0))
    }

    /// Notes which logical pages are in the physical ones from `ppn` on, which are marked valid by themselves
    /// ([`Maps::set_valid`]).
    #[inline]
    pub(crate) fn end_moves(&mut self, ppn: Ppn, lpns: impl Iterator<Item = Lpn>) {
        self.reverse.append_all(ppn.0, lpns.map(|lpn| (lpn.0, 1)));
    }

    /// Stands where the physical pages from `ppn` on are, to gather them.
    pub(crate) fn cursor(&self, ppn: Ppn) -> Cursor {
        self.reverse.cursor(ppn.0)
    }

    /// Appends to `runs` the valid pages of the 64 pages that the cursor's word covers, within `first..end`, and goes on to the
    /// next word; returns how many there are.
    #[inline]
    pub(crate) fn gather(&self, cursor: &mut Cursor, first: u32, end: u32, runs: &mut Vec<MappedRun>) -> u32 {
        let base = cursor.first_page();
        assert!(
            base < end,
            "valid pages are looked for behind the end of a reclaim unit"
        );
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

    /// Marks pages valid; none of them was.
    #[inline]
    pub(crate) fn set_valid(&mut self, ppn: Ppn, pages: u32) {
        set_valid(&mut self.valid, ppn.0, pages);
    }

    /// Marks pages invalid; all of them were valid.
    #[inline]
    pub(crate) fn clear_valid(&mut self, ppn: Ppn, pages: u32) {
        for_words(&mut self.valid, ppn.0, pages, |word, mask| {
            assert_eq!(*word & mask, mask, "a page is invalidated twice");
            *word &= !mask;
        });
    }

    /// Marks pages invalid, whatever they were.
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

    /// Whether none of these pages is valid.
    pub(crate) fn is_blank(&self, ppn: Ppn, pages: u32) -> bool {
        if ppn.0.is_multiple_of(64) && pages.is_multiple_of(64) {
            let words = &self.valid.get()[index(ppn.0 / 64)..][..index(pages / 64)];
            return words.iter().all(|word| *word == 0);
        }
        self.count_valid(ppn, pages) == 0
    }

    /// Entries of L2P as snapshots have them, in place of what is in `entries`.
    pub(crate) fn copy_entries(&self, pages: Range<u32>, entries: &mut Vec<u32>) {
        entries.clear();
        entries.extend_from_slice(&self.l2p_inverted.get()[index(pages.start)..index(pages.end)]);
    }

    /// Asks for what restoring these runs will touch, each an entry of L2P and how many pages.
    pub(crate) fn prefetch_restored(&self, runs: &[[u32; 2]]) {
        let valid = self.valid.get();
        runs.iter().for_each(|[entry, _]| prefetch(valid, index(!entry / 64)));
    }

    /// Maps logical pages that a snapshot says are mapped so, or says why they cannot be. The reverse map is made of all of
    /// them by [`Maps::restore_reverse`].
    pub(crate) fn restore(&mut self, lpn: Lpn, ppn: Ppn, pages: u32) -> Result<(), String> {
        let physical_pages = self.reverse.physical_pages();
        if ppn.0 >= physical_pages || pages > physical_pages - ppn.0 {
            return Err(format!("maps logical page {} to a page beyond its flash", lpn.0));
        }
        if self.count_valid(ppn, pages) > 0 {
            return Err(format!("maps logical page {} to where another one is", lpn.0));
        }
        fill_run(&mut self.l2p_inverted.get_mut()[lpn.index()..][..index(pages)], ppn.0);
        self.set_valid(ppn, pages);
        Ok(())
    }

    /// Makes the reverse map, after the last [`Maps::restore`].
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

/// Runs, `pages` in all, are in consecutive physical pages from `first` on now.
#[inline(always)]
fn append_runs(reverse: &mut ReverseMap, valid: &mut ZeroedArray<u64>, first: u32, runs: &[MappedRun], pages: u32) {
    reverse.append_all(first, runs.iter().map(|run| (run.lpn.0, run.pages)));
    set_valid(valid, first, pages);
}

/// Asks for the entries of a run: of its first and its last page, and the processor asks for what is between.
#[inline(always)]
fn prefetch_run(l2p: &[u32], run: &MappedRun) {
    prefetch(l2p, run.lpn.index());
    if run.pages > 1 {
        prefetch(l2p, run.lpn.index() + index(run.pages - 1));
    }
}

/// Lets the entries of a run say that it is in the physical pages from `to` on; returns the page behind the last of them.
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
    assert!(is_there, "the logical pages of a run are not where it says they are");
    to + pages
}

/// Lets entries of L2P say that their pages are in the physical ones from `ppn` on.
#[inline(always)]
fn fill_run(entries: &mut [u32], ppn: u32) {
    // Ranges with an end are checked once; the numbers of one without are checked one by one, which costs a fifth.
    let end = ppn + count(entries.len());
    for (entry, physical) in entries.iter_mut().zip(ppn..end) {
        *entry = !physical;
    }
}

/// Length of the run that some entries of L2P begin with.
#[inline(always)]
pub(crate) fn run_length(entries: &[u32]) -> u32 {
    let first = entries[0];
    let step = u32::from(first != 0);
    let mut expected = first;
    let mut pages = 0;
    // Inverted numbers fall along a run. The one after the last page of the flash is compared with nothing.
    let fall = [0, 1, 2, 3, 4, 5, 6, 7].map(|page| step * page);
    // Eight at a time are compared without a branch between them.
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

/// Calls with each word that some bits are in, and which of its bits they are.
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
