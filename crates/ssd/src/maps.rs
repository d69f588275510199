//! The page maps: logical to physical (L2P), physical to logical (P2L), and which physical pages are valid.
//!
//! Flat arrays on huge pages, because at random small writes the device does a cache miss or two for each page and
//! nothing else. Memory that the kernel hands out is zero, so the encodings make zero mean "nothing": L2P entries are
//! stored inverted. Nothing here knows reclaim units.

pub(crate) mod undo;

use std::ops::Range;

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::cast::{count, index, narrow};
use crate::types::{Lpn, Ppn};
use undo::Undo;

/// A fixed-size array on huge pages where the system has them, zero at first and then resident as it is touched.
pub(crate) struct HugeArray<T> {
    /// Just the elements, so that looking at one of them computes no length.
    memory: MmapMut,
    element: std::marker::PhantomData<T>,
}

/// An element that is read and written by itself, without the checks that making a slice of all of them takes.
pub(crate) trait Element: Pod {
    /// The element at an index, of the bytes of an array.
    fn load(bytes: &[u8], at: usize) -> Self;
    /// Puts an element at an index.
    fn store(bytes: &mut [u8], at: usize, value: Self);
}

macro_rules! element {
    ($($element:ty),*) => {$(
        impl Element for $element {
            #[inline]
            fn load(bytes: &[u8], at: usize) -> Self {
                Self::from_ne_bytes(bytes.as_chunks().0[at])
            }

            #[inline]
            fn store(bytes: &mut [u8], at: usize, value: Self) {
                bytes.as_chunks_mut().0[at] = value.to_ne_bytes();
            }
        }
    )*};
}

element!(u32, u64);

impl<T: Element> HugeArray<T> {
    pub(crate) fn zeroed(len: usize) -> HugeArray<T> {
        HugeArray::try_zeroed(len).expect("address space for the page maps")
    }

    fn try_zeroed(len: usize) -> std::io::Result<HugeArray<T>> {
        assert!(len > 0, "the page maps have entries");
        let memory = MmapMut::map_anon(len * size_of::<T>())?;
        #[cfg(target_os = "linux")]
        // A kernel without transparent huge pages says no; the maps then work on small ones.
        let _ = memory.advise(memmap2::Advice::HugePage);
        let array = HugeArray {
            memory,
            element: std::marker::PhantomData,
        };
        assert_eq!(
            array.get().len(),
            len,
            "the system gave other memory than was asked for"
        );
        Ok(array)
    }

    fn try_clone(&self) -> std::io::Result<HugeArray<T>> {
        let mut copy = HugeArray::try_zeroed(self.get().len())?;
        copy.get_mut().copy_from_slice(self.get());
        Ok(copy)
    }

    #[inline]
    pub(crate) fn at(&self, at: usize) -> T {
        T::load(&self.memory, at)
    }

    #[inline]
    pub(crate) fn set(&mut self, at: usize, value: T) {
        T::store(&mut self.memory, at, value);
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

impl<T: Element> Clone for HugeArray<T> {
    fn clone(&self) -> Self {
        self.try_clone().expect("address space for a copy of the page maps")
    }
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Maps {
    /// `!ppn` for each logical page; 0 is "unmapped".
    l2p_inverted: HugeArray<u32>,
    /// Logical page of each physical page; meaningless where the page is not valid.
    p2l: HugeArray<u32>,
    /// One bit for each physical page.
    valid: HugeArray<u64>,
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
            p2l: self.p2l.try_clone()?,
            valid: self.valid.try_clone()?,
            undo: Undo::default(),
        })
    }

    pub(crate) fn new(logical_pages: u32, physical_pages: u32) -> Maps {
        assert!(
            0 < logical_pages && logical_pages < physical_pages,
            "{physical_pages} pages of flash are too few for {logical_pages} logical pages"
        );
        assert!(
            physical_pages < Ppn::UNMAPPED.0,
            "the last number of a page means that there is none"
        );
        Maps {
            l2p_inverted: HugeArray::zeroed(index(logical_pages)),
            p2l: HugeArray::zeroed(index(physical_pages)),
            valid: HugeArray::zeroed(index(physical_pages.div_ceil(64))),
            undo: Undo::default(),
        }
    }

    #[inline]
    pub(crate) fn lookup(&self, lpn: Lpn) -> Ppn {
        Ppn(!self.l2p_inverted.at(lpn.index()))
    }

    #[inline]
    pub(crate) fn logical(&self, ppn: Ppn) -> Lpn {
        Lpn(self.p2l.at(ppn.index()))
    }

