//! Tails, invalid timing settings, and a clock that jumps.

use base::table;
use ssd::config::GcDestination;
use ssd::timing::{Tail, TailOf};
use ssd::{Device, DeviceConfig};

use crate::common::{MIB, Uniform, silent};
use crate::host::{HostCommand, LATER, Observation, ask, closed_loop, fill};
use crate::*;

/// Extra time of random reads (or overwrites) on a drive with a tail, relative to a drive without
/// tails. 0 for commands that the tail does not delay.
fn extra(of: TailOf, writes: bool) -> Vec<u64> {
    let mut config = timed(60, 0.25);
    times(&mut config).nand.read_ns = vec![50_000];
    times(&mut config).tails = vec![Tail { of, share: 0.02, least_ns: 300_000, most_ns: 500_000 }];
    let mut device = silent(&config);
    let mut now = fill(&mut device);
    let pages = device.layout().logical_pages - 1000;
    let mut uniform = Uniform::new(31);
    let mut extra = Vec::new();
    for _ in 0..20_000 {
        let first = uniform.below(pages);
        let (pages, handle) = (1, 0);
        let (asked, usual) = if writes {
            (HostCommand::Write { first, pages, handle }, WRITE_OF_A_PAGE)
        } else {
            let usual = READ_WITHOUT_FLASH + 50_000 + PAGE + COMMAND;
            (HostCommand::Read { first, pages }, usual)
        };
        let done = ask(&mut device, now, asked);
        extra.push(done.at - now - usual);
        now += LATER;
    }
    extra
}

#[test]
fn tails_have_the_share_and_the_bounds_that_were_given() {
    for (of, writes) in [(TailOf::Sense, false), (TailOf::Read, false), (TailOf::Write, true)] {
        let extra = extra(of, writes);
        let longer: Vec<u64> = extra.iter().copied().filter(|extra| *extra > 0).collect();
        let share = longer.len() as f64 / extra.len() as f64;
        // The standard deviation of the share is 0.001.
        assert!((share - 0.02).abs() < 0.004, "{of:?}: a share of {share}");
        let (least, most) = (longer.iter().min(), longer.iter().max());
        assert!(least.is_some_and(|least| (300_000..310_000).contains(least)), "{of:?}: {least:?}");
        assert!(most.is_some_and(|most| (490_000..=500_000).contains(most)), "{of:?}: {most:?}");
        let mean = longer.iter().sum::<u64>() as f64 / longer.len() as f64;
        assert!((mean / 400_000.0 - 1.0).abs() < 0.03, "{of:?}: {mean} ns on average");
    }
    assert!(extra(TailOf::Write, false).iter().all(|extra| *extra == 0), "reads have no tail of writes");
    assert!(extra(TailOf::Sense, true).iter().all(|extra| *extra == 0), "writes sense nothing");
}

/// Slow sensing occupies its die. A slow command occupies no resource.
#[test]
fn only_a_tail_of_sensing_delays_others() {
    let ends = |of| {
        let mut config = timed(40, 0.25);
        config.geometry.channels = 1;
        config.geometry.dies_per_channel = 1;
        times(&mut config).nand.read_ns = vec![50_000];
        times(&mut config).tails = vec![Tail { of, share: 1.0, least_ns: 20_000, most_ns: 20_000 }];
        let mut device = silent(&config);
        let now = fill(&mut device);
        let mut first = 0;
        let reads = closed_loop(&mut device, now, 4, 4, || {
            first += 100;
            HostCommand::Read { first, pages: 1 }
        });
        reads.iter().map(Observation::latency).collect::<Vec<u64>>()
    };
    let usual = READ_WITHOUT_FLASH + PAGE + COMMAND;
    assert_eq!(ends(TailOf::Sense), [1, 2, 3, 4].map(|turn| usual + turn * 70_000));
    assert_eq!(ends(TailOf::Read), [1, 2, 3, 4].map(|turn| usual + turn * 50_000 + 20_000));
}

#[test]
fn a_clock_may_jump_far_ahead() {
    let mut config = timed(60, 0.15);
    config.gc.background_watermark = 0.5;
    let mut device = silent(&config);
    let mut now = fill(&mut device);
    let mut next = crate::host::mixed(&config, 8);
    for _ in 0..50 {
        let busy = closed_loop(&mut device, now, 32, 500, &mut next);
        // A year passes.
        now = crate::host::end(&busy) + 365 * 24 * 3600 * 1_000_000_000;
        let read = ask(&mut device, now, HostCommand::Read { first: 0, pages: 1 });
        let latencies = [READ_WITHOUT_FLASH, read_of_a_page(0), read_of_a_page(1), read_of_a_page(2)];
        assert!(latencies.contains(&(read.at - now)), "an idle drive reads in {} ns", read.at - now);
    }
}

