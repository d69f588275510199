//! Waiting times of reads beside programs, erases and collection on the same die.

use ssd::event::Trigger;
use ssd::{Device, EventSink, Lpn};

use crate::common::{Uniform, extent, placement, reclaims, recorded, silent};
use crate::host::{HostCommand, LATER, ask, closed_loop, fill, fill_pages};
use crate::*;

/// Writes an operation to die 0. Returns the times at which its data has arrived and at which it is
/// programmed.
fn program_on_die_0<S: EventSink>(device: &mut Device<S>, now: u64) -> (u64, u64) {
    let write = HostCommand::Write { first: 3 * UNIT_PAGES, pages: OPERATION_PAGES, handle: 1 };
    let written = ask(device, now, write);
    let there = written.at - WRITE_PIPELINE + 24 * PAGE + 6 * COMMAND;
    (there, there + PROGRAM)
}

/// Reads page 0 on die 0, with the core done at `at`. Returns the end of the sensing.
fn sensed<S: EventSink>(device: &mut Device<S>, at: u64) -> u64 {
    let done = ask(device, at - READ_CORE, HostCommand::Read { first: 0, pages: 1 });
    done.at - READ_PIPELINE - PAGE - (PAGE + COMMAND)
}

#[test]
fn without_suspension_a_read_waits_for_the_rest_of_the_program() {
    let mut config = timed(40, 0.25);
    times(&mut config).nand.suspend_ns = None;
    let mut filled = silent(&config);
    let now = fill_pages(&mut filled, UNIT_PAGES);
    for share in [1, 10, 50, 90, 99] {
        let mut device = filled.clone();
        let (there, programmed) = program_on_die_0(&mut device, now);
        let at = there + PROGRAM * share / 100;
        assert_eq!(sensed(&mut device, at), programmed + SENSE[0], "after {share} % of the program");
    }
    let mut device = filled.clone();
    let (_, programmed) = program_on_die_0(&mut device, now);
    assert_eq!(sensed(&mut device, programmed), programmed + SENSE[0], "after it");
}

#[test]
fn with_suspension_a_read_waits_for_that() {
    let mut filled = silent(&timed(40, 0.25));
    let now = fill_pages(&mut filled, UNIT_PAGES);
    for (before_end, wait) in
        [(PROGRAM - 1000, SUSPEND), (PROGRAM / 2, SUSPEND), (SUSPEND + 1, SUSPEND), (4_000, 4_000)]
    {
        let mut device = filled.clone();
        let (_, programmed) = program_on_die_0(&mut device, now);
        let at = programmed - before_end;
        assert_eq!(sensed(&mut device, at), at + wait + SENSE[0], "{before_end} ns before the end");
    }
}

/// Random reads beside a stream of writes and their erases. A read always waits at most for the
/// other reads and for one operation or its suspension.
#[test]
fn a_read_never_waits_for_more_than_one_operation() {
    for suspend_ns in [Some(SUSPEND), Some(0), None] {
        let mut config = timed(40, 0.25);
        times(&mut config).nand.suspend_ns = suspend_ns;
        times(&mut config).link.generation = 6;
        times(&mut config).link.lanes = 16;
        times(&mut config).channel.bytes_per_second = 100_000_000_000;
        times(&mut config).channel.command_ns = 0;
        let mut device = silent(&config);
        let mut now = fill_pages(&mut device, 10 * UNIT_PAGES);
        let mut uniform = Uniform::new(3);
        let page_ns = 41; // on the channel; on the link it is 9 ns at least, and at most 64 writes are before it
        let most =
            READ_CORE + 64 * WRITE_CORE + SENSE[2] + suspend_ns.unwrap_or(ERASE) + 1000 + page_ns + READ_PIPELINE;
        let (mut waited, mut first) = (0, 10 * UNIT_PAGES);
        for _ in 0..20_000 {
            let _ = ask(&mut device, now, HostCommand::Write { first, pages: 8, handle: 1 });
            first = if first == 19 * UNIT_PAGES { 10 * UNIT_PAGES } else { first + 8 };
            now += u64::from(uniform.below(100_000)) + 100_000;
            let page = uniform.below(10 * UNIT_PAGES);
            let read = ask(&mut device, now, HostCommand::Read { first: page, pages: 1 });
            assert!(read.at - now <= most, "{suspend_ns:?}: a read took {} ns", read.at - now);
            waited += u64::from(read.at - now > READ_CORE + SENSE[2] + 1000 + READ_PIPELINE);
            now = now.max(read.at);
        }
        assert_eq!(waited > 0, suspend_ns != Some(0), "{suspend_ns:?}: {waited} of them waited");
    }
}

