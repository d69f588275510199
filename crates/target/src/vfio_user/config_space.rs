//! The PCI configuration space of the function: identity, BAR0 and capabilities.
//!
//! ```text
//! BAR0:  registers | doorbells | MSI-X table | pending bits
//! ```
//!
//! The capabilities are power management, MSI-X (with its table and pending bits in BAR0, behind
//! the doorbells) and PCI Express (with function level reset). The space consists of bytes and a
//! mask of the writable bits. A function level reset is the only side effect of a write.

use nvme::pcie::{DEVICE_ID, DOORBELL_BYTES, REGISTER_BYTES, VENDOR_ID};
use nvme_spec::pci::{
    BAR_MEMORY_64, CAP_ID_MSIX, CAP_ID_PCI_EXPRESS, CAP_ID_POWER_MANAGEMENT, CLASS_MASS_STORAGE, ConfigHeader,
    EXTENDED_CONFIG_SPACE_SIZE, MsixCapability, MsixControl, MsixLocation, PROG_IF_NVME, PciCommand,
    PciExpressCapability, PciStatus, PowerManagementCapability, PowerManagementControl, PxCap, PxDeviceCap,
    PxDeviceControl, PxLinkCap, SUBCLASS_NVM,
};
use zerocopy::IntoBytes;

use super::vectors::TABLE_ENTRY_BYTES;

const PAGE_BYTES: u64 = 4096;
/// Most vectors of an MSI-X table.
pub const VECTORS_MAX: u16 = 2048;

const COMMAND: usize = std::mem::offset_of!(ConfigHeader, command);
const POWER_MANAGEMENT: usize = 0x40;
const MSIX: usize = 0x50;
const PCI_EXPRESS: usize = 0x60;
/// PCI Express capability, Device Control.
const DEVICE_CONTROL: usize = PCI_EXPRESS + 8;
const _: () = assert!(
    size_of::<ConfigHeader>() <= POWER_MANAGEMENT
        && POWER_MANAGEMENT + size_of::<PowerManagementCapability>() <= MSIX
        && MSIX + size_of::<MsixCapability>() <= PCI_EXPRESS,
    "header and capabilities do not overlap"
);
const _: () =
    assert!(PCI_EXPRESS + size_of::<PciExpressCapability>() <= 256, "capabilities lie in the first 256 bytes");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarLayout {
    /// Number of MSI-X vectors.
    pub vectors: u16,
}

impl BarLayout {
    /// Offset of the MSI-X table.
    pub const TABLE: u64 = REGISTER_BYTES + DOORBELL_BYTES;

    /// Offset of the pending bits.
    pub fn pending(self) -> u64 {
        BarLayout::TABLE + (u64::from(self.vectors) * TABLE_ENTRY_BYTES).next_multiple_of(PAGE_BYTES)
    }

    /// Size of BAR0, a power of two.
    pub fn bar_bytes(self) -> u64 {
        (self.pending() + PAGE_BYTES).next_power_of_two()
    }
}

/// Side effect of a write to configuration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigEffect {
    None,
    /// The function must be reset. The configuration space is already reset.
    FunctionReset,
}

#[derive(Clone)]
pub struct ConfigSpace {
    layout: BarLayout,
    bytes: Box<[u8; EXTENDED_CONFIG_SPACE_SIZE]>,
    /// Bits that the host can write.
    writable: Box<[u8; EXTENDED_CONFIG_SPACE_SIZE]>,
}

impl ConfigSpace {
    /// The configuration space after a reset.
    pub fn new(layout: BarLayout) -> ConfigSpace {
        let mut space = ConfigSpace {
            layout,
            bytes: Box::new([0; EXTENDED_CONFIG_SPACE_SIZE]),
            writable: Box::new([0; EXTENDED_CONFIG_SPACE_SIZE]),
        };
        space.put(0, header().as_bytes(), header_mask(layout).as_bytes());
        let (power, power_mask) = power_management();
        space.put(POWER_MANAGEMENT, power.as_bytes(), power_mask.as_bytes());
        let (msix, msix_mask) = msix(layout);
        space.put(MSIX, msix.as_bytes(), msix_mask.as_bytes());
        let (express, express_mask) = pci_express();
        space.put(PCI_EXPRESS, express.as_bytes(), express_mask.as_bytes());
        space
    }

