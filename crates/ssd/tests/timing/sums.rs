//! A command on an idle drive takes exactly the sum of its parts, in nanoseconds.

use ssd::{CompletionTime, Lpn, Placement};

use crate::common::{extent, placement, silent};
use crate::host::{HostCommand, LATER, ask, fill_pages};
use crate::*;

#[test]
fn a_page_is_sensed_sent_over_its_channel_and_over_the_link() {
    let mut device = silent(&timed(40, 0.25));
    let mut now = fill_pages(&mut device, 3 * UNIT_PAGES);
    // A flash page has four pages, so the first 12 pages are the three page types of a program
    // unit.
    for (first, page_type) in [(0, 0), (3, 0), (4, 1), (8, 2), (11, 2), (12, 0), (16, 1), (2 * 768 + 8, 2)] {
        let done = ask(&mut device, now, HostCommand::Read { first, pages: 1 });
        assert_eq!(done.at - now, read_of_a_page(page_type), "page {first}");
        assert_eq!(done.waited_for_collection_ns, 0);
        now += LATER;
    }
    assert_eq!(read_of_a_page(0), 2_000 + 40_000 + 4_296 + 4_096 + 5_000);
}

#[test]
fn pages_of_one_flash_page_are_sensed_once() {
    let mut device = silent(&timed(40, 0.25));
    let now = fill_pages(&mut device, UNIT_PAGES);
    let done = ask(&mut device, now, HostCommand::Read { first: 4, pages: 4 });
    assert_eq!(done.at - now, 2_000 + 3 * 100 + 50_000 + (200 + 4 * 4_096) + 4 * 4_096 + 5_000);
}

/// 32 pages: both planes of die 0 (three page types each) and two page types of the first plane of
/// die 2, on the other channel. A flash page takes 16384 ns on the link and 16584 ns on a channel.
#[test]
fn a_large_read_overlaps_on_planes_dies_and_channels() {
    let mut device = silent(&timed(40, 0.25));
    let now = fill_pages(&mut device, UNIT_PAGES);
    let done = ask(&mut device, now, HostCommand::Read { first: 0, pages: 32 });
    let core = 2_000 + 31 * 100;
    // Both planes are sensed together: lower, middle, upper pages one after the other.
    let sensed = [core + 40_000, core + 90_000, core + 150_000];
    // The upper page of the second plane comes last. It follows that of the first plane on the
    // channel and on the link.
    let on_channel = sensed[2] + 16_584;
    let on_channel_behind_it = on_channel + 16_584;
    let first_on_link = on_channel + 16_384;
    assert!(first_on_link < on_channel_behind_it, "the channel is what it waits for");
    assert_eq!(done.at - now, on_channel_behind_it + 16_384 + 5_000);
    assert_eq!(done.at - now, 209_652);
}

/// Two operations on different dies. The link is the bottleneck if sensing is nearly free.
#[test]
fn a_large_read_is_sent_over_the_link_once() {
    let mut config = timed(40, 0.25);
    times(&mut config).nand.read_ns = vec![1];
    times(&mut config).channel.bytes_per_second = 1_000_000_000_000;
    times(&mut config).channel.command_ns = 0;
    let mut device = silent(&config);
    let now = fill_pages(&mut device, UNIT_PAGES);
    let done = ask(&mut device, now, HostCommand::Read { first: 0, pages: 48 });
    // The first flash page takes 17 ns on the channel (16384 bytes at a terabyte per second). Then
    // the link is always busy.
    assert_eq!(done.at - now, 2_000 + 47 * 100 + 1 + 17 + 48 * 4_096 + 5_000);
}

#[test]
fn what_is_not_in_flash_is_not_looked_for_there() {
    let mut device = silent(&timed(40, 0.25));
    let done = ask(&mut device, 1000, HostCommand::Read { first: 77, pages: 1 });
    assert_eq!(done.at, 1000 + 2_000 + 4_096 + 5_000, "never written");
    let now = LATER;
    let written = ask(&mut device, now, HostCommand::Write { first: 77, pages: 1, handle: 0 });
    let done = ask(&mut device, written.at, HostCommand::Read { first: 77, pages: 1 });
    assert_eq!(done.at - written.at, 2_000 + 4_096 + 5_000, "in the write buffer");
    let now = fill_pages(&mut device, UNIT_PAGES) + LATER;
    let done = ask(&mut device, now, HostCommand::Read { first: 77, pages: 1 });
    assert_eq!(done.at - now, read_of_a_page(1), "in flash now: page 5 of its operation");
    let freed = ask(&mut device, now + LATER, HostCommand::Deallocate { first: 77, pages: 1 });
    let now = freed.at;
    let done = ask(&mut device, now, HostCommand::Read { first: 77, pages: 1 });
    assert_eq!(done.at - now, 2_000 + 4_096 + 5_000, "deallocated");
}

#[test]
fn writes_and_other_commands() {
    let mut device = silent(&timed(40, 0.25));
    let done = ask(&mut device, 5, HostCommand::Write { first: 0, pages: 1, handle: 3 });
    assert_eq!(done.at, 5 + 3_000 + 4_096 + 7_000);
    let now = LATER;
    let done = ask(&mut device, now, HostCommand::Write { first: 0, pages: 32, handle: 1 });
    assert_eq!(done.at - now, 3_000 + 31 * 100 + 32 * 4_096 + 7_000);
    let now = 2 * LATER;
    let done = ask(&mut device, now, HostCommand::Deallocate { first: 0, pages: 32 });
    assert_eq!(done.at - now, 3_000 + 7_000);
    assert_eq!(device.command(3 * LATER).at - 3 * LATER, 3_000 + 7_000);
}

