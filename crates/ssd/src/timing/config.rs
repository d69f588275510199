//! What a drive's parts take, as a profile says it.

use serde::{Deserialize, Serialize};

use crate::cast::{count, index, real, whole};
use crate::config::geometry::Geometry;
use crate::config::handles::Handles;
use crate::error::ConfigError;
use crate::types::Nanos;

/// Lanes of a PCI Express link, at most.
const LANES_MAX: u32 = 16;
/// Bytes in a second of one lane in one direction, for each generation: transfers in a second times the share of the
/// line code (8b/10b for 1 and 2, 128b/130b for 3 to 5, flits of 242 in 256 bytes for 6; PCI Express Base Specification
/// 6.0).
const LANE_BYTES_PER_SECOND: [u64; 6] = [
    250_000_000,
    500_000_000,
    984_615_385,
    1_969_230_769,
    3_938_461_538,
    7_562_500_000,
];
const SECOND_NS: u64 = 1_000_000_000;
/// No single time of a profile is longer: what is longer is a mistake in the unit.
const TIME_MAX_NS: u64 = 60 * SECOND_NS;

/// Times of a drive. Every operation is a sum of these; what waits for what follows from the geometry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimingConfig {
    /// Flash.
    pub nand: NandTiming,
    /// The channels between controller and flash.
    pub channel: ChannelTiming,
    /// The controller.
    pub controller: ControllerTiming,
    /// The link to the host.
    pub link: LinkTiming,
    /// Bytes of the write buffer, which is safe from loss of power: a write is complete when it is in there.
    #[serde(with = "base::size")]
    pub write_buffer_bytes: u64,
    /// Bytes of flash pages that are kept after they were read; 0 for none.
    #[serde(default, with = "base::size")]
    pub read_cache_bytes: u64,
    /// What now and then takes longer.
    #[serde(default)]
    pub tails: Vec<Tail>,
}

/// Times of a flash die.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NandTiming {
    /// Bytes of a flash page: what one plane senses at once.
    #[serde(with = "base::size")]
    pub page_bytes: u64,
    /// Bits of a cell: 1 SLC, 2 MLC, 3 TLC, 4 QLC. So many flash pages are programmed in one shot.
    pub bits_per_cell: u32,
    /// Sensing a page, for each page type in the order in which a one-shot program takes them (lower, upper, ...); one
    /// value if all take the same.
    pub read_ns: Vec<Nanos>,
    /// Programming `bits_per_cell` pages of each plane in one shot.
    pub program_ns: Nanos,
    /// Erasing a block of each plane. 0 leaves it out.
    pub erase_ns: Nanos,
    /// What a read waits for a program or erase to be suspended; left out: it waits until the operation ends.
    #[serde(default)]
    pub suspend_ns: Option<Nanos>,
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelTiming {
    /// Bytes in a second.
    pub bytes_per_second: u64,
    /// Commands and addresses of one transfer.
    #[serde(default)]
    pub command_ns: Nanos,
}

/// The controller: cores that are busy with a command, and a pipeline that only delays it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerTiming {
    /// Commands that are worked on at the same time.
    pub cores: u32,
    /// A core is busy with a read for so long.
    pub read_ns: Nanos,
    /// A core is busy with a write, or any other command, for so long.
    pub write_ns: Nanos,
    /// And for so much longer for each mapping unit after the first.
    #[serde(default)]
    pub page_ns: Nanos,
    /// Delay of a read outside the cores: submission, completion, hardware.
    #[serde(default)]
    pub read_pipeline_ns: Nanos,
    /// Delay of a write, or any other command, outside the cores.
    #[serde(default)]
    pub write_pipeline_ns: Nanos,
}

/// The link to the host: PCI Express, both directions at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkTiming {
    /// Generation of PCI Express, 1 to 6.
    pub generation: u32,
    /// Lanes, 1 to 16.
    pub lanes: u32,
    /// Share of the lanes' bytes that is data; the rest is packet headers and protocol.
    #[serde(default = "default_payload_share")]
    pub payload_share: f64,
}

/// 256 bytes in a packet of 256 + 24 and a little flow control: what drives reach in practice.
fn default_payload_share() -> f64 {
    0.9
}

/// Now and then an operation takes longer: read retries, housekeeping of the firmware. How much longer is equally
/// likely between two bounds; the tails of a drive are a sum of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// Which commands.
    pub of: TailOf,
    /// Share of them, 0 to 1.
    pub share: f64,
    /// Longer by at least this.
    pub least_ns: Nanos,
    /// Longer by at most this.
    pub most_ns: Nanos,
}

/// What a tail applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TailOf {
    /// Sensing a flash page for the host: its die is busy for longer.
    Sense,
    /// A read command: only that one waits.
    Read,
    /// A write command: only that one waits.
    Write,
}

