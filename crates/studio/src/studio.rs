//! The server: questions of pages, and what is done about them.
//!
//! ```text
//! http::App -> assets | /api/... -> catalogue, texts, sessions, exports, the store
//!          \-> WebSocket -> Page
//! ```
//!
//! Everything that a peer can make grow has a bound: sessions, lanes, memory, commands, messages. Answers are JSON, refusals
//! `{"error": "one sentence"}`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use analysis::compare::Side;
use analysis::store::{KeptRun, Store};
use experiment::LabError;
use serde::Deserialize;
use serde_json::{Value, json};
use simulate::live::MemoryAccount;
use target::ServeError;
use target::http::{Answer, App, AppMethod, Conversation, HttpOptions, HttpServer, Question};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::actions::DriveActions;
use crate::answers::{error, json};
use crate::export::Form;
use crate::order::{Order, Prepared};
use crate::page::Page;
use crate::session::Session;
use crate::{assets, catalogue, texts};

/// Sessions at the same time.
pub const SESSIONS_MAX: usize = 16;
/// Runs of the store that are listed.
const RUNS_MAX: usize = 200;
/// Where there is no served drive.
const NO_DRIVE: &str = "no drive is watched here; start `warp serve --studio ADDRESS`";
/// Orders that are laid out at the same time. The server has more workers, so that it answers while those build.
const BUILDING_MAX: usize = 5;
const BUSY: &str = "other sessions are just being built; try again in a moment";
/// How long a session without a page is kept.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// Part of the machine's free memory that sessions may take.
const MEMORY_SHARE: u64 = 2;

/// How to serve.
#[derive(Clone, Debug)]
pub struct StudioOptions {
    /// Where, and for whom.
    pub http: HttpOptions,
    /// Files beside the catalogue that may be run, because whoever starts the server named them.
    pub granted: Vec<PathBuf>,
    /// How long a session without a page is kept.
    pub idle_max: Duration,
    /// Memory that sessions may take together.
    pub memory_bytes: u64,
}

/// Looks at a served drive, which is called so.
pub use crate::drive::ServedDrive;

impl StudioOptions {
    /// The usual ones.
    pub fn new(http: HttpOptions) -> StudioOptions {
        StudioOptions {
            http,
            granted: Vec::new(),
            idle_max: IDLE_MAX,
            memory_bytes: simulate::run::memory_available() / MEMORY_SHARE,
        }
    }
}

/// A running studio.
pub struct Studio {
    server: HttpServer,
    inner: Arc<Inner>,
}

impl Studio {
    /// Starts to serve.
    ///
    /// # Errors
    /// As [`HttpServer::start_app`].
    pub fn start(options: StudioOptions) -> Result<Studio, ServeError> {
        Studio::start_with(options, None)
    }

    /// Starts to serve, with a drive that is served beside: its page is another view.
    ///
    /// # Errors
    /// As [`HttpServer::start_app`].
    pub fn start_with(options: StudioOptions, drive: Option<ServedDrive>) -> Result<Studio, ServeError> {
        assets::prepare();
        let has_token = options.http.token.is_some();
        let drive = drive.map(|drive| Watch::begin(drive, has_token)).transpose()?;
        let inner = Arc::new(Inner {
            memory: MemoryAccount::new(options.memory_bytes),
            slots: Arc::new(Semaphore::new(SESSIONS_MAX)),
            sessions: Mutex::new(Sessions::default()),
            building: Semaphore::new(BUILDING_MAX),
            granted: Mutex::new(options.granted),
            drive,
        });
        let server = HttpServer::start_app("studio", options.http, Arc::clone(&inner) as Arc<dyn App>)?;
        watch_idle(Arc::downgrade(&inner), options.idle_max);
        Ok(Studio { server, inner })
    }

    /// Where it listens.
    pub fn local_address(&self) -> std::net::SocketAddr {
        self.server.local_address()
    }

    /// Has these files be runnable too, because whoever started the server names them now.
    pub fn grant(&self, files: &[PathBuf]) {
        let mut granted = self.inner.granted.lock().expect("nobody panics with it");
        for file in files {
            if !granted.contains(file) {
                granted.push(file.clone());
            }
        }
    }

