//! A stream of bytes into an NVMe/TCP connection, in pieces of any size.
//!
//! Input: a byte that chooses the drive, then pieces of one byte (how many) and the bytes. Whatever comes, nothing may
//! panic; what goes out must be PDUs that a controller may send; and when the connection ends, its controller is gone.
#![no_main]

// It uses the drives of it.
#[allow(dead_code)]
#[path = "../../crates/nvme/tests/simulation/mod.rs"]
mod simulation;

#[path = "../support/bytes.rs"]
mod bytes;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use nvme::Subsystem;
use simulation::entropy::Seeded;
use simulation::generate;
use simulation::wire::u32_at;
use transport::tcp::session::{Next, Session, Surroundings};
use transport::tcp::{Context, TcpOptions};
use transport::{Clock, Shared, locked};

/// Kinds of drives, as seeds of the generator.
const DRIVES: u64 = 16;
/// PDU types that a controller sends: ICResp, C2HTermReq, CapsuleResp, C2HData, R2T.
const OF_CONTROLLER: [u8; 5] = [0x01, 0x03, 0x05, 0x07, 0x09];
/// Turns of the connection's loop for one input, at most: it must not run for ever without input.
const TURNS_MAX: usize = 100_000;

/// A new drive behind a connection.
fn connection(drive: u8) -> (Shared, Session) {
    let setup = generate::setup(&mut Seeded::new(u64::from(drive) % DRIVES));
    let (storage, _) = setup.storage();
    let subsystem = Subsystem::new(setup.config, Box::new(storage)).expect("the generator only keeps drives that work");
    let shared = Arc::new(Mutex::new(subsystem));
    let local = "127.0.0.1:4420".parse().expect("an address");
    let surroundings = Surroundings {
        local,
        hang_up: Arc::new(|| {}),
        waker: Arc::new(|| {}),
    };
    let context = Context::new(TcpOptions::new(local), Arc::clone(&shared), Clock::start());
    (shared, Session::new(context, surroundings))
}

/// Moves the next piece of input into the session. `false`: there is none.
fn feed(session: &mut Session, bytes: &mut Bytes) -> bool {
    if bytes.is_empty() {
        return false;
    }
    let room: usize = session.input().iter().map(|space| space.len()).sum();
    assert!(room > 0, "input is wanted, but there is no room for it");
    let wanted = usize::from(bytes.byte()) + 1;
    let piece = bytes.take(room.min(wanted));
    let mut rest = piece;
    for space in &mut session.input() {
        let (now, later) = rest.split_at(rest.len().min(space.len()));
        space[..now.len()].copy_from_slice(now);
        rest = later;
    }
    session.received(piece.len());
    true
}

/// Takes what goes out, and looks at the headers.
fn drain(session: &mut Session, sent: &mut Vec<u8>) {
    for slice in session.output().slices() {
        sent.extend_from_slice(&slice);
    }
    session.sent();
    while sent.len() >= 8 {
        let (kind, header_bytes, pdu_bytes) = (sent[0], usize::from(sent[2]), u32_at(sent, 4) as usize);
        assert!(
            OF_CONTROLLER.contains(&kind),
            "a controller sends no PDU of type {kind:#x}"
        );
        assert!(
            header_bytes >= 8 && pdu_bytes >= header_bytes,
            "a PDU of {pdu_bytes} bytes with a header of {header_bytes}"
        );
        if sent.len() < pdu_bytes {
            break;
        }
        sent.drain(..pdu_bytes);
    }
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes(input);
    let (shared, mut session) = connection(bytes.byte());
    let mut sent = Vec::new();
    let mut turns = 0;
    loop {
        turns += 1;
        assert!(turns < TURNS_MAX, "it goes on and on");
        session.deliver_events();
        match session.advance() {
            Ok(Next::Send) => drain(&mut session, &mut sent),
            Ok(Next::Sync) => session.sync(),
            Ok(Next::Wait { input, .. }) => {
                assert!(
                    input || bytes.is_empty(),
                    "nothing is outstanding here, so input is wanted"
                );
                if !feed(&mut session, &mut bytes) {
                    break;
                }
            }
            Err(_) => {
                drain(&mut session, &mut sent);
                break;
            }
        }
    }
    assert!(sent.is_empty(), "a PDU was sent in part: {sent:02x?}");
    session.close();
    let subsystem = locked(&shared);
    assert_eq!(
        subsystem.controllers().count(),
        0,
        "the controller of a lost connection is still there"
    );
    subsystem.device().check().expect("the device is consistent");
});
