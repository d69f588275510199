//! Choice of the placement index of each write.

use crate::PlacementIndex;
use crate::fio::job::SchemeEntry;
use crate::fio::plan::{JobPlan, PlacementPlan};
use crate::fio::random::{Purpose, Taus88};

/// Source of the placement index of the next write.
#[derive(Debug, Clone)]
pub(super) enum PlacementSource {
    None,
    Fixed(PlacementIndex),
    RoundRobin(Vec<PlacementIndex>, usize),
    Random(Vec<PlacementIndex>, Taus88),
    Scheme(Vec<SchemeEntry>),
}

impl PlacementSource {
    pub(super) fn new(plan: &JobPlan) -> Self {
        match &plan.placement {
            PlacementPlan::None => Self::None,
            PlacementPlan::RoundRobin(indices) if indices.len() == 1 => Self::Fixed(indices[0]),
            PlacementPlan::RoundRobin(indices) => Self::RoundRobin(indices.clone(), 0),
            PlacementPlan::Random(indices) => {
                Self::Random(indices.clone(), Taus88::new(plan.seeds.seed(Purpose::Placement)))
            }
            PlacementPlan::Scheme(entries) => Self::Scheme(entries.clone()),
        }
    }

    #[inline]
    pub(super) fn next_index(&mut self, offset_bytes: u64) -> Option<PlacementIndex> {
        match self {
            Self::None => None,
            Self::Fixed(index) => Some(*index),
            Self::RoundRobin(indices, next) => {
                let index = indices[*next];
                *next = if *next + 1 == indices.len() { 0 } else { *next + 1 };
                Some(index)
            }
            Self::Random(indices, generator) => Some(indices[generator.between(0, indices.len() as u32 - 1) as usize]),
            Self::Scheme(entries) => {
                let hit = entries.iter().find(|entry| (entry.start_bytes..entry.end_bytes).contains(&offset_bytes));
                Some(hit.map_or(PlacementIndex::FIRST, |entry| entry.index))
            }
        }
    }
}
