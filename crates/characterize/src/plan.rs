//! Probes of a drive, in the order of their importance, with the bytes that they write.

use crate::identity::DriveIdentity;
use crate::journal::Journal;

/// Drive writes that a probe may take to become steady.
pub const DRIVE_WRITES_MAX: f64 = 5.0;
/// Write amplification that the plan assumes for probes that have not run.
const WAF_ASSUMED: f64 = 3.0;
/// Rate of a fill that the plan assumes before the first fill, bytes per second.
pub const FILL_RATE_ASSUMED: f64 = 1e9;
/// Default seconds of a load that measures a rate or a latency.
pub const LOAD_SECONDS: f64 = 2.0;
/// Loads of the probe `times`, with its burst.
const LOADS: f64 = 13.0;
/// Largest request of a probe, bytes.
const REQUEST_BYTES_MAX: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    pub name: &'static str,
    /// Property of the drive that the probe shows.
    pub shows: &'static str,
    pub work: ProbeWork,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ProbeWork {
    /// Fio job on a full drive. A holdout is predicted by the fitted profile, and never fitted.
    Job { text: String, is_holdout: bool },
    /// Rates and latencies.
    Times,
    /// Writes with a directive until RUAMW shows the size of a reclaim unit.
    ReclaimUnit,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub probes: Vec<Probe>,
    pub drive_writes_max: f64,
    pub load_seconds: f64,
}

impl Plan {
    /// Plans all probes that a drive allows.
    pub fn new(drive: &DriveIdentity, drive_writes_max: f64, load_seconds: f64) -> Plan {
        let (bs, capacity) = (drive.write_granularity_bytes, drive.capacity_bytes);
        let handles = drive.fdp.as_ref().map_or(0, |fdp| fdp.handles);
        let random = |options: &str| format!("[random]\nrw=randwrite\nbs={bs}\nnorandommap\n{options}");
        // The rates only set the shares of the two streams, because the drive is written as fast as it allows.
        let streams = |hot: &str, cold: &str| {
            let job = |name: &str, options: &str| format!("[{name}]\nrw=randwrite\nbs={bs}\nnorandommap\n{options}");
            format!("{}\n{}", job("hot", hot), job("cold", cold))
        };
        let placed = "ioengine=io_uring_cmd\ncmd_type=nvme\ndataplacement=fdp\n";
        let hot_and_cold = |hot: u32, cold: u32| {
            streams(
                &format!("size=10%\nrate=900m\n{placed}plids={hot}\n"),
                &format!("offset=10%\nsize=90%\nrate=100m\n{placed}plids={cold}\n"),
            )
        };
        let mut probes = Vec::new();
        let mut add = |name, shows, text: String, is_holdout| {
            probes.push(Probe { name, shows, work: ProbeWork::Job { text, is_holdout } });
        };
        add(
            "sequential",
            "overhead of the drive's own data, rate of a fill",
            format!("[sequential]\nrw=write\nbs={}\n", bs.max(128 << 10)),
            false,
        );
        add("uniform", "spare capacity", random(""), false);
        add("two_zones", "policy of garbage collection", random("random_distribution=zoned:90/10:10/90\n"), false);
        add("uniform_half", "policy of garbage collection with read-only data", random("size=50%\n"), false);
        if handles >= 2 {
            add("streams_mixed", "gain of handles, part without them", hot_and_cold(0, 0), false);
            add("streams_apart", "gain of handles", hot_and_cold(1, 0), false);
            let half = |offset: &str, rate: &str, handle: u32| {
                format!("offset={offset}\nsize=50%\nrate={rate}\n{placed}plids={handle}\n")
            };
            add("copies", "isolation of copied data", streams(&half("0", "800m", 1), &half("50%", "100m", 0)), false);
        }
        add("holdout", "quality of the profile", random("random_distribution=zoned:60/5:30/25:10/70\n"), true);
        add("zipf", "policy of garbage collection", random("random_distribution=zipf:0.9\n"), false);
        let trim = "[trim]\nrw=trim\nbs=1m\noffset=80%\nsize=20%\n";
        add("trimmed", "use of deallocated space", format!("{trim}\n{}", random("stonewall\nsize=80%\n")), false);
        add("hot_overwrite", "absorption of repeated writes", random("size=4m\n"), false);
        if drive.fdp.is_none() {
            // Blocks as long as a superblock die with it, and shorter ones do not.
            for (name, share) in [("blocks_large", 1024), ("blocks_medium", 4096), ("blocks_small", 16384)] {
                let bytes = (capacity / share).next_power_of_two().clamp(bs, REQUEST_BYTES_MAX);
                add(name, "size of superblocks", format!("[blocks]\nrw=randwrite\nbs={bytes}\nnorandommap\n"), false);
            }
        }
        let first = probes.iter().position(|probe| probe.name == "holdout").expect("it was added");
        probes.insert(first, Probe { name: "times", shows: "rates and latencies", work: ProbeWork::Times });
        if handles > 0 {
            let shows = "size of a reclaim unit for the host";
            probes.insert(1, Probe { name: "reclaim_unit", shows, work: ProbeWork::ReclaimUnit });
        }
        Plan { probes, drive_writes_max, load_seconds }
    }

    /// Drive writes of a probe if it takes the most that it may.
    pub fn drive_writes(&self, probe: &Probe) -> f64 {
        match probe.work {
            ProbeWork::Job { .. } => 1.0 + self.drive_writes_max,
            ProbeWork::Times => 1.5,
            ProbeWork::ReclaimUnit => 0.01,
        }
    }

    /// Seconds of a probe, for a fill at this rate.
    pub fn seconds(&self, probe: &Probe, capacity_bytes: u64, fill_rate: f64) -> f64 {
        let fill = capacity_bytes as f64 / fill_rate;
        match probe.work {
            ProbeWork::Job { .. } => fill * (1.0 + self.drive_writes_max * WAF_ASSUMED),
            ProbeWork::Times => fill + LOADS * self.load_seconds,
            ProbeWork::ReclaimUnit => fill * 0.01,
        }
    }

    /// Leaves out the probes that a journal contains.
    pub fn skip_completed(&mut self, journal: &Journal) {
        self.probes.retain(|probe| !journal.results().any(|(done, _)| done == probe.name));
    }

    /// Keeps the first probes that fit into a time, at least three.
    pub fn shorten(&mut self, capacity_bytes: u64, fill_rate: f64, seconds_max: f64) {
        let mut seconds = 0.0;
        let fits = |probe: &Probe| {
            seconds += self.seconds(probe, capacity_bytes, fill_rate);
            seconds <= seconds_max
        };
        let count = self.probes.iter().map(fits).take_while(|fits| *fits).count();
        self.probes.truncate(count.max(3));
    }

    pub fn drive_writes_total(&self) -> f64 {
        self.probes.iter().map(|probe| self.drive_writes(probe)).sum()
    }

    pub fn seconds_total(&self, capacity_bytes: u64, fill_rate: f64) -> f64 {
        self.probes.iter().map(|probe| self.seconds(probe, capacity_bytes, fill_rate)).sum()
    }
}
