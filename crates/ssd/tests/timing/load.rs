//! Long workloads at high queue depth: limits of a drive, and behaviour that does not depend on
//! timing.

use ssd::{CompletionTime, Device, DeviceLayout, Lpn, WriteRequest};

use crate::common::{Uniform, assert_same, extent, placement, reclaims, recorded, silent};
use crate::host::{HostCommand, LATER, Observation, ask, closed_loop, end, fill, mixed};
use crate::*;

/// Doubles all times of a configuration.
fn twice_as_slow(config: &DeviceConfig) -> DeviceConfig {
    let mut slow = config.clone();
    let times = times(&mut slow);
    let nand = &mut times.nand;
    nand.read_ns.iter_mut().for_each(|time| *time *= 2);
    nand.program_ns *= 2;
    nand.erase_ns *= 2;
    nand.suspend_ns = nand.suspend_ns.map(|time| 2 * time);
    times.channel.bytes_per_second /= 2;
    times.channel.command_ns *= 2;
    let controller = &mut times.controller;
    controller.read_ns *= 2;
    controller.write_ns *= 2;
    controller.page_ns *= 2;
    controller.read_pipeline_ns *= 2;
    controller.write_pipeline_ns *= 2;
    times.link.lanes /= 2;
    slow
}

/// Runs a workload on a drive and on one with doubled times, with doubled submission times. Returns
/// the largest relative difference of a latency from the doubled latency, and the longest latency.
fn difference_of_twice(config: &DeviceConfig, commands: usize, next: &mut dyn FnMut() -> HostCommand) -> (f64, u64) {
    let (mut device, mut slow_device) = (silent(config), silent(&twice_as_slow(config)));
    let mut now = fill(&mut device);
    let _ = fill(&mut slow_device);
    let mut clock = Uniform::new(12);
    let (mut difference, mut slowest) = (0.0_f64, 0);
    for _ in 0..commands {
        now += u64::from(clock.below(500_000));
        let asked = next();
        let done = ask(&mut device, now, asked);
        let slow_done = ask(&mut slow_device, 2 * now, asked);
        let latency = done.at - now;
        difference = difference.max(slow_done.at.abs_diff(2 * done.at) as f64 / latency as f64);
        slowest = slowest.max(latency);
    }
    assert_eq!(device.stats(), slow_device.stats());
    (difference, slowest)
}

/// Doubled times give doubled latencies, exact to the nanosecond without collection.
#[test]
fn twice_the_times_are_twice_the_results() {
    let config = timed(100, 0.9);
    let mut next = mixed(&config, 11);
    let written = |asked: &HostCommand| match asked {
        HostCommand::Write { pages, .. } => *pages,
        _ => 0,
    };
    // The writes fit into the spare.
    let (mut left, mut commands) = (40 * UNIT_PAGES, Vec::new());
    while left > 16 {
        commands.push(next());
        left -= written(commands.last().expect("just pushed"));
    }
    let count = commands.len();
    let mut commands = commands.into_iter();
    let (difference, slowest) =
        difference_of_twice(&config, count, &mut || commands.next().expect("as many as counted"));
    assert!(slowest > 300_000, "there were queues: {slowest} ns");
    assert!(difference == 0.0, "a latency differs by {difference} of itself");
}

/// The same with collection. Rounding its share of a channel may change a nanosecond.
#[test]
fn twice_the_times_are_twice_the_results_of_collection() {
    for background_watermark in [1.0, 0.5] {
        let mut config = timed(60, 0.25);
        config.gc.background_watermark = background_watermark;
        config.gc.lazy_valid_share = 0.7;
        let (difference, slowest) = difference_of_twice(&config, 60_000, &mut mixed(&config, 11));
        assert!(slowest > 3_000_000, "there were queues: {slowest} ns");
        assert!(difference < 0.001, "a latency differs by {difference} of itself");
    }
}

