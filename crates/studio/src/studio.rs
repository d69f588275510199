//! HTTP server of the studio: routes and their handlers.
//!
//! ```text
//! routes -> assets | /api/... -> catalogue, texts, sessions, exports, the store
//!       \-> WebSocket -> PageConnection
//! ```
//!
//! All resources that a client controls are limited: sessions, lanes, memory, commands, messages.
//! Answers are JSON, and refusals are `{"error": "one sentence"}`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use analysis::compare::Side;
use analysis::store::{ResultStore, StoredRun};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::{any, delete, get, post};
use axum::{Json, Router};
use experiment::LabError;
use serde::Deserialize;
use serde_json::{Value, json};
use simulate::live::MemoryAccount;
use target::ServeError;
use target::http::{Audience, HttpOptions, HttpServer, RequestBody, WebSocketRequest};
use tokio::sync::Semaphore;

use crate::actions::DriveActions;
use crate::api_error::{ApiError, answered};
use crate::drive::MonitoredDrive;
use crate::export::FORMATS;
use crate::page_connection::PageConnection;
use crate::session::StudioSession;
use crate::session_spec::{SessionPlan, SessionSpec};
use crate::{assets, catalogue, text_check};

/// Maximum number of concurrent sessions.
pub const SESSIONS_MAX: usize = 16;
/// Maximum number of listed runs of the store.
const RUNS_MAX: usize = 200;
/// Refusal without a served drive.
const NO_DRIVE: &str = "this server has no drive to monitor. Start `warp serve --studio ADDRESS`";
/// Maximum number of orders prepared at the same time. The server has more workers, so that it can
/// answer other requests.
const BUILDING_MAX: usize = 5;
const BUSY: &str = "the server is building other sessions. Try again in a moment";
/// Default time that a session without a page is kept.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// Divisor of the machine's free memory for the sessions.
const MEMORY_SHARE: u64 = 2;

#[derive(Clone, Debug)]
pub struct StudioOptions {
    /// Address and token.
    pub http: HttpOptions,
    /// Files outside the catalogue that the user who started the server named, and that may be run.
    pub granted: Vec<PathBuf>,
    /// Time that a session without a page is kept.
    pub idle_max: Duration,
    /// Memory for all sessions together, bytes.
    pub memory_bytes: u64,
}

impl StudioOptions {
    pub fn new(http: HttpOptions) -> StudioOptions {
        StudioOptions {
            http,
            granted: Vec::new(),
            idle_max: IDLE_MAX,
            memory_bytes: simulate::run::memory_available() / MEMORY_SHARE,
        }
    }
}

pub struct Studio {
    server: HttpServer,
    inner: Arc<StudioState>,
}

impl Studio {
    pub fn start(options: StudioOptions) -> Result<Studio, ServeError> {
        Studio::start_with(options, None)
    }

    /// Starts the server with a view of a served drive.
    pub fn start_with(options: StudioOptions, drive: Option<MonitoredDrive>) -> Result<Studio, ServeError> {
        let has_token = options.http.token.is_some();
        let drive = drive.map(|drive| DriveActions::begin(drive, has_token)).transpose()?;
        let inner = Arc::new(StudioState {
            memory: MemoryAccount::new(options.memory_bytes),
            slots: Arc::new(Semaphore::new(SESSIONS_MAX)),
            sessions: Mutex::new(SessionTable::default()),
            building: Semaphore::new(BUILDING_MAX),
            granted: Mutex::new(options.granted),
            drive,
        });
        let server = HttpServer::start("studio", options.http, Audience::Browsers, routes(&inner))?;
        watch_idle(Arc::downgrade(&inner), options.idle_max);
        Ok(Studio { server, inner })
    }

    pub fn local_address(&self) -> std::net::SocketAddr {
        self.server.local_address()
    }

    /// Allows these files to be run, because the user who started the server names them.
    pub fn grant(&self, files: &[PathBuf]) {
        let mut granted = self.inner.granted.lock().expect("no thread panics with the lock");
        for file in files {
            if !granted.contains(file) {
                granted.push(file.clone());
            }
        }
    }

