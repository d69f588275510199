//! Changing the maps with several threads, with the same outcome as one after the other.
//!
//! ```text
//! array    |  stripe 0  |  stripe 1  |  stripe 2  |  stripe 3  |  ...      a power of two of elements each
//! shard         0            1            0            1                   dealt out in turn, to a power of two of shards
//! ```
//!
//! Each shard goes through all that is to be done, in order, and does what lies in its stripes. So what happens to an entry of L2P, or to a
//! bit, happens in order, and which thread is first changes nothing. Looking at what is another's costs a nanosecond, doing what is
//! one's own some ten, most of them waiting for memory.
//!
//! What is appended in the order of the flash, the reverse map and the bits that become valid, is one thread's, beside the others.

use prefetch::prefetch;

use super::reverse::ReverseMap;
use super::{Maps, ZeroedArray, append_runs, fill_run, run_length, words_of};
use crate::cast::{index, wide};
use crate::types::{MappedRun, Ppn};

/// Stripes of a shard, about: enough that a part of the drive that is written more often than the rest is everybody's.
const STRIPES: u64 = 64;
/// Fewer runs than this are not worth dealing out.
const DEALT_RUNS_MIN: usize = 64;
/// Fewer runs than this are not worth waking a thread for.
const AWAKE_RUNS_MIN: usize = 512;
/// Pieces whose memory is asked for before they are done.
const AHEAD: usize = 16;

/// What those who work together have in hand.
#[derive(Clone, Debug)]
pub(crate) struct Shards {
    pieces: Vec<Chosen<Piece>>,
    left: Vec<Chosen<Left>>,
}

/// What one of them has.
type Hands<'a> = (&'a mut Chosen<Piece>, &'a mut Chosen<Left>);

/// The part of a run that lies in a stripe.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    /// Among the stripes of the shard.
    stripe: u32,
    offset: u32,
    pages: u32,
    lpn: u32,
    to: u32,
    /// Which of the runs it is of.
    run: u32,
}

/// Physical pages that a run's pages were in before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left {
    pub(crate) ppn: Ppn,
    pub(crate) pages: u32,
    /// The first of its logical pages: orders what one run has left.
    pub(crate) lpn: u32,
    /// Which of the runs it was.
    pub(crate) run: u32,
}

/// A list that is appended to without a branch: whether what was put behind its end counts is said afterwards. What it had before is kept, and
/// written over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen<T> {
    list: Vec<T>,
    len: usize,
}

impl<T: Copy + Default> Chosen<T> {
    fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    fn push_if(&mut self, chosen: bool, entry: T) {
        if self.len == self.list.len() {
            self.grow();
        }
        self.list[self.len] = entry;
        self.len += usize::from(chosen);
    }

    #[cold]
    fn grow(&mut self) {
        self.list.resize((2 * self.len).max(1024), T::default());
    }

    pub(crate) fn get(&self) -> &[T] {
        &self.list[..self.len]
    }
}

/// How an array is dealt out.
#[derive(Clone, Copy)]
struct Deal {
    /// Elements of a stripe, as a power of two.
    stripe_bits: u32,
    /// Shards, as a power of two.
    shard_bits: u32,
}

impl Deal {
    /// For so many elements of which `together` have to be in one stripe, both a power of two.
    fn of(elements: u64, shards: usize, together: u64) -> Deal {
        assert!(shards.is_power_of_two(), "{shards} shards are no power of two");
        let stripe = (elements / (STRIPES * wide(shards))).next_power_of_two();
        Deal {
            stripe_bits: stripe.max(together).trailing_zeros(),
            shard_bits: shards.trailing_zeros(),
        }
    }

    /// The stripes of each shard, in order. An element of the array stands for 2^`element_bits` of those that are dealt out.
    fn stripes<T>(self, array: &mut [T], element_bits: u32) -> Vec<Vec<&mut [T]>> {
        let mut dealt: Vec<Vec<&mut [T]>> = (0..1 << self.shard_bits).map(|_| Vec::new()).collect();
        let stripes = array.chunks_mut(1 << (self.stripe_bits - element_bits));
        for (number, stripe) in stripes.enumerate() {
            dealt[number & ((1 << self.shard_bits) - 1)].push(stripe);
        }
        dealt
    }

