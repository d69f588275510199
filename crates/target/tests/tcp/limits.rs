//! Limits of queues, connections, commands and data, and options that the server refuses.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use initiator::command::block_command;
use initiator::tcp::{HostOptions, RemoteController, TcpQueue, connect_command};
use nvme_spec::auth::DhGroupId;
use nvme_spec::tcp::{DigestFlags, FatalErrorStatus, H2cData, PduFlags, PduType, R2t};
use nvme_spec::{IoOpcode, Status};
use target::ServeError;
use target::tcp::{AllowedHost, Limits, TcpOptions, TcpServer};
use zerocopy::{FromBytes, IntoBytes};

use crate::authentication::SECRET;
use crate::{
    HOST, PATIENCE, Raw, Target, as_entry, eventually, header, initialize, loopback, random_bytes, read, sgl, write,
};

/// Behaves like Linux on a machine of 128 processors, with multipath.
#[test]
fn a_host_has_the_queues_that_it_is_granted_on_two_paths_and_more() {
    let target = Target::with_queues(128);
    let mut granted = Vec::new();
    let (mut controllers, mut connected) = (Vec::new(), Vec::new());
    for path in 0..3 {
        let mut controller = RemoteController::connect(&target.host()).unwrap();
        let queues = controller.set_queue_count(200).unwrap();
        for queue in 1..=queues {
            let queue = controller.io_queue(queue, 16);
            connected.push(queue.unwrap_or_else(|error| panic!("path {path}, of {queues} queues: {error}")));
        }
        let beyond = controller.io_queue(queues + 1, 16).map(|_| ()).unwrap_err();
        // At the host's connection limit, that limit is reported first.
        let is_right = path == 2 || beyond.to_string().contains("Invalid Parameters");
        assert!(is_right, "{beyond}");
        granted.push(queues);
        write(connected.last_mut().unwrap(), 0, &[path; 4096]);
        controllers.push(controller);
    }
    assert_eq!(granted[..2], [128, 128]);
    assert!((1..128).contains(&granted[2]), "{} are left for a third path", granted[2]);
}

/// Behaves like SPDK's programs.
#[test]
fn a_host_may_connect_all_queues_at_once() {
    let target = Target::with_queues(128);
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut begun: Vec<Raw> = (0..128).map(|_| Raw::open(target.address(), DigestFlags::new())).collect();
    for (queue, raw) in (1..).zip(&mut begun) {
        let (command, data) = connect_command(&target.host(), controller.id(), queue, 16);
        let completion = raw.command(as_entry(&command), data.as_bytes());
        assert_eq!(completion.status.status(), Status::SUCCESS, "queue {queue}");
    }
}

#[test]
fn the_number_of_queues_is_set_before_there_are_any() {
    let target = Target::start();
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    assert_eq!(controller.set_queue_count(2).unwrap(), 2);
    assert_eq!(controller.set_queue_count(3).unwrap(), 3, "again");
    let queue = controller.io_queue(3, 16).unwrap();
    let late = controller.set_queue_count(2).unwrap_err();
    assert!(late.to_string().contains("Command Sequence Error"), "{late}");
    drop(queue);
    let start = Instant::now();
    while controller.set_queue_count(2).is_err() {
        assert!(start.elapsed() < PATIENCE, "the queue does not end");
    }
}

#[test]
fn connections_are_limited_in_all_and_half_open_and_for_each_host() {
    let limits = Limits { connections: 6, half_open: 2, connections_per_host: 3, ..Limits::default() };
    let target = Target::limited(limits);
    let refused = || {
        let mut stream = TcpStream::connect(target.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // Closed immediately, without an answer.
        matches!(stream.read(&mut [0; 8]), Ok(0) | Err(_))
    };
    let mut half_open: Vec<Raw> = (0..3).map(|_| Raw::open(target.address(), DigestFlags::new())).collect();
    assert_eq!(half_open[0].pdu(), None, "the third takes the place of the first");
    drop(half_open);
    eventually("the half-open ones' end", || target.server.connections() == 0);

    // Each completed Connect counts before the next request.
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    let _queues: Vec<TcpQueue> = (1..=2).map(|id| controller.io_queue(id, 16).unwrap()).collect();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 3, 16);
    let completion = raw.command(as_entry(&command), data.as_bytes());
    assert_eq!(completion.status.status(), Status::CONNECT_CONTROLLER_BUSY, "a fourth connection of the host");
    drop(raw);
    eventually("its end", || target.server.connections() == 3);
    let other = HostOptions { host_nqn: "nqn.2026-01.io.warp:other-host".to_string(), ..target.host() };
    let others = RemoteController::connect(&other).unwrap();
    let _others_queues: Vec<TcpQueue> = (1..=2).map(|id| others.io_queue(id, 16).unwrap()).collect();
    assert!(refused(), "a seventh connection");
    controller.keep_alive().unwrap();
}

