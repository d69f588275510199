//! Comparison of two results: differences, their size, and their statistical significance.
//!
//! ```text
//! a stored run | warp run --json | warp whatif --json | fio --output-format=json | nvme fdp stats
//!     -> Side: cells -> metrics
//! Side, Side -> CellPairs (the cells to compare)
//!     -> ResultComparison: a row for each metric that both have -> table, JSON, report.html, Arrow
//! ```
//!
//! If both sides have several seeds, the comparison has the 95 % interval of the difference of the
//! means. It uses Welch's t with the degrees of freedom of Welch and Satterthwaite, rounded down.
//! With one seed there is no such interval. The values of one side must differ only by seed.
//! Answers of `warp whatif` are compared by the ranges of their models. A comparison runs no
//! simulation.

mod answer;
mod documents;
mod interval;
mod pairing;
mod run;
mod side;
mod statistics;

use std::path::Path;

use base::input::RESULT_BYTES_MAX;
use base::significant;
use serde::Serialize;
use serde_json::{Value as Json, json};

use pairing::CellPairs;
use run::{ModelRange, TOTALS, WAF};
pub use side::Side;
use side::{SideCell, SideKind};

use crate::export::{self, ExportTable};
use crate::store::ResultStore;
use base::distinct;
use experiment::LabError;

/// Version of the JSON. It increases when a key is removed or changes its meaning.
const VERSION: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceVerdict {
    Same,
    /// B is higher: the interval lies above zero.
    More,
    /// B is lower: the interval lies below zero.
    Less,
    /// The interval contains zero.
    NoDifference,
    /// The model ranges of A and B overlap, so the model cannot tell A from B.
    NotSeen,
    OneSeed,
}

impl DifferenceVerdict {
    pub fn words(self) -> &'static str {
        match self {
            DifferenceVerdict::Same => "the same",
            DifferenceVerdict::More => "more",
            DifferenceVerdict::Less => "less",
            DifferenceVerdict::NoDifference => "no difference",
            DifferenceVerdict::NotSeen => "no difference that the model can see",
            DifferenceVerdict::OneSeed => "one seed",
        }
    }
}

/// A metric of a cell that both sides have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Name of the cell within its side. Empty if each side has only one.
    pub cell: String,
    /// Name of the metric, with its unit.
    pub metric: String,
    /// Mean over A's seeds.
    pub a: f64,
    /// Mean over B's seeds.
    pub b: f64,
    /// Value of B minus value of A.
    pub difference: f64,
    /// Difference as a share of A. `None` where A is 0.
    pub share: Option<f64>,
    /// The 95 % interval of the difference, if both sides have several seeds.
    pub interval: Option<[f64; 2]>,
    /// Intervals of A and B over the ensembles of their devices, where they were run.
    pub ensembles: [Option<[f64; 2]>; 2],
    /// True for A and for B if the answer marks the value as doubtful.
    pub doubtful: [bool; 2],
    /// Number of seeds of A and of B.
    pub seeds: [usize; 2],
    pub verdict: DifferenceVerdict,
}

#[derive(Clone, Debug)]
pub struct ResultComparison {
    pub a: Side,
    pub b: Side,
    /// Metrics that both sides have.
    pub rows: Vec<Difference>,
    /// Notes on the method, and on metrics that are not compared.
    pub notes: Vec<String>,
    /// Names of cells that only A or only B has.
    pub only: [Vec<String>; 2],
}

