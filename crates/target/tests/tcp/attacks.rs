//! Attacks by peers without a secret or with bad behaviour. Each one once worked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use initiator::tcp::{HostOptions, RemoteController, connect_command};
use nvme_spec::Status;
use nvme_spec::auth::DhGroupId;
use nvme_spec::fabrics::{CNTLID_DYNAMIC, FabricsCommandType};
use nvme_spec::tcp::DigestFlags;
use target::lock;
use target::tcp::{AllowedHost, Limits, TcpOptions, TcpServer};
use zerocopy::IntoBytes;

use crate::authentication::{SECRET, authentication, descriptor, guarded, negotiate, unproved, with_secret};
use crate::{HOST, Raw, Target, as_entry, eventually, loopback, write};

/// Requests a challenge of the largest group.
fn ask_for_large_challenge(raw: &mut Raw) {
    let message = negotiate(&descriptor(1, &[1], &[DhGroupId::Ffdhe8192.code()]));
    let mut send = as_entry(&authentication(FabricsCommandType::AuthenticationSend, message.len()));
    send.cid = 77.into();
    raw.send(&raw.capsule(send, &message, false));
}

/// A host without a secret, admitted by [`guarded`].
fn plain(target: &Target) -> HostOptions {
    HostOptions { host_nqn: "nqn.2026-01.io.warp:plain-host".to_string(), ..target.host() }
}

/// Unauthenticated connections for an I/O queue of a host.
fn strangers(target: &Target, controller: &RemoteController, count: u16) -> Vec<Raw> {
    let stranger = |_| {
        let mut raw = Raw::open(target.address(), DigestFlags::new());
        let (command, data) = connect_command(&target.host(), controller.id(), 2, 32);
        let completion = raw.command(as_entry(&command), data.as_bytes());
        assert_eq!(completion.status.status(), Status::SUCCESS);
        raw
    };
    (0..count).map(stranger).collect()
}

#[test]
fn challenges_cost_other_hosts_no_time_and_strangers_get_few() {
    let target = guarded();
    let honest = RemoteController::connect(&plain(&target)).unwrap();
    let mut queue = honest.io_queue(1, 16).unwrap();
    let exponentiation = {
        let start = Instant::now();
        dhchap::arithmetic::KeyPair::new(DhGroupId::Ffdhe8192).unwrap();
        start.elapsed()
    };
    let victim = RemoteController::connect(&with_secret(&target, SECRET)).unwrap();
    let mut strangers = strangers(&target, &victim, 24);
    strangers.iter_mut().for_each(ask_for_large_challenge);
    let start = Instant::now();
    let mut longest: Vec<Duration> = Vec::new();
    while start.elapsed() < Duration::from_millis(1500).max(3 * exponentiation) {
        let begun = Instant::now();
        write(&mut queue, 0, &[8; 4096]);
        longest.push(begun.elapsed());
    }
    longest.sort_unstable();
    let late = longest[longest.len() * 99 / 100];
    assert!(
        late < exponentiation / 3,
        "p99 of a write is {late:?} while strangers ask for exponentiations of {exponentiation:?}"
    );
    let answered = |raw: &Raw| {
        raw.stream.set_nonblocking(true).unwrap();
        raw.stream.peek(&mut [0; 8]).is_ok()
    };
    let challenges = strangers.iter().filter(|raw| answered(raw)).count();
    let allowed = 8 + 2 * (start.elapsed().as_secs_f64().ceil() as usize) + 1;
    assert!(challenges <= allowed, "{challenges} challenges, {allowed} are allowed");
}

#[test]
fn whoever_only_opens_connections_keeps_nobody_out() {
    let target = Target::start();
    let silent: Vec<Raw> = (0..2 * Limits::default().half_open).map(|_| Raw::plain(target.address())).collect();
    let mut controller = RemoteController::connect(&target.host()).unwrap();
    controller.keep_alive().unwrap();
    drop(silent);
}

