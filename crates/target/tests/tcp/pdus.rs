//! PDUs, digests and data pointers with one error each, and the controller's reaction.

use std::time::Duration;

use base::table;
use initiator::command::block_command;
use initiator::tcp::{RemoteController, connect_command};
use nvme_spec::command::PSDT_SGL_MPTR_CONTIGUOUS;
use nvme_spec::fabrics::CNTLID_DYNAMIC;
use nvme_spec::tcp::{
    CapsuleCmd, CommonHeader, DigestFlags, FatalErrorStatus, H2cData, IcReq, PduFlags, PduType, R2t, TermReq,
};
use nvme_spec::{AdminOpcode, Cns, IoOpcode, SglDescriptor, Status, SubmissionEntry};
use target::tcp::{Limits, TcpOptions};
use zerocopy::{FromBytes, IntoBytes};

use crate::{
    IO_IN_CAPSULE_BYTES, Raw, Target, as_entry, eventually, header, initialize, loopback, random_bytes, read, sgl,
    write,
};

/// Description of an error in a PDU, its injection, and the controller's reason.
type PduCase<T> = (&'static str, fn(&mut T), (FatalErrorStatus, u32));

const WRONG_BEGINNINGS: &[PduCase<IcReq>] = &table! {
    "a version that does not exist": |pdu| pdu.pfv = 1.into() => (FatalErrorStatus::UnsupportedParameter, 8),
    "an alignment that does not exist": |pdu| pdu.hpda = 32 => (FatalErrorStatus::InvalidPduHeaderField, 10),
    "too long": |pdu| pdu.ch.plen = 132.into() => (FatalErrorStatus::InvalidPduHeaderField, 4),
    "too short": |pdu| pdu.ch.plen = 64.into() => (FatalErrorStatus::InvalidPduHeaderField, 4),
    "another header length": |pdu| pdu.ch.hlen = 24 => (FatalErrorStatus::InvalidPduHeaderField, 2),
    "a response": |pdu| pdu.ch.pdu_type = 1 => (FatalErrorStatus::InvalidPduHeaderField, 0),
    "a command first": |pdu| pdu.ch.pdu_type = 4 => (FatalErrorStatus::PduSequenceError, 0),
};

const WRONG_CAPSULES: &[PduCase<CommonHeader>] = &table! {
    "an unknown type": |ch| ch.pdu_type = 0x55 => (FatalErrorStatus::InvalidPduHeaderField, 0),
    "a type of controllers": |ch| ch.pdu_type = 7 => (FatalErrorStatus::InvalidPduHeaderField, 0),
    "a header digest flag": |ch| ch.flags.set_hdgst(true) => (FatalErrorStatus::InvalidPduHeaderField, 1),
    "a header length": |ch| ch.hlen = 73 => (FatalErrorStatus::InvalidPduHeaderField, 2),
    "no data offset": |ch| ch.plen = 80.into() => (FatalErrorStatus::InvalidPduHeaderField, 3),
    "a data offset that is no multiple of 4": |ch| (ch.pdo, ch.plen) = (74, 100.into())
        => (FatalErrorStatus::InvalidPduHeaderField, 3),
    "a length below the header's": |ch| ch.plen = 8.into() => (FatalErrorStatus::InvalidPduHeaderField, 4),
    "more data than a capsule may have": |ch| (ch.pdo, ch.plen) = (72, (72 + 8196).into())
        => (FatalErrorStatus::InvalidPduHeaderField, 4),
    "an endless capsule": |ch| (ch.pdo, ch.plen) = (72, u32::MAX.into())
        => (FatalErrorStatus::InvalidPduHeaderField, 4),
};

const WRONG_DATA: &[PduCase<H2cData>] = &table! {
    "another command": |pdu| pdu.cccid = 9.into() => (FatalErrorStatus::InvalidPduHeaderField, 8),
    "a tag that was not given": |pdu| pdu.ttag = 7.into() => (FatalErrorStatus::InvalidPduHeaderField, 10),
    "lengths that differ": |pdu| pdu.datal = 8.into() => (FatalErrorStatus::InvalidPduHeaderField, 16),
    "an offset that is not next": |pdu| pdu.datao = 4096.into() => (FatalErrorStatus::DataTransferOutOfRange, 0),
    "not the last, but said to be": |pdu| pdu.ch.flags.set_last_pdu(true)
        => (FatalErrorStatus::InvalidPduHeaderField, 1),
    "more than MAXH2CDATA": |pdu| pdu.ch.plen = (24 + 4100).into() => (FatalErrorStatus::LimitExceeded, 0),
    "no data": |pdu| pdu.ch.plen = 24.into() => (FatalErrorStatus::InvalidPduHeaderField, 4),
    "a data digest flag": |pdu| pdu.ch.flags.set_ddgst(true) => (FatalErrorStatus::InvalidPduHeaderField, 1),
};

/// A target that accepts 4 KiB of data per PDU.
fn takes_small_pdus() -> Target {
    Target::with(TcpOptions { h2c_data_bytes_max: 4096, ..TcpOptions::new(loopback()) })
}

#[track_caller]
fn nothing_is_left(target: &Target) {
    eventually("the connections' end", || target.server.connections() == 0);
    assert_eq!(target.controllers(), 0);
}

#[test]
fn every_malformed_beginning_ends_the_connection_with_its_reason() {
    let target = takes_small_pdus();
    for (what, spoil, (status, information)) in WRONG_BEGINNINGS {
        let mut pdu = initialize(DigestFlags::new());
        spoil(&mut pdu);
        let mut raw = Raw::plain(target.address());
        raw.send(pdu.as_bytes());
        raw.expect_end(*status, *information, pdu.as_bytes(), what);
    }
    nothing_is_left(&target);
}

#[test]
fn every_malformed_capsule_ends_the_connection_with_its_reason() {
    let target = takes_small_pdus();
    for (what, spoil, (status, information)) in WRONG_CAPSULES {
        let mut capsule =
            CapsuleCmd { ch: header(PduType::CapsuleCmd, PduFlags::new(), 0, 72), ccsqe: SubmissionEntry::default() };
        spoil(&mut capsule.ch);
        let mut raw = Raw::open(target.address(), DigestFlags::new());
        raw.send(capsule.as_bytes());
        raw.expect_end(*status, *information, capsule.as_bytes(), what);
    }
    let again = initialize(DigestFlags::new());
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    raw.send(again.as_bytes());
    raw.expect_end(FatalErrorStatus::PduSequenceError, 0, again.as_bytes(), "a second ICReq");
    nothing_is_left(&target);
}

/// I/O queues accept the announced amount of data in a capsule, in pieces of any length, but not
/// four bytes more.
#[test]
fn capsules_of_io_queues_carry_what_they_may() {
    let target = Target::start();
    let controller = RemoteController::connect(&target.host()).unwrap();
    let connect = |id| {
        let mut raw = Raw::open(target.address(), DigestFlags::new());
        let (command, data) = connect_command(&target.host(), controller.id(), id, 4);
        let completion = raw.command(as_entry(&command), data.as_bytes());
        assert_eq!(completion.status.status(), Status::SUCCESS);
        raw
    };
    let mut raw = connect(1);
    let content = random_bytes(4, IO_IN_CAPSULE_BYTES);
    let entry = block_command(IoOpcode::Write, 1, 0, (IO_IN_CAPSULE_BYTES / 4096) as u32);
    let pdu = raw.capsule(entry, &content, false);
    for piece in [0, 1, 7, 8, 71, 72, 73, 5000, 70000, pdu.len()].windows(2) {
        raw.send(&pdu[piece[0]..piece[1]]);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);
    assert_eq!(read(&mut controller.io_queue(2, 4).unwrap(), 0, content.len()), content);
    // Extra data is ignored, and missing data is an error.
    let more = raw.command(block_command(IoOpcode::Write, 1, 50, 1), &content);
    assert_eq!(more.status.status(), Status::SUCCESS);
    let less = raw.command(block_command(IoOpcode::Write, 1, 50, 8), &content[..16384]);
    assert_eq!(less.status.status(), Status::DATA_SGL_LENGTH_INVALID);

    let mut raw = connect(3);
    let too_much = raw.capsule(entry, &[0; IO_IN_CAPSULE_BYTES + 4], false);
    raw.send(&too_much[..72]);
    raw.expect_end(FatalErrorStatus::InvalidPduHeaderField, 4, &too_much, "too much in a capsule");
    // The admin queue has another limit.
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(completion.status.status(), Status::SUCCESS);
    let too_much = raw.capsule(SubmissionEntry::default(), &[0; 8196], false);
    raw.send(&too_much[..72]);
    raw.expect_end(FatalErrorStatus::InvalidPduHeaderField, 4, &too_much, "too much for an admin queue");
}

/// Requested data follows full capsules that exceed the memory limit. Neither blocks the other.
#[test]
fn capsules_do_not_wait_for_the_data_behind_them() {
    let limits = Limits { bytes_in_flight: 256 << 10, ..Limits::default() };
    let target = Target::limited(limits);
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 64);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(completion.status.status(), Status::SUCCESS);
    // One write holds the whole limit.
    const BYTES: usize = 256 << 10;
    let mut entry = block_command(IoOpcode::Write, 1, 0, (BYTES / 4096) as u32);
    entry.cid = 40.into();
    entry.set_sgl1(sgl(BYTES, false));
    raw.send(&raw.capsule(entry, &[], false));
    let request = R2t::read_from_bytes(&raw.pdu().unwrap()).unwrap();
    let mut message = Vec::new();
    let content = random_bytes(5, IO_IN_CAPSULE_BYTES);
    for cid in 0..20u16 {
        let blocks = (IO_IN_CAPSULE_BYTES / 4096) as u32;
        let mut entry = block_command(IoOpcode::Write, 1, (u64::from(cid) + 2) * u64::from(blocks), blocks);
        entry.cid = cid.into();
        message.extend(raw.capsule(entry, &content, false));
    }
    let data = H2cData {
        ch: header(PduType::H2cData, PduFlags::new().with_last_pdu(true), 24, 24 + BYTES),
        cccid: request.cccid,
        ttag: request.ttag,
        datal: (BYTES as u32).into(),
        ..H2cData::default()
    };
    message.extend_from_slice(data.as_bytes());
    message.extend(random_bytes(6, BYTES));
    raw.send(&message);
    let mut done: Vec<u16> = (0..21)
        .map(|_| {
            let completion = raw.completion();
            assert_eq!(completion.status.status(), Status::SUCCESS);
            completion.cid.get()
        })
        .collect();
    done.sort_unstable();
    assert_eq!(done, (0..20).chain([40]).collect::<Vec<u16>>());
}

