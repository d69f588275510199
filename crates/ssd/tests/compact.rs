//! Compact maps change nothing but the memory of a drive, and take no more than the layout says.

mod common;

use std::sync::{Mutex, PoisonError};

use common::{Uniform, extent, recorded, small};
use ssd::config::{Geometry, Isolation, ReclaimUnitSize};
use ssd::{Device, DeviceConfig, Lpn, Placement};

/// Lock of the test that is being measured.
static ALONE: Mutex<()> = Mutex::new(());

/// A drive with reclaim units of `unit_pages` pages.
fn drive(units: u64, unit_pages: u64) -> DeviceConfig {
    let mut config = small(units, 0.2);
    let geometry = Geometry {
        physical_bytes: Some(units * unit_pages * 4096),
        reclaim_unit_bytes: unit_pages * 4096,
        ..config.geometry
    };
    config.geometry = geometry;
    config
}

/// Writes, deallocates and closes at random. Compares a drive with compact maps and one without.
fn agree(config: &DeviceConfig, pages_max: u32, commands: u32) {
    let (mut compact, mut full) = (recorded(config), recorded(config));
    compact.make_compact().expect("there is memory");
    assert!(compact.is_compact() && !full.is_compact());
    let logical_pages = full.layout().logical_pages;
    let mut random = Uniform::new(7);
    for command in 0..commands {
        let handle = Placement::handle(random.below(4) as u16);
        let pages = 1 + random.below(pages_max);
        let first = random.below(logical_pages - pages);
        for device in [&mut compact, &mut full] {
            match command % 64 {
                0 => drop(device.deallocate(0, Lpn(first), pages)),
                1 => drop(device.update_handle(0, handle)),
                2 if command % 4096 == 2 => *device = device.clone(),
                _ => drop(device.write(0, &extent(first, pages, handle))),
            }
        }
    }
    assert!(compact.stats().total().units_reclaimed > 100, "there were collections");
    assert_eq!(compact.sink(), full.sink());
    assert_eq!(compact.stats(), full.stats());
    assert!((0..logical_pages).all(|lpn| compact.lookup(Lpn(lpn)) == full.lookup(Lpn(lpn))));
    compact.check().expect("the maps agree");
}

#[test]
fn compact_maps_change_no_result() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Blocks of one L2P entry, of several, and of the most.
    agree(&drive(40, 256), 40, 20_000);
    agree(&drive(300, 256), 3, 60_000);
    agree(&drive(12_000, 64), 40, 50_000);
    let mut others = drive(64, 512);
    others.gc.block_remapping = true;
    others.gc.wear_levelling_erases = 4;
    others.handles.isolation = Isolation::PersistentlyIsolated;
    others.handles.open_reclaim_units = 2;
    agree(&others, 300, 6_000);
    others.gc.block_remapping = false;
    others.handles.reclaim_unit = ReclaimUnitSize::Channel;
    agree(&others, 30, 60_000);
}

#[test]
fn units_that_share_a_word_of_the_bitmap_stay_as_they_are() {
    let mut device = recorded(&drive(40, 4 * 25));
    let memory_bytes = device.layout().memory_bytes();
    device.make_compact().expect("there is memory");
    assert!(!device.is_compact());
    assert_eq!(device.layout().compact_memory_bytes(), memory_bytes);
}

/// Resident memory of this process, bytes.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4096
}

/// Memory that a drive takes until it is full and every page was written three times at random.
fn written_at_random(config: &DeviceConfig, compact: bool) -> u64 {
    let before = resident_bytes();
    let mut device = Device::new(config).expect("the drive is possible");
    if compact {
        device.make_compact().expect("there is memory");
    }
    let logical_pages = device.layout().logical_pages;
    let mut random = Uniform::new(3);
    for lpn in 0..logical_pages {
        // Every page once, in a mixed order.
        let mixed = u64::from(lpn) * 1_000_003 % u64::from(logical_pages);
        let _ = device.write(0, &extent(mixed as u32, 1, Placement::handle(0))).expect("it exists");
    }
    for _ in 0..2 * logical_pages {
        let _ = device.write(0, &extent(random.below(logical_pages), 1, Placement::handle(0))).expect("it exists");
    }
    assert!((0..logical_pages).all(|lpn| device.lookup(Lpn(lpn)).is_some()), "the drive is full");
    resident_bytes() - before
}

#[test]
fn a_full_drive_takes_the_memory_that_the_layout_says() {
    const HUGE_PAGE_BYTES: u64 = 2 << 20;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let config = drive(1000, 4096);
    let layout = Device::new(&config).expect("the drive is possible").layout().clone();
    for (compact, account) in [(false, layout.memory_bytes()), (true, layout.compact_memory_bytes())] {
        let taken = written_at_random(&config, compact);
        // Each array on huge pages ends with a part of one.
        assert!(taken <= account + 3 * HUGE_PAGE_BYTES, "{taken} bytes of {account}, compact {compact}");
        assert!(taken >= account - account / 8, "{taken} bytes of {account}, compact {compact}");
    }
    assert!(layout.compact_memory_bytes() < layout.memory_bytes() * 7 / 10);
}
