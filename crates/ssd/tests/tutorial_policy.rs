//! The victim policy of docs/tutorials/gc-policy.md works as the page shows it.

mod common;

use common::*;
use ssd::RuId;
use ssd::event::Trigger;
use ssd::gc::{DeviceRng, VictimCandidates, VictimPolicy};

const PAGE: &str = include_str!("../../../docs/tutorials/gc-policy.md");
const SOURCE: &str = include_str!("tutorial_policy.rs");

struct CostBenefit;

impl VictimPolicy for CostBenefit {
    fn select(&mut self, candidates: &VictimCandidates<'_>, _random: &mut DeviceRng) -> Option<RuId> {
        let benefit = |unit: &RuId| {
            let unit = candidates.unit(*unit);
            let valid = f64::from(unit.valid_pages()) / f64::from(unit.pages());
            let age = (candidates.host_pages_written() - unit.last_write()) as f64;
            (1.0 - valid) * age / (1.0 + valid)
        };
        candidates.iter().max_by(|a, b| benefit(a).total_cmp(&benefit(b)))
    }
}

#[test]
fn the_page_shows_this_policy() {
    let blocks: Vec<_> = PAGE.split("```rust\n").skip(1).collect();
    let [block] = blocks[..] else {
        panic!("one block of Rust")
    };
    let (code, _) = block.split_once("```").expect("the block ends");
    let (_, policy) = code.split_once("struct CostBenefit;").expect("a policy");
    assert!(SOURCE.contains(policy), "the page shows another policy:\n{policy}");
}

#[test]
fn the_policy_selects_every_victim() {
    let mut device = recorded(&small(24, 0.25));
    device.set_victim_policy(Some(Box::new(CostBenefit)));
    let pages = device.layout().logical_pages;
    write(&mut device, 0, pages, 0);
    let mut random = Uniform::new(7);
    for _ in 0..4 * pages {
        let is_hot = random.below(10) < 9;
        let page = random.below(if is_hot { pages / 10 } else { pages });
        write(&mut device, page, 1, 0);
    }
    let reclaims = reclaims(&device);
    let mut selected = reclaims.iter().filter(|reclaim| reclaim.trigger != Trigger::Forced);
    assert!(reclaims.len() > 10 && selected.all(|reclaim| reclaim.policy == "external"));
    prove(&device);
}
