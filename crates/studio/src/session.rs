//! Sessions: each an engine on a thread of its own, and what it shows to pages.
//!
//! ```text
//! Order -> Prepared -> Session (thread: Engine) <- commands <- Page, exports
//!                            \-> State ---------> Page
//! ```
//!
//! A session ends when it is told to, or when nobody has asked for it for a while. What it took is given back when its thread has ended.

use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use experiment::LabError;
use simulate::live::MemoryAccount;
use target::actions::unix_ms;

use crate::command::Command;
use crate::drive::{DriveEngine, ServedDrive};
use crate::engine::Engine;
use crate::export::Material;
use crate::frames::Phase;
use crate::memory::share;
use crate::order::{Order, Prepared, check_name};
use crate::shared::Shared;

/// Commands that wait for an engine.
const COMMANDS_MAX: usize = 64;
/// Time for the material of an export.
const MATERIAL_TIME: Duration = Duration::from_secs(30);

/// Time for a look at a served drive.
const RESET_TIME: Duration = Duration::from_secs(10);

/// See the module.
pub struct Session {
    /// What it shows.
    pub shared: Arc<Shared>,
    /// What it is about.
    pub title: String,
    /// When it was begun, in milliseconds since 1970.
    pub begun_unix_ms: u64,
    commands: SyncSender<Command>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Session {
    /// Begins a session, which has this name unless its Order gives another. `slot` is kept until its thread has ended.
    ///
    /// # Errors
    /// A lane that cannot be, or for which there is no memory.
    pub fn begin<S: Send + 'static>(
        id: u64,
        name: String,
        prepared: Prepared,
        memory: &MemoryAccount,
        slot: S,
    ) -> Result<Session, LabError> {
        let prepared = Arc::new(prepared);
        let lanes = prepared.lanes(|need| share(memory, need))?;
        let shared = Arc::new(Shared::new(format!("s{id}"), prepared.order.clone()));
        shared.with(|state| state.default_name = name);
        let (commands, heard) = sync_channel(COMMANDS_MAX);
        let title = prepared.title().to_string();
        let engine = Engine::new(prepared, lanes, Arc::clone(&shared), memory.clone(), heard)?;
        let work = move || {
            engine.run();
            drop(slot);
        };
        Session::start(shared, title, commands, work)
    }

    /// A session that watches a served drive.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn watch(drive: ServedDrive) -> Result<Session, LabError> {
        let shared = Arc::new(Shared::new("drive".to_string(), Order::default()));
        let (commands, heard) = sync_channel(COMMANDS_MAX);
        let title = drive.name.clone();
        let engine = DriveEngine::new(drive, Arc::clone(&shared), heard);
        Session::start(shared, title, commands, move || engine.run())
    }

    fn start(
        shared: Arc<Shared>,
        title: String,
        commands: SyncSender<Command>,
        engine: impl FnOnce() + Send + 'static,
    ) -> Result<Session, LabError> {
        let of_thread = Arc::clone(&shared);
        let work = move || {
            let ended = std::panic::catch_unwind(AssertUnwindSafe(engine));
            if ended.is_err() {
                // Whoever looks is told; the sentence of the assert is on standard error.
                of_thread.with(|state| state.phase = Phase::Failed);
            }
            of_thread.end();
            of_thread.changed();
        };
        let thread = std::thread::Builder::new()
            .name(format!("studio {}", shared.id))
            .spawn(work);
        let thread =
            thread.map_err(|error| LabError::invalid("session", format!("has no thread: {error}; end another one")))?;
        Ok(Session {
            shared,
            title,
            begun_unix_ms: unix_ms(SystemTime::now()),
            commands,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// What it is doing, and how many lanes it has.
    pub fn phase(&self) -> (Phase, usize) {
        self.shared.with(|state| (state.phase, state.lanes.len()))
    }

    /// What it is called.
    pub fn name(&self) -> String {
        self.shared.with(|state| state.name().to_string())
    }

    /// Calls it otherwise, and has pages told.
    ///
    /// # Errors
    /// It is no name: one sentence.
    pub fn rename(&self, name: &str) -> Result<(), LabError> {
        check_name("name", name)?;
        self.shared.with(|state| state.order.name = Some(name.to_string()));
        // One that is busy tells it with what it does next.
        let _ = self.tell(Command::Renamed);
        Ok(())
    }

    /// The Order that makes it again.
    pub fn order(&self) -> Order {
        self.shared.see();
        self.shared.with(|state| state.order.clone())
    }

    /// Tells the engine something, if it has room for it.
    ///
    /// # Errors
    /// It is busy, or over.
    pub fn tell(&self, command: Command) -> Result<(), &'static str> {
        self.commands.try_send(command).map_err(|error| match error {
            TrySendError::Full(_) => "the session is busy; try again",
            TrySendError::Disconnected(_) => "the session is over; begin another one",
        })
    }

    /// What exports are made of.
    ///
    /// # Errors
    /// It does not answer in time, or is over.
    pub fn material(&self) -> Result<Material, &'static str> {
        self.shared.see();
        let (to, from) = sync_channel(1);
        self.tell(Command::Export(to))?;
        from.recv_timeout(MATERIAL_TIME)
            .map_err(|_| "the session does not answer; try again")
    }

    /// Counts the statistics of a served drive from now on: when that is, in milliseconds since 1970.
    ///
    /// # Errors
    /// It does not answer in time, or is over.
    pub fn reset_statistics(&self) -> Result<u64, &'static str> {
        let (to, from) = sync_channel(1);
        self.tell(Command::ResetStatistics(to))?;
        from.recv_timeout(RESET_TIME)
            .map_err(|_| "the drive is not looked at any more; start the server again")
    }

    /// How long nobody has asked for it.
    pub fn idle(&self) -> Duration {
        if self.shared.is_watched() {
            self.shared.see();
        }
        self.shared.unseen_for()
    }

    /// Ends it; its thread is not waited for.
    pub fn end(&self) {
        if self.tell(Command::Stop).is_err() {
            // It is busy: it ends when it has heard what was said before.
            let commands = self.commands.clone();
            std::thread::spawn(move || commands.send(Command::Stop));
        }
    }

    /// Waits until its thread has ended.
    pub fn join(&self) {
        if let Some(thread) = self.thread.lock().expect("nobody panics with it").take() {
            // It does not panic: what does is caught.
            let _ = thread.join();
        }
    }
}