/// Programs of overhead take their share of the dies, on each die alike.
#[test]
fn overhead_takes_program_time_on_every_die() {
    let writes = |share| {
        let mut config = timed(100, 0.9);
        config.geometry.media_overhead_share = share;
        let mut device = silent(&config);
        let mut first = 0;
        let next = || {
            first += 24;
            HostCommand::Write { first: first - 24, pages: 24, handle: 0 }
        };
        let time = end(&closed_loop(&mut device, 0, 64, 1600, next));
        (time as f64, device)
    };
    let (base, _) = writes(0.0);
    for share in [0.1, 0.25, 0.5] {
        let (time, device) = writes(share);
        assert!((time / base / (1.0 + share) - 1.0).abs() < 0.02, "{share}: {}", time / base);
        assert_eq!(device.stats().overhead_pages(), (share * 24.0 * 1600.0) as u64);
    }
}

/// Copies of collection take their share of the dies, too.
#[test]
fn overhead_takes_program_time_of_collection() {
    let elapsed = |share| {
        let mut config = timed(40, 0.25);
        config.geometry.media_overhead_share = share;
        let mut device = recorded(&config);
        let start = fill(&mut device);
        let _ = closed_loop(&mut device, start, 1, 30_000, mixed(&config, 3));
        let reclaims = reclaims(&device);
        let copied: u32 = reclaims.iter().map(|reclaim| reclaim.pages_copied).sum();
        assert!(copied > 20_000, "{copied} pages were copied");
        reclaims.iter().map(|reclaim| reclaim.elapsed_ns).sum::<u64>() as f64
    };
    let ratio = elapsed(0.5) / elapsed(0.0);
    assert!((1.2..1.6).contains(&ratio), "{ratio}");
}

/// Bytes of the reads or writes among the completions.
fn bytes(completions: &[Observation], reads: bool) -> u64 {
    let pages = completions.iter().map(|completion| match completion.ask {
        HostCommand::Read { pages, .. } if reads => pages,
        HostCommand::Write { pages, .. } if !reads => pages,
        _ => 0,
    });
    pages.map(u64::from).sum::<u64>() * PAGE
}

/// Programs and erases use at most the dies' time. Commands use at most the cores' time, and bytes
/// at most the bandwidth of link and channels.
#[test]
fn nothing_is_used_more_than_all_the_time() {
    for (seed, depth) in [(1, 1), (2, 8), (3, 64), (4, 256)] {
        for suspend_ns in [None, Some(SUSPEND)] {
            let mut config = timed(60, 0.15);
            config.gc.background_watermark = 0.6;
            config.gc.lazy_valid_share = 0.8;
            times(&mut config).nand.suspend_ns = suspend_ns;
            let mut device = recorded(&config);
            let start = fill(&mut device);
            let (before, events) = (device.stats().clone(), reclaims(&device).len());
            let completions = closed_loop(&mut device, start, depth, 60_000, mixed(&config, seed));
            let of_hosts = end(&completions) - start;
            let reclaims = reclaims(&device).split_off(events);
            let collected = reclaims.iter().map(|reclaim| reclaim.now + reclaim.elapsed_ns);
            // Data in the buffer at the end is programmed later.
            let buffered = times(&mut config).write_buffer_bytes / (u64::from(OPERATION_PAGES) * PAGE) * PROGRAM;
            let everything = end(&completions).max(collected.max().unwrap_or(0)) - start;

            assert!(bytes(&completions, true) <= of_hosts, "the link to the host, a byte in a nanosecond");
            assert!(bytes(&completions, false) <= of_hosts, "the link from the host");
            let is_read = |completion: &&Observation| matches!(completion.ask, HostCommand::Read { .. });
            let reads = completions.iter().filter(is_read).count() as u64;
            let busy = reads * READ_CORE + (completions.len() as u64 - reads) * WRITE_CORE;
            assert!(busy <= 4 * of_hosts, "the cores");

            let after = device.stats().since(&before);
            let programmed = u64::from(u32::try_from(after.media_bytes_written() / PAGE).expect("a short workload"));
            assert!(after.total().gc_pages_copied > 10_000, "there was collection");
            let dies = programmed / u64::from(OPERATION_PAGES) * PROGRAM + reclaims.len() as u64 * 4 * ERASE;
            assert!(
                dies <= 4 * everything + buffered,
                "seed {seed}, depth {depth}: the dies worked for {dies} ns of 4 x {everything}"
            );
            let on_channels = (after.media_bytes_written() + after.total().gc_pages_copied * PAGE) * 24 / 25;
            assert!(on_channels <= 2 * (everything + buffered), "the channels");
            for completion in &completions {
                let least = match completion.ask {
                    HostCommand::Read { pages, .. } => {
                        READ_CORE + u64::from(pages - 1) * NEXT_PAGE + u64::from(pages) * PAGE + READ_PIPELINE
                    }
                    HostCommand::Write { pages, .. } => {
                        WRITE_CORE + u64::from(pages - 1) * NEXT_PAGE + u64::from(pages) * PAGE + WRITE_PIPELINE
                    }
                    HostCommand::Deallocate { .. } => WRITE_CORE + WRITE_PIPELINE,
                };
                assert!(completion.latency() >= least, "{completion:?} took less than {least} ns");
            }
        }
    }
}