    #[inline]
    pub(crate) fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid.at(index(ppn.0 / 64)) >> (ppn.0 % 64) & 1 == 1
    }

    /// Reads what writing these logical pages will touch, so that the misses of a whole batch overlap.
    #[inline]
    pub(crate) fn touch(&self, pages: impl Iterator<Item = Lpn> + Clone) {
        let (l2p, valid) = (self.l2p_inverted.get(), self.valid.get());
        let mut seen = 0;
        for lpn in pages.clone() {
            seen ^= l2p[lpn.index()];
        }
        let mut words = 0;
        for lpn in pages {
            let ppn = !l2p[lpn.index()];
            words ^= valid.get(index(ppn / 64)).copied().unwrap_or(0);
        }
        std::hint::black_box((seen, words));
    }

    /// Reads where these logical pages are, so that the misses of a whole batch overlap.
    #[inline]
    pub(crate) fn touch_places(&self, pages: impl Iterator<Item = Lpn>) {
        let l2p = self.l2p_inverted.get();
        let seen = pages.fold(0, |seen, lpn| seen ^ l2p[lpn.index()]);
        std::hint::black_box(seen);
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
            self.p2l.set(ppn.index(), lpn.0);
            return self.set_valid(ppn, 1);
        }
        let entries = &mut self.l2p_inverted.get_mut()[lpn.index()..][..index(pages)];
        // Ranges with an end are checked once; the numbers of one without are checked one by one, which costs a fifth.
        for (entry, physical) in entries.iter_mut().zip(ppn.0..ppn.0 + pages) {
            *entry = !physical;
        }
        let entries = &mut self.p2l.get_mut()[ppn.index()..][..index(pages)];
        for (entry, logical) in entries.iter_mut().zip(lpn.0..lpn.0 + pages) {
            *entry = logical;
        }
        self.set_valid(ppn, pages);
    }

    pub(crate) fn unmap(&mut self, lpn: Lpn, pages: u32) {
        if let Some(log) = &mut self.undo.0 {
            log.note_unmapping(self.l2p_inverted.get(), lpn, pages);
        }
        self.l2p_inverted.get_mut()[lpn.index()..][..index(pages)].fill(0);
    }

    /// Moves a batch of valid pages to consecutive physical pages from `to` on. The old ones stay marked valid.
    #[inline]
    pub(crate) fn relocate(&mut self, from: &[u32], lpns: &[u32], to: Ppn) {
        assert_eq!(from.len(), lpns.len(), "each page that moves has a logical page");
        if let Some(log) = &mut self.undo.0 {
            log.note_moves(from, lpns);
        }
        let l2p = self.l2p_inverted.get_mut();
        for ((&old, &lpn), new) in from.iter().zip(lpns).zip(to.0..to.0 + count(lpns.len())) {
            let entry = &mut l2p[index(lpn)];
            assert_eq!(
                *entry, !old,
                "logical page {lpn} is not where physical page {old} says it is"
            );
            *entry = !new;
        }
        self.p2l.get_mut()[to.index()..][..lpns.len()].copy_from_slice(lpns);
        self.set_valid(to, count(lpns.len()));
    }

    /// Fills `from` and `lpns` with the valid pages of the 64 pages that `word` covers, within `first..end`.
    #[inline]
    pub(crate) fn gather(&self, word: u32, first: u32, end: u32, from: &mut Vec<u32>, lpns: &mut Vec<u32>) {
        let base = word * 64;
        let mut bits = self.valid.get()[index(word)];
        if base < first {
            bits &= u64::MAX << (first - base);
        }
        if u64::from(base) + 64 > u64::from(end) {
            bits &= u64::MAX >> (64 - (end - base));
        }
        /// From this length on a run is worth copying as one.
        const LONG_RUN: u32 = 8;
        let p2l = self.p2l.get();
        while bits != 0 {
            let shift = bits.trailing_zeros();
            let ppn = base + shift;
            let run = (bits >> shift).trailing_ones();
            if run >= LONG_RUN {
                from.extend(ppn..ppn + run);
                lpns.extend_from_slice(&p2l[index(ppn)..index(ppn + run)]);
                bits &= !((u64::MAX >> (64 - run)) << shift);
            } else {
                from.push(ppn);
                lpns.push(p2l[index(ppn)]);
                bits &= bits - 1;
            }
        }
        assert_eq!(from.len(), lpns.len(), "each page that is gathered has a logical page");
    }

    /// Marks pages valid; none of them was.
    #[inline]
    fn set_valid(&mut self, ppn: Ppn, pages: u32) {
        for_words(&mut self.valid, ppn.0, pages, |word, mask| {
            assert_eq!(*word & mask, 0, "a page that holds valid data is programmed");
            *word |= mask;
        });
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

    /// Reads what restoring these runs will touch, so that the misses of a whole batch overlap.
    pub(crate) fn touch_restored(&self, runs: &[[u32; 2]]) {
        let (p2l, valid) = (self.p2l.get(), self.valid.get());
        let seen = runs.iter().fold(0, |seen, [entry, _]| {
            let ppn = !entry;
            let logical = p2l.get(index(ppn)).copied().unwrap_or(0);
            let words = valid.get(index(ppn / 64)).copied().unwrap_or(0);
            seen ^ u64::from(logical) ^ words
        });
        std::hint::black_box(seen);
    }

    /// Maps logical pages that a snapshot says are mapped so, or says why they cannot be.
    pub(crate) fn restore(&mut self, lpn: Lpn, ppn: Ppn, pages: u32) -> Result<(), String> {
        let physical_pages = count(self.p2l.get().len());
        if ppn.0 >= physical_pages || pages > physical_pages - ppn.0 {
            return Err(format!("maps logical page {} to a page beyond its flash", lpn.0));
        }
        if self.count_valid(ppn, pages) > 0 {
            return Err(format!("maps logical page {} to where another one is", lpn.0));
        }
        self.map(lpn, ppn, pages);
        Ok(())
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
fn for_words(words: &mut HugeArray<u64>, first: u32, count: u32, mut change: impl FnMut(&mut u64, u64)) {
    if count == 1 {
        let at = index(first / 64);
        let mut word = words.at(at);
        change(&mut word, 1 << (first % 64));
        return words.set(at, word);
    }
    let words = words.get_mut();
    let (mut at, mut left) = (first, count);
    while left > 0 {
        let offset = at % 64;
        let here = left.min(64 - offset);
        let mask = (u64::MAX >> (64 - here)) << offset;
        change(&mut words[index(at / 64)], mask);
        at += here;
        left -= here;
    }
}
