//! The sentence of an answer, and the notes that explain its exceptions.
//!
//! ```text
//! rows of the table -> Choice (which are comparable, which differ) -> sentence
//!                                                                  -> exceptions (a note for each)
//! ```
//!
//! The sentence names host placements first, block-level classifiers second, the oracle last. It
//! never contradicts the table.

use super::economics::WriteRate;
use super::placement_answer::PlacementAnswer;
use super::placements::Knowledge;
use analysis::interval::MATTERS;

/// Years above which wear is no concern, because the drive's other parts fail earlier.
const YEARS_MAX: f64 = 20.0;

/// Relative difference of write amplification below which two placements are called equal. Three
/// decimals do not show it.
const EQUAL: f64 = 2e-4;

/// The rows that the sentence names.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedRows<'a> {
    none: &'a PlacementAnswer,
    /// Best placement that a host can implement, even if it does not help. `None` if a host has no
    /// placement to choose.
    host: Option<&'a PlacementAnswer>,
    /// Best block-level classifier, if it improves on the host placement.
    pub(super) blocks: Option<&'a PlacementAnswer>,
    /// The oracle, if the other placements are not better.
    oracle: Option<&'a PlacementAnswer>,
}

impl PlacementAnswer {
    /// True if the model can tell that this placement writes less than no placement.
    fn is_better_than(&self, none: &PlacementAnswer) -> bool {
        let noise = self.end_difference.max(none.end_difference).max(MATTERS);
        let do_members_agree = self.change_interval.is_none_or(|[_, most]| most < 0.0);
        self.is_comparable && none.is_comparable && self.change < -noise && do_members_agree
    }

    /// Write amplification, with its interval if the row has one.
    fn amplification(&self) -> String {
        let interval = self.interval.map(|[low, high]| format!(" ({low:.2}-{high:.2})"));
        format!("{:.2}{}", self.write_amplification, interval.unwrap_or_default())
    }
}

/// The row of a kind with the least write amplification. Rows are sorted by the effort of the host,
/// so the first of equal rows wins.
fn best_of(rows: &[PlacementAnswer], knowledge: Knowledge) -> Option<&PlacementAnswer> {
    let of_kind = || rows.iter().filter(|row| row.knowledge == knowledge && row.is_comparable);
    let least = of_kind().map(|row| row.write_amplification).reduce(f64::min)?;
    of_kind().find(|row| row.write_amplification <= least * (1.0 + MATTERS))
}

impl<'a> NamedRows<'a> {
    /// Selects the rows. The first row must be no placement.
    pub(super) fn new(rows: &'a [PlacementAnswer]) -> NamedRows<'a> {
        let none = rows.first().expect("no placement is always run");
        assert_eq!(none.knowledge, Knowledge::None, "no placement comes first");
        let host = best_of(rows, Knowledge::Host);
        let reached =
            |row: Option<&PlacementAnswer>, than: f64| row.map_or(than, |row| row.write_amplification.min(than));
        let least = reached(host.filter(|row| row.is_better_than(none)), none.write_amplification);
        let is_more =
            |row: &&PlacementAnswer| row.is_better_than(none) && row.write_amplification < least * (1.0 - MATTERS);
        let blocks = best_of(rows, Knowledge::Blocks).filter(is_more);
        let least = reached(blocks, least);
        let is_least = |row: &&PlacementAnswer| row.write_amplification <= least * (1.0 + MATTERS);
        let oracle = best_of(rows, Knowledge::Future).filter(is_least);
        NamedRows { none, host, blocks, oracle }
    }

    /// Best placement that a host can implement, if it improves the result.
    pub(super) fn best(&self) -> Option<&'a PlacementAnswer> {
        self.host.filter(|row| row.is_better_than(self.none))
    }

