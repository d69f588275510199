//! Answers of the server: what a worker answers, and refusals, whose sentences the HTTP server puts into JSON.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use experiment::LabError;

/// Why something is not done.
pub(crate) enum Refusal {
    /// It is wrong.
    Problem(LabError),
    /// The status of the answer, and the sentence.
    Status(StatusCode, String),
}

impl Refusal {
    pub fn new(status: StatusCode, sentence: impl ToString) -> Refusal {
        Refusal::Status(status, sentence.to_string())
    }
}

impl From<LabError> for Refusal {
    fn from(problem: LabError) -> Refusal {
        Refusal::Problem(problem)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Refusal::Problem(problem) => {
                let status = match problem {
                    LabError::Unknown { .. } => StatusCode::NOT_FOUND,
                    LabError::Output { .. } => StatusCode::INTERNAL_SERVER_ERROR,
                    _ => StatusCode::BAD_REQUEST,
                };
                (status, problem.to_string()).into_response()
            }
            Refusal::Status(status, sentence) => (status, sentence).into_response(),
        }
    }
}

/// The answer of a worker.
pub(crate) async fn answered<R: IntoResponse>(
    answer: impl FnOnce() -> Result<R, Refusal> + Send + 'static,
) -> Response {
    target::http::work(answer).await
}
