//! The origin of points: the request from which the studio can repeat them.

use std::sync::Arc;

use studio::request::RunRequest;

/// The arguments with which points were made. `None` after pickling.
pub type Origin = Option<Arc<RunRequest>>;

/// The origin that all have in common. `None` if they come from different calls.
pub fn common_origin<'a>(mut origins: impl Iterator<Item = &'a Origin>) -> Origin {
    let first = origins.next()?.clone()?;
    origins
        .all(|other| other.as_ref().is_some_and(|other| Arc::ptr_eq(&first, other)))
        .then_some(first)
}
