//! Device Self-test: there is nothing that could be broken, so every test passes at once, and the log says so.
//!
//! A test is finished when its command completes, so none is ever under way: aborting one does nothing, and two never
//! meet.

use nvme_spec::NSID_ALL;
use nvme_spec::command::{DeviceSelfTestCdw10, SelfTestCode, SubmissionEntry};

use crate::completion::Success;
use crate::error::{Failure, Parameter};
use crate::state::SelfTest;
use crate::subsystem::Subsystem;

/// Results that the Device Self-test log keeps.
pub const RESULTS_MAX: usize = 20;
/// Result code "Operation completed without error" of the Device Self-test log.
const COMPLETED: u8 = 0;

/// What a Device Self-test command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    nsid: u32,
    code: SelfTestCode,
}

pub(super) fn parse(entry: &SubmissionEntry) -> Result<Request, Failure> {
    let code = DeviceSelfTestCdw10::from_bits(entry.cdw10.get()).stc();
    match SelfTestCode::from_u8(code) {
        Some(code @ (SelfTestCode::Short | SelfTestCode::Extended | SelfTestCode::Abort)) => Ok(Request {
            nsid: entry.nsid.get(),
            code,
        }),
        _ => {
            let cause = format!("self-test code {code:#x} is not supported");
            Err(Failure::invalid_field(Parameter::dword(10, 0), cause))
        }
    }
}

impl Subsystem {
    pub(super) fn self_test(&mut self, id: u16, request: &Request) -> Result<Success, Failure> {
        if request.code == SelfTestCode::Abort {
            return Ok(Success::DONE);
        }
        // 0 is the controller alone, FFFFFFFFh the controller with every namespace it has.
        if request.nsid != 0 && request.nsid != NSID_ALL {
            self.active_namespace(id, request.nsid)?;
        }
        let result = SelfTest {
            code: request.code.code(),
            result: COMPLETED,
            power_on_hours: self.powered_on_ns() / 3_600_000_000_000,
            nsid: request.nsid,
        };
        let results = &mut self.state.self_tests;
        results.insert(0, result);
        results.truncate(RESULTS_MAX);
        self.store_state()?;
        Ok(Success::DONE)
    }

    /// Time that the drive has been up in its life.
    pub(crate) fn powered_on_ns(&self) -> u64 {
        self.powered_on_ns_at(self.now)
    }

    /// The same at another time.
    pub(crate) fn powered_on_ns_at(&self, at: ssd::Nanos) -> u64 {
        self.state.smart.powered_on_ns + at.saturating_sub(self.clock.counted_ns)
    }
}
