//! Writes proceed at the speed of the buffer while it has space, and at the speed of the flash when
//! it is full.

use crate::common::{MIB, Uniform, placement, reclaims, recorded, silent};
use crate::host::{HostCommand, LATER, ask, closed_loop, end, fill};
use crate::*;

/// Program bandwidth of all dies together, in bytes per second.
fn program_bytes_per_second(program_ns: u64) -> f64 {
    let operation_bytes = u64::from(OPERATION_PAGES) * PAGE;
    4.0 * operation_bytes as f64 * 1e9 / program_ns as f64
}

fn sequential(pages: u32) -> impl FnMut() -> HostCommand {
    let mut next = 0;
    move || {
        let first = next;
        next += pages;
        HostCommand::Write { first, pages, handle: 0 }
    }
}

#[test]
fn a_burst_that_fits_is_as_fast_as_the_buffer_and_what_follows_as_fast_as_the_flash() {
    let mut config = timed(200, 0.25);
    // Programs are so slow that no data leaves the buffer during the burst.
    times(&mut config).nand.program_ns = 10 * PROGRAM;
    let mut device = silent(&config);
    let writes = closed_loop(&mut device, 0, 1, 2000, sequential(32));
    let in_buffer = WRITE_CORE + 31 * NEXT_PAGE + 32 * PAGE + WRITE_PIPELINE;
    let burst = writes.iter().take_while(|write| write.latency() == in_buffer).count();
    assert_eq!(burst as u64, 4 * MIB / (32 * PAGE), "as many as fit into 4 MiB");
    let (from, to) = (&writes[1000], &writes[1999]);
    let speed = (999 * 32 * PAGE) as f64 * 1e9 / (to.done.at - from.done.at) as f64;
    let flash = program_bytes_per_second(10 * PROGRAM);
    assert!((speed / flash - 1.0).abs() < 0.01, "{speed} against {flash} bytes in a second");
}

#[test]
fn back_pressure_is_the_speed_of_the_dies_at_any_depth_and_size() {
    for depth in [1, 4, 32, 256] {
        for pages in [1, 4, 32] {
            let mut config = timed(200, 0.25);
            times(&mut config).nand.program_ns = 10 * PROGRAM;
            let mut device = silent(&config);
            let count = 100_000 / pages as usize;
            let writes = closed_loop(&mut device, 0, depth, count, sequential(pages));
            let (from, to) = (&writes[count / 2], &writes[count - 1]);
            let bytes = (count - 1 - count / 2) as u64 * u64::from(pages) * PAGE;
            let speed = bytes as f64 * 1e9 / (to.done.at - from.done.at) as f64;
            let flash = program_bytes_per_second(10 * PROGRAM);
            assert!(
                (speed / flash - 1.0).abs() < 0.01,
                "depth {depth}, {pages} pages: {speed} against {flash} bytes in a second"
            );
        }
    }
}

/// With one die, the buffer can be checked by hand. Operations are programmed one after the other,
/// and each frees its space at its end.
#[test]
fn a_full_buffer_lets_a_write_in_when_a_program_ends() {
    let mut config = timed(200, 0.25);
    config.geometry.channels = 1;
    config.geometry.dies_per_channel = 1;
    config.handles.count = 1;
    times(&mut config).write_buffer_bytes = 2 * u64::from(OPERATION_PAGES) * PAGE;
    let mut device = silent(&config);
    let writes = closed_loop(&mut device, 0, 1, 6, sequential(OPERATION_PAGES));
    let in_buffer = WRITE_CORE + 23 * NEXT_PAGE + 24 * PAGE;
    let transfer = 24 * PAGE + 6 * COMMAND;
    let mut programmed = Vec::new();
    let mut submitted = 0;
    for (index, write) in writes.iter().enumerate() {
        assert_eq!(write.submitted, submitted);
        let arrived = submitted + in_buffer;
        let admitted = match index {
            0 | 1 => arrived,
            _ => arrived.max(programmed[index - 2]),
        };
        assert_eq!(write.done.at, admitted + WRITE_PIPELINE, "write {index}");
        let before = programmed.last().copied().unwrap_or(0);
        programmed.push((admitted + transfer).max(before) + PROGRAM);
        submitted = write.done.at;
    }
}