/// An absorbed write is complete when its data is in the buffer. The flash has no work from it.
#[test]
fn an_absorbed_write_takes_no_flash_time() {
    let mut config = timed(40, 0.25);
    config.handles.write_absorption_bytes = 64 * PAGE;
    let mut device = silent(&config);
    device.enable_activity_log(1 << 10);
    for write in 0..10_000 {
        let asked = HostCommand::Write { first: write % 20, pages: 1, handle: 0 };
        let now = u64::from(write) * 1_000_000;
        assert_eq!(ask(&mut device, now, asked).at - now, WRITE_OF_A_PAGE);
    }
    assert_eq!(device.stats().total().host_pages_absorbed, 9_980);
    let (dies, channels) = device.activity();
    let busy = dies.iter().chain(&channels).flat_map(|log| log.pieces().iter());
    assert_eq!(busy.count(), 0, "20 pages fill no program operation");
}

/// A write of half a page. The device reads the rest from flash before the page is in the buffer.
#[test]
fn a_write_of_a_part_of_a_page_reads_it_first() {
    let mut device = silent(&timed(40, 0.25));
    let now = fill_pages(&mut device, UNIT_PAGES);
    let part = |first, pages, host_bytes| ssd::WriteRequest {
        first: Lpn(first),
        pages,
        host_bytes,
        placement: Placement::handle(0),
    };
    let done = device.write(now, &part(4, 1, 512)).expect("the page exists");
    assert_eq!(done.at - now, 3_000 + 512 + 50_000 + (200 + 4_096) + 7_000);
    // Both ends are read at the same time, because they are on different channels (pages 8 of die 0
    // and 28 of die 2).
    let now = now + LATER;
    let bytes = 20 * 4_096 + 1_024;
    let done = device.write(now, &part(8, 21, bytes)).expect("the pages exist");
    // The page of the slower type comes last.
    let reads = 60_000 + 4_296;
    assert_eq!(done.at - now, 3_000 + 20 * 100 + bytes + reads + 7_000);
    // Unwritten pages need no read.
    let now = now + LATER;
    let done = device.write(now, &part(2000, 1, 512)).expect("the page exists");
    assert_eq!(done.at - now, 3_000 + 512 + 7_000);
}

/// A program unit of another size than a one-shot program takes a proportional time.
#[test]
fn a_program_takes_the_share_of_its_size() {
    let mut config = timed(40, 0.25);
    config.geometry.program_unit_bytes = Some(4 * PAGE);
    times(&mut config).nand.read_ns = vec![40_000];
    let mut device = silent(&config);
    let operation = ask(&mut device, 0, HostCommand::Write { first: 0, pages: 8, handle: 0 });
    let buffered = operation.at - WRITE_PIPELINE;
    let in_flash = buffered + (2 * 200 + 8 * 4_096) + PROGRAM / 3;
    let hit = ask(&mut device, in_flash - READ_CORE - 1, HostCommand::Read { first: 0, pages: 1 });
    assert_eq!(hit.at, in_flash - 1 + PAGE + READ_PIPELINE);
    let read = ask(&mut device, in_flash - READ_CORE, HostCommand::Read { first: 0, pages: 1 });
    assert_eq!(read.at, in_flash + 40_000 + 4_296 + PAGE + READ_PIPELINE);
}

/// A reclaim unit of one die has all pages on that die. A reclaim unit of a channel has all pages
/// on that channel.
#[test]
fn smaller_reclaim_units_use_fewer_dies() {
    use ssd::config::ReclaimUnitSize;
    let operations_at_once = |size| {
        let mut config = timed(60, 0.5);
        config.handles.reclaim_unit = size;
        let mut device = silent(&config);
        let now = fill_pages(&mut device, UNIT_PAGES / 4);
        // A page of each of the first four operations, requested at the same time.
        let reads = (0..4).map(|operation| HostCommand::Read { first: operation * OPERATION_PAGES, pages: 1 });
        let done: Vec<CompletionTime> = reads.map(|read| ask(&mut device, now, read)).collect();
        let times: Vec<u64> = done.iter().map(|done| done.at - now - read_of_a_page(0)).collect();
        times
    };
    // Two dies on each of two channels. The second page of each channel waits for the first on the
    // channel, and all but one wait for another on the link.
    assert_eq!(operations_at_once(ReclaimUnitSize::Superblock), [0, 4_096, 8_192, 12_288]);
    // Two dies. The second page of each waits for the sensing of the first.
    let channel = operations_at_once(ReclaimUnitSize::Channel);
    assert_eq!(channel, [0, 4_296, 40_000, 44_296]);
    let die = operations_at_once(ReclaimUnitSize::Die);
    assert_eq!(die, [0, 40_000, 80_000, 120_000]);
}

/// Reclaim groups have separate dies.
#[test]
fn a_group_has_its_own_dies() {
    let mut config = timed(40, 0.5);
    config.geometry.reclaim_groups = 2;
    config.geometry.reclaim_unit_bytes /= 2;
    let mut device = silent(&config);
    for group in [0, 1] {
        let write = extent(u32::from(group) * 768, 48, placement(group, 0));
        let _ = device.write(0, &write).expect("the extent exists");
    }
    let now = LATER;
    let first = ask(&mut device, now, HostCommand::Read { first: 0, pages: 1 });
    let second = ask(&mut device, now, HostCommand::Read { first: 768, pages: 1 });
    assert_eq!(first.at - now, read_of_a_page(0));
    assert_eq!(second.at - now, read_of_a_page(0) + 4_096, "another die and channel, the same link");
}
