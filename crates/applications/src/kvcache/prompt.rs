//! Requests for prompts.

/// A request for the chunks of a prompt.
#[derive(Debug, Clone, Default)]
pub(super) struct Prompt {
    /// Arrival time since the start of the workload.
    pub(super) at_ns: u64,
    /// Session of the request.
    pub(super) session: u64,
    pub(super) chunks: Vec<u64>,
    /// Time per chunk until the worker takes the next request. 0 if requests have arrival times.
    pub(super) chunk_ns: u64,
}
