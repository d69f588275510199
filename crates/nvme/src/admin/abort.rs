//! The commands Abort and Keep Alive.
//!
//! Commands are executed immediately and completely. The only command that can be outstanding here
//! is therefore an Asynchronous Event Request. For the same reason Aborts never queue up and cannot
//! exceed their limit (ACL).

use nvme_spec::ADMIN_QUEUE_ID;
use nvme_spec::command::{AbortCdw10, AbortDw0};

use crate::completion::{CommandResult, Execution};
use crate::subsystem::Subsystem;

impl Subsystem {
    pub(super) fn abort(&mut self, id: u16, request: AbortCdw10) -> CommandResult {
        let controller = self.controllers.get_mut(id);
        let aborted = request.sqid() == ADMIN_QUEUE_ID && controller.abort_event_request(request.cid());
        let result = AbortDw0::new().with_ianp(!aborted);
        Ok(Execution::with_result(u64::from(result.into_bits())))
    }

    pub(super) fn keep_alive(&mut self, id: u16) -> CommandResult {
        self.controllers.get_mut(id).last_message_at = self.clock.now();
        Ok(Execution::DONE)
    }
}
