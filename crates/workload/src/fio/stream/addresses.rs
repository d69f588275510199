//! State from which a stream draws its addresses.

use crate::RequestOperation;
use crate::fio::distribution::{AccessZone, Skew, ZoneTable};
use crate::fio::plan::{AddressPlan, JobPlan};
use crate::fio::random::{Purpose, Taus88};
use crate::fio::random_map::RandomMap;
use crate::fio::value::PerDirection;

/// Source of the next address.
#[derive(Debug, Clone)]
pub(super) enum Addresses {
    Sequential,
    Uniform(Option<RandomMap>),
    Skewed(Skew),
    /// A direction without zones is uniform.
    Zoned(PerDirection<Option<ZoneTable>>, Taus88),
    /// Blocks, and a flag to begin each round behind the last.
    Sequence(Vec<u64>, bool),
}

impl Addresses {
    pub(super) fn new(plan: &JobPlan) -> Self {
        match &plan.addresses {
            AddressPlan::Sequential => Self::Sequential,
            AddressPlan::Uniform { .. } => Self::Uniform(plan.map_blocks().map(RandomMap::new)),
            AddressPlan::Skewed { kind, center, drawn_blocks, blocks } => {
                let skew = Skew::new(*kind, *drawn_blocks, *center, plan.distribution_seed);
                Self::Skewed(skew.on_scaled_model(*blocks))
            }
            AddressPlan::Sequence { blocks, strides } => {
                assert!(!blocks.is_empty(), "a sequence has no block to repeat");
                Self::Sequence(blocks.clone(), *strides)
            }
            AddressPlan::Zoned(zones) => {
                Self::zoned(plan, zones, |operation, zones| ZoneTable::from_percents(zones, plan.last_block(operation)))
            }
            AddressPlan::ZonedAbsolute(zones) => Self::zoned(plan, zones, |operation, zones| {
                ZoneTable::from_bytes(zones, plan.blocks[operation as usize].align_bytes)
            }),
        }
    }

    fn zoned(
        plan: &JobPlan,
        zones: &PerDirection<Vec<AccessZone>>,
        table: impl Fn(RequestOperation, &[AccessZone]) -> ZoneTable,
    ) -> Self {
        let tables = RequestOperation::ALL.map(|operation| {
            let zones = &zones[operation as usize];
            (!zones.is_empty()).then(|| table(operation, zones))
        });
        Self::Zoned(tables, Taus88::new(plan.seeds.seed(Purpose::Zone)))
    }
}
