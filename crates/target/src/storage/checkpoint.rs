//! Checkpoints of a served drive: snapshot and state of one moment. Hosts wait only as long as for
//! a few commands.
//!
//! ```text
//! drive locked   has the drive changed? how large are the tables?
//! drive free     allocate room for a copy of them (ssd::checkpoint::CheckpointBuffer)
//! drive locked   the moment: copy the device's tables and non-volatile state, take a ticket
//! drive locked   copy a part of the map (256 KiB)                \ repeated for all parts
//! drive free     restore the part to the moment, write it, pause /
//! drive free     replace the snapshot, then the state, unless a command has stored a later one
//! ```
//!
//! The snapshot is replaced before the state. Recovery can match any snapshot with a later state
//! and with the data ([`super::recover`]), which hosts continue to write. No other ordering is
//! needed. An aborted checkpoint leaves both files unchanged, and the drive continues.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nvme::{NonVolatileState, Subsystem};
use rustix::time::{ClockId, clock_gettime};
use ssd::checkpoint::CheckpointBuffer;
use ssd::{Checkpoint, DeviceLayout};

use super::error::DriveError;
use super::state_file::{CleanMark, Ticket};
use super::{FilePersistence, ServedDrive, commands, lock_drive};
use crate::SharedSubsystem;

/// Statistics of checkpoints since the drive was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointStatus {
    /// Checkpoints made, not counting those without changes to store.
    pub made: u64,
    pub failed: u64,
    /// Copied parts and all parts of the map, during a checkpoint.
    pub under_way: Option<(u32, u32)>,
    pub last: Duration,
    /// Longest time for which a checkpoint has locked the drive.
    pub lock_time_max: Duration,
    /// Most processor time that a checkpoint has used in one lock of the drive, excluding waits for
    /// a processor.
    pub busy_lock_time_max: Duration,
}

/// Status of a drive's checkpoints, shared with monitoring and with the thread that stops the
/// drive.
#[derive(Debug, Default)]
pub struct CheckpointMonitor {
    status: Mutex<CheckpointStatus>,
    is_stopping: AtomicBool,
}

impl CheckpointMonitor {
    /// Statistics so far.
    pub fn status(&self) -> CheckpointStatus {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Aborts the checkpoint in progress at its next part, and all later ones.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    fn note(&self, change: impl FnOnce(&mut CheckpointStatus)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Runs `work` with the drive locked, and records the duration of the lock.
    fn with_lock<T>(
        &self,
        shared: &SharedSubsystem,
        work: impl FnOnce(&mut Subsystem) -> Result<T, DriveError>,
    ) -> Result<T, DriveError> {
        let mut subsystem = lock_drive(shared)?;
        let (began, busy_before) = (Instant::now(), processor_time());
        let done = work(&mut subsystem);
        drop(subsystem);
        let (held, busy) = (began.elapsed(), processor_time().saturating_sub(busy_before));
        self.note(|status| {
            status.lock_time_max = status.lock_time_max.max(held);
            status.busy_lock_time_max = status.busy_lock_time_max.max(busy);
        });
        done
    }
}

/// Processor time of this thread so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// State of a drive at the moment of a checkpoint.
struct CheckpointImage {
    /// The device, `None` if it has not changed since the previous checkpoint.
    device: Option<Checkpoint>,
    state: NonVolatileState,
    ticket: Ticket,
    mark: CleanMark,
    commands: u64,
}

impl ServedDrive {
    /// Stores mapping, counters and state if they have changed, so that a crash needs less
    /// recovery. Returns whether they had changed. Hosts are served during the checkpoint.
    /// `between_parts` runs after each part of the map without the lock, so that the server can
    /// leave time to other threads.
    ///
    /// # Errors
    /// A system call failed, the drive changed too much, or it is being stopped. The previous
    /// checkpoint remains.
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

    /// Checkpoint status for threads without access to the drive.
    pub fn checkpoints(&self) -> Arc<CheckpointMonitor> {
        Arc::clone(&self.checkpoints)
    }
}

impl FilePersistence {
    fn checkpoint(
        &mut self,
        shared: &SharedSubsystem,
        checkpoints: &CheckpointMonitor,
        between_parts: impl FnMut(),
    ) -> Result<bool, DriveError> {
        let (has_changed, layout) =
            checkpoints.with_lock(shared, |subsystem| Ok(self.changes_since_last(subsystem)))?;
        if !has_changed {
            return Ok(false);
        }
        let room = layout.as_ref().map(CheckpointBuffer::new).transpose();
        let room = room.map_err(DriveError::NoMemory)?;
        let mut moment = checkpoints.with_lock(shared, |subsystem| Ok(self.capture_image(subsystem, room)))?;
        assert!(moment.commands >= self.stored_commands, "commands are not taken back");
        if let Some(device) = &mut moment.device {
            self.save(device, shared, checkpoints, between_parts)?;
        }
        if self.storage.is_closed() {
            return Err(DriveError::PowerLost);
        }
        let written = self.state_file.write(moment.ticket, &moment.state.to_bytes(), None);
        written.map_err(|source| DriveError::state_not_stored(self.state_file.path(), source))?;
        // A host may have written between the two locks. Without a snapshot, the stored device is
        // still the previous one.
        if moment.device.is_some() {
            self.stored_device = Some(moment.mark);
        }
        self.stored_commands = moment.commands;
        Ok(true)
    }

    /// Returns whether the drive has changed since the previous checkpoint, and the device's layout
    /// if the device has.
    fn changes_since_last(&self, subsystem: &Subsystem) -> (bool, Option<DeviceLayout>) {
        let device = subsystem.device();
        let device_changed = self.stored_device != Some(CleanMark::new(device));
        let has_changed = device_changed || self.stored_commands != commands(subsystem);
        (has_changed, device_changed.then(|| device.layout().clone()))
    }

    fn capture_image(&self, subsystem: &mut Subsystem, room: Option<CheckpointBuffer>) -> CheckpointImage {
        CheckpointImage {
            mark: CleanMark::new(subsystem.device()),
            commands: commands(subsystem),
            device: room.map(|room| subsystem.begin_checkpoint(room)),
            state: subsystem.state_for_checkpoint().clone(),
            ticket: self.state_file.ticket(),
        }
    }

    /// Writes the snapshot, locking the drive for each part of the map.
    fn save(
        &self,
        device: &mut Checkpoint,
        shared: &SharedSubsystem,
        checkpoints: &CheckpointMonitor,
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
            checkpoints.with_lock(shared, |subsystem| {
                // Checked under the lock, so that no part is copied after a power loss.
                if self.storage.is_closed() {
                    return Err(DriveError::PowerLost);
                }
                subsystem.copy_part(device).map_err(DriveError::Checkpoint)
            })?;
            copied += 1;
            assert!(copied <= parts, "part {copied} is one of {parts}");
            checkpoints.note(|status| status.under_way = Some((copied, parts)));
            Ok(())
        });
        if saved.is_err() {
            // After any error the device need not track changes any more. If the lock fails,
            // `saved` already has the cause.
            let _ = checkpoints.with_lock(shared, |subsystem| {
                subsystem.end_checkpoint(device);
                Ok(())
            });
        }
        assert!(saved.is_err() || copied == parts, "a snapshot has every part");
        saved
    }
}
