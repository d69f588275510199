//! The device: its host operations and its state.
//!
//! A [`Device`] combines a [`DeviceCore`], which implements all behavior, with an event sink. The
//! core is not generic over the sink, so it is compiled only once, in this crate. It calls the sink
//! only for events that the sink's filter includes. A device dereferences to its core
//! ([`std::ops::Deref`]), which has all queries and the operations that emit no events.
//!
//! A write takes the open reclaim unit of its (reclaim group, handle), invalidates the old copies
//! of its pages, appends the new ones and maps them (`write.rs`). Only opening a reclaim unit needs
//! free space, so foreground collection runs then (`unit_lifecycle.rs` takes and returns reclaim
//! units, `collect.rs` reclaims them). `wear.rs` moves data that does not change to worn
//! blocks. `check.rs` verifies the whole state by a full scan, for
//! tests.

pub(crate) mod blocks;
mod check;
mod collect;
mod copy;
mod engine;
mod open;
mod state;
mod timed;
mod unit_lifecycle;
mod view;
mod wear;
mod write;

use std::ops::{Deref, DerefMut};

use crate::config::DeviceConfig;
use crate::error::{ConfigError, HostError};
use crate::event::{EventEmitter, EventSink};
use crate::layout::DeviceLayout;
use crate::maps::PageMaps;
use crate::timing::CompletionTime;
use crate::types::{Lpn, Nanos, Placement, WriteRequest};

pub(crate) use copy::{StateBuffer, StateCopy};
pub use engine::DeviceCore;
pub(crate) use state::DeviceState;
pub use view::{Occupancy, UnitView};

/// A drive that sends its events to `S`. The sink `()` costs no time.
///
/// # Examples
///
/// A host writes the two halves of a drive through two handles. Then it overwrites every second
/// page of the first half, again and again. Garbage collection copies the pages between them, but
/// none of the other handle. `examples/ssd_device.rs` is a longer program.
///
/// ```
/// use ssd::{Device, DeviceConfig, Lpn, Placement, WriteRequest};
///
/// let mut config: DeviceConfig = toml::from_str(
///     r#"
///         [geometry]
///         physical_bytes = "16MiB"
///         over_provisioning = 0.25
///         reclaim_unit_bytes = "256KiB"
///         channels = 2
///         dies_per_channel = 2
///
///         [handles]
///         isolation = "persistently_isolated"
///     "#,
/// )?;
/// config.handles.count = 2;
/// let mut device = Device::new(&config)?;
/// let half = device.layout().logical_pages / 2;
/// let write = |first, pages, handle| WriteRequest {
///     first: Lpn(first),
///     pages,
///     host_bytes: u64::from(pages) * 4096,
///     placement: Placement::handle(handle),
/// };
/// let _ = device.write(0, &write(0, half, 0))?;
/// let _ = device.write(0, &write(half, half, 1))?;
/// assert_eq!(device.stats().write_amplification(), Some(1.0));
///
/// for index in 0..4 * half {
///     let _ = device.write(0, &write(index * 2 % half, 1, 0))?;
/// }
/// let handles = &device.stats().handles;
/// assert_eq!(handles[0].host_pages_written, u64::from(5 * half));
/// assert!(handles[0].gc_pages_copied > 0);
/// assert_eq!(handles[1].write_amplification(), Some(1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Device<S = ()> {
    engine: DeviceCore,
    sink: S,
}

impl Device {
    /// Creates an empty drive that reports no events.
    ///
    /// # Errors
    /// Same as [`DeviceLayout::new`](crate::DeviceLayout::new).
    pub fn new(config: &DeviceConfig) -> Result<Device, ConfigError> {
        Device::with_sink(config, ())
    }

    /// Restores a drive from its maps and its state.
    pub(crate) fn from_parts(config: DeviceConfig, layout: DeviceLayout, maps: PageMaps, state: DeviceState) -> Device {
        let engine = DeviceCore::from_parts(config, layout, maps, state);
        Device { engine, sink: () }
    }
}

impl<S> Deref for Device<S> {
    type Target = DeviceCore;

    #[inline]
    fn deref(&self) -> &DeviceCore {
        &self.engine
    }
}

impl<S> DerefMut for Device<S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut DeviceCore {
        &mut self.engine
    }
}

