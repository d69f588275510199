//! `warp drive advise`: polls the FDP logs of a drive and advises which data to write with another
//! placement identifier.
//!
//! ```text
//! Drive (NVMe/TCP or kernel) -> LogSample -> EventCursor (new events) -> Advisor -> Advice -> hook
//! OwnerMap (--owners, --files, --chunks) --------------------------/          \-> AdviceOutput
//! ```

mod connection;
mod hook;
mod notice;
mod output;
mod owners;

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use ::advise::{Advice, Advisor, EventCursor, EventLoss, FreshEvents, ReallocationEvent, WriteStatistics};
use initiator::inspect::decode::FdpEventRecord;
use initiator::inspect::feedback_logs::{LogSample, MonitoredNamespace};

use crate::arguments::AdviseArgs;
use crate::output::{check_file, is_standard_output};
use crate::{AnyError, ExitOutcome};
use connection::DriveConnection;
use notice::Notice;
use nvme_spec::fdp::FdpEventType;
use output::{AdviceOutput, AdviceRecord};

/// Signal of Ctrl-C.
pub struct InterruptFlag(mpsc::Receiver<()>);

impl InterruptFlag {
    pub fn install() -> Result<InterruptFlag, AnyError> {
        let (stop, stopped) = mpsc::channel();
        ctrlc::set_handler(move || {
            let _ = stop.send(());
        })?;
        Ok(InterruptFlag(stopped))
    }

    /// Waits for this time and returns true if Ctrl-C was pressed.
    pub fn is_pressed_within(&self, wait: Duration) -> bool {
        !matches!(self.0.recv_timeout(wait), Err(mpsc::RecvTimeoutError::Timeout))
    }
}

pub fn advise(command: &AdviseArgs) -> Result<ExitOutcome, AnyError> {
    if let Some(file) = output::json_to(command)?.filter(|file| !is_standard_output(file)) {
        check_file(file)?;
    }
    let stop = InterruptFlag::install()?;
    let mut drive = DriveConnection::open(command)?;
    let (owners, mut notices) = owners::map(command, &drive)?;
    if drive.namespace.placement_handles < 2 {
        notices.push(Notice::OneIdentifier);
    }
    let mut output = AdviceOutput::new(command)?;
    let Some((sample, _)) = drive.sample(&stop)? else {
        return Ok(ExitOutcome::Stopped);
    };
    let mut session = DriveAdvisor {
        advisor: Advisor::new(
            owners,
            drive.namespace.placement_handles,
            command.policy.create(),
            command.hook.is_some(),
            counters(&sample),
        ),
        cursor: EventCursor::default(),
        drive,
        notices,
    };
    if command.from_now {
        session.cursor.new_events(sample.events);
    }
    let outcome = session.run(command, &stop, &mut output);
    output.finish();
    outcome
}

struct DriveAdvisor {
    drive: DriveConnection,
    cursor: EventCursor<FdpEventRecord>,
    advisor: Advisor,
    /// Notices for the next reading.
    notices: Vec<Notice>,
}

impl DriveAdvisor {
    /// Polls the drive until Ctrl-C or the last reading.
    fn run(
        &mut self,
        command: &AdviseArgs,
        stop: &InterruptFlag,
        output: &mut AdviceOutput,
    ) -> Result<ExitOutcome, AnyError> {
        let readings = command.readings.unwrap_or(u64::MAX);
        for reading in 0..readings {
            // Events that are already in the log are read without a wait.
            let waits = reading > 0 || command.from_now;
            if waits && stop.is_pressed_within(command.every) {
                return Ok(ExitOutcome::Stopped);
            }
            let Some((sample, attempts)) = self.drive.sample(stop)? else {
                return Ok(ExitOutcome::Stopped);
            };
            if attempts > 0 {
                self.notices.push(Notice::Reconnected { attempts });
            }
            if let (Some(directory), true) = (&command.files, reading > 0) {
                self.locate(directory, command.depth)?;
            }
            self.read(command, sample, output)?;
        }
        Ok(ExitOutcome::Done)
    }

    /// Locates the files again.
    fn locate(&mut self, directory: &Path, depth: Option<u64>) -> Result<(), AnyError> {
        let (owners, left_out) = owners::rescan(directory, depth, self.advisor.owners())?;
        self.advisor.relocate(owners);
        if left_out > 0 {
            self.notices.push(Notice::NewOwners { left_out });
        }
        Ok(())
    }

    fn read(&mut self, command: &AdviseArgs, sample: LogSample, output: &mut AdviceOutput) -> Result<(), AnyError> {
        let fresh = self.cursor.new_events(sample.events.clone());
        let fresh = FreshEvents { events: own_events(&fresh.events, &self.drive.namespace), loss: fresh.loss };
        let advice = self.advisor.update(fresh, counters(&sample));
        self.add_notices(&advice, command);
        let carried_out: Vec<bool> = advice.moves.iter().map(|step| self.run_hook(command, step)).collect();
        let notices = std::mem::take(&mut self.notices);
        output.print(&AdviceRecord::new(&advice, &carried_out, &self.advisor, &sample, &notices))
    }

