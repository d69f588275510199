//! MSI-X vectors: the event file descriptors of the client, the table and the pending bits.
//!
//! The client (QEMU) keeps the table that the guest sees, and implements masking. It removes the
//! file descriptor of a masked vector. An interrupt raised while masked stays pending, and is
//! delivered with the next file descriptor.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use nvme::pcie::Interrupts;
use rustix::io::Errno;

use crate::account::{self, BudgetShare};

pub const TABLE_ENTRY_BYTES: u64 = 16;

/// All MSI-X vectors of a function.
pub struct Vectors {
    state: RefCell<VectorState>,
}

struct VectorState {
    events: Vec<Option<EventDescriptor>>,
    pending: Vec<bool>,
    table: Vec<u8>,
}

/// An event file descriptor, with its share of the process's descriptors.
struct EventDescriptor {
    file: File,
    _share: BudgetShare,
}

/// Effect of DEVICE_SET_IRQS on vectors.
#[derive(Debug)]
pub enum VectorChange {
    /// Assigns these file descriptors.
    Set(Vec<OwnedFd>),
    /// Removes the file descriptors of this many vectors.
    Off(usize),
    /// Raises the vectors whose entry is `true`.
    Raise(Vec<bool>),
}

impl Vectors {
    /// Creates `count` vectors without file descriptors.
    pub fn new(count: u16) -> Vectors {
        let count = usize::from(count);
        let mut table = vec![0; count * TABLE_ENTRY_BYTES as usize];
        for entry in table.chunks_exact_mut(TABLE_ENTRY_BYTES as usize) {
            // Masked, as after a reset.
            entry[12] = 1;
        }
        let state = VectorState { events: (0..count).map(|_| None).collect(), pending: vec![false; count], table };
        Vectors { state: RefCell::new(state) }
    }

    pub fn count(&self) -> usize {
        self.state.borrow().events.len()
    }

    /// Executes DEVICE_SET_IRQS from vector `first` on.
    pub fn change(&mut self, first: usize, change: VectorChange) -> io::Result<()> {
        let count = match &change {
            VectorChange::Set(files) => files.len(),
            VectorChange::Off(count) => *count,
            VectorChange::Raise(raised) => raised.len(),
        };
        let end = first.checked_add(count).filter(|end| *end <= self.count()).ok_or(Errno::INVAL)?;
        match change {
            VectorChange::Off(_) => self.state.get_mut().events[first..end].fill_with(|| None),
            VectorChange::Raise(raised) => {
                for (vector, _) in (first..end).zip(raised).filter(|(_, raise)| *raise) {
                    self.raise(vector as u16);
                }
            }
            VectorChange::Set(files) => {
                for (vector, file) in (first..end).zip(files) {
                    self.set(vector, file)?;
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, vector: usize, file: OwnedFd) -> io::Result<()> {
        // Nonblocking, so that the worker never waits for a peer that ignores its interrupts.
        // QEMU's descriptors already are nonblocking.
        rustix::io::ioctl_fionbio(&file, true)?;
        let state = self.state.get_mut();
        // The previous descriptor returns its share first.
        state.events[vector] = None;
        let share = account::descriptors().take(1).ok_or(Errno::MFILE)?;
        state.events[vector] = Some(EventDescriptor { file: File::from(file), _share: share });
        if std::mem::take(&mut state.pending[vector]) {
            self.raise(vector as u16);
        }
        assert!(
            !self.state.get_mut().pending[vector],
            "vector {vector} has a file descriptor, so no interrupt of it is pending"
        );
        Ok(())
    }

    /// Resets the pending bits and the table. File descriptors stay.
    pub fn reset(&mut self) {
        let fresh = Vectors::new(self.count() as u16).state.into_inner();
        let state = self.state.get_mut();
        state.pending = fresh.pending;
        state.table = fresh.table;
        assert_eq!(state.events.len(), state.pending.len(), "a reset keeps the number of vectors");
    }

    /// Reads the table at an offset. Bytes beyond its end are zero.
    pub fn read_table(&self, offset: u64, data: &mut [u8]) {
        copy_at(&self.state.borrow().table, offset, data);
    }

    pub fn write_table(&mut self, offset: u64, data: &[u8]) {
        let table = &mut self.state.get_mut().table;
        for (at, byte) in (offset..).zip(data) {
            if let Some(place) = usize::try_from(at).ok().and_then(|at| table.get_mut(at)) {
                *place = *byte;
            }
        }
    }

    /// Reads the pending bits. Bytes beyond the last vector are zero.
    pub fn read_pending(&self, offset: u64, data: &mut [u8]) {
        let state = self.state.borrow();
        let bits: Vec<u8> = state.pending.chunks(8).map(bits_of).collect();
        copy_at(&bits, offset, data);
    }
}

fn bits_of(flags: &[bool]) -> u8 {
    (0..).zip(flags).map(|(bit, flag)| u8::from(*flag) << bit).sum()
}

fn copy_at(source: &[u8], offset: u64, data: &mut [u8]) {
    for (at, byte) in (offset..).zip(data) {
        *byte = usize::try_from(at).ok().and_then(|at| source.get(at)).copied().unwrap_or(0);
    }
}

impl Interrupts for Vectors {
    fn raise(&self, vector: u16) {
        let mut state = self.state.borrow_mut();
        let vector = usize::from(vector);
        match &mut state.events[vector] {
            // A full event counter already signals an interrupt, and a closed peer needs none.
            Some(event) => drop(event.file.write(&1u64.to_ne_bytes())),
            None => state.pending[vector] = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[test]
    fn what_is_raised_without_a_descriptor_stays_pending() {
        let mut vectors = Vectors::new(10);
        vectors.raise(9);
        let mut bits = [0; 4];
        vectors.read_pending(0, &mut bits);
        assert_eq!(bits, [0, 2, 0, 0]);

        let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let mut reader = File::from(event.try_clone().unwrap());
        vectors.change(9, VectorChange::Set(vec![event])).unwrap();
        let mut count = [0; 8];
        reader.read_exact(&mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1);
        vectors.read_pending(0, &mut bits);
        assert_eq!(bits, [0; 4]);

        vectors.change(9, VectorChange::Off(1)).unwrap();
        vectors.raise(9);
        assert!(reader.read_exact(&mut count).is_err(), "nothing more came");
        assert!(vectors.change(9, VectorChange::Off(2)).is_err(), "there are 10 vectors");
        assert!(vectors.change(usize::MAX, VectorChange::Off(2)).is_err());
    }

    #[test]
    fn the_table_is_memory_with_its_vectors_masked() {
        let mut vectors = Vectors::new(2);
        let mut entry = [0xff; 16];
        vectors.read_table(16, &mut entry);
        assert_eq!(entry, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        vectors.write_table(28, &[7; 8]);
        vectors.read_table(28, &mut entry);
        assert_eq!(entry[..8], [7, 7, 7, 7, 0, 0, 0, 0]);
    }
}
