//! Operations of hosts as values, with all data needed to repeat them.
//!
//! An [`Operation`] is valid in every state of the drive, so a list can be shortened by removing
//! operations.

use super::wire::Wire;

/// Identify structures (CNS) that the drive has.
pub const STRUCTURES: [u8; 18] =
    [0x00, 0x01, 0x02, 0x03, 0x05, 0x06, 0x07, 0x08, 0x10, 0x11, 0x12, 0x13, 0x17, 0x19, 0x1a, 0x1b, 0x1c, 0x1f];
/// Supported log pages.
pub const LOGS: [u8; 20] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x09, 0x0f, 0x12, 0x13, 0x20, 0x21, 0x22, 0x23, 0x81, 0xc0, 0xc1, 0xc3,
    0xc4,
];
/// Supported features, on either transport.
pub const FEATURES: [u8; 21] = [
    0x01, 0x02, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0e, 0x0f, 0x16, 0x17, 0x18, 0x1d, 0x1e, 0x80, 0x81,
    0x84, 0xc5,
];

/// Transport and type of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On PCI Express, by the subsystem's functions.
    Pcie,
    /// On Fabrics.
    Fabrics,
    /// On Fabrics, for discovery.
    Discovery,
}

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A host connects, and its controller is enabled if `enable` is set. With `queues`, a PCI
    /// Express host uses queues in its memory. Without it, the host calls the subsystem's
    /// functions.
    Connect { kind: Kind, host: u8, enable: bool, queues: bool },
    /// The connection and all outstanding commands are lost.
    Disconnect { controller: u16 },
    /// CC.EN = 0, or a reset without a host request.
    Reset { controller: u16, by_host: bool },
    /// CC.EN = 1.
    Enable { controller: u16 },
    /// CC.SHN, and its completion.
    ShutDown { controller: u16 },
    /// A keep alive time, as the Connect command sets it.
    KeepAliveTime { controller: u16, ms: u32 },
    /// The host sends a message.
    HeardOf { controller: u16 },
    /// Time passes. With `tick`, the drive's tick runs.
    Time { ns: u64, tick: bool },
    /// A command is carried out.
    Submit { controller: u16, cid: u16, command: Command },
    /// A command begins. Other operations happen before its data arrives.
    Begin { controller: u16, cid: u16, command: Command },
    /// The data of the oldest command that waits for data arrives.
    Finish,
    /// The storage fails in the next command, once.
    Fail { fault: super::storage::Fault },
    /// An I/O submission queue with commands is deleted. The commands are not announced (0),
    /// announced (1), or executed and not yet durable (2).
    DeleteInFlight { controller: u16, how: u8 },
    /// The host rings a doorbell of a nonexistent queue, or writes an invalid value.
    Doorbell { controller: u16, no_queue: bool },
    /// NSSR.
    ResetSubsystem { controller: u16 },
    /// A log page is read in pieces, which must equal the whole page.
    ReadInPieces { controller: u16, log: u8, parameter: u8, pieces: Vec<u16> },
}

/// Range of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First block.
    pub first: u64,
    /// Number of blocks, at least 1 for commands with zeroes based counts.
    pub count: u32,
}

/// A command with its fields. Its data is created at submission.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Flush {
        nsid: u32,
    },
    Read {
        nsid: u32,
        range: Range,
    },
    Write {
        nsid: u32,
        range: Range,
        placement: Directive,
        fua: bool,
    },
    /// With `equal`, the data equals the stored data at submission. Without it, one byte differs.
    Compare {
        nsid: u32,
        range: Range,
        equal: bool,
    },
    Verify {
        nsid: u32,
        range: Range,
    },
    WriteZeroes {
        nsid: u32,
        range: Range,
        placement: Directive,
        fua: bool,
        deallocate: bool,
    },
    WriteUncorrectable {
        nsid: u32,
        range: Range,
    },
    DatasetManagement {
        nsid: u32,
        ranges: Vec<Range>,
        deallocate: bool,
    },
    Copy {
        nsid: u32,
        to: u64,
        ranges: Vec<Range>,
        format: u8,
        placement: Directive,
        fua: bool,
    },
    HandleStatus {
        nsid: u32,
        operation: u8,
        dwords: u32,
    },
    HandleUpdate {
        nsid: u32,
        operation: u8,
        identifiers: Vec<u16>,
    },
    Identify {
        cns: u8,
        nsid: u32,
        controller: u16,
        command_set: u8,
        specific: u16,
    },
    GetLog(GetLog),
    GetFeature(GetFeature),
    SetFeature(SetFeature),
    Abort {
        queue: u16,
        cid: u16,
    },
    AsyncEvent,
    KeepAlive,
    Create(Create),
    /// Namespace Management with an operation other than Create. 1 is Delete.
    Manage {
        nsid: u32,
        operation: u8,
    },
    Attach {
        nsid: u32,
        operation: u8,
        controllers: Vec<u16>,
        count: u16,
    },
    SelfTest {
        nsid: u32,
        code: u8,
    },
    DirectiveSend(DirectiveSend),
    DirectiveReceive(DirectiveReceive),
    Format(Format),
    Sanitize {
        action: u8,
        unrestricted: bool,
        no_deallocate: bool,
        verify: bool,
    },
    /// Command of PCI Express alone.
    Queue(QueueCommand),
    /// Any other command, without data.
    Other {
        admin: bool,
        opcode: u8,
        nsid: u32,
        fuse: u8,
    },
}

