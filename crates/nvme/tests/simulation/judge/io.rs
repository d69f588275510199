//! Objections to I/O commands.

use super::{Judgement, Submission, blocks_of};
use crate::simulation::model::{ALL, Model, TRANSFER_MAX, UNREADABLE, status};
use crate::simulation::operation::{Command, Directive, Kind, Range};

/// Block access of a command.
#[derive(Clone, Copy)]
struct Access {
    reads: bool,
    changes: bool,
    transfers: bool,
}

impl Access {
    const READ: Access = Access { reads: true, changes: false, transfers: true };
    const COMPARE: Access = Access::READ;
    const VERIFY: Access = Access { transfers: false, ..Access::READ };
    const WRITE: Access = Access { reads: false, changes: true, transfers: true };
    const CHANGE: Access = Access { transfers: false, ..Access::WRITE };
}

impl Model {
    pub(super) fn judge_io(&self, controller: u16, submission: &Submission, found: &mut Judgement) {
        match &submission.command {
            Command::Flush { nsid: ALL } => {}
            Command::Flush { nsid } => {
                self.judge_active(controller, *nsid, found);
            }
            Command::Read { nsid, range } => self.judge_blocks(controller, *nsid, *range, Access::READ, found),
            Command::Compare { nsid, range, .. } => {
                self.judge_blocks(controller, *nsid, *range, Access::COMPARE, found);
                self.judge_compare(controller, *nsid, *range, submission, found);
            }
            Command::Verify { nsid, range } => self.judge_blocks(controller, *nsid, *range, Access::VERIFY, found),
            Command::Write { nsid, range, placement, .. } => {
                self.judge_blocks(controller, *nsid, *range, Access::WRITE, found);
                self.judge_directive(*placement, found);
                self.judge_form(controller, *nsid, range.count.into(), submission, found);
            }
            Command::WriteZeroes { nsid, range, placement, .. } => {
                self.judge_blocks(controller, *nsid, *range, Access::CHANGE, found);
                self.judge_directive(*placement, found);
            }
            Command::WriteUncorrectable { nsid, range } => {
                self.judge_blocks(controller, *nsid, *range, Access::CHANGE, found);
            }
            Command::DatasetManagement { nsid, ranges, deallocate } => {
                self.judge_dataset(controller, *nsid, ranges, *deallocate, found);
            }
            Command::Copy { .. } => self.judge_copy(controller, submission, found),
            Command::HandleStatus { nsid, operation, .. } => {
                found.must_if(*operation > 1, status::INVALID_FIELD);
                self.judge_active(controller, *nsid, found);
                found.must_if(*operation == 1 && self.fdp.is_none(), status::FDP_DISABLED);
            }
            Command::HandleUpdate { nsid, operation, identifiers } => {
                found.must_if(*operation > 1, status::INVALID_FIELD);
                let active = self.judge_active(controller, *nsid, found).is_some();
                if *operation == 1 {
                    found.must_if(self.fdp.is_none(), status::FDP_DISABLED);
                    let unknown = |pid: &u16| self.placement(*nsid, *pid).is_none();
                    found.must_if(active && identifiers.iter().any(unknown), status::INVALID_FIELD);
                }
            }
            _ => unreachable!("an admin command"),
        }
    }

    fn judge_directive(&self, directive: Directive, found: &mut Judgement) {
        let known = directive.kind == 0 || (directive.kind == 2 && self.fdp.is_some());
        found.must_if(!known, status::INVALID_FIELD);
    }

