//! Random drives and random host operations, mostly sensible, often with one mistake.
//!
//! Every case has its own mix of operations (swarm testing). Some are frequent and some never
//! happen, so the swarm reaches rare states that an even mix would leave quickly.

use std::sync::Arc;

use nvme::{Identity, Subsystem, SubsystemConfig};
use ssd::config::{EventsConfig, GcConfig, Geometry, HandlesConfig, Isolation, ReclaimUnitSize, UnitOpenPolicy};
use ssd::{DeviceConfig, DeviceLayout};

use super::entropy::Entropy;
use super::model::{ALL, EVENT_TYPES, Model, NN, Namespace, Sanitize};
use super::operation::{
    Command, Create, Directive, DirectiveReceive, DirectiveSend, FEATURES, Format, GetFeature, GetLog, Kind, LOGS,
    Operation, QueueCommand, Range, STRUCTURES, SetFeature,
};
use super::storage::{Control, Fault, Storage};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Parameters of a drive.
#[derive(Clone, Debug)]
pub struct Setup {
    pub config: SubsystemConfig,
    /// Bytes of its storage.
    pub capacity_bytes: u64,
    pub cached: bool,
    pub exact_units: bool,
}

/// A small drive of a random kind.
pub fn setup(entropy: &mut impl Entropy) -> Setup {
    loop {
        let setup = any_setup(entropy);
        if setup
            .as_ref()
            .is_some_and(|setup| Subsystem::new(setup.config.clone(), Box::new(setup.storage().0)).is_ok())
        {
            return setup.expect("just asked");
        }
    }
}

impl Setup {
    /// Empty storage of the drive. The metadata area behind the data has a byte for 64, the most of
    /// all formats.
    pub fn storage(&self) -> (Storage, Arc<Control>) {
        Storage::new(self.capacity_bytes + self.capacity_bytes.div_ceil(64), self.cached)
    }
}

/// Parameters of a small drive that may be invalid.
fn any_setup(entropy: &mut impl Entropy) -> Option<Setup> {
    let exact_units = entropy.percent(75);
    let device = device(entropy, exact_units);
    let layout = DeviceLayout::new(&device).ok()?;
    let config = SubsystemConfig {
        identity: Identity {
            serial: "S1MULAT10N".to_string(),
            model: "simulated drive".to_string(),
            firmware: "sim".to_string(),
            nqn: "nqn.2026-01.org.example:simulation".to_string(),
        },
        device,
        fdp: entropy.percent(75),
        namespace: entropy.percent(70),
        format: entropy.below(4) as u8,
        reclaim_unit_time_limit_s: entropy.pick(&[0, 0, 3, 20]),
        controllers_max: entropy.between(2, 5) as u16,
        io_queues_max: entropy.between(2, 5) as u16,
    };
    Some(Setup {
        config,
        capacity_bytes: u64::from(layout.logical_pages) * layout.page_bytes,
        cached: entropy.percent(50),
        exact_units,
    })
}

fn device(entropy: &mut impl Entropy, exact_units: bool) -> DeviceConfig {
    let reclaim_groups = entropy.pick(&[1, 1, 1, 2, 4]);
    let capacity_bytes = entropy.between(8, 24) * MIB + entropy.below(3) * 52 * KIB;
    let mut handles = HandlesConfig {
        count: entropy.between(1, 8) as u16,
        isolation: entropy.pick(&[Isolation::InitiallyIsolated, Isolation::PersistentlyIsolated]),
        opening: entropy.pick(&[
            UnitOpenPolicy::OnFirstUse,
            UnitOpenPolicy::OnFirstUse,
            UnitOpenPolicy::Eager,
        ]),
        ..HandlesConfig::default()
    };
    if !exact_units {
        handles.reclaim_unit = entropy.pick(&[ReclaimUnitSize::Die, ReclaimUnitSize::Channel]);
        handles.open_reclaim_units = entropy.between(1, 3) as u16;
    }
    DeviceConfig {
        timing: None,
        endurance: None,
        geometry: Geometry {
            capacity_bytes: Some(capacity_bytes),
            physical_bytes: None,
            over_provisioning: entropy.pick(&[0.15, 0.3, 0.6, 1.0]),
            reclaim_unit_bytes: entropy.pick(&[128, 256, 512]) * KIB,
            mapping_unit_bytes: entropy.pick(&[4, 4, 4, 8, 16]) * KIB,
            program_unit_bytes: None,
            channels: 4,
            dies_per_channel: 1,
            planes_per_die: 1,
            reclaim_groups,
        },
        handles,
        gc: GcConfig {
            block_remapping: entropy.percent(50),
            ..GcConfig::default()
        },
        events: EventsConfig::default(),
        seed: entropy.below(1 << 32),
    }
}

