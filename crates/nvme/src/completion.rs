//! Completion of a command. It has a reply, a due time and a durability requirement.
//!
//! ```text
//! executor -> Execution -> PendingReply (due time, durability) -> DelayedCompletions -> Reply
//!                                                              -> completion queue entry
//! ```

use std::sync::Arc;

use nvme_spec::Status;
use nvme_spec::command::{CompletionEntry, StatusField};
use ssd::Nanos;

use crate::error::Failure;
use crate::media::FlushHandle;

/// Completion of a command as the host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Dwords 0 and 1 of the completion.
    pub result: u64,
    /// Status code and type.
    pub status: Status,
    /// The same command would fail again (DNR).
    pub do_not_retry: bool,
    /// The error log has more (M).
    pub more: bool,
}

impl Reply {
    /// Success with a command-specific result.
    pub const fn success(result: u64) -> Reply {
        Reply { result, status: Status::SUCCESS, do_not_retry: false, more: false }
    }

    /// A completion with this status, DNR clear and no error log entry.
    pub const fn from_status(status: Status) -> Reply {
        Reply { status, ..Reply::success(0) }
    }

    /// Completion of a failed command, with details in the error log.
    pub const fn failed(failure: &Failure) -> Reply {
        Reply { result: 0, status: failure.status, do_not_retry: failure.do_not_retry, more: true }
    }

    pub(crate) fn status_field(&self) -> StatusField {
        StatusField::from_status(self.status).with_dnr(self.do_not_retry).with_m(self.more)
    }

    /// The completion queue entry. `phase` is false on Fabrics.
    pub fn entry(&self, cid: u16, queue: u16, head: u16, phase: bool) -> CompletionEntry {
        CompletionEntry {
            dw0: (self.result as u32).into(),
            dw1: ((self.result >> 32) as u32).into(),
            sqhd: head.into(),
            sqid: queue.into(),
            cid: cid.into(),
            status: self.status_field().with_p(phase),
        }
    }
}

/// The result of a command.
#[must_use = "a command completes exactly once"]
pub struct PendingReply {
    /// The completion. `None` if it comes later through
    /// [`Subsystem::async_completions`](crate::Subsystem::async_completions) (Asynchronous Event
    /// Request).
    pub reply: Option<Reply>,
    /// Earliest time at which the host may see the completion.
    pub due: Nanos,
    /// Handle to call before the host sees the completion, without the subsystem's lock. If the
    /// call fails, [`Subsystem::failed_to_sync`](crate::Subsystem::failed_to_sync) returns the
    /// reply instead.
    pub durable: Option<Arc<dyn FlushHandle>>,
}

impl PendingReply {
    /// A completion without delay and without a durability requirement.
    pub fn at(now: Nanos, reply: Reply) -> PendingReply {
        PendingReply { reply: Some(reply), due: now, durable: None }
    }

    /// No completion now. It comes with an event, or never.
    pub(crate) fn silent(due: Nanos) -> PendingReply {
        PendingReply { reply: None, due, durable: None }
    }

    /// True if the host gets a successful completion.
    pub fn is_success(&self) -> bool {
        self.reply.is_some_and(|reply| reply.status.is_success())
    }
}

pub(crate) type CommandResult = Result<Execution, Failure>;

/// Result of an executor that met no error.
#[derive(Debug)]
#[must_use = "a command completes exactly once"]
pub(crate) enum Execution {
    Done {
        /// Dwords 0 and 1 of the completion.
        result: u64,
        durability: Durability,
    },
    /// An event completes the command later.
    Deferred,
    Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    Nothing,
    /// All written data, unless it may stay in the volatile write cache.
    Uncached,
    Everything,
}

impl Execution {
    /// Done, without a result and without a durability requirement.
    pub const DONE: Execution = Execution::with_result(0);

    /// Done, with a command-specific result.
    pub const fn with_result(result: u64) -> Execution {
        Execution::Done { result, durability: Durability::Nothing }
    }

    /// Done without a result. All written data must be durable first if `durable` is true.
    pub const fn after(durable: bool) -> Execution {
        Execution::Done { result: 0, durability: if durable { Durability::Everything } else { Durability::Nothing } }
    }

    /// A write is done. `force_unit_access` keeps its data out of the volatile write cache.
    pub const fn written(force_unit_access: bool) -> Execution {
        Execution::Done {
            result: 0,
            durability: if force_unit_access { Durability::Everything } else { Durability::Uncached },
        }
    }

    /// Done if the `whole` command is done, else one part.
    pub fn done_if(self, whole: bool) -> Execution {
        if whole { self } else { Execution::Part }
    }
}