/// Random reads of an otherwise idle drive keep the slowest part busy and overload no part.
#[test]
fn reads_are_as_fast_as_their_slowest_part() {
    let page_seconds = |elapsed: u64, count: u64| elapsed as f64 / count as f64;
    let run = |change: &dyn Fn(&mut TimingConfig)| {
        let mut config = timed(60, 0.25);
        change(times(&mut config));
        let mut device = silent(&config);
        let start = fill(&mut device);
        let pages = device.layout().logical_pages - 1000;
        let mut uniform = Uniform::new(21);
        let reads = closed_loop(&mut device, start, 256, 50_000, || HostCommand::Read {
            first: uniform.below(pages),
            pages: 1,
        });
        page_seconds(end(&reads) - start, 50_000)
    };
    let near = |measured: f64, least: f64, what: &str| {
        assert!(measured >= least * 0.9999, "{what}: {measured} ns for each read, {least} at least");
        assert!(measured <= least * 1.03, "{what}: {measured} ns for each read, {least} are enough");
    };
    near(run(&|_| {}), 50_000.0 / 4.0, "four dies of 50 us on average");
    let slow_channel = |times: &mut TimingConfig| {
        times.nand.read_ns = vec![1_000];
        times.channel.bytes_per_second /= 8;
    };
    near(run(&slow_channel), (8.0 * 4096.0 + 200.0) / 2.0, "two channels");
    let slow_link = |times: &mut TimingConfig| {
        times.nand.read_ns = vec![1_000];
        times.channel.bytes_per_second *= 8;
        times.link.payload_share = 0.25;
    };
    near(run(&slow_link), 4.0 * 4096.0, "the link");
    let slow_cores = |times: &mut TimingConfig| {
        times.nand.read_ns = vec![1_000];
        times.channel.bytes_per_second *= 8;
        times.controller.read_ns = 80_000;
    };
    near(run(&slow_cores), 80_000.0 / 4.0, "four cores");
}

/// One channel, and commands whose cores finish in another order than they started. Their transfers
/// do not overlap.
#[test]
fn transfers_of_a_channel_do_not_overlap() {
    let mut config = timed(40, 0.25);
    config.geometry.channels = 1;
    config.geometry.dies_per_channel = 4;
    let times = times(&mut config);
    times.nand.read_ns = vec![1_000];
    times.link.lanes = 16;
    times.link.generation = 6;
    times.controller.cores = 64;
    // A long command is still in its core when earlier short commands finish.
    times.controller.page_ns = 2_000;
    let mut device = silent(&config);
    let now = fill(&mut device);
    let page = |die: u32| HostCommand::Read { first: die * OPERATION_PAGES, pages: 1 };
    let before: Vec<u64> = (0..4).map(|die| ask(&mut device, now, page(die)).at).collect();
    let _ = ask(&mut device, now, HostCommand::Read { first: 10_000 / 96 * 96, pages: 32 });
    let after: Vec<u64> = (0..4).map(|die| ask(&mut device, now, page(die)).at).collect();
    let mut ends: Vec<u64> = before.into_iter().chain(after).collect();
    ends.sort_unstable();
    for pair in ends.windows(2) {
        let apart = pair[1] - pair[0];
        assert!(apart >= PAGE + COMMAND, "two transfers of {} ns ended {apart} ns apart", PAGE + COMMAND);
    }
}

