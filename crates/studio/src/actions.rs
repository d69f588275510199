//! Actions on a served drive for pages with its token: a checkpoint, a reset of the statistics,
//! faults.
//!
//! ```text
//! POST, DELETE /api/drive/... -> token set? -> rate limit -> target::actions, or the session -> result
//! GET /api/drive/faults       -> planned faults and their occurrences
//! ```
//!
//! Without a token on the server, all users of this machine may watch the drive and no user may act
//! on it. The HTTP server has already checked the token and the origin of the request. An action
//! locks the drive briefly, or as long as any checkpoint does.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use target::ServeError;
use target::actions::{Actions, CheckpointRefusal, CheckpointResult, FaultsReport};
use target::http::{RequestBody, WebSocketRequest};

use crate::api_error::{ApiError, answered};
use crate::drive::MonitoredDrive;
use crate::page_connection::PageConnection;
use crate::session::StudioSession;

/// Maximum actions per second, for all pages together.
pub const ACTIONS_A_SECOND: usize = 5;
const NO_TOKEN: &str = "this page can only monitor the drive. To allow actions, start `warp serve` with \
                        --studio-token FILE, whose first line has 16 bytes or more";

pub struct DriveActions {
    pub session: Arc<StudioSession>,
    actions: Actions,
    /// The server has a token. The client of each request has shown it.
    pub are_allowed: bool,
    /// Times of the latest actions, oldest first, at most [`ACTIONS_A_SECOND`].
    recent_actions: Mutex<VecDeque<Instant>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultPlanBody {
    text: String,
}

impl DriveActions {
    pub fn begin(drive: MonitoredDrive, are_allowed: bool) -> Result<Arc<DriveActions>, ServeError> {
        let actions = drive.actions.clone();
        let session = StudioSession::watch(drive).map_err(|error| ServeError::System {
            action: "monitoring the drive",
            source: std::io::Error::other(error.to_string()),
        })?;
        Ok(Arc::new(DriveActions {
            session: Arc::new(session),
            actions,
            are_allowed,
            recent_actions: Mutex::new(VecDeque::new()),
        }))
    }

    pub fn routes(self: &Arc<DriveActions>) -> Router {
        type Of = State<Arc<DriveActions>>;
        const NO_ACTION: &str = "there is no such action. Use snapshot, reset-statistics or faults";
        let live = async |State(drive): Of, upgrade: WebSocketRequest| {
            upgrade.begin(PageConnection::new(Arc::clone(&drive.session)))
        };
        // Clients that may watch may also see the faults. The hosts message contains them too.
        let faults = get(|State(drive): Of| answered(move || Ok(faults_json(drive.actions.faults()))))
            .post(|State(drive): Of, RequestBody(body): RequestBody| {
                answered(move || drive.run_action(|| drive.plan_faults(&body)))
            })
            .delete(|State(drive): Of| answered(move || drive.run_action(|| drive.clear_faults())));
        Router::new()
            .route("/api/drive", get(async |State(drive): Of| Json(drive.session_json())))
            .route("/api/drive/live", get(live))
            .route("/api/drive/faults", faults)
            .route(
                "/api/drive/snapshot",
                post(|State(drive): Of, _: RequestBody| answered(move || drive.run_action(|| drive.checkpoint()))),
            )
            .route(
                "/api/drive/reset-statistics",
                post(|State(drive): Of, _: RequestBody| {
                    answered(move || drive.run_action(|| drive.reset_statistics()))
                }),
            )
            .route("/api/drive/{*action}", any((StatusCode::NOT_FOUND, NO_ACTION)))
            .with_state(Arc::clone(self))
    }

    fn session_json(&self) -> Value {
        let session = self.session.shared.with(|state| Arc::clone(&state.session));
        serde_json::from_str(&session).unwrap_or(Value::Null)
    }

    /// Executes an action if actions are allowed and the rate limit permits it.
    fn run_action<R>(&self, action: impl FnOnce() -> Result<R, ApiError>) -> Result<R, ApiError> {
        if !self.are_allowed {
            return Err(ApiError::new(StatusCode::FORBIDDEN, NO_TOKEN));
        }
        if !self.is_due(Instant::now()) {
            let problem = format!("all pages together may send {ACTIONS_A_SECOND} actions per second. Try again");
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, problem));
        }
        action()
    }

    /// Returns true if the rate limit permits an action now, and counts the action.
    fn is_due(&self, now: Instant) -> bool {
        let mut recent = self.recent_actions.lock().unwrap_or_else(PoisonError::into_inner);
        let is_past = |at: &Instant| now.saturating_duration_since(*at) >= Duration::from_secs(1);
        while recent.front().is_some_and(is_past) {
            recent.pop_front();
        }
        let is_due = recent.len() < ACTIONS_A_SECOND;
        if is_due {
            recent.push_back(now);
        }
        assert!(recent.len() <= ACTIONS_A_SECOND, "the rate limit holds");
        is_due
    }

    fn checkpoint(&self) -> Result<Json<CheckpointResult>, ApiError> {
        let made = self.actions.checkpoint();
        made.map(Json).map_err(|refused| ApiError::Status(status_of(&refused), refused.to_string()))
    }

    fn plan_faults(&self, body: &str) -> Result<Response, ApiError> {
        let plan: FaultPlanBody = serde_json::from_str(body).map_err(|problem| {
            let problem = base::hinted(&problem.to_string());
            let problem = format!("the fault plan cannot be read ({problem}). Send {{\"text\": \"[[fault]]...\"}}");
            ApiError::new(StatusCode::BAD_REQUEST, problem)
        })?;
        Ok(match self.actions.plan_faults(Some(&plan.text)) {
            Ok(report) => faults_json(report).into_response(),
            Err(refused) => {
                let body = json!({ "error": refused.to_string(), "line": refused.line() });
                (StatusCode::BAD_REQUEST, Json(body)).into_response()
            }
        })
    }

    fn clear_faults(&self) -> Result<Json<Value>, ApiError> {
        let cleared = self.actions.plan_faults(None).map(faults_json);
        cleared.map_err(|refused| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, refused))
    }

    fn reset_statistics(&self) -> Result<Json<Value>, ApiError> {
        let reset = self.session.reset_statistics();
        let reset = reset.map(|since_unix_ms| Json(json!({ "since_unix_ms": since_unix_ms })));
        reset.map_err(|problem| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, problem))
    }
}

/// JSON of the planned faults, null without a plan.
fn faults_json(report: Option<FaultsReport>) -> Json<Value> {
    Json(json!({ "faults": report }))
}

fn status_of(refused: &CheckpointRefusal) -> StatusCode {
    match refused {
        CheckpointRefusal::Busy | CheckpointRefusal::NoFiles => StatusCode::CONFLICT,
        CheckpointRefusal::Closed => StatusCode::SERVICE_UNAVAILABLE,
        CheckpointRefusal::Drive(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
