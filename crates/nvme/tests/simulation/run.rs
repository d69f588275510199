//! Runs operations on a drive and on the model, and compares all results that a host can see.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nvme::fault::FaultPlan;
use nvme::{
    AcceptedCommand, ControllerKind, HostIdentity, HostTransport, PropertyEffect, Subsystem, TransferDirection,
};
use nvme_spec::Status;
use nvme_spec::register::Property;
use ssd::{Placement, RgId, RuhId};

use super::apply::{Check, Success, Way, equal, same_bytes};
use super::front::{Entry, Front, PlacedCommand};
use super::generate::Setup;
use super::judge::{Objection, Submission, blocks_of};
use super::model::{ALL, AsyncEvent, Completion, Drive, Error, Model, TRANSFER_MAX, Unit, status};
use super::operation::{Command, GetLog, Kind, Operation, QueueCommand, Range, SetFeature};
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
        let host = HostIdentity {
            nqn: String::new(),
            id: [9; 16],
        };
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
            let handles = if fdp {
                (0..model.configuration().handles).collect()
            } else {
                vec![0]
            };
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
            Operation::Connect {
                kind,
                host,
                enable,
                queues,
            } => self.connect(*kind, *host, *enable, *queues)?,
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
                    return self.with_front(controller, |run, front| {
                        run.submit(front, controller, submission, false)
                    });
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
                let event = if *no_queue {
                    AsyncEvent::DOORBELL_REGISTER
                } else {
                    AsyncEvent::DOORBELL_VALUE
                };
                self.model.note_doorbell(controller, event);
            }
            Operation::ResetSubsystem { .. } => self.reset_subsystem(controller)?,
            Operation::ReadInPieces {
                log, parameter, pieces, ..
            } => self.read_in_pieces(controller, *log, *parameter, pieces)?,
            _ => unreachable!("not of a controller"),
        }
        Ok(())
    }

    fn its(&mut self, controller: u16) -> &mut super::model::Controller {
        self.model.controllers.get_mut(&controller).expect("connected")
    }

    // -------------------------------------------------------------------------- controllers --

    fn connect(&mut self, kind: Kind, host: u8, enable: bool, queues: bool) -> Check {
        let (transport, purpose) = match kind {
            Kind::Pcie => (HostTransport::Pcie, ControllerKind::Io),
            Kind::Fabrics => (HostTransport::Fabrics, ControllerKind::Io),
            Kind::Discovery => (HostTransport::Fabrics, ControllerKind::Discovery),
        };
        let who = HostIdentity {
            nqn: format!("nqn.2026-01.org.example:host{host}"),
            id: [host; 16],
        };
        let full = self.model.controllers.len() == usize::from(self.model.drive.controllers_max);
        let id = match self.subsystem.connect(self.model.now, transport, purpose, who) {
            Err(failure) => {
                self.coverage.note("connect: all controllers are taken");
                self.coverage.note(format!("status {:03x}h", failure.status.to_u16()));
                equal("status of a Connect", failure.status.to_u16(), status::CONNECT_BUSY)?;
                equal("do not retry", failure.do_not_retry, false)?;
                return equal("all controllers taken", true, full);
            }
            Ok(id) => id,
        };
        equal("a controller is free", full, false)?;
        if id == 0 || id >= 0xfff0 || self.model.controllers.contains_key(&id) {
            return Err(format!(
                "a new controller has identifier {id}, which cannot be or is taken"
            ));
        }
        self.coverage.note(format!("connect: {kind:?}"));
        self.model.connect(id, kind, [host; 16]);
        self.subsystem.establish(id);
        self.model.establish(id);
        if queues && kind == Kind::Pcie {
            self.fronts.insert(id, Front::new(id, self.model.drive.io_queues_max));
        }
        if enable { self.enable(id) } else { Ok(()) }
    }

    /// Writes CC through the host's interface.
    fn configure(&mut self, controller: u16, value: u64, expected: PropertyEffect) -> Check {
        let now = self.model.now;
        match self.fronts.get_mut(&controller) {
            Some(front) => front.configure(
                &mut self.subsystem,
                now,
                value as u32,
                expected == PropertyEffect::Enabled,
            ),
            None => {
                let effect = self.subsystem.property_set(now, controller, Property::Cc, value);
                equal(&format!("effect of CC = {value:#x}"), effect, expected)?;
            }
        }
        Ok(())
    }

    /// RDY, CFS and SHST.
    fn status(&self, controller: u16) -> u64 {
        let csts = match self.fronts.get(&controller) {
            Some(front) => front.status(&self.subsystem).into(),
            None => self.subsystem.property_get(controller, Property::Csts),
        };
        csts & 0xf
    }

    fn enable(&mut self, controller: u16) -> Check {
        let ready = self.model.controllers[&controller].ready;
        let expected = if ready {
            PropertyEffect::None
        } else {
            PropertyEffect::Enabled
        };
        self.configure(controller, ENABLE, expected)?;
        let now = self.model.now;
        let its = self.its(controller);
        if !ready {
            (its.ready, its.heard_ns) = (true, now);
        }
        equal("CSTS", self.status(controller), 1)
    }

    fn reset(&mut self, controller: u16, by_host: bool) -> Check {
        self.coverage.note(if by_host {
            "reset by the host"
        } else {
            "reset from outside"
        });
        let ready = self.model.controllers[&controller].ready;
        self.drop_commands(controller);
        if by_host {
            let expected = if ready {
                PropertyEffect::Reset
            } else {
                PropertyEffect::None
            };
            self.configure(controller, ENABLE & !1, expected)?;
            if !ready {
                return Ok(());
            }
        } else {
            match self.fronts.get_mut(&controller) {
                Some(front) => front.reset_function(&mut self.subsystem),
                None => self.subsystem.reset_controller(controller),
            }
        }
        self.model.reset(controller);
        equal("CSTS", self.status(controller), 0)
    }

    fn reset_subsystem(&mut self, controller: u16) -> Check {
        self.coverage.note("subsystem reset");
        let now = self.model.now;
        let front = self.fronts.get_mut(&controller).expect("asked before");
        front.reset_subsystem(&mut self.subsystem, now);
        let ids: Vec<u16> = self.model.controllers.keys().copied().collect();
        for id in ids {
            self.drop_commands(id);
            self.model.reset(id);
            equal("CSTS", self.status(id), 0)?;
        }
        Ok(())
    }

    fn shut_down(&mut self, controller: u16) -> Check {
        if !self.model.controllers[&controller].ready {
            return Ok(());
        }
        self.coverage.note("shutdown");
        self.configure(controller, SHUT_DOWN, PropertyEffect::Shutdown)?;
        let now = self.model.now;
        match self.fronts.remove(&controller) {
            Some(mut front) => {
                let expected = if self.model.drive.cached { 1 } else { 2 };
                equal("shutdown status", front.status(&self.subsystem) >> 2 & 3, expected)?;
                let syncs = self.control.syncs.load(Ordering::Relaxed);
                front.finish_shutdown(&mut self.subsystem, now)?;
                let synced = self.control.syncs.load(Ordering::Relaxed) > syncs;
                equal("made durable", synced, self.model.drive.cached)?;
                self.fronts.insert(controller, front);
            }
            None => {
                equal("shutdown status", self.status(controller) >> 2, 1)?;
                if let Some(durable) = self.subsystem.flush_handle() {
                    durable.flush().expect("this storage can");
                }
                self.subsystem.finish_shutdown(controller);
            }
        }
        equal("shutdown status", self.status(controller) >> 2, 2)?;
        self.reset(controller, true)
    }

    fn disconnect(&mut self, controller: u16) {
        self.coverage.note("lost connection");
        self.drop_commands(controller);
        self.fronts.remove(&controller);
        self.subsystem.disconnect(controller);
        self.model.disconnect(controller);
    }

    /// Drops commands with late data, because their queue no longer exists.
    fn drop_commands(&mut self, controller: u16) {
        let before = self.late.len();
        self.late.retain(|(its, ..)| *its != controller);
        let front = self.fronts.get_mut(&controller);
        let in_queues = front.as_ref().map_or(0, |front| front.sent.len());
        if let Some(front) = front {
            front.forget();
        }
        self.events.remove(&controller);
        if self.late.len() < before || in_queues > 0 {
            self.coverage.note("commands lost in flight");
        }
        let requests = self
            .model
            .controllers
            .get(&controller)
            .map_or(0, |its| its.requests.len());
        if requests > 0 {
            self.coverage.note("event requests lost in flight");
        }
    }

    fn pass_time(&mut self, ns: u64, tick: bool) -> Check {
        self.model.now += ns;
        if !tick {
            return Ok(());
        }
        let expired = self.subsystem.tick(self.model.now);
        let expected = self.model.tick();
        self.disarm();
        equal("controllers whose host is silent", &expired, &expected)?;
        for controller in expired {
            self.coverage.note("keep alive timeout");
            self.disconnect(controller);
        }
        Ok(())
    }

    fn disarm(&mut self) {
        self.control.arm(None);
        if self.model.fault.take() == Some(Fault::Planned) {
            self.plan(None);
        }
    }

    fn plan(&mut self, plan: Option<FaultPlan>) {
        let set = self.subsystem.set_faults(self.model.now, plan);
        set.expect("any drive can fail like that");
    }

    // ----------------------------------------------------------------------------- commands --

    /// A command with the data that its host sends.
    fn submission(&mut self, controller: u16, cid: u16, command: &Command) -> Submission {
        let first_tag = self.model.next_tag;
        let data = match command {
            Command::Write { nsid, range, .. } => {
                self.model.next_tag += u64::from(range.count);
                let tags: Vec<u64> = (first_tag..self.model.next_tag).collect();
                self.blocks_to_send(controller, *nsid, *range, |_| tags)
            }
            Command::Compare { nsid, range, equal } => {
                let mut data = self.blocks_to_send(controller, *nsid, *range, |stored| stored.to_vec());
                if let Some(byte) = data.last_mut().filter(|_| !equal) {
                    *byte ^= 1;
                }
                data
            }
            other => other.fixed_data(),
        };
        let extended = match command {
            Command::Write { nsid, .. } | Command::Compare { nsid, .. } => self
                .model
                .namespaces
                .get(nsid)
                .is_some_and(|namespace| namespace.extended),
            _ => false,
        };
        let queue = u16::from(!command.is_admin());
        Submission {
            cid,
            command: command.clone(),
            data,
            first_tag,
            extended,
            pointer: None,
            queues: None,
            queue,
        }
    }

    /// Bytes of the blocks that a command may send.
    fn blocks_to_send(
        &self,
        controller: u16,
        nsid: u32,
        range: Range,
        tags: impl FnOnce(&[u64]) -> Vec<u64>,
    ) -> Vec<u8> {
        let Some(namespace) = self.model.active(controller, nsid) else {
            return Vec::new();
        };
        let bytes = u64::from(range.count) * namespace.block_bytes();
        if bytes > TRANSFER_MAX {
            return Vec::new();
        }
        let zeroes = vec![0; range.count as usize];
        let tags = tags(blocks_of(namespace, range).unwrap_or(&zeroes));
        namespace.content(&tags)
    }

    /// Submits a command and returns the data that it moves. `None` if it failed.
    fn begin(
        &mut self,
        controller: u16,
        submission: Submission,
    ) -> Result<Option<(Submission, AcceptedCommand)>, String> {
        let entry = submission.command.wire().entry(submission.cid);
        let judgement = self.model.judge(controller, &submission);
        match self.subsystem.accept(controller, submission.queue, &entry) {
            Err(failure) => {
                let reply = self.subsystem.fail(controller, submission.queue, &entry, failure);
                let report = CommandReport {
                    status: reply.status.to_u16(),
                    do_not_retry: reply.do_not_retry,
                    more: reply.more,
                    result: reply.result,
                    durable: false,
                };
                self.check_outcome(controller, &submission, report, Vec::new())?;
                Ok(None)
            }
            Ok(accepted) => {
                let transfer = accepted.transfer();
                let way = match transfer.direction {
                    TransferDirection::None => Way::None,
                    TransferDirection::ToController => Way::ToDrive,
                    TransferDirection::ToHost => Way::ToHost,
                };
                if way == Way::ToDrive {
                    equal("bytes from the host", transfer.total_bytes(), submission.data.len())?;
                }
                if judgement.must.is_empty() {
                    let expected = self.model.transfer(controller, &submission);
                    let found = (way, transfer.bytes as u64, transfer.metadata_bytes as u64);
                    equal("transfer", found, expected)?;
                }
                Ok(Some((submission, accepted)))
            }
        }
    }

    fn execute(&mut self, controller: u16, submission: Submission, accepted: AcceptedCommand) -> Check {
        let now = self.model.now;
        let mut data = submission.data.clone();
        let outcome = self.subsystem.execute(now, accepted, &mut data);
        equal("due", outcome.due, now)?;
        if let Some(durable) = &outcome.durable {
            durable.flush().expect("this storage can");
        }
        let Some(reply) = outcome.reply else {
            return self.hold(controller, &submission);
        };
        // The host's data stays in the buffer after a success and is sent to no host.
        if reply.status == Status::SUCCESS && self.model.transfer(controller, &submission).0 != Way::ToHost {
            data.clear();
        }
        if reply.status != Status::SUCCESS {
            equal("data of a failed command", data.len(), 0)?;
        }
        let report = CommandReport {
            status: reply.status.to_u16(),
            do_not_retry: reply.do_not_retry,
            more: reply.more,
            result: reply.result,
            durable: outcome.durable.is_some(),
        };
        self.check_outcome(controller, &submission, report, data)
    }

    /// Checks a command without a completion.
    fn hold(&mut self, controller: u16, submission: &Submission) -> Check {
        equal(
            "a command without completion",
            &submission.command,
            &Command::AsyncEvent,
        )?;
        equal("objections", self.model.judge(controller, submission).must, Vec::new())?;
        self.coverage.note("AsyncEvent waits");
        self.disarm();
        self.model.hold_event_request(controller, submission.cid)
    }

    /// Compares the outcome of a command with the model, and applies it to the model.
    fn check_outcome(
        &mut self,
        controller: u16,
        submission: &Submission,
        report: CommandReport,
        data: Vec<u8>,
    ) -> Check {
        let name = submission.command.name();
        let judgement = self.model.judge(controller, submission);
        equal("more status information", report.more, report.status != 0)?;
        if report.status == 0 {
            if !judgement.must.is_empty() {
                return Err(format!("success, must fail with one of {:03x?}", judgement.must));
            }
            self.coverage.note(format!("{name} ok"));
            if matches!(submission.command, Command::HandleStatus { .. }) && self.model.drive.exact_units {
                self.coverage.note("reclaim unit handle status foretold");
            }
            let success = Success {
                result: report.result,
                data,
                durable: report.durable,
            };
            self.model.apply(controller, submission, &success)?;
            self.disarm();
            return Ok(());
        }
        equal("result of a failed command", report.result, 0)?;
        equal("durability of a failed command", report.durable, false)?;
        let (status, do_not_retry) = (report.status, report.do_not_retry);
        let status_name = Status::from_u16(status).name();
        let found = Objection { status, do_not_retry };
        if !judgement.allows(found) {
            return Err(format!(
                "failed with {status_name} (DNR {do_not_retry}); allowed are {judgement:03x?}"
            ));
        }
        match judgement.must.iter().all(|objection| *objection == found) {
            true => {
                self.coverage.note(format!("{name}: {status_name}"));
                self.coverage.note(format!("status {status:03x}h"));
            }
            false => self.coverage.note("failed with one of several"),
        }
        self.model.apply_failure(submission, found);
        let wire = submission.command.wire();
        self.model.note_failure(
            controller,
            Error {
                count: 0,
                queue: submission.queue,
                cid: submission.cid,
                status,
                do_not_retry,
                nsid: wire.nsid,
                opcode: wire.opcode,
            },
        );
        self.disarm();
        Ok(())
    }

    // -------------------------------------------------------------------------- PCI Express --

    /// Runs a closure with the front of a controller.
    fn with_front(&mut self, controller: u16, act: impl FnOnce(&mut Run, &mut Front) -> Check) -> Check {
        let mut front = self.fronts.remove(&controller).expect("a controller with queues");
        let result = act(self, &mut front);
        for seen in std::mem::take(&mut front.seen) {
            self.coverage.note(seen);
        }
        self.fronts.insert(controller, front);
        result
    }

    /// Executes the queued commands of all controllers but one.
    fn flush_others(&mut self, except: Option<u16>) -> Check {
        let ids: Vec<u16> = self.fronts.keys().copied().filter(|&id| Some(id) != except).collect();
        for id in ids {
            self.with_front(id, |run, front| run.flush(front, id))?;
        }
        Ok(())
    }

    /// Executes the queued commands of a controller.
    fn flush(&mut self, front: &mut Front, controller: u16) -> Check {
        if front.sent.is_empty() {
            return Ok(());
        }
        let now = self.model.now;
        front.ring(&mut self.subsystem, now, front.queue);
        let entries = front.work(&mut self.subsystem, now)?;
        let sent = std::mem::take(&mut front.sent);
        self.check_completions(front, controller, sent, entries)
    }

    /// Adds a command to a queue, and executes it unless it should wait for others.
    fn submit(&mut self, front: &mut Front, controller: u16, mut submission: Submission, waits: bool) -> Check {
        if !self.model.controllers[&controller].ready {
            return Ok(());
        }
        let admin = submission.command.is_admin();
        if let Command::Other {
            admin: true,
            opcode: 0x00 | 0x01 | 0x04 | 0x05 | 0x7c,
            ..
        } = submission.command
        {
            // These opcodes are queue commands, which have a separate form.
            return Ok(());
        }
        let cid = submission.cid;
        let outstanding = front.sent.iter().any(|sent| sent.submission.cid == cid);
        let requested = self.model.controllers[&controller].requests.contains(&cid);
        if outstanding || requested && submission.command != Command::AsyncEvent {
            // A host does not use an identifier twice.
            return Ok(());
        }
        if !admin {
            self.make_io_queue(front, controller)?;
        }
        let io_queues = front.io_queues();
        let queue = if admin {
            0
        } else {
            io_queues[usize::from(cid) % io_queues.len()]
        };
        if admin || front.queue != queue || !front.has_room(queue) {
            self.flush(front, controller)?;
        }
        submission.queue = queue;
        submission.queues = Some(self.judge_queues(front, controller, &submission.command));
        let transfer = self.model.transfer(controller, &submission);
        front.put(queue, submission, transfer);
        if admin || !waits {
            self.flush(front, controller)
        } else {
            Ok(())
        }
    }

    /// I/O submission and completion queues that a host may have.
    fn granted(&self, controller: u16) -> (u16, u16) {
        let set = self.model.controllers[&controller].features.get(&(7, 0)).copied();
        let value = set.unwrap_or_else(|| self.model.default_value(7, 0));
        (value as u16 + 1, (value >> 16) as u16 + 1)
    }

    fn judge_queues(&self, front: &Front, controller: u16, command: &Command) -> Vec<u16> {
        match command {
            Command::Queue(command) => front.judge(command, self.granted(controller)),
            // The number of queues is fixed after the first queue exists.
            Command::SetFeature(SetFeature { feature: 7, .. }) if !front.io_completions().is_empty() => {
                vec![status::SEQUENCE_ERROR]
            }
            _ => Vec::new(),
        }
    }

    /// A host creates queues before its first I/O.
    fn make_io_queue(&mut self, front: &mut Front, controller: u16) -> Check {
        if !front.io_queues().is_empty() {
            return Ok(());
        }
        let vector = self.model.now as u16 % (self.model.drive.io_queues_max + 1);
        if front.io_completions().is_empty() {
            let command = QueueCommand::CreateCompletion {
                id: 1,
                entries: 16,
                vector,
                interrupts: true,
                contiguous: true,
                misaligned: false,
            };
            self.queue_command(front, controller, command)?;
        }
        let completion = front.io_completions()[0];
        let command = QueueCommand::CreateSubmission {
            id: 1,
            entries: 16,
            completion,
            contiguous: true,
            misaligned: false,
        };
        self.queue_command(front, controller, command)
    }

    fn queue_command(&mut self, front: &mut Front, controller: u16, command: QueueCommand) -> Check {
        self.next_cid = self.next_cid.wrapping_add(1);
        let submission = self.submission(controller, 0x8000 | self.next_cid & 0x3fff, &Command::Queue(command));
        self.submit(front, controller, submission, false)
    }

    /// Checks the completions of commands in their execution order. The remaining completions are
    /// events.
    fn check_completions(
        &mut self,
        front: &mut Front,
        controller: u16,
        sent: Vec<PlacedCommand>,
        mut entries: Vec<Entry>,
    ) -> Check {
        for sent in sent {
            let (queue, cid) = (sent.submission.queue, sent.submission.cid);
            match entries
                .iter()
                .position(|entry| (entry.queue, entry.cid) == (queue, cid))
            {
                None => self.hold(controller, &sent.submission)?,
                Some(index) => {
                    let entry = entries.remove(index);
                    self.check_completion(front, controller, &sent, entry)?;
                }
            }
        }
        self.note_events(controller, entries)
    }

    fn check_completion(&mut self, front: &mut Front, controller: u16, sent: &PlacedCommand, entry: Entry) -> Check {
        let report = CommandReport {
            status: entry.status,
            do_not_retry: entry.do_not_retry,
            more: entry.more,
            result: entry.result,
            durable: entry.synced,
        };
        let (way, ..) = self.model.transfer(controller, &sent.submission);
        let data = if way == Way::ToHost {
            front.data_of(sent)
        } else {
            Vec::new()
        };
        self.check_outcome(controller, &sent.submission, report, data)?;
        if let Command::Queue(command) = &sent.submission.command
            && entry.status == 0
        {
            front.apply(command);
        }
        Ok(())
    }

    /// Handles completions of event requests, which belong to no command that was just executed.
    fn note_events(&mut self, controller: u16, entries: Vec<Entry>) -> Check {
        for entry in entries {
            equal("queue of an asynchronous completion", entry.queue, 0)?;
            self.events.entry(controller).or_default().push(Completion {
                cid: entry.cid,
                status: entry.status,
                do_not_retry: entry.do_not_retry,
                result: entry.result,
            });
        }
        Ok(())
    }

    /// Deletes a queue with outstanding commands. See [`Operation::DeleteInFlight`].
    fn delete_in_flight(&mut self, front: &mut Front, controller: u16, how: u8) -> Check {
        let queue = front.queue;
        if queue == 0 || front.sent.is_empty() {
            return Ok(());
        }
        let now = self.model.now;
        let command = QueueCommand::DeleteSubmission { id: queue };
        if how == 0 || !front.can_complete_all() {
            // The controller never saw these commands.
            front.sent.clear();
            self.coverage.note("queue deleted: commands not announced");
            return self.queue_command(front, controller, command);
        }
        front.ring(&mut self.subsystem, now, queue);
        let announced = std::mem::take(&mut front.sent);
        let mut held = Vec::new();
        if how == 2 {
            let mut entries = front.process(&mut self.subsystem, now)?;
            for sent in &announced {
                let place = entries
                    .iter()
                    .position(|entry| (entry.queue, entry.cid) == (queue, sent.submission.cid));
                match place.map(|index| entries.remove(index)) {
                    Some(entry) => self.check_completion(front, controller, sent, entry)?,
                    None => held.push(self.carry_out_held(controller, sent)?),
                }
            }
            self.note_events(controller, entries)?;
        }
        self.coverage.note(if how == 1 {
            "queue deleted: commands announced"
        } else {
            "queue deleted: commands carried out"
        });
        self.next_cid = self.next_cid.wrapping_add(1);
        let cid = 0x8000 | self.next_cid & 0x3fff;
        let mut submission = self.submission(controller, cid, &Command::Queue(command));
        submission.queues = Some(Vec::new());
        front.put(0, submission, (Way::None, 0, 0));
        front.ring(&mut self.subsystem, now, 0);
        let entries = front.work(&mut self.subsystem, now)?;
        let (mut of_queue, others): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| entry.queue == queue);
        if how == 1 {
            held = self.check_overtaken_completions(front, controller, &announced, &mut of_queue)?;
        }
        let found: Vec<(u16, u16, bool)> = of_queue
            .iter()
            .map(|entry| (entry.cid, entry.status, entry.do_not_retry))
            .collect();
        let expected = held
            .into_iter()
            .map(|cid| (cid, status::ABORTED_SQ_DELETION, false))
            .collect();
        equal("completions of the deleted queue", found, expected)?;
        let sent = std::mem::take(&mut front.sent);
        self.check_completions(front, controller, sent, others)
    }

    /// The controller chooses the order of queues (NVM Express Base 2.1, round robin arbitration).
    /// It may execute announced commands, from the first one on, before the deletion of their
    /// queue. Takes their completions out of `of_queue`. Returns the commands that wait for
    /// durability.
    fn check_overtaken_completions(
        &mut self,
        front: &mut Front,
        controller: u16,
        announced: &[PlacedCommand],
        of_queue: &mut Vec<Entry>,
    ) -> Result<Vec<u16>, String> {
        let mut held = Vec::new();
        for sent in announced {
            let Some(place) = of_queue.iter().position(|entry| entry.cid == sent.submission.cid) else {
                break;
            };
            if of_queue[place].status == status::ABORTED_SQ_DELETION {
                held.push(self.carry_out_held(controller, sent)?);
            } else {
                let entry = of_queue.remove(place);
                self.check_completion(front, controller, sent, entry)?;
            }
        }
        Ok(held)
    }

    /// Executes a command that waits for durability. Its completion never comes, because its queue
    /// is deleted.
    fn carry_out_held(&mut self, controller: u16, sent: &PlacedCommand) -> Result<u16, String> {
        equal(
            "objections to a command that waits",
            self.model.judge(controller, &sent.submission).must,
            Vec::new(),
        )?;
        let success = Success {
            result: 0,
            data: Vec::new(),
            durable: true,
        };
        self.model.apply(controller, &sent.submission, &success)?;
        self.coverage
            .note(format!("status {:03x}h", status::ABORTED_SQ_DELETION));
        Ok(sent.submission.cid)
    }

    fn read_in_pieces(&mut self, controller: u16, log: u8, parameter: u8, pieces: &[u16]) -> Check {
        if !self.model.controllers[&controller].ready || self.model.log_bytes(controller, log).is_none() {
            return Ok(());
        }
        let get = |offset: u64, dwords: u32| {
            Command::GetLog(GetLog {
                log,
                nsid: 0,
                parameter,
                retain: true,
                group: 1,
                dwords,
                offset,
                by_index: false,
            })
        };
        let bytes = self.model.log_bytes(controller, log).expect("just asked").div_ceil(4) * 4;
        let submission = self.submission(controller, 0, &get(0, bytes as u32 / 4));
        if !self.model.judge(controller, &submission).must.is_empty() {
            return Ok(());
        }
        let whole = self.log_now(controller, &get(0, bytes as u32 / 4))?;
        let (mut at, mut turn) = (0, 0);
        while at < bytes {
            let dwords = u32::from(pieces[turn % pieces.len()]);
            let piece = self.log_now(controller, &get(at, dwords))?;
            let end = (at as usize + piece.len()).min(whole.len());
            same_bytes(
                &format!("log page {log:#x} from {at} on"),
                &piece[..end - at as usize],
                &whole[at as usize..end],
            )?;
            at += u64::from(dwords) * 4;
            turn += 1;
        }
        self.coverage.note(format!("log page {log:02x}h in pieces"));
        Ok(())
    }

    /// Reads a log page without side effects.
    fn log_now(&mut self, controller: u16, command: &Command) -> Result<Vec<u8>, String> {
        execute_admin(&mut self.subsystem, self.model.now, controller, command)
    }

    /// Asynchronous completions that a host received.
    fn take_events(&mut self, controller: u16) -> Result<Vec<Completion>, String> {
        if self.fronts.contains_key(&controller) {
            let now = self.model.now;
            self.with_front(controller, |run, front| {
                let entries = front.work(&mut run.subsystem, now)?;
                run.note_events(controller, entries)
            })?;
            return Ok(self.events.remove(&controller).unwrap_or_default());
        }
        let found = self.subsystem.async_completions(controller);
        let completion = |its: nvme::controller::AsyncCompletion| Completion {
            cid: its.cid,
            status: its.reply.status.to_u16(),
            do_not_retry: its.reply.do_not_retry,
            result: its.reply.result,
        };
        Ok(found.into_iter().map(completion).collect())
    }

    // ---------------------------------------------------------------------- after every step --

    fn after(&mut self) -> Check {
        let ids: Vec<u16> = self.model.controllers.keys().copied().collect();
        for id in ids {
            let found = self.take_events(id)?;
            let expected: Vec<Completion> = self.its(id).owed.drain(..).collect();
            equal(
                &format!("asynchronous completions of controller {id}"),
                &found,
                &expected,
            )?;
            for completion in found {
                self.coverage.note(format!(
                    "asynchronous completion {:03x}h {:06x}h",
                    completion.status, completion.result
                ));
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
            let placement = Placement {
                group: RgId(group),
                handle: RuhId(handle),
            };
            let available = self
                .subsystem
                .device()
                .available_media_writes(placement)
                .expect("a placement of the device");
            let available = u64::from(available);
            if available > unit_pages {
                return Err(format!(
                    "{available} pages are available in a reclaim unit of {unit_pages}"
                ));
            }
            if available != self.model.available_pages((group, handle)) {
                let written_pages = unit_pages - available;
                let since_ns = (written_pages > 0).then_some(self.model.now);
                self.model.units.insert(
                    (group, handle),
                    Unit {
                        written_pages,
                        since_ns,
                    },
                );
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
        self.subsystem
            .device()
            .check()
            .map_err(|problem| format!("the device: {problem}"))?;
        while matches!(self.model.sanitize, super::model::Sanitize::Running { .. }) {
            self.step(&Operation::Time { ns: 1, tick: true })?;
        }
        let controllers: Vec<u16> = self
            .model
            .controllers
            .iter()
            .filter(|(_, its)| its.ready && its.is_io())
            .map(|(&id, _)| id)
            .collect();
        for &controller in &controllers {
            for nsid in self.model.formatted(controller, ALL) {
                self.read_all(controller, nsid)?;
            }
            for (log, parameter) in [
                (0x01, 0),
                (0x02, 0),
                (0x06, 0),
                (0x21, 0),
                (0x22, 0),
                (0x23, 0),
                (0x23, 1),
                (0x81, 0),
            ] {
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
                self.step(&Operation::Submit {
                    controller,
                    cid: 0,
                    command,
                })?;
            }
        }
        Ok(())
    }

    fn read_all(&mut self, controller: u16, nsid: u32) -> Check {
        let namespace = &self.model.namespaces[&nsid];
        let (size, step) = (namespace.blocks.len() as u64, TRANSFER_MAX / namespace.block_bytes());
        for first in (0..size).step_by(step as usize) {
            let count = step.min(size - first) as u32;
            let command = Command::Read {
                nsid,
                range: Range { first, count },
            };
            self.step(&Operation::Submit {
                controller,
                cid: 0,
                command,
            })?;
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
    let accepted = subsystem
        .accept(controller, 0, &entry)
        .map_err(|failure| format!("{command:?}: {failure:?}"))?;
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
