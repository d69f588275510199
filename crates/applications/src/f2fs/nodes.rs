//! Node blocks: an inode per file, direct nodes for what its own pointers do not reach, indirect nodes above those; and the NAT,
//! which says where each node is. Because of the NAT a node moves without its parents being written.

use super::bitmap::Bitmap;
use super::hints::Log;
use super::layout::NAT_ENTRIES;

/// Pointers to data blocks in an inode: 923, less 50 for inline attributes (`ADDRS_PER_INODE`).
pub const INODE_POINTERS: u32 = 873;
/// Pointers of a direct or indirect node (`ADDRS_PER_BLOCK`, `NIDS_PER_BLOCK`).
pub const NODE_POINTERS: u32 = 1018;
pub const UNWRITTEN: u32 = u32::MAX;

/// All nodes, by their numbers.
#[derive(Debug, Clone)]
pub struct Nodes {
    /// Block of the main area in which a node is.
    address: Vec<u32>,
    log: Vec<Log>,
    free: Bitmap,
    /// Where the search for a free number goes on (`next_scan_nid`).
    next: usize,
    dirty: Bitmap,
    /// Nodes that became dirty; some may have been written or deleted since.
    list: Vec<u32>,
    is_listed: Bitmap,
    moved: Bitmap,
    /// Changed entries of each block of the NAT, and the blocks that have any.
    nat_entries: Vec<u16>,
    nat_blocks: Vec<u32>,
}

impl Nodes {
    /// Room for this many; the first three are not for files.
    pub fn new(count: u32) -> Nodes {
        let count = count as usize;
        let mut free = Bitmap::full(count);
        (0..3).for_each(|node| {
            free.clear(node);
        });
        Nodes {
            address: vec![UNWRITTEN; count],
            log: vec![Log::WarmNode; count],
            free,
            next: 0,
            dirty: Bitmap::new(count),
            list: Vec::new(),
            is_listed: Bitmap::new(count),
            moved: Bitmap::new(count),
            nat_entries: vec![0; count.div_ceil(NAT_ENTRIES as usize)],
            nat_blocks: Vec::new(),
        }
    }

    /// A new node, dirty and not yet written; none if all numbers are in use.
    pub fn create(&mut self, log: Log) -> Option<u32> {
        let node = self.free.next_around(self.next)?;
        self.next = node + 1;
        self.free.clear(node);
        self.address[node] = UNWRITTEN;
        self.log[node] = log;
        self.mark_dirty(node as u32);
        Some(node as u32)
    }

    /// Deletes a node; returns where it was.
    pub fn delete(&mut self, node: u32) -> u32 {
        let address = std::mem::replace(&mut self.address[node as usize], UNWRITTEN);
        self.dirty.clear(node as usize);
        assert!(self.free.set(node as usize), "node {node} is deleted twice");
        if address != UNWRITTEN {
            self.note_moved(node);
        }
        address
    }

    /// The node has to be written at the next checkpoint.
    #[inline]
    pub fn mark_dirty(&mut self, node: u32) {
        if self.dirty.set(node as usize) && self.is_listed.set(node as usize) {
            self.list.push(node);
        }
    }

    /// Whether a node has to be written.
    pub fn is_dirty(&self, node: u32) -> bool {
        self.dirty.get(node as usize)
    }

    /// Number of nodes to be written.
    pub fn dirty_count(&self) -> u32 {
        self.dirty.count() as u32
    }

    /// The nodes to be written, in the kernel's order: indirect ones, those of directories, those of files (`f2fs_sync_node_pages`).
    pub fn take_dirty(&mut self) -> Vec<u32> {
        let mut list = std::mem::take(&mut self.list);
        for node in &list {
            self.is_listed.clear(*node as usize);
        }
        list.retain(|node| self.dirty.get(*node as usize));
        let step = |log| match log {
            Log::ColdNode => 0,
            Log::HotNode => 1,
            _ => 2,
        };
        list.sort_unstable_by_key(|node| (step(self.log[*node as usize]), *node));
        list
    }

    /// Where a node is.
    pub fn address(&self, node: u32) -> u32 {
        self.address[node as usize]
    }

    /// The log that takes a node.
    pub fn log(&self, node: u32) -> Log {
        self.log[node as usize]
    }

    /// A node was written.
    pub fn wrote(&mut self, node: u32, address: u32) {
        self.address[node as usize] = address;
        self.dirty.clear(node as usize);
        self.note_moved(node);
    }

    fn note_moved(&mut self, node: u32) {
        if self.moved.set(node as usize) {
            let block = (node / NAT_ENTRIES) as usize;
            if self.nat_entries[block] == 0 {
                self.nat_blocks.push(block as u32);
            }
            self.nat_entries[block] += 1;
        }
    }

    /// The blocks of the NAT that a checkpoint has to write: all with changes, but for those whose few entries fit into the journal.
    pub fn take_nat_blocks(&mut self, mut journal: u32) -> Vec<u32> {
        let mut blocks = std::mem::take(&mut self.nat_blocks);
        blocks.sort_unstable_by_key(|block| (self.nat_entries[*block as usize], *block));
        blocks.retain(|block| {
            let first = (block * NAT_ENTRIES) as usize;
            let mut from = first;
            while let Some(node) = self
                .moved
                .next(from)
                .filter(|node| *node < first + NAT_ENTRIES as usize)
            {
                self.moved.clear(node);
                from = node + 1;
            }
            let entries = u32::from(std::mem::take(&mut self.nat_entries[*block as usize]));
            let fits = entries <= journal;
            journal -= if fits { entries } else { journal };
            !fits
        });
        blocks.sort_unstable();
        blocks
    }
}
