//! Pairs the cells of two sides, and explains sides without pairs.

use super::Side;
use super::run::WAF;
use super::side::{SideCell, SideKind};
use base::distinct;
use experiment::LabError;

/// Maximum number of names in a sentence. Above it, the sentence has the number of the others.
const NAMES_SHOWN: usize = 6;

pub(super) struct CellPairs {
    /// Indices of the cells of A and of B.
    pub(super) pairs: Vec<(usize, usize)>,
    /// The side (0 is A) whose single cell is compared with all cells of the other.
    pub(super) one: Option<usize>,
}

impl CellPairs {
    /// Pairs cells by name. Two single cells always form a pair. A single cell without a namesake
    /// is compared with all cells of the other side.
    pub(super) fn new(sides: [&Side; 2], [a, b]: [&[SideCell]; 2]) -> CellPairs {
        if let ([_], [_]) = (a, b) {
            return CellPairs { pairs: vec![(0, 0)], one: None };
        }
        let same_name = |(index, cell): (usize, &SideCell)| {
            let other = b.iter().position(|other| other.name == cell.name)?;
            Some((index, other))
        };
        let has_names = sides.iter().all(|side| !side.kind.is_measurement());
        let named = a.iter().enumerate().filter_map(same_name).filter(|_| has_names);
        let named: Vec<(usize, usize)> = named.collect();
        if !named.is_empty() {
            return CellPairs { pairs: named, one: None };
        }
        // Pairs the single `cell` of side `one` with all cells of the other side.
        let one_with_all = |one: usize, cell: usize| {
            let many = if one == 0 { b.len() } else { a.len() };
            let pair = |other| if one == 0 { (cell, other) } else { (other, cell) };
            CellPairs { pairs: (0..many).map(pair).collect(), one: Some(one) }
        };
        match (a, b) {
            ([_], _) => one_with_all(0, 0),
            (_, [_]) => one_with_all(1, 0),
            _ => {
                let of_device = match sides.map(|side| side.kind) {
                    [SideKind::Answer, SideKind::Results] => only_of_device(b, a).map(|cell| one_with_all(1, cell)),
                    [SideKind::Results, SideKind::Answer] => only_of_device(a, b).map(|cell| one_with_all(0, cell)),
                    _ => None,
                };
                of_device.unwrap_or(CellPairs { pairs: Vec::new(), one: None })
            }
        }
    }
}

fn only_of_device(cells: &[SideCell], answer: &[SideCell]) -> Option<usize> {
    let device = &answer.first()?.device;
    let mut on_device = (0..cells.len()).filter(|index| cells[*index].device == *device);
    on_device.next().filter(|_| on_device.next().is_none())
}

/// Names joined by semicolons, which occur in no name, and the number of omitted names.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names[..names.len().min(NAMES_SHOWN)].join("; ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown,
        others => format!("{shown}; and {others} more"),
    }
}

/// The error for two sides without a common metric. It describes both, and names a command with a
/// comparable result.
pub(super) fn refusal(sides: [&Side; 2], cells: [&[SideCell]; 2], pairing: &CellPairs) -> LabError {
    let [a, b] = sides;
    let has = |index: usize| {
        if pairing.pairs.is_empty() {
            let names = cells[index].iter().map(|cell| cell.name.as_str());
            return format!("the cells {}", listed(names));
        }
        let metrics = cells[index].iter().flat_map(|cell| &cell.metrics);
        let names = distinct(metrics.map(|(name, _)| name.as_str()));
        listed(names.into_iter())
    };
    let problem = format!(
        "there is nothing to compare. {} is {}, with {}. {} is {}, with {}. {}",
        a.name,
        a.short_description(),
        has(0),
        b.name,
        b.short_description(),
        has(1),
        remedy(sides, cells, pairing)
    );
    LabError::invalid(&a.name, problem)
}

/// A command that makes comparable results.
fn remedy(sides: [&Side; 2], cells: [&[SideCell]; 2], pairing: &CellPairs) -> String {
    let of_kind = |kind: SideKind| (0..2).find(|index| sides[*index].kind == kind);
    if pairing.pairs.is_empty() {
        // A measurement is a single cell, so it can be compared with any side.
        let Some(many) = of_kind(SideKind::Results) else {
            return "Answers about folders are paired by workload and placement. Use `warp whatif WORKLOAD --json > \
                    answer.json` for each side"
                .to_string();
        };
        let target = sides[many].origin["target"].as_str().unwrap_or("EXPERIMENT");
        let other = &sides[1 - many].name;
        return format!(
            "Cells are paired by name, or one cell with all of the other side. Use `warp run {target}{} --json > \
             cell.json`, then `warp results compare {other} cell.json`",
            cells[many][0].only
        );
    }
    let no_times = "Run the same jobs on a device with timing, with `warp run JOB.fio --device ssd_a --json > \
                    run.json`";
    if let Some(fio) = of_kind(SideKind::Fio) {
        let name = &sides[fio].name;
        return match sides[1 - fio].kind {
            SideKind::Statistics => format!(
                "A run measures what both do. Use `warp run JOB.fio --device ssd_a --json > run.json`, then `warp \
                 results compare {name} run.json` and `warp results compare {} run.json`",
                sides[1 - fio].name
            ),
            SideKind::Fio => {
                "Jobs are paired by name and direction. Give them the same names and run fio again".to_string()
            }
            SideKind::Results | SideKind::Answer => format!("{no_times}, then `warp results compare {name} run.json`"),
        };
    }
    let silent = (0..2).find(|index| {
        let metrics = |cell: &SideCell| cell.metrics.iter().any(|(name, _)| name.starts_with(WAF));
        !cells[*index].iter().any(metrics)
    });
    match silent {
        Some(silent) => format!(
            "{} has no WAF, because its host wrote nothing. Use `warp run` with a workload that writes",
            sides[silent].name
        ),
        None => no_times.to_string(),
    }
}