/// Kinds of operations with their highest weights in a case.
const CLASSES: [(Class, u64); 33] = [
    (Class::Connect, 4),
    (Class::Disconnect, 2),
    (Class::Reset, 2),
    (Class::ShutDown, 1),
    (Class::Time, 6),
    (Class::KeepAlive, 3),
    (Class::Write, 60),
    (Class::WriteZeroes, 10),
    (Class::Copy, 8),
    (Class::Read, 25),
    (Class::Compare, 8),
    (Class::Verify, 4),
    (Class::Dataset, 10),
    (Class::Uncorrectable, 4),
    (Class::Flush, 4),
    (Class::HandleStatus, 10),
    (Class::HandleUpdate, 8),
    (Class::Identify, 14),
    (Class::Log, 24),
    (Class::Pieces, 6),
    (Class::GetFeature, 10),
    (Class::SetFeature, 12),
    (Class::Events, 10),
    (Class::Async, 12),
    (Class::Namespace, 12),
    (Class::Placement, 5),
    (Class::Format, 3),
    (Class::Sanitize, 3),
    (Class::Little, 6),
    (Class::Late, 10),
    (Class::Fail, 4),
    (Class::Queues, 16),
    (Class::InFlight, 5),
];

/// Operations that keep a reclaim group from filling.
const EMPTYING: [Class; 6] = [
    Class::WriteZeroes,
    Class::Dataset,
    Class::Namespace,
    Class::Placement,
    Class::Format,
    Class::Sanitize,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Connect,
    Disconnect,
    Reset,
    ShutDown,
    Time,
    KeepAlive,
    Write,
    WriteZeroes,
    Copy,
    Read,
    Compare,
    Verify,
    Dataset,
    Uncorrectable,
    Flush,
    HandleStatus,
    HandleUpdate,
    Identify,
    Log,
    Pieces,
    GetFeature,
    SetFeature,
    Events,
    Async,
    Namespace,
    Placement,
    Format,
    Sanitize,
    Little,
    Late,
    Fail,
    Queues,
    InFlight,
}

/// Makes operations for one case.
pub struct Generator<E> {
    entropy: E,
    weights: Vec<(Class, u64)>,
    /// Percentage of wrong fields.
    mistakes: u64,
    /// Percentage of accesses to the first eighth of a namespace.
    hot: u64,
    /// Most bytes of an access.
    large: u64,
    /// Nearly all placement identifiers name the last reclaim group, until it overflows.
    crowded: bool,
    next_cid: u16,
    /// Operations that must come next, last first.
    planned: Vec<Operation>,
}

impl<E: Entropy> Generator<E> {
    pub fn new(mut entropy: E) -> Generator<E> {
        let crowded = entropy.percent(25);
        let mut weights: Vec<(Class, u64)> = Vec::new();
        for (class, weight) in CLASSES {
            // A class is left out, as usual, or preferred.
            let factor = match (class, entropy.pick(&[0, 1, 2, 2, 2, 8])) {
                (Class::Write, _) if crowded => 8,
                (class, _) if crowded && EMPTYING.contains(&class) => 0,
                (_, any) => any,
            };
            weights.push((class, weight * factor));
        }
        let hot = entropy.pick(&[0, 50, 90]);
        let large = entropy.pick(&[8 * KIB, 64 * KIB, 256 * KIB, MIB]);
        Generator {
            mistakes: entropy.pick(&[0, 2, 5, 15]),
            hot: if crowded { 0 } else { hot },
            large: if crowded { MIB } else { large },
            crowded,
            entropy,
            weights,
            next_cid: 0,
            planned: Vec::new(),
        }
    }

    fn mistake(&mut self) -> bool {
        self.entropy.percent(self.mistakes)
    }

    fn cid(&mut self) -> u16 {
        self.next_cid = self.next_cid.wrapping_add(1);
        if self.mistake() {
            self.entropy.below(8) as u16
        } else {
            self.next_cid
        }
    }

    /// Returns the next operation for the current state of the drive. `None` at the end of the
    /// entropy.
    pub fn next(&mut self, model: &Model) -> Option<Operation> {
        (!self.entropy.exhausted()).then(|| self.planned.pop().unwrap_or_else(|| self.decide(model)))
    }

    fn decide(&mut self, model: &Model) -> Operation {
        if model.controllers.is_empty()
            || model.controllers.values().all(|its| !its.ready || !its.is_io()) && self.entropy.percent(60)
        {
            return self.come_back(model);
        }
        if let Some(remedy) = self.remedy(model) {
            return remedy;
        }
        let total = self.weights.iter().map(|(_, weight)| weight).sum::<u64>().max(1);
        let mut at = self.entropy.below(total);
        let mut class = Class::Write;
        for &(candidate, weight) in &self.weights {
            if at < weight {
                class = candidate;
                break;
            }
            at -= weight;
        }
        self.operation(class, model)
    }

