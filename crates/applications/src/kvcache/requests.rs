//! Request sources of a worker: prompts as lists of chunks.
//!
//! A chunk's key stands for all tokens up to its end, like the hashes of LMCache, vLLM and
//! Mooncake. Equal keys mean equal prefixes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::trace::{MooncakeSettings, MooncakeTrace, Prompt};
use super::{ChunkClass, SECOND_NS, SlotLayout};
use crate::distribution::RankDistribution;
use workload::fio::power;
use workload::random::below;
use workload::{WorkloadError, WorkloadTarget, within};

/// Request source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PromptSettings {
    /// Single chunks by popularity, as fast as the drive accepts them. This is a replay of objects
    /// without prompts.
    Popular(PopularChunks),
    /// Conversations with prompts that grow from turn to turn.
    Conversation(SessionSettings),
    /// Agents with many steps in a short time, long shared prompts, and returns to earlier steps.
    Agent(SessionSettings),
    /// A trace of requests in Mooncake's format.
    Mooncake(MooncakeSettings),
}

impl Default for PromptSettings {
    fn default() -> PromptSettings {
        PromptSettings::Popular(PopularChunks::default())
    }
}

/// Chunks by popularity. Each request draws one, independent of earlier requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PopularChunks {
    /// Number of distinct chunks, percent of a worker's slots. Default 200.
    pub catalogue_percent: f64,
    /// Exponent of the Zipf popularity. 0 makes all chunks equal. Default 0.9.
    pub zipf_exponent: f64,
    /// Bytes requested (read or written) per second. Workers get the drive in proportion to their
    /// rates. Default 1 GB.
    #[serde(with = "base::size")]
    pub bytes_per_second: u64,
}

impl Default for PopularChunks {
    fn default() -> PopularChunks {
        PopularChunks { catalogue_percent: 200.0, zipf_exponent: 0.9, bytes_per_second: 1_000_000_000 }
    }
}

/// Conversations or tasks of agents. Omitted settings have the default of a conversation or an
/// agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionSettings {
    /// Number of concurrent sessions. Default 1000, or 100 for agents.
    pub sessions: Option<u32>,
    /// Average number of turns of a session. Default 6, or 40 for agents.
    pub turns: Option<f64>,
    /// Average number of chunks that a turn adds. Default 2, or 1 for agents.
    pub turn_chunks: Option<f64>,
    /// Average time between turns, seconds. Default 60, or 5 for agents.
    pub think_seconds: Option<f64>,
    /// Number of distinct initial prompts of sessions. The first are the most popular. Default 20,
    /// or 5 for agents.
    pub system_prompts: Option<u32>,
    /// Chunks of an initial prompt. Default 2, or 16 for agents.
    pub system_chunks: Option<u32>,
    /// Turns that continue from the end of an earlier turn of the session, percent. Default 2, or
    /// 15 for agents.
    pub branch_percent: Option<f64>,
    /// Maximum number of chunks of a session. Default 500.
    pub context_chunks: Option<u32>,
}

impl PromptSettings {
    pub(super) fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        match self {
            PromptSettings::Mooncake(trace) => trace.files.iter_mut().collect(),
            _ => Vec::new(),
        }
    }

    /// Maximum memory of the requests of a worker, bytes. One slot stands for `merged` slots.
    pub(super) fn memory_bytes(&self, merged: u64) -> u64 {
        let habits = match self {
            PromptSettings::Popular(_) => return 0,
            // Memory of the current prompt, which is a line of its file.
            PromptSettings::Mooncake(_) => return 8 << 20,
            PromptSettings::Conversation(sessions) => SessionModel::resolve(sessions, &CONVERSATION),
            PromptSettings::Agent(sessions) => SessionModel::resolve(sessions, &AGENT),
        };
        let sessions = (u64::from(habits.sessions) / merged).max(1);
        // A turn ends at least one chunk. Vectors may have twice the capacity that they use.
        let chunks = u64::from(habits.context_chunks.max(habits.system_chunks));
        let session_bytes = size_of::<PromptSession>() as u64 + 32 + 2 * chunks * (8 + 4);
        sessions * session_bytes
    }

    pub(super) fn check(&self, place: &str) -> Result<(), WorkloadError> {
        let named = |name: &str| format!("{place}.{name}");
        match self {
            PromptSettings::Popular(popular) => {
                within(&named("catalogue_percent"), popular.catalogue_percent, 1.0..=1e6)?;
                within(&named("zipf_exponent"), popular.zipf_exponent, 0.0..=10.0)?;
                within(&named("bytes_per_second"), popular.bytes_per_second, 1..=1 << 50)
            }
            PromptSettings::Conversation(sessions) => SessionModel::resolve(sessions, &CONVERSATION).check(place),
            PromptSettings::Agent(sessions) => SessionModel::resolve(sessions, &AGENT).check(place),
            PromptSettings::Mooncake(trace) => trace.check(place),
        }
    }
}

