//! Choice of the command that replaces a write (`write_mode`).

use crate::fio::job::WriteMode;
use crate::fio::plan::JobPlan;
use crate::fio::random::{Purpose, Taus88};
use crate::{IoRequest, RequestOperation};

/// The commands of a job's writes, each with the first draw beyond it.
#[derive(Debug, Clone)]
pub(super) struct WriteModes {
    modes: Vec<(WriteMode, u32)>,
    /// fio draws only among several commands, and does not restart the generator with a pass.
    generator: Option<Taus88>,
    deallocates: bool,
}

impl WriteModes {
    pub(super) fn new(plan: &JobPlan) -> Option<Box<WriteModes>> {
        let mut until = 0;
        let modes = plan.write_modes.iter().map(|(mode, percent)| {
            until += percent;
            (*mode, until)
        });
        let several = plan.write_modes.len() > 1;
        let percent: u32 = plan.write_modes.iter().map(|(_, percent)| percent).sum();
        assert!(percent <= 100, "write modes have {percent} percent of the writes");
        (!plan.write_modes.is_empty()).then(|| {
            Box::new(WriteModes {
                modes: modes.collect(),
                generator: several.then(|| Taus88::new(plan.seeds.seed(Purpose::WriteMode))),
                deallocates: plan.deallocates,
            })
        })
    }

    /// Returns the request for a write, or `None` if the flash has no work to do.
    pub(super) fn next(&mut self, write: IoRequest) -> Option<IoRequest> {
        assert_eq!(write.operation, RequestOperation::Write, "modes are those of writes");
        let draw = self.generator.as_mut().map_or(0, |generator| generator.between(0, 99));
        let taken = self.modes.iter().find(|(_, until)| draw < *until);
        let of = |operation| IoRequest { operation, placement: None, ..write };
        // A draw outside all percentages is an error in fio's engine.
        match taken.map(|(mode, _)| *mode)? {
            WriteMode::Write => Some(write),
            WriteMode::Zeroes if self.deallocates => Some(of(RequestOperation::Trim)),
            WriteMode::Zeroes => Some(write),
            WriteMode::Uncorrectable => None,
            WriteMode::Verify => Some(of(RequestOperation::Read)),
        }
    }
}