    /// Starts a session like a page does, and returns its identifier.
    pub fn begin(&self, order: SessionSpec) -> Result<String, LabError> {
        self.inner.begin(order).map_err(|refusal| match refusal {
            ApiError::Problem(error) => error,
            ApiError::Status(_, sentence) => LabError::invalid("sessions", sentence),
        })
    }

    /// Ends all sessions and the server.
    pub fn stop(self) {
        self.server.stop();
        let sessions = std::mem::take(&mut self.inner.sessions().of);
        let drive = self.inner.drive.as_ref().map(|drive| &drive.session);
        let sessions = || sessions.values().chain(drive);
        sessions().for_each(|session| session.end());
        sessions().for_each(|session| session.join());
    }
}

/// Ends idle sessions while the studio exists.
fn watch_idle(studio: Weak<StudioState>, idle_max: Duration) {
    let every = (idle_max / 8).clamp(Duration::from_millis(20), Duration::from_secs(5));
    let watch = move || {
        while let Some(inner) = studio.upgrade() {
            inner.end_idle(idle_max);
            drop(inner);
            std::thread::sleep(every);
        }
    };
    let started = std::thread::Builder::new().name("studio idle".to_string()).spawn(watch);
    // Without this thread, idle sessions remain until a client ends them.
    drop(started);
}

#[derive(Default)]
struct SessionTable {
    of: BTreeMap<u64, Arc<StudioSession>>,
    last: u64,
}

impl SessionTable {
    /// Unused name, with a number appended if a session has the name already.
    fn free_name(&self, name: &str) -> String {
        let taken: Vec<String> = self.of.values().map(|session| session.name()).collect();
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let mut names = std::iter::once(name.to_string()).chain(numbered);
        names.find(|name| !taken.contains(name)).expect("there are fewer sessions than numbers")
    }
}

struct StudioState {
    memory: MemoryAccount,
    slots: Arc<Semaphore>,
    sessions: Mutex<SessionTable>,
    /// Permits for orders in preparation. The preparation holds no lock, because memory is reserved
    /// before it is allocated.
    building: Semaphore,
    granted: Mutex<Vec<PathBuf>>,
    /// Monitored served drive.
    drive: Option<Arc<DriveActions>>,
}

