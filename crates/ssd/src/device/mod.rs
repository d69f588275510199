//! The device: what a host can ask of it, and its state.
//!
//! A [`Device`] is an [`Engine`], which does everything, and the sink of its events. The engine does not know the type
//! of the sink, so it is compiled once, here. It reports to a sink only when there is an event. A device lends its engine
//! ([`std::ops::Deref`]), so all questions and changes without events are methods of the engine.
//!
//! A write takes the open reclaim unit of its (reclaim group, handle), invalidates where its pages were, appends them
//! and maps them (`write.rs`). Opening a reclaim unit is the moment at which room is needed and collection runs
//! (`place.rs` takes and returns reclaim units, `collect.rs` reclaims them). `check.rs` proves the whole state by full
//! scan, for tests.

pub(crate) mod blocks;
mod check;
mod collect;
mod copy;
mod engine;
mod open;
mod place;
mod state;
mod timed;
mod view;
mod write;

use std::ops::{Deref, DerefMut};

use crate::config::DeviceConfig;
use crate::error::{ConfigError, HostError};
use crate::event::{EventSink, Events};
use crate::layout::Layout;
use crate::maps::Maps;
use crate::timing::Completion;
use crate::types::{Lpn, Nanos, Placement, Write};

pub(crate) use copy::{StateCopy, StateRoom};
pub use engine::Engine;
pub(crate) use state::State;
pub use view::{Occupancy, UnitView};

/// A drive. `S` receives its events; `()` costs nothing.
#[derive(Clone)]
pub struct Device<S = ()> {
    engine: Engine,
    sink: S,
}

impl Device {
    /// Makes an empty drive that keeps its events to itself.
    ///
    /// # Errors
    /// As [`Layout::new`](crate::Layout::new).
    pub fn new(config: &DeviceConfig) -> Result<Device, ConfigError> {
        Device::with_sink(config, ())
    }

    /// A drive that was there before: its maps and its state.
    pub(crate) fn from_parts(config: DeviceConfig, layout: Layout, maps: Maps, state: State) -> Device {
        let engine = Engine::from_parts(config, layout, maps, state);
        Device { engine, sink: () }
    }
}

impl<S> Deref for Device<S> {
    type Target = Engine;

    #[inline]
    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl<S> DerefMut for Device<S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

impl<S: EventSink> Device<S> {
    /// Makes an empty drive that reports to `sink`.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn with_sink(config: &DeviceConfig, mut sink: S) -> Result<Device<S>, ConfigError> {
        let engine = Engine::new(config, &mut Events::of(&mut sink))?;
        Ok(Device { engine, sink })
    }

    /// A copy without events, or an error where [`Clone`] would end the process: for those who serve others meanwhile.
    ///
    /// # Errors
    /// The system has no memory or no address space for it.
    pub fn try_clone(&self) -> std::io::Result<Device> {
        let engine = self.engine.try_clone()?;
        Ok(Device { engine, sink: () })
    }

    /// The same drive, reporting to another sink from now on.
    pub fn replace_sink<T: EventSink>(self, sink: T) -> (Device<T>, S) {
        let Device { engine, sink: before } = self;
        (Device { engine, sink }, before)
    }

    /// The event sink.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// The event sink, to take out what it has collected.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Writes an extent.
    ///
    /// # Errors
    /// The extent or the placement does not exist; nothing was done.
    pub fn write(&mut self, now: Nanos, write: &Write) -> Result<Completion, HostError> {
        self.engine.write(&mut Events::of(&mut self.sink), now, write)
    }

    /// Writes extents one after the other; the same as [`Device::write`] on each, but much faster for small ones,
    /// because the memory that all of them touch is fetched together.
    ///
    /// # Errors
    /// An extent or placement does not exist; nothing was done.
    pub fn write_batch(&mut self, now: Nanos, writes: &[Write]) -> Result<Completion, HostError> {
        self.engine.write_batch(&mut Events::of(&mut self.sink), now, writes)
    }

    /// Writes extents at times that do not go back, each of `times` one of `writes`: the same as [`Device::write`] on each, but
    /// faster for small ones. Their completions are appended to `done`.
    ///
    /// # Errors
    /// An extent or placement does not exist; nothing was done.
    ///
    /// # Panics
    /// There are not as many times as writes.
    pub fn write_at_times(
        &mut self,
        times: &[Nanos],
        writes: &[Write],
        done: &mut Vec<Completion>,
    ) -> Result<(), HostError> {
        assert_eq!(times.len(), writes.len(), "each write comes at a time");
        for write in writes {
            self.engine.check_write(write)?;
        }
        let events = &mut Events::of(&mut self.sink);
        self.engine.write_in_times(events, times, writes, done);
        Ok(())
    }

    /// Deallocates an extent: its pages read as nothing and cost collection nothing.
    ///
    /// # Errors
    /// The extent does not exist; nothing was done.
    pub fn deallocate(&mut self, now: Nanos, first: Lpn, pages: u32) -> Result<Completion, HostError> {
        self.engine
            .deallocate(&mut Events::of(&mut self.sink), now, first, pages)
    }

    /// Zeroes an extent: with `deallocate` (the DEAC bit of Write Zeroes) by deallocating it, otherwise by writing.
    ///
    /// # Errors
    /// As [`Device::write`].
    pub fn write_zeroes(&mut self, now: Nanos, write: &Write, deallocate: bool) -> Result<Completion, HostError> {
        if deallocate {
            self.check_write(write)?;
            self.deallocate(now, write.first, write.pages)
        } else {
            self.write(now, write)
        }
    }

    /// Reclaim unit handle update: the handle closes the reclaim unit that it writes to and takes another one. Returns
    /// the pages of the closed one that were never written, 0 if there was nothing to close.
    ///
    /// # Errors
    /// The placement does not exist.
    pub fn update_handle(&mut self, now: Nanos, placement: Placement) -> Result<u32, HostError> {
        self.engine.check_placement(placement)?;
        let events = &mut Events::of(&mut self.sink);
        Ok(self.engine.close_for_host(events, now, placement))
    }
}
