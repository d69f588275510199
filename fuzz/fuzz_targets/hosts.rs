//! Runs the hosts of `crates/nvme/tests/simulation.rs` against their model of all completions.
//! libFuzzer makes the choices. Any difference from the model is a finding, and so is any panic.
#![no_main]

// Only the swarm uses the rest of the module.
#[allow(dead_code)]
#[path = "../../crates/nvme/tests/simulation/mod.rs"]
mod simulation;

#[path = "../support/bytes.rs"]
mod bytes;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use simulation::entropy::{Entropy, Seeded};
use simulation::generate::{self, Generator};
use simulation::run::Run;

/// Number of kinds of drives, which are seeds of the generator.
const DRIVES: u64 = 256;
/// Maximum operations of an input.
const OPERATIONS_MAX: usize = 400;

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes(input);
    let setup = generate::setup(&mut Seeded::new(bytes.below(DRIVES)));
    let mut run = Run::new(&setup).expect("the generator only keeps drives that work");
    let mut generator = Generator::new(bytes);
    let mut done = Vec::new();
    while done.len() < OPERATIONS_MAX
        && let Some(operation) = generator.next(&run.model)
    {
        let result = run.step(&operation);
        done.push(operation);
        if let Err(difference) = result {
            panic!("{difference}\n  after {done:#?}\n  on {setup:#?}");
        }
    }
    if let Err(difference) = run.finish() {
        panic!("at the end: {difference}\n  after {done:#?}\n  on {setup:#?}");
    }
});
