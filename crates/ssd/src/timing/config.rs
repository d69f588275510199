//! Timing configuration of a drive, part of its profile.

use serde::{Deserialize, Serialize};

use crate::cast::{count, index, to_f64, truncate};
use crate::config::geometry::Geometry;
use crate::config::handles::HandlesConfig;
use crate::error::ConfigError;
use crate::types::Nanos;

/// Maximum number of lanes of a PCI Express link.
const LANES_MAX: u32 = 16;
/// Bytes per second of one lane in one direction, for each generation. Equal to the transfer rate
/// times the efficiency of the line code (8b/10b for 1 and 2, 128b/130b for 3 to 5, flits of 242 in
/// 256 bytes for 6; PCI Express Base Specification 6.0).
const LANE_BYTES_PER_SECOND: [u64; 6] =
    [250_000_000, 500_000_000, 984_615_385, 1_969_230_769, 3_938_461_538, 7_562_500_000];
const SECOND_NS: u64 = 1_000_000_000;
/// Maximum of any single time in a profile. Longer times indicate a wrong unit.
const TIME_MAX_NS: u64 = 60 * SECOND_NS;

/// Timing of a drive. The duration of each operation is a sum of these times. The geometry
/// determines which operations wait for each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimingConfig {
    /// Flash dies.
    pub nand: NandTiming,
    /// Channels between controller and flash.
    pub channel: ChannelTiming,
    /// Controller.
    pub controller: ControllerTiming,
    /// Link to the host.
    pub link: LinkTiming,
    /// Size of the power-loss protected write buffer, in bytes. A write is complete when its data
    /// is in the buffer.
    #[serde(with = "base::size")]
    pub write_buffer_bytes: u64,
    /// Size of the cache of flash pages that were read, in bytes. 0 for no cache.
    #[serde(default, with = "base::size")]
    pub read_cache_bytes: u64,
    /// Random delays of some operations.
    #[serde(default)]
    pub tails: Vec<Tail>,
}

/// Timing of a flash die.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NandTiming {
    /// Size of a flash page in bytes. One plane senses one flash page at a time.
    #[serde(with = "base::size")]
    pub page_bytes: u64,
    /// Bits per cell: 1 SLC, 2 MLC, 3 TLC, 4 QLC. Equal to the number of flash pages in a one-shot
    /// program.
    pub bits_per_cell: u32,
    /// Time to sense a page, for each page type in the order of a one-shot program (lower, upper,
    /// ...). A single value applies to all types.
    pub read_ns: Vec<Nanos>,
    /// Time to program `bits_per_cell` pages of each plane in one shot.
    pub program_ns: Nanos,
    /// Time to erase a block of each plane. 0 for free erases.
    pub erase_ns: Nanos,
    /// Time to suspend a program or erase for a read. Without it a read waits until the operation
    /// ends.
    #[serde(default)]
    pub suspend_ns: Option<Nanos>,
}

/// Timing of a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelTiming {
    /// Bandwidth in bytes per second.
    pub bytes_per_second: u64,
    /// Time for commands and addresses of one transfer.
    #[serde(default)]
    pub command_ns: Nanos,
}

/// Timing of the controller. A command occupies a core, and a pipeline adds latency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerTiming {
    /// Number of cores, which process commands in parallel.
    pub cores: u32,
    /// Core time of a read.
    pub read_ns: Nanos,
    /// Core time of a write or any other command.
    pub write_ns: Nanos,
    /// Additional core time for each mapping unit after the first.
    #[serde(default)]
    pub page_ns: Nanos,
    /// Latency of a read outside the cores (submission, completion, hardware).
    #[serde(default)]
    pub read_pipeline_ns: Nanos,
    /// Latency of a write or any other command outside the cores.
    #[serde(default)]
    pub write_pipeline_ns: Nanos,
}

/// PCI Express link to the host, full duplex.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkTiming {
    /// PCI Express generation, 1 to 6.
    pub generation: u32,
    /// Number of lanes, 1 to 16.
    pub lanes: u32,
    /// Share of the raw bandwidth that carries data. Packet headers and protocol use the rest.
    #[serde(default = "default_payload_share")]
    pub payload_share: f64,
}

/// Typical for drives. Packets carry 256 bytes in 256 + 24 bytes, and flow control needs a little
/// more.
fn default_payload_share() -> f64 {
    0.9
}

/// Random delay of some operations, such as read retries or firmware housekeeping. The delay is
/// uniform between two bounds. Drives have a sum of several tails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// Operations that the tail applies to.
    pub of: TailOf,
    /// Share of operations with the delay, 0 to 1.
    pub share: f64,
    /// Minimum delay.
    pub least_ns: Nanos,
    /// Maximum delay.
    pub most_ns: Nanos,
}

/// Kind of operations that a tail applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TailOf {
    /// Sensing of a flash page for the host, which occupies the die for longer.
    Sense,
    /// Read command. The delay affects only this command.
    Read,
    /// Write command. The delay affects only this command.
    Write,
}

impl LinkTiming {
    /// Data bandwidth in each direction, in bytes per second.
    pub fn bytes_per_second(&self) -> u64 {
        let lane = LANE_BYTES_PER_SECOND[index(self.generation) - 1];
        truncate(to_f64(lane) * f64::from(self.lanes) * self.payload_share)
    }
}

