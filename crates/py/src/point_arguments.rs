//! The origin of points: the request from which the studio can repeat them.

use std::sync::Arc;

use studio::run_query::RunQuery;

/// The arguments with which points were made. `None` after pickling.
pub type PointArguments = Option<Arc<RunQuery>>;

/// The origin that all have in common. `None` if they come from different calls.
pub fn common_origin<'a>(mut origins: impl Iterator<Item = &'a PointArguments>) -> PointArguments {
    let first = origins.next()?.clone()?;
    origins.all(|other| other.as_ref().is_some_and(|other| Arc::ptr_eq(&first, other))).then_some(first)
}
