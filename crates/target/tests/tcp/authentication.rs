//! DH-HMAC-CHAP of correct hosts, and wrong authentication messages.

use base::table;
use initiator::command::block_command;
use initiator::tcp::{HostOptions, RemoteController, connect_command};
use nvme_spec::auth::{
    AUTH_TYPE_COMMON, AUTH_TYPE_DHCHAP, DhGroupId, FailureReason, HashId, MessageHeader, MessageId, SECURITY_PROTOCOL,
};
use nvme_spec::command::PSDT_SGL_MPTR_CONTIGUOUS;
use nvme_spec::fabrics::{AuthenticationCommand, CNTLID_DYNAMIC, FabricsCommandType, OPCODE};
use nvme_spec::tcp::{DigestFlags, PduType};
use nvme_spec::{AdminOpcode, IoOpcode, Status, SubmissionEntry};
use target::tcp::{AllowedHost, TcpOptions};
use zerocopy::IntoBytes;

use crate::{HOST, Raw, Target, as_entry, eventually, loopback, property, read, sgl, write};

pub const SECRET: &str = "DHHC-1:01:J0qR2WNHWlQcsHLbbnAJ90qQOCgwxh9SLRo7BIMIUsGJ8cUH:";
const OTHER_SECRET: &str = "DHHC-1:00:4lrDhF+MvhKAGi36WonUxV3EeQDztu3Jqe5ZDzwrkxL2ZdADnJOCi3tY8zlQvIF6ov77qA==:";
const CONTROLLER_SECRET: &str =
    "DHHC-1:03:l/KQ4OkeYQDWzmMSbhlDILpjnzQfCiuq2I9XcNP7qRwJN4osyA2MfNxVYjRaGYUZJ9iEh+4P/PxnrPl9z562aM79+jk=:";

/// A target that requires [`HOST`]'s secret, and has its own secret.
pub fn guarded() -> Target {
    Target::with(TcpOptions {
        hosts: vec![
            AllowedHost {
                nqn: HOST.to_string(),
                secret: Some(SECRET.parse().unwrap()),
                controller_secret: Some(CONTROLLER_SECRET.parse().unwrap()),
                group_min: DhGroupId::Null,
            },
            AllowedHost {
                nqn: "nqn.2026-01.io.warp:plain-host".to_string(),
                secret: None,
                controller_secret: None,
                group_min: DhGroupId::Null,
            },
        ],
        ..TcpOptions::new(loopback())
    })
}

pub fn with_secret(target: &Target, secret: &str) -> HostOptions {
    HostOptions { secret: Some(secret.parse().unwrap()), ..target.host() }
}

#[test]
fn hosts_authenticate_with_every_hash_and_group() {
    let target = guarded();
    for &hash in HashId::ALL {
        for &group in DhGroupId::ALL {
            let options = HostOptions {
                hashes: vec![hash],
                groups: vec![group],
                controller_secret: (group != DhGroupId::Null).then(|| CONTROLLER_SECRET.parse().unwrap()),
                ..with_secret(&target, SECRET)
            };
            let mut controller =
                RemoteController::connect(&options).unwrap_or_else(|error| panic!("{hash}, {group}: {error}"));
            controller.keep_alive().unwrap();
        }
    }
    // The host authenticates with every offer, on admin and I/O queues and for discovery.
    let options = with_secret(&target, SECRET);
    let controller = RemoteController::connect(&options).unwrap();
    let mut queue = controller.io_queue(1, 16).unwrap();
    write(&mut queue, 0, &[8; 4096]);
    assert_eq!(read(&mut queue, 0, 4096), [8; 4096]);
    RemoteController::connect(&options.discovery()).unwrap().discover().unwrap();
    // A host without a secret need not authenticate.
    let plain = HostOptions { host_nqn: "nqn.2026-01.io.warp:plain-host".to_string(), ..target.host() };
    RemoteController::connect(&plain).unwrap();
}