    /// The headline of the answer. `what` names the workload: "trace", "job file", "workload".
    pub(super) fn sentence(&self, what: &str, rate: &WriteRate) -> String {
        let none = self.none;
        let writes = format!("The flash writes {} times what the host writes", none.amplification());
        let first = match (self.best(), self.host) {
            (Some(row), _) => self.gain(row, rate),
            _ if !none.is_comparable => format!(
                "This drive is too small for its open reclaim units, so its results do not show the effect of \
                 placement. {writes}"
            ),
            _ if none.write_amplification < 1.0 + MATTERS => {
                format!("Placement cannot reduce flash writes here. {writes}")
            }
            (None, Some(row)) if row.change > MATTERS => format!(
                "No placement that a host can choose helps. {writes}. {} gives {}",
                base::capitalized(&row.phrase),
                row.amplification()
            ),
            (None, Some(row)) => format!(
                "A host's placement makes no difference that the model can see. {writes}. {} gives {}{}",
                base::capitalized(&row.phrase),
                row.amplification(),
                convergence_note(row.end_difference.max(none.end_difference))
            ),
            (None, None) => format!("The {what} does not tell a host which data belongs together. {writes}"),
        };
        let further = match (self.blocks, self.oracle) {
            (Some(row), oracle) => {
                let oracle = oracle.map(|row| format!(", and the oracle {:.2}", row.write_amplification));
                format!(
                    " A layer that sorts blocks ({}) would reach {:.2}{}.",
                    row.name,
                    row.write_amplification,
                    oracle.unwrap_or_default()
                )
            }
            (None, Some(row)) if none.write_amplification >= 1.0 + MATTERS => {
                format!(" The oracle reaches {:.2}.", row.write_amplification)
            }
            (None, _) => String::new(),
        };
        format!("{first}.{further}")
    }

    /// The gain of a placement, in words.
    fn gain(&self, row: &PlacementAnswer, rate: &WriteRate) -> String {
        let [before, after] = [self.none, row].map(|row| row.write_amplification);
        let percent = |share: f64| format!("{:.0}", -share * 100.0);
        let members = row.change_interval.map(|[least, most]| (percent(most), percent(least)));
        let members = members.filter(|(low, high)| low != high);
        let members =
            members.map(|(low, high)| format!(". Over the ensemble of the drive, the cut is {low} to {high} %"));
        let years = self.none.life.zip(row.life).map(|(none, row)| [none.years, row.years]);
        let is_worn = years.is_some_and(|[before, _]| before <= YEARS_MAX);
        let flash = if years.is_some() && !is_worn {
            format!("from {before:.2} to {after:.2} TB for each TB of the host")
        } else {
            format!("from a WAF of {before:.2} to {after:.2}")
        };
        let life = match years {
            Some([before, after]) if is_worn => {
                format!(". The drive would live {} at {}", lives(after, before), rate.words)
            }
            Some(_) => format!(". Wear is no concern at {} (more than {YEARS_MAX:.0} years)", rate.words),
            None => String::new(),
        };
        format!(
            "{} would cut flash writes by {} %, {flash}{}{life}",
            base::capitalized(&row.phrase),
            percent(row.change),
            members.unwrap_or_default()
        )
    }

    /// Explanations of surprising rows of the table, one sentence each.
    pub(super) fn exceptions(&self, rows: &[PlacementAnswer]) -> Vec<String> {
        let names = |rows: &[&PlacementAnswer]| {
            let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            match names.split_last() {
                Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
                _ => names.concat(),
            }
        };
        let mut notes = Vec::new();
        let left_out: Vec<_> = rows.iter().filter(|row| !row.is_comparable).collect();
        if !left_out.is_empty() {
            notes.push(format!(
                "The sentence leaves out {}. Such results show a drive with too little free space, not the effect \
                 of placement.",
                names(&left_out)
            ));
        }
        let blocks: Vec<_> = rows.iter().filter(|row| row.knowledge == Knowledge::Blocks).collect();
        let is_equal = |row: &&&PlacementAnswer| {
            let others = blocks.iter().filter(|other| other.name != row.name);
            let near =
                |other: &&PlacementAnswer| (other.write_amplification / row.write_amplification - 1.0).abs() < EQUAL;
            others.into_iter().any(near)
        };
        let equal: Vec<&PlacementAnswer> = blocks.iter().filter(is_equal).copied().collect();
        if !equal.is_empty() {
            let why = if equal.iter().all(|row| row.handles <= 1) {
                "they found no difference and sent all writes to one reclaim unit handle"
            } else {
                "they sort these writes into the same groups, or into groups with equal lifetimes"
            };
            notes.push(format!("{} come to the same result, because {why}.", names(&equal)));
        }
        let more_than = |row: &PlacementAnswer, than: f64| {
            row.is_comparable && row.write_amplification > than * (1.0 + MATTERS.max(row.end_difference))
        };
        let none = self.none.write_amplification;
        if !blocks.is_empty() && blocks.iter().all(|row| more_than(row, none)) {
            notes.push(
                "Every classifier writes more than no placement. The groups that it separates do not die apart, and \
                 each open reclaim unit takes space from garbage collection."
                    .to_string(),
            );
        }
        let least = rows
            .iter()
            .filter(|row| row.knowledge != Knowledge::Future && row.is_comparable)
            .map(|row| row.write_amplification)
            .fold(none, f64::min);
        let oracle = rows.iter().find(|row| row.knowledge == Knowledge::Future);
        if let Some(oracle) = oracle.filter(|row| more_than(row, least)) {
            notes.push(format!(
                "The oracle comes to {:.2}, which is more than the {least:.2} of another placement. It sorts pages \
                 by the time when they die, and its result is not a proven lower bound.",
                oracle.write_amplification
            ));
        }
        notes
    }
}

