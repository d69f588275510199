//! Windows of written pages. Separation: pages rewritten within a window go to a separate reclaim
//! unit. Absorption: pages rewritten while they wait in the write buffer are not programmed.

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
    let write =
        WriteRequest { first: Lpn(first), pages, host_bytes: u64::from(pages) * PAGE, placement: Placement::new(0, 0) };
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
        let write = WriteRequest { first: Lpn(page), pages: 1, host_bytes: PAGE, placement: Placement::new(0, handle) };
        let _ = device.write(0, &write).expect("the page is on the device");
        unit(device, page)
    };
    let first = through(&mut device, 0, 0);
    let second = through(&mut device, 0, 1);
    let other = through(&mut device, 1, 1);
    let third = through(&mut device, 0, 0);
    assert_ne!(second, other, "written by another handle a short time ago");
    assert!(third != second && third != first, "each handle has a unit apart of its own");
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
    for (field, config) in [
        ("handles.hot_window_bytes", with_window as fn(u64) -> DeviceConfig),
        ("handles.write_absorption_bytes", absorbing),
    ] {
        assert!(DeviceLayout::new(&config(u64::from(capacity) - 1)).is_ok());
        let refusal = DeviceLayout::new(&config(u64::from(capacity)));
        let refusal = refusal.expect_err("it is too long").to_string();
        assert!(refusal.contains(field) && refusal.contains("less than the capacity"), "{refusal}");
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Absorption

fn absorbing(pages: u64) -> DeviceConfig {
    let mut config = small(64, 0.3);
    config.handles.write_absorption_bytes = pages * PAGE;
    config
}

/// Pages that the host wrote, that were absorbed and that were programmed.
fn counts(device: &Device) -> (u64, u64, u64) {
    let (total, media_bytes) = (device.stats().total(), device.stats().media_bytes_written());
    assert_eq!(total.host_bytes_written, total.host_pages_written * PAGE);
    (total.host_pages_written, total.host_pages_absorbed, media_bytes / PAGE)
}

#[test]
fn a_page_is_absorbed_while_it_is_among_the_last_that_were_programmed() {
    const WINDOW: u32 = 8;
    for (between, absorbed) in [(0, 1), (WINDOW - 1, 1), (WINDOW, 0), (100, 0)] {
        let mut device = Device::new(&absorbing(u64::from(WINDOW))).expect("the device is possible");
        write(&mut device, 0, 1);
        let place = device.lookup(Lpn(0));
        for page in 0..between {
            write(&mut device, 1000 + page, 1);
        }
        write(&mut device, 0, 1);
        let host = u64::from(between) + 2;
        assert_eq!(counts(&device), (host, absorbed, host - absorbed), "{between} pages between two writes");
        assert_eq!(device.lookup(Lpn(0)) == place, absorbed == 1, "it is replaced in its place");
        assert_eq!(device.host_pages_written(), host, "the policies' clock counts all host pages");
    }
}

/// Absorbed writes push nothing out, so a page that waits can be replaced any number of times.
#[test]
fn absorbed_pages_are_not_programmed_and_do_not_count() {
    let mut device = Device::new(&absorbing(2)).expect("the device is possible");
    for _ in 0..1000 {
        write(&mut device, 7, 1);
        write(&mut device, 8, 1);
    }
    assert_eq!(counts(&device), (2000, 1998, 2));
    // Three pages in turn push each other out.
    for _ in 0..1000 {
        (20..23).for_each(|page| write(&mut device, page, 1));
    }
    assert_eq!(counts(&device), (5000, 1998, 3002));
    device.check().expect("every invariant holds");
}

/// The pages of a command count one after the other.
#[test]
fn a_part_of_an_extent_is_absorbed() {
    let mut device = Device::new(&absorbing(4)).expect("the device is possible");
    write(&mut device, 10, 2);
    write(&mut device, 9, 4);
    assert_eq!(counts(&device), (6, 2, 4), "pages 10 and 11 wait");
    let mut device = Device::new(&absorbing(4)).expect("the device is possible");
    write(&mut device, 10, 2);
    write(&mut device, 6, 6);
    assert_eq!(counts(&device), (8, 0, 8), "pages 6 to 9 push pages 10 and 11 out");
}

#[test]
fn a_page_that_left_its_placement_or_the_map_is_programmed_again() {
    let mut config = absorbing(16);
    config.geometry.reclaim_groups = 2;
    let mut device = Device::new(&config).expect("the device is possible");
    let through = |device: &mut Device, group: u16, handle: u16| {
        let write =
            WriteRequest { first: Lpn(0), pages: 1, host_bytes: PAGE, placement: Placement::new(group, handle) };
        let _ = device.write(0, &write).expect("the page is on the device");
    };
    for (absorbed, (group, handle)) in [(0, (0, 0)), (1, (0, 0)), (1, (0, 1)), (1, (1, 1)), (2, (1, 1))] {
        through(&mut device, group, handle);
        assert_eq!(counts(&device).1, absorbed, "group {group}, handle {handle}");
    }
    let _ = device.deallocate(0, Lpn(0), 1).expect("the page exists");
    through(&mut device, 1, 1);
    assert_eq!(counts(&device).1, 2, "the host deallocated it");
    through(&mut device, 1, 1);
    assert_eq!(counts(&device).1, 3);
    // The unit of a page that waits may be closed.
    device.update_handle(0, Placement::new(1, 1)).expect("the placement exists");
    through(&mut device, 1, 1);
    assert_eq!(counts(&device).1, 4);
}

/// The buffer is power-safe. A stored device continues with it.
#[test]
fn pages_wait_in_a_snapshot_too() {
    let mut device = Device::new(&absorbing(8)).expect("the device is possible");
    write(&mut device, 0, 8);
    let mut again = Device::from_bytes("stored", &device.to_bytes()).expect("it is a device");
    for device in [&mut device, &mut again] {
        write(device, 0, 8);
        write(device, 100, 1);
        write(device, 0, 2);
        assert_eq!(counts(device), (19, 8, 11));
    }
}

/// Uniform writes are rarely absorbed. Writes to few pages are, and cause no copies.
#[test]
fn hot_overwrites_are_absorbed_and_others_are_not() {
    let measure = |window: u64, hot_percent: u32| {
        let mut device = Device::new(&absorbing(window)).expect("the device is possible");
        let capacity = device.layout().logical_pages;
        write(&mut device, 0, capacity);
        let mut uniform = common::Uniform::new(5);
        for _ in 0..4 * capacity {
            let is_hot = uniform.below(100) < hot_percent;
            let page = if is_hot { uniform.below(16) } else { uniform.below(capacity) };
            write(&mut device, page, 1);
        }
        device.check().expect("every invariant holds");
        device.stats().write_amplification().expect("something was written")
    };
    let share = |hot_percent| measure(256, hot_percent) / measure(0, hot_percent);
    let (uniform, hot) = (share(0), share(50));
    assert!((0.94..1.0).contains(&uniform), "uniform writes: {uniform}");
    assert!(hot < 0.75, "half of the writes to 16 pages: {hot}");
}
