//! A volatile write cache that can be lost. It records the old content under the newest unflushed
//! writes.
//!
//! ```text
//! write   -> note the old bytes -> storage     (a full cache drops its oldest notes)
//! flush   -> make the storage durable -> drop the notes of earlier writes
//! lost    -> restore old bytes, piece by piece from the newest write on, until one survives
//! ```
//!
//! After a power loss, each 4 KiB piece has its flushed content or the content after one of its
//! unflushed writes. Deallocated and zeroed ranges are final immediately. Without records this type
//! only forwards to the storage.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prefetch::NonTemporalBuf;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::PowerLoss;
use crate::media::{FlushHandle, Media, MediaError, MonotonicCounters, ScrubResults};
use crate::namespace::BlockSet;

/// Size of an aligned piece that survives a power loss completely or not at all (AWUPF).
const PIECE_BYTES: u64 = 4096;
/// Overhead of a note beside its bytes, which also bounds many small notes.
const NOTE_BYTES: u64 = 64;

struct UnflushedRange {
    sequence: u64,
    offset: u64,
    bytes: u64,
    /// Old content. `None` for a change that is final.
    old: Option<Vec<u8>>,
}

struct UnflushedRanges {
    notes: VecDeque<UnflushedRange>,
    bytes: u64,
    bytes_max: u64,
    sequence: u64,
    lost: bool,
}

impl UnflushedRanges {
    fn note(&mut self, offset: u64, bytes: u64, old: Option<Vec<u8>>) {
        assert!(
            old.as_ref().is_none_or(|old| old.len() as u64 == bytes),
            "the old content has the {bytes} bytes of the change"
        );
        self.bytes += old.as_ref().map_or(0, |old| old.len() as u64) + NOTE_BYTES;
        let sequence = self.sequence;
        self.sequence += 1;
        self.notes.push_back(UnflushedRange { sequence, offset, bytes, old });
        while self.bytes > self.bytes_max {
            self.forget_oldest();
        }
        assert!(self.bytes <= self.bytes_max, "a power loss loses at most the cached data");
    }

    fn forget_oldest(&mut self) {
        let oldest = self.notes.pop_front().expect("the byte count equals the sum of the notes");
        self.bytes -= oldest.old.map_or(0, |old| old.len() as u64) + NOTE_BYTES;
    }

    fn forget_before(&mut self, sequence: u64) {
        assert!(
            sequence <= self.sequence,
            "a flush covers notes before {sequence}, the next note is {}",
            self.sequence
        );
        while self.notes.front().is_some_and(|note| note.sequence < sequence) {
            self.forget_oldest();
        }
        assert!(!self.notes.is_empty() || self.bytes == 0, "the byte count equals the sum of the notes");
    }
}

/// Flush handle. It flushes the storage and then drops the notes of earlier writes.
struct CacheFlush {
    storage: Arc<dyn FlushHandle>,
    notes: Arc<Mutex<UnflushedRanges>>,
}

impl FlushHandle for CacheFlush {
    fn flush(&self) -> std::io::Result<()> {
        let covered = lock(&self.notes).sequence;
        self.storage.flush()?;
        let mut notes = lock(&self.notes);
        if notes.lost {
            return Err(no_power());
        }
        notes.forget_before(covered);
        Ok(())
    }
}

/// Locks the notes. No code panics while they are half-changed.
fn lock(notes: &Mutex<UnflushedRanges>) -> MutexGuard<'_, UnflushedRanges> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_power() -> std::io::Error {
    std::io::Error::other("the drive lost power")
}

pub(crate) struct CachedMedia {
    storage: Box<dyn Media>,
    notes: Option<Arc<Mutex<UnflushedRanges>>>,
    /// Handle that makes all data durable. `None` if the drive has no volatile write cache.
    durable: Option<Arc<dyn FlushHandle>>,
    recorded_counters: MonotonicCounters,
}

impl CachedMedia {
    pub fn new(storage: Box<dyn Media>) -> CachedMedia {
        CachedMedia {
            durable: storage.flush_handle(),
            storage,
            notes: None,
            recorded_counters: MonotonicCounters::default(),
        }
    }

    /// True if the drive has a volatile write cache.
    #[inline]
    pub fn has_write_cache(&self) -> bool {
        self.durable.is_some()
    }

    /// Makes up to `bytes_max` unflushed bytes losable. `None` makes all writes final.
    pub fn set_cache(&mut self, bytes_max: Option<u64>) {
        let storage = self.storage.flush_handle();
        self.notes = bytes_max.map(|bytes_max| {
            Arc::new(Mutex::new(UnflushedRanges {
                notes: VecDeque::new(),
                bytes: 0,
                bytes_max,
                sequence: 0,
                lost: false,
            }))
        });
        let had_cache = self.has_write_cache();
        self.durable = match &self.notes {
            None => storage,
            Some(notes) => storage.map(|storage| {
                let notes = Arc::clone(notes);
                Arc::new(CacheFlush { storage, notes }) as Arc<dyn FlushHandle>
            }),
        };
        assert_eq!(self.has_write_cache(), had_cache, "only storage decides whether there is a cache");
    }