    /// Operation that a host eventually performs on an unusable drive.
    fn remedy(&mut self, model: &Model) -> Option<Operation> {
        let controller = self.controller(model);
        if !model.controllers[&controller].is_io() {
            return None;
        }
        match model.sanitize {
            Sanitize::Running { .. } => {
                return self.entropy.percent(5).then_some(Operation::Time {
                    ns: 1_000_000,
                    tick: true,
                });
            }
            Sanitize::Failed { exited: false, .. } if self.entropy.percent(5) => {
                let (unrestricted, no_deallocate, verify) = (false, false, false);
                return Some(self.submit(
                    controller,
                    Command::Sanitize {
                        action: 2,
                        unrestricted,
                        no_deallocate,
                        verify,
                    },
                ));
            }
            _ => {}
        }
        let has_none = model.formatted(controller, ALL).is_empty();
        if !has_none || self.entropy.percent(75) {
            return None;
        }
        let detached = model
            .namespaces
            .iter()
            .find(|(_, namespace)| namespace.shared || namespace.attached.is_empty());
        let command = match detached {
            Some((&nsid, _)) => Command::Attach {
                nsid,
                operation: 0,
                controllers: vec![controller],
                count: 1,
            },
            None => Command::Create(self.create(model)),
        };
        Some(self.submit(controller, command))
    }

    fn come_back(&mut self, model: &Model) -> Operation {
        let asleep = model.controllers.iter().find(|(_, its)| !its.ready && its.is_io());
        match asleep {
            Some((&controller, _)) => Operation::Enable { controller },
            None => self.connect(),
        }
    }

    fn connect(&mut self) -> Operation {
        Operation::Connect {
            kind: self
                .entropy
                .pick(&[Kind::Pcie, Kind::Pcie, Kind::Fabrics, Kind::Fabrics, Kind::Discovery]),
            host: self.entropy.below(3) as u8,
            enable: self.entropy.percent(90),
            queues: self.entropy.percent(60),
        }
    }

    /// An existing controller, mostly a working one.
    fn controller(&mut self, model: &Model) -> u16 {
        let good: Vec<u16> = model
            .controllers
            .iter()
            .filter(|(_, its)| its.ready && its.is_io())
            .map(|(&id, _)| id)
            .collect();
        let all: Vec<u16> = model.controllers.keys().copied().collect();
        if good.is_empty() || self.entropy.percent(6) {
            self.entropy.pick(&all)
        } else {
            self.entropy.pick(&good)
        }
    }

    fn operation(&mut self, class: Class, model: &Model) -> Operation {
        let controller = self.controller(model);
        match class {
            Class::Connect => self.connect(),
            Class::Disconnect => Operation::Disconnect { controller },
            Class::Reset => {
                if self.entropy.percent(85) {
                    self.planned.push(Operation::Enable { controller });
                }
                Operation::Reset {
                    controller,
                    by_host: self.entropy.percent(70),
                }
            }
            Class::ShutDown => Operation::ShutDown { controller },
            Class::Time => {
                let ns = match self.entropy.below(4) {
                    0 => self.entropy.below(1_000),
                    1 => self.entropy.below(50_000_000),
                    2 => self.entropy.below(2_000_000_000),
                    _ => self.entropy.below(30_000_000_000),
                };
                Operation::Time {
                    ns,
                    tick: self.entropy.percent(80),
                }
            }
            Class::KeepAlive => match self.entropy.below(3) {
                0 => Operation::KeepAliveTime {
                    controller,
                    ms: self.entropy.pick(&[0, 50, 100, 5_000, 120_000]),
                },
                1 => Operation::HeardOf { controller },
                _ => self.submit(controller, Command::KeepAlive),
            },
            Class::Fail => self.fail(model),
            Class::InFlight => self.disturb_queues(model, controller),
            Class::Late => self.late(model),
            Class::Async if self.entropy.percent(3) && !model.controllers[&controller].requests.is_empty() => {
                // An identifier that is in use.
                let cid = model.controllers[&controller].requests[0];
                let command = Command::AsyncEvent;
                Operation::Submit {
                    controller,
                    cid,
                    command,
                }
            }
            Class::Namespace if self.entropy.percent(2) => self.fill_identifiers(model, controller),
            Class::Pieces => {
                let count = self.entropy.between(1, 12);
                Operation::ReadInPieces {
                    controller,
                    log: self.log(),
                    parameter: self.entropy.below(2) as u8,
                    pieces: (0..count).map(|_| self.entropy.between(1, 300) as u16).collect(),
                }
            }
            _ => {
                let command = self.command(class, model, controller);
                self.submit(controller, command)
            }
        }
    }

    /// A storage failure in a command that uses the storage.
    fn fail(&mut self, model: &Model) -> Operation {
        let fault = self
            .entropy
            .pick(&[Fault::Read, Fault::Write, Fault::Discard, Fault::Keep, Fault::Planned]);
        let next = match fault {
            Fault::Read => self
                .entropy
                .pick(&[Class::Read, Class::Compare, Class::Verify, Class::Copy]),
            Fault::Write => self.entropy.pick(&[Class::Write, Class::Copy]),
            Fault::Discard if self.entropy.percent(25) => Class::Sanitize,
            Fault::Discard => self
                .entropy
                .pick(&[Class::WriteZeroes, Class::Dataset, Class::Format, Class::Namespace]),
            Fault::Keep => self.entropy.pick(&[Class::Namespace, Class::Format, Class::Sanitize]),
            Fault::Planned => self.entropy.pick(&[
                Class::Read,
                Class::Write,
                Class::WriteZeroes,
                Class::Copy,
                Class::Compare,
                Class::Verify,
                Class::Dataset,
                Class::Uncorrectable,
                Class::Flush,
                Class::HandleStatus,
                Class::HandleUpdate,
            ]),
        };
        if (fault, next) == (Fault::Discard, Class::Sanitize) {
            self.planned.push(Operation::Time { ns: 1, tick: true });
            self.planned.push(Operation::Fail { fault });
            return self.operation(next, model);
        }
        let planned = self.operation(next, model);
        self.planned.push(planned);
        Operation::Fail { fault }
    }

