//! Separation inside the drive: pages rewritten within a window go to a separate reclaim unit.

mod common;

use common::small;
use ssd::{Device, DeviceConfig, DeviceLayout, Lpn, Placement, WriteRequest};

const PAGE: u64 = 4096;

fn with_window(pages: u64) -> DeviceConfig {
    let mut config = small(64, 0.3);
    config.handles.hot_window_bytes = pages * PAGE;
    config
}

fn write(device: &mut Device, first: u32, pages: u32) {
    let write = WriteRequest {
        first: Lpn(first),
        pages,
        host_bytes: u64::from(pages) * PAGE,
        placement: Placement::new(0, 0),
    };
    let _ = device.write(0, &write).expect("the extent is on the device");
}

/// Reclaim unit that contains a page.
fn unit(device: &Device, page: u32) -> u32 {
    let ppn = device.lookup(Lpn(page)).expect("the page was written");
    device.unit_of(ppn).0
}

#[test]
fn a_page_goes_apart_while_it_is_among_the_last_that_were_written() {
    const WINDOW: u32 = 8;
    for (between, apart) in [(0, true), (WINDOW - 1, true), (WINDOW, false), (100, false)] {
        let mut device = Device::new(&with_window(u64::from(WINDOW))).expect("the device is possible");
        write(&mut device, 0, 1);
        if between > 0 {
            write(&mut device, 1000, between);
        }
        write(&mut device, 0, 1);
        write(&mut device, 2000, 1);
        let is_apart = unit(&device, 0) != unit(&device, 2000);
        assert_eq!(is_apart, apart, "{between} pages between two writes");
    }
}

#[test]
fn an_extent_is_divided_where_recent_pages_begin_and_end() {
    let mut device = Device::new(&with_window(4)).expect("the device is possible");
    write(&mut device, 10, 2);
    write(&mut device, 8, 6);
    let units: Vec<u32> = (8..14).map(|page| unit(&device, page)).collect();
    let (around, recent) = (units[0], units[2]);
    assert_ne!(around, recent, "recent pages go apart");
    assert_eq!(units, [around, around, recent, recent, around, around]);
}

#[test]
fn the_window_is_that_of_all_handles_and_the_unit_the_handle_s_own() {
    let mut device = Device::new(&with_window(4)).expect("the device is possible");
    let through = |device: &mut Device, page: u32, handle: u16| {
        let write = WriteRequest {
            first: Lpn(page),
            pages: 1,
            host_bytes: PAGE,
            placement: Placement::new(0, handle),
        };
        let _ = device.write(0, &write).expect("the page is on the device");
        unit(device, page)
    };
    let first = through(&mut device, 0, 0);
    let second = through(&mut device, 0, 1);
    let other = through(&mut device, 1, 1);
    let third = through(&mut device, 0, 0);
    assert_ne!(second, other, "written by another handle a short time ago");
    assert!(
        third != second && third != first,
        "each handle has a unit apart of its own"
    );
}

/// A sequential stream and one hot page use one handle. Without separation the hot page leaves
/// invalid pages in the stream's units.
#[test]
fn a_sequential_stream_beside_a_hot_page_is_not_copied() {
    let measure = |window: u64| {
        let mut device = Device::new(&with_window(window)).expect("the device is possible");
        let capacity = device.layout().logical_pages;
        let mut next = 0;
        for _ in 0..6 * capacity {
            write(&mut device, next, 1);
            next = if next == capacity - 2 { 0 } else { next + 1 };
            write(&mut device, capacity - 1, 1);
        }
        device.stats().write_amplification().expect("something was written")
    };
    let (mixed, apart) = (measure(0), measure(16));
    assert!(mixed > 1.1, "without separation copies are made: {mixed}");
    assert!(apart < 1.001, "with it none are: {apart}");
}

#[test]
fn a_window_of_the_whole_drive_is_refused() {
    let capacity = DeviceLayout::new(&with_window(0)).expect("possible").logical_pages;
    assert!(DeviceLayout::new(&with_window(u64::from(capacity) - 1)).is_ok());
    let refusal = DeviceLayout::new(&with_window(u64::from(capacity)))
        .expect_err("it is too long")
        .to_string();
    assert!(
        refusal.contains("handles.hot_window_bytes") && refusal.contains("less than the capacity"),
        "{refusal}"
    );
}
