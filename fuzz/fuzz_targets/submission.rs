//! Raw submission queue entries, admin and I/O, from several controllers.
//!
//! The input has a byte that chooses the drive, and steps of one byte with their parameters. For
//! any entry the drive must not panic, must complete it exactly once, must return the announced
//! amount of data, and must not change the host's data. It must be consistent at the end.
#![no_main]

// This target uses the drives and the storage of the simulation without its model.
#[allow(dead_code)]
#[path = "../../crates/nvme/tests/simulation/mod.rs"]
mod simulation;

#[path = "../support/bytes.rs"]
mod bytes;

use std::collections::BTreeMap;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use nvme::{ControllerKind, HostIdentity, HostTransport, PendingReply, Subsystem, TransferDirection};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::register::Property;
use nvme_spec::{AdminOpcode, Status};
use simulation::entropy::Seeded;
use simulation::generate;
use zerocopy::FromBytes;

/// Number of kinds of drives, which are seeds of the simulation's generator.
const DRIVES: u64 = 64;
/// CC of an enabled controller.
const ENABLE: u64 = 0x0046_0001;
/// Maximum steps of an input.
const STEPS_MAX: usize = 256;

struct Fuzz<'a> {
    bytes: Bytes<'a>,
    subsystem: Subsystem,
    now: u64,
    /// Existing controllers, each with its pending asynchronous event requests.
    controllers: BTreeMap<u16, Vec<u16>>,
}

impl Fuzz<'_> {
    fn step(&mut self) {
        let control = self.bytes.byte();
        let controller =
            self.controllers.keys().nth(usize::from(control >> 5) % self.controllers.len().max(1)).copied();
        let Some(controller) = controller.filter(|_| control & 0x1f != 0x1f) else {
            self.connect(control);
            return;
        };
        match control & 0x1f {
            0x18 => {
                self.now += u64::from(u32::from_le_bytes(self.bytes.array())) * 1000;
                for expired in self.subsystem.tick(self.now) {
                    self.disconnect(expired);
                }
            }
            0x19 => {
                let value = u64::from(u32::from_le_bytes(self.bytes.array()));
                self.subsystem.property_set(self.now, controller, Property::Cc, value);
                self.forget_requests_of_reset(controller);
            }
            0x1a => {
                self.subsystem.property_set(self.now, controller, Property::Cc, 0);
                self.subsystem.property_set(self.now, controller, Property::Cc, ENABLE);
                self.controllers.insert(controller, Vec::new());
            }
            0x1b => {
                self.subsystem.reset_controller(controller);
                self.controllers.insert(controller, Vec::new());
            }
            0x1c => self.disconnect(controller),
            0x1d => self.subsystem.finish_shutdown(controller),
            queue => self.command(controller, u16::from(queue & 1)),
        }
    }

    /// A write of CC may have reset the controller, which drops its requests.
    fn forget_requests_of_reset(&mut self, controller: u16) {
        if !self.subsystem.controller(controller).is_ready() {
            self.controllers.insert(controller, Vec::new());
        }
    }

    fn connect(&mut self, control: u8) {
        let (transport, kind) = match control >> 6 {
            0 | 1 => (HostTransport::Pcie, ControllerKind::Io),
            2 => (HostTransport::Fabrics, ControllerKind::Io),
            _ => (HostTransport::Fabrics, ControllerKind::Discovery),
        };
        if let Ok(id) = self.subsystem.connect(self.now, transport, kind, HostIdentity::default()) {
            // Every other host only claims its name, without authentication.
            if control >> 5 & 1 == 0 {
                self.subsystem.establish(id);
            }
            self.subsystem.property_set(self.now, id, Property::Cc, ENABLE);
            assert!(self.controllers.insert(id, Vec::new()).is_none(), "two controllers with identifier {id}");
        }
    }

    fn disconnect(&mut self, controller: u16) {
        self.subsystem.disconnect(controller);
        self.controllers.remove(&controller);
    }

    fn command(&mut self, controller: u16, queue: u16) {
        let entry = SubmissionEntry::read_from_bytes(&self.bytes.array::<64>()).expect("64 bytes");
        let accepted = match self.subsystem.accept(controller, queue, &entry) {
            Ok(accepted) => accepted,
            Err(failure) => {
                let reply = self.subsystem.fail(controller, queue, &entry, failure);
                assert_ne!(reply.status, Status::SUCCESS, "a failure is no success");
                return;
            }
        };
        let transfer = accepted.transfer();
        assert_eq!(transfer.direction == TransferDirection::None, transfer.total_bytes() == 0, "{transfer:?}");
        let mut data = Vec::new();
        if transfer.direction == TransferDirection::ToController {
            data = self.data(transfer.total_bytes());
        }
        let sent = data.clone();
        let outcome = self.subsystem.execute(self.now, accepted, &mut data);
        self.check(controller, queue, &entry, &outcome);
        let succeeded = outcome.reply.is_some_and(|reply| reply.status == Status::SUCCESS);
        match transfer.direction {
            _ if !succeeded => assert!(data.is_empty(), "data of what failed: {entry:?}"),
            TransferDirection::ToHost => assert_eq!(data.len(), transfer.total_bytes(), "{entry:?} with {transfer:?}"),
            TransferDirection::ToController | TransferDirection::None => {
                assert!(data == sent, "what the host sent has changed: {entry:?}");
            }
        }
        if let Some(durable) = outcome.durable {
            assert!(succeeded, "what failed has nothing to make durable");
            durable.flush().expect("this storage can");
        }
    }

    /// Data for the drive, as a length in the input and bytes that are repeated.
    fn data(&mut self, bytes: usize) -> Vec<u8> {
        let given = usize::from(self.bytes.byte());
        let given = self.bytes.take(given * 4);
        if given.is_empty() {
            return vec![0; bytes];
        }
        // The content of structures comes once, and the content of blocks repeats.
        let mut data: Vec<u8> = match bytes {
            4096 => given.to_vec(),
            _ => given.iter().copied().cycle().take(bytes).collect(),
        };
        data.resize(bytes, 0);
        data
    }

    /// Checks that a command completes once. An event request may complete later.
    fn check(&mut self, controller: u16, queue: u16, entry: &SubmissionEntry, outcome: &PendingReply) {
        assert!(outcome.due >= self.now, "due before it came");
        let requests = self.controllers.get_mut(&controller).expect("connected");
        if outcome.reply.is_none() {
            assert_eq!((queue, entry.opcode), (0, AdminOpcode::AsynchronousEventRequest.code()), "never completed");
            requests.push(entry.cid.get());
        }
    }

    /// Takes completions without a command, which belong to waiting requests.
    fn take_events(&mut self) {
        for (&controller, requests) in &mut self.controllers {
            for completion in self.subsystem.async_completions(controller) {
                let waits = requests.iter().position(|&cid| cid == completion.cid);
                requests.remove(waits.expect("a completion of a request that waits"));
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes(input);
    let setup = generate::setup(&mut Seeded::new(u64::from(bytes.byte()) % DRIVES));
    let (storage, _) = setup.storage();
    let mut fuzz = Fuzz {
        bytes,
        subsystem: Subsystem::new(setup.config, Box::new(storage)).expect("the generator only keeps drives that work"),
        now: 0,
        controllers: BTreeMap::new(),
    };
    fuzz.connect(0);
    for _ in 0..STEPS_MAX {
        if fuzz.bytes.is_empty() {
            break;
        }
        fuzz.step();
        fuzz.take_events();
    }
    fuzz.subsystem.device().check().expect("the device is consistent");
});