    /// Operation on queues with outstanding commands, or on nonexistent queues.
    fn disturb_queues(&mut self, model: &Model, controller: u16) -> Operation {
        match self.entropy.below(8) {
            0 => Operation::ResetSubsystem { controller },
            1 | 2 => Operation::Doorbell {
                controller,
                no_queue: self.entropy.percent(50),
            },
            _ => {
                // The queue needs a command first.
                self.planned.push(Operation::DeleteInFlight {
                    controller,
                    how: self.entropy.below(3) as u8,
                });
                for class in [Class::Write, Class::Flush, Class::Read] {
                    let command = self.command(class, model, controller);
                    let cid = self.cid();
                    self.planned.push(Operation::Begin {
                        controller,
                        cid,
                        command,
                    });
                }
                self.planned.pop().expect("just put in")
            }
        }
    }

    /// A command with late data, or the arrival of that data.
    fn late(&mut self, model: &Model) -> Operation {
        if self.entropy.percent(50) {
            return Operation::Finish;
        }
        let class = self.entropy.pick(&[
            Class::Write,
            Class::Write,
            Class::Compare,
            Class::Dataset,
            Class::Copy,
            Class::Namespace,
        ]);
        match self.operation(class, model) {
            Operation::Submit {
                controller,
                cid,
                command,
            } => Operation::Begin {
                controller,
                cid,
                command,
            },
            other => other,
        }
    }

    fn submit(&mut self, controller: u16, command: Command) -> Operation {
        let cid = self.cid();
        Operation::Submit {
            controller,
            cid,
            command,
        }
    }

    fn command(&mut self, class: Class, model: &Model, controller: u16) -> Command {
        let nsid = self.nsid(model, controller);
        match class {
            Class::Flush => Command::Flush {
                nsid: if self.entropy.percent(30) { ALL } else { nsid },
            },
            Class::Identify => self.identify(model, nsid),
            Class::Log => self.get_log(model, nsid),
            Class::GetFeature => Command::GetFeature(GetFeature {
                feature: self.feature_number(),
                select: if self.mistake() {
                    self.entropy.below(8) as u8
                } else {
                    self.entropy.below(4) as u8
                },
                nsid,
                dword11: self.feature_value(false),
            }),
            Class::SetFeature => self.set_feature(nsid),
            Class::Events => self.set_events(model, nsid),
            Class::Async => self.asynchronous(model, controller),
            Class::Namespace => self.namespace_command(model, controller, nsid),
            Class::Placement => self.switch_placement(model),
            Class::Format => Command::Format(Format {
                nsid: if self.entropy.percent(15) { ALL } else { nsid },
                format: if self.mistake() {
                    self.entropy.below(64) as u8
                } else {
                    self.entropy.below(4) as u8
                },
                extended: self.entropy.percent(70),
                erase: if self.mistake() {
                    self.entropy.below(8) as u8
                } else {
                    self.entropy.below(3) as u8
                },
                protection: u8::from(self.mistake()),
            }),
            Class::Sanitize => Command::Sanitize {
                action: if self.mistake() {
                    self.entropy.below(8) as u8
                } else {
                    self.entropy.pick(&[1, 2, 2, 2, 4])
                },
                unrestricted: self.entropy.percent(50),
                no_deallocate: self.entropy.percent(25),
                verify: self.mistake(),
            },
            Class::Little => self.little(nsid),
            Class::Queues => Command::Queue(self.queue_command(model)),
            _ => self.io_command(class, model, controller, nsid),
        }
    }

    // ---------------------------------------------------------------------------------- I/O --

    fn nsid(&mut self, model: &Model, controller: u16) -> u32 {
        let active: Vec<u32> = model.formatted(controller, ALL);
        if active.is_empty() || self.mistake() {
            return match self.entropy.below(8) {
                0 => 0,
                1 => ALL,
                2 => NN + 1,
                3 => self.entropy.below(1 << 32) as u32,
                _ => self.entropy.between(1, 6) as u32,
            };
        }
        self.entropy.pick(&active)
    }

