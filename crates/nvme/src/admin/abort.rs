//! The commands Abort and Keep Alive.
//!
//! Commands are executed immediately and completely. The only command that can be outstanding here
//! is therefore an Asynchronous Event Request. For the same reason Aborts never queue up and cannot
//! exceed their limit (ACL).

use nvme_spec::ADMIN_QUEUE_ID;
use nvme_spec::command::{AbortCdw10, AbortDw0, SubmissionEntry};

use crate::completion::Execution;
use crate::error::Failure;
use crate::subsystem::Subsystem;

/// Target of an Abort command.
#[derive(Debug)]
pub(crate) struct AbortRequest {
    queue: u16,
    cid: u16,
}

pub(super) fn parse(entry: &SubmissionEntry) -> AbortRequest {
    let dword10 = AbortCdw10::from_bits(entry.cdw10.get());
    AbortRequest { queue: dword10.sqid(), cid: dword10.cid() }
}

impl Subsystem {
    pub(super) fn abort(&mut self, id: u16, request: &AbortRequest) -> Result<Execution, Failure> {
        let controller = self.controllers.get_mut(id);
        let aborted = request.queue == ADMIN_QUEUE_ID && controller.abort_event_request(request.cid);
        let result = AbortDw0::new().with_ianp(!aborted);
        Ok(Execution::with_result(u64::from(result.into_bits())))
    }

    pub(super) fn keep_alive(&mut self, id: u16) -> Result<Execution, Failure> {
        let now = self.clock.now();
        self.controllers.get_mut(id).last_message_at = now;
        Ok(Execution::DONE)
    }
}
