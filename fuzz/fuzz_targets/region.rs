//! Accesses to the regions of a vfio-user device (configuration space, registers and doorbells),
//! with any offset, size and value. The host's memory has any content.
//!
//! The input has a byte that chooses the drive, and steps of one byte with their parameters. An
//! access lies inside its region, because the server refuses others. No input may cause a panic.
//! Raised vectors must exist, and the device must be consistent at the end.
#![no_main]

// This target uses the drives and the host memory of the simulation.
#[allow(dead_code)]
#[path = "../../crates/nvme/tests/simulation/mod.rs"]
mod simulation;

#[path = "../support/bytes.rs"]
mod bytes;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use nvme::pcie::{DOORBELL_BYTES, PcieController, REGISTER_BYTES};
use nvme::{ControllerKind, HostIdentity, HostTransport, Subsystem};
use nvme_spec::pci::EXTENDED_CONFIG_SPACE_SIZE;
use simulation::entropy::Seeded;
use simulation::generate;
use simulation::host::PciHost;
use target::vfio_user::config_space::{BarLayout, ConfigEffect, ConfigSpace};

/// Number of kinds of drives, which are seeds of the generator.
const DRIVES: u64 = 64;
const STEPS_MAX: usize = 256;
/// Host memory, small enough that many addresses are invalid.
const RAM_BYTES: usize = 128 << 10;
/// Maximum bytes of an access.
const ACCESS_BYTES_MAX: usize = 16;

struct Fuzz<'a> {
    bytes: Bytes<'a>,
    subsystem: Subsystem,
    controller: PcieController,
    host: PciHost,
    config: ConfigSpace,
    vectors: u16,
    now: u64,
}

impl Fuzz<'_> {
    /// Returns an offset and a length inside a region.
    fn place(&mut self, region_bytes: u64) -> (u64, usize) {
        let bytes = match self.bytes.byte() {
            // Most accesses have the sizes that drivers use.
            size @ 0..=0x1f => 1 << (size % 5),
            size if size % 2 == 0 => 4,
            size => usize::from(size) % ACCESS_BYTES_MAX + 1,
        };
        let offset = u64::from(u16::from_le_bytes(self.bytes.array()));
        (offset % (region_bytes - bytes as u64 + 1), bytes)
    }

    fn step(&mut self) {
        let bus = self.host.bus();
        match self.bytes.byte() % 16 {
            0..=3 => {
                let (offset, bytes) = self.place(REGISTER_BYTES + DOORBELL_BYTES);
                let data = &self.bytes.array::<ACCESS_BYTES_MAX>()[..bytes];
                self.controller.write_register(&mut self.subsystem, self.host.bus(), self.now, offset, data);
            }
            4 => {
                let (offset, bytes) = self.place(REGISTER_BYTES + DOORBELL_BYTES);
                self.controller.read_register(&self.subsystem, offset, &mut vec![0; bytes]);
            }
            5 => {
                let (offset, bytes) = self.place(EXTENDED_CONFIG_SPACE_SIZE as u64);
                let data = &self.bytes.array::<ACCESS_BYTES_MAX>()[..bytes];
                if self.config.write(offset, data) == ConfigEffect::FunctionReset {
                    self.controller.reset_function(&mut self.subsystem, self.host.bus());
                }
            }
            6 => {
                let (offset, bytes) = self.place(EXTENDED_CONFIG_SPACE_SIZE as u64);
                self.config.read(offset, &mut vec![0; bytes]);
            }
            // Content of memory, such as queue entries, lists of addresses, shadow doorbells and
            // data.
            7..=10 => {
                let at = u64::from(u16::from_le_bytes(self.bytes.array())) * 4 % (RAM_BYTES as u64 - 256);
                let count = usize::from(self.bytes.byte());
                self.host.ram.put(at, self.bytes.take(count));
            }
            11..=13 => {
                self.controller.has_work(bus);
                self.controller.process(&mut self.subsystem, bus, self.now);
            }
            14 => {
                if let Some(durable) = self.controller.start_sync() {
                    let result = durable.flush();
                    self.controller.finish_sync(&mut self.subsystem, self.host.bus(), self.now, &result);
                }
            }
            _ => {
                self.controller.prepare_sleep(bus);
                self.now += u64::from(u32::from_le_bytes(self.bytes.array()));
                self.subsystem.tick(self.now);
            }
        }
        let raised = self.host.vectors.take();
        assert!(raised.iter().all(|&vector| vector < self.vectors), "raised {raised:?} of {}", self.vectors);
    }
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes(input);
    let setup = generate::setup(&mut Seeded::new(u64::from(bytes.byte()) % DRIVES));
    let (storage, _) = setup.storage();
    let queues = setup.config.io_queues_max;
    let mut subsystem =
        Subsystem::new(setup.config, Box::new(storage)).expect("the generator only keeps drives that work");
    let id =
        subsystem.connect(0, HostTransport::Pcie, ControllerKind::Io, HostIdentity::default()).expect("the first host");
    let mut fuzz = Fuzz {
        bytes,
        subsystem,
        controller: PcieController::new(id, queues, queues + 1),
        host: PciHost::new(RAM_BYTES),
        config: ConfigSpace::new(BarLayout { vectors: queues + 1 }),
        vectors: queues + 1,
        now: 0,
    };
    for _ in 0..STEPS_MAX {
        if fuzz.bytes.is_empty() {
            break;
        }
        fuzz.step();
    }
    fuzz.subsystem.device().check().expect("the device is consistent");
});
