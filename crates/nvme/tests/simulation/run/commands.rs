//! Commands that are sent directly, their completions, and log pages in pieces.

use nvme::{AcceptedCommand, TransferDirection};
use nvme_spec::Status;

use super::{CommandReport, Run, execute_admin};
use crate::simulation::apply::{Check, Success, Way, equal, same_bytes};
use crate::simulation::judge::{Objection, Submission, blocks_of};
use crate::simulation::model::{Error, TRANSFER_MAX};
use crate::simulation::operation::{Command, GetLog, Range};

impl Run {
    /// A command with the data that its host sends.
    pub(super) fn submission(&mut self, controller: u16, cid: u16, command: &Command) -> Submission {
        let first_tag = self.model.next_tag;
        let data = match command {
            Command::Write { nsid, range, .. } => {
                self.model.next_tag += u64::from(range.count);
                let tags: Vec<u64> = (first_tag..self.model.next_tag).collect();
                self.blocks_to_send(controller, *nsid, *range, |_| tags)
            }
            Command::Compare { nsid, range, equal } => {
                let mut data = self.blocks_to_send(controller, *nsid, *range, |stored| stored.to_vec());
                if let Some(byte) = data.last_mut().filter(|_| !equal) {
                    *byte ^= 1;
                }
                data
            }
            other => other.fixed_data(),
        };
        let extended = match command {
            Command::Write { nsid, .. } | Command::Compare { nsid, .. } => {
                self.model.namespaces.get(nsid).is_some_and(|namespace| namespace.extended)
            }
            _ => false,
        };
        let queue = u16::from(!command.is_admin());
        Submission { cid, command: command.clone(), data, first_tag, extended, pointer: None, queues: None, queue }
    }

    /// Bytes of the blocks that a command may send.
    fn blocks_to_send(
        &self,
        controller: u16,
        nsid: u32,
        range: Range,
        tags: impl FnOnce(&[u64]) -> Vec<u64>,
    ) -> Vec<u8> {
        let Some(namespace) = self.model.active(controller, nsid) else {
            return Vec::new();
        };
        let bytes = u64::from(range.count) * namespace.block_bytes();
        if bytes > TRANSFER_MAX {
            return Vec::new();
        }
        let zeroes = vec![0; range.count as usize];
        let tags = tags(blocks_of(namespace, range).unwrap_or(&zeroes));
        namespace.content(&tags)
    }

    /// Submits a command and returns the data that it moves. `None` if it failed.
    pub(super) fn begin(
        &mut self,
        controller: u16,
        submission: Submission,
    ) -> Result<Option<(Submission, AcceptedCommand)>, String> {
        let entry = submission.command.wire().entry(submission.cid);
        let judgement = self.model.judge(controller, &submission);
        match self.subsystem.accept(controller, submission.queue, &entry) {
            Err(failure) => {
                let reply = self.subsystem.fail(controller, submission.queue, &entry, failure);
                let report = CommandReport {
                    status: reply.status.to_u16(),
                    do_not_retry: reply.do_not_retry,
                    more: reply.more,
                    result: reply.result,
                    durable: false,
                };
                self.check_outcome(controller, &submission, report, Vec::new())?;
                Ok(None)
            }
            Ok(accepted) => {
                let transfer = accepted.transfer();
                let way = match transfer.direction {
                    TransferDirection::None => Way::None,
                    TransferDirection::ToController => Way::ToDrive,
                    TransferDirection::ToHost => Way::ToHost,
                };
                if way == Way::ToDrive {
                    equal("bytes from the host", transfer.total_bytes(), submission.data.len())?;
                }
                if judgement.must.is_empty() {
                    let expected = self.model.transfer(controller, &submission);
                    let found = (way, transfer.bytes as u64, transfer.metadata_bytes as u64);
                    equal("transfer", found, expected)?;
                }
                Ok(Some((submission, accepted)))
            }
        }
    }

    pub(super) fn execute(&mut self, controller: u16, submission: Submission, accepted: AcceptedCommand) -> Check {
        let now = self.model.now;
        let mut data = submission.data.clone();
        let outcome = self.subsystem.execute(now, accepted, &mut data);
        equal("due", outcome.due, now)?;
        if let Some(durable) = &outcome.durable {
            durable.flush().expect("this storage can");
        }
        let Some(reply) = outcome.reply else {
            return self.hold(controller, &submission);
        };
        // The host's data stays in the buffer after a success and is sent to no host.
        if reply.status == Status::SUCCESS && self.model.transfer(controller, &submission).0 != Way::ToHost {
            data.clear();
        }
        if reply.status != Status::SUCCESS {
            equal("data of a failed command", data.len(), 0)?;
        }
        let report = CommandReport {
            status: reply.status.to_u16(),
            do_not_retry: reply.do_not_retry,
            more: reply.more,
            result: reply.result,
            durable: outcome.durable.is_some(),
        };
        self.check_outcome(controller, &submission, report, data)
    }