/// [`Sessions`] with all defaults filled in.
#[derive(Debug, Clone, Copy)]
struct SessionModel {
    sessions: u32,
    turns: f64,
    turn_chunks: f64,
    think_seconds: f64,
    system_prompts: u32,
    system_chunks: u32,
    branch_percent: f64,
    context_chunks: u32,
}

const CONVERSATION: SessionModel = SessionModel {
    sessions: 1000,
    turns: 6.0,
    turn_chunks: 2.0,
    think_seconds: 60.0,
    system_prompts: 20,
    system_chunks: 2,
    branch_percent: 2.0,
    context_chunks: 500,
};

const AGENT: SessionModel = SessionModel {
    sessions: 100,
    turns: 40.0,
    turn_chunks: 1.0,
    think_seconds: 5.0,
    system_prompts: 5,
    system_chunks: 16,
    branch_percent: 15.0,
    context_chunks: 500,
};

impl SessionModel {
    fn resolve(said: &SessionSettings, usual: &SessionModel) -> SessionModel {
        SessionModel {
            sessions: said.sessions.unwrap_or(usual.sessions),
            turns: said.turns.unwrap_or(usual.turns),
            turn_chunks: said.turn_chunks.unwrap_or(usual.turn_chunks),
            think_seconds: said.think_seconds.unwrap_or(usual.think_seconds),
            system_prompts: said.system_prompts.unwrap_or(usual.system_prompts),
            system_chunks: said.system_chunks.unwrap_or(usual.system_chunks),
            branch_percent: said.branch_percent.unwrap_or(usual.branch_percent),
            context_chunks: said.context_chunks.unwrap_or(usual.context_chunks),
        }
    }

    fn check(&self, place: &str) -> Result<(), WorkloadError> {
        let named = |name: &str| format!("{place}.{name}");
        within(&named("sessions"), self.sessions, 1..=10_000_000)?;
        within(&named("turns"), self.turns, 1.0..=1e6)?;
        within(&named("turn_chunks"), self.turn_chunks, 0.01..=1e4)?;
        within(&named("think_seconds"), self.think_seconds, 1e-6..=1e7)?;
        within(&named("system_prompts"), self.system_prompts, 1..=1_000_000)?;
        within(&named("system_chunks"), self.system_chunks, 0..=10_000)?;
        within(&named("branch_percent"), self.branch_percent, 0.0..=100.0)?;
        let least = self.system_chunks + 1;
        within(&named("context_chunks"), self.context_chunks, least..=100_000)
    }
}

pub(super) enum PromptGenerator {
    Popular(ChunkGenerator),
    Sessions(Box<SessionPool>),
    Trace(Box<MooncakeTrace>),
}

impl PromptGenerator {
    /// Creates the requests of a worker of a class with this place.
    pub(super) fn new(
        class: &ChunkClass,
        place: &SlotLayout,
        target: &WorkloadTarget,
        seed: u64,
    ) -> Result<PromptGenerator, WorkloadError> {
        let merged = place.merged;
        let sessions = |settings: &SessionSettings, usual: &SessionModel| {
            let habits = SessionModel::resolve(settings, usual);
            PromptGenerator::Sessions(Box::new(SessionPool::new(habits, merged, seed)))
        };
        Ok(match &class.requests {
            PromptSettings::Popular(popular) => {
                PromptGenerator::Popular(ChunkGenerator::new(popular, class.chunk_bytes, place.slots, merged, seed))
            }
            PromptSettings::Conversation(settings) => sessions(settings, &CONVERSATION),
            PromptSettings::Agent(settings) => sessions(settings, &AGENT),
            PromptSettings::Mooncake(trace) => {
                PromptGenerator::Trace(Box::new(MooncakeTrace::new(trace, merged, target.endless)?))
            }
        })
    }

    /// Produces the next request. Returns false at the end.
    pub(super) fn next(&mut self, prompt: &mut Prompt) -> Result<bool, WorkloadError> {
        prompt.chunks.clear();
        match self {
            PromptGenerator::Popular(popular) => popular.next(prompt),
            PromptGenerator::Sessions(sessions) => sessions.next(prompt),
            PromptGenerator::Trace(trace) => return trace.next(prompt),
        }
        Ok(true)
    }
}

/// Draws single chunks.
pub(super) struct ChunkGenerator {
    random: Xoshiro256PlusPlus,
    popularity: RankDistribution,
    chunk_ns: u64,
    requests: u64,
}

impl ChunkGenerator {
    fn new(settings: &PopularChunks, chunk_bytes: u64, slots: u32, merged: u64, seed: u64) -> ChunkGenerator {
        let chunks = (f64::from(slots) * settings.catalogue_percent / 100.0).max(1.0) as u64;
        let seconds = chunk_bytes as f64 * merged as f64 / settings.bytes_per_second as f64;
        ChunkGenerator {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            popularity: RankDistribution::new(chunks, merged, settings.zipf_exponent),
            chunk_ns: ((seconds * SECOND_NS) as u64).max(1),
            requests: 0,
        }
    }

