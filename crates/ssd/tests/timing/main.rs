//! Time, from outside: what a command costs, what it waits for, and what no drive can do.
//!
//! The numbers of the drive below are round (a byte takes a nanosecond on a channel and on the link), so that every
//! expected time is a sum that can be followed by hand. `sums` has the idle drive, `buffer` writes, `die` reads beside
//! other work, `load` long workloads at high queue depth, `rules` everything else.

mod buffer;
#[path = "../common/mod.rs"]
mod common;
mod die;
mod host;
mod load;
mod rules;
mod sums;

use ssd::DeviceConfig;
use ssd::timing::{ChannelTiming, ControllerTiming, LinkTiming, NandTiming, TimingConfig};

use common::{MIB, small};

/// Pages of a program unit: three flash pages of four.
const PROGRAM_UNIT_PAGES: u32 = 12;
/// Pages of a program operation: a program unit on both planes of a die.
const OPERATION_PAGES: u32 = 2 * PROGRAM_UNIT_PAGES;
/// Pages of a reclaim unit: eight operations on each of the four dies.
const UNIT_PAGES: u32 = 8 * 4 * OPERATION_PAGES;
/// Bytes, and nanoseconds of the link, of a page.
const PAGE: u64 = 4096;

const READ_CORE: u64 = 2_000;
const WRITE_CORE: u64 = 3_000;
const NEXT_PAGE: u64 = 100;
const READ_PIPELINE: u64 = 5_000;
const WRITE_PIPELINE: u64 = 7_000;
const COMMAND: u64 = 200;
const SENSE: [u64; 3] = [40_000, 50_000, 60_000];
const PROGRAM: u64 = 600_000;
const ERASE: u64 = 3_000_000;
const SUSPEND: u64 = 10_000;

/// A read of one page from a flash page of type `page_type`, when nothing else happens.
fn read_of_a_page(page_type: usize) -> u64 {
    READ_CORE + SENSE[page_type] + (COMMAND + PAGE) + PAGE + READ_PIPELINE
}

/// A read of one page that the flash is not needed for.
const READ_WITHOUT_FLASH: u64 = READ_CORE + PAGE + READ_PIPELINE;

/// A write of one page into a buffer that has room.
const WRITE_OF_A_PAGE: u64 = WRITE_CORE + PAGE + WRITE_PIPELINE;

/// 2 channels of 2 dies of 2 planes, TLC with flash pages of 16 KiB, `superblocks` reclaim units of 3 MiB.
fn timed(superblocks: u64, over_provisioning: f64) -> DeviceConfig {
    let mut config = small(3 * superblocks, over_provisioning);
    config.geometry.planes_per_die = 2;
    config.geometry.program_unit_bytes = Some(u64::from(PROGRAM_UNIT_PAGES) * PAGE);
    config.geometry.reclaim_unit_bytes = 3 * MIB;
    config.timing = Some(TimingConfig {
        nand: NandTiming {
            page_bytes: 4 * PAGE,
            bits_per_cell: 3,
            read_ns: SENSE.to_vec(),
            program_ns: PROGRAM,
            erase_ns: ERASE,
            suspend_ns: Some(SUSPEND),
        },
        channel: ChannelTiming {
            bytes_per_second: 1_000_000_000,
            command_ns: COMMAND,
        },
        controller: ControllerTiming {
            cores: 4,
            read_ns: READ_CORE,
            write_ns: WRITE_CORE,
            page_ns: NEXT_PAGE,
            read_pipeline_ns: READ_PIPELINE,
            write_pipeline_ns: WRITE_PIPELINE,
        },
        link: LinkTiming {
            generation: 1,
            lanes: 4,
            payload_share: 1.0,
        },
        write_buffer_bytes: 4 * MIB,
        read_cache_bytes: 0,
        tails: Vec::new(),
    });
    config
}

/// The times of a configuration that has them.
fn times(config: &mut DeviceConfig) -> &mut TimingConfig {
    config.timing.as_mut().expect("the drive has times")
}