#[test]
fn hosts_that_cannot_prove_who_they_are_stay_out() {
    let target = guarded();
    let error = |options: &HostOptions| RemoteController::connect(options).map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        error(&with_secret(&target, OTHER_SECRET)),
        "authentication failed, because the controller refused it (Authentication failed)"
    );
    assert_eq!(
        error(&target.host()),
        "authentication failed, because the controller requires it but no secret was given"
    );
    let unknown = HostOptions { host_nqn: "nqn.2026-01.io.warp:unknown".to_string(), ..with_secret(&target, SECRET) };
    assert_eq!(error(&unknown), "Connect failed with Connect Invalid Host");
    let deceived =
        HostOptions { controller_secret: Some(OTHER_SECRET.parse().unwrap()), ..with_secret(&target, SECRET) };
    assert_eq!(error(&deceived), "authentication failed, because the controller did not prove its identity");
    // An I/O queue must authenticate too, with the correct secret.
    let controller = RemoteController::connect(&with_secret(&target, SECRET)).unwrap();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 32);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(completion.dw0.get() >> 16, 2, "authentication is required (ATR)");
    let mut write = block_command(IoOpcode::Write, 1, 0, 1);
    write.flags.set_psdt(PSDT_SGL_MPTR_CONTIGUOUS);
    let completion = raw.command(write, &[1; 4096]);
    assert_eq!(completion.status.status(), Status::AUTHENTICATION_REQUIRED);
    drop((raw, controller));
    eventually("the association's end", || target.controllers() == 0);
}

/// An authentication command that sends or receives a message.
pub fn authentication(kind: FabricsCommandType, bytes: usize) -> AuthenticationCommand {
    AuthenticationCommand {
        opcode: OPCODE,
        fctype: kind.code(),
        spsp0: 1,
        spsp1: 1,
        secp: SECURITY_PROTOCOL,
        length: (bytes as u32).into(),
        ..AuthenticationCommand::default()
    }
}

#[test]
fn nothing_but_authentication_is_taken_before_it() {
    let target = guarded();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
    assert_eq!(raw.command(as_entry(&command), data.as_bytes()).dw0.get() >> 16, 2);
    let get = property(FabricsCommandType::PropertyGet, 1, 0);
    for opcode in [AdminOpcode::Identify, AdminOpcode::KeepAlive, AdminOpcode::AsynchronousEventRequest] {
        let entry = SubmissionEntry { opcode: opcode.code(), ..SubmissionEntry::default() };
        assert_eq!(raw.command(entry, &[]).status.status(), Status::AUTHENTICATION_REQUIRED, "{opcode}");
    }
    assert_eq!(raw.command(get, &[]).status.status(), Status::AUTHENTICATION_REQUIRED);
    let mut other = authentication(FabricsCommandType::AuthenticationSend, 8);
    other.secp = 0xea;
    assert_eq!(raw.command(as_entry(&other), &[0; 8]).status.status(), Status::INVALID_FIELD);
    let mut other = authentication(FabricsCommandType::AuthenticationSend, 8);
    other.spsp0 = 0;
    assert_eq!(raw.command(as_entry(&other), &[0; 8]).status.status(), Status::INVALID_FIELD);
    for length in [0, 4097, u32::MAX as usize] {
        let other = authentication(FabricsCommandType::AuthenticationSend, length);
        assert_eq!(raw.command(as_entry(&other), &[0; 8]).status.status(), Status::INVALID_FIELD, "{length}");
    }
    // Without a secret, authentication commands fail.
    let open = Target::start();
    let mut raw = Raw::connected(&open, DigestFlags::new());
    let send = authentication(FabricsCommandType::AuthenticationSend, 8);
    assert_eq!(raw.command(as_entry(&send), &[0; 8]).status.status(), Status::INVALID_COMMAND_OPCODE);
}

/// An authentication message in transaction 5.
fn message(kind: u8, id: u8, rest: &[u8]) -> Vec<u8> {
    let header = MessageHeader { auth_type: kind, auth_id: id, t_id: 5.into(), ..MessageHeader::default() };
    [header.as_bytes(), rest].concat()
}

/// A protocol descriptor: DH-HMAC-CHAP, hashes and groups.
pub fn descriptor(protocol: u8, hashes: &[u8], groups: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 66];
    (bytes[1], bytes[2], bytes[4], bytes[5]) = (1, protocol, hashes.len() as u8, groups.len() as u8);
    bytes[6..][..hashes.len()].copy_from_slice(hashes);
    bytes[36..][..groups.len()].copy_from_slice(groups);
    bytes
}

