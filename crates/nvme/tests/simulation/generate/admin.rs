//! Random admin commands.

use super::Generator;
use crate::simulation::entropy::Entropy;
use crate::simulation::model::{ALL, EVENT_TYPES, Model, NN};
use crate::simulation::operation::{
    Command, Create, DirectiveReceive, DirectiveSend, FEATURES, GetLog, LOGS, Operation, QueueCommand, STRUCTURES,
    SetFeature,
};

impl<E: Entropy> Generator<E> {
    pub(super) fn identify(&mut self, model: &Model, nsid: u32) -> Command {
        let cns = if self.mistake() { self.entropy.below(256) as u8 } else { self.entropy.pick(&STRUCTURES) };
        let list = matches!(cns, 0x02 | 0x07 | 0x10 | 0x1a);
        let small = self.entropy.between(1, 5) as u32;
        let any = self.entropy.pick(&[nsid, small, ALL]);
        Command::Identify {
            cns,
            nsid: if list && !self.mistake() { self.entropy.below(5) as u32 } else { any },
            controller: match cns {
                0x1c => self.entropy.pick(&[u16::MAX, 1, model.drive.controllers_max + 1]),
                _ => self.entropy.below(4) as u16,
            },
            command_set: u8::from(self.mistake()),
            specific: self.entropy.below(3) as u16,
        }
    }

    pub(super) fn log(&mut self) -> u8 {
        if self.mistake() { self.entropy.below(256) as u8 } else { self.entropy.pick(&LOGS) }
    }

    pub(super) fn get_log(&mut self, _model: &Model, nsid: u32) -> Command {
        let whole = self.entropy.percent(75);
        let offset = if whole {
            0
        } else if self.mistake() {
            self.entropy.pick(&[3, 4100, 1 << 20, 1 << 32, u64::MAX])
        } else {
            4 * self.entropy.below(140)
        };
        let log = self.log();
        Command::GetLog(GetLog {
            log,
            nsid: if log == 0x02 && !self.mistake() { self.entropy.pick(&[0, ALL]) } else { nsid },
            parameter: self.entropy.below(2) as u8,
            retain: self.entropy.percent(40),
            group: u16::from(!self.mistake()),
            dwords: if whole {
                self.entropy.pick(&[1024, 1041, 2048])
            } else if self.mistake() {
                self.entropy.pick(&[262_144, 262_145, 1 << 20])
            } else {
                self.entropy.between(1, 200) as u32
            },
            offset,
            by_index: self.mistake(),
        })
    }

    pub(super) fn feature_number(&mut self) -> u8 {
        if self.mistake() { self.entropy.below(256) as u8 } else { self.entropy.pick(&FEATURES) }
    }

    pub(super) fn feature_value(&mut self, setting: bool) -> u32 {
        match self.entropy.below(if setting { 5 } else { 3 }) {
            0 => self.entropy.below(2) as u32,
            1 => 1 | (self.entropy.below(3) as u32) << 20,
            2 => (self.entropy.below(8) as u32) << 16 | self.entropy.below(3) as u32,
            3 => self.entropy.below(1 << 32) as u32,
            _ => self.entropy.below(1 << 10) as u32,
        }
    }