/// Get Log Page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GetLog {
    pub log: u8,
    pub nsid: u32,
    pub parameter: u8,
    pub retain: bool,
    pub group: u16,
    pub dwords: u32,
    pub offset: u64,
    pub by_index: bool,
}

/// Get Features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GetFeature {
    pub feature: u8,
    pub select: u8,
    pub nsid: u32,
    pub dword11: u32,
}

/// Set Features.
#[derive(Clone, Debug, PartialEq)]
pub struct SetFeature {
    pub feature: u8,
    pub save: bool,
    pub nsid: u32,
    pub dword11: u32,
    pub dword12: u32,
    pub data: Vec<u8>,
}

/// Directive Send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectiveSend {
    pub nsid: u32,
    pub operation: u8,
    pub kind: u8,
    pub enable: bool,
    pub target: u8,
}

/// Directive Receive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectiveReceive {
    pub nsid: u32,
    pub operation: u8,
    pub kind: u8,
    pub dwords: u32,
}

/// Format NVM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Format {
    pub nsid: u32,
    pub format: u8,
    pub extended: bool,
    pub erase: u8,
    pub protection: u8,
}

impl GetLog {
    fn wire(&self) -> Wire {
        let numd = self.dwords - 1;
        let bits = u32::from(self.retain) << 15 | u32::from(self.parameter) << 8 | u32::from(self.log);
        Wire::new(0x02, self.nsid)
            .dword(10, (numd & 0xffff) << 16 | bits)
            .dword(11, u32::from(self.group) << 16 | numd >> 16)
            .dword(12, self.offset as u32)
            .dword(13, (self.offset >> 32) as u32)
            .dword(14, u32::from(self.by_index) << 23)
    }
}

impl GetFeature {
    fn wire(&self) -> Wire {
        Wire::new(0x0a, self.nsid)
            .dword(10, u32::from(self.select) << 8 | u32::from(self.feature))
            .dword(11, self.dword11)
    }
}

impl SetFeature {
    fn wire(&self) -> Wire {
        Wire::new(0x09, self.nsid)
            .dword(10, u32::from(self.save) << 31 | u32::from(self.feature))
            .dword(11, self.dword11)
            .dword(12, self.dword12)
    }
}

impl DirectiveSend {
    fn wire(&self) -> Wire {
        Wire::new(0x19, self.nsid)
            .dword(11, u32::from(self.kind) << 8 | u32::from(self.operation))
            .dword(12, u32::from(self.target) << 8 | u32::from(self.enable))
    }
}

impl DirectiveReceive {
    fn wire(&self) -> Wire {
        Wire::new(0x1a, self.nsid)
            .dword(10, self.dwords - 1)
            .dword(11, u32::from(self.kind) << 8 | u32::from(self.operation))
    }
}

impl Format {
    fn wire(&self) -> Wire {
        let format = u32::from(self.format >> 4) << 12 | u32::from(self.extended) << 4 | u32::from(self.format & 0xf);
        let bits = u32::from(self.erase) << 9 | u32::from(self.protection) << 5 | format;
        Wire::new(0x80, self.nsid).dword(10, bits)
    }
}

/// Queue commands of PCI Express. The owner of the memory chooses the addresses.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueCommand {
    CreateCompletion {
        id: u16,
        entries: u32,
        vector: u16,
        interrupts: bool,
        contiguous: bool,
        misaligned: bool,
    },
    CreateSubmission {
        id: u16,
        entries: u32,
        completion: u16,
        contiguous: bool,
        misaligned: bool,
    },
    DeleteSubmission {
        id: u16,
    },
    DeleteCompletion {
        id: u16,
    },
    /// Doorbell Buffer Config.
    Shadow {
        misaligned: bool,
    },
}

