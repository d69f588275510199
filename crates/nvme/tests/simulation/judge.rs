//! Objections to a command: all reasons for which the standard allows or requires it to fail.
//!
//! With several errors, the standard does not define which one the drive reports. A judgement is
//! therefore a set. A command without objections must succeed, and a command with objections must
//! fail with one of them.

use super::model::{
    ALL, BLOCK_BYTES, METADATA_BYTES, Model, NN, Namespace, Sanitize, TRANSFER_MAX, UNREADABLE, status,
};
use super::operation::{
    Command, Create, Directive, DirectiveReceive, DirectiveSend, Format, GetFeature, GetLog, Kind, Range, SetFeature,
};
use super::storage::Fault;

/// A reason to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objection {
    pub status: u16,
    pub do_not_retry: bool,
}

/// Objections to a command. See the module documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Mandatory objections. The command must fail with one of these or of the optional ones.
    pub must: Vec<Objection>,
    /// Optional objections, for which the command may fail.
    pub may: Vec<Objection>,
}

impl Judgement {
    fn must(&mut self, status: u16) {
        self.must.push(Objection {
            status,
            do_not_retry: true,
        });
    }

    fn must_for_now(&mut self, status: u16) {
        self.must.push(Objection {
            status,
            do_not_retry: false,
        });
    }

    fn may(&mut self, status: u16) {
        self.may.push(Objection {
            status,
            do_not_retry: true,
        });
    }

    fn must_if(&mut self, condition: bool, status: u16) {
        if condition {
            self.must(status);
        }
    }

    /// True if a failure is among the objections.
    pub fn allows(&self, objection: Objection) -> bool {
        self.must.contains(&objection) || self.may.contains(&objection)
    }
}

/// A submitted command.
#[derive(Clone, Debug)]
pub struct Submission {
    pub cid: u16,
    pub command: Command,
    /// Data that the host sends with the command.
    pub data: Vec<u8>,
    /// First tag of the blocks that a write stores.
    pub first_tag: u64,
    /// The data has metadata in the blocks.
    pub extended: bool,
    /// Error of the data pointer.
    pub pointer: Option<u16>,
    /// Errors related to queues on PCI Express. `None` if the controller has no queues.
    pub queues: Option<Vec<u16>>,
    /// Submission queue of the command. Without queues it is 1 for all I/O.
    pub queue: u16,
}

impl Model {
    /// Finds all objections to a command.
    pub fn judge(&self, controller: u16, submission: &Submission) -> Judgement {
        let mut found = Judgement::default();
        let command = &submission.command;
        if !self.controllers[&controller].ready {
            found.must(status::SEQUENCE_ERROR);
        }
        if let Command::Other { fuse, .. } = command {
            found.must_if(*fuse != 0, status::INVALID_FIELD);
            found.must(status::INVALID_OPCODE);
            return found;
        }
        if let Some(status) = submission.pointer {
            found.must(status);
        }
        match &submission.queues {
            None if matches!(command, Command::Queue(_)) => {
                found.must(status::INVALID_OPCODE);
                return found;
            }
            queues => queues.iter().flatten().for_each(|&status| found.must(status)),
        }
        if matches!(command, Command::Queue(_)) {
            return found;
        }
        let unknown = match self.controllers[&controller].kind {
            Kind::Discovery => !is_of_discovery(command),
            Kind::Pcie => *command == Command::KeepAlive,
            Kind::Fabrics => false,
        };
        if unknown {
            found.must(status::INVALID_OPCODE);
            return found;
        }
        if !is_allowed_during_sanitize(command) {
            match self.sanitize {
                Sanitize::Running { .. } => found.must_for_now(status::SANITIZE_IN_PROGRESS),
                Sanitize::Failed { exited: false, .. } => found.must(status::SANITIZE_FAILED),
                _ => {}
            }
        }
        if command.is_admin() {
            self.judge_admin(controller, submission, &mut found)
        } else {
            self.judge_io(controller, submission, &mut found)
        }
        self.judge_fault(controller, submission, &mut found);
        found
    }

