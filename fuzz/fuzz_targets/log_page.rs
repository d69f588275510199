//! Get Log Page with any page, offset, length and parameters. Pieces must equal the whole page.
//!
//! The input has a byte that chooses the drive, a byte that chooses earlier actions of its hosts,
//! and reads of 16 bytes each. The whole page comes from one command at offset 0. Bytes beyond its
//! end are zeroes. All larger offsets give Invalid Field.
#![no_main]

// This target uses the drives and the hosts of the simulation.
#[allow(dead_code)]
#[path = "../../crates/nvme/tests/simulation/mod.rs"]
mod simulation;

#[path = "../support/bytes.rs"]
mod bytes;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use nvme::{ControllerKind, HostIdentity, HostTransport, Subsystem};
use nvme_spec::Status;
use nvme_spec::register::Property;
use simulation::entropy::Seeded;
use simulation::generate::{self, Generator};
use simulation::run::Run;
use simulation::wire::Wire;

/// Number of kinds of drives, which are seeds of the generator.
const DRIVES: u64 = 64;
/// Maximum earlier operations of hosts.
const OPERATIONS_MAX: usize = 120;
/// Upper bound for the size of a page.
const WHOLE_BYTES: u64 = 64 << 10;
/// CC of an enabled controller.
const ENABLE: u64 = 0x0046_0001;

/// Read of a log page, with fields of the command.
#[derive(Clone, Copy, Debug)]
struct Get {
    nsid: u32,
    /// Dword 10 without the length.
    low: u32,
    identifier: u16,
    dword14: u32,
}

impl Get {
    /// Reads bytes from an offset.
    fn read(self, subsystem: &mut Subsystem, controller: u16, offset: u64, bytes: u64) -> Result<Vec<u8>, Status> {
        let dwords = (bytes / 4 - 1) as u32;
        // The read retains events, so that the next read gives the same.
        const RETAIN: u32 = 1 << 15;
        let entry = Wire::new(0x02, self.nsid)
            .dword(10, dwords << 16 | RETAIN | self.low & 0x7fff)
            .dword(11, u32::from(self.identifier) << 16 | dwords >> 16)
            .dword(12, offset as u32)
            .dword(13, (offset >> 32) as u32)
            .dword(14, self.dword14)
            .entry(1);
        let accepted = subsystem.accept(controller, 0, &entry).map_err(|failure| failure.status)?;
        assert_eq!(accepted.transfer().total_bytes() as u64, bytes, "what is asked for is what is moved");
        let mut data = Vec::new();
        let outcome = subsystem.execute(0, accepted, &mut data);
        match outcome.reply.expect("completed at once").status {
            Status::SUCCESS => {
                assert_eq!(data.len() as u64, bytes);
                Ok(data)
            }
            failed => Err(failed),
        }
    }
}

/// Returns a used drive and the identifier of a controller.
fn used_drive(bytes: &mut Bytes) -> (Subsystem, u16) {
    let setup = generate::setup(&mut Seeded::new(u64::from(bytes.byte()) % DRIVES));
    let mut run = Run::new(&setup).expect("the generator only keeps drives that work");
    let before = bytes.byte();
    let mut generator = Generator::new(Seeded::new(u64::from(before)));
    for _ in 0..usize::from(before).min(OPERATIONS_MAX) {
        let operation = generator.next(&run.model).expect("a seed has no end");
        run.step(&operation).expect("as the model says");
    }
    let mut subsystem = run.subsystem;
    let first = subsystem.controllers().map(|its| its.id).next();
    if let Some(id) = first.filter(|_| before % 2 == 0) {
        subsystem.disconnect(id);
    }
    let kinds = [ControllerKind::Io, ControllerKind::Io, ControllerKind::Io, ControllerKind::Discovery];
    let kind = kinds[usize::from(before / 2 % 4)];
    let connected = subsystem.connect(0, HostTransport::Fabrics, kind, HostIdentity::default());
    let id = connected.unwrap_or_else(|_| subsystem.controllers().next().expect("there are too many").id);
    subsystem.establish(id);
    subsystem.reset_controller(id);
    subsystem.property_set(0, id, Property::Cc, ENABLE);
    (subsystem, id)
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes(input);
    let (mut subsystem, controller) = used_drive(&mut bytes);
    for _ in 0..32 {
        if bytes.is_empty() {
            break;
        }
        let [a, b, c, d] = bytes.array();
        let dword14 = u32::from_le_bytes(bytes.array());
        // Most reads use the controller itself, the only endurance group, and no options.
        let get = Get {
            nsid: [0, u32::MAX, u32::from(d), 0x1234][usize::from(d % 4)],
            low: u32::from(b) << 8 | u32::from(a),
            identifier: if c < 0xf0 { 1 } else { u16::from(c & 3) },
            dword14: if dword14 % 4 == 0 { dword14 } else { 0 },
        };
        let length = u64::from(u16::from_le_bytes(bytes.array())) * 4 + 4;
        let offset = u64::from(u16::from_le_bytes(bytes.array())) | u64::from(u32::from_le_bytes(bytes.array())) << 16;
        let offset = if offset % 5 == 0 { offset } else { offset & 0x3fff };
        let whole = get.read(&mut subsystem, controller, 0, WHOLE_BYTES);
        let piece = get.read(&mut subsystem, controller, offset, length);
        match (whole, piece) {
            (Err(whole), Err(piece)) => {
                assert!(piece == whole || piece == Status::INVALID_FIELD, "{get:?}: {whole}, {piece}")
            }
            (Err(whole), Ok(_)) => panic!("{get:?}: a piece can be read, the whole fails with {whole}"),
            (Ok(whole), Ok(piece)) => {
                assert_eq!(offset % 4, 0, "{get:?}: an offset that is no multiple of 4");
                let rest = whole.get(offset as usize..).unwrap_or(&[]);
                for (index, &byte) in piece.iter().enumerate() {
                    assert_eq!(byte, rest.get(index).copied().unwrap_or(0), "{get:?}: byte {index} from {offset} on");
                }
                for before in [0, offset / 2 & !3] {
                    assert!(
                        get.read(&mut subsystem, controller, before, 4).is_ok(),
                        "{get:?}: at {before} but not at {offset}"
                    );
                }
            }
            (Ok(whole), Err(status)) => {
                assert_eq!(status, Status::INVALID_FIELD, "{get:?} from {offset} on");
                let rest = whole.get(offset as usize..).unwrap_or(&[]);
                assert!(offset % 4 != 0 || rest.iter().all(|&byte| byte == 0), "{get:?}: {offset} is in the page");
                if let Some(after) = offset.checked_add(4) {
                    assert!(
                        get.read(&mut subsystem, controller, after, 4).is_err(),
                        "{get:?}: at {after} but not at {offset}"
                    );
                }
            }
        }
    }
    subsystem.device().check().expect("the device is consistent");
});