    /// Checks a command without a completion.
    pub(super) fn hold(&mut self, controller: u16, submission: &Submission) -> Check {
        equal("a command without completion", &submission.command, &Command::AsyncEvent)?;
        equal("objections", self.model.judge(controller, submission).must, Vec::new())?;
        self.coverage.note("AsyncEvent waits");
        self.disarm();
        self.model.hold_event_request(controller, submission.cid)
    }

    /// Compares the outcome of a command with the model, and applies it to the model.
    pub(super) fn check_outcome(
        &mut self,
        controller: u16,
        submission: &Submission,
        report: CommandReport,
        data: Vec<u8>,
    ) -> Check {
        let name = submission.command.name();
        let judgement = self.model.judge(controller, submission);
        equal("more status information", report.more, report.status != 0)?;
        if report.status == 0 {
            if !judgement.must.is_empty() {
                return Err(format!("success, must fail with one of {:03x?}", judgement.must));
            }
            self.coverage.note(format!("{name} ok"));
            if matches!(submission.command, Command::HandleStatus { .. }) && self.model.drive.exact_units {
                self.coverage.note("reclaim unit handle status foretold");
            }
            let success = Success { result: report.result, data, durable: report.durable };
            self.model.apply(controller, submission, &success)?;
            self.disarm();
            return Ok(());
        }
        equal("result of a failed command", report.result, 0)?;
        equal("durability of a failed command", report.durable, false)?;
        let (status, do_not_retry) = (report.status, report.do_not_retry);
        let status_name = Status::from_u16(status).name();
        let found = Objection { status, do_not_retry };
        if !judgement.allows(found) {
            return Err(format!("failed with {status_name} (DNR {do_not_retry}); allowed are {judgement:03x?}"));
        }
        match judgement.must.iter().all(|objection| *objection == found) {
            true => {
                self.coverage.note(format!("{name}: {status_name}"));
                self.coverage.note(format!("status {status:03x}h"));
            }
            false => self.coverage.note("failed with one of several"),
        }
        self.model.apply_failure(submission, found);
        let wire = submission.command.wire();
        self.model.note_failure(
            controller,
            Error {
                count: 0,
                queue: submission.queue,
                cid: submission.cid,
                status,
                do_not_retry,
                nsid: wire.nsid,
                opcode: wire.opcode,
            },
        );
        self.disarm();
        Ok(())
    }

    pub(super) fn read_in_pieces(&mut self, controller: u16, log: u8, parameter: u8, pieces: &[u16]) -> Check {
        if !self.model.controllers[&controller].ready || self.model.log_bytes(controller, log).is_none() {
            return Ok(());
        }
        let get = |offset: u64, dwords: u32| {
            Command::GetLog(GetLog { log, nsid: 0, parameter, retain: true, group: 1, dwords, offset, by_index: false })
        };
        let bytes = self.model.log_bytes(controller, log).expect("just asked").div_ceil(4) * 4;
        let submission = self.submission(controller, 0, &get(0, bytes as u32 / 4));
        if !self.model.judge(controller, &submission).must.is_empty() {
            return Ok(());
        }
        let whole = self.log_now(controller, &get(0, bytes as u32 / 4))?;
        let (mut at, mut turn) = (0, 0);
        while at < bytes {
            let dwords = u32::from(pieces[turn % pieces.len()]);
            let piece = self.log_now(controller, &get(at, dwords))?;
            let end = (at as usize + piece.len()).min(whole.len());
            same_bytes(
                &format!("log page {log:#x} from {at} on"),
                &piece[..end - at as usize],
                &whole[at as usize..end],
            )?;
            at += u64::from(dwords) * 4;
            turn += 1;
        }
        self.coverage.note(format!("log page {log:02x}h in pieces"));
        Ok(())
    }

    /// Reads a log page without side effects.
    fn log_now(&mut self, controller: u16, command: &Command) -> Result<Vec<u8>, String> {
        execute_admin(&mut self.subsystem, self.model.now, controller, command)
    }
}