impl StudioState {
    fn sessions(&self) -> std::sync::MutexGuard<'_, SessionTable> {
        self.sessions.lock().expect("no thread panics with the lock")
    }

    fn begin(&self, order: SessionSpec) -> Result<String, ApiError> {
        let full = || format!("the server has {SESSIONS_MAX} sessions, the maximum. End one of them first");
        let slot = Arc::clone(&self.slots).try_acquire_owned();
        let slot = slot.map_err(|_| ApiError::new(StatusCode::TOO_MANY_REQUESTS, full()))?;
        let building = self.building.try_acquire();
        let _building = building.map_err(|_| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, BUSY))?;
        let granted = self.granted.lock().expect("no thread panics with the lock").clone();
        let prepared = SessionPlan::new(order, &granted)?;
        let (id, name) = {
            let mut sessions = self.sessions();
            sessions.last += 1;
            (sessions.last, sessions.free_name(&prepared.default_name()))
        };
        let session = StudioSession::begin(id, name, prepared, &self.memory, slot)?;
        let name = session.shared.id.clone();
        self.sessions().of.insert(id, Arc::new(session));
        Ok(name)
    }

    fn session(&self, name: &str) -> Result<Arc<StudioSession>, ApiError> {
        let id = name.strip_prefix('s').and_then(|id| id.parse::<u64>().ok());
        let session = id.and_then(|id| self.sessions().of.get(&id).cloned());
        session.filter(|session| session.shared.id == name).ok_or_else(|| {
            let name: String = name.chars().take(20).collect();
            let sentence = format!("there is no session {name}, or it has ended. Start another one");
            ApiError::new(StatusCode::NOT_FOUND, sentence)
        })
    }

    fn end(&self, name: &str) -> Result<(), ApiError> {
        let session = self.session(name)?;
        self.sessions().of.retain(|_, other| !Arc::ptr_eq(other, &session));
        session.end();
        Ok(())
    }

    fn end_idle(&self, idle_max: Duration) {
        let sessions: Vec<Arc<StudioSession>> = self.sessions().of.values().cloned().collect();
        for session in sessions.iter().filter(|session| session.idle() > idle_max || session.shared.is_over()) {
            // A client may have ended the session just now.
            let _ = self.end(&session.shared.id);
        }
    }

    fn info(&self) -> Value {
        let are_actions_allowed = self.drive.as_ref().is_some_and(|drive| drive.are_allowed);
        json!({ "version": env!("CARGO_PKG_VERSION"), "drive": self.drive.is_some(), "actions": are_actions_allowed })
    }

    fn rename(&self, name: &str, body: &str) -> Result<(), ApiError> {
        let session = self.session(name)?;
        let given: SessionName =
            serde_json::from_str(body).map_err(|error| LabError::invalid("name", base::hinted(&error.to_string())))?;
        Ok(session.rename(&given.name)?)
    }

    fn list(&self) -> Value {
        let sessions: Vec<Arc<StudioSession>> = self.sessions().of.values().cloned().collect();
        let entry = |session: &Arc<StudioSession>| {
            let (phase, lanes) = session.phase();
            json!({
                "id": session.shared.id, "name": session.name(), "title": session.title, "phase": phase, "lanes": lanes,
                "begun_unix_ms": session.begun_unix_ms,
            })
        };
        sessions.iter().map(entry).collect()
    }

    fn export(&self, name: &str, file: &str) -> Result<impl IntoResponse + use<>, ApiError> {
        let session = self.session(name)?;
        let (_, media_type, write) = FORMATS.into_iter().find(|(name, ..)| *name == file).ok_or_else(|| {
            let names = FORMATS.map(|(name, ..)| name).join(", ");
            let problem = format!("there is no export of this name. Choose one of {names}");
            ApiError::new(StatusCode::NOT_FOUND, problem)
        })?;
        let material =
            session.export_data().map_err(|problem| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, problem))?;
        let text = write(&material).map_err(|problem| ApiError::new(StatusCode::CONFLICT, problem))?;
        let attachment = format!("attachment; filename=\"{file}\"");
        Ok(([(CONTENT_TYPE, media_type.to_string()), (CONTENT_DISPOSITION, attachment)], text))
    }
}

type Of = State<Arc<StudioState>>;

/// Routes of the server. Handlers other than files of the page run on workers.
fn routes(inner: &Arc<StudioState>) -> Router {
    let drive = match &inner.drive {
        Some(drive) => drive.routes(),
        None => Router::new()
            .route("/api/drive", any((StatusCode::NOT_FOUND, NO_DRIVE)))
            .route("/api/drive/{*action}", any((StatusCode::NOT_FOUND, NO_DRIVE))),
    };
    Router::new()
        .route("/api/about", get(|State(studio): Of| answered(move || Ok(Json(studio.info())))))
        .route("/api/catalogue", get(|| answered(|| Ok(Json(catalogue::all()?)))))
        .route("/api/options", get(|| answered(|| Ok(Json(catalogue::options())))))
        .route("/api/runs", get(|| answered(|| Ok(Json(runs()?)))))
        .route(
            "/api/compare/{one}/{other}",
            get(|Path((one, other)): Path<(String, String)>| {
                answered(move || Ok(Json(compare(&ResultStore::for_user()?, &one, &other)?)))
            }),
        )
        .route(
            "/api/text/{kind}/{name}",
            get(|Path((kind, name)): Path<(String, String)>| answered(move || text(&kind, &name))),
        )
        .route("/api/check", post(|RequestBody(body): RequestBody| answered(move || Ok(Json(check(&body)?)))))
        .route(
            "/api/sessions",
            get(|State(studio): Of| answered(move || Ok(Json(studio.list())))).post(
                |State(studio): Of, RequestBody(body): RequestBody| {
                    answered(move || {
                        let id = studio.begin(SessionSpec::parse(body.as_bytes())?)?;
                        Ok((StatusCode::CREATED, Json(json!({ "id": id }))))
                    })
                },
            ),
        )
        .route(
            "/api/sessions/{name}",
            delete(|State(studio): Of, Path(name): Path<String>| {
                answered(move || studio.end(&name).map(|()| StatusCode::NO_CONTENT))
            }),
        )
        .route(
            "/api/sessions/{name}/name",
            post(|State(studio): Of, Path(name): Path<String>, RequestBody(body): RequestBody| {
                answered(move || studio.rename(&name, &body).map(|()| StatusCode::NO_CONTENT))
            }),
        )
        .route(
            "/api/sessions/{name}/order",
            get(|State(studio): Of, Path(name): Path<String>| {
                answered(move || Ok(Json(studio.session(&name)?.order())))
            }),
        )
        .route(
            "/api/sessions/{name}/export/{file}",
            get(|State(studio): Of, Path((name, file)): Path<(String, String)>| {
                answered(move || studio.export(&name, &file))
            }),
        )
        .route(
            "/api/sessions/{name}/live",
            get(async |State(studio): Of, Path(name): Path<String>, upgrade: WebSocketRequest| {
                studio.session(&name).map(|session| upgrade.begin(PageConnection::new(session)))
            }),
        )
        .fallback(assets::serve_asset)
        .with_state(Arc::clone(inner))
        .merge(drive)
}

