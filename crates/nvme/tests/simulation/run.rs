//! Does operations to a drive and to the model, and compares everything that a host can see.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use nvme::{ControllerKind, Direction, Host, PropertyEffect, Subsystem, Transport};
use nvme_spec::register::Property;
use nvme_spec::{Status, command::SubmissionEntry};
use ssd::{Placement, RgId, RuhId};

use super::apply::{Check, Success, Way, equal, same_bytes};
use super::generate::Setup;
use super::judge::{Objection, Submission, blocks_of};
use super::model::{ALL, Completion, Drive, Error, Model, TRANSFER_MAX, Unit, status};
use super::operation::{Command, Kind, Operation, Range};
use super::pages::parse_configurations;
use super::storage::Control;
use super::wire::u16_at;

/// How often things happened.
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

/// CC of an enabled controller: entries of 64 and 16 bytes.
const ENABLE: u64 = 0x0046_0001;
/// The same with CC.SHN = normal shutdown.
const SHUT_DOWN: u64 = ENABLE | 1 << 14;

/// A drive beside its model.
pub struct Run {
    pub subsystem: Subsystem,
    pub model: Model,
    pub coverage: Coverage,
    control: Arc<Control>,
    late: VecDeque<(u16, Submission)>,
    /// Statistics that say that the device did what RUAMW cannot foretell.
    surprises: u64,
}

