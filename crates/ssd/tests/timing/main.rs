//! Timing as seen by a host: the cost of a command, its waiting times, and the limits of a drive.
//!
//! The numbers of the drive below are round (a byte takes a nanosecond on a channel and on the
//! link), so that every expected time is a sum that can be checked by hand. `sums` has the idle
//! drive, `buffer` writes, `die` reads beside other work, `load` long workloads at high queue
//! depth, and `rules` the remaining cases.

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
/// Size of a page in bytes, and its time on the link in nanoseconds.
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

/// Latency of a read of one page, from a flash page of type `page_type`, on an idle drive.
fn read_of_a_page(page_type: usize) -> u64 {
    READ_CORE + SENSE[page_type] + (COMMAND + PAGE) + PAGE + READ_PIPELINE
}

/// Latency of a read of one page without flash access.
const READ_WITHOUT_FLASH: u64 = READ_CORE + PAGE + READ_PIPELINE;

/// Latency of a write of one page into a buffer with free space.
const WRITE_OF_A_PAGE: u64 = WRITE_CORE + PAGE + WRITE_PIPELINE;

/// 2 channels of 2 dies of 2 planes, TLC with flash pages of 16 KiB, `superblocks` reclaim units of
/// 3 MiB.
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
        channel: ChannelTiming { bytes_per_second: 1_000_000_000, command_ns: COMMAND },
        controller: ControllerTiming {
            cores: 4,
            read_ns: READ_CORE,
            write_ns: WRITE_CORE,
            page_ns: NEXT_PAGE,
            read_pipeline_ns: READ_PIPELINE,
            write_pipeline_ns: WRITE_PIPELINE,
        },
        link: LinkTiming { generation: 1, lanes: 4, payload_share: 1.0 },
        write_buffer_bytes: 4 * MIB,
        read_cache_bytes: 0,
        tails: Vec::new(),
    });
    config
}

/// Timing of a configuration that has one.
fn times(config: &mut DeviceConfig) -> &mut TimingConfig {
    config.timing.as_mut().expect("the drive has times")
}
