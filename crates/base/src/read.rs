//! Reads settings into a type.

use serde::{Deserialize, Deserializer};

/// A value that does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Path of the field, such as `geometry.channels`. Empty if it is the value itself.
    pub path: String,
    /// The problem in the user's words, with the nearest known name.
    pub problem: String,
}

impl Misfit {
    /// Path and problem, behind each other.
    pub fn message(&self) -> String {
        match self.path.as_str() {
            "" => self.problem.clone(),
            path => format!("{path}: {}", self.problem),
        }
    }
}

/// Reads a value, of TOML or JSON.
///
/// # Errors
/// The value does not fit the type.
pub fn read_value<'de, T: Deserialize<'de>>(value: impl Deserializer<'de>) -> Result<T, Misfit> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let message = error.into_inner().to_string();
        // TOML names the key again in a line of its own.
        let message = message.split("\nin `").next().unwrap_or_default();
        let problem = message.trim().replace('\n', ", ");
        Misfit { path: if path == "." { String::new() } else { path }, problem: crate::hinted(&problem) }
    })
}