fn convergence_note(share: f64) -> String {
    if share > 0.0 { format!(" (it still changes by {:.1} %)", share * 100.0) } else { String::new() }
}

/// Two lives such as "4.1 instead of 2.5 years", in a unit that shows their difference.
fn lives(after_years: f64, before_years: f64) -> String {
    let (unit, per_year) = if before_years < 1.0 { ("days", 365.0) } else { ("years", 1.0) };
    let digits = usize::from(per_year == 1.0);
    let number = |years: f64| format!("{:.digits$}", years * per_year);
    let after = if after_years > YEARS_MAX { format!("more than {YEARS_MAX:.0}") } else { number(after_years) };
    format!("{after} instead of {} {unit}", number(before_years))
}

/// Years for the table. Values above the life of the drive's other parts are not distinguished.
pub(super) fn years(years: f64) -> String {
    match years {
        years if years > YEARS_MAX => format!(">{YEARS_MAX:.0}"),
        years if years < 1.0 => format!("{years:.3}"),
        years => format!("{years:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, knowledge: Knowledge, write_amplification: f64, none: f64) -> PlacementAnswer {
        PlacementAnswer {
            name: name.to_string(),
            phrase: format!("separating by {name}"),
            knowledge,
            write_amplification,
            interval: None,
            cumulative_write_amplification: write_amplification,
            change: write_amplification / none - 1.0,
            change_interval: None,
            end_difference: 0.0,
            is_comparable: true,
            is_doubtful: false,
            handles: 2,
            life: None,
            years_interval: None,
            warnings: Vec::new(),
        }
    }

    fn rows(none: f64, volume: f64, sepbit: f64, warcip: f64, oracle: f64) -> Vec<PlacementAnswer> {
        vec![
            row("none", Knowledge::None, none, none),
            row("volume", Knowledge::Host, volume, none),
            row("SepBIT", Knowledge::Blocks, sepbit, none),
            row("WARCIP", Knowledge::Blocks, warcip, none),
            row("oracle", Knowledge::Future, oracle, none),
        ]
    }

    fn sentence(rows: &[PlacementAnswer]) -> String {
        NamedRows::new(rows).sentence("trace", &WriteRate::from_user(1.0))
    }

    #[test]
    fn the_host_comes_first_and_the_oracle_last() {
        let said = sentence(&rows(2.0, 1.5, 1.6, 1.3, 1.0));
        let expected = "Separating by volume would cut flash writes by 25 %, from a WAF of 2.00 to 1.50. A layer \
                        that sorts blocks (WARCIP) would reach 1.30, and the oracle 1.00.";
        assert_eq!(said, expected);
        assert!(
            sentence(&rows(2.0, 1.5, 1.6, 1.499, 1.0))
                .ends_with("from a WAF of 2.00 to 1.50. The oracle reaches 1.00.")
        );
    }

    #[test]
    fn what_the_model_cannot_see_is_not_said() {
        let mut changing = rows(2.07, 2.03, 2.2, 2.2, 1.9);
        changing[1].end_difference = 0.085;
        changing[0].interval = Some([1.62, 2.65]);
        let said = sentence(&changing);
        let expected = "A host's placement makes no difference that the model can see. The flash writes 2.07 \
                        (1.62-2.65) times what the host writes. Separating by volume gives 2.03 (it still changes \
                        by 8.5 %). The oracle reaches 1.90.";
        assert_eq!(said, expected);
        let mut members = rows(2.0, 1.9, 2.2, 2.2, 1.0);
        members[1].change_interval = Some([-0.2, 0.1]);
        assert!(sentence(&members).contains("no difference that the model can see"), "one member says more");
        members[1].change_interval = Some([-0.2, -0.02]);
        assert!(
            sentence(&members)
                .contains("from a WAF of 2.00 to 1.90. Over the ensemble of the drive, the cut is 2 to 20 %.")
        );
    }

    #[test]
    fn a_number_that_is_not_of_the_placement_is_left_out_and_named() {
        let mut all = rows(2.0, 1.5, 1.6, 1.3, 8.57);
        for index in [3, 4] {
            all[index].is_comparable = false;
        }
        let said = sentence(&all);
        assert!(said.ends_with("from a WAF of 2.00 to 1.50."), "{said}");
        let notes = NamedRows::new(&all).exceptions(&all);
        assert!(notes[0].starts_with("The sentence leaves out WARCIP and oracle."), "{notes:?}");
    }

    #[test]
    fn surprises_in_the_table_are_explained() {
        let all = rows(2.0, 1.5, 2.697, 2.697, 2.1);
        let notes = NamedRows::new(&all).exceptions(&all);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].starts_with("SepBIT and WARCIP come to the same result"), "{notes:?}");
        assert!(notes[1].starts_with("Every classifier writes more"), "{notes:?}");
        assert!(notes[2].starts_with("The oracle comes to 2.10"), "{notes:?}");
        let all = rows(2.0, 1.5, 1.6, 1.3, 1.0);
        assert!(NamedRows::new(&all).exceptions(&all).is_empty());
    }

    #[test]
    fn beyond_twenty_years_wear_is_no_concern() {
        let life = |years: f64| {
            Some(super::super::DriveLife {
                host_terabytes_written: 1.0,
                drive_writes_per_day: 1.0,
                years,
                dollars_per_terabyte_written: 1.0,
                carbon_kg_per_terabyte_written: 1.0,
            })
        };
        let with = |before: f64, after: f64| {
            let mut all = rows(2.0, 1.0, 2.2, 2.2, 1.0);
            (all[0].life, all[1].life) = (life(before), life(after));
            sentence(&all)
        };
        assert!(with(274.0, 405.0).contains("from 2.00 to 1.00 TB for each TB of the host. Wear is no concern"));
        assert!(with(12.0, 24.0).contains("would live more than 20 instead of 12.0 years at one drive write a day"));
        assert!(with(2.5, 4.1).contains("would live 4.1 instead of 2.5 years"));
        assert!(with(0.2, 0.4).contains("would live 146 instead of 73 days"));
        assert_eq!([0.2, 4.0, 21.0].map(years), ["0.200", "4.0", ">20"]);
    }

    /// For random tables, the sentence names no number that another row contradicts, and notes
    /// explain surprising rows.
    #[test]
    fn no_table_contradicts_its_sentence() {
        let mut state = 38_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1 << 24)
        };
        for round in 0..20_000 {
            let numbers: [f64; 5] = std::array::from_fn(|_| 1.0 + random() * 2.0);
            let mut all = rows(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]);
            for row in &mut all {
                row.is_comparable = random() < 0.9;
                row.end_difference = if random() < 0.2 { 0.1 } else { 0.0 };
            }
            let choice = NamedRows::new(&all);
            let (said, notes) = (sentence(&all), choice.exceptions(&all).join(" "));
            let place = format!("round {round}: {said} {notes} {all:?}");
            if said.contains("would cut") {
                assert!(all[1].is_comparable && numbers[1] < numbers[0] * 0.99, "{place}");
            }
            if let Some(layer) = choice.blocks {
                assert!(layer.write_amplification < numbers[0] && said.contains("A layer"), "{place}");
            }
            let shown = [choice.best(), choice.blocks].into_iter().flatten();
            let least = shown.map(|row| row.write_amplification).fold(numbers[0], f64::min);
            if said.contains("oracle") {
                assert!(numbers[4] <= least * 1.01 && all[4].is_comparable, "{place}");
            }
            let comparable = all[..4].iter().filter(|row| row.is_comparable);
            let least = comparable.map(|row| row.write_amplification).fold(numbers[0], f64::min);
            if all[4].is_comparable && numbers[4] > least * (1.01 + all[4].end_difference) {
                assert!(notes.contains("The oracle comes to"), "{place}");
            }
        }
    }
}