    fn io_command(&mut self, class: Class, model: &Model, controller: u16, nsid: u32) -> Command {
        let namespace = model.active(controller, nsid);
        let range = self.range(model, namespace);
        match class {
            Class::Write => Command::Write {
                nsid,
                range,
                placement: self.directive(model, nsid),
                fua: self.entropy.percent(10),
            },
            Class::WriteZeroes => Command::WriteZeroes {
                nsid,
                range,
                // DTYPE has three bits here. The fourth bit belongs to another field.
                placement: Directive {
                    kind: self.directive(model, nsid).kind & 7,
                    ..self.directive(model, nsid)
                },
                fua: self.entropy.percent(10),
                deallocate: self.entropy.percent(50),
            },
            Class::Read => Command::Read { nsid, range },
            Class::Compare => Command::Compare {
                nsid,
                range,
                equal: self.entropy.percent(70),
            },
            Class::Verify => Command::Verify { nsid, range },
            Class::Uncorrectable => Command::WriteUncorrectable { nsid, range },
            Class::Dataset => {
                let count = self.entropy.pick(&[1, 1, 2, 3, 256]);
                let mut ranges = vec![range];
                while ranges.len() < count {
                    let mut next = self.range(model, namespace);
                    next.count = if self.mistake() { 0 } else { next.count.min(64) };
                    ranges.push(next);
                }
                Command::DatasetManagement {
                    nsid,
                    ranges,
                    deallocate: self.entropy.percent(80),
                }
            }
            Class::Copy => self.copy(model, namespace, nsid),
            Class::HandleStatus => Command::HandleStatus {
                nsid,
                operation: if self.mistake() {
                    self.entropy.pick(&[0, 2, 0xff])
                } else {
                    1
                },
                dwords: self.entropy.pick(&[4, 12, 100, 2044]),
            },
            Class::HandleUpdate => {
                let count = self.entropy.pick(&[1, 1, 2, 5]);
                let identifiers = (0..count).map(|_| self.identifier(model, nsid)).collect();
                let operation = if self.mistake() {
                    self.entropy.pick(&[0, 2, 0xff])
                } else {
                    1
                };
                Command::HandleUpdate {
                    nsid,
                    operation,
                    identifiers,
                }
            }
            _ => unreachable!("{class:?} is not of I/O"),
        }
    }

    fn copy(&mut self, model: &Model, namespace: Option<&Namespace>, nsid: u32) -> Command {
        let count = if self.mistake() {
            self.entropy.between(1, 140)
        } else {
            self.entropy.between(1, 4)
        };
        let ranges = (0..count).map(|_| {
            let range = self.range(model, namespace);
            Range {
                count: range.count.min(65536),
                ..range
            }
        });
        Command::Copy {
            nsid,
            ranges: ranges.collect(),
            to: self.range(model, namespace).first,
            format: if self.mistake() {
                self.entropy.below(16) as u8
            } else {
                0
            },
            placement: self.directive(model, nsid),
            fua: self.entropy.percent(10),
        }
    }

    fn range(&mut self, model: &Model, namespace: Option<&Namespace>) -> Range {
        let Some(namespace) = namespace else {
            return Range {
                first: self.entropy.below(100),
                count: self.entropy.between(1, 8) as u32,
            };
        };
        let (size, block_bytes) = (namespace.blocks.len() as u64, namespace.block_bytes());
        let per_page = (model.drive.page_bytes / block_bytes).max(1);
        let most = (self.large / block_bytes).max(1);
        let mut count = match self.entropy.below(5) {
            0 => 1,
            1 => per_page,
            2 => self.entropy.between(1, 2 * per_page),
            _ => self.entropy.between(1, most),
        };
        let reach = if self.entropy.percent(self.hot) {
            size.div_ceil(8)
        } else {
            size
        };
        let mut first = self.entropy.below(reach.max(1));
        if self.entropy.percent(50) {
            first -= first % per_page;
        }
        if self.mistake() {
            match self.entropy.below(5) {
                0 => first = size,
                1 => first = u64::MAX - self.entropy.below(10),
                2 => count = size + 1 - first.min(size),
                3 => count = (MIB / block_bytes) + self.entropy.between(1, 9),
                _ => count = 65536,
            }
        } else if first < size {
            count = count.min(size - first);
        }
        Range {
            first,
            count: count.clamp(1, 65536) as u32,
        }
    }

    fn directive(&mut self, model: &Model, nsid: u32) -> Directive {
        let kind = if self.mistake() {
            self.entropy.below(16) as u8
        } else if model.fdp.is_some() {
            self.entropy.pick(&[2, 2, 2, 0])
        } else {
            0
        };
        Directive {
            kind,
            specific: self.identifier(model, nsid),
        }
    }

    fn identifier(&mut self, model: &Model, nsid: u32) -> u16 {
        let Some(namespace) = model.namespaces.get(&nsid).filter(|_| !self.mistake()) else {
            return self.entropy.below(1 << 16) as u16;
        };
        let wrong = u64::from(self.mistake());
        let groups = model.configuration().groups;
        let group = if self.crowded && self.entropy.percent(95) {
            groups - 1
        } else {
            self.entropy.below(u64::from(groups) + wrong) as u16
        };
        let index = self.entropy.below(namespace.handles.len() as u64 + wrong);
        model.identifier(group, index as usize)
    }

    // -------------------------------------------------------------------------------- admin --