    fn judge_blocks(&self, controller: u16, nsid: u32, range: Range, access: Access, found: &mut Judgement) {
        let Some(namespace) = self.judge_active(controller, nsid, found) else {
            return;
        };
        let bytes = u64::from(range.count) * namespace.block_bytes();
        found.must_if(access.transfers && bytes > TRANSFER_MAX, status::INVALID_FIELD);
        // Fabrics have no separate buffer for metadata.
        let nowhere = self.controllers[&controller].kind != Kind::Pcie && namespace.has_separate_metadata();
        found.must_if(access.transfers && nowhere, status::INVALID_NAMESPACE);
        found.must_if(access.changes && namespace.protected, status::WRITE_PROTECTED);
        match blocks_of(namespace, range) {
            None => found.must(status::LBA_OUT_OF_RANGE),
            Some(blocks) => found.must_if(access.reads && blocks.contains(&UNREADABLE), status::UNRECOVERED_READ),
        }
    }

    /// The data has another block size or metadata form than the namespace now.
    fn judge_form(&self, controller: u16, nsid: u32, blocks: u64, sent: &Submission, found: &mut Judgement) {
        if let Some(namespace) = self.active(controller, nsid) {
            let other_length = namespace.total_bytes(blocks) != sent.data.len() as u64;
            if other_length || namespace.extended != sent.extended {
                found.must_for_now(status::DATA_TRANSFER_ERROR);
            }
        }
    }

    fn judge_compare(&self, controller: u16, nsid: u32, range: Range, sent: &Submission, found: &mut Judgement) {
        let Some(namespace) = self.active(controller, nsid) else {
            return;
        };
        self.judge_form(controller, nsid, range.count.into(), sent, found);
        let Some(blocks) = blocks_of(namespace, range) else {
            return;
        };
        // Data cannot be compared with unreadable blocks.
        if !blocks.contains(&UNREADABLE) && blocks.len() as u64 * namespace.block_bytes() <= TRANSFER_MAX {
            found.must_if(namespace.content(blocks) != sent.data, status::COMPARE_FAILURE);
        }
    }

    fn judge_dataset(&self, controller: u16, nsid: u32, ranges: &[Range], deallocate: bool, found: &mut Judgement) {
        let Some(namespace) = self.judge_active(controller, nsid, found) else {
            return;
        };
        // Hints have no effect, so reporting their errors is optional.
        let wrong = if deallocate { Judgement::must } else { Judgement::may };
        for range in ranges {
            match blocks_of(namespace, *range) {
                Some(_) => {}
                // A range without blocks has no block that is out of range.
                None if range.count == 0 => found.may(status::LBA_OUT_OF_RANGE),
                None => wrong(found, status::LBA_OUT_OF_RANGE),
            }
        }
        if namespace.protected {
            wrong(found, status::WRITE_PROTECTED);
        }
    }

    fn judge_copy(&self, controller: u16, submission: &Submission, found: &mut Judgement) {
        let Command::Copy { nsid, to, ranges, format, placement, .. } = &submission.command else {
            unreachable!("a Copy command");
        };
        found.must_if(*format != 0, status::INVALID_FIELD);
        self.judge_directive(*placement, found);
        let Some(namespace) = self.judge_active(controller, *nsid, found) else {
            return;
        };
        let total: u64 = ranges.iter().map(|range| u64::from(range.count)).sum();
        found.must_if(ranges.len() > 128, status::SIZE_LIMIT_EXCEEDED);
        found.must_if(total * namespace.block_bytes() > TRANSFER_MAX, status::SIZE_LIMIT_EXCEEDED);
        found.must_if(namespace.protected, status::WRITE_PROTECTED);
        let size = namespace.blocks.len() as u64;
        found.must_if(*to > size || total > size - to, status::LBA_OUT_OF_RANGE);
        for range in ranges {
            match blocks_of(namespace, *range) {
                None => found.must(status::LBA_OUT_OF_RANGE),
                Some(blocks) => found.must_if(blocks.contains(&UNREADABLE), status::UNRECOVERED_READ),
            }
            let (end, to_end) = (range.first.saturating_add(range.count.into()), to.saturating_add(total));
            found.must_if(range.first < to_end && *to < end, status::OVERLAPPING_RANGE);
        }
    }
}