    /// Adds notices about lost events and events without an owner.
    fn add_notices(&mut self, advice: &Advice, command: &AdviseArgs) {
        match advice.loss {
            EventLoss::None => {}
            EventLoss::Wrapped => self.notices.push(Notice::LogWrapped { every: command.every }),
            EventLoss::Cleared => self.notices.push(Notice::LogCleared),
        }
        self.add_silence_notice(advice);
        let of = advice.events;
        let (events, unowned) = (advice.events_without_block, advice.events_without_owner);
        if events > 0 {
            self.notices.push(Notice::WithoutBlock { events, of });
        }
        if unowned > 0 {
            self.notices.push(Notice::WithoutOwner { events: unowned, of });
        }
    }

    /// Adds a notice if events are missing or not enabled.
    fn add_silence_notice(&mut self, advice: &Advice) {
        let is_silent = advice.events == 0 && advice.copied_bytes > 0;
        if !is_silent && advice.reading > 1 {
            return;
        }
        let handles = self.drive.handles_without_event(FdpEventType::MediaReallocated);
        match handles {
            Some(handles) if !handles.is_empty() => self.notices.push(Notice::EventNotEnabled {
                handles,
                of: self.drive.namespace.placement_handles,
                device: self.drive.device(),
                nsid: self.drive.namespace.nsid,
            }),
            Some(_) if is_silent => self.notices.push(Notice::NothingReported { copied_bytes: advice.copied_bytes }),
            _ => {}
        }
    }

    fn run_hook(&mut self, command: &AdviseArgs, step: &::advise::OwnerMove) -> bool {
        let Some(hook) = &command.hook else {
            return false;
        };
        let owner = &self.advisor.owners().owners()[step.owner].name;
        match hook::run(hook, owner, step) {
            Ok(()) => true,
            Err(problem) => {
                self.notices.push(Notice::HookFailed { owner: owner.clone(), problem });
                self.advisor.not_carried_out(step);
                false
            }
        }
    }
}

fn counters(sample: &LogSample) -> WriteStatistics {
    WriteStatistics {
        host_bytes_written: sample.statistics.host_bytes_written,
        media_bytes_written: sample.statistics.media_bytes_written,
    }
}

/// The Media Reallocated events of a namespace.
fn own_events(events: &[FdpEventRecord], namespace: &MonitoredNamespace) -> Vec<ReallocationEvent> {
    let moved = events
        .iter()
        .filter(|event| event.event_type == FdpEventType::MediaReallocated.code())
        // Events without a namespace may belong to ours. Their logical block then has no meaning.
        .filter(|event| event.nsid.is_none_or(|nsid| nsid == namespace.nsid));
    moved
        .map(|event| ReallocationEvent {
            timestamp: event.timestamp_ms,
            placement: event.placement_identifier.map(|identifier| identifier & namespace.handle_mask),
            // 0 means not reported, FFFFh means that number or more.
            moved_bytes: event
                .blocks_moved
                .filter(|&blocks| blocks > 0)
                .map(|blocks| u64::from(blocks) * namespace.block_bytes),
            offset_bytes: event
                .lba
                .filter(|_| event.nsid.is_some())
                .and_then(|lba| lba.checked_mul(namespace.block_bytes)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(event_type: u8, nsid: Option<u32>, blocks: u16, lba: Option<u64>) -> FdpEventRecord {
        FdpEventRecord {
            event: String::new(),
            event_type,
            placement_identifier: Some(0x2003),
            nsid,
            reclaim_group: None,
            reclaim_unit_handle: None,
            timestamp_ms: 5,
            blocks_moved: Some(blocks),
            lba,
        }
    }

    #[test]
    fn events_of_others_are_left_out_and_blocks_become_bytes() {
        let namespace = MonitoredNamespace {
            nsid: 2,
            endurance_group: 1,
            block_bytes: 512,
            blocks: 1000,
            nguid: [0; 16],
            handle_mask: 0x1fff,
            placement_handles: 4,
        };
        let events = [
            record(0x80, Some(2), 8, Some(100)),
            record(0x81, Some(2), 8, Some(1)),
            record(0x80, Some(1), 8, Some(2)),
            record(0x80, None, 0, Some(3)),
            record(0x80, Some(2), 9, None),
        ];
        let found: Vec<_> = own_events(&events, &namespace)
            .iter()
            .map(|event| (event.placement, event.moved_bytes, event.offset_bytes))
            .collect();
        assert_eq!(found, [(Some(3), Some(4096), Some(51_200)), (Some(3), None, None), (Some(3), Some(4608), None)]);
    }
}