    fn next(&mut self, prompt: &mut Prompt) {
        // Due as soon as the previous request is answered.
        prompt.at_ns = 0;
        prompt.chunk_ns = self.chunk_ns;
        prompt.session = self.requests;
        prompt.chunks.push(self.popularity.draw(&mut self.random));
        self.requests += 1;
    }
}

#[derive(Debug, Default)]
struct PromptSession {
    number: u64,
    chunks: Vec<u64>,
    /// Ends of the session's turns, in chunks.
    ends: Vec<u32>,
    /// Number of remaining turns.
    turns_left: u32,
}

/// A constant number of concurrent conversations. A new one replaces each that ends.
pub(super) struct SessionPool {
    random: Xoshiro256PlusPlus,
    habits: SessionModel,
    prompts: RankDistribution,
    sessions: Vec<PromptSession>,
    /// Time of the next turn of each session.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    begun: u64,
    /// Number of new chunks so far, and key of the next one.
    chunks: u64,
}

/// First key of shared prompts.
const SHARED_KEYS: u64 = 1 << 63;
/// Zipf exponent of shared prompts. A few begin most sessions.
const PROMPT_EXPONENT: f64 = 1.0;

impl SessionPool {
    fn new(habits: SessionModel, merged: u64, seed: u64) -> SessionPool {
        let count = (u64::from(habits.sessions) / merged).max(1) as u32;
        let prompts = (u64::from(habits.system_prompts) / merged).max(1);
        let mut pool = SessionPool {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            habits,
            prompts: RankDistribution::new(prompts, 1, PROMPT_EXPONENT),
            sessions: (0..count).map(|_| PromptSession::default()).collect(),
            due: BinaryHeap::new(),
            begun: 0,
            chunks: 0,
        };
        for slot in 0..count {
            let at_ns = pool.pause_ns();
            pool.due.push(Reverse((at_ns, slot)));
        }
        pool
    }

    /// Draws a number in (0, 1].
    fn draw(&mut self) -> f64 {
        ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn pause_ns(&mut self) -> u64 {
        (-power::ln(self.draw()) * self.habits.think_seconds * SECOND_NS) as u64
    }

    /// Draws a whole number of at least one with this mean (geometric distribution).
    fn at_least_one(&mut self, mean: f64) -> u32 {
        if mean <= 1.0 {
            return 1;
        }
        let drawn = power::ln(self.draw()) / power::ln(1.0 - 1.0 / mean);
        1 + drawn.min(1e6) as u32
    }

    fn begin(&mut self, slot: u32) {
        let prompt = self.prompts.draw(&mut self.random);
        let turns_left = self.at_least_one(self.habits.turns);
        let shared = (0..u64::from(self.habits.system_chunks)).map(|chunk| SHARED_KEYS | prompt << 32 | chunk);
        let session = &mut self.sessions[slot as usize];
        session.number = self.begun;
        session.turns_left = turns_left;
        session.chunks.clear();
        session.chunks.extend(shared);
        session.ends.clear();
        session.ends.push(session.chunks.len() as u32);
        self.begun += 1;
    }

    fn next(&mut self, prompt: &mut Prompt) {
        let Reverse((at_ns, slot)) = self.due.pop().expect("there is always a session");
        if self.sessions[slot as usize].turns_left == 0 {
            self.begin(slot);
        }
        let branches = self.draw() * 100.0 <= self.habits.branch_percent;
        let earlier = below(&mut self.random, self.sessions[slot as usize].ends.len() as u64) as usize;
        // A mean below one means that some turns add no chunk.
        let mean = self.habits.turn_chunks;
        let new = if mean < 1.0 { u32::from(self.draw() <= mean) } else { self.at_least_one(mean) };
        let session = &mut self.sessions[slot as usize];
        if branches {
            session.chunks.truncate(session.ends[earlier] as usize);
            session.ends.truncate(earlier + 1);
        }
        let room = self.habits.context_chunks.saturating_sub(session.chunks.len() as u32);
        let new = u64::from(new.min(room));
        session.chunks.extend(self.chunks..self.chunks + new);
        self.chunks += new;
        session.ends.push(session.chunks.len() as u32);
        session.turns_left = if u64::from(room) == new { 0 } else { session.turns_left - 1 };
        prompt.at_ns = at_ns;
        prompt.chunk_ns = 0;
        prompt.session = session.number;
        prompt.chunks.extend_from_slice(&session.chunks);
        let pause_ns = self.pause_ns();
        self.due.push(Reverse((at_ns.saturating_add(pause_ns.max(1)), slot)));
    }
}
