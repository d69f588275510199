//! Two results beside each other: what differs, by how much, and whether that is more than chance.
//!
//! ```text
//! a run that was kept | warp run --json | fio --output-format=json | nvme fdp stats -> Side: cells -> metrics -> values of seeds
//! Side, Side -> Comparison: a row for each metric that both have -> table, JSON, report.html, Arrow
//! ```
//!
//! Where both sides have several seeds the 95 % interval of the difference of the means stands beside it (Welch's t, with
//! Welch and Satterthwaite's degrees of freedom, rounded down); with one seed nothing is said of chance. Values of one side
//! are taken to be alike but for their seeds. Nothing is run here.

mod documents;
mod interval;
mod side;

use std::path::Path;

use base::input::RESULT_BYTES_MAX;
use serde::Serialize;
use serde_json::{Value as Json, json};

pub use side::Side;

use crate::export::{self, Table};
use crate::store::Store;
use experiment::error::LabError;

/// Version of the JSON; it grows when a key changes its meaning or goes.
const VERSION: u32 = 1;

/// What can be said of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every value of A is that of B.
    Same,
    /// The interval lies above zero: B is more.
    More,
    /// The interval lies below zero: B is less.
    Less,
    /// The interval has zero in it.
    NoDifference,
    /// One of the sides has one seed only.
    OneSeed,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Same => "the same",
            Verdict::More => "more",
            Verdict::Less => "less",
            Verdict::NoDifference => "no difference",
            Verdict::OneSeed => "one seed",
        }
    }
}

/// A metric of a cell on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The cell: what distinguishes it from the others of its side; empty, if there is one on each.
    pub cell: String,
    /// What was measured, with its unit.
    pub metric: String,
    /// Mean over A's seeds.
    pub a: f64,
    /// Mean over B's seeds.
    pub b: f64,
    /// B less A.
    pub difference: f64,
    /// In parts of A; `None` where A is 0.
    pub share: Option<f64>,
    /// The 95 % interval of the difference, if both have several seeds.
    pub interval: Option<[f64; 2]>,
    /// Seeds of A and of B.
    pub seeds: [usize; 2],
    /// What can be said of it.
    pub verdict: Verdict,
}

/// Two results beside each other.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What is compared with.
    pub a: Side,
    /// What is compared.
    pub b: Side,
    /// What both have.
    pub rows: Vec<Difference>,
    /// Cells that only A or only B has.
    pub only: [Vec<String>; 2],
}

/// Finds two results and compares them.
///
/// # Errors
/// One of them is not there or no result, or they have nothing in common.
pub fn find(a: &str, b: &str) -> Result<Comparison, LabError> {
    // A store is only opened when something in it is meant.
    let side = |name: &str| match base::input::read_text(Path::new(name), RESULT_BYTES_MAX) {
        Ok(text) => Side::read(name, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !name.contains(['/', '.']) => {
            Side::of_run(&Store::of_user()?.find(name)?)
        }
        Err(source) => Err(LabError::Io {
            file: name.to_string(),
            source,
        }),
    };
    compare(side(a)?, side(b)?)
}

/// Compares two results.
///
/// # Errors
/// They have nothing in common.
pub fn compare(a: Side, b: Side) -> Result<Comparison, LabError> {
    let by_device = [&a, &b].iter().any(|side| side.devices().len() > 1);
    let [of_a, of_b] = [&a, &b].map(|side| side.by_cell(by_device));
    let single = of_a.len() == 1 && of_b.len() == 1;
    let mut rows = Vec::new();
    for (cell, metrics) in &of_a {
        let other = if single {
            of_b.first()
        } else {
            of_b.iter().find(|(name, _)| name == cell)
        };
        let Some((_, others)) = other else { continue };
        let cell = if single { "" } else { cell.as_str() };
        let both = metrics.iter().filter_map(|(name, values)| {
            let (_, other) = others.iter().find(|(other, _)| other == name)?;
            Some(difference(cell, name, values, other))
        });
        rows.extend(both);
    }
    if rows.is_empty() {
        let problem = format!(
            "nothing to compare: it has {}, and {} has {}",
            a.about(),
            b.name,
            b.about()
        );
        return Err(LabError::invalid(&a.name, problem));
    }
    let missing = |own: &[side::NamedCell], other: &[side::NamedCell]| {
        let lacks = |name: &String| !single && other.iter().all(|(other, _)| other != name);
        let names = own.iter().map(|(name, _)| name);
        names.filter(|name| lacks(name)).cloned().collect::<Vec<_>>()
    };
    let only = [missing(&of_a, &of_b), missing(&of_b, &of_a)];
    Ok(Comparison { a, b, rows, only })
}

fn difference(cell: &str, metric: &str, a: &[f64], b: &[f64]) -> Difference {
    let [mean_a, mean_b] = [a, b].map(interval::mean);
    let interval = interval::of_difference(a, b);
    let verdict = match interval {
        _ if a == b => Verdict::Same,
        None => Verdict::OneSeed,
        Some([low, _]) if low > 0.0 => Verdict::More,
        Some([_, high]) if high < 0.0 => Verdict::Less,
        Some(_) => Verdict::NoDifference,
    };
    Difference {
        cell: cell.to_string(),
        metric: metric.to_string(),
        a: mean_a,
        b: mean_b,
        difference: mean_b - mean_a,
        share: (mean_a != 0.0).then(|| (mean_b - mean_a) / mean_a),
        interval,
        seeds: [a.len(), b.len()],
        verdict,
    }
}

impl Comparison {
    /// As JSON on one line.
    pub fn to_json(&self) -> Json {
        let side = |side: &Side| json!({ "name": side.name, "about": side.about(), "origin": side.origin, "notes": side.notes });
        json!({
            "format": "warp-comparison",
            "version": VERSION,
            "a": side(&self.a),
            "b": side(&self.b),
            "rows": self.rows,
            "only_a": self.only[0],
            "only_b": self.only[1],
        })
    }

    /// As columns: a row for each metric of each cell.
    pub fn columns(&self) -> Table<'static> {
        export::tables::differences(&self.rows)
    }
}
