//! Features of Flexible Data Placement, which enable FDP (1Dh) and select the logged events (1Eh).
//!
//! A change of the configuration replaces the device by one with other reclaim groups and handles.
//! The flash and its history stay, so the new device takes the counters and the wear of the old
//! one. No data can be lost, because the change requires that no namespace exists.

use nvme_spec::Status;
use nvme_spec::fdp::{
    FdpEventTypeAttributes, FdpEventsFeatureCdw11, FdpEventsFeatureCdw12, FdpFeature, FdpFeatureCdw11,
    SupportedFdpEvent,
};
use ssd::Device;
use zerocopy::IntoBytes;

use super::FdpState;
use super::events::{FdpEventSink, kind};
use super::handles::check_enabled;
use crate::error::{Failure, Parameter};
use crate::setup::check_endurance_group;
use crate::subsystem::Subsystem;

/// Data length of Set Features 1Eh, one byte for each event type.
pub(crate) fn event_list_bytes(dword11: u32) -> u64 {
    u64::from(FdpEventsFeatureCdw11::from_bits(dword11).noet())
}

/// Data length of Get Features 1Eh, one descriptor for each supported event type, up to the
/// requested number.
pub(crate) fn event_descriptors_bytes(dword11: u32) -> u64 {
    let requested = event_list_bytes(dword11);
    requested.min(kind::SUPPORTED.len() as u64) * size_of::<SupportedFdpEvent>() as u64
}

/// Checks the endurance group of feature 1Dh. CacheLib's instructions (`nvme set-feature -f 0x1D -c
/// 1 -s`) leave the field at 0, and drives treat 0 as their only group.
fn check_group(dword11: u32) -> Result<(), Failure> {
    match FdpFeatureCdw11::from_bits(dword11).endgid() {
        0 => Ok(()),
        group => check_endurance_group(group, Parameter::dword(11, 0)),
    }
}

impl Subsystem {
    pub(crate) fn set_fdp(&mut self, dword11: u32, dword12: u32) -> Result<(), Failure> {
        check_group(dword11)?;
        let wanted = FdpFeature::from_bits(dword12);
        self.configure_fdp(wanted.fdpe(), wanted.fdpci())
    }

    pub(crate) fn get_fdp(&self, dword11: u32, default: bool) -> Result<u32, Failure> {
        check_group(dword11)?;
        let (enabled, configuration) =
            if default { (self.config.fdp, 0) } else { (self.state.fdp.enabled, self.state.fdp.configuration) };
        Ok(FdpFeature::new().with_fdpe(enabled).with_fdpci(configuration).into_bits())
    }

    fn placement_handle_of(&self, nsid: u32, dword11: u32) -> Result<usize, Failure> {
        check_enabled(&self.state.fdp)?;
        let handle = usize::from(FdpEventsFeatureCdw11::from_bits(dword11).phndl());
        let handles = self.state.namespaces.get(nsid).placement_handles.len();
        if handle >= handles {
            let cause = format!("placement handle {handle} does not exist. Namespace {nsid} has {handles}");
            return Err(Failure::invalid_field(Parameter::dword(11, 0), cause));
        }
        Ok(handle)
    }

    /// Set Features 1Eh. Clients send oversized lists (for example 255 zeroes), so repeated types
    /// are accepted. Unsupported types are ignored, as Get Features shows.
    pub(crate) fn set_fdp_events(
        &mut self,
        nsids: &[u32],
        dword11: u32,
        dword12: u32,
        list: &[u8],
    ) -> Result<(), Failure> {
        let enable = FdpEventsFeatureCdw12::from_bits(dword12).fdpee();
        let mut handles = Vec::with_capacity(nsids.len());
        for &nsid in nsids {
            handles.push((nsid, self.placement_handle_of(nsid, dword11)?));
        }
        let mut before = Vec::with_capacity(nsids.len());
        for (nsid, handle) in handles {
            let masks = &mut self.state.namespaces.get_mut(nsid).events_enabled;
            before.push((nsid, masks.clone()));
            for &listed in list.iter().filter(|listed| kind::SUPPORTED.contains(listed)) {
                masks[handle].set(listed, enable);
                assert_eq!(masks[handle].contains(listed), enable, "a type is enabled or disabled alone");
            }
        }
        self.store_state_or(|subsystem| {
            for (nsid, masks) in before {
                subsystem.state.namespaces.get_mut(nsid).events_enabled = masks;
            }
        })
    }

