//! How a command ends: what the host is told, when it may know, and what has to be durable before.
//!
//! ```text
//! executor -> Execution -> Outcome (when, after what) -> the transport's completion, held until then -> Reply -> entry
//! ```

use std::sync::Arc;

use nvme_spec::Status;
use nvme_spec::command::{CompletionEntry, StatusField};
use ssd::Nanos;

use crate::error::Failure;
use crate::media::Durable;

/// What the host is told.
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
        Reply {
            result,
            status: Status::SUCCESS,
            do_not_retry: false,
            more: false,
        }
    }

    /// The same with this status: neither to be retried in vain nor in the error log.
    pub const fn of(status: Status) -> Reply {
        Reply {
            status,
            ..Reply::success(0)
        }
    }

    /// To a command that failed, of which the error log says more.
    pub const fn failed(failure: &Failure) -> Reply {
        Reply {
            result: 0,
            status: failure.status,
            do_not_retry: failure.do_not_retry,
            more: true,
        }
    }

    /// Status, DNR and M as entries of completion queue and error log have them.
    pub(crate) fn status_field(&self) -> StatusField {
        StatusField::of(self.status)
            .with_dnr(self.do_not_retry)
            .with_m(self.more)
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
pub struct Outcome {
    /// The completion; `None` if it comes later through
    /// [`Subsystem::async_completions`](crate::Subsystem::async_completions) (Asynchronous Event Request).
    pub reply: Option<Reply>,
    /// When the host may see it.
    pub due: Nanos,
    /// To be called, without the subsystem's lock, before the host sees it; if it fails,
    /// [`Subsystem::failed_to_sync`](crate::Subsystem::failed_to_sync) has the reply instead.
    pub durable: Option<Arc<dyn Durable>>,
}

impl Outcome {
    /// Completed as soon as the host can be told, with nothing to make durable.
    pub fn at(now: Nanos, reply: Reply) -> Outcome {
        Outcome {
            reply: Some(reply),
            due: now,
            durable: None,
        }
    }

    /// No completion: it comes by an event, or never.
    pub(crate) fn silent(due: Nanos) -> Outcome {
        Outcome {
            reply: None,
            due,
            durable: None,
        }
    }

    /// Whether the host is told of success.
    pub fn is_success(&self) -> bool {
        self.reply.is_some_and(|reply| reply.status.is_success())
    }
}

/// How far an executor has come with a command, if nothing went wrong.
#[derive(Debug)]
#[must_use = "a command completes exactly once"]
pub(crate) enum Execution {
    /// The command is carried out.
    Done {
        /// Dwords 0 and 1 of the completion.
        result: u64,
        /// What has to be durable before the host is told.
        durability: Durability,
    },
    /// The host is told by an event.
    Later,
    /// There is more to do.
    Part,
}

/// What has to be durable before a command completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Nothing.
    Nothing,
    /// Everything that was written, unless it may stay in the volatile write cache.
    Uncached,
    /// Everything that was written.
    Everything,
}

impl Execution {
    /// Nothing to tell, nothing to make durable.
    pub const DONE: Execution = Execution::of(0);

    /// Done, with a command-specific result.
    pub const fn of(result: u64) -> Execution {
        Execution::Done {
            result,
            durability: Durability::Nothing,
        }
    }

    /// Done, with nothing to tell, when everything is `durable` or at once.
    pub const fn after(durable: bool) -> Execution {
        Execution::Done {
            result: 0,
            durability: if durable {
                Durability::Everything
            } else {
                Durability::Nothing
            },
        }
    }

    /// Done with writing; `force_unit_access` keeps it out of the volatile write cache.
    pub const fn written(force_unit_access: bool) -> Execution {
        Execution::Done {
            result: 0,
            durability: if force_unit_access {
                Durability::Everything
            } else {
                Durability::Uncached
            },
        }
    }

    /// Done if the `whole` of the command is.
    pub fn done_if(self, whole: bool) -> Execution {
        if whole { self } else { Execution::Part }
    }
}
