//! Storing a drive while it is served: snapshot and state of one moment, which hosts wait for no longer than for a few commands.
//!
//! ```text
//! drive held    has anything changed? how large are the tables?
//! drive free    room for a copy of them (ssd::checkpoint::Room)
//! drive held    the moment: the device's tables and the non-volatile state are copied, the state gets its ticket
//! drive held    a part of the map is copied (256 KiB)             \ again and again, for all parts
//! drive free    the part is made what it was, and written; a pause /
//! drive free    the snapshot takes its place, then the state does, unless a command has stored a later one
//! ```
//!
//! The snapshot is in its place before the state is: recovery makes any snapshot agree with a later state and with the data, which hosts
//! have written on all the time ([`super::recover`]), so nothing else has to wait for anything. What ends a checkpoint early leaves both
//! files as they were, and the drive goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nvme::{Persistent, Subsystem};
use rustix::time::{ClockId, clock_gettime};
use ssd::checkpoint::Room;
use ssd::{Checkpoint, Layout};

use super::error::DriveError;
use super::state_file::{CleanMark, Ticket};
use super::{Persistence, ServedDrive, commands, lock};
use crate::Shared;

/// What has come of checkpoints since the drive was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointStatus {
    /// Those that were made; what had not changed was not stored again.
    pub made: u64,
    /// Those that came to nothing.
    pub failed: u64,
    /// Parts of the map that are copied, and parts that there are, while one is being made.
    pub under_way: Option<(u32, u32)>,
    /// How long the last one took that was made.
    pub last: Duration,
    /// The longest time for which one of them has held the drive.
    pub longest_hold: Duration,
    /// The most processor time that one has taken while it held the drive: without what it waited for a processor meanwhile.
    pub longest_hold_busy: Duration,
}

/// The checkpoints of a drive, for those who watch it and for whoever stops it.
#[derive(Debug, Default)]
pub struct Checkpoints {
    status: Mutex<CheckpointStatus>,
    is_stopping: AtomicBool,
}