    fn identify(&mut self, model: &Model, nsid: u32) -> Command {
        let cns = if self.mistake() {
            self.entropy.below(256) as u8
        } else {
            self.entropy.pick(&STRUCTURES)
        };
        let list = matches!(cns, 0x02 | 0x07 | 0x10 | 0x1a);
        let small = self.entropy.between(1, 5) as u32;
        let any = self.entropy.pick(&[nsid, small, ALL]);
        Command::Identify {
            cns,
            nsid: if list && !self.mistake() {
                self.entropy.below(5) as u32
            } else {
                any
            },
            controller: match cns {
                0x1c => self.entropy.pick(&[u16::MAX, 1, model.drive.controllers_max + 1]),
                _ => self.entropy.below(4) as u16,
            },
            command_set: u8::from(self.mistake()),
            specific: self.entropy.below(3) as u16,
        }
    }

    fn log(&mut self) -> u8 {
        if self.mistake() {
            self.entropy.below(256) as u8
        } else {
            self.entropy.pick(&LOGS)
        }
    }

    fn get_log(&mut self, _model: &Model, nsid: u32) -> Command {
        let whole = self.entropy.percent(75);
        let offset = if whole {
            0
        } else if self.mistake() {
            self.entropy.pick(&[3, 4100, 1 << 20, 1 << 32, u64::MAX])
        } else {
            4 * self.entropy.below(140)
        };
        let log = self.log();
        Command::GetLog(GetLog {
            log,
            nsid: if log == 0x02 && !self.mistake() {
                self.entropy.pick(&[0, ALL])
            } else {
                nsid
            },
            parameter: self.entropy.below(2) as u8,
            retain: self.entropy.percent(40),
            group: u16::from(!self.mistake()),
            dwords: if whole {
                self.entropy.pick(&[1024, 1041, 2048])
            } else if self.mistake() {
                self.entropy.pick(&[262_144, 262_145, 1 << 20])
            } else {
                self.entropy.between(1, 200) as u32
            },
            offset,
            by_index: self.mistake(),
        })
    }

    fn feature_number(&mut self) -> u8 {
        if self.mistake() {
            self.entropy.below(256) as u8
        } else {
            self.entropy.pick(&FEATURES)
        }
    }

    fn feature_value(&mut self, setting: bool) -> u32 {
        match self.entropy.below(if setting { 5 } else { 3 }) {
            0 => self.entropy.below(2) as u32,
            1 => 1 | (self.entropy.below(3) as u32) << 20,
            2 => (self.entropy.below(8) as u32) << 16 | self.entropy.below(3) as u32,
            3 => self.entropy.below(1 << 32) as u32,
            _ => self.entropy.below(1 << 10) as u32,
        }
    }

    fn set_feature(&mut self, nsid: u32) -> Command {
        let feature = loop {
            let feature = self.feature_number();
            // These features have their own class.
            if !matches!(feature, 0x1d | 0x1e) {
                break feature;
            }
        };
        let of_namespace = matches!(feature, 0x05 | 0x84);
        let free = self.feature_value(true);
        let dword11 = match feature {
            _ if self.mistake() => free,
            0x02 => free & 0xe0,
            0x04 => self.entropy.pick(&[313, 314, 300, 0, 343]) | self.entropy.pick(&[0, 1 << 20]),
            0x05 => free & 0xffff,
            0x07 => free & 0x000f_000f,
            0x09 => free & 0x1_0001,
            0x0b => self.entropy.pick(&[0, 0x100, 0x41ff, 0x4106, free]),
            0x0f => self.entropy.pick(&[0, 1, 5_000, 100_000]),
            0x18 => 1 | self.entropy.pick(&[0, 4 << 16]),
            0x81 => self.entropy.below(2) as u32,
            0x84 => u32::from(self.entropy.percent(30)),
            _ => free,
        };
        let bytes = match feature {
            0x0e => 8,
            0x16 => 512,
            0x81 if dword11 & 1 == 1 => 16,
            0x81 => 8,
            0xc5 => 4096,
            _ => 0,
        };
        let mut data: Vec<u8> = (0..bytes).map(|_| self.entropy.below(256) as u8).collect();
        if feature == 0x16 && !self.mistake() {
            data.fill(0);
            data[0] = self.entropy.below(2) as u8;
            data[2] = self.entropy.below(2) as u8;
        }
        if feature == 0xc5 {
            data[11] = self.entropy.below(2) as u8;
            data[12] = self.entropy.below(2) as u8;
            data[0] = self.entropy.below(3) as u8;
            data[1] = 0;
            if !self.mistake() {
                data[2..6].sort_unstable();
            }
            if self.mistake() {
                data[11] = self.entropy.below(4) as u8;
                data[12] = self.entropy.below(3) as u8;
            }
        }
        Command::SetFeature(SetFeature {
            feature,
            save: self.entropy.percent(25),
            nsid: match of_namespace {
                true if self.entropy.percent(10) => ALL,
                true => nsid,
                false if self.mistake() => nsid,
                false => self.entropy.pick(&[0, ALL]),
            },
            dword11,
            dword12: 0,
            data,
        })
    }

