//! Where the next address comes from.

use crate::Operation;
use crate::fio::distribution::{Skew, ZoneTable};
use crate::fio::plan::{AddressPlan, Plan};
use crate::fio::random::{Purpose, Taus88};
use crate::fio::random_map::RandomMap;
use crate::fio::value::PerDirection;

/// Where the next address comes from.
#[derive(Debug, Clone)]
pub(super) enum Addresses {
    Sequential,
    Uniform(Option<RandomMap>),
    Skewed(Skew),
    Zoned(PerDirection<ZoneTable>, Taus88),
}

impl Addresses {
    pub(super) fn new(plan: &Plan) -> Self {
        match &plan.addresses {
            AddressPlan::Sequential => Self::Sequential,
            AddressPlan::Uniform { .. } => Self::Uniform(plan.map_blocks().map(RandomMap::new)),
            AddressPlan::Skewed {
                kind,
                center,
                drawn_blocks,
                blocks,
            } => {
                let skew = Skew::new(*kind, *drawn_blocks, *center, plan.distribution_seed);
                Self::Skewed(skew.on_twin(*blocks))
            }
            AddressPlan::Zoned(zones) => Self::Zoned(
                Operation::ALL
                    .map(|operation| ZoneTable::of_percents(&zones[operation as usize], plan.last_block(operation))),
                Taus88::new(plan.seeds.of(Purpose::Zone)),
            ),
            AddressPlan::ZonedAbsolute(zones) => Self::Zoned(
                Operation::ALL.map(|operation| {
                    ZoneTable::of_bytes(&zones[operation as usize], plan.blocks[operation as usize].align_bytes)
                }),
                Taus88::new(plan.seeds.of(Purpose::Zone)),
            ),
        }
    }
}
