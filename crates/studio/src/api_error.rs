//! Answers of the server: results of a worker, and refusals with a sentence that the HTTP server
//! converts to JSON.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use experiment::LabError;

pub(crate) enum ApiError {
    Problem(LabError),
    /// HTTP status of the answer, with a sentence.
    Status(StatusCode, String),
}

impl ApiError {
    pub fn new(status: StatusCode, sentence: impl ToString) -> ApiError {
        ApiError::Status(status, sentence.to_string())
    }
}

impl From<LabError> for ApiError {
    fn from(problem: LabError) -> ApiError {
        ApiError::Problem(problem)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            ApiError::Problem(problem) => {
                let status = match problem {
                    LabError::Unknown { .. } => StatusCode::NOT_FOUND,
                    LabError::Output { .. } => StatusCode::INTERNAL_SERVER_ERROR,
                    _ => StatusCode::BAD_REQUEST,
                };
                (status, base::with_short_numbers(&problem.to_string())).into_response()
            }
            ApiError::Status(status, sentence) => (status, base::with_short_numbers(&sentence)).into_response(),
        }
    }
}

/// Runs a function on a worker and returns its answer.
pub(crate) async fn answered<R: IntoResponse>(
    answer: impl FnOnce() -> Result<R, ApiError> + Send + 'static,
) -> Response {
    target::http::work(answer).await
}
