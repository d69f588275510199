//! Runs operations on a drive and on the model, and compares all results that a host can see.

mod commands;
mod controllers;
mod queues;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use nvme::fault::FaultPlan;
use nvme::{AcceptedCommand, ControllerKind, HostIdentity, HostTransport, Subsystem};
use nvme_spec::Status;
use nvme_spec::register::Property;
use ssd::{Placement, RgId, RuhId};

use super::apply::{Check, equal};
use super::front::Front;
use super::generate::Setup;
use super::judge::Submission;
use super::model::{ALL, AsyncEvent, Completion, Drive, Model, TRANSFER_MAX, Unit};
use super::operation::{Command, GetLog, Kind, Operation, Range};
use super::pages::parse_configurations;
use super::storage::{Control, Fault};
use super::wire::u16_at;

/// Event counts.
#[derive(Clone, Debug, Default)]
pub struct Coverage(pub BTreeMap<String, u64>);

impl Coverage {
    pub fn note(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    pub fn get(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    pub fn merge(&mut self, other: &Coverage) {
        for (what, times) in &other.0 {
            *self.0.entry(what.clone()).or_default() += times;
        }
    }
}

/// CC of an enabled controller with entries of 64 and 16 bytes.
const ENABLE: u64 = 0x0046_0001;
/// The same with CC.SHN = normal shutdown.
const SHUT_DOWN: u64 = ENABLE | 1 << 14;

/// Completion that a host sees.
#[derive(Clone, Copy, Debug)]
struct CommandReport {
    status: u16,
    do_not_retry: bool,
    more: bool,
    result: u64,
    /// The completion waited for durability.
    durable: bool,
}

/// A drive beside its model.
pub struct Run {
    pub subsystem: Subsystem,
    pub model: Model,
    pub coverage: Coverage,
    control: Arc<Control>,
    late: VecDeque<(u16, Submission, AcceptedCommand)>,
    /// Controllers that are used through queues.
    fronts: BTreeMap<u16, Front>,
    /// Asynchronous completions that came through queues.
    events: BTreeMap<u16, Vec<Completion>>,
    next_cid: u16,
    /// Statistics of device actions that RUAMW cannot predict.
    surprises: u64,
}

impl Run {
    /// A new drive with a first host.
    pub fn new(setup: &Setup) -> Result<Run, String> {
        let (storage, control) = setup.storage();
        let made = Subsystem::new(setup.config.clone(), Box::new(storage));
        let mut subsystem = made.map_err(|error| format!("the drive cannot be made: {error}"))?;
        let host = HostIdentity { nqn: String::new(), id: [9; 16] };
        let id = subsystem.connect(0, HostTransport::Pcie, ControllerKind::Io, host);
        let id = id.map_err(|failure| format!("the first host: {failure:?}"))?;
        subsystem.property_set(0, id, Property::Cc, ENABLE);
        let drive = learn(&mut subsystem, id, setup)?;
        let mut model = Model::new(drive);
        model.connect(id, Kind::Pcie, [9; 16]);
        model.establish(id);
        model.controllers.get_mut(&id).expect("just connected").ready = true;
        if setup.config.namespace {
            let block_bytes = super::model::BLOCK_BYTES[usize::from(setup.config.format)];
            let blocks = model.drive.pages * model.drive.page_bytes / block_bytes;
            let fdp = setup.config.fdp;
            let handles = if fdp { (0..model.configuration().handles).collect() } else { vec![0] };
            model.put_namespace(1, setup.config.format, blocks, handles);
            let namespace = model.namespaces.get_mut(&1).expect("just put in");
            (namespace.shared, namespace.everyone, namespace.host_specified) = (true, true, fdp);
            namespace.extended = namespace.metadata_bytes() > 0;
        }
        Ok(Run {
            subsystem,
            model,
            coverage: Coverage::default(),
            control,
            late: VecDeque::new(),
            fronts: BTreeMap::new(),
            events: BTreeMap::new(),
            next_cid: 0,
            surprises: 0,
        })
    }

    /// Runs one operation and checks all its visible effects.
    pub fn step(&mut self, operation: &Operation) -> Check {
        self.coverage.note("operations");
        self.flush_others(commands_stay(operation))?;
        match operation {
            Operation::Connect { kind, host, enable, queues } => self.connect(*kind, *host, *enable, *queues)?,
            Operation::Time { ns, tick } => self.pass_time(*ns, *tick)?,
            Operation::Finish => {
                if let Some((controller, submission, accepted)) = self.late.pop_front() {
                    self.execute(controller, submission, accepted)?;
                }
            }
            Operation::Fail { fault } => {
                // The model has room for one fault, so an unused one is disarmed first.
                self.disarm();
                self.control.arm(Some(*fault));
                self.model.fault = Some(*fault);
                if *fault == Fault::Planned {
                    let plan = "[[fault]]\nkind = \"error\"\nstatus = \"internal_error\"\ntimes = 1\n";
                    self.plan(Some(FaultPlan::parse(plan).expect("a plan")));
                }
                return Ok(());
            }
            Operation::Disconnect { controller }
            | Operation::Reset { controller, .. }
            | Operation::Enable { controller }
            | Operation::ShutDown { controller }
            | Operation::KeepAliveTime { controller, .. }
            | Operation::HeardOf { controller }
            | Operation::Submit { controller, .. }
            | Operation::Begin { controller, .. }
            | Operation::DeleteInFlight { controller, .. }
            | Operation::Doorbell { controller, .. }
            | Operation::ResetSubsystem { controller }
            | Operation::ReadInPieces { controller, .. } => {
                if self.is_possible(*controller, operation) {
                    self.step_of_controller(*controller, operation)?;
                }
            }
        }
        self.after()
    }

    /// True if the controller exists. Discovery controllers have no I/O queues (Connect refuses
    /// them).
    fn is_possible(&self, controller: u16, operation: &Operation) -> bool {
        let Some(its) = self.model.controllers.get(&controller) else {
            return false;
        };
        match operation {
            Operation::Submit { command, .. } | Operation::Begin { command, .. } => its.is_io() || command.is_admin(),
            Operation::DeleteInFlight { .. } | Operation::Doorbell { .. } => {
                its.ready && self.fronts.contains_key(&controller)
            }
            Operation::ResetSubsystem { .. } => self.fronts.contains_key(&controller),
            _ => true,
        }
    }

    fn step_of_controller(&mut self, controller: u16, operation: &Operation) -> Check {
        let now = self.model.now;
        match operation {
            Operation::Disconnect { .. } => self.disconnect(controller),
            Operation::Reset { by_host, .. } => self.reset(controller, *by_host)?,
            Operation::Enable { .. } => self.enable(controller)?,
            Operation::ShutDown { .. } => self.shut_down(controller)?,
            Operation::KeepAliveTime { ms, .. } => {
                self.subsystem.set_keep_alive(controller, *ms);
                self.its(controller).keep_alive_ms = ms.next_multiple_of(100);
            }
            Operation::HeardOf { .. } => {
                self.subsystem.record_message(now, controller);
                self.its(controller).heard_ns = now;
            }
            Operation::Submit { cid, command, .. } => {
                let submission = self.submission(controller, *cid, command);
                if self.fronts.contains_key(&controller) {
                    return self.with_front(controller, |run, front| run.submit(front, controller, submission, false));
                }
                if let Some((submission, accepted)) = self.begin(controller, submission)? {
                    self.execute(controller, submission, accepted)?;
                }
            }
            Operation::Begin { cid, command, .. } => {
                let submission = self.submission(controller, *cid, command);
                if self.fronts.contains_key(&controller) {
                    return self.with_front(controller, |run, front| run.submit(front, controller, submission, true));
                }
                match self.begin(controller, submission)? {
                    Some((submission, accepted)) if submission.data.is_empty() => {
                        self.execute(controller, submission, accepted)?;
                    }
                    Some((submission, accepted)) => self.late.push_back((controller, submission, accepted)),
                    None => {}
                }
            }
            Operation::DeleteInFlight { how, .. } => {
                self.with_front(controller, |run, front| run.delete_in_flight(front, controller, *how))?;
            }
            Operation::Doorbell { no_queue, .. } => {
                self.with_front(controller, |run, front| {
                    front.ring_wrongly(&mut run.subsystem, now, *no_queue);
                    Ok(())
                })?;
                let event = if *no_queue { AsyncEvent::DOORBELL_REGISTER } else { AsyncEvent::DOORBELL_VALUE };
                self.model.note_doorbell(controller, event);
            }
            Operation::ResetSubsystem { .. } => self.reset_subsystem(controller)?,
            Operation::ReadInPieces { log, parameter, pieces, .. } => {
                self.read_in_pieces(controller, *log, *parameter, pieces)?
            }
            _ => unreachable!("not of a controller"),
        }
        Ok(())
    }

    fn its(&mut self, controller: u16) -> &mut super::model::Controller {
        self.model.controllers.get_mut(&controller).expect("connected")
    }

    // ---------------------------------------------------------------------- after every step --

    fn after(&mut self) -> Check {
        let ids: Vec<u16> = self.model.controllers.keys().copied().collect();
        for id in ids {
            let found = self.take_events(id)?;
            let expected: Vec<Completion> = self.its(id).owed.drain(..).collect();
            equal(&format!("asynchronous completions of controller {id}"), &found, &expected)?;
            for completion in found {
                self.coverage
                    .note(format!("asynchronous completion {:03x}h {:06x}h", completion.status, completion.result));
                self.coverage.note(format!("status {:03x}h", completion.status));
            }
        }
        self.follow_surprises()
    }

    /// A device that is short of space closes reclaim units early and places data in other groups
    /// than requested. RUAMW is then taken from the device, as long as it is possible. With a time
    /// limit, the start of a reclaim unit matters too, and the model then predicts no more about
    /// these units.
    fn follow_surprises(&mut self) -> Check {
        let stats = self.subsystem.device().stats();
        let surprises = stats.units_closed_early + stats.pages_redirected;
        if surprises == self.surprises || !self.model.drive.exact_units {
            return Ok(());
        }
        self.surprises = surprises;
        self.coverage.note("reclaim units closed early, or data redirected");
        if self.model.drive.time_limit_s > 0 {
            self.model.drive.exact_units = false;
            return Ok(());
        }
        let configuration = self.model.configuration();
        let unit_pages = self.model.unit_pages();
        for (group, handle) in
            (0..configuration.groups).flat_map(|group| (0..configuration.handles).map(move |handle| (group, handle)))
        {
            let placement = Placement { group: RgId(group), handle: RuhId(handle) };
            let available =
                self.subsystem.device().available_media_writes(placement).expect("a placement of the device");
            let available = u64::from(available);
            if available > unit_pages {
                return Err(format!("{available} pages are available in a reclaim unit of {unit_pages}"));
            }
            if available != self.model.available_pages((group, handle)) {
                let written_pages = unit_pages - available;
                let since_ns = (written_pages > 0).then_some(self.model.now);
                self.model.units.insert((group, handle), Unit { written_pages, since_ns });
            }
        }
        Ok(())
    }

    /// Final checks. The device must be consistent, every block must read back, and the counters
    /// must be right.
    pub fn finish(&mut self) -> Check {
        self.disarm();
        self.flush_others(None)?;
        for event in &self.model.host_events {
            self.coverage.note(format!("host event {:02x}h", event.kind));
        }
        self.late.clear();
        self.subsystem.device().check().map_err(|problem| format!("the device: {problem}"))?;
        while matches!(self.model.sanitize, super::model::Sanitize::Running { .. }) {
            self.step(&Operation::Time { ns: 1, tick: true })?;
        }
        let controllers: Vec<u16> =
            self.model.controllers.iter().filter(|(_, its)| its.ready && its.is_io()).map(|(&id, _)| id).collect();
        for &controller in &controllers {
            for nsid in self.model.formatted(controller, ALL) {
                self.read_all(controller, nsid)?;
            }
            for (log, parameter) in
                [(0x01, 0), (0x02, 0), (0x06, 0), (0x21, 0), (0x22, 0), (0x23, 0), (0x23, 1), (0x81, 0)]
            {
                let command = Command::GetLog(GetLog {
                    log,
                    nsid: 0,
                    parameter,
                    retain: true,
                    group: 1,
                    dwords: 1024,
                    offset: 0,
                    by_index: false,
                });
                self.step(&Operation::Submit { controller, cid: 0, command })?;
            }
        }
        Ok(())
    }

    fn read_all(&mut self, controller: u16, nsid: u32) -> Check {
        let namespace = &self.model.namespaces[&nsid];
        let (size, step) = (namespace.blocks.len() as u64, TRANSFER_MAX / namespace.block_bytes());
        for first in (0..size).step_by(step as usize) {
            let count = step.min(size - first) as u32;
            let command = Command::Read { nsid, range: Range { first, count } };
            self.step(&Operation::Submit { controller, cid: 0, command })?;
        }
        Ok(())
    }
}

/// Controller whose commands may stay in its queues during an operation.
fn commands_stay(operation: &Operation) -> Option<u16> {
    match operation {
        Operation::Begin { controller, .. }
        | Operation::Submit { controller, .. }
        | Operation::Reset { controller, .. }
        | Operation::Disconnect { controller }
        | Operation::DeleteInFlight { controller, .. }
        | Operation::ResetSubsystem { controller } => Some(*controller),
        _ => None,
    }
}

/// Runs an admin command that must succeed. Returns its data.
fn execute_admin(subsystem: &mut Subsystem, now: u64, controller: u16, command: &Command) -> Result<Vec<u8>, String> {
    let entry = command.wire().entry(0);
    let mut data = Vec::new();
    let accepted = subsystem.accept(controller, 0, &entry).map_err(|failure| format!("{command:?}: {failure:?}"))?;
    let outcome = subsystem.execute(now, accepted, &mut data);
    let reply = outcome.reply.ok_or("no completion")?;
    match reply.status {
        Status::SUCCESS => Ok(data),
        failed => Err(format!("{command:?} failed with {failed}")),
    }
}

/// Reads the properties of a new drive.
fn learn(subsystem: &mut Subsystem, controller: u16, setup: &Setup) -> Result<Drive, String> {
    let log = |log: u8, dwords: u32| {
        Command::GetLog(GetLog {
            log,
            nsid: 0,
            parameter: 0,
            retain: true,
            group: 1,
            dwords,
            offset: 0,
            by_index: false,
        })
    };
    let header = execute_admin(subsystem, 0, controller, &log(0x20, 4))?;
    let bytes = super::wire::u32_at(&header, 4);
    let page = execute_admin(subsystem, 0, controller, &log(0x20, bytes / 4))?;
    let smart = execute_admin(subsystem, 0, controller, &log(0x02, 128))?;
    let page_bytes = setup.config.device.geometry.mapping_unit_bytes;
    Ok(Drive {
        page_bytes,
        pages: setup.capacity_bytes / page_bytes,
        configurations: parse_configurations(&page)?,
        exact_units: setup.exact_units,
        cached: setup.cached,
        time_limit_s: setup.config.reclaim_unit_time_limit_s,
        controllers_max: setup.config.controllers_max,
        io_queues_max: setup.config.io_queues_max,
        initial_fdp: setup.config.fdp,
        temperature_k: u16_at(&smart, 1),
    })
}
