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

use super::{Maps, fill_run, run_length, set_valid, words_of};
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

/// What one of those who work together has in hand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shard {
    pieces: Vec<Piece>,
    /// What it has found where pages were before, in the order of runs.
    pub(crate) left: Vec<Left>,
}

/// The part of a run that lies in a stripe.
#[derive(Clone, Copy, Debug)]
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) ppn: Ppn,
    pub(crate) pages: u32,
    /// The first of its logical pages: orders what one run has left.
    pub(crate) lpn: u32,
    /// Which of the runs it was.
    pub(crate) run: u32,
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

    /// Calls with each part of some elements that is this shard's: its stripe among the shard's, the offset in it, how many elements come before
    /// it, and how many it has.
    #[inline(always)]
    fn each(self, shard: u32, first: u32, count: u32, mut call: impl FnMut(u32, u32, u32, u32)) {
        let mut done = 0;
        while done < count {
            let at = first + done;
            let (stripe, offset) = (at >> self.stripe_bits, at & ((1 << self.stripe_bits) - 1));
            let here = (count - done).min((1 << self.stripe_bits) - offset);
            if stripe & ((1 << self.shard_bits) - 1) == shard {
                call(stripe >> self.shard_bits, offset, done, here);
            }
            done += here;
        }
    }
}

impl Shard {
    /// Lets the entries of L2P in this shard's stripes say where its parts of runs are now, each a logical page, how many, and the
    /// first of the physical ones; keeps where they were.
    fn move_runs(
        &mut self,
        (shard, deal): (u32, Deal),
        stripes: &mut [&mut [u32]],
        moves: impl Iterator<Item = (u32, u32, u32)>,
    ) {
        let Shard { pieces, left } = self;
        pieces.clear();
        left.clear();
        for (run, (lpn, pages, to)) in (0..).zip(moves) {
            deal.each(shard, lpn, pages, |stripe, offset, before, pages| {
                pieces.push(Piece {
                    stripe,
                    offset,
                    pages,
                    lpn: lpn + before,
                    to: to + before,
                    run,
                });
            });
        }
        let ask = |stripes: &[&mut [u32]], piece: &Piece| {
            let stripe = &stripes[index(piece.stripe)];
            prefetch(stripe, index(piece.offset));
            if piece.pages > 1 {
                prefetch(stripe, index(piece.offset + piece.pages - 1));
            }
        };
        pieces.iter().take(AHEAD).for_each(|piece| ask(stripes, piece));
        for (number, piece) in pieces.iter().enumerate() {
            if let Some(later) = pieces.get(number + AHEAD) {
                ask(stripes, later);
            }
            let entries = &mut stripes[index(piece.stripe)][index(piece.offset)..][..index(piece.pages)];
            let mut done = 0;
            while done < piece.pages {
                let before = &entries[index(done)..];
                let (entry, pages) = (before[0], run_length(before));
                if entry != 0 {
                    left.push(Left {
                        ppn: Ppn(!entry),
                        pages,
                        lpn: piece.lpn + done,
                        run: piece.run,
                    });
                }
                done += pages;
            }
            fill_run(entries, piece.to);
        }
    }
}

/// Lets each shard do its part, on as many threads as there are, and this one `beside` meanwhile. For so few `runs` that it does not pay,
/// this thread does all of it.
fn work<S: Send, R>(runs: usize, parts: Vec<S>, part: impl Fn(u32, S) + Sync, beside: impl FnOnce() -> R + Send) -> R
where
    R: Send,
{
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
    pub(crate) fn map_in_shards(&mut self, runs: &[MappedRun], shards: &mut [Shard]) {
        let moves = runs.iter().map(|run| (run.lpn.0, run.pages, run.ppn.0));
        self.move_in_shards(runs.len(), moves, shards);
    }

    /// As [`Maps::relocate`].
    pub(crate) fn relocate_in_shards(&mut self, runs: &[MappedRun], to: Ppn, shards: &mut [Shard]) -> u32 {
        let mut end = to.0;
        let moves = runs.iter().map(move |run| {
            let first = end;
            end += run.pages;
            (run.lpn.0, run.pages, first)
        });
        self.move_in_shards(runs.len(), moves, shards);
        let mut pages = 0;
        for left in shards.iter().flat_map(|shard| &shard.left) {
            let run = &runs[index(left.run)];
            assert_eq!(
                left.ppn.0.wrapping_sub(run.ppn.0),
                left.lpn - run.lpn.0,
                "the logical pages of a run are not where it says they are"
            );
            pages += left.pages;
        }
        let expected: u32 = runs.iter().map(|run| run.pages).sum();
        assert_eq!(
            pages, expected,
            "the logical pages of a run are not where it says they are"
        );
        pages
    }

    fn move_in_shards(
        &mut self,
        runs: usize,
        moves: impl Iterator<Item = (u32, u32, u32)> + Clone + Send + Sync,
        shards: &mut [Shard],
    ) {
        assert!(!self.is_noted(), "a checkpoint notes what one thread changes");
        let Maps {
            l2p_inverted,
            reverse,
            valid,
            undo: _,
        } = self;
        let used = if runs < DEALT_RUNS_MIN { 1 } else { shards.len() };
        let (shards, idle) = shards.split_at_mut(used);
        idle.iter_mut().for_each(|shard| shard.left.clear());
        let l2p = l2p_inverted.get_mut();
        let deal = Deal::of(wide(l2p.len()), shards.len(), 64);
        let parts = deal.stripes(l2p, 0).into_iter().zip(shards).collect();
        let each = moves.clone();
        let part = |number, (mut stripes, shard): (Vec<&mut [u32]>, &mut Shard)| {
            shard.move_runs((number, deal), &mut stripes, each.clone());
        };
        work(runs, parts, part, || {
            for (lpn, pages, to) in moves {
                reverse.append(to, lpn, pages);
                set_valid(valid, to, pages);
            }
        });
    }

    /// Marks what the shards have left as invalid; all of it was valid. Does `beside` meanwhile.
    pub(crate) fn clear_left<R: Send>(&mut self, shards: &[Shard], beside: impl FnOnce() -> R + Send) -> R {
        /// Pages of a word, as a power of two.
        const WORD_BITS: u32 = 6;
        let valid = self.valid.get_mut();
        let left = || shards.iter().flat_map(|shard| &shard.left);
        let runs = left().count();
        let used = if runs < DEALT_RUNS_MIN { 1 } else { shards.len() };
        let deal = Deal::of(wide(valid.len()) << WORD_BITS, used, 1 << WORD_BITS);
        let parts = deal.stripes(valid, WORD_BITS);
        let part = |number, mut stripes: Vec<&mut [u64]>| {
            let mut later = left().skip(AHEAD);
            for now in left() {
                if let Some(Left { ppn, .. }) = later.next() {
                    deal.each(number, ppn.0, 1, |stripe, offset, _, _| {
                        prefetch(&stripes[index(stripe)], index(offset >> WORD_BITS));
                    });
                }
                deal.each(number, now.ppn.0, now.pages, |stripe, offset, _, pages| {
                    words_of(offset, pages, |at, mask| {
                        let word = &mut stripes[index(stripe)][at];
                        assert_eq!(*word & mask, mask, "a page is invalidated twice");
                        *word &= !mask;
                    });
                });
            }
        };
        work(runs, parts, part, beside)
    }
}
