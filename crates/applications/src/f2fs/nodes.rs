//! Node blocks and the NAT, which maps node numbers to blocks.
//!
//! Each file has an inode. Direct nodes hold the pointers beyond those of the inode, and indirect
//! nodes point to direct nodes. A node can move without a write of its parents, because parents
//! refer to its number in the NAT.

use super::hints::LogKind;
use super::layout::NAT_ENTRIES;
use crate::bitmap::Bitmap;

/// Data pointers of an inode: 923, minus 50 for inline attributes (`ADDRS_PER_INODE`).
pub const INODE_POINTERS: u32 = 873;
/// Pointers of a direct or indirect node (`ADDRS_PER_BLOCK`, `NIDS_PER_BLOCK`).
pub const NODE_POINTERS: u32 = 1018;
pub const UNWRITTEN: u32 = u32::MAX;

pub struct Nodes {
    /// Block of each node in the main area.
    address: Vec<u32>,
    log: Vec<LogKind>,
    free: Bitmap,
    /// Start of the next search for a free number (`next_scan_nid`).
    next: usize,
    dirty: Bitmap,
    /// Nodes that became dirty. Some may have been written or deleted since.
    list: Vec<u32>,
    is_listed: Bitmap,
    moved: Bitmap,
    /// Number of changed entries of each NAT block, and the list of changed blocks.
    nat_entries: Vec<u16>,
    nat_blocks: Vec<u32>,
}

impl Nodes {
    /// Creates `count` node numbers. Files cannot use the first three.
    pub fn new(count: u32) -> Nodes {
        let count = count as usize;
        let mut free = Bitmap::full(count);
        (0..3).for_each(|node| {
            free.clear(node);
        });
        Nodes {
            address: vec![UNWRITTEN; count],
            log: vec![LogKind::WarmNode; count],
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

    /// Creates a dirty, unwritten node. Returns `None` if all numbers are in use.
    pub fn create(&mut self, log: LogKind) -> Option<u32> {
        let node = self.free.next_around(self.next)?;
        self.next = node + 1;
        self.free.clear(node);
        self.address[node] = UNWRITTEN;
        self.log[node] = log;
        self.mark_dirty(node as u32);
        Some(node as u32)
    }

    pub fn delete(&mut self, node: u32) -> u32 {
        let address = std::mem::replace(&mut self.address[node as usize], UNWRITTEN);
        self.dirty.clear(node as usize);
        assert!(self.free.set(node as usize), "node {node} is deleted twice");
        if address != UNWRITTEN {
            self.mark_moved(node);
        }
        address
    }

    /// Marks a node for the next checkpoint.
    #[inline]
    pub fn mark_dirty(&mut self, node: u32) {
        if self.dirty.set(node as usize) && self.is_listed.set(node as usize) {
            self.list.push(node);
        }
    }

    pub fn is_dirty(&self, node: u32) -> bool {
        self.dirty.get(node as usize)
    }

    pub fn dirty_count(&self) -> u32 {
        self.dirty.count as u32
    }

    /// Takes the unwritten nodes in the kernel's order: indirect nodes, nodes of directories, nodes
    /// of files (`f2fs_sync_node_pages`).
    pub fn take_dirty(&mut self) -> Vec<u32> {
        let mut list = std::mem::take(&mut self.list);
        for node in &list {
            self.is_listed.clear(*node as usize);
        }
        list.retain(|node| self.dirty.get(*node as usize));
        let step = |log| match log {
            LogKind::ColdNode => 0,
            LogKind::HotNode => 1,
            _ => 2,
        };
        list.sort_unstable_by_key(|node| (step(self.log[*node as usize]), *node));
        list
    }

    pub fn address(&self, node: u32) -> u32 {
        self.address[node as usize]
    }

    pub fn log(&self, node: u32) -> LogKind {
        self.log[node as usize]
    }

    /// Records the write of a node.
    pub fn wrote(&mut self, node: u32, address: u32) {
        self.address[node as usize] = address;
        self.dirty.clear(node as usize);
        self.mark_moved(node);
    }

    fn mark_moved(&mut self, node: u32) {
        if self.moved.set(node as usize) {
            let block = (node / NAT_ENTRIES) as usize;
            if self.nat_entries[block] == 0 {
                self.nat_blocks.push(block as u32);
            }
            self.nat_entries[block] += 1;
        }
    }

    /// Takes the NAT blocks that a checkpoint must write. Omits blocks whose few entries fit into
    /// the journal.
    pub fn take_nat_blocks(&mut self, mut journal: u32) -> Vec<u32> {
        let mut blocks = std::mem::take(&mut self.nat_blocks);
        blocks.sort_unstable_by_key(|block| (self.nat_entries[*block as usize], *block));
        blocks.retain(|block| {
            let first = (block * NAT_ENTRIES) as usize;
            let mut from = first;
            while let Some(node) = self.moved.next(from).filter(|node| *node < first + NAT_ENTRIES as usize) {
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
