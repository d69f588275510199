//! Random drives.

use std::sync::Arc;

use nvme::{Identity, Subsystem, SubsystemConfig};
use ssd::config::{EventsConfig, GcConfig, Geometry, HandlesConfig, Isolation, ReclaimUnitSize, UnitOpenPolicy};
use ssd::{DeviceConfig, DeviceLayout};

use super::{KIB, MIB};
use crate::simulation::entropy::Entropy;
use crate::simulation::storage::{Control, Storage};

/// Parameters of a drive.
#[derive(Clone, Debug)]
pub struct Setup {
    pub config: SubsystemConfig,
    /// Bytes of its storage.
    pub capacity_bytes: u64,
    pub cached: bool,
    pub exact_units: bool,
}

/// A small drive of a random kind.
pub fn setup(entropy: &mut impl Entropy) -> Setup {
    loop {
        let setup = any_setup(entropy);
        if setup.as_ref().is_some_and(|setup| Subsystem::new(setup.config.clone(), Box::new(setup.storage().0)).is_ok())
        {
            return setup.expect("just asked");
        }
    }
}

impl Setup {
    /// Empty storage of the drive. The metadata area behind the data has a byte for 64, the most of
    /// all formats.
    pub fn storage(&self) -> (Storage, Arc<Control>) {
        Storage::new(self.capacity_bytes + self.capacity_bytes.div_ceil(64), self.cached)
    }
}

/// Parameters of a small drive that may be invalid.
fn any_setup(entropy: &mut impl Entropy) -> Option<Setup> {
    let exact_units = entropy.percent(75);
    let device = device(entropy, exact_units);
    let layout = DeviceLayout::new(&device).ok()?;
    let config = SubsystemConfig {
        identity: Identity {
            serial: "S1MULAT10N".to_string(),
            model: "simulated drive".to_string(),
            firmware: "sim".to_string(),
            nqn: "nqn.2026-01.org.example:simulation".to_string(),
        },
        device,
        fdp: entropy.percent(75),
        namespace: entropy.percent(70),
        format: entropy.below(4) as u8,
        reclaim_unit_time_limit_s: entropy.pick(&[0, 0, 3, 20]),
        controllers_max: entropy.between(2, 5) as u16,
        io_queues_max: entropy.between(2, 5) as u16,
    };
    Some(Setup {
        config,
        capacity_bytes: u64::from(layout.logical_pages) * layout.page_bytes,
        cached: entropy.percent(50),
        exact_units,
    })
}

fn device(entropy: &mut impl Entropy, exact_units: bool) -> DeviceConfig {
    let reclaim_groups = entropy.pick(&[1, 1, 1, 2, 4]);
    let capacity_bytes = entropy.between(8, 24) * MIB + entropy.below(3) * 52 * KIB;
    let mut handles = HandlesConfig {
        count: entropy.between(1, 8) as u16,
        isolation: entropy.pick(&[Isolation::InitiallyIsolated, Isolation::PersistentlyIsolated]),
        opening: entropy.pick(&[UnitOpenPolicy::OnFirstUse, UnitOpenPolicy::OnFirstUse, UnitOpenPolicy::Eager]),
        ..HandlesConfig::default()
    };
    if !exact_units {
        handles.reclaim_unit = entropy.pick(&[ReclaimUnitSize::Die, ReclaimUnitSize::Channel]);
        handles.open_reclaim_units = entropy.between(1, 3) as u16;
    }
    DeviceConfig {
        timing: None,
        endurance: None,
        geometry: Geometry {
            capacity_bytes: Some(capacity_bytes),
            physical_bytes: None,
            over_provisioning: entropy.pick(&[0.15, 0.3, 0.6, 1.0]),
            media_overhead_share: entropy.pick(&[0.0, 0.07]),
            reclaim_unit_bytes: entropy.pick(&[128, 256, 512]) * KIB,
            mapping_unit_bytes: entropy.pick(&[4, 4, 4, 8, 16]) * KIB,
            program_unit_bytes: None,
            channels: 4,
            dies_per_channel: 1,
            planes_per_die: 1,
            reclaim_groups,
        },
        handles,
        gc: GcConfig { block_remapping: entropy.percent(50), ..GcConfig::default() },
        events: EventsConfig::default(),
        seed: entropy.below(1 << 32),
    }
}