    /// Chooses the parts of some elements that are this shard's; `piece` makes one of its stripe among the shard's, the offset in it, how
    /// many elements come before it, and how many it has.
    #[inline(always)]
    fn choose(
        self,
        shard: u32,
        (first, count): (u32, u32),
        chosen: &mut Chosen<Piece>,
        piece: impl Fn(u32, u32, u32, u32) -> Piece,
    ) {
        let mut done = 0;
        while done < count {
            let at = first + done;
            let (stripe, offset) = (at >> self.stripe_bits, at & ((1 << self.stripe_bits) - 1));
            let here = (count - done).min((1 << self.stripe_bits) - offset);
            // Whose stripe it is nobody can foresee.
            let is_mine = stripe & ((1 << self.shard_bits) - 1) == shard;
            chosen.push_if(is_mine, piece(stripe >> self.shard_bits, offset, done, here));
            done += here;
        }
    }
}

impl Shards {
    /// A power of two of them.
    pub(crate) fn new(shards: usize) -> Shards {
        Shards {
            pieces: vec![Chosen::default(); shards],
            left: vec![Chosen::default(); shards],
        }
    }

    /// What they have left, of each run in order.
    pub(crate) fn left(&self) -> impl Iterator<Item = &Left> {
        self.left.iter().flat_map(Chosen::get)
    }
}

/// Calls with each piece, after the memory of those that follow has been asked for.
#[inline(always)]
fn each_piece<T: Copy>(
    pieces: &[Piece],
    stripes: &mut [&mut [T]],
    element: impl Fn(u32) -> usize,
    mut call: impl FnMut(&Piece, &mut [T]),
) {
    let ask = |stripes: &[&mut [T]], piece: &Piece| {
        let stripe = &stripes[index(piece.stripe)];
        prefetch(stripe, element(piece.offset));
        if piece.pages > 1 {
            prefetch(stripe, element(piece.offset + piece.pages - 1));
        }
    };
    pieces.iter().take(AHEAD).for_each(|piece| ask(stripes, piece));
    for (number, piece) in pieces.iter().enumerate() {
        if let Some(later) = pieces.get(number + AHEAD) {
            ask(stripes, later);
        }
        call(piece, stripes[index(piece.stripe)]);
    }
}

/// Lets the entries of L2P in a shard's stripes say where its pieces of runs are now; keeps where they were.
fn move_pieces(pieces: &[Piece], stripes: &mut [&mut [u32]], left: &mut Chosen<Left>) {
    left.clear();
    each_piece(pieces, stripes, index, |piece, stripe| {
        let Piece {
            offset,
            pages,
            lpn,
            to,
            run,
            ..
        } = *piece;
        if pages == 1 {
            let entry = std::mem::replace(&mut stripe[index(offset)], !to);
            let ppn = Ppn(!entry);
            return left.push_if(entry != 0, Left { ppn, pages, lpn, run });
        }
        let entries = &mut stripe[index(offset)..][..index(pages)];
        let mut done = 0;
        while done < pages {
            let before = &entries[index(done)..];
            let (entry, pages) = (before[0], run_length(before));
            let (ppn, lpn) = (Ppn(!entry), lpn + done);
            left.push_if(entry != 0, Left { ppn, pages, lpn, run });
            done += pages;
        }
        fill_run(entries, to);
    });
}

/// Lets each shard do its part, on as many threads as there are, and this one `beside` meanwhile. For so few `runs` that it does not pay,
/// this thread does all of it.
fn work<S: Send, R: Send>(
    runs: usize,
    parts: Vec<S>,
    part: impl Fn(u32, S) + Sync,
    beside: impl FnOnce() -> R + Send,
) -> R {
    let parts = (0..).zip(parts);
    if runs < AWAKE_RUNS_MIN {
        parts.for_each(|(shard, of_shard)| part(shard, of_shard));
        return beside();
    }
    let part = &part;
    rayon::scope(|scope| {
        for (shard, of_shard) in parts {
            scope.spawn(move |_| part(shard, of_shard));
        }
        beside()
    })
}

impl Maps {
    /// As [`Maps::map`] on one run after the other, but that the physical pages where they were stay marked valid: they are what the shards have
    /// left, for [`Maps::clear_left`].
    pub(crate) fn map_in_shards(&mut self, runs: &[MappedRun], shards: &mut Shards) {
        let moves = runs.iter().map(|run| (run.lpn.0, run.pages, run.ppn.0));
        self.move_in_shards(runs.len(), moves, shards, |maps| {
            // Extents that lie side by side, as they do but where several reclaim units are open.
            let side_by_side = |one: &MappedRun, next: &MappedRun| one.ppn.0 + one.pages == next.ppn.0;
            for runs in runs.chunk_by(side_by_side) {
                maps.append(runs[0].ppn.0, runs);
            }
        });
    }

