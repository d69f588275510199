//! The log page of the Datacenter NVMe SSD Specification from which tools compute write amplification without FDP.
//!
//! All of it follows from counters of the device and the controller. The modelled flash has no errors of its own, no system area and no
//! throttling, and its capacitor does not age: those fields are what a drive says that has had none.

use nvme_spec::ocp::{SMART_EXTENDED_GUID, SMART_EXTENDED_VERSION, SmartExtendedLog};
use zerocopy::IntoBytes;

use super::health::wide;
use crate::subsystem::Subsystem;

/// Version of the specification.
const MAJOR_VERSION: u8 = 2;
/// Normalized counts of bad blocks, and capacitor health: percent that is left.
const WHOLE: u16 = 100;

impl Subsystem {
    /// SMART / Health Information Extended (C0h).
    pub(super) fn smart_extended_page(&self) -> Vec<u8> {
        let counted = &self.state.smart;
        let stats = self.device.stats();
        let erases = self.device.block_erase_counts();
        // Collections read what they copy.
        let media_bytes_read = counted.host_bytes_read + stats.total().gc_pages_copied * stats.page_bytes;
        SmartExtendedLog {
            pmuw: wide(stats.media_bytes_written()),
            pmur: wide(media_bytes_read),
            bunbn: WHOLE.into(),
            bsnbn: WHOLE.into(),
            urec: counted.media_errors.into(),
            mxudec: erases.iter().copied().max().unwrap_or(0).into(),
            mnudec: erases.iter().copied().min().unwrap_or(0).into(),
            mavf: MAJOR_VERSION,
            pfb: self.free_percent(),
            cph: WHOLE.into(),
            uio: counted.unaligned_writes.into(),
            nuse: self
                .namespaces()
                .map(|(_, namespace)| namespace.blocks)
                .sum::<u64>()
                .into(),
            psc: wide(counted.unsafe_shutdowns),
            eest: wide(self.endurance_estimate()),
            lpv: SMART_EXTENDED_VERSION.into(),
            lpg: SMART_EXTENDED_GUID,
            ..SmartExtendedLog::default()
        }
        .as_bytes()
        .to_vec()
    }

    /// Share of the blocks that no reclaim unit holds, in percent.
    fn free_percent(&self) -> u8 {
        let pages = u64::from(self.device.layout().physical_pages);
        let taken: u64 = self.device.occupancy().iter().map(|owner| owner.pages).sum();
        assert!(
            taken <= pages,
            "reclaim units of {taken} pages are on a drive of {pages}"
        );
        ((pages - taken) * 100 / pages) as u8
    }
}
