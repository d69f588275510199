//! Log pages of Flexible Data Placement, which are configurations (20h), handle usage (21h),
//! statistics (22h) and events (23h).
//!
//! The configurations are always available. The other pages need Flexible Data Placement enabled.

use nvme_spec::LogId;
use nvme_spec::fdp::{
    FdpConfigurationDescriptor, FdpConfigurationsHeader, FdpEvent as EventBytes, FdpEventFlags, FdpEventsHeader,
    FdpStatistics, Fdpa, LSP_HOST_EVENTS, MediaReallocated, MediaReallocatedFlags, RuhAttributes, RuhDescriptor,
    RuhUsageDescriptor, RuhUsageHeader,
};
use ssd::config::ReclaimUnitSize;
use ssd::{DeviceConfig, DeviceStats};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U128;

use super::configuration::{handle_type, reclaim_group_identifier_bits};
use super::events::{FdpEvent, kind};
use super::handles::check_enabled;
use crate::error::Failure;
use crate::setup::NAMESPACES_MAX;
use crate::subsystem::Subsystem;

const DESCRIPTOR_ALIGNMENT_BYTES: usize = 8;

impl Subsystem {
    pub(crate) fn fdp_configurations_page(&self) -> Vec<u8> {
        let descriptors: Vec<u8> = self.fdp.configurations.iter().flat_map(|config| self.descriptor(config)).collect();
        let header = FdpConfigurationsHeader {
            numfdpc: (self.fdp.configurations.len() as u16 - 1).into(),
            sze: ((size_of::<FdpConfigurationsHeader>() + descriptors.len()) as u32).into(),
            ..FdpConfigurationsHeader::default()
        };
        let mut page = header.as_bytes().to_vec();
        page.extend(descriptors);
        page
    }

    fn descriptor(&self, config: &DeviceConfig) -> Vec<u8> {
        let groups = config.geometry.reclaim_groups;
        let handles = config.handles.count;
        let list_bytes = usize::from(handles) * size_of::<RuhDescriptor>();
        let bytes = size_of::<FdpConfigurationDescriptor>() + list_bytes;
        let bytes = bytes.next_multiple_of(DESCRIPTOR_ALIGNMENT_BYTES);
        let identifiers = u32::from(groups) * u32::from(handles);
        let descriptor = FdpConfigurationDescriptor {
            dsze: (bytes as u16).into(),
            fdpa: Fdpa::new()
                .with_rgif(reclaim_group_identifier_bits(groups) as u8)
                .with_fdpvwc(self.media.has_write_cache())
                .with_fdpcv(true),
            nrg: u32::from(groups).into(),
            nruh: handles.into(),
            maxpids: u16::try_from(identifiers - 1).unwrap_or(u16::MAX).into(),
            nnss: NAMESPACES_MAX.into(),
            runs: nominal_unit_bytes(config).into(),
            erutl: self.config.reclaim_unit_time_limit_s.into(),
            ..FdpConfigurationDescriptor::default()
        };
        let mut described = descriptor.as_bytes().to_vec();
        for handle in 0..handles {
            let handle =
                RuhDescriptor { ruht: handle_type(config.handles.get(handle).isolation), ..RuhDescriptor::default() };
            described.extend_from_slice(handle.as_bytes());
        }
        assert!(described.len() <= bytes, "a descriptor is padded, never cut");
        described.resize(bytes, 0);
        described
    }

    /// A page that exists only while Flexible Data Placement is enabled. `parameter` is the Log
    /// Specific Parameter.
    pub(crate) fn enabled_fdp_page(&self, log: LogId, parameter: u8) -> Result<Vec<u8>, Failure> {
        check_enabled(&self.state.fdp)?;
        Ok(match log {
            LogId::ReclaimUnitHandleUsage => self.handle_usage_page(),
            LogId::FdpStatistics => statistics_page(self.device.stats()),
            LogId::FdpEvents => self.fdp_events_page(parameter & LSP_HOST_EVENTS != 0),
            other => panic!("{other} is not a log page of Flexible Data Placement"),
        })
    }

    /// The handle usage page. It states for each handle if a namespace uses it, and if the host or
    /// the controller chose it.
    fn handle_usage_page(&self) -> Vec<u8> {
        let handles = self.device.config().handles.count;
        let mut usage = vec![RuhAttributes::Unused; usize::from(handles)];
        for (_, namespace) in self.namespaces() {
            let attributes = if namespace.host_specified_handles {
                RuhAttributes::HostSpecified
            } else {
                RuhAttributes::ControllerSpecified
            };
            for handle in &namespace.placement_handles {
                let known = &mut usage[usize::from(handle.0)];
                // A handle that a host chose stays host-specified, even if other namespaces share
                // it.
                if *known != RuhAttributes::HostSpecified {
                    *known = attributes;
                }
            }
        }
        let mut page = RuhUsageHeader { nruh: handles.into(), ..RuhUsageHeader::default() }.as_bytes().to_vec();
        for attributes in usage {
            let descriptor = RuhUsageDescriptor { ruha: attributes.code(), ..RuhUsageDescriptor::default() };
            page.extend_from_slice(descriptor.as_bytes());
        }
        page
    }

