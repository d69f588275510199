//! Log pages about health and history, which are SMART, endurance group, self-tests and sanitize.
//!
//! I/O commands count the host's actions, and the device counts the media's. The used life follows
//! from the rated erases of the profile, and is zero without rated erases. Worn blocks are not
//! retired, so the spare is always full. The temperature is constant. A fault plan can change both.

use nvme_spec::FeatureId;
use nvme_spec::feature::TemperatureThreshold;
use nvme_spec::log::{
    CriticalWarning, DeviceSelfTestLog, EnduranceGroupInformation, SanitizeStatus, SanitizeStatusLog, SelfTestResult,
    SmartLog,
};
use zerocopy::little_endian::U128;

use crate::admin::features::{OVER_TEMPERATURE, UNDER_TEMPERATURE};
use crate::background::SanitizeProgress;
use crate::state::{SanitizeOutcome, SelfTest};
use crate::subsystem::Subsystem;

/// Composite temperature in kelvins, 40 degrees Celsius, as in a ventilated server.
pub const COMPOSITE_TEMPERATURE_K: u16 = 313;
const AVAILABLE_SPARE: u8 = 100;
/// Available spare below which the drive warns, in percent.
const AVAILABLE_SPARE_THRESHOLD: u8 = 10;

/// Data unit of the SMART log, 1000 times 512 bytes.
const DATA_UNIT_BYTES: u64 = 512_000;
/// Unit of the endurance group log.
const BILLION_BYTES: u64 = 1_000_000_000;
const MINUTE_NS: u64 = 60_000_000_000;
const HOUR_NS: u64 = 60 * MINUTE_NS;

/// Device Self-test Status of an unused entry.
const UNUSED_RESULT: u8 = 0xf;
/// Valid Diagnostic Information for a valid namespace identifier.
const NSID_VALID: u8 = 1 << 0;
/// Critical Warning bits of the endurance group, for low spare, degraded reliability and read-only
/// namespaces.
const GROUP_SPARE: u8 = 1 << 0;
const GROUP_DEGRADED: u8 = 1 << 2;
const GROUP_READ_ONLY: u8 = 1 << 3;

const NO_PROGRESS: u16 = 0xffff;
const NO_ESTIMATE: u32 = 0xffff_ffff;

impl Subsystem {
    /// True if the storage failed since the start, or a fault degrades the drive.
    fn is_degraded(&self) -> bool {
        self.state.smart.has_new_media_errors() || self.faults.is_degraded()
    }

    fn available_spare(&self) -> u8 {
        self.faults.spare_percent().unwrap_or(AVAILABLE_SPARE)
    }

    fn is_spare_low(&self) -> bool {
        self.available_spare() < AVAILABLE_SPARE_THRESHOLD
    }

    /// Critical warnings of the drive. Each controller has its own temperature thresholds.
    pub(in crate::admin) fn critical_warnings(&self, id: u16) -> CriticalWarning {
        let threshold_k = |instance| {
            let set = self.controller(id).features.value(FeatureId::TemperatureThreshold, instance);
            let value = set.unwrap_or_else(|| self.default_value(FeatureId::TemperatureThreshold, instance));
            TemperatureThreshold::from_bits(value).tmpth()
        };
        let too_hot = self.faults.temperature_k() >= threshold_k(OVER_TEMPERATURE);
        let too_cold = self.faults.temperature_k() <= threshold_k(UNDER_TEMPERATURE);
        CriticalWarning::new()
            .with_ascbt(self.is_spare_low())
            .with_ttc(too_hot || too_cold)
            .with_ndr(self.is_degraded())
            .with_amro(self.faults.is_read_only())
    }

    pub(in crate::admin) fn endurance_group_warnings(&self) -> u8 {
        let warnings = [
            (self.is_spare_low(), GROUP_SPARE),
            (self.is_degraded(), GROUP_DEGRADED),
            (self.faults.is_read_only(), GROUP_READ_ONLY),
        ];
        warnings.iter().filter(|(holds, _)| *holds).map(|(_, bit)| bit).sum()
    }

    pub(super) fn smart_page(&self, id: u16) -> SmartLog {
        let counted = &self.state.smart;
        SmartLog {
            cw: self.critical_warnings(id),
            ctemp: self.faults.temperature_k().into(),
            avsp: self.available_spare(),
            avspt: AVAILABLE_SPARE_THRESHOLD,
            pused: self.percentage_used(),
            egcws: self.endurance_group_warnings(),
            dur: wide(counted.host_bytes_read.div_ceil(DATA_UNIT_BYTES)),
            duw: wide(counted.host_bytes_written.div_ceil(DATA_UNIT_BYTES)),
            hrc: wide(counted.read_commands),
            hwc: wide(counted.write_commands),
            cbt: wide(counted.busy_ns / MINUTE_NS),
            pwrc: wide(counted.power_cycles),
            poh: wide(self.powered_on_ns() / HOUR_NS),
            upl: wide(counted.unsafe_shutdowns),
            mdie: wide(counted.media_errors),
            neile: wide(counted.error_log_entries),
            ..SmartLog::default()
        }
    }