#[test]
fn a_queue_belongs_to_the_host_that_proves_who_it_is() {
    let target = guarded();
    let controller = RemoteController::connect(&with_secret(&target, SECRET)).unwrap();
    let mut strangers = strangers(&target, &controller, 3);
    let mut queue = controller.io_queue(2, 16).unwrap();
    write(&mut queue, 0, &[3; 4096]);
    for stranger in &mut strangers {
        assert_eq!(stranger.pdu(), None, "hung up on");
    }
    // The queue is in use from now on.
    let mut late = Raw::open(target.address(), DigestFlags::new());
    let (command, data) = connect_command(&target.host(), controller.id(), 2, 32);
    let completion = late.command(as_entry(&command), data.as_bytes());
    assert_eq!(completion.status.status(), Status::COMMAND_SEQUENCE_ERROR);
    write(&mut queue, 0, &[4; 4096]);
}

#[test]
fn controllers_are_for_hosts_that_prove_who_they_are() {
    let target = guarded();
    let mut strangers: Vec<Raw> = (0..4).map(|_| unproved(&target)).collect();
    assert_eq!(target.controllers(), 4, "all that there are");
    let mut first = RemoteController::connect(&with_secret(&target, SECRET)).unwrap();
    assert_eq!(strangers[0].pdu(), None, "the oldest is hung up on");
    let mut second = RemoteController::connect(&plain(&target)).unwrap();
    first.keep_alive().unwrap();
    second.keep_alive().unwrap();
}

#[test]
fn a_host_that_comes_back_at_once_has_its_controller() {
    let target = Target::start();
    for round in 0..20 {
        let controller = RemoteController::connect(&target.host()).unwrap();
        assert_eq!(controller.id(), 1, "round {round}");
        // The lock hides the disconnection until the next request.
        let held = lock(&target.shared);
        drop(controller);
        let mut next = Raw::open(target.address(), DigestFlags::new());
        let (command, data) = connect_command(&target.host(), CNTLID_DYNAMIC, 0, 32);
        next.send(&next.capsule(as_entry(&command), data.as_bytes(), false));
        std::thread::sleep(Duration::from_millis(5));
        drop(held);
        let completion = next.completion();
        assert_eq!((completion.status.status(), completion.dw0.get() & 0xffff), (Status::SUCCESS, 1));
        drop(next);
        eventually("the controller's end", || target.controllers() == 0);
    }
}

/// SPDK's programs send no name.
#[test]
fn a_host_without_a_name_may_come_where_nobody_is_listed() {
    let open = Target::start();
    let nameless = |target: &Target| HostOptions { host_nqn: String::new(), ..target.host() };
    let controller = RemoteController::connect(&nameless(&open)).unwrap();
    let mut queue = controller.io_queue(1, 16).unwrap();
    write(&mut queue, 0, &[1; 4096]);
    let guarded = guarded();
    let error = RemoteController::connect(&nameless(&guarded)).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "Connect failed with Connect Invalid Parameters");
}

#[test]
fn a_host_may_be_asked_for_a_group_of_some_strength() {
    let mut target = guarded();
    let mut options = TcpOptions::new(loopback());
    options.hosts = vec![AllowedHost {
        nqn: HOST.to_string(),
        secret: Some(SECRET.parse().unwrap()),
        controller_secret: None,
        group_min: DhGroupId::Ffdhe3072,
    }];
    target.server = TcpServer::start(options, Arc::clone(&target.shared), target.clock).unwrap();
    for (group, allowed) in [
        (DhGroupId::Null, false),
        (DhGroupId::Ffdhe2048, false),
        (DhGroupId::Ffdhe3072, true),
        (DhGroupId::Ffdhe4096, true),
    ] {
        let options = HostOptions { groups: vec![group], ..with_secret(&target, SECRET) };
        let connected = RemoteController::connect(&options).map(|_| ());
        match connected {
            Ok(()) => assert!(allowed, "{group}"),
            Err(error) => {
                assert!(!allowed, "{group}: {error}");
                assert!(error.to_string().contains("DH group not usable"), "{error}");
            }
        }
    }
}
