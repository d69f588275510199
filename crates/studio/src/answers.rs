//! Answers of the server: JSON, and errors as JSON.

use serde_json::{Value, json};
use target::http::Answer;

/// An answer with this JSON.
pub(crate) fn json(value: Value) -> Answer {
    Answer::new(200, "application/json", value.to_string())
}

/// An answer with this status, whose JSON has the problem under `error`.
pub(crate) fn error(status: u16, problem: impl Into<String>) -> Answer {
    let body = json!({ "error": problem.into() }).to_string();
    Answer::new(status, "application/json", body)
}