    fn fdp_events_page(&self, host_events: bool) -> Vec<u8> {
        let log = match host_events {
            true => self.state.fdp.events.host(),
            false => self.state.fdp.events.controller(),
        };
        let whole = size_of::<FdpEventsHeader>() + nvme_spec::fdp::MAX_FDP_EVENTS * size_of::<EventBytes>();
        let header = FdpEventsHeader { nevents: (log.iter().len() as u32).into(), ..FdpEventsHeader::default() };
        let mut page = header.as_bytes().to_vec();
        for event in log.iter() {
            assert_eq!(kind::is_host_event(event.kind), host_events, "each ring has its own types");
            page.extend_from_slice(event_bytes(event).as_bytes());
        }
        assert!(page.len() <= whole, "a ring has no more entries than the page");
        page.resize(whole, 0);
        page
    }
}

/// Nominal size of a reclaim unit in bytes (RUNS). The size is a whole superblock, unless every
/// handle has the same smaller size.
fn nominal_unit_bytes(config: &DeviceConfig) -> u64 {
    let layout = ssd::DeviceLayout::new(config).expect("configurations that are offered work");
    let mut sizes = (0..config.handles.count).map(|handle| config.handles.get(handle).reclaim_unit);
    let first = sizes.next().expect("there is a handle");
    let alike = sizes.all(|size| size == first);
    let whole = first == ReclaimUnitSize::Superblock;
    // Class 0 is the superblock, so the last class is that of the handles. Equal sizes share one
    // class.
    let class = if alike && !whole { layout.classes.last() } else { layout.classes.first() };
    u64::from(class.expect("a layout has the class of superblocks").pages) * layout.page_bytes
}

/// Bytes that hosts wrote and that the media wrote and erased.
fn statistics_page(stats: &DeviceStats) -> Vec<u8> {
    let wide = |bytes: u64| U128::new(u128::from(bytes));
    FdpStatistics {
        hbmw: wide(stats.host_bytes_written()),
        mbmw: wide(stats.media_bytes_written()),
        mbe: wide(stats.media_bytes_erased()),
        ..FdpStatistics::default()
    }
    .as_bytes()
    .to_vec()
}

fn event_bytes(event: &FdpEvent) -> EventBytes {
    let flags = FdpEventFlags::new()
        .with_piv(event.pid.is_some())
        .with_nsidv(event.nsid.is_some())
        .with_lv(event.location.is_some());
    let mut bytes = EventBytes {
        event_type: event.kind,
        fdpef: flags,
        pid: event.pid.unwrap_or(0).into(),
        timestamp: zerocopy::transmute!(event.timestamp.to_le_bytes()),
        nsid: event.nsid.unwrap_or(0).into(),
        ..EventBytes::default()
    };
    if let Some(location) = event.location {
        bytes.rgid = location.group.0.into();
        bytes.ruhid = location.handle.0.into();
    }
    if let Some(moved) = event.reallocated {
        let particulars = MediaReallocated {
            sef: MediaReallocatedFlags::new().with_lbav(moved.lba.is_some()),
            nlbam: moved.blocks.into(),
            lba: moved.lba.unwrap_or(0).into(),
            ..MediaReallocated::default()
        };
        bytes.type_specific = zerocopy::transmute!(particulars);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fdp::Reallocation;
    use ssd::{Placement, RgId, RuhId};

    #[test]
    fn media_reallocated_bytes() {
        let event = FdpEvent {
            kind: kind::MEDIA_REALLOCATED,
            pid: Some(0x4005),
            nsid: Some(0x0102_0304),
            location: Some(Placement { group: RgId(1), handle: RuhId(7) }),
            timestamp: 0x0002_1122_3344_5566,
            reallocated: Some(Reallocation { blocks: 0x0a0b, lba: Some(0x0102_0304_0506_0708) }),
        };
        let bytes = event_bytes(&event);
        let bytes = bytes.as_bytes();
        assert_eq!(bytes[..4], [0x80, 0b111, 0x05, 0x40]);
        assert_eq!(bytes[4..12], [0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x02, 0x00]);
        assert_eq!(bytes[12..16], [4, 3, 2, 1]);
        // The LBA is valid. NLBAM is at offset 18. The LBA is at offset 20, which libnvme's
        // structure ignores.
        assert_eq!(bytes[16..28], [1, 0, 0x0b, 0x0a, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(bytes[28..32], [0; 4]);
        assert_eq!(bytes[32..36], [1, 0, 7, 0]);
        assert_eq!(bytes[36..], [0; 28]);
    }

    #[test]
    fn what_an_event_does_not_know_is_zero_and_not_valid() {
        let event = FdpEvent {
            kind: kind::INVALID_PLACEMENT_IDENTIFIER,
            pid: Some(9),
            nsid: Some(2),
            location: None,
            timestamp: 1,
            reallocated: None,
        };
        let bytes = event_bytes(&event);
        assert_eq!(bytes.as_bytes()[..16], [3, 0b011, 9, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(bytes.as_bytes()[16..], [0; 48]);
    }
}