pub fn negotiate(rest: &[u8]) -> Vec<u8> {
    message(AUTH_TYPE_COMMON, MessageId::Negotiate.code(), rest)
}

/// A host that must authenticate.
pub fn unproved(target: &Target) -> Raw {
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(completion.status.status(), Status::SUCCESS);
    raw
}

#[track_caller]
fn send_message(raw: &mut Raw, message: &[u8]) {
    let send = authentication(FabricsCommandType::AuthenticationSend, message.len());
    let completion = raw.command(as_entry(&send), message);
    assert_eq!(completion.status.status(), Status::SUCCESS);
}

fn fetch_message(raw: &mut Raw) -> Vec<u8> {
    let mut receive = as_entry(&authentication(FabricsCommandType::AuthenticationReceive, 4096));
    receive.set_sgl1(sgl(4096, false));
    raw.send(&raw.capsule(receive, &[], false));
    let data = raw.pdu().unwrap();
    assert_eq!(data[0], PduType::C2hData.code());
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);
    data[24..].to_vec()
}

#[test]
fn wrong_authentication_messages_are_answered_with_their_reason_and_end_the_connection() {
    use FailureReason::*;
    let target = guarded();
    let mut with_tls = descriptor(1, &[1], &[0]);
    with_tls[0] = 1;
    let mut too_many = descriptor(1, &[1], &[0]);
    too_many[4] = 31;
    let all: &[(&str, Vec<u8>, FailureReason)] = &table! {
        "too short": vec![0; 4] => IncorrectPayload,
        "no descriptor": negotiate(&[0, 1]) => IncorrectPayload,
        "more hashes than there is room": negotiate(&too_many) => IncorrectPayload,
        "another protocol": negotiate(&descriptor(2, &[1], &[0])) => ProtocolNotUsable,
        "no descriptors at all": negotiate(&[0, 0]) => ProtocolNotUsable,
        "an unknown hash": negotiate(&descriptor(1, &[9], &[0])) => HashNotUsable,
        "an unknown group": negotiate(&descriptor(1, &[1], &[9])) => DhGroupNotUsable,
        "TLS": negotiate(&with_tls) => SecureChannelConcatenationMismatch,
        "a reply first": message(AUTH_TYPE_DHCHAP, MessageId::Reply.code(), &[0; 10]) => IncorrectPayload,
        "an unknown message": message(0, 0x77, &[]) => IncorrectProtocolMessage,
        "a wrong type": message(7, MessageId::Negotiate.code(), &[0; 66]) => IncorrectProtocolMessage,
    };
    for (what, message, reason) in all {
        let mut raw = unproved(&target);
        send_message(&mut raw, message);
        let failure = fetch_message(&mut raw);
        assert_eq!(failure[1], MessageId::Failure1.code(), "{what}");
        assert_eq!((failure[6], failure[7]), (1, reason.code()), "{what}");
        assert_eq!(raw.pdu(), None, "{what}: the connection ends");
    }
    eventually("the controllers' end", || target.controllers() == 0);
}

#[test]
fn authentication_out_of_order_and_wrong_answers_end_the_connection() {
    let target = guarded();
    // A receive before any message is available.
    let mut raw = unproved(&target);
    let reason = fetch_message(&mut raw)[7];
    assert_eq!(reason, FailureReason::IncorrectProtocolMessage.code());
    assert_eq!(raw.pdu(), None);
    // A random response to a challenge, and a response in another transaction.
    for (transaction, reason) in [(5, FailureReason::AuthenticationFailed), (6, FailureReason::IncorrectPayload)] {
        let mut raw = unproved(&target);
        send_message(&mut raw, &negotiate(&descriptor(1, &[1], &[0])));
        let challenge = fetch_message(&mut raw);
        assert_eq!((challenge[1], challenge[6], challenge[8], challenge[9]), (1, 32, 1, 0));
        let mut reply = message(AUTH_TYPE_DHCHAP, MessageId::Reply.code(), &[0; 74]);
        (reply[4], reply[6]) = (transaction, 32);
        send_message(&mut raw, &reply);
        assert_eq!(fetch_message(&mut raw)[7], reason.code());
        assert_eq!(raw.pdu(), None);
    }
    eventually("the controllers' end", || target.controllers() == 0);
}
