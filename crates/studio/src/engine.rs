//! Engine of a session: a thread that runs its lanes side by side, synchronized by host bytes
//! written.
//!
//! ```text
//! commands -> goals (play, speed, seek) -> step of the lane furthest behind -> repeat
//!                                      \-> 30 times a second: SessionState, and a notification to pages
//! ```
//!
//! Lanes advance in small steps, so that commands and updates have a short delay. Results do not
//! depend on the steps. Units are scanned only while a page is connected. A stop command ends the
//! thread. A failed assertion in the model ends only its own session.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use experiment::LabError;
use serde_json::json;
use simulate::live::{ForkStart, LiveRun, MemoryAccount, MemoryShare};
use toml::Table;

use crate::command::{ByteCount, EngineCommand, PageCommand};
use crate::export::{ExportData, ExportLane};
use crate::frames::LanePhase;
use crate::lane::{Lane, LaneFork, reserve};
use crate::session_spec::{ForkSpec, LANES_MAX, LanePlan, SessionPlan, SessionSpec};
use crate::shared_session::SharedSession;

/// Interval between two updates.
const FRAME_TIME: Duration = Duration::from_millis(33);
/// Maximum wait of an idle session for a command.
const IDLE_WAIT: Duration = Duration::from_millis(500);
/// Maximum requests per step of a lane.
const STEP_REQUESTS: u64 = 8192;
/// Extents per step while a drive is filled.
const STEP_EXTENTS: u64 = 512;
/// Maximum steps to a lane's next write before a fork, which take some seconds.
const FORK_STEPS_MAX: u32 = 16;
/// Divisor of the capacity for the host bytes of a step, with a minimum and a maximum.
const STEPS_A_CAPACITY: u64 = 400;
const STEP_BYTES_MIN: u64 = 4 << 20;
const STEP_BYTES_MAX: u64 = 256 << 20;

pub struct SessionEngine {
    session_plan: Arc<SessionPlan>,
    shared: Arc<SharedSession>,
    memory: MemoryAccount,
    commands: Receiver<EngineCommand>,
    lanes: Vec<Lane>,
    is_running: bool,
    speed: Option<SpeedLimit>,
    /// Page that requested the first collection, until it is found.
    searching_page: Option<u64>,
    published_at: Instant,
    is_changed: bool,
}

struct SpeedLimit {
    bytes_per_second: u64,
    since: Instant,
    from_bytes: u64,
}

impl SpeedLimit {
    /// Host bytes allowed so far.
    fn allowed(&self) -> u64 {
        let written = self.bytes_per_second as f64 * self.since.elapsed().as_secs_f64();
        self.from_bytes.saturating_add(written as u64)
    }
}

impl SessionEngine {
    pub fn new(
        session_plan: Arc<SessionPlan>,
        lanes: Vec<(LanePlan, MemoryShare)>,
        shared: Arc<SharedSession>,
        memory: MemoryAccount,
        commands: Receiver<EngineCommand>,
    ) -> Result<SessionEngine, LabError> {
        let mut engine = SessionEngine {
            session_plan,
            shared,
            memory,
            commands,
            lanes: Vec::new(),
            is_running: false,
            speed: None,
            searching_page: None,
            published_at: Instant::now(),
            is_changed: false,
        };
        for (plan, share) in lanes {
            let mut lane = Lane::new(plan, None, share);
            lane.set_run(LiveRun::begin(Arc::clone(&lane.plan.plan), &engine.memory)?);
            engine.lanes.push(lane);
        }
        for fork in engine.session_plan.order.forks.clone() {
            engine.add_fork(fork.of, &fork.name, &fork.set, fork.at_host_bytes)?;
        }
        engine.lanes_changed();
        // The first page receives the complete state.
        engine.publish_updates(true);
        Ok(engine)
    }

    pub fn run(mut self) {
        while self.receive_commands().is_continue() {
            self.start_due_forks();
            self.advance_one();
            if self.is_changed && self.published_at.elapsed() >= FRAME_TIME {
                self.publish_updates(self.shared.is_watched());
            }
        }
    }

