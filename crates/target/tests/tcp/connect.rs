//! Connect, property and other Fabrics commands with one error each.

use base::table;
use initiator::tcp::{CommandData, InitiatorError, RemoteController, connect_command};
use nvme_spec::fabrics::{
    CNTLID_DYNAMIC, CNTLID_STATIC, ConnectCommand, ConnectData, DISCOVERY_NQN, FabricsCommandType,
};
use nvme_spec::tcp::DigestFlags;
use nvme_spec::{AdminOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::{Raw, Target, as_entry, property};

/// Description of an error in a Connect of a host whose controller has this identifier, its
/// injection, and the completion.
type ConnectCase = (&'static str, fn(&mut ConnectCommand, &mut ConnectData, u16), (Status, u32));

const INVALID_CONNECT: Status = Status::CONNECT_INVALID_PARAMETERS;
/// IATTR: the offset is in the data.
const IN_DATA: u32 = 1 << 16;

const WRONG_CONNECTS: &[ConnectCase] = &table! {
    "record format": |command, _, _| command.recfmt = 1.into() => (Status::CONNECT_INCOMPATIBLE_FORMAT, 0),
    "queue of one entry": |command, _, _| command.sqsize = 0.into() => (INVALID_CONNECT, 44),
    "queue too large": |command, _, _| command.sqsize = 4096.into() => (INVALID_CONNECT, 44),
    "another subsystem": |_, data, _| data.subnqn = name("nqn.2026-01.io.warp:other")
        => (INVALID_CONNECT, IN_DATA | 256),
    "no subsystem": |_, data, _| data.subnqn = [0; 256] => (INVALID_CONNECT, IN_DATA | 256),
    "an endless name": |_, data, _| data.subnqn = [b'n'; 256] => (INVALID_CONNECT, IN_DATA | 256),
    "a host that is no NQN": |_, data, _| data.hostnqn = name("somebody") => (INVALID_CONNECT, IN_DATA | 512),
    "a host that is no text": |_, data, _| data.hostnqn[5] = 0xff => (INVALID_CONNECT, IN_DATA | 512),
    "a host with a long name": |_, data, _| data.hostnqn[32..225].fill(b'x') => (INVALID_CONNECT, IN_DATA | 512),
    "a static controller": |_, data, _| data.cntlid = CNTLID_STATIC.into() => (INVALID_CONNECT, IN_DATA | 16),
    "a chosen controller": |_, data, _| data.cntlid = 1.into() => (INVALID_CONNECT, IN_DATA | 16),
    "a queue of nobody": |command, _, _| command.qid = 1.into() => (INVALID_CONNECT, IN_DATA | 16),
    "a queue too many": |command, data, id| (command.qid, data.cntlid) = (5.into(), id.into())
        => (INVALID_CONNECT, 42),
    "another host's controller": |command, data, id| {
        (command.qid, data.cntlid, data.hostid) = (1.into(), id.into(), [9; 16]);
    } => (INVALID_CONNECT, IN_DATA | 16),
    "a controller that is not enabled": |command, data, id| (command.qid, data.cntlid) = (1.into(), id.into())
        => (Status::COMMAND_SEQUENCE_ERROR, 0),
    "an I/O queue of the discovery subsystem": |command, data, _| {
        (command.qid, data.subnqn) = (1.into(), name(DISCOVERY_NQN));
    } => (INVALID_CONNECT, 42),
};

fn name(text: &str) -> [u8; 256] {
    let mut field = [0; 256];
    field[..text.len()].copy_from_slice(text.as_bytes());
    field
}

#[test]
fn wrong_connects_are_refused_with_the_place_of_the_mistake() {
    let target = Target::start();
    let controller = RemoteController::connect_disabled(&target.host()).unwrap();
    // A single connection, because a host may repeat a refused Connect.
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    for (what, spoil, expected) in WRONG_CONNECTS {
        let (mut command, mut data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
        spoil(&mut command, &mut data, controller.id());
        let completion = raw.command(as_entry(&command), data.as_bytes());
        let got = (completion.status.status(), completion.dw0.get());
        assert_eq!(got, *expected, "{what}");
        assert!(completion.status.dnr(), "{what}");
    }
    assert_eq!(target.controllers(), 1);
}

/// A command with its data.
type Sent<'a> = (SubmissionEntry, &'a [u8]);

#[test]
fn a_queue_begins_with_one_whole_connect() {
    let target = Target::start();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
    let (connect, data) = (as_entry(&command), data.as_bytes());
    let identify = SubmissionEntry { opcode: AdminOpcode::Identify.code(), ..SubmissionEntry::default() };
    let get = property(FabricsCommandType::PropertyGet, 0, 0);
    let steps: &[(&str, Sent, Status)] = &table! {
        "short data": (connect, &data[..1020]) => Status::DATA_SGL_LENGTH_INVALID,
        "anything else before": (identify, &[]) => Status::COMMAND_SEQUENCE_ERROR,
        "a property before": (get, &[]) => Status::COMMAND_SEQUENCE_ERROR,
        "the right one": (connect, data) => Status::SUCCESS,
        "a second one": (connect, data) => Status::COMMAND_SEQUENCE_ERROR,
    };
    for (what, (entry, data), status) in steps {
        assert_eq!(raw.command(*entry, data).status.status(), *status, "{what}");
    }
}

#[test]
fn queues_are_connected_once_and_not_to_discovery_controllers() {
    let target = Target::start();
    let controller = RemoteController::connect(&target.host()).unwrap();
    let _queue = controller.io_queue(1, 16).unwrap();
    let twice = controller.io_queue(1, 16).map(|_| ());
    assert!(matches!(twice, Err(InitiatorError::Command { status: Status::COMMAND_SEQUENCE_ERROR, .. })), "{twice:?}");
    // A controller of the discovery subsystem has no I/O queues under any name.
    let discovery = RemoteController::connect(&target.host().discovery()).unwrap();
    let (mut command, mut data) = connect_command(&target.host(), discovery.id(), 1, 16);
    (command.qid, data.cntlid) = (1.into(), discovery.id().into());
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let completion = raw.command(as_entry(&command), data.as_bytes());
    let got = (completion.status.status(), completion.dw0.get());
    assert_eq!(got, (INVALID_CONNECT, IN_DATA | 16));
}

#[test]
fn more_controllers_than_there_are_are_refused_for_now() {
    let target = Target::start();
    let _controllers: Vec<RemoteController> =
        (0..4).map(|_| RemoteController::connect(&target.host()).unwrap()).collect();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(completion.status.status(), Status::CONNECT_CONTROLLER_BUSY);
    assert!(!completion.status.dnr());
}

#[test]
fn wrong_properties_and_fabrics_commands_have_their_statuses() {
    use FabricsCommandType::{Disconnect, PropertyGet, PropertySet};
    let target = Target::start();
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let mut queue = controller.io_queue(1, 16).unwrap();
    let mut unknown = property(PropertyGet, 0, 0);
    unknown.nsid = 0x33.into();
    let create = SubmissionEntry { opcode: AdminOpcode::CreateIoSubmissionQueue.code(), ..SubmissionEntry::default() };
    let all: &[(&str, SubmissionEntry, Status)] = &table! {
        "a readable one": property(PropertyGet, 1, 0) => Status::SUCCESS,
        "of the wrong size": property(PropertyGet, 0, 0) => Status::INVALID_FIELD,
        "a small one as a large one": property(PropertyGet, 1, 0x14) => Status::INVALID_FIELD,
        "in the middle of one": property(PropertyGet, 0, 0x13) => Status::INVALID_FIELD,
        "a set of a read-only one": property(PropertySet, 1, 0) => Status::INVALID_FIELD,
        "a subsystem reset (CAP.NSSRS is 0)": property(PropertySet, 0, 0x20) => Status::INVALID_FIELD,
        "a disconnect": property(Disconnect, 0, 0) => Status::INVALID_COMMAND_OPCODE,
        "an unknown type": unknown => Status::INVALID_COMMAND_OPCODE,
        "a queue that is not connected": create => Status::INVALID_COMMAND_OPCODE,
    };
    for (what, entry, status) in all {
        assert_eq!(controller.admin(*entry, CommandData::None).unwrap().status(), *status, "{what}");
    }
    let on_io_queue = queue.command(property(PropertyGet, 1, 0), CommandData::None).unwrap();
    assert_eq!(on_io_queue.status(), Status::INVALID_COMMAND_OPCODE);
}