/// The flash translation is the same with and without timing.
#[test]
fn time_changes_nothing_but_time() {
    for seed in 0..3 {
        let mut config = timed(60, 0.2);
        config.gc.background_watermark = 0.7;
        config.gc.block_remapping = true;
        config.geometry.media_overhead_share = 0.1 * seed as f64;
        config.handles.write_absorption_bytes = 500 * PAGE * (seed % 2);
        config.gc.wear_levelling_erases = 2 - seed as u32;
        let mut untimed = config.clone();
        untimed.timing = None;
        let (mut device, mut untimed_device) = (recorded(&config), recorded(&untimed));
        let start = fill(&mut device);
        assert_eq!(fill(&mut untimed_device), LATER, "without times everything is done at once");
        let mut asked = Vec::new();
        let mut next = mixed(&config, seed);
        let _ = closed_loop(&mut device, start, 32, 40_000, || {
            asked.push(next());
            *asked.last().expect("just pushed")
        });
        for command in asked {
            assert_eq!(ask(&mut untimed_device, LATER, command).at, LATER);
        }
        assert_eq!(device.stats(), untimed_device.stats());
        let map = |device: &Device<Vec<ssd::DeviceEvent>>| -> Vec<_> {
            (0..device.layout().logical_pages).map(|lpn| device.lookup(Lpn(lpn))).collect()
        };
        assert!(map(&device) == map(&untimed_device), "the maps differ");
        assert_eq!(device.block_erase_counts(), untimed_device.block_erase_counts());
        device.check().expect("every invariant holds");
    }
}

/// Submits writes in batches, before the first of a batch can complete, to a drive in batches and
/// to another one by one. Returns the number of writes that waited for collection.
fn compare_batch(config: &DeviceConfig, seed: u64) -> usize {
    let (mut device, mut one_by_one) = (silent(config), silent(config));
    let start = fill(&mut device);
    assert_eq!(fill(&mut one_by_one), start);
    let mut uniform = Uniform::new(seed);
    let (groups, handles) = (device.layout().groups, device.layout().handle_count());
    let pages_max = device.layout().logical_pages - 8;
    let (mut now, mut waited, mut done) = (start, 0, Vec::new());
    for batch in 0..3000 {
        let (mut times, mut writes) = (Vec::new(), Vec::<WriteRequest>::new());
        // Mostly single pages with one placement. Some batches come when the drive is idle again.
        now += if batch % 100 == 0 { LATER } else { u64::from(uniform.below(60_000)) };
        for _ in 0..=uniform.below(40) {
            now += u64::from(uniform.below(3000));
            let to = |of: u16, uniform: &mut Uniform| {
                if uniform.below(8) == 0 { uniform.below(of.into()) as u16 } else { 0 }
            };
            let place = placement(to(groups, &mut uniform), to(handles, &mut uniform));
            let pages = if uniform.below(16) == 0 { 1 + uniform.below(8) } else { 1 };
            let mut write = extent(uniform.below(pages_max), pages, place);
            write.host_bytes -= if uniform.below(32) == 0 { 512 } else { 0 };
            times.push(now);
            writes.push(write);
        }
        let soonest: Vec<u64> = times.iter().map(|now| device.soonest_write(*now)).collect();
        done.clear();
        device.write_at_times(&times, &writes, &mut done).expect("the drive has space");
        let expected = times.iter().zip(&writes).map(|(now, write)| one_by_one.write(*now, write));
        let expected: Vec<CompletionTime> = expected.map(|done| done.expect("the drive has space")).collect();
        assert_eq!(done, expected, "seed {seed}, batch {batch}");
        assert!(done.iter().zip(soonest).all(|(done, soonest)| done.at >= soonest));
        waited += done.iter().filter(|done| done.waited_for_collection_ns > 0).count();
    }
    assert_same(&device, &one_by_one);
    device.check().expect("every invariant holds");
    waited
}