    /// As [`Maps::relocate`].
    pub(crate) fn relocate_in_shards(&mut self, runs: &[MappedRun], to: Ppn, shards: &mut Shards) -> u32 {
        let mut end = to.0;
        let moves = runs.iter().map(move |run| {
            let first = end;
            end += run.pages;
            (run.lpn.0, run.pages, first)
        });
        let expected = self.move_in_shards(runs.len(), moves, shards, |maps| maps.append(to.0, runs));
        let mut pages = 0;
        for left in shards.left() {
            let run = &runs[index(left.run)];
            assert_eq!(
                left.ppn.0.wrapping_sub(run.ppn.0),
                left.lpn - run.lpn.0,
                "the logical pages of a run are not where it says they are"
            );
            pages += left.pages;
        }
        assert_eq!(
            pages, expected,
            "the logical pages of a run are not where it says they are"
        );
        pages
    }

    /// Says where runs are now, each a logical page, how many, and the first of the physical ones, and lets `in_order` do what one thread has
    /// to do.
    fn move_in_shards<R: Send>(
        &mut self,
        runs: usize,
        moves: impl Iterator<Item = (u32, u32, u32)> + Clone + Send + Sync,
        shards: &mut Shards,
        in_order: impl FnOnce(&mut Appended<'_>) -> R + Send,
    ) -> R {
        assert!(!self.is_noted(), "a checkpoint notes what one thread changes");
        let Maps {
            l2p_inverted,
            reverse,
            valid,
            undo: _,
        } = self;
        let used = if runs < DEALT_RUNS_MIN { 1 } else { shards.left.len() };
        shards.left[used..].iter_mut().for_each(Chosen::clear);
        let l2p = l2p_inverted.get_mut();
        let deal = Deal::of(wide(l2p.len()), used, 64);
        let hands = shards.pieces.iter_mut().zip(&mut shards.left);
        let parts = deal.stripes(l2p, 0).into_iter().zip(hands).collect();
        let part = |shard, (mut stripes, (pieces, left)): (Vec<&mut [u32]>, Hands<'_>)| {
            pieces.clear();
            for (run, (lpn, pages, to)) in (0..).zip(moves.clone()) {
                deal.choose(shard, (lpn, pages), pieces, |stripe, offset, before, pages| Piece {
                    stripe,
                    offset,
                    pages,
                    lpn: lpn + before,
                    to: to + before,
                    run,
                });
            }
            move_pieces(pieces.get(), &mut stripes, left);
        };
        work(runs, parts, part, || in_order(&mut Appended { reverse, valid }))
    }

    /// Marks what the shards have left as invalid; all of it was valid. Does `beside` with it meanwhile.
    pub(crate) fn clear_left<R: Send>(
        &mut self,
        shards: &mut Shards,
        beside: impl FnOnce(&[Chosen<Left>]) -> R + Send,
    ) -> R {
        /// Pages of a word, as a power of two.
        const WORD_BITS: u32 = 6;
        let valid = self.valid.get_mut();
        let Shards { pieces, left } = shards;
        let left: &[Chosen<Left>] = left;
        let runs = left.iter().map(|left| left.len).sum();
        let used = if runs < DEALT_RUNS_MIN { 1 } else { pieces.len() };
        let deal = Deal::of(wide(valid.len()) << WORD_BITS, used, 1 << WORD_BITS);
        let parts = deal.stripes(valid, WORD_BITS).into_iter().zip(pieces).collect();
        let part = |shard, (mut stripes, pieces): (Vec<&mut [u64]>, &mut Chosen<Piece>)| {
            pieces.clear();
            for &Left { ppn, pages, .. } in left.iter().flat_map(Chosen::get) {
                deal.choose(shard, (ppn.0, pages), pieces, |stripe, offset, _, pages| Piece {
                    stripe,
                    offset,
                    pages,
                    ..Piece::default()
                });
            }
            each_piece(
                pieces.get(),
                &mut stripes,
                |page| index(page >> WORD_BITS),
                |piece, stripe| {
                    words_of(piece.offset, piece.pages, |at, mask| {
                        assert_eq!(stripe[at] & mask, mask, "a page is invalidated twice");
                        stripe[at] &= !mask;
                    });
                },
            );
        };
        work(runs, parts, part, || beside(left))
    }
}

/// What is appended to in the order of the flash.
struct Appended<'a> {
    reverse: &'a mut ReverseMap,
    valid: &'a mut ZeroedArray<u64>,
}

impl Appended<'_> {
    /// Runs are in consecutive physical pages now; returns how many.
    fn append(&mut self, first: u32, runs: &[MappedRun]) -> u32 {
        let pages = runs.iter().map(|run| run.pages).sum();
        append_runs(self.reverse, self.valid, first, runs, pages);
        pages
    }
}
