//! Fast path of a uniform stream, whose requests differ only in their addresses.

use super::addresses::Addresses;
use super::{JobStream, UniformFields};
use crate::IoRequest;

/// Requests that are drawn ahead so that their cache misses in the random map overlap.
const LOOKAHEAD: usize = 64;

impl JobStream {
    /// Appends up to `limit` requests of a uniform stream while its pass goes on. After a result of
    /// 0, [`Self::issue`] produces the next one.
    pub(super) fn fill_uniform(&mut self, uniform: UniformFields, out: &mut Vec<IoRequest>, limit: u64) -> u64 {
        let UniformFields { operation, bytes, placement } = uniform;
        let limit = limit.min(self.requests_within_limits(bytes));
        let (stream, start_bytes) = (self.stream, self.plan.start_bytes);
        let request = |offset: u64| IoRequest {
            stream,
            operation,
            offset_bytes: start_bytes + offset,
            bytes: bytes as u32,
            placement,
        };
        let before = out.len();
        let align_bytes = self.sizes[operation as usize].align_bytes;
        let last_block = self.sizes[operation as usize].last_block;
        // A region has fewer than 2^63 blocks, and the signed conversion is one instruction.
        let block = |fraction: f64| (last_block * fraction) as i64 as u64;
        match &mut self.addresses {
            Addresses::Sequential => {
                let first = self.last_end[operation as usize];
                let starts_in_region = self.plan.region_bytes.saturating_sub(first).div_ceil(bytes);
                let ends_on_drive = (self.plan.device_bytes - start_bytes - first) / bytes;
                let count = limit.min(starts_in_region).min(ends_on_drive);
                out.extend((0..count).map(|index| request(first + index * bytes)));
            }
            Addresses::Uniform(None) => {
                let mut fractions = [0.0; LOOKAHEAD];
                let fractions = &mut fractions[..limit.min(LOOKAHEAD as u64) as usize];
                self.offset_generator.next_fractions(fractions);
                let requests = fractions.iter().map(|fraction| request(block(*fraction) * align_bytes));
                out.extend(requests);
            }
            Addresses::Uniform(Some(map)) => {
                // With at least one free block per draw no draw fails, so no random number is
                // wasted.
                let count = limit.min(map.free_blocks).min(LOOKAHEAD as u64) as usize;
                let mut fractions = [0.0; LOOKAHEAD];
                let fractions = &mut fractions[..count];
                self.offset_generator.next_fractions(fractions);
                let mut drawn = [0; LOOKAHEAD];
                let drawn = &mut drawn[..count];
                let mut words = 0;
                for (drawn, fraction) in drawn.iter_mut().zip(fractions) {
                    *drawn = block(*fraction);
                    words |= map.word(*drawn);
                }
                std::hint::black_box(words);
                for block in drawn {
                    let free = map.free_from(*block).expect("some are untouched");
                    map.set(free);
                    out.push(request(free * align_bytes));
                }
            }
            Addresses::Skewed(..) | Addresses::Zoned(..) | Addresses::Sequence(..) => {
                for _ in 0..limit {
                    let Some(block) = self.next_block(operation) else { break };
                    out.push(request(block * align_bytes));
                }
            }
        }
        let count = (out.len() - before) as u64;
        assert!(count <= limit, "more requests are made than the pass has room for");
        if let Some(last) = out[before..].last() {
            assert!(last.offset_bytes + bytes <= self.plan.device_bytes, "a request goes beyond the end of the drive");
            self.last_start[operation as usize] = last.offset_bytes - start_bytes;
            self.last_end[operation as usize] = last.offset_bytes - start_bytes + bytes;
        }
        self.requests[operation as usize] += count;
        self.bytes += count * bytes;
        self.counted_bytes += count * bytes;
        count
    }
}
