//! Objections to admin commands and to feature values.

use super::{Judgement, Submission};
use crate::simulation::model::{
    ALL, BLOCK_BYTES, METADATA_BYTES, Model, NN, Namespace, Sanitize, TRANSFER_MAX, status,
};
use crate::simulation::operation::{
    Command, Create, DirectiveReceive, DirectiveSend, Format, GetFeature, GetLog, Kind, SetFeature,
};

/// Properties of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    pub saveable: bool,
    pub namespace: bool,
    pub changeable: bool,
}

impl Model {
    pub(super) fn judge_admin(&self, controller: u16, submission: &Submission, found: &mut Judgement) {
        match &submission.command {
            Command::Identify { .. } => self.judge_identify(controller, &submission.command, found),
            Command::GetLog(command) => self.judge_log(controller, command, found),
            Command::GetFeature(command) => self.judge_get_feature(controller, command, found),
            Command::SetFeature(command) => self.judge_set_feature(controller, command, found),
            Command::AsyncEvent => self.judge_async_event(controller, submission.cid, found),
            Command::Abort { .. } | Command::KeepAlive => {}
            Command::Create(create) => self.judge_create(controller, create, found),
            Command::Manage { nsid, operation } => self.judge_manage(*nsid, *operation, found),
            Command::Attach { nsid, operation, controllers, count } => {
                self.judge_attach(*nsid, *operation, controllers, *count, found);
            }
            Command::SelfTest { nsid, code } => {
                found.must_if(!matches!(code, 1 | 2 | 0xf), status::INVALID_FIELD);
                found.must_if(matches!(code, 1 | 2) && self.is_testing(), status::SELF_TEST_IN_PROGRESS);
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
            Command::DirectiveSend(DirectiveSend { nsid, operation, kind, enable, target }) => {
                found.must_if(*kind != 0 || *operation != 1, status::INVALID_FIELD);
                // Identify is always enabled, feature 1Dh switches data placement, and no other
                // directive exists.
                found.must_if(*target != 0 || !enable, status::INVALID_FIELD);
                if *nsid != ALL {
                    self.judge_active(controller, *nsid, found);
                }
            }
            Command::DirectiveReceive(DirectiveReceive { nsid, operation, kind, dwords }) => {
                found.must_if(*kind != 0 || *operation != 1, status::INVALID_FIELD);
                found.must_if(u64::from(*dwords) * 4 > TRANSFER_MAX, status::INVALID_FIELD);
                if *nsid != ALL {
                    self.judge_active(controller, *nsid, found);
                }
            }
            Command::Format(command) => self.judge_format(controller, command, found),
            Command::Sanitize { action, unrestricted, no_deallocate, verify } => {
                self.judge_sanitize(*action, *unrestricted, *no_deallocate, *verify, found);
            }
            _ => unreachable!("an I/O command"),
        }
    }

    fn judge_identify(&self, controller: u16, command: &Command, found: &mut Judgement) {
        let &Command::Identify { cns, nsid, controller: asked, command_set, .. } = command else {
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
        found.must_if(!command.offset.is_multiple_of(4) || command.offset > bytes, status::INVALID_FIELD);
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
        let chosen_by_controller =
            |handle: u16| self.namespaces.values().any(|its| !its.host_specified && its.handles.contains(&handle));
        let count = usize::from(create.handles);
        if count == 0 {
            // The controller's handle. If it has none, a handle without namespaces.
            let shared = self.namespaces.values().find(|namespace| !namespace.host_specified);
            let used = |handle: &u16| self.namespaces.values().any(|its| its.handles.contains(handle));
            match shared {
                Some(other) => found.must_if(other.format != create.format, status::INVALID_FORMAT),
                None => {
                    found.must_if((0..configuration.handles).all(|handle| used(&handle)), status::INVALID_HANDLE_LIST)
                }
            }
            return;
        }
        if count > usize::from(configuration.handles) || count > 128 {
            found.must(status::INVALID_HANDLE_LIST);
            return;
        }
        let listed: Vec<u16> = (0..count).map(|index| create.handle_list.get(index).copied().unwrap_or(0)).collect();
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
            found.must_if(self.namespaces.values().any(|namespace| namespace.protected), status::WRITE_PROTECTED);
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
        let listed: Vec<u16> = (0..usize::from(count)).map(|index| listed.get(index).copied().unwrap_or(0)).collect();
        found.must_if(listed.windows(2).any(|pair| pair[0] >= pair[1]), status::CONTROLLER_LIST_INVALID);
        let there = |id: &u16| self.controllers.get(id).is_some_and(|controller| controller.is_io());
        found.must_if(!listed.iter().all(there), status::CONTROLLER_LIST_INVALID);
        let Some(namespace) = namespace else { return };
        let attached = |id: &u16| namespace.is_attached(*id);
        match operation {
            0 => {
                found.must_if(listed.iter().any(attached), status::ALREADY_ATTACHED);
                let before =
                    if namespace.everyone { usize::from(self.drive.controllers_max) } else { namespace.attached.len() };
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
        found.must_if(namespaces.clone().any(|namespace| namespace.protected), status::WRITE_PROTECTED);
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
        let all = self.namespaces.iter().filter(|(_, namespace)| namespace.is_attached(controller));
        all.map(|(&its, _)| its).filter(|&its| nsid == ALL || its == nsid).collect()
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
            0x04 => {
                found.must_if(command.dword11 >> 16 & 0xf != 0 || command.dword11 >> 20 & 3 > 1, status::INVALID_FIELD)
            }
            0x09 => found.must_if(command.dword11 & 0xffff > self.drive.io_queues_max.into(), status::INVALID_FIELD),
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
        let nsids = if nsid == ALL { self.formatted(controller, ALL) } else { vec![nsid] };
        found.must_if(self.fdp.is_none() && !nsids.is_empty(), status::FDP_DISABLED);
        let handle = (dword11 & 0xffff) as usize;
        let lacks =
            |nsid: &u32| self.active(controller, *nsid).is_some_and(|namespace| handle >= namespace.handles.len());
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
            0x07 => found
                .must_if(command.dword11 & 0xffff == 0xffff || command.dword11 >> 16 == 0xffff, status::INVALID_FIELD),
            0x09 => found.must_if(command.dword11 & 0xffff > self.drive.io_queues_max.into(), status::INVALID_FIELD),
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
                found.must_if(!rising || command.data[11] > 2 || command.data[12] > 1, status::INVALID_FIELD);
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
}
