//! The endurance group: how its media is divided for Flexible Data Placement (feature 1Dh).
//!
//! Changing the configuration is changing the device: other reclaim groups, other handles. The flash and its history
//! stay, so the new device takes the counters and the wear of the old one; there is no data to keep, because it is
//! allowed only while no namespace exists.

use nvme_spec::Status;
use ssd::Device;

use crate::error::{Failure, Parameter};
use crate::fdp::DeviceReports;
use crate::setup::ENDURANCE_GROUP;
use crate::subsystem::Subsystem;

/// Refuses any endurance group but the one there is.
pub(super) fn check_endurance_group(group: u16, place: Parameter) -> Result<(), Failure> {
    if group == ENDURANCE_GROUP {
        return Ok(());
    }
    let cause = format!("endurance group {group} does not exist, only {ENDURANCE_GROUP}");
    Err(Failure::invalid_field(place, cause))
}

impl Subsystem {
    /// Enables Flexible Data Placement with one of the offered configurations, or disables it (`configuration` then
    /// means nothing). Event logs start anew.
    ///
    /// # Errors
    /// Namespaces exist in the endurance group, there is no such configuration, or the state could not be stored.
    pub(crate) fn configure_fdp(&mut self, enabled: bool, configuration: u8) -> Result<(), Failure> {
        if let Some((nsid, _)) = self.namespaces().next() {
            let cause = format!(
                "Flexible Data Placement can be changed only while the endurance group has no namespaces; namespace {nsid} \
                 exists"
            );
            return Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause));
        }
        self.check_no_sanitize()?;
        let offered = self.configurations.len();
        if enabled && usize::from(configuration) >= offered {
            let cause =
                format!("FDP configuration {configuration} does not exist; the drive offers {offered}, from 0 on");
            return Err(Failure::invalid_field(Parameter::dword(12, 8), cause));
        }
        let configuration = if enabled { configuration } else { 0 };
        let before = &self.state.fdp;
        if (enabled, configuration) == (before.enabled, before.configuration) {
            return Ok(());
        }
        let kept = self.state.fdp.clone();
        self.state.fdp = crate::fdp::FdpState {
            enabled,
            configuration,
            ..Default::default()
        };
        if let Err(failure) = self.rebuild_device().and_then(|()| self.store_state()) {
            self.state.fdp = kept;
            self.rebuild_device()?;
            return Err(failure);
        }
        Ok(())
    }

    /// Makes the device that the state asks for, empty, with the history of the one there is.
    fn rebuild_device(&mut self) -> Result<(), Failure> {
        assert!(self.namespaces().next().is_none(), "there is no data to lose");
        let config = Subsystem::device_config(&self.config, &self.state);
        let made = Device::with_sink(&config, DeviceReports::after(self.device.sink()));
        let mut device = made.map_err(|error| {
            let cause = format!("the device cannot be divided in this way: {error}");
            Failure::new(Status::INVALID_FIELD, cause).at(Parameter::dword(12, 8))
        })?;
        let (before, after) = (self.device.layout().logical_pages, device.layout().logical_pages);
        assert_eq!(
            before, after,
            "the capacity does not depend on how the media is divided"
        );
        device.take_over(&self.device);
        self.device = device;
        self.opened.clear();
        Ok(())
    }
}