    /// Loses power. Each unflushed piece survives with the probability `survivors`. No later write
    /// is stored.
    ///
    /// # Panics
    /// The storage has no losable cache.
    pub fn lose(&mut self, seed: u64, survivors: f64) -> PowerLoss {
        let notes = self.notes.as_ref().expect("only a cache can be lost");
        let mut notes = lock(notes);
        notes.lost = true;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Pieces that already have their content after the power loss.
        let mut decided = BlockSet::default();
        let mut loss = PowerLoss::default();
        while let Some(note) = notes.notes.pop_back() {
            let end = note.offset + note.bytes;
            let pieces = note.offset / PIECE_BYTES..end.div_ceil(PIECE_BYTES);
            let Some(old) = &note.old else {
                decided.insert(pieces.start, pieces.end - pieces.start);
                continue;
            };
            for piece in pieces {
                if decided.first_in(piece, 1).is_some() {
                    continue;
                }
                if random.random::<f64>() < survivors {
                    loss.pieces_kept += 1;
                    decided.insert(piece, 1);
                    continue;
                }
                loss.pieces_lost += 1;
                let from = note.offset.max(piece * PIECE_BYTES);
                let to = end.min((piece + 1) * PIECE_BYTES);
                let old = &old[(from - note.offset) as usize..(to - note.offset) as usize];
                if let Err(error) = put_back(&mut *self.storage, from, old) {
                    loss.problem = Some(error.to_string());
                }
            }
        }
        notes.bytes = 0;
        assert!(notes.notes.is_empty() && notes.lost, "nothing can be lost twice");
        loss
    }

    fn lock_ranges(&self) -> Option<MutexGuard<'_, UnflushedRanges>> {
        self.notes.as_deref().map(lock)
    }
}

/// Restores old content. Zeroes are discarded instead of written.
fn put_back(storage: &mut dyn Media, offset: u64, old: &[u8]) -> Result<(), MediaError> {
    if old.iter().all(|&byte| byte == 0) {
        storage.discard(offset, old.len() as u64)
    } else {
        storage.write(offset, old)
    }
}

fn check_power(notes: &UnflushedRanges, action: &'static str, offset: u64, bytes: u64) -> Result<(), MediaError> {
    if !notes.lost {
        return Ok(());
    }
    Err(MediaError { action, offset, bytes, source: no_power() })
}

impl Media for CachedMedia {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), MediaError> {
        self.storage.read(offset, data)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), MediaError> {
        // `lock_ranges` would borrow `self`, but the storage is read while the notes are locked.
        if let Some(mut notes) = self.notes.as_deref().map(lock) {
            check_power(&notes, "writing", offset, data.len() as u64)?;
            let mut old = vec![0; data.len()];
            self.storage.read(offset, &mut old)?;
            notes.note(offset, data.len() as u64, Some(old));
        }
        self.storage.write(offset, data)
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        self.storage.prefetch(offset, bytes);
    }

    fn read_with(
        &mut self,
        offset: u64,
        bytes: u64,
        buffer: &mut Vec<u8>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), MediaError> {
        self.storage.read_with(offset, bytes, buffer, take)
    }

    fn flush_nontemporal(&mut self) {
        self.storage.flush_nontemporal();
    }

    fn write_with(
        &mut self,
        offset: u64,
        bytes: u64,
        buffer: &mut Vec<u8>,
        give: &mut dyn FnMut(NonTemporalBuf<'_>) -> bool,
    ) -> Result<(), MediaError> {
        if self.notes.is_none() {
            return self.storage.write_with(offset, bytes, buffer, give);
        }
        // The old content is recorded first, so the new data must be complete.
        self.write_through_buffer(offset, bytes, buffer, give)
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        if let Some(mut notes) = self.lock_ranges().filter(|_| bytes > 0) {
            check_power(&notes, "discarding", offset, bytes)?;
            notes.note(offset, bytes, None);
        }
        self.storage.discard(offset, bytes)
    }

    fn store_state(&mut self, state: &[u8]) -> Result<(), MediaError> {
        if let Some(notes) = self.lock_ranges() {
            check_power(&notes, "storing the drive's state of", 0, state.len() as u64)?;
        }
        self.storage.store_state(state)
    }

    fn record_counters(&mut self, counters: &MonotonicCounters) {
        if *counters != self.recorded_counters {
            self.storage.record_counters(counters);
            self.recorded_counters = *counters;
        }
    }

    fn scrub_results(&self) -> Option<ScrubResults> {
        self.storage.scrub_results()
    }

    fn flush_handle(&self) -> Option<Arc<dyn FlushHandle>> {
        self.durable.clone()
    }
}