impl<S: EventSink> Device<S> {
    /// Creates an empty drive that reports to `sink`.
    ///
    /// # Errors
    /// Same as [`DeviceLayout::new`].
    pub fn with_sink(config: &DeviceConfig, mut sink: S) -> Result<Device<S>, ConfigError> {
        let engine = DeviceCore::new(config, &mut EventEmitter::new(&mut sink))?;
        Ok(Device { engine, sink })
    }

    /// Clones the drive without its sink. Returns an error where [`Clone`] would abort the process,
    /// for servers that must keep running.
    ///
    /// # Errors
    /// The system has no memory or no address space for the copy.
    pub fn try_clone(&self) -> std::io::Result<Device> {
        let engine = self.engine.try_clone()?;
        Ok(Device { engine, sink: () })
    }

    /// Replaces the event sink. Returns the drive and the previous sink.
    pub fn replace_sink<T: EventSink>(self, sink: T) -> (Device<T>, S) {
        let Device { engine, sink: before } = self;
        (Device { engine, sink }, before)
    }

    /// Event sink.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Event sink, mutable so that the caller can remove collected events.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Writes an extent.
    ///
    /// # Errors
    /// The extent or the placement does not exist. The device is unchanged.
    pub fn write(&mut self, now: Nanos, write: &WriteRequest) -> Result<CompletionTime, HostError> {
        self.engine.write(&mut EventEmitter::new(&mut self.sink), now, write)
    }

    /// Writes extents one after the other. Equivalent to [`Device::write`] on each, but much faster
    /// for small extents, because the memory that they touch is prefetched together.
    ///
    /// # Errors
    /// An extent or placement does not exist. The device is unchanged.
    pub fn write_batch(&mut self, now: Nanos, writes: &[WriteRequest]) -> Result<CompletionTime, HostError> {
        self.engine.write_batch(&mut EventEmitter::new(&mut self.sink), now, writes)
    }

    /// Writes each extent of `writes` at the corresponding time of `times`, which must not
    /// decrease. Equivalent to [`Device::write`] on each, but faster for small extents. Appends the
    /// completions to `done`.
    ///
    /// # Errors
    /// An extent or placement does not exist. The device is unchanged.
    ///
    /// # Panics
    /// The numbers of times and writes differ, or the times decrease.
    pub fn write_at_times(
        &mut self,
        times: &[Nanos],
        writes: &[WriteRequest],
        done: &mut Vec<CompletionTime>,
    ) -> Result<(), HostError> {
        assert_eq!(times.len(), writes.len(), "a write has a time");
        for write in writes {
            self.engine.check_write(write)?;
        }
        let events = &mut EventEmitter::new(&mut self.sink);
        self.engine.write_in_times(events, times, writes, done);
        Ok(())
    }

    /// Deallocates an extent. Its pages become unmapped, and collection does not copy them.
    ///
    /// # Errors
    /// The extent does not exist. The device is unchanged.
    pub fn deallocate(&mut self, now: Nanos, first: Lpn, pages: u32) -> Result<CompletionTime, HostError> {
        self.engine.deallocate(&mut EventEmitter::new(&mut self.sink), now, first, pages)
    }

    /// Zeroes an extent, by deallocation if `deallocate` (the DEAC bit of Write Zeroes) is set and
    /// by a write if not.
    ///
    /// # Errors
    /// Same as [`Device::write`].
    pub fn write_zeroes(
        &mut self,
        now: Nanos,
        write: &WriteRequest,
        deallocate: bool,
    ) -> Result<CompletionTime, HostError> {
        if deallocate {
            self.check_write(write)?;
            self.deallocate(now, write.first, write.pages)
        } else {
            self.write(now, write)
        }
    }

    /// Reclaim unit handle update. The handle closes its current reclaim unit and takes another
    /// one. Returns the number of pages in the closed unit that were never written, or 0 if no unit
    /// was open.
    ///
    /// # Errors
    /// The placement does not exist.
    pub fn update_handle(&mut self, now: Nanos, placement: Placement) -> Result<u32, HostError> {
        self.engine.check_placement(placement)?;
        let events = &mut EventEmitter::new(&mut self.sink);
        Ok(self.engine.close_for_host(events, now, placement))
    }
}
