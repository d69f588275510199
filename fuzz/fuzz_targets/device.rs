//! Runs the device and the reference model in lockstep, with configurations and workloads from the
//! fuzzer's bytes.
//!
//! The interpreter is that of the seeded swarm (`crates/ssd/tests/never_dies.rs`), with another
//! source of choices. Any difference between the two devices is a finding, and so is any panic.
#![no_main]

// Only the swarm uses the seeded entropy and the coverage counts.
#[allow(dead_code)]
#[path = "../../crates/ssd/tests/reference/mod.rs"]
mod reference;

use libfuzzer_sys::{Corpus, fuzz_target};
use reference::{Entropy, generate, lockstep, workload};

/// Maximum host pages of a run. Many short runs find more than few long ones.
const PAGES_MAX: u64 = 2_000;
/// Maximum physical pages of a device. The reference counts all pages for each choice of a victim.
const PHYSICAL_PAGES_MAX: u64 = 6_000;

/// Choices from bytes. An exhausted source gives zeroes.
struct Bytes<'a>(&'a [u8]);

impl Entropy for Bytes<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        let mut number = 0;
        let mut covered = 1;
        while covered < limit {
            let (&byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
            self.0 = rest;
            number = number << 8 | u64::from(byte);
            covered <<= 8;
        }
        number % limit
    }

    fn exhausted(&self) -> bool {
        self.0.is_empty()
    }
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let mut entropy = Bytes(bytes);
    let (config, layout) = generate::configuration(&mut entropy);
    if u64::from(layout.slices()) * u64::from(layout.slice_pages) > PHYSICAL_PAGES_MAX {
        return Corpus::Reject;
    }
    let operations = workload::operations(&mut entropy, &layout, PAGES_MAX);
    let progress = std::cell::Cell::new(0);
    if let Err(difference) = lockstep::run(&config, &layout, &operations, &progress) {
        let at = operations.get(progress.get());
        panic!("{difference}\n  at command {}: {at:?}\n{config:#?}\n{layout:?}", progress.get());
    }
    Corpus::Keep
});
