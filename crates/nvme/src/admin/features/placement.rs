//! The features of Flexible Data Placement: on or off (1Dh), and which events are logged (1Eh).

use nvme_spec::fdp::{
    FdpEventTypeAttributes, FdpEventsFeatureCdw11, FdpEventsFeatureCdw12, FdpFeature, FdpFeatureCdw11,
    SupportedFdpEvent,
};
use zerocopy::IntoBytes;

use super::{Question, Setting};
use crate::admin::endurance_group::check_endurance_group;
use crate::error::{Failure, Parameter};
use crate::fdp::kind;
use crate::subsystem::Subsystem;

/// Data of Set Features 1Eh: a byte for each event type.
pub(super) fn event_list_bytes(dword11: u32) -> u64 {
    u64::from(FdpEventsFeatureCdw11::from_bits(dword11).noet())
}

/// Data of Get Features 1Eh: a descriptor for each event type that there is, no more than the host asks for.
pub(super) fn event_descriptors_bytes(dword11: u32) -> u64 {
    let asked = event_list_bytes(dword11);
    asked.min(kind::SUPPORTED.len() as u64) * size_of::<SupportedFdpEvent>() as u64
}

/// The endurance group of feature 1Dh. CacheLib's instructions (`nvme set-feature -f 0x1D -c 1 -s`) leave it at 0, and
/// drives take that for the only group that they have.
fn check_group(dword11: u32) -> Result<(), Failure> {
    match FdpFeatureCdw11::from_bits(dword11).endgid() {
        0 => Ok(()),
        group => check_endurance_group(group, Parameter::dword(11, 0)),
    }
}

impl Subsystem {
    pub(super) fn set_placement(&mut self, setting: &Setting) -> Result<(), Failure> {
        check_group(setting.dword11)?;
        let wanted = FdpFeature::from_bits(setting.dword12);
        self.configure_fdp(wanted.fdpe(), wanted.fdpci())
    }

    pub(super) fn get_placement(&self, dword11: u32, default: bool) -> Result<u32, Failure> {
        check_group(dword11)?;
        let (enabled, configuration) = if default {
            (self.config.fdp, 0)
        } else {
            (self.state.fdp.enabled, self.state.fdp.configuration)
        };
        Ok(FdpFeature::new()
            .with_fdpe(enabled)
            .with_fdpci(configuration)
            .into_bits())
    }

    /// The placement handle of a Get or Set Features 1Eh.
    fn placement_handle(&self, nsid: u32, dword11: u32) -> Result<usize, Failure> {
        self.require_fdp()?;
        let handle = usize::from(FdpEventsFeatureCdw11::from_bits(dword11).phndl());
        let handles = self.namespace(nsid).placement_handles.len();
        if handle >= handles {
            let cause = format!("placement handle {handle} does not exist, namespace {nsid} has {handles}");
            return Err(Failure::invalid_field(Parameter::dword(11, 0), cause));
        }
        Ok(handle)
    }

    /// Clients send lists with more than is there (255 zeroes, for one), so a type is enabled as often as it is listed,
    /// and one that this drive does not log stays unlogged, as Get Features tells.
    pub(super) fn set_placement_events(
        &mut self,
        nsids: &[u32],
        setting: &Setting,
        list: &[u8],
    ) -> Result<(), Failure> {
        let enable = FdpEventsFeatureCdw12::from_bits(setting.dword12).fdpee();
        let mut handles = Vec::with_capacity(nsids.len());
        for &nsid in nsids {
            handles.push((nsid, self.placement_handle(nsid, setting.dword11)?));
        }
        let mut before = Vec::with_capacity(nsids.len());
        for (nsid, handle) in handles {
            let masks = &mut self.namespace_mut(nsid).events_enabled;
            before.push((nsid, masks.clone()));
            masks.resize(masks.len().max(handle + 1), Default::default());
            for &listed in list.iter().filter(|listed| kind::SUPPORTED.contains(listed)) {
                masks[handle].set(listed, enable);
            }
        }
        self.store_state_or(|subsystem| {
            for (nsid, masks) in before {
                subsystem.namespace_mut(nsid).events_enabled = masks;
            }
        })
    }

    /// Returns the number of descriptors that were put into `data`.
    pub(super) fn get_placement_events(
        &self,
        question: &Question,
        default: bool,
        data: &mut Vec<u8>,
    ) -> Result<u32, Failure> {
        let handle = self.placement_handle(question.nsid, question.dword11)?;
        let masks = &self.namespace(question.nsid).events_enabled;
        let mask = masks.get(handle).copied().unwrap_or_default();
        for kind in kind::SUPPORTED {
            let enabled = !default && mask.contains(kind);
            let descriptor = SupportedFdpEvent {
                event_type: kind,
                fdpeta: FdpEventTypeAttributes::new().with_fdpee(enabled),
            };
            data.extend_from_slice(descriptor.as_bytes());
        }
        data.truncate(event_descriptors_bytes(question.dword11) as usize);
        Ok((data.len() / size_of::<SupportedFdpEvent>()) as u32)
    }
}
