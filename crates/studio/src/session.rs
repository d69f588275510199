//! Sessions: each has an engine on its own thread, and a state for pages.
//!
//! ```text
//! SessionSpec -> SessionPlan -> StudioSession (thread: SessionEngine) <- EngineCommand <- PageConnection, exports
//!                                   \-> SessionState -----------------------------> PageConnection
//! ```
//!
//! A session ends on request, or after some time without a client. Its memory is released when its
//! thread has ended.

use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use experiment::LabError;
use simulate::live::MemoryAccount;
use target::actions::unix_ms;

use crate::command::EngineCommand;
use crate::drive::{DriveEngine, MonitoredDrive};
use crate::engine::SessionEngine;
use crate::export::ExportData;
use crate::frames::LanePhase;
use crate::lane::reserve;
use crate::session_spec::{SessionPlan, SessionSpec, check_name};
use crate::shared_session::SharedSession;

/// Maximum pending commands of an engine.
const COMMANDS_MAX: usize = 64;
/// Time limit for the data of an export.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit for a reset of the statistics of a served drive.
const RESET_TIMEOUT: Duration = Duration::from_secs(10);

pub struct StudioSession {
    pub shared: Arc<SharedSession>,
    pub title: String,
    /// Start of the session, milliseconds since 1970.
    pub begun_unix_ms: u64,
    commands: SyncSender<EngineCommand>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl StudioSession {
    /// Starts a session with this name, unless its order has a name. `slot` is held until its
    /// thread has ended.
    pub fn begin<S: Send + 'static>(
        id: u64,
        name: String,
        plan: SessionPlan,
        memory: &MemoryAccount,
        slot: S,
    ) -> Result<StudioSession, LabError> {
        let plan = Arc::new(plan);
        let lanes = plan.lanes(|need| reserve(memory, need))?;
        let shared = Arc::new(SharedSession::new(format!("s{id}"), plan.order.clone()));
        shared.with(|state| state.default_name = name);
        let (commands, receiver) = sync_channel(COMMANDS_MAX);
        let title = plan.experiment.title.clone();
        let engine = SessionEngine::new(plan, lanes, Arc::clone(&shared), memory.clone(), receiver)?;
        let work = move || {
            engine.run();
            drop(slot);
        };
        StudioSession::start(shared, title, commands, work)
    }

    pub fn watch(drive: MonitoredDrive) -> Result<StudioSession, LabError> {
        let shared = Arc::new(SharedSession::new("drive".to_string(), SessionSpec::default()));
        let (commands, receiver) = sync_channel(COMMANDS_MAX);
        let title = drive.name.clone();
        let engine = DriveEngine::new(drive, Arc::clone(&shared), receiver);
        StudioSession::start(shared, title, commands, move || engine.run())
    }

    fn start(
        shared: Arc<SharedSession>,
        title: String,
        commands: SyncSender<EngineCommand>,
        engine: impl FnOnce() + Send + 'static,
    ) -> Result<StudioSession, LabError> {
        let shared_by_thread = Arc::clone(&shared);
        let work = move || {
            let ended = std::panic::catch_unwind(AssertUnwindSafe(engine));
            if ended.is_err() {
                // Pages see the failed phase. The message of the panic is on standard error.
                shared_by_thread.with(|state| state.phase = LanePhase::Failed);
            }
            shared_by_thread.end();
            shared_by_thread.changed();
        };
        let thread = std::thread::Builder::new().name(format!("studio {}", shared.id)).spawn(work);
        let thread = thread.map_err(|error| {
            LabError::invalid("session", format!("cannot start a thread ({error}). End another session"))
        })?;
        Ok(StudioSession {
            shared,
            title,
            begun_unix_ms: unix_ms(SystemTime::now()),
            commands,
            thread: Mutex::new(Some(thread)),
        })
    }

    pub fn phase(&self) -> (LanePhase, usize) {
        self.shared.with(|state| (state.phase, state.lanes.len()))
    }

    pub fn name(&self) -> String {
        self.shared.with(|state| state.name().to_string())
    }

    pub fn rename(&self, name: &str) -> Result<(), LabError> {
        check_name("name", name)?;
        self.shared.with(|state| state.order.name = Some(name.to_string()));
        // A busy session sends the name with its next message.
        let _ = self.send(EngineCommand::Renamed);
        Ok(())
    }

    /// Order that reproduces the session.
    pub fn order(&self) -> SessionSpec {
        self.shared.record_request();
        self.shared.with(|state| state.order.clone())
    }

    pub fn send(&self, command: EngineCommand) -> Result<(), &'static str> {
        self.commands.try_send(command).map_err(|error| match error {
            TrySendError::Full(_) => "the session is busy. Try again",
            TrySendError::Disconnected(_) => "the session has ended. Start another one",
        })
    }

    pub fn export_data(&self) -> Result<ExportData, &'static str> {
        self.shared.record_request();
        let (to, from) = sync_channel(1);
        self.send(EngineCommand::Export(to))?;
        from.recv_timeout(EXPORT_TIMEOUT).map_err(|_| "the session does not answer. Try again")
    }

    /// Resets the statistics of a served drive. Returns the time of the reset, milliseconds since
    /// 1970.
    pub fn reset_statistics(&self) -> Result<u64, &'static str> {
        let (to, from) = sync_channel(1);
        self.send(EngineCommand::ResetStatistics(to))?;
        from.recv_timeout(RESET_TIMEOUT).map_err(|_| "the drive is no longer monitored. Restart the server")
    }

    /// Time since the last request of a client.
    pub fn idle(&self) -> Duration {
        if self.shared.is_watched() {
            self.shared.record_request();
        }
        self.shared.idle_time()
    }

    /// Ends the session without a wait for its thread.
    pub fn end(&self) {
        if self.send(EngineCommand::Stop).is_err() {
            // The queue is full. A thread sends the command after the pending ones.
            let commands = self.commands.clone();
            std::thread::spawn(move || commands.send(EngineCommand::Stop));
        }
    }

    pub fn join(&self) {
        if let Some(thread) = self.thread.lock().expect("no thread panics with the lock").take() {
            // The thread catches panics, so its result is always `Ok`.
            let _ = thread.join();
        }
    }
}