#[test]
fn a_host_that_does_not_connect_is_hung_up_on() {
    let limits = Limits { handshake: Duration::from_millis(50), ..Limits::default() };
    let target = Target::limited(limits);
    let start = Instant::now();
    let mut silent = Raw::plain(target.address());
    let mut initialized = Raw::open(target.address(), DigestFlags::new());
    let mut half_a_pdu = Raw::plain(target.address());
    half_a_pdu.send(&initialize(DigestFlags::new()).as_bytes()[..100]);
    assert_eq!(silent.pdu(), None);
    assert_eq!(initialized.pdu(), None);
    assert_eq!(half_a_pdu.pdu(), None);
    assert!(start.elapsed() >= limits.handshake);
    eventually("their end", || target.server.connections() == 0);
}

#[test]
fn more_commands_than_the_queue_has_entries_end_the_connection() {
    let target = Target::start();
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 4);
    assert_eq!(raw.command(as_entry(&command), data.as_bytes()).status.status(), Status::SUCCESS);
    // Writes whose data is not sent stay outstanding.
    let mut entry = block_command(IoOpcode::Write, 1, 0, 4);
    entry.set_sgl1(sgl(16384, false));
    for cid in 0..4u16 {
        entry.cid = cid.into();
        raw.send(&raw.capsule(entry, &[], false));
        let request = R2t::read_from_bytes(&raw.pdu().unwrap()).unwrap();
        assert_eq!(request.cccid.get(), cid);
    }
    let fifth = raw.capsule(entry, &[], false);
    raw.send(&fifth);
    raw.expect_end(FatalErrorStatus::PduSequenceError, 0, &fifth, "a fifth command");
}

#[test]
fn data_is_asked_for_only_as_far_as_there_is_room_for_it() {
    let limits = Limits { bytes_in_flight: 256 << 10, ..Limits::default() };
    let target = Target::limited(limits);
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 64);
    assert_eq!(raw.command(as_entry(&command), data.as_bytes()).status.status(), Status::SUCCESS);
    // Five writes of 100 KiB, of which two fit into the limit. A read shows that no other data was
    // requested before its completion.
    const BYTES: usize = 100 << 10;
    let mut entry = block_command(IoOpcode::Write, 1, 0, (BYTES / 4096) as u32);
    entry.set_sgl1(sgl(BYTES, false));
    for cid in 0..5u16 {
        entry.cid = cid.into();
        entry.cdw10 = (u32::from(cid) * 32).into();
        raw.send(&raw.capsule(entry, &[], false));
    }
    let mut flush = block_command(IoOpcode::Flush, 1, 0, 1);
    flush.cid = 50.into();
    raw.send(&raw.capsule(flush, &[], false));
    let mut requests = Vec::new();
    let mut seen = loop {
        let pdu = raw.pdu().unwrap();
        match R2t::read_from_bytes(&pdu) {
            Ok(request) if request.ch.pdu_type == PduType::R2t.code() => requests.push(request),
            _ => break 1,
        }
    };
    // The granted requests may come before or after the flush, which does not wait for data.
    while requests.len() < 2 {
        requests.push(R2t::read_from_bytes(&raw.pdu().unwrap()).unwrap());
    }
    assert_eq!(requests.iter().map(|request| request.cccid.get()).collect::<Vec<_>>(), [0, 1]);
    // Each finished write makes room for the next one.
    let content = random_bytes(3, BYTES);
    let mut next = 2;
    while let Some(request) = requests.pop() {
        let data = H2cData {
            ch: header(PduType::H2cData, PduFlags::new().with_last_pdu(true), 24, 24 + BYTES),
            cccid: request.cccid,
            ttag: request.ttag,
            datal: (BYTES as u32).into(),
            ..H2cData::default()
        };
        raw.send(data.as_bytes());
        raw.send(&content);
        let mut completed = false;
        while !completed || (next < 5 && requests.len() < 2) {
            let pdu = raw.pdu().unwrap();
            if pdu[0] == PduType::R2t.code() {
                let request = R2t::read_from_bytes(&pdu).unwrap();
                assert_eq!(request.cccid.get(), next);
                requests.push(request);
                next += 1;
            } else {
                completed = true;
                seen += 1;
            }
        }
    }
    assert_eq!((seen, next), (6, 5));
    let mut checker = controller.io_queue(2, 8).unwrap();
    for cid in 0..5 {
        assert!(read(&mut checker, cid * 32, BYTES) == content);
    }
    // A write larger than the limit is served alone.
    let data = random_bytes(4, 512 << 10);
    write(&mut checker, 1000, &data);
    assert!(read(&mut checker, 1000, data.len()) == data);
}