#[test]
fn what_is_in_the_buffer_is_read_from_there() {
    let mut device = silent(&timed(40, 0.25));
    let now = fill(&mut device);
    // An operation is programmed as soon as it is complete. The rest stays in the buffer until
    // then.
    let written = ask(&mut device, now, HostCommand::Write { first: 0, pages: 36, handle: 1 });
    let in_buffer = written.at - WRITE_PIPELINE;
    // The write has a single arrival time, so its first part is in the buffer when all of it is.
    let in_flash = in_buffer + 24 * PAGE + 6 * COMMAND + PROGRAM;
    for (at, first) in [(written.at, 0), (in_flash - READ_CORE - 1, 23), (in_flash + LATER, 24)] {
        let read = ask(&mut device, at, HostCommand::Read { first, pages: 1 });
        assert_eq!(read.at - at, READ_WITHOUT_FLASH, "page {first} at {at}");
    }
    let at = in_flash + 2 * LATER;
    let read = ask(&mut device, at, HostCommand::Read { first: 0, pages: 1 });
    assert_eq!(read.at - at, read_of_a_page(0));
    let _ = device.update_handle(at, placement(0, 1)).expect("the handle exists");
    let at = at + LATER;
    let read = ask(&mut device, at, HostCommand::Read { first: 24, pages: 1 });
    assert_eq!(read.at - at, read_of_a_page(0), "closing the reclaim unit programs what it has");
}

/// A full drive with little spare. Host writes wait for the dies, and the dies for collection.
///
/// Time of the dies for each host page = program x WAF + (WAF - 1) x (sensing + both transfers) +
/// the erased blocks. Copies occupy their die during the channel transfer, programs of the host do
/// not.
#[test]
fn foreground_collection_costs_what_write_amplification_says() {
    for (superblocks, over_provisioning) in [(80, 0.10), (80, 0.20), (80, 0.40)] {
        let mut config = timed(superblocks, over_provisioning);
        times(&mut config).nand.suspend_ns = None;
        times(&mut config).channel.bytes_per_second = 4_000_000_000;
        times(&mut config).link.generation = 5;
        let mut device = recorded(&config);
        let now = fill(&mut device);
        let pages = device.layout().logical_pages;
        let mut uniform = Uniform::new(9);
        let mut next = || HostCommand::Write { first: uniform.below(pages), pages: 1, handle: 0 };
        let warm = closed_loop(&mut device, now, 32, 2 * pages as usize, &mut next);
        let (start, before, events) = (end(&warm), device.stats().clone(), reclaims(&device).len());
        let count = 3 * pages as usize;
        let writes = closed_loop(&mut device, start, 32, count, &mut next);
        let elapsed = (end(&writes) - start) as f64;

        let copied = device.stats().since(&before).total().gc_pages_copied as f64;
        let reclaims = reclaims(&device).split_off(events);
        // The valid pages of a flash page, out of four, are sensed together.
        let sensings: f64 = reclaims.iter().map(|reclaim| sensings(reclaim.valid_pages)).sum();
        let page_on_channel = PAGE as f64 / 4.0;
        let programs = (count as f64 + copied) / f64::from(OPERATION_PAGES);
        let work = programs * PROGRAM as f64
            + sensings * (50_000.0 + COMMAND as f64)
            + copied * (2.0 * page_on_channel + COMMAND as f64 / 4.0)
            + reclaims.len() as f64 * 4.0 * ERASE as f64;
        let expected = work / 4.0;
        assert!(
            (elapsed / expected - 1.0).abs() < 0.05,
            "over-provisioning {over_provisioning}: {elapsed} ns, expected {expected}, {:.3} of it",
            elapsed / expected
        );
        let waited: u64 = writes.iter().map(|write| write.done.waited_for_collection_ns).sum();
        assert!(waited > 0, "writes wait for collection");
        assert!(writes.iter().all(|write| write.done.waited_for_collection_ns <= write.latency()));
    }
}

/// Number of flash pages of a reclaim unit, with both planes together, that hold one of `valid`
/// randomly spread pages.
fn sensings(valid: u32) -> f64 {
    let invalid = 1.0 - f64::from(valid) / f64::from(UNIT_PAGES);
    f64::from(UNIT_PAGES) / 4.0 * (1.0 - invalid.powi(4))
}
