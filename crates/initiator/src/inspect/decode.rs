//! Decodes FDP log pages into named values.
//!
//! The bytes come from any drive and are not trusted. A page that is too short is an error with the
//! offset. The address of a Media Reallocated event is at byte 4 of the type-specific field, as in
//! the standard. Tools that read byte 8 print a different address.

use nvme_spec::fdp::{
    FdpConfigurationDescriptor, FdpConfigurationsHeader, FdpEvent, FdpEventType, FdpEventsHeader, FdpStatistics,
    RuhDescriptor, RuhStatusDescriptor, RuhStatusHeader, RuhType, RuhUsageDescriptor, RuhUsageHeader,
};
use serde::Serialize;
use zerocopy::{FromBytes, Immutable, KnownLayout};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{page} needs {needed} bytes at offset {offset}, but has {bytes} in total")]
pub struct DecodeError {
    page: &'static str,
    offset: usize,
    needed: usize,
    bytes: usize,
}

/// FDP configuration (log page 20h).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FdpConfiguration {
    pub valid: bool,
    /// A volatile write cache may be enabled with this configuration.
    pub volatile_write_cache: bool,
    /// Number of high bits of a placement identifier that hold the reclaim group (RGIF).
    pub reclaim_group_bits: u8,
    pub reclaim_groups: u32,
    pub reclaim_unit_bytes: u64,
    pub placement_identifiers_max: u32,
    /// Maximum number of namespaces, 0 for no limit.
    pub namespaces_max: u32,
    /// Maximum time that a reclaim unit stays open, seconds, 0 if not reported.
    pub time_limit_s: u32,
    /// Type of each reclaim unit handle.
    pub handles: Vec<String>,
}

/// Usage of a reclaim unit handle (log page 21h).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HandleUse {
    /// "unused", "host specified" or "controller specified".
    pub used: String,
}

/// FDP statistics (log page 22h).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FdpByteCounts {
    /// Host bytes with metadata written (HBMW).
    pub host_bytes_written: u128,
    /// Media bytes with metadata written (MBMW).
    pub media_bytes_written: u128,
    pub media_bytes_erased: u128,
    /// MBMW / HBMW, `None` before the first write.
    pub write_amplification: Option<f64>,
}

/// FDP event (log page 23h).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FdpEventRecord {
    pub event: String,
    pub event_type: u8,
    pub placement_identifier: Option<u16>,
    pub nsid: Option<u32>,
    pub reclaim_group: Option<u16>,
    pub reclaim_unit_handle: Option<u16>,
    pub timestamp_ms: u64,
    pub blocks_moved: Option<u16>,
    /// First logical block, if valid, for Media Reallocated.
    pub lba: Option<u64>,
}

/// State of a placement handle (I/O Management Receive).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HandleStatus {
    pub placement_identifier: u16,
    pub reclaim_unit_handle: u16,
    /// Estimated seconds until the time limit, 0 if not reported.
    pub seconds_left: u32,
    /// Logical blocks that still fit into the reclaim unit (RUAMW).
    pub blocks_left: u64,
}

struct PageReader<'a> {
    name: &'static str,
    bytes: &'a [u8],
}

impl PageReader<'_> {
    fn at<T: FromBytes + KnownLayout + Immutable>(&self, offset: usize) -> Result<T, DecodeError> {
        let there = self.bytes.get(offset..).and_then(|rest| T::read_from_prefix(rest).ok());
        there.map(|(value, _)| value).ok_or(DecodeError {
            page: self.name,
            offset,
            needed: size_of::<T>(),
            bytes: self.bytes.len(),
        })
    }

    /// Converts the `count` descriptors after a header with `row`.
    fn rows<H, D: FromBytes + KnownLayout + Immutable, R>(
        &self,
        _header: &H,
        count: impl Into<u32>,
        row: impl Fn(D) -> R,
    ) -> Result<Vec<R>, DecodeError> {
        let descriptor = |index: u32| self.at(size_of::<H>() + index as usize * size_of::<D>());
        (0..count.into()).map(|index| descriptor(index).map(&row)).collect()
    }
}

/// Decodes log page 20h.
pub fn configurations(bytes: &[u8]) -> Result<Vec<FdpConfiguration>, DecodeError> {
    let page = PageReader { name: "FDP Configurations (20h)", bytes };
    let header: FdpConfigurationsHeader = page.at(0)?;
    let mut offset = size_of::<FdpConfigurationsHeader>();
    let mut all = Vec::new();
    for _ in 0..=header.numfdpc.get() {
        let descriptor: FdpConfigurationDescriptor = page.at(offset)?;
        let first = offset + size_of::<FdpConfigurationDescriptor>();
        let handle = |index: usize| page.at::<RuhDescriptor>(first + index * size_of::<RuhDescriptor>());
        let handles = (0..usize::from(descriptor.nruh.get())).map(|index| Ok(handle_type(handle(index)?.ruht)));
        all.push(FdpConfiguration {
            valid: descriptor.fdpa.fdpcv(),
            volatile_write_cache: descriptor.fdpa.fdpvwc(),
            reclaim_group_bits: descriptor.fdpa.rgif(),
            reclaim_groups: descriptor.nrg.get(),
            reclaim_unit_bytes: descriptor.runs.get(),
            placement_identifiers_max: u32::from(descriptor.maxpids.get()) + 1,
            namespaces_max: descriptor.nnss.get(),
            time_limit_s: descriptor.erutl.get(),
            handles: handles.collect::<Result<_, _>>()?,
        });
        // A descriptor with a size below its minimum would cause an endless loop.
        offset += usize::from(descriptor.dsze.get()).max(size_of::<FdpConfigurationDescriptor>());
    }
    Ok(all)
}