    /// Feature 1Eh, which selects the logged events of placement handles.
    fn set_events(&mut self, model: &Model, nsid: u32) -> Command {
        let handles = model
            .namespaces
            .get(&nsid)
            .map_or(1, |namespace| namespace.handles.len() as u64);
        let wrong = u64::from(self.mistake());
        let handle = self.entropy.below(handles + wrong) as u32;
        let mut data: Vec<u8> = EVENT_TYPES.into_iter().filter(|_| self.entropy.percent(70)).collect();
        if self.mistake() {
            data.push(self.entropy.below(256) as u8);
        }
        Command::SetFeature(SetFeature {
            feature: 0x1e,
            save: self.entropy.percent(50),
            nsid: if self.entropy.percent(10) { ALL } else { nsid },
            dword11: (data.len() as u32) << 16 | handle,
            dword12: u32::from(self.entropy.percent(85)),
            data,
        })
    }

    fn asynchronous(&mut self, model: &Model, controller: u16) -> Command {
        let requests = &model.controllers[&controller].requests;
        match self.entropy.below(5) {
            0 => Command::Abort {
                queue: u16::from(self.mistake()),
                cid: if requests.is_empty() || self.entropy.percent(20) {
                    self.entropy.below(1 << 16) as u16
                } else {
                    requests[self.entropy.below(requests.len() as u64) as usize]
                },
            },
            // Reads the log pages that events name.
            1 => Command::GetLog(GetLog {
                log: self.entropy.pick(&[0x02, 0x04, 0x0f, 0x09, 0x81]),
                nsid: 0,
                parameter: 0,
                retain: self.entropy.percent(20),
                group: 1,
                dwords: 1024,
                offset: 0,
                by_index: false,
            }),
            _ => Command::AsyncEvent,
        }
    }

    fn namespace_command(&mut self, model: &Model, controller: u16, nsid: u32) -> Command {
        let existing: Vec<u32> = model.namespaces.keys().copied().collect();
        let detached: Vec<u32> = existing
            .iter()
            .copied()
            .filter(|nsid| !model.namespaces[nsid].is_attached(controller))
            .collect();
        match self.entropy.below(8) {
            0..3 => Command::Create(self.create(model)),
            3 if self.mistake() => Command::Manage {
                nsid: ALL,
                operation: self.entropy.below(3) as u8 + 1,
            },
            3 => Command::Manage {
                nsid: if existing.is_empty() {
                    nsid
                } else {
                    self.entropy.pick(&existing)
                },
                operation: 1,
            },
            4..7 if !detached.is_empty() => {
                let nsid = self.entropy.pick(&detached);
                self.attach(model, controller, nsid, 0)
            }
            _ => self.attach(model, controller, nsid, 1),
        }
    }

    fn attach(&mut self, model: &Model, controller: u16, nsid: u32, operation: u8) -> Command {
        let mut controllers = vec![controller];
        if self.entropy.percent(30) || self.mistake() {
            controllers.extend(model.controllers.keys().copied());
        }
        if self.mistake() {
            controllers.push(self.entropy.below(10) as u16);
        } else {
            controllers.sort_unstable();
            controllers.dedup();
        }
        let count = if self.mistake() {
            self.entropy.pick(&[0, 1, 2048, u16::MAX])
        } else {
            controllers.len() as u16
        };
        let operation = if self.mistake() {
            self.entropy.below(16) as u8
        } else {
            operation
        };
        Command::Attach {
            nsid,
            operation,
            controllers,
            count,
        }
    }

    fn create(&mut self, model: &Model) -> Create {
        let format = if self.mistake() {
            self.entropy.below(64) as u8
        } else {
            self.entropy.below(4) as u8
        };
        let block_bytes = super::model::BLOCK_BYTES
            .get(usize::from(format))
            .copied()
            .unwrap_or(4096);
        let free = model.pages_free() * model.drive.page_bytes / block_bytes;
        let blocks = match self.entropy.below(4) {
            _ if self.mistake() => self.entropy.pick(&[0, free + 1, u64::MAX, 1 << 52]),
            0 => free.max(1),
            1 => self.entropy.between(1, 300),
            _ => self.entropy.between(1, free.max(1)),
        };
        let capacity = if self.mistake() {
            self.entropy.below(blocks.saturating_add(2).max(1))
        } else {
            blocks
        };
        let handles = model.configuration().handles;
        let mut handle_list: Vec<u16> = (0..handles).filter(|_| self.entropy.percent(60)).collect();
        if self.mistake() {
            handle_list.push(self.entropy.below(u64::from(handles) + 2) as u16);
        }
        let count = if self.mistake() {
            self.entropy.pick(&[handles + 1, 129, u16::MAX])
        } else {
            handle_list.len() as u16
        };
        Create {
            blocks,
            capacity,
            format,
            extended: self.entropy.percent(70),
            protection: u8::from(self.mistake()),
            shared: self.entropy.percent(70),
            ana_group: u32::from(self.mistake()),
            nvm_set: u16::from(self.mistake()),
            endurance_group: if self.mistake() {
                2
            } else {
                self.entropy.below(2) as u16
            },
            command_set: if self.mistake() { 2 } else { 0 },
            handles: count,
            handle_list,
        }
    }

