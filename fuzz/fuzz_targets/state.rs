//! States of served drives with arbitrary content and correct checksums.
//!
//! The input has a byte that chooses the drive, a byte that chooses earlier actions of its hosts,
//! and edits of its state (`support/edits.rs`). A drive that accepts the state gets the first
//! requests of all hosts. It must answer them in any way.
#![no_main]

// This target uses the drives and the hosts of the simulation.
#[allow(dead_code)]
#[path = "../../crates/nvme/tests/simulation/mod.rs"]
mod simulation;

#[allow(dead_code)]
#[path = "../support/bytes.rs"]
mod bytes;

#[path = "../support/edits.rs"]
mod edits;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use nvme::{ControllerKind, HostIdentity, HostTransport, NonVolatileState, Subsystem};
use nvme_spec::register::Property;
use simulation::entropy::Seeded;
use simulation::generate::{self, Generator};
use simulation::run::Run;
use simulation::wire::Wire;

/// Number of kinds of drives, which are seeds of the generator.
const DRIVES: u64 = 64;
/// Maximum earlier operations of hosts.
const OPERATIONS_MAX: usize = 120;
/// CC of an enabled controller.
const ENABLE: u64 = 0x0046_0001;

/// Runs a command with zeroes as its data, if it is acceptable.
fn ask(subsystem: &mut Subsystem, controller: u16, queue: u16, wire: &Wire) {
    if let Ok(accepted) = subsystem.accept(controller, queue, &wire.entry(1)) {
        let mut data = vec![0; accepted.transfer().total_bytes()];
        subsystem.execute(0, accepted, &mut data);
    }
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes(input);
    let setup = generate::setup(&mut Seeded::new(u64::from(bytes.byte()) % DRIVES));
    let mut run = Run::new(&setup).expect("the generator only keeps drives that work");
    let before = bytes.byte();
    let mut generator = Generator::new(Seeded::new(u64::from(before)));
    for _ in 0..usize::from(before).min(OPERATIONS_MAX) {
        let operation = generator.next(&run.model).expect("a seed has no end");
        run.step(&operation).expect("as the model says");
    }
    let state = edits::edited(&run.subsystem.state_for_checkpoint().to_bytes(), bytes.0);
    let Ok(state) = NonVolatileState::from_bytes(&state) else {
        return;
    };
    let device = run.subsystem.device().try_clone().expect("there is memory");
    let storage = Box::new(setup.storage().0);
    let Ok(mut subsystem) = Subsystem::restore(setup.config.clone(), device, storage, state) else {
        return;
    };
    let connected = subsystem.connect(0, HostTransport::Fabrics, ControllerKind::Io, HostIdentity::default());
    let Ok(id) = connected else { return };
    subsystem.establish(id);
    subsystem.property_set(0, id, Property::Cc, ENABLE);
    for nsid in [0, 1, 2, 3, u32::MAX] {
        for structure in 0..0x20 {
            ask(&mut subsystem, id, 0, &Wire::new(0x06, nsid).dword(10, structure));
        }
        for log in 0..=0xff {
            ask(&mut subsystem, id, 0, &Wire::new(0x02, nsid).dword(10, log | 0x3ff << 16).dword(11, 1 << 16));
        }
        for feature in 0..=0xff {
            ask(&mut subsystem, id, 0, &Wire::new(0x0a, nsid).dword(10, feature).dword(11, 1));
        }
        for opcode in [0x01, 0x02, 0x08, 0x0c, 0x00] {
            ask(&mut subsystem, id, 1, &Wire::new(opcode, nsid).lba(8).dword(12, 7));
        }
    }
    for tick in 1..4 {
        subsystem.tick(tick << 34);
    }
    let stored = subsystem.state_for_checkpoint().to_bytes();
    if let Err(error) = NonVolatileState::from_bytes(&stored) {
        let said = error.to_string();
        assert!(
            said.contains("which is impossible"),
            "what is stored can be read, but for a counter at its end: {said}"
        );
    }
    subsystem.device().check().expect("the device is consistent");
});