    pub(super) fn set_feature(&mut self, nsid: u32) -> Command {
        let feature = loop {
            let feature = self.feature_number();
            // These features have their own class.
            if !matches!(feature, 0x1d | 0x1e) {
                break feature;
            }
        };
        let of_namespace = matches!(feature, 0x05 | 0x84);
        let free = self.feature_value(true);
        let dword11 = match feature {
            _ if self.mistake() => free,
            0x02 => free & 0xe0,
            0x04 => self.entropy.pick(&[313, 314, 300, 0, 343]) | self.entropy.pick(&[0, 1 << 20]),
            0x05 => free & 0xffff,
            0x07 => free & 0x000f_000f,
            0x09 => free & 0x1_0001,
            0x0b => self.entropy.pick(&[0, 0x100, 0x41ff, 0x4106, free]),
            0x0f => self.entropy.pick(&[0, 1, 5_000, 100_000]),
            0x18 => 1 | self.entropy.pick(&[0, 4 << 16]),
            0x81 => self.entropy.below(2) as u32,
            0x84 => u32::from(self.entropy.percent(30)),
            _ => free,
        };
        let bytes = match feature {
            0x0e => 8,
            0x16 => 512,
            0x81 if dword11 & 1 == 1 => 16,
            0x81 => 8,
            0xc5 => 4096,
            _ => 0,
        };
        let mut data: Vec<u8> = (0..bytes).map(|_| self.entropy.below(256) as u8).collect();
        if feature == 0x16 && !self.mistake() {
            data.fill(0);
            data[0] = self.entropy.below(2) as u8;
            data[2] = self.entropy.below(2) as u8;
        }
        if feature == 0xc5 {
            data[11] = self.entropy.below(2) as u8;
            data[12] = self.entropy.below(2) as u8;
            data[0] = self.entropy.below(3) as u8;
            data[1] = 0;
            if !self.mistake() {
                data[2..6].sort_unstable();
            }
            if self.mistake() {
                data[11] = self.entropy.below(4) as u8;
                data[12] = self.entropy.below(3) as u8;
            }
        }
        Command::SetFeature(SetFeature {
            feature,
            save: self.entropy.percent(25),
            nsid: match of_namespace {
                true if self.entropy.percent(10) => ALL,
                true => nsid,
                false if self.mistake() => nsid,
                false => self.entropy.pick(&[0, ALL]),
            },
            dword11,
            dword12: 0,
            data,
        })
    }

    /// Feature 1Eh, which selects the logged events of placement handles.
    pub(super) fn set_events(&mut self, model: &Model, nsid: u32) -> Command {
        let handles = model.namespaces.get(&nsid).map_or(1, |namespace| namespace.handles.len() as u64);
        let wrong = u64::from(self.mistake());
        let handle = self.entropy.below(handles + wrong) as u32;
        let mut data: Vec<u8> = EVENT_TYPES.into_iter().filter(|_| self.entropy.percent(70)).collect();
        if self.mistake() {
            data.push(self.entropy.below(256) as u8);
        }
        Command::SetFeature(SetFeature {
            feature: 0x1e,
            save: self.entropy.percent(50),
            nsid: if self.entropy.percent(10) { ALL } else { nsid },
            dword11: (data.len() as u32) << 16 | handle,
            dword12: u32::from(self.entropy.percent(85)),
            data,
        })
    }

    pub(super) fn asynchronous(&mut self, model: &Model, controller: u16) -> Command {
        let requests = &model.controllers[&controller].requests;
        match self.entropy.below(5) {
            0 => Command::Abort {
                queue: u16::from(self.mistake()),
                cid: if requests.is_empty() || self.entropy.percent(20) {
                    self.entropy.below(1 << 16) as u16
                } else {
                    requests[self.entropy.below(requests.len() as u64) as usize]
                },
            },
            // Reads the log pages that events name.
            1 => Command::GetLog(GetLog {
                log: self.entropy.pick(&[0x02, 0x04, 0x0f, 0x09, 0x81]),
                nsid: 0,
                parameter: 0,
                retain: self.entropy.percent(20),
                group: 1,
                dwords: 1024,
                offset: 0,
                by_index: false,
            }),
            _ => Command::AsyncEvent,
        }
    }

    pub(super) fn namespace_command(&mut self, model: &Model, controller: u16, nsid: u32) -> Command {
        let existing: Vec<u32> = model.namespaces.keys().copied().collect();
        let detached: Vec<u32> =
            existing.iter().copied().filter(|nsid| !model.namespaces[nsid].is_attached(controller)).collect();
        match self.entropy.below(8) {
            0..3 => Command::Create(self.create(model)),
            3 if self.mistake() => Command::Manage { nsid: ALL, operation: self.entropy.below(3) as u8 + 1 },
            3 => Command::Manage {
                nsid: if existing.is_empty() { nsid } else { self.entropy.pick(&existing) },
                operation: 1,
            },
            4..7 if !detached.is_empty() => {
                let nsid = self.entropy.pick(&detached);
                self.attach(model, controller, nsid, 0)
            }
            _ => self.attach(model, controller, nsid, 1),
        }
    }

