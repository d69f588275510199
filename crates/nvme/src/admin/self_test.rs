//! Device Self-test. The drive has no parts that can break, so a test waits for its duration,
//! passes and logs the result.
//!
//! The subsystem runs one test at a time (Identify Controller, DSTO). The clock, the host, or a
//! change of the tested namespaces ends it. A restart forgets a running test. The next store of the
//! state includes the result.

use nvme_spec::command::{DeviceSelfTestCdw10, SelfTestCode, SubmissionEntry};
use nvme_spec::{NSID_ALL, Status};

use crate::background::{EXTENDED_SELF_TEST_NS, RunningTest};
use crate::completion::{CommandResult, Execution};
use crate::error::{Failure, Parameter};
use crate::state::SelfTest;
use crate::subsystem::Subsystem;

/// Most results in the Device Self-test log.
pub const RESULTS_MAX: usize = 20;
/// Duration of an extended self-test in minutes (EDSTT).
pub(crate) const EXTENDED_MINUTES: u16 = EXTENDED_SELF_TEST_NS.div_ceil(60_000_000_000) as u16;

/// End of a test, with the result codes of the Device Self-test log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelfTestEnd {
    Completed = 0,
    AbortedByHost = 1,
    ControllerReset = 2,
    NamespaceRemoved = 3,
    Formatted = 4,
    Sanitized = 9,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SelfTestRequest {
    nsid: u32,
    code: SelfTestCode,
}

pub(super) fn parse(entry: &SubmissionEntry) -> Result<SelfTestRequest, Failure> {
    let code = DeviceSelfTestCdw10::from_bits(entry.cdw10.get()).stc();
    match SelfTestCode::from_u8(code) {
        Some(code @ (SelfTestCode::Short | SelfTestCode::Extended | SelfTestCode::Abort)) => {
            Ok(SelfTestRequest { nsid: entry.nsid.get(), code })
        }
        _ => Err(Failure::invalid_field(Parameter::dword(10, 0), format!("self-test code {code:#x} is not supported"))),
    }
}

impl Subsystem {
    pub(super) fn self_test(&mut self, id: u16, request: &SelfTestRequest) -> CommandResult {
        if request.code == SelfTestCode::Abort {
            self.end_self_test(SelfTestEnd::AbortedByHost, |_| true);
            return Ok(Execution::DONE);
        }
        // NSID 0 tests the controller alone, FFFFFFFFh also every namespace of the controller.
        if request.nsid != 0 && request.nsid != NSID_ALL {
            self.state.namespaces.active(id, request.nsid)?;
        }
        if self.background.self_test.is_some() {
            let cause = "a device self-test is in progress. Wait for its end, or abort it (STC Fh)";
            return Err(Failure::new(Status::DEVICE_SELF_TEST_IN_PROGRESS, cause));
        }
        let test = RunningTest { controller: id, nsid: request.nsid, code: request.code, since: self.clock.now() };
        let before = self.background.self_test.replace(test);
        assert!(before.is_none(), "one self-test at a time");
        Ok(Execution::DONE)
    }

    /// Ends a test that has run its full duration.
    pub(crate) fn continue_self_test(&mut self) {
        let now = self.clock.now();
        self.end_self_test(SelfTestEnd::Completed, |test| test.is_over(now));
    }

    pub(super) fn end_self_test_of(&mut self, end: SelfTestEnd, nsids: &[u32]) {
        let tests = |nsid: u32| nsids.contains(&nsid) || (nsid == NSID_ALL && !nsids.is_empty());
        self.end_self_test(end, |test| tests(test.nsid));
    }

    /// A reset ends a short test of the controller. An extended test continues.
    pub(crate) fn end_self_test_by_reset(&mut self, id: u16) {
        let is_its = |test: &RunningTest| test.controller == id && test.code == SelfTestCode::Short;
        self.end_self_test(SelfTestEnd::ControllerReset, is_its);
    }

    /// Ends the running test if `is_meant` accepts it, and records its result.
    pub(super) fn end_self_test(&mut self, end: SelfTestEnd, is_meant: impl FnOnce(&RunningTest) -> bool) {
        let Some(test) = self.background.end_self_test(is_meant) else {
            return;
        };
        let result = SelfTest {
            code: test.code.code(),
            result: end as u8,
            power_on_hours: self.powered_on_ns() / 3_600_000_000_000,
            nsid: test.nsid,
        };
        let results = &mut self.state.self_tests;
        results.insert(0, result);
        results.truncate(RESULTS_MAX);
        assert_eq!(results[0], result, "the newest result is the first");
    }

    /// Stores a new test result. If storing fails, the next change stores it.
    pub(crate) fn store_test_results(&mut self) {
        if std::mem::take(&mut self.background.has_new_result) {
            let _ = self.store_state();
        }
    }

    pub(crate) fn powered_on_ns(&self) -> u64 {
        self.powered_on_ns_at(self.clock.now())
    }

    pub(crate) fn powered_on_ns_at(&self, at: ssd::Nanos) -> u64 {
        self.state.smart.powered_on_ns + self.clock.uncounted_ns(at)
    }
}