fn runs() -> Result<Value, LabError> {
    let kept = ResultStore::for_user()?.runs(RUNS_MAX)?;
    Ok(kept.runs.iter().map(StoredRun::row_json).collect())
}

/// Compares two runs of the store cell by cell.
fn compare(store: &ResultStore, one: &str, other: &str) -> Result<Value, LabError> {
    let side = |id: &str| Side::from_run(&store.find(id)?);
    Ok(analysis::compare::compare(side(one)?, side(other)?)?.to_json())
}

fn text(kind: &str, name: &str) -> Result<String, ApiError> {
    let unknown = "there are no texts of this kind. Choose jobs, workloads, devices or experiments";
    Ok(catalogue::text(kind, name).ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, unknown))??)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionName {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextCheck {
    name: String,
    text: String,
    #[serde(default)]
    kind: TextKind,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TextKind {
    #[default]
    Workload,
    Faults,
}

fn check(body: &str) -> Result<Value, LabError> {
    let to_check: TextCheck =
        serde_json::from_str(body).map_err(|error| LabError::invalid("check", base::hinted(&error.to_string())))?;
    let problems = match to_check.kind {
        TextKind::Workload => text_check::problems(&to_check.name, &to_check.text),
        TextKind::Faults => text_check::problems_of_faults(&to_check.text),
    };
    Ok(json!({ "problems": problems }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::store::RunProvenance;

    #[test]
    fn kept_experiments_are_compared_cell_by_cell() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = ResultStore::open(folder.path()).expect("it is made");
        let keep = |cells: &[(&str, f64)]| {
            let cells = cells.iter().map(|(variant, waf)| json!({ "device": "ssd_a", "variant": variant, "waf": waf }));
            let origin = RunProvenance {
                target: "three_stream",
                title: "three streams",
                options: String::new(),
                seconds: 1.0,
                cells: Vec::new(),
            };
            let result = json!({ "cells": cells.collect::<Vec<Value>>() });
            store.save(&origin, &result).expect("it is kept")
        };
        let one = keep(&[("FDP", 1.5), ("Mixed", 2.0), ("NoFDP", 3.0)]);
        let other = keep(&[("NoFDP", 2.5), ("FDP", 1.5)]);
        let comparison = compare(&store, &one, &other).expect("they have cells in common");
        let rows = comparison["rows"].as_array().expect("rows").iter();
        let rows: Vec<[Value; 4]> =
            rows.map(|row| ["cell", "metric", "difference", "verdict"].map(|key| row[key].clone())).collect();
        let expected = [
            [json!("FDP"), json!("WAF"), json!(0.0), json!("same")],
            [json!("NoFDP"), json!("WAF"), json!(-0.5), json!("one_seed")],
        ];
        assert_eq!(rows, expected);
        assert_eq!(comparison["only_a"], json!(["Mixed"]));
        assert_eq!(comparison["only_b"], json!([]));
        let third = keep(&[("II", 1.0), ("PI", 2.0)]);
        let refused = compare(&store, &one, &third).expect_err("they have none").to_string();
        assert!(refused.contains("nothing to compare"), "{refused}");
    }
}
