//! Bounds of the numbers of a question.

use experiment::LabError;

/// Refuses a number outside its bounds.
pub(crate) fn within(name: &str, value: f64, low: f64, high: f64) -> Result<(), LabError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(LabError::invalid(name, format!("{value} is out of range. Give a number between {low} and {high}")))
}