impl TimingConfig {
    /// Data of one program operation in each plane of a die, in bytes.
    pub fn one_shot_bytes(&self) -> u64 {
        self.nand.page_bytes * u64::from(self.nand.bits_per_cell)
    }

    /// Checks the timing.
    ///
    /// # Errors
    /// Names the invalid field and its allowed values.
    pub(crate) fn check(&self, geometry: &Geometry, handles: &HandlesConfig) -> Result<(), ConfigError> {
        self.check_nand(geometry)?;
        self.check_controller()?;
        self.check_buffer(geometry, handles)?;
        for (index, tail) in self.tails.iter().enumerate() {
            let field = |name: &str| format!("timing.tails[{index}].{name}");
            ConfigError::require_range(&field("share"), tail.share, 0.0..=1.0)?;
            ConfigError::require(
                tail.least_ns <= tail.most_ns && tail.most_ns <= TIME_MAX_NS,
                &field("most_ns"),
                tail.most_ns,
                "must be at least least_ns and at most a minute",
            )?;
        }
        Ok(())
    }

    fn check_nand(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        let nand = &self.nand;
        let unit = geometry.mapping_unit_bytes;
        ConfigError::require(
            nand.page_bytes >= unit && nand.page_bytes.is_multiple_of(unit) && nand.page_bytes <= 1 << 20,
            "timing.nand.page_bytes",
            nand.page_bytes,
            "must be a multiple of geometry.mapping_unit_bytes and at most 1 MiB",
        )?;
        ConfigError::require(
            (1..=5).contains(&nand.bits_per_cell),
            "timing.nand.bits_per_cell",
            nand.bits_per_cell,
            "must be 1 (SLC) to 5 (PLC)",
        )?;
        ConfigError::require(
            nand.read_ns.len() == 1 || nand.read_ns.len() == index(nand.bits_per_cell),
            "timing.nand.read_ns",
            format!("{:?}", nand.read_ns),
            "must be one time, or one time for each bit of a cell",
        )?;
        for &time in &nand.read_ns {
            require_time("timing.nand.read_ns", time)?;
        }
        require_time("timing.nand.program_ns", nand.program_ns)?;
        at_most_a_minute("timing.nand.erase_ns", nand.erase_ns)?;
        at_most_a_minute("timing.nand.suspend_ns", nand.suspend_ns.unwrap_or(0))
    }

    fn check_controller(&self) -> Result<(), ConfigError> {
        let (channel, controller, link) = (&self.channel, &self.controller, &self.link);
        let speed = 1_000_000..=1_000_000_000_000;
        ConfigError::require(
            speed.contains(&channel.bytes_per_second),
            "timing.channel.bytes_per_second",
            channel.bytes_per_second,
            "must be between 1 MB and 1 TB per second",
        )?;
        ConfigError::require_range("timing.controller.cores", controller.cores, 1..=1024)?;
        require_time("timing.controller.read_ns", controller.read_ns)?;
        require_time("timing.controller.write_ns", controller.write_ns)?;
        at_most_a_minute("timing.channel.command_ns", channel.command_ns)?;
        at_most_a_minute("timing.controller.page_ns", controller.page_ns)?;
        at_most_a_minute("timing.controller.read_pipeline_ns", controller.read_pipeline_ns)?;
        at_most_a_minute("timing.controller.write_pipeline_ns", controller.write_pipeline_ns)?;
        ConfigError::require(
            (1..=count(LANE_BYTES_PER_SECOND.len())).contains(&link.generation),
            "timing.link.generation",
            link.generation,
            "must be a generation of PCI Express, 1 to 6",
        )?;
        ConfigError::require_range("timing.link.lanes", link.lanes, 1..=LANES_MAX)?;
        ConfigError::require(
            (0.01..=1.0).contains(&link.payload_share),
            "timing.link.payload_share",
            link.payload_share,
            "must be between 0.01 and 1",
        )
    }

    /// Checks the buffer size. Each reclaim unit that a host can have open may have an incomplete
    /// program operation in the buffer.
    fn check_buffer(&self, geometry: &Geometry, handles: &HandlesConfig) -> Result<(), ConfigError> {
        let program = geometry.program_unit_bytes.unwrap_or(geometry.mapping_unit_bytes);
        let apart = u64::from(handles.hot_window_bytes > 0);
        let open: u64 =
            (0..handles.count).map(|handle| u64::from(handles.get(handle).open_reclaim_units) + apart).sum();
        let operation = program.saturating_mul(u64::from(geometry.planes_per_die));
        let least = operation.saturating_mul(open * u64::from(geometry.reclaim_groups) + 1);
        ConfigError::require(
            self.write_buffer_bytes >= least,
            "timing.write_buffer_bytes",
            self.write_buffer_bytes,
            &format!(
                "must be at least {least}. The buffer needs a program operation of {operation} bytes for each reclaim \
                 unit that a host can have open, and one more"
            ),
        )
    }
}

fn at_most_a_minute(field: &str, time: Nanos) -> Result<(), ConfigError> {
    ConfigError::require(time <= TIME_MAX_NS, field, time, "must be at most a minute")
}

fn require_time(field: &str, time: Nanos) -> Result<(), ConfigError> {
    ConfigError::require((1..=TIME_MAX_NS).contains(&time), field, time, "must be between a nanosecond and a minute")
}