/// A read cache holds flash pages until they are overwritten.
#[test]
fn a_read_cache_is_as_large_as_it_was_said_to_be() {
    let mut config = timed(60, 0.25);
    times(&mut config).read_cache_bytes = 64 * 4 * PAGE;
    let mut device = silent(&config);
    let now = fill(&mut device);
    let mut now = now;
    let mut read = |flash_page: u32, page: u32| {
        now += LATER;
        let first = flash_page * 4 + page;
        ask(&mut device, now, HostCommand::Read { first, pages: 1 }).at - now
    };
    for flash_page in 0..64 {
        assert!(read(flash_page, 0) > READ_WITHOUT_FLASH);
    }
    for flash_page in 0..64 {
        assert_eq!(read(flash_page, 1), READ_WITHOUT_FLASH, "flash page {flash_page}");
    }
    assert!(read(64, 2) > READ_WITHOUT_FLASH);
    assert!(read(0, 3) > READ_WITHOUT_FLASH, "the one that was used longest ago is gone");
    assert_eq!(read(2, 0), READ_WITHOUT_FLASH);
}

/// Field that an error names, the mistake, and its description.
type Mistake = (&'static str, fn(&mut DeviceConfig), &'static str);

const MISTAKES: &[Mistake] = &table! {
    "timing.nand.program_ns": |config| times(config).nand.program_ns = 0 => "no time",
    "timing.nand.program_ns": |config| times(config).nand.program_ns = 61_000_000_000 => "more than a minute",
    "timing.nand.read_ns": |config| times(config).nand.read_ns = vec![40_000, 50_000]
        => "two times for three kinds of pages",
    "timing.nand.read_ns": |config| times(config).nand.read_ns = vec![] => "none",
    "timing.nand.read_ns": |config| times(config).nand.read_ns = vec![40_000, 0, 60_000] => "one of no time",
    "timing.nand.erase_ns": |config| times(config).nand.erase_ns = u64::MAX => "more than a minute",
    "timing.nand.suspend_ns": |config| times(config).nand.suspend_ns = Some(u64::MAX) => "more than a minute",
    "timing.nand.page_bytes": |config| times(config).nand.page_bytes = 2048 => "less than a mapping unit",
    "timing.nand.page_bytes": |config| times(config).nand.page_bytes = 6000 => "no multiple of one",
    "timing.nand.page_bytes": |config| times(config).nand.page_bytes = 2 * MIB => "more than the largest",
    "timing.nand.bits_per_cell": |config| times(config).nand.bits_per_cell = 0 => "none",
    "timing.nand.bits_per_cell": |config| times(config).nand.bits_per_cell = 6 => "more than there are flashes of",
    "timing.channel.bytes_per_second": |config| times(config).channel.bytes_per_second = 0 => "none",
    "timing.channel.command_ns": |config| times(config).channel.command_ns = u64::MAX => "more than a minute",
    "timing.controller.cores": |config| times(config).controller.cores = 0 => "none",
    "timing.controller.read_ns": |config| times(config).controller.read_ns = 0 => "no time",
    "timing.controller.write_ns": |config| times(config).controller.write_ns = 0 => "no time",
    "timing.controller.page_ns": |config| times(config).controller.page_ns = u64::MAX => "more than a minute",
    "timing.link.generation": |config| times(config).link.generation = 9 => "one that does not exist",
    "timing.link.generation": |config| times(config).link.generation = 0 => "none",
    "timing.link.lanes": |config| times(config).link.lanes = 17 => "more than there are",
    "timing.link.payload_share": |config| times(config).link.payload_share = 0.0 => "none",
    "timing.link.payload_share": |config| times(config).link.payload_share = f64::NAN => "no number",
    "timing.write_buffer_bytes": |config| times(config).write_buffer_bytes = 5 * 24 * PAGE - 1 => "a byte too few",
    "timing.tails[0].share": |config| times(config).tails = vec![tail(1.5, 1, 2)] => "more than all",
    "timing.tails[0].most_ns": |config| times(config).tails = vec![tail(0.5, 3, 2)] => "the least above the most",
    "geometry.planes_per_die": |config| config.geometry.planes_per_die = 0 => "none",
    "gc.copies": |config| config.gc.copies = GcDestination::WithHost => "host data and copies in one flash page",
    "geometry.reclaim_unit_bytes": |config| {
        config.geometry.planes_per_die = 64;
        times(config).write_buffer_bytes = 64 * MIB;
    } => "more planes than a reclaim unit has program units for",
};

#[test]
fn a_drive_that_cannot_be_is_refused() {
    Device::new(&timed(40, 0.25)).expect("the drive is possible");
    for (field, mistake, what) in MISTAKES {
        let mut config = timed(40, 0.25);
        mistake(&mut config);
        let error = Device::new(&config).err().unwrap_or_else(|| panic!("{field}, {what}: it was not refused"));
        assert_eq!(error.field, *field, "{what}: {error}");
        assert!(error.allowed.len() > 10, "{what}: {error}: what would be possible?");
    }
    let mut least = timed(40, 0.25);
    times(&mut least).write_buffer_bytes = 5 * 24 * PAGE;
    Device::new(&least).expect("an operation for each of four handles and one more");
}

fn tail(share: f64, least_ns: u64, most_ns: u64) -> Tail {
    Tail { of: TailOf::Read, share, least_ns, most_ns }
}
