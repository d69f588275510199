//! The victim policy of docs/tutorials/gc-policy.md and of examples/victim_policy.rs works as both
//! show it.

mod common;

#[allow(dead_code)] // The program's own `main`.
#[path = "../../../examples/victim_policy.rs"]
mod example;

use common::*;
use example::CostBenefit;
use ssd::event::Trigger;

const PAGE: &str = include_str!("../../../docs/tutorials/gc-policy.md");
const SOURCE: &str = include_str!("../../../examples/victim_policy.rs");

#[test]
fn the_page_shows_this_policy() {
    let blocks: Vec<_> = PAGE.split("```rust\n").skip(1).collect();
    let [block] = blocks[..] else { panic!("one block of Rust") };
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

#[test]
fn the_example_measures_what_its_header_shows() {
    let greedy = format!("//! greedy       {:.4}\n", example::write_amplification(None));
    let policy: Box<CostBenefit> = Box::new(CostBenefit);
    let cost_benefit = format!("//! cost-benefit {:.4}\n", example::write_amplification(Some(policy)));
    assert!(SOURCE.contains(&format!("{greedy}{cost_benefit}")), "{greedy}{cost_benefit}");
}