impl LinkTiming {
    /// Bytes of data in a second, in each direction.
    pub fn bytes_per_second(&self) -> u64 {
        let lane = LANE_BYTES_PER_SECOND[index(self.generation) - 1];
        whole(real(lane) * f64::from(self.lanes) * self.payload_share)
    }
}

impl TimingConfig {
    /// Pages of all planes of a die that one program operation takes, in bytes.
    pub fn one_shot_bytes(&self) -> u64 {
        self.nand.page_bytes * u64::from(self.nand.bits_per_cell)
    }

    /// Whether a drive can be like that.
    ///
    /// # Errors
    /// Names the field that cannot be, and what can.
    pub(crate) fn check(&self, geometry: &Geometry, handles: &Handles) -> Result<(), ConfigError> {
        self.check_nand(geometry)?;
        self.check_controller()?;
        self.check_buffer(geometry, handles)?;
        for (index, tail) in self.tails.iter().enumerate() {
            let field = |name: &str| format!("timing.tails[{index}].{name}");
            ConfigError::between(&field("share"), tail.share, 0.0..=1.0)?;
            ConfigError::unless(
                tail.least_ns <= tail.most_ns && tail.most_ns <= TIME_MAX_NS,
                &field("most_ns"),
                tail.most_ns,
                "must be at least least_ns, and at most a minute",
            )?;
        }
        Ok(())
    }

    fn check_nand(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        let nand = &self.nand;
        let unit = geometry.mapping_unit_bytes;
        ConfigError::unless(
            nand.page_bytes >= unit && nand.page_bytes.is_multiple_of(unit) && nand.page_bytes <= 1 << 20,
            "timing.nand.page_bytes",
            nand.page_bytes,
            "must be a multiple of geometry.mapping_unit_bytes, at most 1 MiB",
        )?;
        ConfigError::unless(
            (1..=5).contains(&nand.bits_per_cell),
            "timing.nand.bits_per_cell",
            nand.bits_per_cell,
            "must be 1 (SLC) to 5 (PLC)",
        )?;
        ConfigError::unless(
            nand.read_ns.len() == 1 || nand.read_ns.len() == index(nand.bits_per_cell),
            "timing.nand.read_ns",
            format!("{:?}", nand.read_ns),
            "must be one time, or one for each bit of a cell",
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
        ConfigError::unless(
            speed.contains(&channel.bytes_per_second),
            "timing.channel.bytes_per_second",
            channel.bytes_per_second,
            "must be between 1 MB and 1 TB in a second",
        )?;
        ConfigError::between("timing.controller.cores", controller.cores, 1..=1024)?;
        require_time("timing.controller.read_ns", controller.read_ns)?;
        require_time("timing.controller.write_ns", controller.write_ns)?;
        at_most_a_minute("timing.channel.command_ns", channel.command_ns)?;
        at_most_a_minute("timing.controller.page_ns", controller.page_ns)?;
        at_most_a_minute("timing.controller.read_pipeline_ns", controller.read_pipeline_ns)?;
        at_most_a_minute("timing.controller.write_pipeline_ns", controller.write_pipeline_ns)?;
        ConfigError::unless(
            (1..=count(LANE_BYTES_PER_SECOND.len())).contains(&link.generation),
            "timing.link.generation",
            link.generation,
            "must be a generation of PCI Express, 1 to 6",
        )?;
        ConfigError::between("timing.link.lanes", link.lanes, 1..=LANES_MAX)?;
        ConfigError::unless(
            link.payload_share > 0.0 && link.payload_share <= 1.0,
            "timing.link.payload_share",
            link.payload_share,
            "must be above 0 and at most 1",
        )
    }

    /// Every reclaim unit that a host can have open may hold a program operation that is not full yet.
    fn check_buffer(&self, geometry: &Geometry, handles: &Handles) -> Result<(), ConfigError> {
        let program = geometry.program_unit_bytes.unwrap_or(geometry.mapping_unit_bytes);
        let apart = u64::from(handles.separation_bytes > 0);
        let open: u64 = (0..handles.count)
            .map(|handle| u64::from(handles.get(handle).open_reclaim_units) + apart)
            .sum();
        let operation = program.saturating_mul(u64::from(geometry.planes_per_die));
        let least = operation.saturating_mul(open * u64::from(geometry.reclaim_groups) + 1);
        ConfigError::unless(
            self.write_buffer_bytes >= least,
            "timing.write_buffer_bytes",
            self.write_buffer_bytes,
            &format!(
                "must be at least {least}: a program operation of {operation} bytes for each reclaim unit that a host \
                 can have open, and one more"
            ),
        )
    }
}

fn at_most_a_minute(field: &str, time: Nanos) -> Result<(), ConfigError> {
    ConfigError::unless(time <= TIME_MAX_NS, field, time, "must be at most a minute")
}

fn require_time(field: &str, time: Nanos) -> Result<(), ConfigError> {
    ConfigError::unless(
        (1..=TIME_MAX_NS).contains(&time),
        field,
        time,
        "must be at least a nanosecond and at most a minute",
    )
}
