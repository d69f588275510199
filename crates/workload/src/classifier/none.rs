//! The absent classifier, for a host that does not use placement. Needs no memory.

use serde::{Deserialize, Serialize};

use super::Classifier;
use crate::PlacementIndex;

/// Settings of `kind = "none"`, which has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoneSettings {}

/// Removes all directives.
pub(super) struct NoClassifier;

impl Classifier for NoClassifier {
    fn handle(&mut self, _unit: u64) -> Option<PlacementIndex> {
        Option::None
    }
}