impl Run {
    /// A new drive with a first host.
    pub fn new(setup: &Setup) -> Result<Run, String> {
        let (storage, control) = setup.storage();
        let made = Subsystem::new(setup.config.clone(), Box::new(storage));
        let mut subsystem = made.map_err(|error| format!("the drive cannot be made: {error}"))?;
        let host = Host { nqn: String::new(), id: [9; 16] };
        let id = subsystem.connect(0, Transport::Pcie, ControllerKind::Io, host);
        let id = id.map_err(|failure| format!("the first host: {failure:?}"))?;
        subsystem.property_set(0, id, Property::Cc, ENABLE);
        let drive = learn(&mut subsystem, id, setup)?;
        let mut model = Model::new(drive);
        model.connect(id, Kind::Pcie, [9; 16]);
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
            surprises: 0,
        })
    }

    /// Does one thing, and checks all that it shows.
    pub fn step(&mut self, operation: &Operation) -> Check {
        match operation {
            Operation::Connect { kind, host, enable } => self.connect(*kind, *host, *enable)?,
            Operation::Time { ns, tick } => self.pass_time(*ns, *tick)?,
            Operation::Finish => {
                // Transports refuse data that came for another layout of blocks; of another length the drive does.
                let late = self.late.pop_front();
                if let Some((controller, submission)) = late.filter(|(_, submission)| self.layout_is_same(submission)) {
                    self.execute(controller, submission)?;
                }
            }
            Operation::Fail { fault } => {
                self.control.arm(Some(*fault));
                self.model.fault = Some(*fault);
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
            | Operation::ReadInPieces { controller, .. } => {
                if self.is_possible(*controller, operation) {
                    self.step_of_controller(*controller, operation)?;
                }
            }
        }
        self.after()
    }

    /// The controller is there; one for discovery has no I/O queues (Connect refuses them).
    fn is_possible(&self, controller: u16, operation: &Operation) -> bool {
        let Some(its) = self.model.controllers.get(&controller) else {
            return false;
        };
        match operation {
            Operation::Submit { command, .. } | Operation::Begin { command, .. } => its.is_io() || command.is_admin(),
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
                self.subsystem.heard_of(now, controller);
                self.its(controller).heard_ns = now;
            }
            Operation::Submit { cid, command, .. } => {
                let submission = self.submission(controller, *cid, command);
                if let Some(submission) = self.begin(controller, submission)? {
                    self.execute(controller, submission)?;
                }
            }
            Operation::Begin { cid, command, .. } => {
                let submission = self.submission(controller, *cid, command);
                if let Some(submission) = self.begin(controller, submission)? {
                    self.late.push_back((controller, submission));
                }
            }
            Operation::ReadInPieces { log, parameter, pieces, .. } => self.read_in_pieces(controller, *log, *parameter, pieces)?,
            _ => unreachable!("not of a controller"),
        }
        Ok(())
    }

    fn its(&mut self, controller: u16) -> &mut super::model::Controller {
        self.model.controllers.get_mut(&controller).expect("connected")
    }

    // ---------------------------------------------------------------------------------------------- controllers --

    fn connect(&mut self, kind: Kind, host: u8, enable: bool) -> Check {
        let (transport, purpose) = match kind {
            Kind::Pcie => (Transport::Pcie, ControllerKind::Io),
            Kind::Fabrics => (Transport::Fabrics, ControllerKind::Io),
            Kind::Discovery => (Transport::Fabrics, ControllerKind::Discovery),
        };
        let who = Host { nqn: format!("nqn.2026-01.org.example:host{host}"), id: [host; 16] };
        let full = self.model.controllers.len() == usize::from(self.model.drive.controllers_max);
        let id = match self.subsystem.connect(self.model.now, transport, purpose, who) {
            Err(failure) => {
                self.coverage.note(format!("connect: {}", failure.status.name()));
                equal("status of a Connect", failure.status.to_u16(), status::CONNECT_BUSY)?;
                equal("do not retry", failure.do_not_retry, false)?;
                return equal("all controllers taken", true, full);
            }
            Ok(id) => id,
        };
        equal("a controller is free", full, false)?;
        if id == 0 || id >= 0xfff0 || self.model.controllers.contains_key(&id) {
            return Err(format!("a new controller has identifier {id}, which cannot be or is taken"));
        }
        self.coverage.note(format!("connect: {kind:?}"));
        self.model.connect(id, kind, [host; 16]);
        if enable { self.enable(id) } else { Ok(()) }
    }

    fn enable(&mut self, controller: u16) -> Check {
        let ready = self.model.controllers[&controller].ready;
        let effect = self.subsystem.property_set(self.model.now, controller, Property::Cc, ENABLE);
        let expected = if ready { PropertyEffect::None } else { PropertyEffect::Enabled };
        equal("effect of CC.EN = 1", effect, expected)?;
        let now = self.model.now;
        let its = self.its(controller);
        if !ready {
            (its.ready, its.heard_ns) = (true, now);
        }
        // RDY, not CFS, SHST 0.
        equal("CSTS", self.subsystem.property_get(controller, Property::Csts) & 0xf, 1)
    }

    fn reset(&mut self, controller: u16, by_host: bool) -> Check {
        self.coverage.note(if by_host { "reset by the host" } else { "reset from outside" });
        if by_host {
            let effect = self.subsystem.property_set(self.model.now, controller, Property::Cc, ENABLE & !1);
            let ready = self.model.controllers[&controller].ready;
            equal("effect of CC.EN = 0", effect, if ready { PropertyEffect::Reset } else { PropertyEffect::None })?;
            if !ready {
                return Ok(());
            }
        } else {
            self.subsystem.reset_controller(controller);
        }
        self.drop_commands(controller);
        self.model.reset(controller);
        equal("CSTS", self.subsystem.property_get(controller, Property::Csts) & 0xf, 0)
    }

    fn shut_down(&mut self, controller: u16) -> Check {
        if !self.model.controllers[&controller].ready {
            return Ok(());
        }
        self.coverage.note("shutdown");
        let effect = self.subsystem.property_set(self.model.now, controller, Property::Cc, SHUT_DOWN);
        equal("effect of CC.SHN", effect, PropertyEffect::Shutdown)?;
        let state = |run: &Run| run.subsystem.property_get(controller, Property::Csts) >> 2 & 3;
        equal("shutdown status", state(self), 1)?;
        if let Some(durable) = self.subsystem.durable() {
            durable.make_durable().expect("this storage can");
        }
        self.subsystem.finish_shutdown(controller);
        equal("shutdown status", state(self), 2)?;
        self.reset(controller, true)
    }

    fn disconnect(&mut self, controller: u16) {
        self.coverage.note("lost connection");
        self.subsystem.disconnect(controller);
        self.model.controllers.remove(&controller);
        self.drop_commands(controller);
    }

    /// Commands whose data is on its way are gone with their queue.
    fn drop_commands(&mut self, controller: u16) {
        let before = self.late.len();
        self.late.retain(|(its, _)| *its != controller);
        if self.late.len() < before {
            self.coverage.note("commands lost in flight");
        }
        let requests = self.model.controllers.get(&controller).map_or(0, |its| its.requests.len());
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
        self.model.fault = None;
    }

    // ------------------------------------------------------------------------------------------------- commands --

    /// Whether the namespace of a command has its metadata where it had it when the command began.
    fn layout_is_same(&self, submission: &Submission) -> bool {
        match submission.command {
            Command::Write { nsid, .. } | Command::Compare { nsid, .. } => {
                self.model.namespaces.get(&nsid).is_none_or(|namespace| namespace.extended == submission.extended)
            }
            _ => true,
        }
    }

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
            Command::Write { nsid, .. } | Command::Compare { nsid, .. } => {
                self.model.namespaces.get(nsid).is_some_and(|namespace| namespace.extended)
            }
            _ => false,
        };
        Submission { cid, command: command.clone(), data, first_tag, extended }
    }

    /// Bytes of as many blocks as a command says, if it may send them.
    fn blocks_to_send(&self, controller: u16, nsid: u32, range: Range, tags: impl FnOnce(&[u64]) -> Vec<u64>) -> Vec<u8> {
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

    /// Asks what a command moves. `None`: it has failed.
    fn begin(&mut self, controller: u16, submission: Submission) -> Result<Option<Submission>, String> {
        let queue = u16::from(!submission.command.is_admin());
        let entry = submission.command.wire().entry(submission.cid);
        let judgement = self.model.judge(controller, &submission);
        match self.subsystem.transfer(controller, queue, &entry) {
            Err(failure) => {
                let reply = self.subsystem.fail(controller, queue, &entry, failure);
                self.complete_failed(controller, &submission, &entry, reply.status, reply.do_not_retry)?;
                equal("result of a failed command", reply.result, 0)?;
                equal("more status information", reply.more, true)?;
                self.disarm();
                Ok(None)
            }
            Ok(transfer) => {
                let way = match transfer.direction {
                    Direction::None => Way::None,
                    Direction::ToController => Way::ToDrive,
                    Direction::ToHost => Way::ToHost,
                };
                if way == Way::ToDrive {
                    equal("bytes from the host", transfer.total_bytes(), submission.data.len())?;
                }
                if judgement.must.is_empty() {
                    let expected = self.model.transfer(controller, &submission);
                    let found = (way, transfer.bytes as u64, transfer.metadata_bytes as u64);
                    equal("transfer", found, expected)?;
                }
                Ok(Some(submission))
            }
        }
    }

    fn execute(&mut self, controller: u16, submission: Submission) -> Check {
        let queue = u16::from(!submission.command.is_admin());
        let entry = submission.command.wire().entry(submission.cid);
        let now = self.model.now;
        let judgement = self.model.judge(controller, &submission);
        let mut data = submission.data.clone();
        let outcome = self.subsystem.execute(now, controller, queue, &entry, &mut data);
        equal("due", outcome.due, now)?;
        if let Some(durable) = &outcome.durable {
            durable.make_durable().expect("this storage can");
        }
        let Some(reply) = outcome.reply else {
            equal("a command without completion", &submission.command, &Command::AsyncEvent)?;
            equal("objections", judgement.must, Vec::new())?;
            self.coverage.note("AsyncEvent waits");
            self.disarm();
            return self.model.hold_event_request(controller, submission.cid);
        };
        if reply.status != Status::SUCCESS {
            self.complete_failed(controller, &submission, &entry, reply.status, reply.do_not_retry)?;
            equal("result of a failed command", reply.result, 0)?;
            equal("data of a failed command", data.len(), 0)?;
            equal("durability of a failed command", outcome.durable.is_some(), false)?;
            self.disarm();
            return Ok(());
        }
        if !judgement.must.is_empty() {
            return Err(format!("success, must fail with one of {:03x?}", judgement.must));
        }
        equal("more status information", reply.more, false)?;
        self.coverage.note(format!("{} ok", submission.command.name()));
        let success = Success { result: reply.result, data, durable: outcome.durable.is_some() };
        self.model.apply(controller, &submission, &success)?;
        self.disarm();
        Ok(())
    }

    fn complete_failed(
        &mut self,
        controller: u16,
        submission: &Submission,
        entry: &SubmissionEntry,
        status: Status,
        do_not_retry: bool,
    ) -> Check {
        let judgement = self.model.judge(controller, submission);
        let found = Objection { status: status.to_u16(), do_not_retry };
        if !judgement.allows(found) {
            return Err(format!("failed with {status} (DNR {do_not_retry}); allowed are {judgement:03x?}"));
        }
        let name = submission.command.name();
        match judgement.must.iter().all(|objection| *objection == found) {
            true => self.coverage.note(format!("{name}: {}", status.name())),
            false => self.coverage.note("failed with one of several"),
        }
        self.model.apply_failure(submission, found);
        self.model.note_failure(controller, Error {
            count: 0,
            queue: u16::from(!submission.command.is_admin()),
            cid: submission.cid,
            status: found.status,
            do_not_retry,
            nsid: entry.nsid.get(),
            opcode: entry.opcode,
        });
        Ok(())
    }

    fn read_in_pieces(&mut self, controller: u16, log: u8, parameter: u8, pieces: &[u16]) -> Check {
        if !self.model.controllers[&controller].ready || self.model.log_bytes(controller, log).is_none() {
            return Ok(());
        }
        let get = |offset: u64, dwords: u32| Command::GetLog {
            log,
            nsid: 0,
            parameter,
            retain: true,
            group: 1,
            dwords,
            offset,
            by_index: false,
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
            same_bytes(&format!("log page {log:#x} from {at} on"), &piece[..end - at as usize], &whole[at as usize..end])?;
            at += u64::from(dwords) * 4;
            turn += 1;
        }
        self.coverage.note(format!("log page {log:02x}h in pieces"));
        Ok(())
    }

    /// Reads a log page without changing anything.
    fn log_now(&mut self, controller: u16, command: &Command) -> Result<Vec<u8>, String> {
        execute_admin(&mut self.subsystem, self.model.now, controller, command)
    }

    // ------------------------------------------------------------------------------------------ after every step --

    fn after(&mut self) -> Check {
        let ids: Vec<u16> = self.model.controllers.keys().copied().collect();
        for id in ids {
            let found = self.subsystem.async_completions(id);
            let found: Vec<Completion> = found
                .iter()
                .map(|completion| Completion {
                    cid: completion.cid,
                    status: completion.reply.status.to_u16(),
                    do_not_retry: completion.reply.do_not_retry,
                    result: completion.reply.result,
                })
                .collect();
            let expected: Vec<Completion> = self.its(id).owed.drain(..).collect();
            equal(&format!("asynchronous completions of controller {id}"), &found, &expected)?;
            for completion in found {
                self.coverage.note(format!("asynchronous completion {:03x} {:06x}", completion.status, completion.result));
            }
        }
        self.follow_surprises()
    }

    /// A device that is short of room closes reclaim units early and places data in other groups than it was told. RUAMW
    /// is then what the device says, as long as it is possible.
    fn follow_surprises(&mut self) -> Check {
        let stats = self.subsystem.device().stats();
        let surprises = stats.units_closed_early + stats.pages_redirected;
        if surprises == self.surprises || !self.model.drive.exact_units {
            return Ok(());
        }
        self.surprises = surprises;
        self.coverage.note("reclaim units closed early, or data redirected");
        let configuration = self.model.configuration();
        let unit_pages = self.model.unit_pages();
        for (group, handle) in (0..configuration.groups).flat_map(|group| (0..configuration.handles).map(move |handle| (group, handle))) {
            let placement = Placement { group: RgId(group), handle: RuhId(handle) };
            let available = self.subsystem.device().available_media_writes(placement).expect("a placement of the device");
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

    /// At the end: the device is consistent, every block reads back, the counters are right.
    pub fn finish(&mut self) -> Check {
        self.disarm();
        self.late.clear();
        self.subsystem.device().check().map_err(|problem| format!("the device: {problem}"))?;
        while matches!(self.model.sanitize, super::model::Sanitize::Running { .. }) {
            self.step(&Operation::Time { ns: 1, tick: true })?;
        }
        let controllers: Vec<u16> = self.model.controllers.iter().filter(|(_, its)| its.ready && its.is_io()).map(|(&id, _)| id).collect();
        for &controller in &controllers {
            for nsid in self.model.formatted(controller, ALL) {
                self.read_all(controller, nsid)?;
            }
            for (log, parameter) in [(0x01, 0), (0x02, 0), (0x06, 0), (0x21, 0), (0x22, 0), (0x23, 0), (0x23, 1), (0x81, 0)] {
                let command = Command::GetLog { log, nsid: 0, parameter, retain: true, group: 1, dwords: 1024, offset: 0, by_index: false };
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

/// An admin command that must succeed; returns its data.
fn execute_admin(subsystem: &mut Subsystem, now: u64, controller: u16, command: &Command) -> Result<Vec<u8>, String> {
    let entry = command.wire().entry(0);
    let mut data = Vec::new();
    subsystem.transfer(controller, 0, &entry).map_err(|failure| format!("{command:?}: {failure:?}"))?;
    let outcome = subsystem.execute(now, controller, 0, &entry, &mut data);
    let reply = outcome.reply.ok_or("no completion")?;
    match reply.status {
        Status::SUCCESS => Ok(data),
        failed => Err(format!("{command:?} failed with {failed}")),
    }
}

/// Asks a new drive what it is.
fn learn(subsystem: &mut Subsystem, controller: u16, setup: &Setup) -> Result<Drive, String> {
    let log = |log: u8, dwords: u32| Command::GetLog { log, nsid: 0, parameter: 0, retain: true, group: 1, dwords, offset: 0, by_index: false };
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