impl Checkpoints {
    /// What has come of them until now.
    pub fn status(&self) -> CheckpointStatus {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the one that is being made, at its next part, and all that follow.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    fn note(&self, change: impl FnOnce(&mut CheckpointStatus)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Does something with the drive held, and notes for how long it was.
    fn hold<T>(
        &self,
        shared: &Shared,
        work: impl FnOnce(&mut Subsystem) -> Result<T, DriveError>,
    ) -> Result<T, DriveError> {
        let mut subsystem = lock(shared)?;
        let (began, busy_before) = (Instant::now(), processor_time());
        let done = work(&mut subsystem);
        drop(subsystem);
        let (held, busy) = (began.elapsed(), processor_time().saturating_sub(busy_before));
        self.note(|status| {
            status.longest_hold = status.longest_hold.max(held);
            status.longest_hold_busy = status.longest_hold_busy.max(busy);
        });
        done
    }
}

/// Processor time of this thread until now.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A drive at the moment of a checkpoint.
struct Moment {
    /// The device; `None` if it is as it was at the checkpoint before.
    device: Option<Checkpoint>,
    state: Persistent,
    ticket: Ticket,
    mark: CleanMark,
    commands: u64,
}

impl ServedDrive {
    /// Stores mapping, counters and state, so that less has to be recovered after a crash, if anything has changed;
    /// returns whether it had. The drive is served meanwhile. `between_parts` is called after each part of the map, without the drive:
    /// whoever serves it gives the others time there.
    ///
    /// # Errors
    /// The system's, too many changes, or the drive is being stopped; the previous checkpoint is still there.
    pub fn checkpoint(&mut self, between_parts: impl FnMut()) -> Result<bool, DriveError> {
        let Some(persistence) = &mut self.persistence else {
            return Ok(false);
        };
        if persistence.storage.is_closed() {
            return Ok(false);
        }
        let began = Instant::now();
        let made = persistence.checkpoint(&self.shared, &self.checkpoints, between_parts);
        self.checkpoints.note(|status| {
            status.under_way = None;
            match made {
                Ok(false) => {}
                Ok(true) => {
                    status.made += 1;
                    status.last = began.elapsed();
                }
                Err(_) => status.failed += 1,
            }
        });
        made
    }

    /// What has come of checkpoints, for those who have not got the drive.
    pub fn checkpoints(&self) -> Arc<Checkpoints> {
        Arc::clone(&self.checkpoints)
    }
}

impl Persistence {
    fn checkpoint(
        &mut self,
        shared: &Shared,
        checkpoints: &Checkpoints,
        between_parts: impl FnMut(),
    ) -> Result<bool, DriveError> {
        let (has_changed, layout) = checkpoints.hold(shared, |subsystem| Ok(self.what_changed(subsystem)))?;
        if !has_changed {
            return Ok(false);
        }
        let room = layout.as_ref().map(Room::of).transpose();
        let room = room.map_err(DriveError::NoMemory)?;
        let mut moment = checkpoints.hold(shared, |subsystem| Ok(self.moment(subsystem, room)))?;
        assert!(moment.commands >= self.stored_commands, "commands are not taken back");
        if let Some(device) = &mut moment.device {
            self.save(device, shared, checkpoints, between_parts)?;
        }
        if self.storage.is_closed() {
            return Err(DriveError::PowerLost);
        }
        let written = self.state_file.write(moment.ticket, &moment.state.to_bytes(), None);
        written.map_err(|source| DriveError::state_not_stored(self.state_file.path(), source))?;
        (self.stored_device, self.stored_commands) = (Some(moment.mark), moment.commands);
        Ok(true)
    }

    /// Whether anything is not as it was at the checkpoint before, and the layout of the device if that is not.
    fn what_changed(&self, subsystem: &Subsystem) -> (bool, Option<Layout>) {
        let device = subsystem.device();
        let device_changed = self.stored_device != Some(CleanMark::of(device));
        let has_changed = device_changed || self.stored_commands != commands(subsystem);
        (has_changed, device_changed.then(|| device.layout().clone()))
    }

    fn moment(&self, subsystem: &mut Subsystem, room: Option<Room>) -> Moment {
        Moment {
            mark: CleanMark::of(subsystem.device()),
            commands: commands(subsystem),
            device: room.map(|room| subsystem.begin_checkpoint(room)),
            state: subsystem.state_for_checkpoint().clone(),
            ticket: self.state_file.ticket(),
        }
    }

    /// Writes the snapshot, taking the drive for each part of the map.
    fn save(
        &self,
        device: &mut Checkpoint,
        shared: &Shared,
        checkpoints: &Checkpoints,
        mut between_parts: impl FnMut(),
    ) -> Result<(), DriveError> {
        let parts = device.parts();
        let mut copied = 0;
        let saved = device.save(&self.files.snapshot, |device| {
            if copied > 0 {
                between_parts();
            }
            if checkpoints.is_stopping.load(Ordering::Acquire) {
                return Err(DriveError::Stopping);
            }
            checkpoints.hold(shared, |subsystem| {
                // Looked at with the drive held: what a power loss has taken is not copied.
                if self.storage.is_closed() {
                    return Err(DriveError::PowerLost);
                }
                subsystem.copy_part(device).map_err(DriveError::Checkpoint)
            })?;
            copied += 1;
            checkpoints.note(|status| status.under_way = Some((copied, parts)));
            Ok(())
        });
        if saved.is_err() {
            // Whatever it was: nothing is noted for it any more. That the drive is gone is said by what ended it.
            let _ = checkpoints.hold(shared, |subsystem| {
                subsystem.end_checkpoint(device);
                Ok(())
            });
        }
        assert!(saved.is_err() || copied == parts, "a snapshot has every part");
        saved
    }
}