    fn put(&mut self, at: usize, bytes: &[u8], writable: &[u8]) {
        assert_eq!(bytes.len(), writable.len(), "each byte of the structure at {at:#x} has a mask");
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.writable[at..at + writable.len()].copy_from_slice(writable);
    }

    /// Reads at an offset. Bytes beyond the end are zero.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        let first = usize::try_from(offset).unwrap_or(usize::MAX);
        for (index, byte) in data.iter_mut().enumerate() {
            let there = first.checked_add(index).and_then(|at| self.bytes.get(at));
            *byte = there.copied().unwrap_or(0);
        }
    }

    /// Returns Bus Master Enable: whether the function may access the host's memory, which includes
    /// sending MSI-X messages.
    pub fn is_bus_master(&self) -> bool {
        let command = u16::from_le_bytes([self.bytes[COMMAND], self.bytes[COMMAND + 1]]);
        PciCommand::from_bits(command.into()).bus_master()
    }

    /// Writes at an offset. Read-only bits and bytes beyond the end do not change.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> ConfigEffect {
        let first = usize::try_from(offset).unwrap_or(usize::MAX);
        for (index, byte) in data.iter().enumerate() {
            let Some(at) = first.checked_add(index).filter(|at| *at < self.bytes.len()) else {
                break;
            };
            let mask = self.writable[at];
            self.bytes[at] = self.bytes[at] & !mask | byte & mask;
        }
        let control = u16::from_le_bytes([self.bytes[DEVICE_CONTROL], self.bytes[DEVICE_CONTROL + 1]]);
        if PxDeviceControl::from_bits(control.into()).iflr() {
            *self = ConfigSpace::new(self.layout);
            assert!(!self.is_bus_master(), "a function does not access memory after its reset");
            return ConfigEffect::FunctionReset;
        }
        ConfigEffect::None
    }
}

fn header() -> ConfigHeader {
    ConfigHeader {
        vendor_id: VENDOR_ID.into(),
        device_id: DEVICE_ID.into(),
        status: PciStatus::new().with_capabilities_list(true),
        revision_id: 1,
        prog_if: PROG_IF_NVME,
        sub_class: SUBCLASS_NVM,
        base_class: CLASS_MASS_STORAGE,
        bars: [BAR_MEMORY_64.into(), 0.into(), 0.into(), 0.into(), 0.into(), 0.into()],
        subsystem_vendor_id: VENDOR_ID.into(),
        subsystem_id: DEVICE_ID.into(),
        capabilities_pointer: POWER_MANAGEMENT as u8,
        ..ConfigHeader::default()
    }
}

fn header_mask(layout: BarLayout) -> ConfigHeader {
    let address_bits = !(layout.bar_bytes() - 1);
    let mut mask = ConfigHeader {
        command: PciCommand::new()
            .with_memory_space(true)
            .with_bus_master(true)
            .with_parity_error_response(true)
            .with_serr_enable(true)
            .with_interrupt_disable(true),
        cache_line_size: 0xff,
        interrupt_line: 0xff,
        ..ConfigHeader::default()
    };
    mask.bars[0] = (address_bits as u32).into();
    mask.bars[1] = ((address_bits >> 32) as u32).into();
    mask
}

/// Version 3, with states D0 and D3hot and no reset between them.
fn power_management() -> (PowerManagementCapability, PowerManagementCapability) {
    let capability = PowerManagementCapability {
        cap_id: CAP_ID_POWER_MANAGEMENT,
        next: MSIX as u8,
        pmc: 3.into(),
        pmcs: PowerManagementControl::new().with_nsfrst(true),
        ..PowerManagementCapability::default()
    };
    let mask = PowerManagementCapability {
        pmcs: PowerManagementControl::new().with_ps(0b11),
        ..PowerManagementCapability::default()
    };
    (capability, mask)
}

fn msix(layout: BarLayout) -> (MsixCapability, MsixCapability) {
    assert!(
        (1..=VECTORS_MAX).contains(&layout.vectors),
        "an MSI-X table has 1 to {VECTORS_MAX} vectors, not {}",
        layout.vectors
    );
    let place = |offset: u64| {
        assert!(offset.is_multiple_of(8), "a structure of MSI-X is at a multiple of 8, not at {offset:#x}");
        MsixLocation::new().with_bir(0).with_offset8((offset / 8) as u32)
    };
    let capability = MsixCapability {
        cap_id: CAP_ID_MSIX,
        next: PCI_EXPRESS as u8,
        mxc: MsixControl::new().with_ts(layout.vectors - 1),
        mtab: place(BarLayout::TABLE),
        mpba: place(layout.pending()),
    };
    let mask = MsixCapability { mxc: MsixControl::new().with_fm(true).with_mxe(true), ..MsixCapability::default() };
    (capability, mask)
}

