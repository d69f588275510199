//! Random drives and random host operations, mostly sensible, often with one mistake.
//!
//! Every case has its own mix of operations (swarm testing). Some are frequent and some never
//! happen, so the swarm reaches rare states that an even mix would leave quickly.

mod admin;
mod drive;
mod io;

use super::entropy::Entropy;
use super::model::{ALL, Model, Sanitize};
use super::operation::{Command, Format, GetFeature, Kind, Operation};
use super::storage::Fault;

pub use drive::{Setup, setup};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

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
const EMPTYING: [Class; 6] =
    [Class::WriteZeroes, Class::Dataset, Class::Namespace, Class::Placement, Class::Format, Class::Sanitize];

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
        if self.mistake() { self.entropy.below(8) as u16 } else { self.next_cid }
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
                return self.entropy.percent(5).then_some(Operation::Time { ns: 1_000_000, tick: true });
            }
            Sanitize::Failed { exited: false, .. } if self.entropy.percent(5) => {
                let (unrestricted, no_deallocate, verify) = (false, false, false);
                return Some(
                    self.submit(controller, Command::Sanitize { action: 2, unrestricted, no_deallocate, verify }),
                );
            }
            _ => {}
        }
        let has_none = model.formatted(controller, ALL).is_empty();
        if !has_none || self.entropy.percent(75) {
            return None;
        }
        let detached = model.namespaces.iter().find(|(_, namespace)| namespace.shared || namespace.attached.is_empty());
        let command = match detached {
            Some((&nsid, _)) => Command::Attach { nsid, operation: 0, controllers: vec![controller], count: 1 },
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
            kind: self.entropy.pick(&[Kind::Pcie, Kind::Pcie, Kind::Fabrics, Kind::Fabrics, Kind::Discovery]),
            host: self.entropy.below(3) as u8,
            enable: self.entropy.percent(90),
            queues: self.entropy.percent(60),
        }
    }

    /// An existing controller, mostly a working one.
    fn controller(&mut self, model: &Model) -> u16 {
        let good: Vec<u16> =
            model.controllers.iter().filter(|(_, its)| its.ready && its.is_io()).map(|(&id, _)| id).collect();
        let all: Vec<u16> = model.controllers.keys().copied().collect();
        if good.is_empty() || self.entropy.percent(6) { self.entropy.pick(&all) } else { self.entropy.pick(&good) }
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
                Operation::Reset { controller, by_host: self.entropy.percent(70) }
            }
            Class::ShutDown => Operation::ShutDown { controller },
            Class::Time => {
                let ns = match self.entropy.below(4) {
                    0 => self.entropy.below(1_000),
                    1 => self.entropy.below(50_000_000),
                    2 => self.entropy.below(2_000_000_000),
                    _ => self.entropy.below(30_000_000_000),
                };
                Operation::Time { ns, tick: self.entropy.percent(80) }
            }
            Class::KeepAlive => match self.entropy.below(3) {
                0 => Operation::KeepAliveTime { controller, ms: self.entropy.pick(&[0, 50, 100, 5_000, 120_000]) },
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
                Operation::Submit { controller, cid, command }
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
        let fault = self.entropy.pick(&[Fault::Read, Fault::Write, Fault::Discard, Fault::Keep, Fault::Planned]);
        let next = match fault {
            Fault::Read => self.entropy.pick(&[Class::Read, Class::Compare, Class::Verify, Class::Copy]),
            Fault::Write => self.entropy.pick(&[Class::Write, Class::Copy]),
            Fault::Discard if self.entropy.percent(25) => Class::Sanitize,
            Fault::Discard => self.entropy.pick(&[Class::WriteZeroes, Class::Dataset, Class::Format, Class::Namespace]),
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
            1 | 2 => Operation::Doorbell { controller, no_queue: self.entropy.percent(50) },
            _ => {
                // The queue needs a command first.
                self.planned.push(Operation::DeleteInFlight { controller, how: self.entropy.below(3) as u8 });
                for class in [Class::Write, Class::Flush, Class::Read] {
                    let command = self.command(class, model, controller);
                    let cid = self.cid();
                    self.planned.push(Operation::Begin { controller, cid, command });
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
            Operation::Submit { controller, cid, command } => Operation::Begin { controller, cid, command },
            other => other,
        }
    }

    fn submit(&mut self, controller: u16, command: Command) -> Operation {
        let cid = self.cid();
        Operation::Submit { controller, cid, command }
    }

    fn command(&mut self, class: Class, model: &Model, controller: u16) -> Command {
        let nsid = self.nsid(model, controller);
        match class {
            Class::Flush => Command::Flush { nsid: if self.entropy.percent(30) { ALL } else { nsid } },
            Class::Identify => self.identify(model, nsid),
            Class::Log => self.get_log(model, nsid),
            Class::GetFeature => Command::GetFeature(GetFeature {
                feature: self.feature_number(),
                select: if self.mistake() { self.entropy.below(8) as u8 } else { self.entropy.below(4) as u8 },
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
                format: if self.mistake() { self.entropy.below(64) as u8 } else { self.entropy.below(4) as u8 },
                extended: self.entropy.percent(70),
                erase: if self.mistake() { self.entropy.below(8) as u8 } else { self.entropy.below(3) as u8 },
                protection: u8::from(self.mistake()),
            }),
            Class::Sanitize => Command::Sanitize {
                action: if self.mistake() { self.entropy.below(8) as u8 } else { self.entropy.pick(&[1, 2, 2, 2, 4]) },
                unrestricted: self.entropy.percent(50),
                no_deallocate: self.entropy.percent(25),
                verify: self.mistake(),
            },
            Class::Little => self.little(nsid),
            Class::Queues => Command::Queue(self.queue_command(model)),
            _ => self.io_command(class, model, controller, nsid),
        }
    }
}