    /// Get Features 1Eh. Returns the number of descriptors in `data`.
    pub(crate) fn get_fdp_events(
        &self,
        nsid: u32,
        dword11: u32,
        default: bool,
        data: &mut Vec<u8>,
    ) -> Result<u32, Failure> {
        let handle = self.placement_handle_of(nsid, dword11)?;
        let mask = self.state.namespaces.get(nsid).events_enabled[handle];
        for kind in kind::SUPPORTED {
            let enabled = !default && mask.contains(kind);
            let descriptor =
                SupportedFdpEvent { event_type: kind, fdpeta: FdpEventTypeAttributes::new().with_fdpee(enabled) };
            data.extend_from_slice(descriptor.as_bytes());
        }
        data.truncate(event_descriptors_bytes(dword11) as usize);
        Ok((data.len() / size_of::<SupportedFdpEvent>()) as u32)
    }

    /// Enables Flexible Data Placement with one of the offered configurations, or disables it.
    /// `configuration` is ignored when disabling. A change clears the event logs.
    fn configure_fdp(&mut self, enabled: bool, configuration: u8) -> Result<(), Failure> {
        if let Some((nsid, _)) = self.state.namespaces.iter().next() {
            let cause = format!(
                "Flexible Data Placement can change only while the endurance group has no namespaces. Delete namespace \
                 {nsid} first"
            );
            return Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause));
        }
        self.check_no_sanitize()?;
        let offered = self.fdp.configurations.len();
        if enabled && usize::from(configuration) >= offered {
            let cause = format!(
                "FDP configuration {configuration} does not exist. The drive has {offered} configurations, which start \
                 at 0"
            );
            return Err(Failure::invalid_field(Parameter::dword(12, 8), cause));
        }
        let configuration = if enabled { configuration } else { 0 };
        let before = &self.state.fdp;
        if (enabled, configuration) == (before.enabled, before.configuration) {
            return Ok(());
        }
        let previous = self.state.fdp.clone();
        self.state.fdp = FdpState { enabled, configuration, ..FdpState::default() };
        if let Err(failure) = self.rebuild_device().and_then(|()| self.store_state()) {
            self.state.fdp = previous;
            self.rebuild_device()?;
            return Err(failure);
        }
        Ok(())
    }

    /// Replaces the device by an empty one for the current state. The new device keeps the history
    /// of the old one.
    fn rebuild_device(&mut self) -> Result<(), Failure> {
        assert!(self.state.namespaces.iter().next().is_none(), "the drive has no namespaces");
        let config = Subsystem::device_config(&self.config, &self.state);
        let made = Device::with_sink(&config, FdpEventSink::after(self.device.sink())).and_then(|mut device| {
            if self.device.is_compact() {
                device.make_compact()?;
            }
            Ok(device)
        });
        let mut device = made.map_err(|error| {
            let cause = format!("the drive cannot use this configuration: {error}");
            Failure::new(Status::INVALID_FIELD, cause).at(Parameter::dword(12, 8))
        })?;
        let (before, after) = (self.device.layout().logical_pages, device.layout().logical_pages);
        assert_eq!(before, after, "the capacity does not depend on how the media is divided");
        device.continue_counters(&self.device);
        self.device = device;
        self.fdp.units.clear();
        assert!(self.device.sink().is_empty(), "a new device has nothing to report");
        Ok(())
    }
}