    /// Creates more small namespaces than identifiers exist.
    fn fill_identifiers(&mut self, model: &Model, controller: u16) -> Operation {
        let mut create = self.create(model);
        (create.blocks, create.capacity, create.handles) = (1, 1, 0);
        for _ in 0..NN {
            let planned = self.submit(controller, Command::Create(create.clone()));
            self.planned.push(planned);
        }
        // The small namespaces would hinder all other operations.
        let nsid = ALL;
        self.planned.insert(
            0,
            Operation::Submit {
                controller,
                cid: 0,
                command: Command::Manage { nsid, operation: 1 },
            },
        );
        self.submit(controller, Command::Create(create))
    }

    /// Feature 1Dh. A change requires a drive without namespaces, so they are mostly deleted first.
    fn switch_placement(&mut self, model: &Model) -> Command {
        let wrong = u64::from(self.mistake());
        let index = self.entropy.below(model.drive.configurations.len() as u64 + wrong);
        let set = Command::SetFeature(SetFeature {
            feature: 0x1d,
            save: self.entropy.percent(50),
            nsid: self.entropy.pick(&[0, ALL]),
            dword11: if self.mistake() {
                2
            } else {
                self.entropy.below(2) as u32
            },
            dword12: (index as u32) << 8 | u32::from(self.entropy.percent(70)),
            data: Vec::new(),
        });
        if model.namespaces.is_empty() || self.entropy.percent(20) {
            return set;
        }
        let controller = self.controller(model);
        let create = Command::Create(self.create(model));
        for command in [create, set] {
            let planned = self.submit(controller, command);
            self.planned.push(planned);
        }
        Command::Manage {
            nsid: ALL,
            operation: 1,
        }
    }

    /// Queue mistakes are more frequent than other mistakes, because few such commands exist.
    fn queue_mistake(&mut self) -> bool {
        self.mistake() || self.entropy.percent(4)
    }

    fn queue_command(&mut self, model: &Model) -> QueueCommand {
        let most = u64::from(model.drive.io_queues_max) + u64::from(self.queue_mistake());
        let id = if self.queue_mistake() {
            self.entropy.pick(&[0, 100, u16::MAX])
        } else {
            self.entropy.between(1, most) as u16
        };
        let entries = if self.queue_mistake() {
            self.entropy.pick(&[1, 4097, 65536])
        } else {
            self.entropy.pick(&[2, 3, 4, 9, 64])
        };
        let (contiguous, misaligned) = (!self.queue_mistake(), self.queue_mistake());
        match self.entropy.below(8) {
            0..3 => QueueCommand::CreateCompletion {
                id,
                entries,
                vector: if self.queue_mistake() {
                    100
                } else {
                    self.entropy.below(most) as u16
                },
                interrupts: self.entropy.percent(70),
                contiguous,
                misaligned,
            },
            3 | 4 => {
                let completion = self.entropy.between(1, most) as u16;
                QueueCommand::CreateSubmission {
                    id,
                    entries,
                    completion,
                    contiguous,
                    misaligned,
                }
            }
            5 => QueueCommand::DeleteSubmission { id },
            6 => QueueCommand::DeleteCompletion { id },
            _ => QueueCommand::Shadow { misaligned },
        }
    }

    fn little(&mut self, nsid: u32) -> Command {
        match self.entropy.below(5) {
            0 => Command::SelfTest {
                nsid: self.entropy.pick(&[0, ALL, nsid]),
                code: if self.mistake() {
                    self.entropy.below(16) as u8
                } else {
                    self.entropy.pick(&[1, 2, 0xf])
                },
            },
            1 => Command::DirectiveSend(DirectiveSend {
                nsid: self.entropy.pick(&[ALL, nsid]),
                operation: if self.mistake() { self.entropy.below(3) as u8 } else { 1 },
                kind: if self.mistake() { self.entropy.below(4) as u8 } else { 0 },
                enable: self.entropy.percent(70),
                target: self.entropy.below(4) as u8,
            }),
            2 | 3 => Command::DirectiveReceive(DirectiveReceive {
                nsid: self.entropy.pick(&[ALL, nsid]),
                operation: if self.mistake() { self.entropy.below(3) as u8 } else { 1 },
                kind: if self.mistake() { self.entropy.below(4) as u8 } else { 0 },
                dwords: if self.mistake() {
                    262_145
                } else {
                    self.entropy.pick(&[1, 1024, 2048])
                },
            }),
            _ => {
                let admin = self.entropy.percent(50);
                // Opcodes that the drive does not support, or that only PCI Express has.
                let opcode = match admin {
                    true => self.entropy.pick(&[
                        0x00, 0x01, 0x04, 0x05, 0x0e, 0x10, 0x11, 0x1c, 0x7c, 0x7f, 0x81, 0x82, 0xc0, 0xff,
                    ]),
                    false => self
                        .entropy
                        .pick(&[0x0d, 0x0e, 0x11, 0x15, 0x18, 0x20, 0x79, 0x7f, 0x80, 0xff]),
                };
                Command::Other {
                    admin,
                    opcode,
                    nsid,
                    fuse: if self.mistake() { self.entropy.below(3) as u8 } else { 0 },
                }
            }
        }
    }
}
