//! Effects of I/O commands.

use super::{Check, Success, equal, same_bytes};
use crate::simulation::judge::{Submission, blocks_of};
use crate::simulation::model::{Model, UNREADABLE, Unit, ZEROES};
use crate::simulation::operation::{Command, Directive, Range};
use crate::simulation::wire::u64_at;

impl Model {
    pub(super) fn apply_io(&mut self, submission: &Submission, success: &Success) -> Check {
        match submission.command {
            Command::Read { nsid, range } => {
                let namespace = &self.namespaces[&nsid];
                let blocks = blocks_of(namespace, range).expect("nothing is wrong with the command");
                same_bytes("data", &success.data, &namespace.content(blocks))?;
                self.count_read(nsid, range);
            }
            Command::Compare { nsid, range, .. } => self.count_read(nsid, range),
            Command::Verify { nsid, range } => {
                // SMART, Data Units Read, counts Compare, Read and Verify.
                self.counters.bytes_read += u64::from(range.count) * self.namespaces[&nsid].block_bytes();
            }
            Command::Write { nsid, range, placement, .. } => {
                let page_blocks = self.drive.page_bytes / self.namespaces[&nsid].block_bytes();
                let is_aligned =
                    range.first.is_multiple_of(page_blocks) && u64::from(range.count).is_multiple_of(page_blocks);
                self.write(nsid, range, placement, |block| submission.first_tag + block);
                self.counters.write_commands += 1;
                self.counters.unaligned_writes += u64::from(!is_aligned);
            }
            Command::WriteZeroes { nsid, range, placement, deallocate, .. } => {
                self.write_zeroes(nsid, range, placement, deallocate)
            }
            Command::WriteUncorrectable { nsid, range } => self.blocks_mut(nsid, range).fill(UNREADABLE),
            Command::DatasetManagement { nsid, ref ranges, deallocate: true } => {
                for &range in ranges {
                    self.deallocate(nsid, range);
                }
            }
            Command::Copy { nsid, to, ref ranges, placement, .. } => {
                let sources =
                    ranges.iter().flat_map(|&range| blocks_of(&self.namespaces[&nsid], range).expect("checked"));
                let tags: Vec<u64> = sources.copied().collect();
                let range = Range { first: to, count: tags.len() as u32 };
                self.write_parts(nsid, range, ranges, placement, |block| tags[block as usize]);
            }
            Command::HandleStatus { nsid, operation: 1, .. } => self.check_handle_status(nsid, &success.data)?,
            Command::HandleUpdate { nsid, operation: 1, ref identifiers } => {
                for &pid in identifiers {
                    let placement = self.placement(nsid, pid).expect("nothing is wrong with the command");
                    if self.leave_unit(placement) {
                        let handle_bits = 16 - self.configuration().group_bits;
                        let index = u32::from(pid) & ((1 << handle_bits) - 1);
                        self.log_event(0, nsid, index as usize, pid, Some(placement));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts a Read or Compare command. Metadata does not count.
    pub(super) fn count_read(&mut self, nsid: u32, range: Range) {
        self.counters.read_commands += 1;
        self.counters.bytes_read += u64::from(range.count) * self.namespaces[&nsid].block_bytes();
    }

    pub fn blocks_mut(&mut self, nsid: u32, range: Range) -> &mut [u64] {
        let namespace = self.namespaces.get_mut(&nsid).expect("a namespace that exists");
        &mut namespace.blocks[range.first as usize..][..range.count as usize]
    }

    fn write(&mut self, nsid: u32, range: Range, directive: Directive, tag: impl Fn(u64) -> u64) {
        self.write_parts(nsid, range, &[Range { first: 0, count: range.count }], directive, tag);
    }

    /// Writes a range in parts of these lengths. Each part programs the pages that it covers.
    fn write_parts(
        &mut self,
        nsid: u32,
        range: Range,
        parts: &[Range],
        directive: Directive,
        tag: impl Fn(u64) -> u64,
    ) {
        let placement = self.choose_placement(nsid, directive);
        let block_bytes = self.namespaces[&nsid].block_bytes();
        for (index, block) in (0..).zip(self.blocks_mut(nsid, range)) {
            *block = tag(index);
        }
        let mut first = range.first;
        for part in parts {
            let end = first + u64::from(part.count);
            self.append(placement, self.pages_touched(first * block_bytes, end * block_bytes));
            first = end;
        }
        let bytes = u64::from(range.count) * block_bytes;
        self.counters.bytes_written += bytes;
        self.counters.host_bytes_with_metadata += bytes;
        (self.written_since, self.perhaps_written_since) = (true, true);
    }

    fn pages_touched(&self, from: u64, to: u64) -> u64 {
        to.div_ceil(self.drive.page_bytes) - from / self.drive.page_bytes
    }

    fn write_zeroes(&mut self, nsid: u32, range: Range, directive: Directive, deallocate: bool) {
        let placement = self.choose_placement(nsid, directive);
        let block_bytes = self.namespaces[&nsid].block_bytes();
        let page_bytes = self.drive.page_bytes;
        self.blocks_mut(nsid, range).fill(ZEROES);
        let (from, to) = (range.first * block_bytes, (range.first + u64::from(range.count)) * block_bytes);
        let whole = (from.div_ceil(page_bytes) * page_bytes, to / page_bytes * page_bytes);
        let mut bytes = to - from;
        let mut pages = self.pages_touched(from, to);
        if deallocate && whole.1 > whole.0 {
            bytes -= whole.1 - whole.0;
            pages -= (whole.1 - whole.0) / page_bytes;
        }
        self.append(placement, pages);
        self.counters.host_bytes_with_metadata += bytes;
        self.perhaps_written_since = true;
    }

    fn deallocate(&mut self, nsid: u32, range: Range) {
        let whole = self.whole_pages(nsid, range);
        // The namespace may not fill its last page.
        if !whole.is_empty() {
            let namespace = self.namespaces.get_mut(&nsid).expect("a namespace that exists");
            namespace.blocks[whole.start as usize..whole.end as usize].fill(ZEROES);
        }
    }

    fn check_handle_status(&self, nsid: u32, data: &[u8]) -> Check {
        let configuration = self.configuration();
        let namespace = &self.namespaces[&nsid];
        let blocks_per_page = self.drive.page_bytes / namespace.block_bytes();
        let mut expected = vec![0; 16];
        let count = namespace.handles.len() as u16 * configuration.groups;
        expected[14..16].copy_from_slice(&count.to_le_bytes());
        for (index, &handle) in namespace.handles.iter().enumerate() {
            for group in 0..configuration.groups {
                let mut descriptor = [0; 32];
                descriptor[..2].copy_from_slice(&self.identifier(group, index).to_le_bytes());
                descriptor[2..4].copy_from_slice(&handle.to_le_bytes());
                let unit = self.units.get(&(group, handle)).copied().unwrap_or_default();
                descriptor[4..8].copy_from_slice(&self.seconds_left(unit).to_le_bytes());
                let available = self.available_pages((group, handle)) * blocks_per_page;
                descriptor[8..16].copy_from_slice(&available.to_le_bytes());
                expected.extend(descriptor);
            }
        }
        expected.truncate(data.len());
        if self.drive.exact_units {
            return same_bytes("reclaim unit handle status", data, &expected);
        }
        // Times and RUAMW depend on the device's policies. RUAMW is at most a unit.
        for (found, expected) in
            data[16.min(data.len())..].chunks_exact(32).zip(expected[16.min(data.len())..].chunks_exact(32))
        {
            equal("identifier and handle", &found[..4], &expected[..4])?;
            if u64_at(found, 8) > self.unit_pages() * blocks_per_page {
                return Err(format!("RUAMW is {}, more than a reclaim unit", u64_at(found, 8)));
            }
        }
        same_bytes("header", &data[..16.min(data.len())], &expected[..16.min(data.len())])
    }

    fn seconds_left(&self, unit: Unit) -> u32 {
        let limit = self.drive.time_limit_s;
        let passed = unit.since_ns.map_or(0, |since| (self.now - since) / 1_000_000_000);
        limit.saturating_sub(passed as u32)
    }
}