/// Finds two results and compares them.
///
/// # Errors
/// A name is neither a file nor a run, a file is not a result, or the results have no metric in
/// common.
pub fn find(a: &str, b: &str) -> Result<ResultComparison, LabError> {
    // Open the store only if a name is not a file.
    let side = |name: &str| match base::input::read_text(Path::new(name), RESULT_BYTES_MAX) {
        Ok(text) => Side::read(name, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !name.contains(['/', '.']) => {
            Side::from_run(&ResultStore::for_user()?.find(name)?)
        }
        Err(source) => Err(LabError::Io { file: name.to_string(), source }),
    };
    compare(side(a)?, side(b)?)
}

/// Compares two results.
///
/// # Errors
/// The results have no metric in common. The message describes both and names a command that helps.
pub fn compare(a: Side, b: Side) -> Result<ResultComparison, LabError> {
    let by_device = [&a, &b].iter().any(|side| side.devices().len() > 1);
    let of_a = a.by_cell(by_device, b.kind);
    let of_b = b.by_cell(by_device, a.kind);
    let pairing = CellPairs::new([&a, &b], [&of_a, &of_b]);
    let is_single = of_a.len() == 1 && of_b.len() == 1;
    let mut rows = Vec::new();
    for &(index_a, index_b) in &pairing.pairs {
        let cells = [&of_a[index_a], &of_b[index_b]];
        let name = match pairing.one {
            _ if is_single => "",
            Some(0) => &cells[1].name,
            _ => &cells[0].name,
        };
        rows.extend(differences(name, cells));
    }
    if rows.is_empty() {
        return Err(pairing::refusal([&a, &b], [&of_a, &of_b], &pairing));
    }
    let of_side = |side: usize, pair: &(usize, usize)| if side == 0 { pair.0 } else { pair.1 };
    let unpaired = |side: usize, cells: &[SideCell]| {
        let is_paired = |index: usize| pairing.pairs.iter().any(|pair| of_side(side, pair) == index);
        let cells = cells.iter().enumerate().filter(|(index, _)| !is_paired(*index));
        cells.map(|(_, cell)| cell.name.clone()).collect::<Vec<_>>()
    };
    let only = [unpaired(0, &of_a), unpaired(1, &of_b)];
    let notes = notes([&a, &b], [&of_a, &of_b], &pairing, &rows);
    Ok(ResultComparison { a, b, rows, notes, only })
}

fn differences<'a>(name: &'a str, [a, b]: [&'a SideCell; 2]) -> impl Iterator<Item = Difference> + 'a {
    a.metrics.iter().filter_map(move |(metric, values)| {
        let (_, others) = b.metrics.iter().find(|(other, _)| other == metric)?;
        let row = difference(name, metric, values, others);
        let is_of_model = metric.starts_with(WAF) && (a.range.is_some() || b.range.is_some());
        Some(if is_of_model {
            let range = |cell: &SideCell, values: &[f64]| {
                let range = cell.range.clone();
                range.unwrap_or_else(|| ModelRange::from_values(values))
            };
            let ranges = [range(a, values), range(b, others)];
            Difference {
                verdict: match row.verdict {
                    DifferenceVerdict::Same => DifferenceVerdict::Same,
                    _ => ranges[0].verdict(&ranges[1]),
                },
                ensembles: ranges.map(|range| range.interval),
                doubtful: [a.is_doubtful, b.is_doubtful],
                ..row
            }
        } else {
            row
        })
    })
}

fn difference(cell: &str, metric: &str, a: &[f64], b: &[f64]) -> Difference {
    let [mean_a, mean_b] = [a, b].map(interval::mean);
    let interval = interval::of_difference(a, b);
    let verdict = match interval {
        _ if a == b => DifferenceVerdict::Same,
        None => DifferenceVerdict::OneSeed,
        Some([low, _]) if low > 0.0 => DifferenceVerdict::More,
        Some([_, high]) if high < 0.0 => DifferenceVerdict::Less,
        Some(_) => DifferenceVerdict::NoDifference,
    };
    Difference {
        cell: cell.to_string(),
        metric: metric.to_string(),
        a: mean_a,
        b: mean_b,
        difference: mean_b - mean_a,
        share: (mean_a != 0.0).then(|| (mean_b - mean_a) / mean_a),
        interval,
        ensembles: [None, None],
        doubtful: [false, false],
        seeds: [a.len(), b.len()],
        verdict,
    }
}

/// Notes on the method, and on metrics that are not compared.
fn notes(sides: [&Side; 2], cells: [&[SideCell]; 2], pairing: &CellPairs, rows: &[Difference]) -> Vec<String> {
    const NAMES: [&str; 2] = ["A", "B"];
    let mut notes = Vec::new();
    if let [SideKind::Answer, SideKind::Answer] = sides.map(|side| side.kind) {
        notes.extend(answer::differing_questions(sides.map(|side| &side.origin["answers"])));
    }
    if let Some(one) = pairing.one {
        let first = &rows[0].metric;
        let nearest = rows
            .iter()
            .filter(|row| row.metric == *first)
            .min_by(|row, other| row.difference.abs().total_cmp(&other.difference.abs()))
            .expect("there is a row");
        let [own, other] = if one == 0 { [nearest.a, nearest.b] } else { [nearest.b, nearest.a] };
        notes.push(format!(
            "{} is one result, so it is compared with every cell of {}. Nearest in {first} is {}, with {} against {}",
            NAMES[one],
            NAMES[1 - one],
            nearest.cell,
            significant(other),
            significant(own)
        ));
    }
    if rows.iter().any(|row| TOTALS.contains(&row.metric.as_str())) {
        notes.push(format!(
            "{} depend on the bytes written, and on a scaled model also on its scale. Compare {WAF}, which is their \
             ratio",
            TOTALS.join(" and ")
        ));
    }
    for side in 0..2 {
        let metrics_of = |side: usize| {
            let paired = |(a, b): &(usize, usize)| &cells[side][if side == 0 { *a } else { *b }];
            let metrics = pairing.pairs.iter().map(paired).flat_map(|cell| &cell.metrics);
            distinct(metrics.map(|(name, _)| name.as_str()))
        };
        let (own, others) = (metrics_of(side), metrics_of(1 - side));
        let mut lacking = own.into_iter().filter(|name| !others.contains(name)).peekable();
        if lacking.peek().is_some() {
            notes.push(format!(
                "{} does not have these metrics: {}. {}",
                NAMES[1 - side],
                pairing::listed(lacking),
                sides[1 - side].kind.lacks()
            ));
        }
    }
    notes
}

impl ResultComparison {
    pub fn to_json(&self) -> Json {
        let side = |side: &Side| json!({ "name": side.name, "about": side.description(), "origin": side.origin, "notes": side.notes });
        json!({
            "format": "warp-comparison",
            "version": VERSION,
            "a": side(&self.a),
            "b": side(&self.b),
            "notes": self.notes,
            "rows": self.rows,
            "only_a": self.only[0],
            "only_b": self.only[1],
        })
    }

    pub fn columns(&self) -> ExportTable<'static> {
        export::tables::differences(&self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, json: &Json) -> Side {
        Side::read(name, &json.to_string()).expect("a result")
    }

    /// Results of an experiment: cells with their device and write amplification.
    fn experiment(cells: &[(&str, &str, f64)]) -> Side {
        let cells = cells.iter().map(|(device, variant, waf)| {
            json!({
                "device": device, "variant": variant, "grid": {}, "waf": waf, "tail_waf": waf + 0.1,
                "host_bytes_written": 4e9, "media_bytes_written": 4e9 * waf,
                "page_bytes": 4096, "capacity_bytes": 1e9,
                "owners": [{ "owner": "RUH 0", "waf": waf, "host_bytes_written": 4e9, "gc_pages_copied": 7 }],
            })
        });
        let cells: Vec<Json> = cells.collect();
        side("study", &json!({ "format": "warp-results", "experiment": "study", "cells": cells }))
    }

    fn statistics(host: f64, media: f64) -> Side {
        side("stats", &json!({ "hbmw": host, "mbmw": media }))
    }

    /// An answer of `warp whatif`: placements with their write amplification and interval.
    fn answer(name: &str, drive_bytes: u64, placements: &[(&str, f64, Option<[f64; 2]>)]) -> Json {
        let placements = placements
            .iter()
            .map(|(name, waf, interval)| json!({ "name": name, "write_amplification": waf, "interval": interval, "end_difference": 0.0 }));
        json!({
            "headline": "A sentence.", "workload": name, "device": "ssd_a", "drive_bytes": drive_bytes, "drive_writes_per_day": 1.0,
            "placements": placements.collect::<Vec<_>>(), "question": { "seed": 1, "overrides": {} },
        })
    }

    fn verdicts(comparison: &ResultComparison) -> Vec<(&str, &str, DifferenceVerdict)> {
        let rows = comparison.rows.iter();
        rows.map(|row| (row.cell.as_str(), row.metric.as_str(), row.verdict)).collect()
    }

    #[test]
    fn one_measurement_stands_beside_every_cell_and_the_nearest_is_said() {
        let cells = [("ssd_a", "Non-FDP", 2.5), ("ssd_a", "FDP", 1.5), ("ssd_a", "shared", 1.9)];
        for is_measured_first in [true, false] {
            let (one, many) = (statistics(2e9, 3.2e9), experiment(&cells));
            let compared = if is_measured_first { compare(one, many) } else { compare(many, one) };
            let compared = compared.expect("they have WAF");
            let wafs = compared.rows.iter().filter(|row| row.metric == "WAF");
            let found: Vec<(&str, f64, f64)> = wafs.map(|row| (row.cell.as_str(), row.a, row.b)).collect();
            let expected =
                cells.map(|(_, name, waf)| if is_measured_first { (name, 1.6, waf) } else { (name, waf, 1.6) });
            assert_eq!(found, expected);
            assert_eq!(compared.rows.len(), 9, "with host and media bytes of each");
            assert_eq!(compared.only, [[""; 0]; 2]);
            let notes = compared.notes.join("\n");
            let [one, many] = if is_measured_first { ["A", "B"] } else { ["B", "A"] };
            for said in [
                &format!(
                    "{one} is one result, so it is compared with every cell of {many}. Nearest in WAF is FDP, with \
                     1.500 against 1.600"
                ),
                "host, GB and media, GB depend on the bytes written",
                &format!("{one} does not have these metrics: WAF at the end; RUH 0 WAF; "),
                "counters of the whole drive",
            ] {
                assert!(notes.contains(said), "{said}: {notes}");
            }
        }
        // Totals of two runs are not comparable, because runs differ in length.
        let runs = compare(experiment(&cells), experiment(&cells)).expect("they are the same");
        assert!(runs.rows.iter().all(|row| !TOTALS.contains(&row.metric.as_str())));
        assert_eq!(runs.notes, [""; 0]);
    }

    #[test]
    fn a_cell_goes_with_its_namesake_and_with_all_others_without_one() {
        let all = [("ssd_a", "Non-FDP", 2.5), ("ssd_a", "FDP", 1.5)];
        let named = compare(experiment(&all), experiment(&[("ssd_a", "FDP", 1.4)])).expect("FDP is on both sides");
        assert!(named.rows.iter().all(|row| row.cell == "FDP"));
        assert_eq!(named.only, [vec!["Non-FDP".to_string()], vec![]]);
        let other = compare(experiment(&all), experiment(&[("ssd_a", "", 1.4)])).expect("one beside all");
        assert!(other.notes[0].contains("Nearest in WAF is FDP, with 1.500 against 1.400"), "{:?}", other.notes);
    }

    #[test]
    fn answers_are_compared_by_placement_within_what_the_model_can_see() {
        let a = answer(
            "t.csv",
            480_000_000_000,
            &[
                ("none", 2.0, Some([1.8, 2.3])),
                ("by file", 1.5, Some([1.4, 1.6])),
                ("SepBIT", 1.400, None),
                ("WARCIP", 1.400, None),
                ("oracle", 1.0, None),
            ],
        );
        let b = answer(
            "t.csv",
            960_000_000_000,
            &[
                ("none", 2.2, Some([2.0, 2.4])),
                ("by file", 1.3, Some([1.2, 1.35])),
                ("SepBIT", 1.405, None),
                ("WARCIP", 1.5, None),
                ("by volume", 1.2, None),
                ("oracle", 1.0, None),
            ],
        );
        let compared = compare(side("a", &a), side("b", &b)).expect("both have no placement");
        let expected = [
            ("none", "WAF", DifferenceVerdict::NotSeen),
            ("by file", "WAF", DifferenceVerdict::Less),
            ("SepBIT", "WAF", DifferenceVerdict::NotSeen),
            ("WARCIP", "WAF", DifferenceVerdict::More),
            ("oracle", "WAF", DifferenceVerdict::Same),
        ];
        assert_eq!(verdicts(&compared), expected);
        assert_eq!(compared.only, [vec![], vec!["by volume".to_string()]]);
        assert_eq!(compared.notes, ["the questions differ in capacity (480 GB in A, 960 GB in B)"]);
        assert_eq!(compared.to_json()["rows"][0]["ensembles"], json!([[1.8, 2.3], [2.0, 2.4]]));

        // The same answer as a stored run, and within the answers about a folder.
        let kept = json!({ "format": "warp-run", "title": "A sentence.", "result": { "format": "warp-results", "cells": [], "answer": b } });
        let kept = compare(side("a", &a), side("kept", &kept)).expect("an answer");
        assert_eq!(verdicts(&kept), expected);
        let folder = json!([a, answer("u.csv", 480_000_000_000, &[("none", 1.5, None)])]);
        let folders = compare(side("a", &folder), side("b", &folder)).expect("the same folder");
        assert_eq!(folders.rows.len(), 6);
        assert_eq!(folders.rows[5].cell, "u.csv | none");
        let error = compare(side("a", &a), side("b", &folder)).expect_err("other names").to_string();
        assert!(error.contains("`warp whatif WORKLOAD --json > answer.json`"), "{error}");
    }

    #[test]
    fn an_answer_is_compared_with_runs_by_name_or_by_its_device_or_says_how() {
        let asked = || {
            side("answer", &answer("t.csv", 480_000_000_000, &[("none", 2.0, Some([1.8, 2.3])), ("oracle", 1.0, None)]))
        };
        let named = compare(asked(), experiment(&[("ssd_a", "none", 1.8), ("ssd_a", "FDP", 1.5)]))
            .expect("none is on both sides");
        assert_eq!(
            verdicts(&named),
            [("none", "WAF at the end", DifferenceVerdict::NotSeen)],
            "both are read at the end"
        );
        let by_device =
            compare(asked(), experiment(&[("ssd_b", "FDP", 1.8), ("ssd_a", "FDP", 1.2)])).expect("one on its device");
        let cells: Vec<&str> = by_device.rows.iter().map(|row| row.cell.as_str()).collect();
        assert_eq!(cells, ["ssd_a | none", "ssd_a | oracle"]);
        assert_eq!(by_device.only[1], ["ssd_b | FDP"]);
        let counted = compare(asked(), statistics(2e9, 2.2e9)).expect("both have WAF");
        assert!(counted.notes[0].contains("Nearest in WAF is oracle, with 1.000 against 1.100"), "{:?}", counted.notes);
        assert_eq!(counted.rows[0].verdict, DifferenceVerdict::Less);

        let error = compare(asked(), experiment(&[("ssd_a", "80/20", 1.5), ("ssd_a", "FDP", 1.5)]));
        assert_eq!(
            error.expect_err("no name is the same").to_string(),
            "answer: there is nothing to compare. answer is an answer of `warp whatif` about t.csv, with the cells \
             none; oracle. study is a result of `warp run` about study, with the cells 80/20; FDP. Cells are paired \
             by name, or one cell with all of the other side. Use `warp run study --variant '80/20' --json > \
             cell.json`, then `warp results compare answer cell.json`"
        );
    }

    #[test]
    fn a_refusal_names_both_sides_and_the_next_command() {
        let fio = |job: &str| {
            let read = json!({ "total_ios": 5, "iops": 7 });
            side("fio.json", &json!({ "fio version": "fio-3.42", "jobs": [{ "jobname": job, "read": read }] }))
        };
        let asked = || side("answer", &answer("t.csv", 1, &[("none", 2.0, None)]));
        let idle =
            || side("idle", &json!({ "format": "warp-results", "cells": [{ "measures": { "hit ratio": 0.5 } }] }));
        let refusals = [
            (
                compare(statistics(1.0, 2.0), fio("r")),
                [
                    "FDP statistics, with WAF",
                    "a result of fio, with r read IOPS",
                    "warp results compare fio.json run.json",
                ],
            ),
            (
                compare(fio("r"), fio("s")),
                ["with r read IOPS", "with s read IOPS", "Give them the same names and run fio again"],
            ),
            (
                compare(fio("r"), experiment(&[("ssd_a", "FDP", 1.5)])),
                [
                    "a result of fio",
                    "a result of `warp run` about study",
                    "`warp run JOB.fio --device ssd_a --json > run.json`",
                ],
            ),
            (
                compare(asked(), fio("r")),
                ["whatif` about t.csv, with WAF", "a result of fio", "`warp results compare fio.json run.json`"],
            ),
            (
                compare(statistics(1.0, 2.0), idle()),
                [
                    "FDP statistics, with WAF",
                    "a result of `warp run`, with hit ratio",
                    "`warp run` with a workload that writes",
                ],
            ),
        ];
        for (compared, says) in refusals {
            let error = compared.expect_err("nothing in common").to_string();
            for part in says {
                assert!(error.contains(part), "{part}: {error}");
            }
            assert!(error.contains("nothing to compare") && !error.contains('\n'), "{error}");
        }
    }
}