    pub(super) fn endurance_group_page(&self) -> EnduranceGroupInformation {
        let counted = &self.state.smart;
        let media_bytes_written = self.device.stats().media_bytes_written();
        EnduranceGroupInformation {
            cw: self.endurance_group_warnings(),
            avsp: self.available_spare(),
            avspt: AVAILABLE_SPARE_THRESHOLD,
            pused: self.percentage_used(),
            ee: wide(self.endurance_estimate()),
            dur: wide(counted.host_bytes_read.div_ceil(BILLION_BYTES)),
            duw: wide(counted.host_bytes_written.div_ceil(BILLION_BYTES)),
            muw: wide(media_bytes_written.div_ceil(BILLION_BYTES)),
            hrc: wide(counted.read_commands),
            hwc: wide(counted.write_commands),
            mdie: wide(counted.media_errors),
            neile: wide(counted.error_log_entries),
            tegcap: wide(self.capacity_bytes()),
            uegcap: wide(self.unallocated_bytes()),
            ..EnduranceGroupInformation::default()
        }
    }

    /// Percentage Used. 255 stands for more than 254. 0 for a drive without rated erases.
    fn percentage_used(&self) -> u8 {
        (100.0 * self.device.life_used().unwrap_or(0.0)).min(255.0) as u8
    }

    /// Endurance Estimate in billions of bytes, or 0 without rated erases. The estimate is the
    /// total for a new drive at a write amplification of 1.
    pub(super) fn endurance_estimate(&self) -> u64 {
        let layout = self.device.layout();
        let rated_erases = self.device.config().endurance.as_ref().map_or(0, |endurance| endurance.rated_erases);
        let pages = u128::from(layout.physical_pages) * u128::from(rated_erases);
        u64::try_from(pages * u128::from(layout.page_bytes) / u128::from(BILLION_BYTES)).unwrap_or(u64::MAX)
    }

    pub(super) fn self_test_page(&self) -> DeviceSelfTestLog {
        let unused = SelfTestResult { dsts: UNUSED_RESULT, ..SelfTestResult::default() };
        let mut page = DeviceSelfTestLog::default();
        if let Some(test) = &self.background.self_test {
            (page.cdsto, page.cdstc) = test.progress(self.clock.now());
        }
        page.result.fill(unused);
        for (place, test) in page.result.iter_mut().zip(&self.state.self_tests) {
            *place = self_test_result(test);
        }
        page
    }

    /// Sanitize Operation Status with Global Data Erased, and the state of the state machine
    /// (SANS). 0 is idle. 1 and 2 are restricted processing and failure, 3 and 4 the unrestricted
    /// ones.
    fn sanitize_status(&self) -> (SanitizeStatus, u8) {
        let command = self.state.sanitize.command();
        let status = SanitizeStatus::new();
        match self.state.sanitize {
            SanitizeOutcome::Never => {
                let never_written = self.device.stats().host_bytes_written() == 0;
                (status.with_gde(never_written), 0)
            }
            SanitizeOutcome::Succeeded { written_since, .. } => {
                // 4 means that blocks were deallocated against the host's request.
                let outcome = if command.ndas() { 4 } else { 1 };
                (status.with_sos(outcome).with_gde(!written_since), 0)
            }
            SanitizeOutcome::Running { .. } => (status.with_sos(2), if command.ause() { 3 } else { 1 }),
            SanitizeOutcome::Failed { exited: true, .. } => (status.with_sos(3), 0),
            SanitizeOutcome::Failed { exited: false, .. } => (status.with_sos(3), if command.ause() { 4 } else { 2 }),
        }
    }

    pub(super) fn sanitize_page(&self) -> SanitizeStatusLog {
        assert_eq!(
            matches!(self.state.sanitize, SanitizeOutcome::Running { .. }),
            self.background.is_sanitizing(),
            "the state and the drive agree"
        );
        let (status, machine) = self.sanitize_status();
        let progress = self.background.sanitize.as_ref().map_or(NO_PROGRESS, SanitizeProgress::progress);
        SanitizeStatusLog {
            sprog: progress.into(),
            sstat: status,
            scdw10: self.state.sanitize.command().into_bits().into(),
            eto: NO_ESTIMATE.into(),
            etbe: NO_ESTIMATE.into(),
            etce: NO_ESTIMATE.into(),
            etodmm: NO_ESTIMATE.into(),
            etbenmm: NO_ESTIMATE.into(),
            etcenmm: NO_ESTIMATE.into(),
            etpvds: NO_ESTIMATE.into(),
            ssi: machine,
            ..SanitizeStatusLog::default()
        }
    }
}

fn self_test_result(test: &SelfTest) -> SelfTestResult {
    SelfTestResult {
        dsts: test.code << 4 | test.result,
        vdi: if test.nsid != 0 { NSID_VALID } else { 0 },
        poh: test.power_on_hours.into(),
        nsid: test.nsid.into(),
        ..SelfTestResult::default()
    }
}

pub(super) fn wide(count: u64) -> U128 {
    U128::new(u128::from(count))
}