fn handle_type(code: u8) -> String {
    match RuhType::from_u8(code) {
        Some(kind) => kind.name().to_lowercase(),
        None => format!("type {code:#04x}"),
    }
}

/// Decodes log page 21h.
pub fn usage(bytes: &[u8]) -> Result<Vec<HandleUse>, DecodeError> {
    let page = PageReader { name: "Reclaim Unit Handle Usage (21h)", bytes };
    let header: RuhUsageHeader = page.at(0)?;
    page.rows(&header, header.nruh.get(), |descriptor: RuhUsageDescriptor| {
        let used = match descriptor.ruha {
            0 => "unused".to_string(),
            1 => "host specified".to_string(),
            2 => "controller specified".to_string(),
            other => format!("attribute {other}"),
        };
        HandleUse { used }
    })
}

/// Decodes log page 22h.
pub fn statistics(bytes: &[u8]) -> Result<FdpByteCounts, DecodeError> {
    let statistics: FdpStatistics = PageReader { name: "FDP Statistics (22h)", bytes }.at(0)?;
    let (host, media) = (statistics.hbmw.get(), statistics.mbmw.get());
    Ok(FdpByteCounts {
        host_bytes_written: host,
        media_bytes_written: media,
        media_bytes_erased: statistics.mbe.get(),
        write_amplification: (host > 0).then(|| media as f64 / host as f64),
    })
}

/// Decodes log page 23h, host or controller events.
pub fn events(bytes: &[u8]) -> Result<Vec<FdpEventRecord>, DecodeError> {
    let page = PageReader { name: "FDP Events (23h)", bytes };
    let header: FdpEventsHeader = page.at(0)?;
    page.rows(&header, header.nevents.get(), |event: FdpEvent| record(&event))
}

fn record(event: &FdpEvent) -> FdpEventRecord {
    let kind = FdpEventType::from_u8(event.event_type);
    let reallocated = (kind == Some(FdpEventType::MediaReallocated)).then(|| event.media_reallocated());
    let flags = event.fdpef;
    let mut milliseconds = [0; 8];
    milliseconds[..6].copy_from_slice(&event.timestamp.timestamp);
    FdpEventRecord {
        event: kind.map_or_else(|| format!("event {:#04x}", event.event_type), |kind| kind.name().to_string()),
        event_type: event.event_type,
        placement_identifier: flags.piv().then(|| event.pid.get()),
        nsid: flags.nsidv().then(|| event.nsid.get()),
        reclaim_group: flags.lv().then(|| event.rgid.get()),
        reclaim_unit_handle: flags.lv().then(|| event.ruhid.get()),
        timestamp_ms: u64::from_le_bytes(milliseconds),
        blocks_moved: reallocated.map(|moved| moved.nlbam.get()),
        lba: reallocated.filter(|moved| moved.sef.lbav()).map(|moved| moved.lba.get()),
    }
}

/// Decodes the reclaim unit handle status of a namespace.
pub fn handle_status(bytes: &[u8]) -> Result<Vec<HandleStatus>, DecodeError> {
    let page = PageReader { name: "Reclaim Unit Handle Status", bytes };
    let header: RuhStatusHeader = page.at(0)?;
    page.rows(&header, header.nruhsd.get(), |descriptor: RuhStatusDescriptor| HandleStatus {
        placement_identifier: descriptor.pid.get(),
        reclaim_unit_handle: descriptor.ruhid.get(),
        seconds_left: descriptor.earutr.get(),
        blocks_left: descriptor.ruamw.get(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Event in the layout of the standard, byte by byte.
    #[test]
    fn the_address_of_a_moved_block_is_at_byte_20_of_the_event() {
        let mut page = vec![0u8; 64 + 64];
        page[0] = 1;
        let event = &mut page[64..];
        event[0] = 0x80;
        event[1] = 0b111;
        event[2..4].copy_from_slice(&5u16.to_le_bytes());
        event[4..10].copy_from_slice(&[1, 2, 0, 0, 0, 0]);
        event[12..16].copy_from_slice(&7u32.to_le_bytes());
        event[16] = 1;
        event[18..20].copy_from_slice(&300u16.to_le_bytes());
        event[20..28].copy_from_slice(&0x1122_3344_5566u64.to_le_bytes());
        event[34] = 3;
        let events = events(&page).unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].event, "Media Reallocated");
        assert_eq!(events[0].lba, Some(0x1122_3344_5566));
        assert_eq!(events[0].blocks_moved, Some(300));
        assert_eq!((events[0].nsid, events[0].placement_identifier), (Some(7), Some(5)));
        assert_eq!((events[0].reclaim_unit_handle, events[0].timestamp_ms), (Some(3), 513));
    }

    #[test]
    fn pages_that_end_early_are_refused() {
        let mut page = vec![0u8; 64 + 63];
        page[0] = 1;
        assert_eq!(
            events(&page).unwrap_err().to_string(),
            "FDP Events (23h) needs 64 bytes at offset 64, but has 127 in total"
        );
        assert!(configurations(&[0; 15]).is_err());
        assert!(statistics(&[0; 63]).is_err());
        assert!(usage(&[9, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(handle_status(&[0xff; 16]).is_err());
    }
}