    fn attach(&mut self, model: &Model, controller: u16, nsid: u32, operation: u8) -> Command {
        let mut controllers = vec![controller];
        if self.entropy.percent(30) || self.mistake() {
            controllers.extend(model.controllers.keys().copied());
        }
        if self.mistake() {
            controllers.push(self.entropy.below(10) as u16);
        } else {
            controllers.sort_unstable();
            controllers.dedup();
        }
        let count = if self.mistake() { self.entropy.pick(&[0, 1, 2048, u16::MAX]) } else { controllers.len() as u16 };
        let operation = if self.mistake() { self.entropy.below(16) as u8 } else { operation };
        Command::Attach { nsid, operation, controllers, count }
    }

    pub(super) fn create(&mut self, model: &Model) -> Create {
        let format = if self.mistake() { self.entropy.below(64) as u8 } else { self.entropy.below(4) as u8 };
        let block_bytes = crate::simulation::model::BLOCK_BYTES.get(usize::from(format)).copied().unwrap_or(4096);
        let free = model.pages_free() * model.drive.page_bytes / block_bytes;
        let blocks = match self.entropy.below(4) {
            _ if self.mistake() => self.entropy.pick(&[0, free + 1, u64::MAX, 1 << 52]),
            0 => free.max(1),
            1 => self.entropy.between(1, 300),
            _ => self.entropy.between(1, free.max(1)),
        };
        let capacity = if self.mistake() { self.entropy.below(blocks.saturating_add(2).max(1)) } else { blocks };
        let handles = model.configuration().handles;
        let mut handle_list: Vec<u16> = (0..handles).filter(|_| self.entropy.percent(60)).collect();
        if self.mistake() {
            handle_list.push(self.entropy.below(u64::from(handles) + 2) as u16);
        }
        let count =
            if self.mistake() { self.entropy.pick(&[handles + 1, 129, u16::MAX]) } else { handle_list.len() as u16 };
        Create {
            blocks,
            capacity,
            format,
            extended: self.entropy.percent(70),
            protection: u8::from(self.mistake()),
            shared: self.entropy.percent(70),
            ana_group: u32::from(self.mistake()),
            nvm_set: u16::from(self.mistake()),
            endurance_group: if self.mistake() { 2 } else { self.entropy.below(2) as u16 },
            command_set: if self.mistake() { 2 } else { 0 },
            handles: count,
            handle_list,
        }
    }

    /// Creates more small namespaces than identifiers exist.
    pub(super) fn fill_identifiers(&mut self, model: &Model, controller: u16) -> Operation {
        let mut create = self.create(model);
        (create.blocks, create.capacity, create.handles) = (1, 1, 0);
        for _ in 0..NN {
            let planned = self.submit(controller, Command::Create(create.clone()));
            self.planned.push(planned);
        }
        // The small namespaces would hinder all other operations.
        let nsid = ALL;
        self.planned
            .insert(0, Operation::Submit { controller, cid: 0, command: Command::Manage { nsid, operation: 1 } });
        self.submit(controller, Command::Create(create))
    }

