//! Effects of admin commands on namespaces, event requests, self-tests and sanitize.

use super::{Check, Success, equal, same_bytes};
use crate::simulation::judge::Submission;
use crate::simulation::model::{
    ALL, BLOCK_BYTES, Completion, METADATA_BYTES, Model, NN, Namespace, RunningTest, Sanitize, ZEROES, status,
};
use crate::simulation::operation::{Command, Create, Format};

impl Model {
    pub(super) fn apply_admin(&mut self, controller: u16, submission: &Submission, success: &Success) -> Check {
        match &submission.command {
            Command::Identify { .. } => self.check_identify(controller, &submission.command, &success.data)?,
            Command::GetLog(command) => self.read_log(controller, command, &success.data)?,
            Command::GetFeature(command) => self.check_feature(controller, command, success)?,
            Command::SetFeature(command) => self.set_feature(controller, command, success)?,
            Command::AsyncEvent => {
                let event = self.controllers.get_mut(&controller).expect("connected").take_event();
                let event = event.ok_or("an Asynchronous Event Request completed without an event")?;
                equal("event", success.result, event.result())?;
            }
            Command::Abort { queue, cid } => self.abort(controller, *queue, *cid, success)?,
            Command::KeepAlive => self.controllers.get_mut(&controller).expect("connected").heard_ns = self.now,
            Command::Create(create) => self.create(create, success.result)?,
            Command::Manage { nsid, .. } => {
                let any = !self.namespaces.is_empty();
                self.end_test(3, |test| any && (*nsid == ALL && test.nsid != 0 || [*nsid, ALL].contains(&test.nsid)));
                self.delete(*nsid);
            }
            Command::Attach { nsid, operation, controllers, count } => {
                self.attach(*nsid, *operation == 0, &controllers[..usize::from(*count)]);
            }
            Command::SelfTest { code: 0xf, .. } => self.end_test(1, |_| true),
            Command::SelfTest { nsid, code } => {
                self.end_test(0, |_| false);
                self.running_test = Some(RunningTest { code: *code, nsid: *nsid, controller, since: self.now });
            }
            Command::DirectiveSend(_) => {}
            Command::DirectiveReceive(_) => {
                let mut expected = vec![0; 4096];
                let placement = if self.fdp.is_some() { 4 } else { 0 };
                (expected[0], expected[32], expected[64]) = (1 | placement, 1 | placement, placement);
                expected.truncate(success.data.len());
                same_bytes("directives", &success.data, &expected)?;
            }
            Command::Format(Format { nsid, format, extended, .. }) => {
                let formatted = self.formatted(controller, *nsid);
                let any = !formatted.is_empty();
                self.end_test(4, |test| formatted.contains(&test.nsid) || test.nsid == ALL && any);
                self.format(controller, *nsid, *format, *extended);
            }
            Command::Sanitize { action: 1, .. } => {
                if let Sanitize::Failed { exited, .. } = &mut self.sanitize {
                    *exited = true;
                }
            }
            Command::Sanitize { .. } => {
                self.end_test(9, |_| true);
                self.sanitize = Sanitize::Running { dword10: submission.command.wire().cdw[0] };
                // A new sanitize operation clears outstanding events of the previous one (Base
                // Specification, "Sanitize Operations").
                for its in self.controllers.values_mut() {
                    its.waiting.retain(|event| event.log != 0x81);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Records a waiting Asynchronous Event Request. Call it only for a request that may wait.
    pub fn hold_event_request(&mut self, controller: u16, cid: u16) -> Check {
        let its = self.controllers.get_mut(&controller).expect("connected");
        if let Some(event) = its.take_event() {
            return Err(format!("an Asynchronous Event Request waits although there is {event:?}"));
        }
        its.requests.push_back(cid);
        Ok(())
    }

    fn abort(&mut self, controller: u16, queue: u16, cid: u16, success: &Success) -> Check {
        let its = self.controllers.get_mut(&controller).expect("connected");
        let found = its.requests.iter().position(|&request| queue == 0 && request == cid);
        // Bit 0 means that the command was not aborted.
        equal("result", success.result, u64::from(found.is_none()))?;
        if let Some(index) = found {
            its.requests.remove(index);
            its.owed.push_back(Completion { cid, status: status::ABORT_REQUESTED, do_not_retry: false, result: 0 });
        }
        Ok(())
    }

    // --------------------------------------------------------------------------- namespaces --

    fn create(&mut self, create: &Create, result: u64) -> Check {
        let nsid = u32::try_from(result).map_err(|_| format!("namespace identifier {result:#x}"))?;
        if nsid == 0 || nsid > NN || self.namespaces.contains_key(&nsid) {
            return Err(format!("the new namespace has identifier {nsid}, which cannot be or is another's"));
        }
        let handles = match (self.fdp, create.handles) {
            (None, _) => vec![0],
            (Some(_), 0) => vec![self.controllers_handle()],
            (Some(_), count) => create.handle_list[..usize::from(count)].to_vec(),
        };
        self.put_namespace(nsid, create.format, create.blocks, handles);
        let host_specified = self.fdp.is_some() && create.handles > 0;
        let namespace = self.namespaces.get_mut(&nsid).expect("just put in");
        namespace.shared = create.shared;
        namespace.extended = create.extended && namespace.metadata_bytes() > 0;
        namespace.host_specified = host_specified;
        Ok(())
    }

    /// Handle of namespaces without a handle list. The drive documents it as the lowest unused one.
    fn controllers_handle(&self) -> u16 {
        let shared = self.namespaces.values().find(|namespace| !namespace.host_specified);
        let used = |handle: &u16| self.namespaces.values().any(|its| its.handles.contains(handle));
        match shared {
            Some(namespace) => namespace.handles[0],
            None => (0..self.configuration().handles).find(|handle| !used(handle)).expect("checked"),
        }
    }

    /// Adds a private, unattached namespace.
    pub fn put_namespace(&mut self, nsid: u32, format: u8, blocks: u64, handles: Vec<u16>) {
        let bytes = blocks * BLOCK_BYTES[usize::from(format)];
        let namespace = Namespace {
            format,
            extended: false,
            pages: bytes.div_ceil(self.drive.page_bytes),
            blocks: vec![ZEROES; blocks as usize],
            events: vec![Default::default(); handles.len()],
            handles,
            host_specified: false,
            everyone: false,
            attached: Default::default(),
            inherited: Default::default(),
            shared: false,
            protected: false,
            identifier: None,
        };
        self.namespaces.insert(nsid, namespace);
    }

    fn delete(&mut self, nsid: u32) {
        let all: Vec<u32> = self.namespaces.keys().copied().collect();
        for nsid in all.into_iter().filter(|&its| nsid == ALL || its == nsid) {
            let viewers = self.viewers(nsid);
            self.namespaces.remove(&nsid);
            self.shared_features.remove(&(5, nsid));
            self.saved_features.remove(&(5, nsid));
            self.note_changed(nsid, &viewers);
        }
    }

    fn attach(&mut self, nsid: u32, attach: bool, listed: &[u16]) {
        let everyone = 1..=self.drive.controllers_max;
        let namespace = self.namespaces.get_mut(&nsid).expect("checked");
        if std::mem::take(&mut namespace.everyone) {
            namespace.attached.extend(everyone);
        }
        for id in listed {
            namespace.inherited.remove(id);
            if attach {
                namespace.attached.insert(*id)
            } else {
                namespace.attached.remove(id)
            };
        }
        self.note_changed(nsid, listed);
    }

    fn format(&mut self, controller: u16, nsid: u32, format: u8, extended: bool) {
        let page_bytes = self.drive.page_bytes;
        let extended = extended && METADATA_BYTES[usize::from(format)] > 0;
        for nsid in self.formatted(controller, nsid) {
            let namespace = self.namespaces.get_mut(&nsid).expect("listed");
            namespace.blocks.fill(ZEROES);
            if (namespace.format, namespace.extended) != (format, extended) {
                let other_blocks = namespace.format != format;
                (namespace.format, namespace.extended) = (format, extended);
                if other_blocks {
                    let blocks = namespace.pages * page_bytes / namespace.block_bytes();
                    namespace.blocks.resize(blocks as usize, ZEROES);
                }
                let viewers = self.viewers(nsid);
                self.note_changed(nsid, &viewers);
            }
        }
    }
}