impl QueueCommand {
    fn wire(&self) -> Wire {
        let create = |id: u16, entries: u32| (entries - 1) << 16 | u32::from(id);
        match *self {
            QueueCommand::CreateCompletion { id, entries, vector, interrupts, contiguous, .. } => {
                let bits = u32::from(vector) << 16 | u32::from(interrupts) << 1 | u32::from(contiguous);
                Wire::new(0x05, 0).dword(10, create(id, entries)).dword(11, bits)
            }
            QueueCommand::CreateSubmission { id, entries, completion, contiguous, .. } => {
                let bits = u32::from(completion) << 16 | u32::from(contiguous);
                Wire::new(0x01, 0).dword(10, create(id, entries)).dword(11, bits)
            }
            QueueCommand::DeleteSubmission { id } => Wire::new(0x00, 0).dword(10, id.into()),
            QueueCommand::DeleteCompletion { id } => Wire::new(0x04, 0).dword(10, id.into()),
            QueueCommand::Shadow { .. } => Wire::new(0x7c, 0),
        }
    }
}

/// DTYPE and DSPEC of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive {
    /// 0 none, 2 data placement.
    pub kind: u8,
    /// The placement identifier.
    pub specific: u16,
}

/// Fields of Namespace Management, create.
#[derive(Clone, Debug, PartialEq)]
pub struct Create {
    pub blocks: u64,
    pub capacity: u64,
    pub format: u8,
    /// Metadata follows each block.
    pub extended: bool,
    pub protection: u8,
    pub shared: bool,
    pub ana_group: u32,
    pub nvm_set: u16,
    pub endurance_group: u16,
    pub command_set: u8,
    /// NPHNDLS.
    pub handles: u16,
    pub handle_list: Vec<u16>,
}

impl Command {
    /// True for commands of the admin queue.
    pub fn is_admin(&self) -> bool {
        match self {
            Command::Flush { .. }
            | Command::Read { .. }
            | Command::Write { .. }
            | Command::Compare { .. }
            | Command::Verify { .. }
            | Command::WriteZeroes { .. }
            | Command::WriteUncorrectable { .. }
            | Command::DatasetManagement { .. }
            | Command::Copy { .. }
            | Command::HandleStatus { .. }
            | Command::HandleUpdate { .. } => false,
            Command::Other { admin, .. } => *admin,
            _ => true,
        }
    }

    /// A short name for the coverage table.
    pub fn name(&self) -> String {
        let debug = format!("{self:?}");
        let name = debug.split([' ', '(', '{']).next().expect("there is a first part").to_string();
        match self {
            Command::GetLog(GetLog { log, .. }) if LOGS.contains(log) => format!("{name} {log:02x}h"),
            Command::GetFeature(GetFeature { feature, .. }) | Command::SetFeature(SetFeature { feature, .. })
                if FEATURES.contains(feature) =>
            {
                format!("{name} {feature:02x}h")
            }
            Command::Identify { cns, .. } if STRUCTURES.contains(cns) => format!("{name} {cns:02x}h"),
            Command::GetLog(_) | Command::GetFeature(_) | Command::SetFeature(_) | Command::Identify { .. } => {
                format!("{name} of what there is not")
            }
            Command::Queue(command) => {
                let debug = format!("{command:?}");
                debug.split(' ').next().expect("there is a first part").to_string()
            }
            Command::Manage { operation: 1, .. } => "Delete".to_string(),
            Command::Attach { operation: 1, .. } => "Detach".to_string(),
            _ => name,
        }
    }

    /// Submission queue entry of the command.
    pub fn wire(&self) -> Wire {
        match *self {
            Command::Flush { nsid } => Wire::new(0x00, nsid),
            Command::Read { nsid, range } => blocks(0x02, nsid, range, 0),
            Command::Write { nsid, range, placement, fua } => {
                blocks(0x01, nsid, range, write_bits(placement, fua)).dword(13, u32::from(placement.specific) << 16)
            }
            Command::Compare { nsid, range, .. } => blocks(0x05, nsid, range, 0),
            Command::Verify { nsid, range } => blocks(0x0c, nsid, range, 0),
            Command::WriteZeroes { nsid, range, placement, fua, deallocate } => {
                let bits = write_bits(placement, fua) | u32::from(deallocate) << 25;
                blocks(0x08, nsid, range, bits).dword(13, u32::from(placement.specific) << 16)
            }
            Command::WriteUncorrectable { nsid, range } => blocks(0x04, nsid, range, 0),
            Command::DatasetManagement { nsid, ref ranges, deallocate } => {
                Wire::new(0x09, nsid).dword(10, ranges.len() as u32 - 1).dword(11, u32::from(deallocate) << 2)
            }
            Command::Copy { nsid, to, ref ranges, format, placement, fua } => {
                let bits = write_bits(placement, fua) | u32::from(format) << 8 | (ranges.len() as u32 - 1);
                Wire::new(0x19, nsid).lba(to).dword(12, bits).dword(13, u32::from(placement.specific) << 16)
            }
            Command::HandleStatus { nsid, operation, dwords } => {
                Wire::new(0x12, nsid).dword(10, operation.into()).dword(11, dwords - 1)
            }
            Command::HandleUpdate { nsid, operation, ref identifiers } => {
                Wire::new(0x1d, nsid).dword(10, (identifiers.len() as u32 - 1) << 16 | u32::from(operation))
            }
            Command::Other { opcode, nsid, fuse, .. } => Wire { flags: fuse, ..Wire::new(opcode, nsid) },
            _ => self.admin_wire(),
        }
    }