    /// Begins a session, as a page would; returns its name.
    ///
    /// # Errors
    /// As a page is refused.
    pub fn begin(&self, order: Order) -> Result<String, LabError> {
        self.inner.begin(order).map_err(|refusal| match refusal {
            Refusal::Order(error) => error,
            Refusal::Full => LabError::invalid("sessions", "there are as many as there can be"),
            Refusal::Busy => LabError::invalid("sessions", BUSY),
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

/// Ends sessions that nobody asks for, as long as there is a studio.
fn watch_idle(studio: Weak<Inner>, idle_max: Duration) {
    let every = (idle_max / 8).clamp(Duration::from_millis(20), Duration::from_secs(5));
    let watch = move || {
        while let Some(inner) = studio.upgrade() {
            inner.end_idle(idle_max);
            drop(inner);
            std::thread::sleep(every);
        }
    };
    let started = std::thread::Builder::new().name("studio idle".to_string()).spawn(watch);
    // Without a thread for it sessions are kept until they are ended.
    drop(started);
}

#[derive(Default)]
struct Sessions {
    of: BTreeMap<u64, Arc<Session>>,
    last: u64,
}

impl Sessions {
    /// This name, or with a number where a session has it.
    fn free_name(&self, name: &str) -> String {
        let taken: Vec<String> = self.of.values().map(|session| session.name()).collect();
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let mut names = std::iter::once(name.to_string()).chain(numbered);
        names
            .find(|name| !taken.contains(name))
            .expect("there are fewer sessions than numbers")
    }
}

struct Inner {
    memory: MemoryAccount,
    slots: Arc<Semaphore>,
    sessions: Mutex<Sessions>,
    /// Places for Orders that are being laid out. No lock is held meanwhile: their memory is set aside before it is taken.
    building: Semaphore,
    granted: Mutex<Vec<PathBuf>>,
    /// The served drive that is watched.
    drive: Option<Watch>,
}

/// A served drive: the session that watches it, and what may be done to it.
struct Watch {
    session: Arc<Session>,
    actions: DriveActions,
}

impl Watch {
    fn begin(drive: ServedDrive, are_actions_allowed: bool) -> Result<Watch, ServeError> {
        let actions = DriveActions::new(drive.actions.clone(), are_actions_allowed);
        let session = Session::watch(drive).map_err(|error| ServeError::System {
            action: "watching the drive",
            source: std::io::Error::other(error.to_string()),
        })?;
        Ok(Watch {
            session: Arc::new(session),
            actions,
        })
    }
}

/// Why there is no session.
enum Refusal {
    Order(LabError),
    Full,
    /// Too many orders are being laid out.
    Busy,
}

impl From<LabError> for Refusal {
    fn from(error: LabError) -> Refusal {
        Refusal::Order(error)
    }
}

impl Inner {
    fn sessions(&self) -> std::sync::MutexGuard<'_, Sessions> {
        self.sessions.lock().expect("nobody panics with it")
    }

    fn begin(&self, order: Order) -> Result<String, Refusal> {
        let slot: OwnedSemaphorePermit = Arc::clone(&self.slots).try_acquire_owned().map_err(|_| Refusal::Full)?;
        let _building = self.building.try_acquire().map_err(|_| Refusal::Busy)?;
        let granted = self.granted.lock().expect("nobody panics with it").clone();
        let prepared = Prepared::new(order, &granted)?;
        let (id, name) = {
            let mut sessions = self.sessions();
            sessions.last += 1;
            (sessions.last, sessions.free_name(&prepared.default_name()))
        };
        let session = Session::begin(id, name, prepared, &self.memory, slot)?;
        let name = session.shared.id.clone();
        self.sessions().of.insert(id, Arc::new(session));
        Ok(name)
    }

    fn session(&self, name: &str) -> Option<Arc<Session>> {
        let id: u64 = name.strip_prefix('s')?.parse().ok()?;
        let session = self.sessions().of.get(&id).cloned()?;
        (session.shared.id == name).then_some(session)
    }

    fn end(&self, name: &str) -> bool {
        let Some(session) = self.session(name) else {
            return false;
        };
        self.sessions().of.retain(|_, other| !Arc::ptr_eq(other, &session));
        session.end();
        true
    }

    fn end_idle(&self, idle_max: Duration) {
        let sessions: Vec<Arc<Session>> = self.sessions().of.values().cloned().collect();
        for session in sessions
            .iter()
            .filter(|session| session.idle() > idle_max || session.shared.is_over())
        {
            self.end(&session.shared.id);
        }
    }

    fn answer_api(&self, question: &Question) -> Answer {
        let parts: Vec<&str> = question.path.trim_start_matches('/').split('/').collect();
        match parts[..] {
            ["api", "about"] => self.get(question, || Ok(json(self.about()))),
            ["api", "catalogue"] => self.get(question, || Ok(json(catalogue::all()?))),
            ["api", "options"] => self.get(question, || Ok(json(catalogue::options()))),
            ["api", "runs"] => self.get(question, || Ok(json(runs()?))),
            ["api", "compare", one, other] => self.get(question, || Ok(json(compare(&Store::of_user()?, one, other)?))),
            ["api", "text", kind, name] => self.get(question, || Ok(text(kind, name))),
            ["api", "check"] => self.post(question, check),
            ["api", "sessions"] if question.method == AppMethod::Post => {
                self.post(question, |body| self.post_session(body))
            }
            ["api", "sessions"] => self.get(question, || Ok(json(self.list()))),
            ["api", "sessions", name] if question.method == AppMethod::Delete => {
                if self.end(name) {
                    Answer::new(204, "application/json", "")
                } else {
                    no_session(name)
                }
            }
            ["api", "sessions", name, "name"] => self.post(question, |body| self.rename(name, body)),
            ["api", "sessions", name, "order"] => self.get(question, || {
                let session = self.session(name);
                Ok(session.map_or_else(|| no_session(name), |session| json(json!(session.order()))))
            }),
            ["api", "sessions", name, "export", file] => self.get(question, || Ok(self.export(name, file))),
            ["api", "drive", ref action @ ..] => match (&self.drive, action) {
                (None, _) => error(404, NO_DRIVE),
                (Some(drive), []) => self.get(question, || Ok(json(drive_json(&drive.session)))),
                (Some(drive), action) => drive.actions.answer(&action.join("/"), &drive.session, question),
            },
            _ => error(404, "there is nothing here; the page is at /"),
        }
    }

    fn about(&self) -> Value {
        let are_actions_allowed = self.drive.as_ref().is_some_and(|drive| drive.actions.are_allowed);
        json!({ "version": env!("CARGO_PKG_VERSION"), "drive": self.drive.is_some(), "actions": are_actions_allowed })
    }

    fn get(&self, question: &Question, answer: impl FnOnce() -> Result<Answer, LabError>) -> Answer {
        if question.method != AppMethod::Get {
            return error(405, "this is only asked for (GET)");
        }
        answer().unwrap_or_else(|problem| error(status_of(&problem), problem.to_string()))
    }

    fn post(&self, question: &Question, answer: impl FnOnce(&[u8]) -> Result<Answer, LabError>) -> Answer {
        if question.method != AppMethod::Post {
            return error(405, "this is only sent to (POST)");
        }
        answer(&question.body).unwrap_or_else(|problem| error(status_of(&problem), problem.to_string()))
    }

    fn post_session(&self, body: &[u8]) -> Result<Answer, LabError> {
        match self.begin(Order::parse(body)?) {
            Ok(id) => {
                let mut answer = json(json!({ "id": id }));
                answer.status = 201;
                Ok(answer)
            }
            Err(Refusal::Order(error)) => Err(error),
            Err(Refusal::Full) => Ok(error(
                429,
                format!("there are {SESSIONS_MAX} sessions already; end one of them first"),
            )),
            Err(Refusal::Busy) => Ok(error(503, BUSY)),
        }
    }

    fn rename(&self, name: &str, body: &[u8]) -> Result<Answer, LabError> {
        let Some(session) = self.session(name) else {
            return Ok(no_session(name));
        };
        let given: GivenName =
            serde_json::from_slice(body).map_err(|error| LabError::invalid("name", error.to_string()))?;
        session.rename(&given.name)?;
        Ok(Answer::new(204, "application/json", ""))
    }

    fn list(&self) -> Value {
        let sessions: Vec<Arc<Session>> = self.sessions().of.values().cloned().collect();
        let entry = |session: &Arc<Session>| {
            let (phase, lanes) = session.phase();
            json!({
                "id": session.shared.id, "name": session.name(), "title": session.title, "phase": phase, "lanes": lanes,
                "begun_unix_ms": session.begun_unix_ms,
            })
        };
        sessions.iter().map(entry).collect()
    }

    fn export(&self, name: &str, file: &str) -> Answer {
        let Some(session) = self.session(name) else {
            return no_session(name);
        };
        let Some(form) = Form::of(file) else {
            let names = Form::ALL.map(Form::file_name).join(", ");
            return error(404, format!("there is no export of this name; there are {names}"));
        };
        let material = match session.material() {
            Ok(material) => material,
            Err(problem) => return error(503, problem),
        };
        match material.write(form) {
            Ok(bytes) => {
                let mut answer = Answer::new(200, form.content_type(), bytes);
                answer.file_name = Some(form.file_name().to_string());
                answer
            }
            Err(problem) => error(409, problem.to_string()),
        }
    }
}

impl App for Inner {
    fn at_once(&self, question: &Question) -> Option<Answer> {
        if !is_api(&question.path) {
            let found =
                (question.method == AppMethod::Get).then(|| assets::answer(&question.path, question.takes_gzip));
            return Some(
                found
                    .flatten()
                    .unwrap_or_else(|| error(404, "there is nothing here; the page is at /")),
            );
        }
        None
    }

    fn answer(&self, question: &Question) -> Answer {
        self.answer_api(question)
    }

    fn converse(&self, path: &str) -> Result<Box<dyn Conversation>, Answer> {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match parts[..] {
            ["api", "sessions", name, "live"] => match self.session(name) {
                Some(session) => Ok(Box::new(Page::new(session))),
                None => Err(no_session(name)),
            },
            ["api", "drive", "live"] => match &self.drive {
                Some(drive) => Ok(Box::new(Page::new(Arc::clone(&drive.session)))),
                None => Err(error(404, NO_DRIVE)),
            },
            _ => Err(error(404, "nobody talks here; a session does at /api/sessions/ID/live")),
        }
    }

    fn is_public(&self, path: &str) -> bool {
        !is_api(path)
    }

    fn refusal(&self, status: u16, problem: &str) -> Answer {
        error(status, problem)
    }
}

fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// What the served drive is, as its page is told.
fn drive_json(drive: &Session) -> Value {
    let session = drive.shared.with(|state| Arc::clone(&state.session));
    serde_json::from_str(&session).unwrap_or(Value::Null)
}

/// The status of a problem: of a name that there is not, and of everything else that a page can say better.
fn status_of(problem: &LabError) -> u16 {
    match problem {
        LabError::Unknown { .. } => 404,
        LabError::Output { .. } => 500,
        _ => 400,
    }
}

fn no_session(name: &str) -> Answer {
    let name: String = name.chars().take(20).collect();
    error(
        404,
        format!("there is no session {name}; it may have ended, begin another one"),
    )
}

fn runs() -> Result<Value, LabError> {
    let kept = Store::of_user()?.runs(RUNS_MAX)?;
    Ok(kept.runs.iter().map(KeptRun::row_json).collect())
}

/// Two runs of the store, cell by cell.
fn compare(store: &Store, one: &str, other: &str) -> Result<Value, LabError> {
    let side = |id: &str| Side::of_run(&store.find(id)?);
    Ok(analysis::compare::compare(side(one)?, side(other)?)?.to_json())
}

fn text(kind: &str, name: &str) -> Answer {
    match catalogue::text(kind, name) {
        Some(Ok(text)) => Answer::new(200, "text/plain; charset=utf-8", text),
        Some(Err(problem)) => error(status_of(&problem), problem.to_string()),
        None => error(404, "there are texts of jobs, workloads, devices and experiments"),
    }
}

/// What a session is to be called.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenName {
    name: String,
}

/// A text that is to be checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToCheck {
    name: String,
    text: String,
    /// What it is to be: a workload, if it is not said.
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

fn check(body: &[u8]) -> Result<Answer, LabError> {
    let to_check: ToCheck =
        serde_json::from_slice(body).map_err(|error| LabError::invalid("check", error.to_string()))?;
    let problems = match to_check.kind {
        TextKind::Workload => texts::problems(&to_check.name, &to_check.text),
        TextKind::Faults => texts::problems_of_faults(&to_check.text),
    };
    Ok(json(json!({ "problems": problems })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::store::Origin;

    #[test]
    fn kept_experiments_are_compared_cell_by_cell() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(folder.path()).expect("it is made");
        let keep = |cells: &[(&str, f64)]| {
            let cells = cells
                .iter()
                .map(|(variant, waf)| json!({ "device": "ssd_a", "variant": variant, "waf": waf }));
            let origin = Origin {
                target: "three_stream",
                title: "three streams",
                seconds: 1.0,
                cells: Vec::new(),
            };
            let result = json!({ "cells": cells.collect::<Vec<Value>>() });
            store.keep(&origin, &result).expect("it is kept")
        };
        let one = keep(&[("FDP", 1.5), ("Mixed", 2.0), ("NoFDP", 3.0)]);
        let other = keep(&[("NoFDP", 2.5), ("FDP", 1.5)]);
        let comparison = compare(&store, &one, &other).expect("they have cells in common");
        let rows = comparison["rows"].as_array().expect("rows").iter();
        let rows: Vec<[Value; 4]> = rows
            .map(|row| ["cell", "metric", "difference", "verdict"].map(|key| row[key].clone()))
            .collect();
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
