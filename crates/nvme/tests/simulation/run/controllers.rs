//! Operations on controllers: connections, resets, shutdown, time and faults.

use std::sync::atomic::Ordering;

use nvme::fault::FaultPlan;
use nvme::{ControllerKind, HostIdentity, HostTransport, PropertyEffect};
use nvme_spec::register::Property;

use super::{ENABLE, Run, SHUT_DOWN};
use crate::simulation::apply::{Check, equal};
use crate::simulation::front::Front;
use crate::simulation::model::status;
use crate::simulation::operation::Kind;
use crate::simulation::storage::Fault;

impl Run {
    pub(super) fn connect(&mut self, kind: Kind, host: u8, enable: bool, queues: bool) -> Check {
        let (transport, purpose) = match kind {
            Kind::Pcie => (HostTransport::Pcie, ControllerKind::Io),
            Kind::Fabrics => (HostTransport::Fabrics, ControllerKind::Io),
            Kind::Discovery => (HostTransport::Fabrics, ControllerKind::Discovery),
        };
        let who = HostIdentity { nqn: format!("nqn.2026-01.org.example:host{host}"), id: [host; 16] };
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
            return Err(format!("a new controller has identifier {id}, which cannot be or is taken"));
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
            Some(front) => front.configure(&mut self.subsystem, now, value as u32, expected == PropertyEffect::Enabled),
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

    pub(super) fn enable(&mut self, controller: u16) -> Check {
        let ready = self.model.controllers[&controller].ready;
        let expected = if ready { PropertyEffect::None } else { PropertyEffect::Enabled };
        self.configure(controller, ENABLE, expected)?;
        let now = self.model.now;
        let its = self.its(controller);
        if !ready {
            (its.ready, its.heard_ns) = (true, now);
        }
        equal("CSTS", self.status(controller), 1)
    }

    pub(super) fn reset(&mut self, controller: u16, by_host: bool) -> Check {
        self.coverage.note(if by_host { "reset by the host" } else { "reset from outside" });
        let ready = self.model.controllers[&controller].ready;
        self.drop_commands(controller);
        if by_host {
            let expected = if ready { PropertyEffect::Reset } else { PropertyEffect::None };
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

    pub(super) fn reset_subsystem(&mut self, controller: u16) -> Check {
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

    pub(super) fn shut_down(&mut self, controller: u16) -> Check {
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

    pub(super) fn disconnect(&mut self, controller: u16) {
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
        let requests = self.model.controllers.get(&controller).map_or(0, |its| its.requests.len());
        if requests > 0 {
            self.coverage.note("event requests lost in flight");
        }
    }

    pub(super) fn pass_time(&mut self, ns: u64, tick: bool) -> Check {
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

    pub(super) fn disarm(&mut self) {
        self.control.arm(None);
        if self.model.fault.take() == Some(Fault::Planned) {
            self.plan(None);
        }
    }

    pub(super) fn plan(&mut self, plan: Option<FaultPlan>) {
        let set = self.subsystem.set_faults(self.model.now, plan);
        set.expect("any drive can fail like that");
    }
}