/// Background collection yields to reads in the same way, at any amount of collection work.
#[test]
fn background_collection_yields_to_reads() {
    for suspend_ns in [Some(SUSPEND), None] {
        let mut config = timed(40, 0.25);
        config.gc.background_watermark = 0.2;
        config.gc.lazy_valid_share = 1.0;
        times(&mut config).nand.suspend_ns = suspend_ns;
        let mut device = recorded(&config);
        let mut now = fill(&mut device);
        let pages = device.layout().logical_pages;
        let mut uniform = Uniform::new(5);
        // The erase is the longest operation of collection.
        let wait = suspend_ns.unwrap_or(ERASE);
        // Transfers of collection leave at least a tenth of the channel to hosts.
        let most = READ_CORE + SENSE[2] + wait + 10 * (PAGE + COMMAND) + PAGE + READ_PIPELINE;
        let (mut collections, mut waited) = (0, 0);
        for _ in 0..3000 {
            let _ = ask(&mut device, now, HostCommand::Write { first: uniform.below(pages), pages: 1, handle: 0 });
            let in_background = |reclaim: &ssd::event::ReclaimRecord| reclaim.trigger == Trigger::Background;
            let collected = reclaims(&device).iter().filter(|reclaim| in_background(reclaim)).count();
            device.sink_mut().clear();
            collections += collected;
            now += 20_000_000 * u64::from(collected == 0);
            for _ in 0..4 {
                now += u64::from(uniform.below(3_000_000)) + 3_100_000;
                let read = ask(&mut device, now, HostCommand::Read { first: uniform.below(pages), pages: 1 });
                assert!(read.at - now <= most, "{suspend_ns:?}: a read took {} ns", read.at - now);
                assert!(read.waited_for_collection_ns <= wait);
                waited += usize::from(read.waited_for_collection_ns > 0);
                now = now.max(read.at);
            }
        }
        assert!(collections > 50, "{collections} collections");
        assert!(waited > 100, "{waited} reads waited for collection");
    }
}

/// Reclaim groups on separate channels share only the controller.
#[test]
fn a_reader_in_one_group_does_not_notice_a_writer_in_another() {
    let mut config = timed(60, 0.25);
    config.geometry.reclaim_groups = 2;
    config.geometry.reclaim_unit_bytes /= 2;
    times(&mut config).nand.suspend_ns = None;
    // More cores than the two hosts have commands.
    times(&mut config).controller.cores = 16;
    let half = silent(&config).layout().logical_pages / 2;
    let run = |writer_group: Option<u16>| {
        let mut device = silent(&config);
        for (group, begin) in [(0, 0), (1, half)] {
            for first in (begin..begin + half - 32).step_by(32) {
                let _ = device.write(0, &extent(first, 32, placement(group, 0))).expect("the extent exists");
            }
        }
        let (mut reader, mut writer) = (Uniform::new(1), Uniform::new(2));
        let mut next_write = LATER;
        let mut latencies = Vec::new();
        let mut now = LATER;
        for _ in 0..20_000 {
            while let Some(group) = writer_group.filter(|_| next_write <= now) {
                let first = u32::from(group) * half + writer.below(half - 40);
                let done = device.write(next_write, &extent(first, 8, placement(group, 1)));
                next_write = done.expect("the extent exists").at;
            }
            let read = device.read(now, Lpn(half + reader.below(half - 32)), 1).expect("the page exists");
            latencies.push(read.at - now);
            now = read.at + 10_000;
        }
        assert_eq!(device.stats().pages_redirected, 0);
        (latencies, device.stats().total().gc_pages_copied)
    };
    let (alone, _) = run(None);
    let (isolated, copied) = run(Some(0));
    assert!(copied > 0, "the writer makes its group collect");
    assert_eq!(alone, isolated);
    let (shared, copied) = run(Some(1));
    assert!(copied > 0, "the writer makes its group collect");
    let mean = |latencies: &[u64]| latencies.iter().sum::<u64>() / latencies.len() as u64;
    assert!(mean(&shared) > 2 * mean(&alone), "{} against {}", mean(&shared), mean(&alone));
}

/// Reads of one die on one channel wait only for each other's sensing.
#[test]
fn one_die_senses_one_page_at_a_time() {
    let mut config = timed(40, 0.25);
    config.geometry.channels = 1;
    config.geometry.dies_per_channel = 1;
    times(&mut config).nand.read_ns = vec![50_000];
    times(&mut config).nand.suspend_ns = None;
    for depth in [2, 7, 64] {
        let mut device = silent(&config);
        let now = fill(&mut device);
        let pages = device.layout().logical_pages;
        let mut uniform = Uniform::new(depth as u64);
        let read = || HostCommand::Read { first: uniform.below(pages - 800), pages: 1 };
        let mut ends: Vec<u64> =
            closed_loop(&mut device, now, depth, 2000, read).iter().map(|read| read.done.at).collect();
        ends.sort_unstable();
        for (index, pair) in ends.windows(2).enumerate() {
            assert_eq!(pair[1] - pair[0], 50_000, "depth {depth}, after read {index}");
        }
    }
}