#[test]
fn every_malformed_data_pdu_ends_the_connection_with_its_reason() {
    let target = takes_small_pdus();
    for (what, spoil, (status, information)) in WRONG_DATA {
        let (_controller, mut raw, request) = with_request(&target, 16384);
        let mut pdu = H2cData {
            ch: header(PduType::H2cData, PduFlags::new(), 24, 24 + 4096),
            cccid: request.cccid,
            ttag: request.ttag,
            datal: 4096.into(),
            ..H2cData::default()
        };
        spoil(&mut pdu);
        raw.send(pdu.as_bytes());
        raw.expect_end(*status, *information, pdu.as_bytes(), what);
    }
    let what = "data that nobody asked for";
    let mut raw = Raw::connected(&target, DigestFlags::new());
    let unasked = H2cData {
        ch: header(PduType::H2cData, PduFlags::new().with_last_pdu(true), 24, 28),
        datal: 4.into(),
        ..H2cData::default()
    };
    raw.send(unasked.as_bytes());
    raw.expect_end(FatalErrorStatus::InvalidPduHeaderField, 10, unasked.as_bytes(), what);
    nothing_is_left(&target);
}

/// A host with a data request for a write, and its controller.
fn with_request(target: &Target, bytes: usize) -> (RemoteController, Raw, R2t) {
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 32);
    assert_eq!(raw.command(as_entry(&command), data.as_bytes()).status.status(), Status::SUCCESS);
    let mut entry = block_command(IoOpcode::Write, 1, 0, (bytes / 4096) as u32);
    entry.cid = 40.into();
    entry.set_sgl1(sgl(bytes, false));
    raw.send(&raw.capsule(entry, &[], false));
    let request = R2t::read_from_bytes(&raw.pdu().unwrap()).unwrap();
    assert_eq!((request.cccid.get(), request.r2to.get(), request.r2tl.get()), (40, 0, bytes as u32));
    (controller, raw, request)
}

