//! Answers of the server: results of a worker, and refusals with a sentence that the HTTP server
//! converts to JSON.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use experiment::LabError;

/// Refusal of a request.
pub(crate) enum Refusal {
    /// Invalid request.
    Problem(LabError),
    /// HTTP status of the answer, with a sentence.
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

/// Runs a function on a worker and returns its answer.
pub(crate) async fn answered<R: IntoResponse>(
    answer: impl FnOnce() -> Result<R, Refusal> + Send + 'static,
) -> Response {
    target::http::work(answer).await
}
