//! The built-in experiments keep to the rules of the score.

use experiment::claim::ClaimRule;
use experiment::definition::Experiment;

fn built_in() -> Vec<Experiment> {
    let names = Experiment::names();
    let found = names.iter().map(|name| Experiment::find(name).expect("it is valid"));
    let found: Vec<Experiment> = found.filter(Experiment::is_built_in).collect();
    assert!(found.len() > 30);
    found
}

/// Single numbers are judged as hits and misses, so an error bound is a regression test.
#[test]
fn no_claim_is_an_error_bound() {
    for experiment in built_in() {
        for claim in &experiment.claims {
            let is_error = matches!(
                claim.rule,
                ClaimRule::MeanError(_) | ClaimRule::RelativeError(_) | ClaimRule::MeanRelativeError(_)
            );
            assert!(!is_error, "{}: move {:?} to [[regression]]", experiment.slug, claim.statement);
        }
    }
}

/// A published number counts once, however many experiments print it.
#[test]
fn a_number_of_a_cell_counts_once() {
    let mut counted = std::collections::BTreeMap::new();
    for experiment in built_in() {
        for row in experiment.published.iter().filter(|row| row.not_comparable.is_none()) {
            let numbers = if row.drive.is_empty() { &row.emulator } else { &row.drive };
            let at =
                format!("{} {:?} {numbers:?} {}", row.source, row.metric, row.at.get("device").map_or("", |name| name));
            let cell = format!("{at} {:?} {:?}", row.at, row.along);
            let before = counted.insert(cell, experiment.slug.clone());
            assert_eq!(before, None, "{at} is in {} too", experiment.slug);
        }
    }
    assert!(counted.len() > 60, "{}", counted.len());
}
