//! Actions on a served drive, for pages that show its token: a checkpoint, statistics counted anew, faults.
//!
//! ```text
//! POST, DELETE /api/drive/... -> is there a token? -> not too often? -> target::actions, or the session -> what came of it
//! GET /api/drive/faults       -> what is planned and what has come of it
//! ```
//!
//! Where the server has no token everybody of this machine may watch and nobody may act. That the token was shown, and that no other
//! site has a browser ask, the HTTP server has looked at before. What is done here holds the drive for a moment, or as long as every
//! checkpoint does.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use target::actions::{Actions, CheckpointRefused, FaultsReport};
use target::http::{Answer, AppMethod, Question};

use crate::answers::{error, json as answer};
use crate::session::Session;

/// Actions in a second, of all pages together.
pub const ACTIONS_A_SECOND: usize = 5;
/// How to have actions.
const NO_TOKEN: &str = "the served drive is only watched here; start `warp serve` with --studio-token FILE, a file with 16 bytes or more \
                        in its first line, to act on it";

/// See the module.
pub struct DriveActions {
    actions: Actions,
    /// Whether there is a token, which whoever comes here has shown.
    pub are_allowed: bool,
    /// When the last ones were, the oldest first; at most [`ACTIONS_A_SECOND`].
    lately: Mutex<VecDeque<Instant>>,
}

/// A plan that a page sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText {
    text: String,
}

impl DriveActions {
    /// What may be done to a drive.
    pub fn new(actions: Actions, are_allowed: bool) -> DriveActions {
        DriveActions {
            actions,
            are_allowed,
            lately: Mutex::new(VecDeque::new()),
        }
    }

    /// The answer to a question about one of them; `action` is the path below `/api/drive/`.
    pub fn answer(&self, action: &str, session: &Session, question: &Question) -> Answer {
        match (action, question.method) {
            // Who may watch may know what goes wrong on purpose: it is in what watchers are told, too.
            ("faults", AppMethod::Get) => answer(faults_json(self.actions.faults())),
            ("faults", AppMethod::Post) => self.act(|| self.plan_faults(&question.body)),
            ("faults", AppMethod::Delete) => self.act(|| self.clear_faults()),
            ("snapshot", AppMethod::Post) => self.act(|| self.checkpoint()),
            ("reset-statistics", AppMethod::Post) => self.act(|| reset_statistics(session)),
            ("snapshot" | "reset-statistics", _) => error(405, "this is an action (POST)"),
            _ => error(
                404,
                "there is no such action; there are snapshot, reset-statistics and faults",
            ),
        }
    }

    /// Acts, if that is allowed and not too often.
    fn act(&self, action: impl FnOnce() -> Answer) -> Answer {
        if !self.are_allowed {
            return error(403, NO_TOKEN);
        }
        if !self.is_due(Instant::now()) {
            let problem =
                format!("there are at most {ACTIONS_A_SECOND} actions in a second, of all pages together; try again");
            return error(429, problem);
        }
        action()
    }

    /// Whether there may be another one now; it is taken for one, then.
    fn is_due(&self, now: Instant) -> bool {
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        let is_past = |at: &Instant| now.saturating_duration_since(*at) >= Duration::from_secs(1);
        while lately.front().is_some_and(is_past) {
            lately.pop_front();
        }
        let is_due = lately.len() < ACTIONS_A_SECOND;
        if is_due {
            lately.push_back(now);
        }
        assert!(lately.len() <= ACTIONS_A_SECOND, "what is too often is refused");
        is_due
    }

    fn checkpoint(&self) -> Answer {
        match self.actions.checkpoint() {
            Ok(checkpoint) => answer(json!(checkpoint)),
            Err(refused) => error(status_of(&refused), refused.to_string()),
        }
    }

    fn plan_faults(&self, body: &[u8]) -> Answer {
        let plan: PlanText = match serde_json::from_slice(body) {
            Ok(plan) => plan,
            Err(problem) => return error(400, format!("faults: {problem}; send {{\"text\": \"[[fault]]...\"}}")),
        };
        match self.actions.plan_faults(Some(&plan.text)) {
            Ok(report) => answer(faults_json(report)),
            Err(refused) => {
                let body = json!({ "error": refused.to_string(), "line": refused.line() });
                Answer::new(400, "application/json", body.to_string())
            }
        }
    }

    fn clear_faults(&self) -> Answer {
        match self.actions.plan_faults(None) {
            Ok(report) => answer(faults_json(report)),
            Err(refused) => error(500, refused.to_string()),
        }
    }
}

fn reset_statistics(session: &Session) -> Answer {
    match session.reset_statistics() {
        Ok(since_unix_ms) => answer(json!({ "since_unix_ms": since_unix_ms })),
        Err(problem) => error(503, problem),
    }
}

/// What is planned; without a plan there is none of it.
fn faults_json(report: Option<FaultsReport>) -> Value {
    json!({ "faults": report })
}

fn status_of(refused: &CheckpointRefused) -> u16 {
    match refused {
        CheckpointRefused::Busy | CheckpointRefused::NoFiles => 409,
        CheckpointRefused::Closed => 503,
        CheckpointRefused::Drive(_) => 500,
    }
}