/// An endpoint with function level reset, at 16 GT/s and four lanes.
fn pci_express() -> (PciExpressCapability, PciExpressCapability) {
    const SPEED_16_GT: u8 = 4;
    const LANES: u8 = 4;
    let capability = PciExpressCapability {
        cap_id: CAP_ID_PCI_EXPRESS,
        pxcap: PxCap::new().with_ver(2),
        pxdcap: PxDeviceCap::new().with_mps(1).with_etfs(true).with_rer(true).with_flrc(true),
        pxdc: PxDeviceControl::new().with_ero(true).with_ens(true).with_mrrs(2),
        pxlcap: PxLinkCap::new().with_sls(SPEED_16_GT).with_mlw(LANES),
        pxls: (u16::from(SPEED_16_GT) | u16::from(LANES) << 4).into(),
        pxlcap2: 0b11110.into(),
        pxlc2: u16::from(SPEED_16_GT).into(),
        ..PciExpressCapability::default()
    };
    let mask =
        PciExpressCapability { pxdc: PxDeviceControl::from_bits(0xffff.into()), ..PciExpressCapability::default() };
    (capability, mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: BarLayout = BarLayout { vectors: 17 };

    fn read<const N: usize>(space: &ConfigSpace, offset: u64) -> [u8; N] {
        let mut data = [0xee; N];
        space.read(offset, &mut data);
        data
    }

    #[test]
    fn drivers_find_the_class_and_the_capabilities() {
        let space = ConfigSpace::new(LAYOUT);
        assert_eq!(read(&space, 8), [1, 0x02, 0x08, 0x01]);
        let mut at = u64::from(read::<1>(&space, 0x34)[0]);
        let mut found = Vec::new();
        while at != 0 {
            let [id, next] = read(&space, at);
            found.push(id);
            at = u64::from(next);
        }
        assert_eq!(found, [CAP_ID_POWER_MANAGEMENT, CAP_ID_MSIX, CAP_ID_PCI_EXPRESS]);
        assert_eq!(read(&space, 0x52), [16, 0], "17 vectors");
        assert_eq!(read(&space, 0x54), [0, 0x20, 0, 0], "the table is in BAR0 at 2000h");
        assert_eq!(read(&space, 0x58), [0, 0x30, 0, 0]);
    }

    #[test]
    fn the_size_of_the_bar_is_found_by_writing_ones() {
        let mut space = ConfigSpace::new(LAYOUT);
        space.write(0x10, &[0xff; 8]);
        let answer = u64::from_le_bytes(read(&space, 0x10));
        assert_eq!(answer & 0xf, u64::from(BAR_MEMORY_64));
        assert_eq!((!(answer & !0xf)).wrapping_add(1), LAYOUT.bar_bytes());
        assert_eq!(LAYOUT.bar_bytes(), 0x4000);
        let most = BarLayout { vectors: VECTORS_MAX };
        assert_eq!((most.pending(), most.bar_bytes()), (0xa000, 0x10000));
    }

    #[test]
    fn only_what_may_be_written_is() {
        let mut space = ConfigSpace::new(LAYOUT);
        let before = read::<4>(&space, 0);
        space.write(0, &[0xff; 8]);
        assert_eq!(read::<4>(&space, 0), before);
        assert_eq!(u16::from_le_bytes(read(&space, 4)), 0x0546);
        assert_eq!(space.write(4094, &[1; 8]), ConfigEffect::None);
        assert_eq!(space.write(u64::MAX - 1, &[1]), ConfigEffect::None);
        assert_eq!(read(&space, u64::MAX - 1), [0]);
    }

    #[test]
    fn a_function_level_reset_resets_the_space() {
        let mut space = ConfigSpace::new(LAYOUT);
        space.write(4, &[6, 0]);
        assert!(space.is_bus_master());
        assert_eq!(space.write(DEVICE_CONTROL as u64 + 1, &[0x80]), ConfigEffect::FunctionReset);
        assert_eq!(read(&space, 4), [0, 0]);
        assert!(!space.is_bus_master());
        assert_eq!(read::<2>(&space, DEVICE_CONTROL as u64)[1] & 0x80, 0);
    }
}