    fn admin_wire(&self) -> Wire {
        match *self {
            Command::Identify { cns, nsid, controller, command_set, specific } => Wire::new(0x06, nsid)
                .dword(10, u32::from(controller) << 16 | u32::from(cns))
                .dword(11, u32::from(command_set) << 24 | u32::from(specific)),
            Command::GetLog(ref command) => command.wire(),
            Command::GetFeature(ref command) => command.wire(),
            Command::SetFeature(ref command) => command.wire(),
            Command::Queue(ref command) => command.wire(),
            Command::Abort { queue, cid } => Wire::new(0x08, 0).dword(10, u32::from(cid) << 16 | u32::from(queue)),
            Command::AsyncEvent => Wire::new(0x0c, 0),
            Command::KeepAlive => Wire::new(0x18, 0),
            Command::Create(ref create) => Wire::new(0x0d, 0).dword(11, u32::from(create.command_set) << 24),
            Command::Manage { nsid, operation } => Wire::new(0x0d, nsid).dword(10, operation.into()),
            Command::Attach { nsid, operation, .. } => Wire::new(0x15, nsid).dword(10, operation.into()),
            Command::SelfTest { nsid, code } => Wire::new(0x14, nsid).dword(10, code.into()),
            Command::DirectiveSend(ref command) => command.wire(),
            Command::DirectiveReceive(ref command) => command.wire(),
            Command::Format(ref command) => command.wire(),
            Command::Sanitize { action, unrestricted, no_deallocate, verify } => {
                let bits = u32::from(verify) << 10 | u32::from(no_deallocate) << 9 | u32::from(unrestricted) << 3;
                Wire::new(0x84, 0).dword(10, bits | u32::from(action))
            }
            _ => unreachable!("an I/O command"),
        }
    }

    /// Data of commands that does not depend on stored data.
    pub fn fixed_data(&self) -> Vec<u8> {
        match self {
            Command::SetFeature(SetFeature { data, .. }) => data.clone(),
            Command::DatasetManagement { ranges, .. } => ranges.iter().flat_map(dataset_range).collect(),
            Command::Copy { ranges, .. } => ranges.iter().flat_map(source_range).collect(),
            Command::HandleUpdate { operation: 1, identifiers, .. } => {
                identifiers.iter().flat_map(|identifier| identifier.to_le_bytes()).collect()
            }
            Command::Create(create) => create.data(),
            Command::Attach { controllers, count, .. } => {
                let mut data = count.to_le_bytes().to_vec();
                data.extend(controllers.iter().flat_map(|controller| controller.to_le_bytes()));
                data.resize(4096, 0);
                data
            }
            _ => Vec::new(),
        }
    }
}

fn blocks(opcode: u8, nsid: u32, range: Range, bits: u32) -> Wire {
    Wire::new(opcode, nsid).lba(range.first).dword(12, bits | (range.count - 1))
}

fn write_bits(placement: Directive, fua: bool) -> u32 {
    u32::from(fua) << 30 | u32::from(placement.kind) << 20
}

/// Range of Dataset Management, with attributes, number of blocks and first block.
fn dataset_range(range: &Range) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[4..8].copy_from_slice(&range.count.to_le_bytes());
    bytes[8..].copy_from_slice(&range.first.to_le_bytes());
    bytes
}

/// Source range of Copy in format 0, with the first block at byte 8 and the zeroes based count at
/// byte 16.
fn source_range(range: &Range) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[8..16].copy_from_slice(&range.first.to_le_bytes());
    bytes[16..18].copy_from_slice(&((range.count - 1) as u16).to_le_bytes());
    bytes
}

impl Create {
    fn data(&self) -> Vec<u8> {
        let mut data = vec![0; 4096];
        let mut put = |at: usize, bytes: &[u8]| data[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.blocks.to_le_bytes());
        put(8, &self.capacity.to_le_bytes());
        put(26, &[self.format & 0xf | u8::from(self.extended) << 4 | self.format >> 4 << 5]);
        put(29, &[self.protection]);
        put(30, &[u8::from(self.shared)]);
        put(92, &self.ana_group.to_le_bytes());
        put(100, &self.nvm_set.to_le_bytes());
        put(102, &self.endurance_group.to_le_bytes());
        put(392, &self.handles.to_le_bytes());
        for (index, handle) in self.handle_list.iter().enumerate() {
            put(512 + 2 * index, &handle.to_le_bytes());
        }
        data
    }
}