#[test]
fn a_batch_of_writes_equals_single_writes() {
    let plain = timed(60, 0.2);
    assert!(compare_batch(&plain, 1) > 100, "collection is in the way of hosts");
    let mut several = plain.clone();
    several.geometry.reclaim_groups = 2;
    several.gc.background_watermark = 0.7;
    several.gc.block_remapping = true;
    several.geometry.media_overhead_share = 0.1;
    let _ = compare_batch(&several, 2);
    let mut absorbing = plain.clone();
    absorbing.handles.write_absorption_bytes = 200 * PAGE;
    let _ = compare_batch(&absorbing, 5);
    let mut with_tails = plain.clone();
    times(&mut with_tails).tails =
        vec![ssd::timing::Tail { of: ssd::timing::TailOf::Write, share: 0.1, least_ns: 10, most_ns: 50_000 }];
    let _ = compare_batch(&with_tails, 3);
    let mut at_once = plain;
    at_once.timing = None;
    assert_eq!(compare_batch(&at_once, 4), 0);
}

/// Writes some pages, and reads pages by location on one drive and by address on another.
fn compare_located(config: &DeviceConfig, seed: u64) {
    let (mut device, mut ordinary) = (silent(config), silent(config));
    let start = fill(&mut device);
    assert_eq!(fill(&mut ordinary), start);
    let mut uniform = Uniform::new(seed);
    let pages = device.layout().logical_pages;
    let (mut now, mut unmapped) = (start, 0);
    for batch in 0..500 {
        now += u64::from(uniform.below(100_000));
        for _ in 0..uniform.below(40) {
            let write = extent(uniform.below(pages - 4), 1 + uniform.below(4), placement(0, 0));
            assert_eq!(device.write(now, &write), ordinary.write(now, &write));
        }
        let lost = Lpn(uniform.below(pages));
        assert_eq!(device.deallocate(now, lost, 1), ordinary.deallocate(now, lost, 1));
        let to_read: Vec<Lpn> = (0..64).map(|_| Lpn(uniform.below(pages))).chain([lost]).collect();
        let locations: Vec<_> = to_read.iter().map(|lpn| device.locate(*lpn)).collect();
        for (lpn, location) in to_read.into_iter().zip(locations) {
            now += u64::from(uniform.below(4000));
            let soonest = device.soonest_read(now);
            let done = match location {
                Some(location) => device.read_located(now, lpn, &location),
                None => device.read(now, lpn, 1).expect("it is in the drive"),
            };
            unmapped += u32::from(location.is_none());
            let expected = ordinary.read(now, lpn, 1).expect("it is in the drive");
            assert_eq!(done, expected, "seed {seed}, batch {batch}, page {}", lpn.0);
            assert!(done.at >= soonest, "seed {seed}, batch {batch}");
        }
    }
    assert!(unmapped >= 500, "what is nowhere is not located");
    assert_same(&device, &ordinary);
}

#[test]
fn what_was_located_is_read_as_anything_else() {
    let plain = timed(60, 0.2);
    compare_located(&plain, 1);
    let mut with_cache = plain.clone();
    with_cache.geometry.reclaim_groups = 2;
    with_cache.gc.background_watermark = 0.7;
    times(&mut with_cache).read_cache_bytes = 64 * PAGE;
    compare_located(&with_cache, 2);
    let mut with_tails = plain;
    times(&mut with_tails).tails =
        vec![ssd::timing::Tail { of: ssd::timing::TailOf::Sense, share: 0.1, least_ns: 10, most_ns: 50_000 }];
    compare_located(&with_tails, 3);
}

#[test]
#[should_panic(expected = "a read page is at its mapped place")]
fn what_was_written_since_is_not_where_it_was_located() {
    let mut device = silent(&timed(60, 0.2));
    let start = fill(&mut device);
    let location = device.locate(Lpn(7)).expect("all is written");
    let _ = device.write(start, &extent(7, 1, placement(0, 0)));
    let _ = device.read_located(start, Lpn(7), &location);
}

#[test]
fn the_same_calls_have_the_same_times() {
    let mut config = timed(60, 0.2);
    times(&mut config).tails =
        vec![ssd::timing::Tail { of: ssd::timing::TailOf::Sense, share: 0.1, least_ns: 10, most_ns: 50_000 }];
    let run = |config: &DeviceConfig| {
        let mut device = silent(config);
        let start = fill(&mut device);
        closed_loop(&mut device, start, 16, 20_000, mixed(config, 5))
    };
    assert_eq!(run(&config), run(&config));
    let mut other = config.clone();
    other.seed += 1;
    assert_ne!(run(&config), run(&other), "another seed has its tails elsewhere");
    assert!(DeviceLayout::new(&config).is_ok());
}
