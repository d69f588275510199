//! Streams of bytes into two NVMe/TCP connections to one drive, in pieces of any size.
//!
//! The input has a byte that chooses the drive, and pieces. A piece has one byte (connection and
//! length) and the bytes. No input may cause a panic. All output must be PDUs that a controller may
//! send. The end of the connections must remove their controllers. A new connection replaces an
//! ended one.
#![no_main]

// This target uses the drives of the simulation.
#[allow(dead_code)]
#[path = "../../crates/nvme/tests/simulation/mod.rs"]
mod simulation;

#[path = "../support/bytes.rs"]
mod bytes;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use nvme::Subsystem;
use simulation::entropy::Seeded;
use simulation::generate;
use simulation::wire::u32_at;
use target::tcp::session::{ConnectionInfo, SessionTask, TcpSession};
use target::tcp::{TargetContext, TcpOptions};
use target::{ServerClock, SharedSubsystem, lock};

/// Number of kinds of drives, which are seeds of the generator.
const DRIVES: u64 = 16;
/// Address of the target in its hosts' view.
const ADDRESS: &str = "127.0.0.1:4420";
/// PDU types that a controller sends: ICResp, C2HTermReq, CapsuleResp, C2HData, R2T.
const OF_CONTROLLER: [u8; 5] = [0x01, 0x03, 0x05, 0x07, 0x09];
/// Maximum iterations of a connection's loop without input.
const TURNS_MAX: usize = 10_000;

/// State of a connection, as in its thread.
struct Connection {
    session: TcpSession,
    /// Output that is not a whole PDU yet.
    sent: Vec<u8>,
}

impl Connection {
    fn new(context: &Arc<TargetContext>) -> Connection {
        let surroundings = ConnectionInfo {
            local: ADDRESS.parse().expect("an address"),
            peer: Ipv4Addr::LOCALHOST.into(),
            connection: Arc::new(()),
            waker: Arc::new(|| {}),
        };
        Connection { session: TcpSession::new(Arc::clone(context), surroundings), sent: Vec::new() }
    }

    /// Does all work that is possible without input. Returns false if the connection has ended.
    fn advance(&mut self) -> bool {
        for _ in 0..TURNS_MAX {
            self.session.deliver_events();
            match self.session.advance() {
                Ok(SessionTask::Send) => self.drain(),
                Ok(SessionTask::Sync) => self.session.sync(),
                Ok(SessionTask::Compute) => self.session.run_dh(Instant::now()),
                Ok(SessionTask::Wait { input, .. }) => {
                    assert!(input, "nothing is outstanding here, so input is wanted");
                    return true;
                }
                Err(_) => {
                    self.drain();
                    return false;
                }
            }
        }
        panic!("it goes on and on without input");
    }

    /// Feeds a piece of input to the session and lets it work.
    fn feed(&mut self, piece: &[u8]) -> bool {
        let mut rest = piece;
        while !rest.is_empty() {
            let mut moved = 0;
            for space in &mut self.session.input() {
                let (now, later) = rest.split_at(rest.len().min(space.len()));
                space[..now.len()].copy_from_slice(now);
                moved += now.len();
                rest = later;
            }
            assert!(moved > 0, "input is wanted, but there is no room for it");
            self.session.received(moved);
            if !self.advance() {
                return false;
            }
        }
        true
    }

    /// Takes the output and checks the headers.
    fn drain(&mut self) {
        for slice in self.session.output().slices() {
            self.sent.extend_from_slice(&slice);
        }
        self.session.sent();
        while self.sent.len() >= 8 {
            let (kind, header_bytes) = (self.sent[0], usize::from(self.sent[2]));
            let pdu_bytes = u32_at(&self.sent, 4) as usize;
            assert!(OF_CONTROLLER.contains(&kind), "a controller sends no PDU of type {kind:#x}");
            let possible = header_bytes >= 8 && pdu_bytes >= header_bytes;
            assert!(possible, "a PDU of {pdu_bytes} bytes with a header of {header_bytes}");
            if self.sent.len() < pdu_bytes {
                break;
            }
            self.sent.drain(..pdu_bytes);
        }
    }

    fn close(mut self) {
        assert!(self.sent.is_empty(), "a PDU was sent in part: {:02x?}", self.sent);
        self.session.close();
    }
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes(input);
    let setup = generate::setup(&mut Seeded::new(u64::from(bytes.byte()) % DRIVES));
    let (storage, _) = setup.storage();
    let subsystem = Subsystem::new(setup.config, Box::new(storage)).expect("the generator only keeps drives that work");
    let shared: SharedSubsystem = Arc::new(Mutex::new(subsystem));
    let options = TcpOptions::new(ADDRESS.parse().expect("an address"));
    let context = TargetContext::new(options, Arc::clone(&shared), ServerClock::start());
    let mut connections = [Connection::new(&context), Connection::new(&context)];
    while !bytes.is_empty() {
        let control = bytes.byte();
        let piece = bytes.take(2 * usize::from(control & 0x7f) + 2);
        let connection = &mut connections[usize::from(control >> 7)];
        if !connection.feed(piece) {
            std::mem::replace(connection, Connection::new(&context)).close();
        }
    }
    connections.into_iter().for_each(Connection::close);
    let subsystem = lock(&shared);
    assert_eq!(subsystem.controllers().count(), 0, "the controller of a lost connection is still there");
    subsystem.device().check().expect("the device is consistent");
});