    /// An identifier of a namespace that must be active.
    fn judge_active(&self, controller: u16, nsid: u32, found: &mut Judgement) -> Option<&Namespace> {
        if nsid == 0 || nsid > NN {
            found.must(status::INVALID_NAMESPACE);
            return None;
        }
        let namespace = self.active(controller, nsid);
        found.must_if(namespace.is_none(), status::INVALID_FIELD);
        namespace
    }

    /// An identifier of a namespace that must exist.
    fn judge_allocated(&self, nsid: u32, found: &mut Judgement) -> Option<&Namespace> {
        if nsid == 0 || nsid > NN {
            found.must(status::INVALID_NAMESPACE);
            return None;
        }
        let namespace = self.namespaces.get(&nsid);
        found.must_if(namespace.is_none(), status::INVALID_FIELD);
        namespace
    }

    // ---------------------------------------------------------------------------------- I/O --

    fn judge_io(&self, controller: u16, submission: &Submission, found: &mut Judgement) {
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
            Command::Write {
                nsid, range, placement, ..
            } => {
                self.judge_blocks(controller, *nsid, *range, Access::WRITE, found);
                self.judge_directive(*placement, found);
                self.judge_form(controller, *nsid, range.count.into(), submission, found);
            }
            Command::WriteZeroes {
                nsid, range, placement, ..
            } => {
                self.judge_blocks(controller, *nsid, *range, Access::CHANGE, found);
                self.judge_directive(*placement, found);
            }
            Command::WriteUncorrectable { nsid, range } => {
                self.judge_blocks(controller, *nsid, *range, Access::CHANGE, found);
            }
            Command::DatasetManagement {
                nsid,
                ranges,
                deallocate,
            } => {
                self.judge_dataset(controller, *nsid, ranges, *deallocate, found);
            }
            Command::Copy { .. } => self.judge_copy(controller, submission, found),
            Command::HandleStatus { nsid, operation, .. } => {
                found.must_if(*operation > 1, status::INVALID_FIELD);
                self.judge_active(controller, *nsid, found);
                found.must_if(*operation == 1 && self.fdp.is_none(), status::FDP_DISABLED);
            }
            Command::HandleUpdate {
                nsid,
                operation,
                identifiers,
            } => {
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
        let Command::Copy {
            nsid,
            to,
            ranges,
            format,
            placement,
            ..
        } = &submission.command
        else {
            unreachable!("a Copy command");
        };
        found.must_if(*format != 0, status::INVALID_FIELD);
        self.judge_directive(*placement, found);
        let Some(namespace) = self.judge_active(controller, *nsid, found) else {
            return;
        };
        let total: u64 = ranges.iter().map(|range| u64::from(range.count)).sum();
        found.must_if(ranges.len() > 128, status::SIZE_LIMIT_EXCEEDED);
        found.must_if(
            total * namespace.block_bytes() > TRANSFER_MAX,
            status::SIZE_LIMIT_EXCEEDED,
        );
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

    // -------------------------------------------------------------------------------- admin --

    fn judge_admin(&self, controller: u16, submission: &Submission, found: &mut Judgement) {
        match &submission.command {
            Command::Identify { .. } => self.judge_identify(controller, &submission.command, found),
            Command::GetLog(command) => self.judge_log(controller, command, found),
            Command::GetFeature(command) => self.judge_get_feature(controller, command, found),
            Command::SetFeature(command) => self.judge_set_feature(controller, command, found),
            Command::AsyncEvent => self.judge_async_event(controller, submission.cid, found),
            Command::Abort { .. } | Command::KeepAlive => {}
            Command::Create(create) => self.judge_create(controller, create, found),
            Command::Manage { nsid, operation } => self.judge_manage(*nsid, *operation, found),
            Command::Attach {
                nsid,
                operation,
                controllers,
                count,
            } => {
                self.judge_attach(*nsid, *operation, controllers, *count, found);
            }
            Command::SelfTest { nsid, code } => {
                found.must_if(!matches!(code, 1 | 2 | 0xf), status::INVALID_FIELD);
                found.must_if(
                    matches!(code, 1 | 2) && self.is_testing(),
                    status::SELF_TEST_IN_PROGRESS,
                );
                if !matches!(*nsid, 0 | ALL) {
                    let mut of_namespace = Judgement::default();
                    self.judge_active(controller, *nsid, &mut of_namespace);
                    // An abort of a test ignores the namespace.
                    match code {
                        0xf => found.may.append(&mut of_namespace.must),
                        _ => found.must.append(&mut of_namespace.must),
                    }
                }
            }
            Command::DirectiveSend(DirectiveSend {
                nsid,
                operation,
                kind,
                enable,
                target,
            }) => {
                found.must_if(*kind != 0 || *operation != 1, status::INVALID_FIELD);
                // Identify is always enabled, feature 1Dh switches data placement, and no other
                // directive exists.
                found.must_if(*target != 0 || !enable, status::INVALID_FIELD);
                if *nsid != ALL {
                    self.judge_active(controller, *nsid, found);
                }
            }
            Command::DirectiveReceive(DirectiveReceive {
                nsid,
                operation,
                kind,
                dwords,
            }) => {
                found.must_if(*kind != 0 || *operation != 1, status::INVALID_FIELD);
                found.must_if(u64::from(*dwords) * 4 > TRANSFER_MAX, status::INVALID_FIELD);
                if *nsid != ALL {
                    self.judge_active(controller, *nsid, found);
                }
            }
            Command::Format(command) => self.judge_format(controller, command, found),
            Command::Sanitize {
                action,
                unrestricted,
                no_deallocate,
                verify,
            } => {
                self.judge_sanitize(*action, *unrestricted, *no_deallocate, *verify, found);
            }
            _ => unreachable!("an I/O command"),
        }
    }

    fn judge_identify(&self, controller: u16, command: &Command, found: &mut Judgement) {
        let &Command::Identify {
            cns,
            nsid,
            controller: asked,
            command_set,
            ..
        } = command
        else {
            unreachable!("an Identify command");
        };
        if self.controllers[&controller].kind == Kind::Discovery {
            found.must_if(cns != 0x01, status::INVALID_FIELD);
            return;
        }
        let of_command_set = matches!(cns, 0x05 | 0x06 | 0x07 | 0x1a | 0x1b);
        found.must_if(of_command_set && command_set != 0, status::INVALID_FIELD);
        match cns {
            // A namespace, or the common fields of all. An inactive one gives zeroes.
            0x00 | 0x05 | 0x1b => found.must_if(nsid != ALL && (nsid == 0 || nsid > NN), status::INVALID_NAMESPACE),
            0x08 | 0x11 | 0x1f => found.must_if(nsid == 0 || nsid > NN, status::INVALID_NAMESPACE),
            0x02 | 0x07 | 0x10 | 0x1a => found.must_if(nsid >= ALL - 1, status::INVALID_NAMESPACE),
            0x03 => {
                self.judge_active(controller, nsid, found);
            }
            0x12 if nsid == ALL => found.must(status::INVALID_FIELD),
            0x12 => {
                self.judge_allocated(nsid, found);
            }
            0x1c => {
                let there = asked == u16::MAX || self.controllers.contains_key(&asked);
                found.must_if(!there, status::INVALID_FIELD);
            }
            0x01 | 0x06 | 0x13 | 0x17 | 0x19 => {}
            _ => found.must(status::INVALID_FIELD),
        }
    }

    fn judge_log(&self, controller: u16, command: &GetLog, found: &mut Judgement) {
        let Some(bytes) = self.log_bytes(controller, command.log) else {
            found.must(status::INVALID_LOG_PAGE);
            found.may(status::INVALID_FIELD);
            return;
        };
        found.must_if(command.by_index, status::INVALID_FIELD);
        found.must_if(u64::from(command.dwords) * 4 > TRANSFER_MAX, status::INVALID_FIELD);
        found.must_if(
            !command.offset.is_multiple_of(4) || command.offset > bytes,
            status::INVALID_FIELD,
        );
        match command.log {
            // SMART is not per namespace (LPA).
            0x02 => found.must_if(command.nsid != 0 && command.nsid != ALL, status::INVALID_FIELD),
            0x09 | 0x20 => found.must_if(command.group != 1, status::INVALID_FIELD),
            0x21..=0x23 => {
                found.must_if(command.group != 1, status::INVALID_FIELD);
                found.must_if(self.fdp.is_none(), status::FDP_DISABLED);
            }
            _ => {}
        }
    }

    /// Over Fabrics metadata can only be a part of the logical block.
    fn judge_metadata(&self, controller: u16, format: u8, extended: bool, found: &mut Judgement) {
        let has_metadata = METADATA_BYTES.get(usize::from(format)).is_some_and(|bytes| *bytes > 0);
        let fabrics = self.controllers[&controller].kind != Kind::Pcie;
        found.must_if(fabrics && has_metadata && !extended, status::INVALID_FORMAT);
    }

    fn judge_async_event(&self, controller: u16, cid: u16, found: &mut Judgement) {
        let requests = &self.controllers[&controller].requests;
        // Four at the same time (Identify Controller, AERL 3).
        found.must_if(requests.len() == 4, status::EVENT_LIMIT_EXCEEDED);
        found.must_if(requests.contains(&cid), status::COMMAND_ID_CONFLICT);
    }

    fn judge_create(&self, controller: u16, create: &Create, found: &mut Judgement) {
        self.judge_metadata(controller, create.format, create.extended, found);
        found.must_if(create.command_set != 0, status::COMMAND_SET_NOT_SUPPORTED);
        found.must_if(create.protection != 0, status::INVALID_FORMAT);
        found.must_if(create.ana_group != 0, status::ANA_GROUP_INVALID);
        found.must_if(create.nvm_set != 0 || create.endurance_group > 1, status::INVALID_FIELD);
        found.must_if(create.blocks == 0 || create.capacity == 0, status::INVALID_FIELD);
        found.must_if(create.capacity > create.blocks, status::INVALID_FIELD);
        found.must_if(create.capacity < create.blocks, status::THIN_PROVISIONING);
        found.must_if(self.namespaces.len() as u32 == NN, status::IDENTIFIER_UNAVAILABLE);
        let Some(&block_bytes) = BLOCK_BYTES.get(usize::from(create.format)) else {
            found.must(status::INVALID_FORMAT);
            return;
        };
        let bytes = u128::from(create.blocks) * u128::from(block_bytes);
        let pages = bytes.div_ceil(self.drive.page_bytes.into());
        found.must_if(pages > u128::from(self.pages_free()), status::INSUFFICIENT_CAPACITY);
        if self.fdp.is_some() {
            self.judge_handles(create, found);
        }
    }

    fn judge_handles(&self, create: &Create, found: &mut Judgement) {
        let configuration = self.configuration();
        let chosen_by_controller = |handle: u16| {
            self.namespaces
                .values()
                .any(|its| !its.host_specified && its.handles.contains(&handle))
        };
        let count = usize::from(create.handles);
        if count == 0 {
            // The controller's handle. If it has none, a handle without namespaces.
            let shared = self.namespaces.values().find(|namespace| !namespace.host_specified);
            let used = |handle: &u16| self.namespaces.values().any(|its| its.handles.contains(handle));
            match shared {
                Some(other) => found.must_if(other.format != create.format, status::INVALID_FORMAT),
                None => found.must_if(
                    (0..configuration.handles).all(|handle| used(&handle)),
                    status::INVALID_HANDLE_LIST,
                ),
            }
            return;
        }
        if count > usize::from(configuration.handles) || count > 128 {
            found.must(status::INVALID_HANDLE_LIST);
            return;
        }
        let listed: Vec<u16> = (0..count)
            .map(|index| create.handle_list.get(index).copied().unwrap_or(0))
            .collect();
        let twice = |index: usize| listed[..index].contains(&listed[index]);
        found.must_if((0..count).any(twice), status::INVALID_HANDLE_LIST);
        let wrong = |&handle: &u16| handle >= configuration.handles || chosen_by_controller(handle);
        found.must_if(listed.iter().any(wrong), status::INVALID_HANDLE_LIST);
        let differs = |namespace: &Namespace| {
            namespace.format != create.format && namespace.handles.iter().any(|handle| listed.contains(handle))
        };
        found.must_if(self.namespaces.values().any(differs), status::INVALID_FORMAT);
    }

    fn judge_manage(&self, nsid: u32, operation: u8, found: &mut Judgement) {
        if operation != 1 {
            found.must(status::INVALID_FIELD);
            return;
        }
        if nsid == ALL {
            found.must_if(
                self.namespaces.values().any(|namespace| namespace.protected),
                status::WRITE_PROTECTED,
            );
        } else if let Some(namespace) = self.judge_allocated(nsid, found) {
            found.must_if(namespace.protected, status::WRITE_PROTECTED);
        }
    }

    fn judge_attach(&self, nsid: u32, operation: u8, listed: &[u16], count: u16, found: &mut Judgement) {
        found.must_if(operation > 1, status::INVALID_FIELD);
        let namespace = self.judge_allocated(nsid, found);
        if count == 0 || count > 2047 {
            found.must(status::CONTROLLER_LIST_INVALID);
            return;
        }
        let listed: Vec<u16> = (0..usize::from(count))
            .map(|index| listed.get(index).copied().unwrap_or(0))
            .collect();
        found.must_if(
            listed.windows(2).any(|pair| pair[0] >= pair[1]),
            status::CONTROLLER_LIST_INVALID,
        );
        let there = |id: &u16| self.controllers.get(id).is_some_and(|controller| controller.is_io());
        found.must_if(!listed.iter().all(there), status::CONTROLLER_LIST_INVALID);
        let Some(namespace) = namespace else { return };
        let attached = |id: &u16| namespace.is_attached(*id);
        match operation {
            0 => {
                found.must_if(listed.iter().any(attached), status::ALREADY_ATTACHED);
                let before = if namespace.everyone {
                    usize::from(self.drive.controllers_max)
                } else {
                    namespace.attached.len()
                };
                found.must_if(!namespace.shared && before + listed.len() > 1, status::IS_PRIVATE);
            }
            _ => found.must_if(!listed.iter().all(attached), status::NOT_ATTACHED),
        }
    }

    fn judge_format(&self, controller: u16, command: &Format, found: &mut Judgement) {
        self.judge_metadata(controller, command.format, command.extended, found);
        found.must_if(command.erase > 2, status::INVALID_FIELD);
        found.must_if(
            usize::from(command.format) >= BLOCK_BYTES.len() || command.protection != 0,
            status::INVALID_FORMAT,
        );
        let nsids = self.formatted(controller, command.nsid);
        if command.nsid != ALL {
            self.judge_active(controller, command.nsid, found);
        }
        let namespaces = nsids.iter().map(|nsid| &self.namespaces[nsid]);
        found.must_if(
            namespaces.clone().any(|namespace| namespace.protected),
            status::WRITE_PROTECTED,
        );
        // Namespaces that share a handle have the same format.
        let others = self.namespaces.iter().filter(|(other, _)| !nsids.contains(other));
        let clash = |other: &Namespace| {
            let shares = |namespace: &Namespace| namespace.handles.iter().any(|handle| other.handles.contains(handle));
            other.format != command.format && namespaces.clone().any(shares)
        };
        let any = others.into_iter().any(|(_, other)| clash(other));
        found.must_if(self.fdp.is_some() && any, status::INVALID_FORMAT);
    }

    /// Namespaces that Format NVM affects.
    pub fn formatted(&self, controller: u16, nsid: u32) -> Vec<u32> {
        let all = self
            .namespaces
            .iter()
            .filter(|(_, namespace)| namespace.is_attached(controller));
        all.map(|(&its, _)| its)
            .filter(|&its| nsid == ALL || its == nsid)
            .collect()
    }

    fn judge_sanitize(&self, action: u8, unrestricted: bool, no_deallocate: bool, verify: bool, found: &mut Judgement) {
        let restricted = matches!(self.sanitize, Sanitize::Failed { dword10, .. } if dword10 >> 3 & 1 == 0);
        if let Sanitize::Running { .. } = self.sanitize {
            found.must_for_now(status::SANITIZE_IN_PROGRESS);
        }
        match action {
            1 => found.must_if(restricted, status::SANITIZE_FAILED),
            2 | 4 => {
                found.must_if(verify, status::INVALID_FIELD);
                let refused = no_deallocate && self.shared_value(0x17, 0) & 1 == 0;
                found.must_if(refused, status::INVALID_FIELD);
                found.must_if(restricted && unrestricted, status::SANITIZE_FAILED);
                let protected = self.namespaces.values().any(|namespace| namespace.protected);
                found.must_if(protected, status::WRITE_PROTECTED);
            }
            _ => found.must(status::INVALID_FIELD),
        }
    }

    // ----------------------------------------------------------------------------- features --

    fn judge_get_feature(&self, controller: u16, command: &GetFeature, found: &mut Judgement) {
        found.must_if(command.select > 3, status::INVALID_FIELD);
        let Some(known) = self.feature(controller, command.feature) else {
            found.must(status::INVALID_FIELD);
            return;
        };
        if command.select == 3 {
            return;
        }
        if known.namespace {
            self.judge_active(controller, command.nsid, found);
        }
        match command.feature {
            0x04 => found.must_if(
                command.dword11 >> 16 & 0xf != 0 || command.dword11 >> 20 & 3 > 1,
                status::INVALID_FIELD,
            ),
            0x09 => found.must_if(
                command.dword11 & 0xffff > self.drive.io_queues_max.into(),
                status::INVALID_FIELD,
            ),
            0x18 => found.must_if(command.dword11 & 0xffff != 1, status::INVALID_FIELD),
            0x1d => found.must_if(command.dword11 & 0xffff > 1, status::INVALID_FIELD),
            0x1e => self.judge_events_handle(controller, command.nsid, command.dword11, found),
            0x81 => {
                let short = self.controllers[&controller].kind != Kind::Pcie && command.dword11 & 1 == 0;
                found.must_if(short, status::INVALID_FIELD);
            }
            _ => {}
        }
    }

    /// The placement handle of feature 1Eh.
    fn judge_events_handle(&self, controller: u16, nsid: u32, dword11: u32, found: &mut Judgement) {
        let nsids = if nsid == ALL {
            self.formatted(controller, ALL)
        } else {
            vec![nsid]
        };
        found.must_if(self.fdp.is_none() && !nsids.is_empty(), status::FDP_DISABLED);
        let handle = (dword11 & 0xffff) as usize;
        let lacks = |nsid: &u32| {
            self.active(controller, *nsid)
                .is_some_and(|namespace| handle >= namespace.handles.len())
        };
        found.must_if(nsids.iter().any(lacks), status::INVALID_FIELD);
    }

    fn judge_set_feature(&self, controller: u16, command: &SetFeature, found: &mut Judgement) {
        let Some(known) = self.feature(controller, command.feature) else {
            found.must(status::INVALID_FIELD);
            return;
        };
        found.must_if(command.save && !known.saveable, status::NOT_SAVEABLE);
        if known.namespace {
            if command.nsid != ALL {
                self.judge_active(controller, command.nsid, found);
            }
        } else if !matches!(command.nsid, 0 | ALL) && self.judge_active(controller, command.nsid, found).is_some() {
            found.must(status::NOT_NAMESPACE_SPECIFIC);
        }
        match command.feature {
            0x02 => found.must_if(command.dword11 & 0x1f != 0, status::INVALID_FIELD),
            0x04 => {
                let sensor = command.dword11 >> 16 & 0xf;
                let wrong =
                    sensor != 0 && sensor != 0xf || command.dword11 >> 20 & 3 > 1 || command.dword11 >> 22 & 7 != 0;
                found.must_if(wrong, status::INVALID_FIELD);
            }
            0x05 => found.must_if(command.dword11 >> 16 & 1 == 1, status::INVALID_FIELD),
            0x07 => found.must_if(
                command.dword11 & 0xffff == 0xffff || command.dword11 >> 16 == 0xffff,
                status::INVALID_FIELD,
            ),
            0x09 => found.must_if(
                command.dword11 & 0xffff > self.drive.io_queues_max.into(),
                status::INVALID_FIELD,
            ),
            0x16 => {
                let wrong = command.data[..4].iter().any(|&switch| switch > 1)
                    || command.data[3..6].iter().any(|&byte| byte != 0);
                found.must_if(wrong, status::INVALID_FIELD);
            }
            0x18 => found.must_if(command.dword11 & 0xffff != 1, status::INVALID_FIELD),
            0x1d => {
                found.must_if(command.dword11 & 0xffff > 1, status::INVALID_FIELD);
                found.must_if(!self.namespaces.is_empty(), status::SEQUENCE_ERROR);
                let index = (command.dword12 >> 8 & 0xff) as usize;
                let unknown = command.dword12 & 1 == 1 && index >= self.drive.configurations.len();
                found.must_if(unknown, status::INVALID_FIELD);
            }
            0x1e => self.judge_events_handle(controller, command.nsid, command.dword11, found),
            0x81 => found.must_if(self.controllers[&controller].kind != Kind::Pcie, status::SEQUENCE_ERROR),
            0x84 => found.must_if(command.dword11 & 7 > 1, status::INVALID_FIELD),
            0xc5 if command.data[11] != 2 => {
                let rising = command.data[2..6].is_sorted_by(|lower, higher| lower < higher);
                found.must_if(
                    !rising || command.data[11] > 2 || command.data[12] > 1,
                    status::INVALID_FIELD,
                );
            }
            _ => {}
        }
    }

    /// Properties of a feature of a controller, if it exists.
    pub fn feature(&self, controller: u16, feature: u8) -> Option<Feature> {
        let kind = self.controllers[&controller].kind;
        let there = match (kind, feature) {
            (Kind::Discovery, _) => matches!(feature, 0x0b | 0x0f),
            (_, 0x06) => self.drive.cached,
            (_, 0x08 | 0x09) => kind == Kind::Pcie,
            (_, 0x0f) => kind == Kind::Fabrics,
            _ => matches!(
                feature,
                0x01 | 0x02
                    | 0x04
                    | 0x05
                    | 0x07
                    | 0x0a
                    | 0x0b
                    | 0x0e
                    | 0x16
                    | 0x17
                    | 0x18
                    | 0x1d
                    | 0x1e
                    | 0x80
                    | 0x81
                    | 0x84
                    | 0xc5
            ),
        };
        there.then_some(Feature {
            saveable: !matches!(feature, 0x07 | 0x0e | 0x0f | 0x16 | 0x80 | 0x81 | 0x84),
            namespace: matches!(feature, 0x05 | 0x1e | 0x84),
            changeable: !(feature == 0x81 && kind != Kind::Pcie),
        })
    }

    // ------------------------------------------------------------------------------- faults --

    /// The storage will fail in an operation that the command needs.
    fn judge_fault(&self, controller: u16, submission: &Submission, found: &mut Judgement) {
        if self.fault == Some(Fault::Planned) && !submission.command.is_admin() {
            // The fault strikes before execution but after acceptance, so other errors may be
            // reported.
            let objection = Objection {
                status: status::INTERNAL_ERROR,
                do_not_retry: false,
            };
            let is_fine = found.must.is_empty();
            let list = if is_fine { &mut found.must } else { &mut found.may };
            list.push(objection);
            return;
        }
        // Data that cannot be read cannot be compared either.
        let readable = |objection: &Objection| objection.status == status::COMPARE_FAILURE;
        let Some(fault) = self.fault.filter(|_| found.must.iter().all(readable)) else {
            return;
        };
        if fault == Fault::Read {
            found.must.clear();
        }
        match (fault, &submission.command) {
            (
                Fault::Read,
                Command::Read { .. } | Command::Compare { .. } | Command::Verify { .. } | Command::Copy { .. },
            ) => {
                found.must_for_now(status::UNRECOVERED_READ);
            }
            (Fault::Write, Command::Write { .. } | Command::Copy { .. }) => found.must_for_now(status::WRITE_FAULT),
            (Fault::Discard, command) if self.discards(controller, command) => found.must_for_now(status::WRITE_FAULT),
            (Fault::Keep, Command::Manage { nsid: ALL, .. }) if self.namespaces.is_empty() => {}
            (
                Fault::Keep,
                Command::Create(_) | Command::Manage { .. } | Command::Attach { .. } | Command::Format { .. },
            ) => found.must_for_now(status::INTERNAL_ERROR),
            (Fault::Keep, Command::Sanitize { action: 1, .. }) if !matches!(self.sanitize, Sanitize::Failed { .. }) => {
            }
            (Fault::Keep, Command::Sanitize { .. }) => found.must_for_now(status::INTERNAL_ERROR),
            // An unchanged value need not be stored again.
            (Fault::Keep, Command::SetFeature(_)) => found.may.push(Objection {
                status: status::INTERNAL_ERROR,
                do_not_retry: false,
            }),
            _ => {}
        }
    }

    /// True if the command discards bytes.
    fn discards(&self, controller: u16, command: &Command) -> bool {
        match command {
            Command::WriteZeroes { .. } => true,
            Command::DatasetManagement {
                nsid,
                ranges,
                deallocate: true,
            } => ranges.iter().any(|range| !self.whole_pages(*nsid, *range).is_empty()),
            Command::Manage { nsid: ALL, .. } => !self.namespaces.is_empty(),
            Command::Manage { .. } => true,
            Command::Format(Format { nsid, .. }) => !self.formatted(controller, *nsid).is_empty(),
            _ => false,
        }
    }

    /// Blocks of a range in pages that the range covers completely. Deallocation affects only these
    /// (NPDG).
    pub fn whole_pages(&self, nsid: u32, range: Range) -> std::ops::Range<u64> {
        let per_page = self.drive.page_bytes / self.namespaces[&nsid].block_bytes();
        let first = range.first.div_ceil(per_page) * per_page;
        let end = (range.first + u64::from(range.count)) / per_page * per_page;
        first..end.max(first)
    }
}

/// Properties of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    pub saveable: bool,
    pub namespace: bool,
    pub changeable: bool,
}

/// Block access of a command.
#[derive(Clone, Copy)]
struct Access {
    reads: bool,
    changes: bool,
    transfers: bool,
}

impl Access {
    const READ: Access = Access {
        reads: true,
        changes: false,
        transfers: true,
    };
    const COMPARE: Access = Access::READ;
    const VERIFY: Access = Access {
        transfers: false,
        ..Access::READ
    };
    const WRITE: Access = Access {
        reads: false,
        changes: true,
        transfers: true,
    };
    const CHANGE: Access = Access {
        transfers: false,
        ..Access::WRITE
    };
}

/// The tags of a range, if it lies in the namespace.
pub fn blocks_of(namespace: &Namespace, range: Range) -> Option<&[u64]> {
    let end = range.first.checked_add(range.count.into())?;
    let first = usize::try_from(range.first).ok()?;
    namespace.blocks.get(first..usize::try_from(end).ok()?)
}

fn is_of_discovery(command: &Command) -> bool {
    matches!(
        command,
        Command::GetLog(_)
            | Command::Identify { .. }
            | Command::Abort { .. }
            | Command::SetFeature(_)
            | Command::GetFeature(_)
            | Command::AsyncEvent
            | Command::KeepAlive
    )
}

/// Admin commands of the Base Specification, "Sanitize Operations - Admin Commands Allowed". The
/// only I/O command is Flush.
fn is_allowed_during_sanitize(command: &Command) -> bool {
    match command {
        Command::GetLog(GetLog { log, .. }) => {
            matches!(log, 0x00..=0x05 | 0x12 | 0x81)
                || !matches!(log, 0x06 | 0x09 | 0x0f | 0x20..=0x23 | 0xc0 | 0xc1 | 0xc3 | 0xc4)
        }
        // A device cannot be reconfigured during a sanitize operation.
        Command::SetFeature(SetFeature { feature: 0x1d, .. }) => false,
        Command::Flush { .. }
        | Command::Identify { .. }
        | Command::Abort { .. }
        | Command::SetFeature(_)
        | Command::GetFeature(_)
        | Command::AsyncEvent
        | Command::KeepAlive
        | Command::Sanitize { .. } => true,
        _ => false,
    }
}