    /// Executes pending commands, and waits for one if the engine is idle. Breaks at the end.
    fn receive_commands(&mut self) -> ControlFlow<()> {
        let mut wait = self.wait();
        loop {
            let command = match wait {
                Some(time) => match self.commands.recv_timeout(time) {
                    Ok(command) => command,
                    Err(RecvTimeoutError::Timeout) => return ControlFlow::Continue(()),
                    Err(RecvTimeoutError::Disconnected) => return ControlFlow::Break(()),
                },
                None => match self.commands.try_recv() {
                    Ok(command) => command,
                    Err(TryRecvError::Empty) => return ControlFlow::Continue(()),
                    Err(TryRecvError::Disconnected) => return ControlFlow::Break(()),
                },
            };
            match command {
                EngineCommand::Stop => return ControlFlow::Break(()),
                EngineCommand::Show => self.is_changed = true,
                EngineCommand::Renamed => self.lanes_changed(),
                EngineCommand::Export(to) => {
                    // The receiver may be gone.
                    let _ = to.try_send(self.export_data());
                }
                EngineCommand::Page(page, command) => self.execute_command(page, command),
                // Simulated runs have no reset. The channel closes without an answer.
                EngineCommand::ResetStatistics(_) => {}
            }
            wait = None;
        }
    }

    /// Time to wait for a command, `None` if a lane can advance.
    fn wait(&self) -> Option<Duration> {
        if self.next().is_some() {
            return None;
        }
        if self.is_changed {
            return Some(FRAME_TIME.saturating_sub(self.published_at.elapsed()));
        }
        let waits_for_time = self.is_running && self.speed.is_some() && self.lanes.iter().any(|lane| !lane.is_over());
        Some(if waits_for_time { FRAME_TIME / 4 } else { IDLE_WAIT })
    }

    fn execute_command(&mut self, page: u64, command: PageCommand) {
        self.is_changed = true;
        self.stop_search();
        let mut outcome = Ok(());
        match command {
            PageCommand::Play {} => {
                self.is_running = self.lanes.iter().any(|lane| !lane.is_over());
                self.restart_speed_limit();
            }
            PageCommand::Pause {} => self.is_running = false,
            PageCommand::Speed { host_bytes_per_second } => {
                let from_bytes = self.front();
                self.speed = host_bytes_per_second.map(|ByteCount(bytes)| SpeedLimit {
                    bytes_per_second: bytes.max(1),
                    since: Instant::now(),
                    from_bytes,
                });
            }
            PageCommand::Step { requests } => {
                self.is_running = false;
                for lane in self.lanes.iter_mut().filter(|lane| !lane.is_over()) {
                    lane.advance(u64::MAX, requests.clamp(1, STEP_REQUESTS));
                }
            }
            PageCommand::Seek { host_bytes } => return self.seek(host_bytes.0),
            PageCommand::FirstCollection {} => {
                self.is_running = false;
                self.searching_page = Some(page);
                self.look_for_collection();
            }
            PageCommand::Fork { lane, name, set } => outcome = self.fork(lane, &name, &set),
            PageCommand::Drop { lane } => outcome = self.drop_lane(lane),
        }
        self.lanes_changed();
        if let Err(error) = outcome {
            self.shared.refuse(page, error.to_string());
        }
    }

