//! No classifier: what a host does that knows nothing of placement. Needs no memory.

use serde::{Deserialize, Serialize};

use super::Classifier;
use crate::PlacementIndex;

/// Settings of `kind = "none"`: there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoneSettings {}

/// Takes away what directives there are.
pub(super) struct None;

impl Classifier for None {
    fn handle(&mut self, _unit: u64) -> Option<PlacementIndex> {
        Option::None
    }
}
