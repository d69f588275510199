//! Times of drives whose commands must come late by known amounts.

use ssd::timing::{ChannelTiming, ControllerTiming, LinkTiming, NandTiming, TimingConfig};

/// Timing where commands take their controller time, and flash and link almost none.
pub fn controller_alone(read_ns: u64, write_ns: u64) -> TimingConfig {
    TimingConfig {
        nand: NandTiming {
            page_bytes: 4096,
            bits_per_cell: 1,
            read_ns: vec![1],
            program_ns: 1,
            erase_ns: 0,
            suspend_ns: None,
        },
        channel: ChannelTiming { bytes_per_second: 1_000_000_000_000, command_ns: 0 },
        controller: ControllerTiming {
            cores: 1,
            read_ns,
            write_ns,
            page_ns: 0,
            read_pipeline_ns: 0,
            write_pipeline_ns: 0,
        },
        link: LinkTiming { generation: 6, lanes: 16, payload_share: 1.0 },
        write_buffer_bytes: 1 << 20,
        read_cache_bytes: 0,
        tails: Vec::new(),
    }
}
