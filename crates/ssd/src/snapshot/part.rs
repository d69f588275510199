//! Snapshot encoding of a part of the L2P map, as plain entries or as runs, whichever is shorter.
//!
//! ```text
//! 1 byte    form
//! entries   (form 0) 4 bytes for each logical page: inverted physical page, 0 if unmapped
//! runs      (form 1) 8 bytes for each run, in order: entry of its first page, number of pages.
//!           Entries decrease by one from page to page, and stay 0 in a run of unmapped pages
//! ```

use crate::cast::{count, index, wide};
use crate::maps::run_length;

const ENTRIES: u8 = 0;
const RUNS: u8 = 1;

/// Maximum encoded size of a part of `pages` pages.
pub(super) fn bytes_max(pages: u32) -> u64 {
    1 + 4 * u64::from(pages)
}

/// Encodes a part. Replaces the contents of `bytes`.
pub(super) fn encode(entries: &[u32], bytes: &mut Vec<u8>) {
    assert!(!entries.is_empty(), "a part has pages");
    bytes.clear();
    bytes.push(RUNS);
    let mut at = 0;
    while at < entries.len() && wide(bytes.len()) + 8 < bytes_max(count(entries.len())) {
        let pages = run_length(&entries[at..]);
        bytes.extend(entries[at].to_le_bytes());
        bytes.extend(pages.to_le_bytes());
        at += index(pages);
    }
    if at < entries.len() {
        bytes.clear();
        bytes.push(ENTRIES);
        bytes.extend_from_slice(bytemuck::cast_slice(entries));
    }
    assert!(wide(bytes.len()) <= bytes_max(count(entries.len())), "a part has at most as many entries as its range");
}

/// Decodes a part of `pages` pages into runs, in order. Each run is the entry of its first page and
/// a number of pages. Returns `None` for an invalid part.
pub(super) fn decode(bytes: &[u8], pages: u32) -> Option<Vec<[u32; 2]>> {
    let (form, rest) = bytes.split_first()?;
    let (words, rest) = rest.as_chunks::<4>();
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let runs = match *form {
        ENTRIES => {
            let (mut left, mut runs) = (words.as_slice(), Vec::new());
            while let [entry, ..] = left {
                let run = run_length(left);
                runs.push([*entry, run]);
                left = &left[index(run)..];
            }
            runs
        }
        RUNS if words.len().is_multiple_of(2) => words.as_chunks().0.to_vec(),
        _ => return None,
    };
    let covered: u64 = runs.iter().map(|[_, run]| u64::from(*run)).sum();
    let is_whole = rest.is_empty() && covered == u64::from(pages) && runs.iter().all(|[_, run]| *run > 0);
    is_whole.then_some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8], pages: u32) -> Option<Vec<u32>> {
        let entries = |[entry, run]: [u32; 2]| {
            let step = u32::from(entry != 0);
            (0..run).map(move |page| entry.wrapping_sub(step * page))
        };
        Some(decode(bytes, pages)?.into_iter().flat_map(entries).collect())
    }

    #[test]
    fn what_is_encoded_is_decoded_in_the_shorter_form() {
        let run = |first: u32, pages: u32| (0..pages).map(move |page| !(first + page));
        let falling = |pages| run(77, pages).collect::<Vec<_>>();
        let scattered = |pages: u32| (0..pages).map(|page| !(page * 7 % 101)).collect::<Vec<_>>();
        let mixed: Vec<u32> = run(5, 40).chain([0; 9]).chain(run(900, 3)).chain([!4, !2]).collect();
        for (entries, form) in [
            (falling(1), ENTRIES),
            (falling(2), ENTRIES),
            (falling(3), RUNS),
            (vec![0; 500], RUNS),
            (scattered(100), ENTRIES),
            (mixed, RUNS),
        ] {
            let mut bytes = vec![9; 3];
            encode(&entries, &mut bytes);
            assert_eq!(bytes[0], form, "{entries:?}");
            assert_eq!(decoded(&bytes, count(entries.len())), Some(entries.clone()));
            assert_eq!(decoded(&bytes, count(entries.len()) + 1), None);
            assert_eq!(decoded(&bytes, count(entries.len()) - 1), None);
            assert_eq!(decoded(&bytes[..bytes.len() - 1], count(entries.len())), None);
        }
    }

    #[test]
    fn what_is_no_part_is_refused() {
        let runs = |runs: &[[u32; 2]]| {
            let words = runs.as_flattened().iter().flat_map(|word| word.to_le_bytes());
            [RUNS].into_iter().chain(words).collect::<Vec<u8>>()
        };
        assert_eq!(decoded(&runs(&[[!0, 3]]), 3), Some(vec![!0, !1, !2]));
        for (bytes, pages) in [
            (vec![], 1),
            (vec![2, 0, 0, 0, 0], 1),
            (runs(&[]), 1),
            (runs(&[[!0, 0], [!0, 3]]), 3),
            (runs(&[[!0, 4]]), 3),
            (runs(&[[!0, u32::MAX], [!0, 4]]), 3),
        ] {
            assert_eq!(decoded(&bytes, pages), None, "{bytes:?}");
        }
    }
}