    /// Feature 1Dh. A change requires a drive without namespaces, so they are mostly deleted first.
    pub(super) fn switch_placement(&mut self, model: &Model) -> Command {
        let wrong = u64::from(self.mistake());
        let index = self.entropy.below(model.drive.configurations.len() as u64 + wrong);
        let set = Command::SetFeature(SetFeature {
            feature: 0x1d,
            save: self.entropy.percent(50),
            nsid: self.entropy.pick(&[0, ALL]),
            dword11: if self.mistake() { 2 } else { self.entropy.below(2) as u32 },
            dword12: (index as u32) << 8 | u32::from(self.entropy.percent(70)),
            data: Vec::new(),
        });
        if model.namespaces.is_empty() || self.entropy.percent(20) {
            return set;
        }
        let controller = self.controller(model);
        let create = Command::Create(self.create(model));
        for command in [create, set] {
            let planned = self.submit(controller, command);
            self.planned.push(planned);
        }
        Command::Manage { nsid: ALL, operation: 1 }
    }

    /// Queue mistakes are more frequent than other mistakes, because few such commands exist.
    fn queue_mistake(&mut self) -> bool {
        self.mistake() || self.entropy.percent(4)
    }

    pub(super) fn queue_command(&mut self, model: &Model) -> QueueCommand {
        let most = u64::from(model.drive.io_queues_max) + u64::from(self.queue_mistake());
        let id = if self.queue_mistake() {
            self.entropy.pick(&[0, 100, u16::MAX])
        } else {
            self.entropy.between(1, most) as u16
        };
        let entries = if self.queue_mistake() {
            self.entropy.pick(&[1, 4097, 65536])
        } else {
            self.entropy.pick(&[2, 3, 4, 9, 64])
        };
        let (contiguous, misaligned) = (!self.queue_mistake(), self.queue_mistake());
        match self.entropy.below(8) {
            0..3 => QueueCommand::CreateCompletion {
                id,
                entries,
                vector: if self.queue_mistake() { 100 } else { self.entropy.below(most) as u16 },
                interrupts: self.entropy.percent(70),
                contiguous,
                misaligned,
            },
            3 | 4 => {
                let completion = self.entropy.between(1, most) as u16;
                QueueCommand::CreateSubmission { id, entries, completion, contiguous, misaligned }
            }
            5 => QueueCommand::DeleteSubmission { id },
            6 => QueueCommand::DeleteCompletion { id },
            _ => QueueCommand::Shadow { misaligned },
        }
    }

    pub(super) fn little(&mut self, nsid: u32) -> Command {
        match self.entropy.below(5) {
            0 => Command::SelfTest {
                nsid: self.entropy.pick(&[0, ALL, nsid]),
                code: if self.mistake() { self.entropy.below(16) as u8 } else { self.entropy.pick(&[1, 2, 0xf]) },
            },
            1 => Command::DirectiveSend(DirectiveSend {
                nsid: self.entropy.pick(&[ALL, nsid]),
                operation: if self.mistake() { self.entropy.below(3) as u8 } else { 1 },
                kind: if self.mistake() { self.entropy.below(4) as u8 } else { 0 },
                enable: self.entropy.percent(70),
                target: self.entropy.below(4) as u8,
            }),
            2 | 3 => Command::DirectiveReceive(DirectiveReceive {
                nsid: self.entropy.pick(&[ALL, nsid]),
                operation: if self.mistake() { self.entropy.below(3) as u8 } else { 1 },
                kind: if self.mistake() { self.entropy.below(4) as u8 } else { 0 },
                dwords: if self.mistake() { 262_145 } else { self.entropy.pick(&[1, 1024, 2048]) },
            }),
            _ => {
                let admin = self.entropy.percent(50);
                // Opcodes that the drive does not support, or that only PCI Express has.
                let opcode = match admin {
                    true => self
                        .entropy
                        .pick(&[0x00, 0x01, 0x04, 0x05, 0x0e, 0x10, 0x11, 0x1c, 0x7c, 0x7f, 0x81, 0x82, 0xc0, 0xff]),
                    false => self.entropy.pick(&[0x0d, 0x0e, 0x11, 0x15, 0x18, 0x20, 0x79, 0x7f, 0x80, 0xff]),
                };
                Command::Other {
                    admin,
                    opcode,
                    nsid,
                    fuse: if self.mistake() { self.entropy.below(3) as u8 } else { 0 },
                }
            }
        }
    }
}