    /// Maximum host bytes of any lane.
    fn front(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.position().host_bytes).max().unwrap_or(0)
    }

    /// Restarts the speed limit, so that the run does not catch up after a pause.
    fn restart_speed_limit(&mut self) {
        let from_bytes = self.front();
        if let Some(speed) = &mut self.speed {
            speed.since = Instant::now();
            speed.from_bytes = from_bytes;
        }
    }

    fn seek(&mut self, host_bytes: u64) {
        for index in 0..self.lanes.len() {
            let branch = self.lanes[index].branch;
            // A drive forked during its run cannot go back before the fork. It must be forked
            // again.
            let is_before = branch.is_some_and(|branch| host_bytes < branch.at_host_bytes);
            let is_here = branch.and_then(|branch| branch.forked) == Some(ForkStart::Here);
            if is_before && is_here {
                self.lanes[index].wait();
            } else {
                self.lanes[index].seek(host_bytes);
            }
        }
        self.restart_speed_limit();
    }

    /// Stops the lanes at their positions if they search for the first collection.
    fn stop_search(&mut self) {
        if self.searching_page.take().is_some() {
            self.lanes.iter_mut().for_each(|lane| lane.goal = None);
        }
    }

    /// Advances the lanes to the first collection of any lane. Once it is known, all lanes go
    /// there.
    fn look_for_collection(&mut self) {
        let Some(page) = self.searching_page else { return };
        let first = self.lanes.iter().filter_map(|lane| lane.first_collection).min();
        let end = first.unwrap_or(u64::MAX);
        let is_behind = |lane: &Lane| !lane.waits() && !lane.is_over() && lane.position().host_bytes < end;
        if self.lanes.iter().any(is_behind) {
            // A lane that is behind may collect earlier.
            for lane in &mut self.lanes {
                lane.goal = is_behind(lane).then_some(end);
            }
            return;
        }
        self.stop_search();
        match first {
            // The first write after the collection.
            Some(first) => self.seek(first + 1),
            None => self.shared.refuse(
                page,
                "the run ends without a garbage collection. Let it write more (full drive writes), or fill the drive before the run",
            ),
        }
    }

    /// Next lane to advance and its goal. The lane furthest behind is next.
    fn next(&self) -> Option<(usize, u64)> {
        let of_session = match (self.is_running, &self.speed) {
            (false, _) => 0,
            (true, None) => u64::MAX,
            (true, Some(speed)) => speed.allowed(),
        };
        let can_advance = |lane: &&(usize, &Lane)| {
            let (_, lane) = lane;
            let goal = lane.goal.unwrap_or(of_session);
            let fills = lane.is_filling() && (self.is_running || lane.goal.is_some());
            !lane.waits() && !lane.is_over() && (fills || lane.position().host_bytes < goal)
        };
        let lanes: Vec<(usize, &Lane)> = self.lanes.iter().enumerate().collect();
        let order = |lane: &Lane| {
            let position = lane.position();
            let filled = if lane.is_filling() { position.filled_bytes } else { u64::MAX };
            (position.host_bytes, filled)
        };
        let going = lanes.iter().filter(can_advance);
        let (index, lane) = going.min_by_key(|(_, lane)| order(lane))?;
        let host_bytes = lane.position().host_bytes;
        let goal = lane.goal.unwrap_or(of_session);
        let step = (lane.plan.plan.layout().capacity_bytes() / STEPS_A_CAPACITY).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
        let branches = self.lanes.iter().filter(|lane| lane.waits()).filter_map(|lane| lane.branch);
        let next_branch = branches.filter(|branch| branch.of == *index && branch.at_host_bytes > host_bytes);
        let next_branch = next_branch.map(|branch| branch.at_host_bytes).min().unwrap_or(u64::MAX);
        Some((*index, goal.min(host_bytes.saturating_add(step)).min(next_branch)))
    }

    fn advance_one(&mut self) {
        let Some((index, host_bytes)) = self.next() else {
            return;
        };
        let lane = &mut self.lanes[index];
        let was_over = lane.is_over();
        lane.advance(host_bytes, if lane.is_filling() { STEP_EXTENTS } else { STEP_REQUESTS });
        self.is_changed = true;
        if !was_over && lane.is_over() {
            lane.reword_failure(|sentence| self.session_plan.as_ordered(sentence));
            self.is_running &= !self.lanes.iter().all(Lane::is_over);
            self.lanes_changed();
        }
        self.look_for_collection();
    }

    /// Starts waiting forks whose parent has reached their position.
    fn start_due_forks(&mut self) {
        for index in 0..self.lanes.len() {
            let Some(branch) = self.lanes[index].branch.filter(|_| self.lanes[index].waits()) else {
                continue;
            };
            let parent = &self.lanes[branch.of];
            let has_reached = parent.position().host_bytes >= branch.at_host_bytes && !parent.is_filling();
            if self.lanes[index].failure().is_some() || parent.waits() || !(has_reached || parent.is_over()) {
                continue;
            }
            self.start_fork(index, branch);
            self.lanes_changed();
        }
    }

    fn start_fork(&mut self, index: usize, branch: LaneFork) {
        let parent = self.lanes[branch.of].run().expect("the caller checked that the parent has a run");
        let goal = self.lanes[branch.of].goal;
        let lane = &self.lanes[index];
        match parent.fork(Arc::clone(&lane.plan.plan), &self.memory) {
            Ok((run, forked)) => {
                let lane = &mut self.lanes[index];
                lane.branch = Some(LaneFork { forked: Some(forked), ..branch });
                lane.set_run(run);
                lane.goal = match forked {
                    ForkStart::Here => goal,
                    // The run starts at the beginning and must first reach the position of the
                    // fork.
                    ForkStart::FromStart => Some(goal.unwrap_or(0).max(branch.at_host_bytes)),
                };
            }
            Err(error) => self.lanes[index].fail(error.to_string()),
        }
    }

    fn fork(&mut self, of: usize, name: &str, set: &Table) -> Result<(), LabError> {
        let Some(parent) = self.lanes.get_mut(of) else {
            return Err(LabError::invalid("fork", format!("lane {of} does not exist")));
        };
        if parent.waits() || parent.goal.is_some() || parent.failure().is_some() {
            let problem = format!("{} cannot be forked yet. Wait until it pauses or runs", parent.plan.order.name);
            return Err(LabError::invalid("fork", problem));
        }
        // The position must be reproducible. It is the first one with this number of bytes, not a
        // later one before the next write.
        let mut at_host_bytes = parent.position().host_bytes;
        if parent.position().requests > 0 && !parent.is_over() {
            at_host_bytes += 1;
            for _ in 0..FORK_STEPS_MAX {
                parent.advance(at_host_bytes, STEP_REQUESTS);
                if parent.position().host_bytes >= at_host_bytes || parent.is_over() {
                    break;
                }
            }
            if parent.position().host_bytes < at_host_bytes && !parent.is_over() {
                let problem = format!(
                    "{} cannot be forked now, because it writes nothing. Fork it when it writes again",
                    parent.plan.order.name
                );
                return Err(LabError::invalid("fork", problem));
            }
            at_host_bytes = parent.position().host_bytes;
        }
        self.add_fork(of, name, set, at_host_bytes)?;
        self.start_due_forks();
        Ok(())
    }

    fn add_fork(&mut self, of: usize, name: &str, set: &Table, at_host_bytes: u64) -> Result<(), LabError> {
        if self.lanes.len() == LANES_MAX {
            let problem = format!("a session has at most {LANES_MAX} lanes. Drop one first");
            return Err(LabError::invalid("fork", problem));
        }
        if self.lanes.iter().any(|lane| lane.plan.order.name == name) {
            return Err(LabError::invalid("fork", format!("the name {name:?} is taken. Give another name")));
        }
        crate::session_spec::check_set(set)?;
        let mut order = self.lanes[of].plan.order.clone();
        order.name = name.to_string();
        order.set.extend(set.clone());
        let (plan, share) = self.session_plan.lane(&order, |need| reserve(&self.memory, need))?;
        let branch = LaneFork { of, at_host_bytes, forked: None };
        self.lanes.push(Lane::new(plan, Some(branch), share));
        Ok(())
    }

    fn drop_lane(&mut self, index: usize) -> Result<(), LabError> {
        let refuse = |problem: String| Err(LabError::invalid("drop", problem));
        let Some(lane) = self.lanes.get(index) else {
            return refuse(format!("lane {index} does not exist"));
        };
        let branches = |lane: &Lane, of: usize| lane.branch.is_some_and(|branch| branch.of == of);
        if let Some(branch) = self.lanes.iter().find(|lane| branches(lane, index)) {
            return refuse(format!(
                "{} is a fork of {}. Drop the fork first",
                branch.plan.order.name, lane.plan.order.name
            ));
        }
        if self.lanes.len() == 1 {
            return refuse("a session needs one lane. End the session instead".to_string());
        }
        if lane.branch.is_none() && self.lanes.iter().filter(|lane| lane.branch.is_none()).count() == 1 {
            return refuse(format!(
                "{} is the only lane that is not a fork. End the session instead",
                lane.plan.order.name
            ));
        }
        self.lanes.remove(index);
        for branch in self.lanes.iter_mut().filter_map(|lane| lane.branch.as_mut()) {
            branch.of -= usize::from(branch.of > index);
        }
        Ok(())
    }

    fn order(&self) -> SessionSpec {
        let is_lane = |lane: &&Lane| lane.branch.is_none();
        let lanes = self.lanes.iter().filter(is_lane).map(|lane| lane.plan.order.clone());
        let fork = |lane: &Lane| {
            let branch = lane.branch?;
            Some(ForkSpec {
                of: branch.of,
                name: lane.plan.order.name.clone(),
                at_host_bytes: branch.at_host_bytes,
                // Settings of the parent are part of the parent's lane.
                set: lane
                    .plan
                    .order
                    .set
                    .iter()
                    .filter(|(path, value)| self.lanes[branch.of].plan.order.set.get(*path) != Some(*value))
                    .map(|(path, value)| (path.clone(), value.clone()))
                    .collect(),
            })
        };
        SessionSpec {
            name: self.shared.with(|state| state.order.name.clone()),
            lanes: lanes.collect(),
            forks: self.lanes.iter().filter_map(fork).collect(),
            ..self.session_plan.order.clone()
        }
    }

    /// Sends pages the new session message.
    fn lanes_changed(&mut self) {
        self.is_changed = true;
        let lanes: Vec<serde_json::Value> = self.lanes.iter().map(Lane::description).collect();
        let names: Vec<&str> = self.lanes.iter().map(|lane| lane.plan.order.name.as_str()).collect();
        let message = json!({
            "type": "session",
            "id": self.shared.id,
            "name": self.shared.with(|state| state.name().to_string()),
            "title": self.session_plan.experiment.title,
            "lanes": lanes,
            "speed": self.speed.as_ref().map(|speed| speed.bytes_per_second),
            "running": self.is_running,
        });
        let order = self.order();
        self.shared.with(|state| {
            state.session = Arc::from(message.to_string());
            state.version += 1;
            state.order = order;
            state.retain_lanes(&names);
        });
        self.shared.changed();
    }

    /// Publishes updates. Unit records are included if a page is connected.
    fn publish_updates(&mut self, is_watched: bool) {
        self.is_changed = false;
        self.published_at = Instant::now();
        let is_running = self.is_running;
        let published: Vec<_> = self.lanes.iter_mut().map(|lane| lane.publish(is_running, is_watched)).collect();
        let phase = self.phase();
        self.shared.with(|state| {
            state.phase = phase;
            for (index, (lane, published)) in self.lanes.iter().zip(published).enumerate() {
                published.apply(&mut state.lanes, index, &lane.plan.order.name, &lane.series);
            }
        });
        self.shared.changed();
    }

    /// Phase of the session, the phase of its busiest lane.
    fn phase(&self) -> LanePhase {
        let phases: Vec<LanePhase> = self.lanes.iter().map(|lane| lane.phase(self.is_running)).collect();
        let order = [LanePhase::Running, LanePhase::Filling, LanePhase::Paused, LanePhase::Waiting, LanePhase::Failed];
        order.into_iter().find(|phase| phases.contains(phase)).unwrap_or(LanePhase::Ended)
    }

    fn export_data(&self) -> ExportData {
        let lane = |lane: &Lane| {
            let (log, series, activity) = lane.history();
            ExportLane { plan: lane.plan.clone(), branch: lane.branch, result: lane.result(), log, series, activity }
        };
        ExportData {
            prepared: Arc::clone(&self.session_plan),
            order: self.order(),
            lanes: self.lanes.iter().map(lane).collect(),
        }
    }
}