#[test]
fn a_host_may_end_the_connection_itself() {
    let target = Target::start();
    let mut raw = Raw::connected(&target, DigestFlags::new());
    let request =
        TermReq { ch: header(PduType::H2cTermReq, PduFlags::new(), 0, 24 + 72), fes: 1.into(), ..TermReq::default() };
    raw.send(request.as_bytes());
    raw.send(&[0; 72]);
    assert_eq!(raw.pdu(), None);
    eventually("the controller's end", || target.controllers() == 0);
}

#[test]
fn a_wrong_header_digest_ends_the_connection() {
    let target = Target::start();
    let digests = DigestFlags::new().with_hdgst_enable(true);
    let mut raw = Raw::connected(&target, digests);
    let keep_alive = SubmissionEntry { opcode: AdminOpcode::KeepAlive.code(), ..SubmissionEntry::default() };
    let mut pdu = raw.capsule(keep_alive, &[], false);
    raw.send(&pdu);
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);
    pdu[40] ^= 1;
    raw.send(&pdu);
    let digest = u32::from_le_bytes(pdu[72..76].try_into().unwrap());
    raw.expect_end(FatalErrorStatus::HeaderDigestError, digest, &pdu, "a header digest");
}

#[test]
fn a_wrong_data_digest_fails_the_command_only() {
    let target = Target::start();
    let digests = DigestFlags::new().with_ddgst_enable(true);
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let mut checker = controller.io_queue(2, 8).unwrap();
    write(&mut checker, 0, &[1; 16384]);
    let mut raw = Raw::open(target.address(), digests);
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 32);
    raw.send(&raw.capsule(as_entry(&command), data.as_bytes(), true));
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);

    // In the capsule.
    let mut pdu = raw.capsule(block_command(IoOpcode::Write, 1, 0, 1), &[2; 4096], true);
    pdu[1000] ^= 0x80;
    raw.send(&pdu);
    let completion = raw.completion();
    assert_eq!(completion.status.status(), Status::TRANSIENT_TRANSPORT_ERROR);
    assert!(!completion.status.dnr(), "the same command may be tried again");
    // In the first of two data PDUs.
    let mut entry = block_command(IoOpcode::Write, 1, 0, 4);
    entry.set_sgl1(sgl(16384, false));
    raw.send(&raw.capsule(entry, &[], true));
    let request = R2t::read_from_bytes(&raw.pdu().unwrap()).unwrap();
    for (offset, wrong) in [(0u32, 1), (8192, 0)] {
        let last = offset > 0;
        let data = H2cData {
            ch: header(PduType::H2cData, PduFlags::new().with_ddgst(true).with_last_pdu(last), 24, 24 + 8192 + 4),
            cccid: request.cccid,
            ttag: request.ttag,
            datao: offset.into(),
            datal: 8192.into(),
            ..H2cData::default()
        };
        raw.send(data.as_bytes());
        raw.send(&[2; 8192]);
        raw.send(&(crc32c::crc32c(&[2; 8192]) ^ wrong).to_le_bytes());
    }
    assert_eq!(raw.completion().status.status(), Status::TRANSIENT_TRANSPORT_ERROR);
    // In a capsule that arrives in pieces.
    let mut pdu = raw.capsule(block_command(IoOpcode::Write, 1, 0, 4), &[2; 16384], true);
    *pdu.last_mut().unwrap() ^= 1;
    for piece in pdu.chunks(6000) {
        raw.send(piece);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(raw.completion().status.status(), Status::TRANSIENT_TRANSPORT_ERROR);
    assert_eq!(read(&mut checker, 0, 16384), [1; 16384], "nothing was written");
    // A correct digest is accepted.
    raw.send(&raw.capsule(block_command(IoOpcode::Write, 1, 0, 1), &[2; 4096], true));
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);
    assert_eq!(read(&mut checker, 0, 4096), [2; 4096]);
    controller.keep_alive().unwrap();
}