/// More commands in one message than a batch takes. None can continue before the data behind them
/// arrives.
#[test]
fn data_behind_many_waiting_commands_is_found() {
    let limits = Limits { bytes_in_flight: 16384, ..Limits::default() };
    let target = Target::limited(limits);
    let controller = RemoteController::connect(&target.host()).unwrap();
    let mut raw = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 1, 256);
    assert_eq!(raw.command(as_entry(&command), data.as_bytes()).status.status(), Status::SUCCESS);
    let mut entry = block_command(IoOpcode::Write, 1, 0, 4);
    entry.set_sgl1(sgl(16384, false));
    let data_for = |request: &R2t| {
        let data = H2cData {
            ch: header(PduType::H2cData, PduFlags::new().with_last_pdu(true), 24, 24 + 16384),
            cccid: request.cccid,
            ttag: request.ttag,
            datal: 16384.into(),
            ..H2cData::default()
        };
        [data.as_bytes(), &[4; 16384]].concat()
    };
    raw.send(&raw.capsule(entry, &[], false));
    let request = R2t::read_from_bytes(&raw.pdu().unwrap()).unwrap();
    let mut message = Vec::new();
    for cid in 1..200u16 {
        entry.cid = cid.into();
        message.extend(raw.capsule(entry, &[], false));
    }
    message.extend(data_for(&request));
    raw.send(&message);
    let mut completed = 0;
    while completed < 200 {
        let pdu = raw.pdu().unwrap();
        if pdu[0] == PduType::R2t.code() {
            raw.send(&data_for(&R2t::read_from_bytes(&pdu).unwrap()));
        } else {
            completed += 1;
        }
    }
}

#[test]
fn what_cannot_be_served_is_one_sentence() {
    let target = Target::start();
    let start = |options| {
        let server = TcpServer::start(options, Arc::clone(&target.shared), target.clock);
        server.map(|_| ()).unwrap_err().to_string()
    };
    let busy = TcpListener::bind(loopback()).unwrap();
    let address = busy.local_addr().unwrap();
    assert_eq!(
        start(TcpOptions::new(address)),
        format!("the port of {address} is in use. Stop the other server or choose another port (0 for any free one)")
    );
    // RFC 5737: a documentation address, which no machine has.
    let elsewhere: SocketAddr = "192.0.2.1:0".parse().unwrap();
    let with_host = |secret: Option<&str>| TcpOptions {
        hosts: vec![AllowedHost {
            nqn: HOST.to_string(),
            secret: secret.map(|secret| secret.parse().unwrap()),
            controller_secret: None,
            group_min: DhGroupId::Null,
        }],
        ..TcpOptions::new(elsewhere)
    };
    assert!(start(TcpOptions::new(elsewhere)).contains("each allowed host must be listed"));
    assert!(start(with_host(None)).contains(&format!("but host {HOST} has no DH-HMAC-CHAP secret")));
    assert!(start(with_host(Some(SECRET))).contains("no network interface of this machine has the address"));
    let small = TcpOptions { h2c_data_bytes_max: 4095, ..TcpOptions::new(loopback()) };
    assert!(matches!(TcpServer::start(small, Arc::clone(&target.shared), target.clock), Err(ServeError::TcpOption(_))));
}
