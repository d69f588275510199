//! Where points come from, for what shows them later.

use std::sync::Arc;

use studio::request::RunRequest;

/// What points were asked for with, so that the studio can be told.
pub type Origin = Option<Arc<RunRequest>>;

/// What all of these have in common; None if they were not asked for together.
pub fn common_origin<'a>(mut origins: impl Iterator<Item = &'a Origin>) -> Origin {
    let first = origins.next()?.clone()?;
    origins
        .all(|other| other.as_ref().is_some_and(|other| Arc::ptr_eq(&first, other)))
        .then_some(first)
}
