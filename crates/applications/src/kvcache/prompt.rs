//! A request for a prompt.

/// A request: the chunks of a prompt.
#[derive(Debug, Clone, Default)]
pub(super) struct Prompt {
    /// When it comes, since the workload began.
    pub(super) at_ns: u64,
    /// Whose it is.
    pub(super) session: u64,
    pub(super) chunks: Vec<u64>,
    /// How long the worker is busy with each of them before it takes the next request; 0 where requests come at times of their own.
    pub(super) chunk_ns: u64,
}