#[test]
fn wrong_data_pointers_have_their_statuses() {
    let target = Target::start();
    let mut raw = Raw::connected(&target, DigestFlags::new());
    let identify = |descriptor: SglDescriptor| {
        let mut entry = SubmissionEntry {
            opcode: AdminOpcode::Identify.code(),
            cdw10: u32::from(Cns::Controller.code()).into(),
            ..SubmissionEntry::default()
        };
        entry.flags.set_psdt(PSDT_SGL_MPTR_CONTIGUOUS);
        entry.set_sgl1(descriptor);
        entry
    };
    let other = |id: u8| {
        let mut descriptor = sgl(4096, false);
        descriptor.id = id.into();
        identify(descriptor)
    };
    let mut prps = identify(sgl(4096, false));
    prps.flags.set_psdt(0);
    // Host Behavior Support needs 512 bytes, but the capsule has none.
    let mut empty = identify(sgl(512, true));
    (empty.opcode, empty.cdw10) = (AdminOpcode::SetFeatures.code(), 0x16.into());
    let all: &[(&str, SubmissionEntry, Status)] = &table! {
        "PRPs": prps => Status::INVALID_FIELD,
        "less than the command moves": identify(sgl(4092, false)) => Status::DATA_SGL_LENGTH_INVALID,
        "a data block with an address": other(0x00) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "a segment": other(0x20) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "data for the host in the capsule": identify(sgl(4096, true)) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "data that the capsule does not have": empty => Status::SGL_OFFSET_INVALID,
    };
    let send = |raw: &Raw, entry: SubmissionEntry| {
        let capsule = CapsuleCmd { ch: header(PduType::CapsuleCmd, PduFlags::new(), 0, 72), ccsqe: entry };
        raw.send(capsule.as_bytes());
    };
    for (what, entry, status) in all {
        send(&raw, *entry);
        assert_eq!(raw.completion().status.status(), *status, "{what}");
    }
    // An SGL longer than the transfer is allowed (SGLS bit 18), in either direction.
    send(&raw, identify(sgl(8192, false)));
    let data = raw.pdu().unwrap();
    assert_eq!((data[0], data.len()), (PduType::C2hData.code(), 24 + 4096));
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);
    let mut set =
        SubmissionEntry { opcode: AdminOpcode::SetFeatures.code(), cdw10: 0x16.into(), ..SubmissionEntry::default() };
    set.cid = 9.into();
    raw.send(&raw.capsule(set, &[0; 1024], false));
    assert_eq!(raw.completion().status.status(), Status::SUCCESS);
}
