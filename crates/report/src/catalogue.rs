//! Lists the available experiments, devices, job files and workloads, with one line about each.
//!
//! ```text
//! names in the working folder and built in + first words of each file + docs/reference/claims.md
//!     -> [CatalogueEntry] -> ReportTable, JSON
//! ```
//!
//! Durations come from the record of the last full run. Without a record there is no duration.
//! Listing runs no simulation.

use serde::Serialize;

use crate::rows::{CellValue, ReportTable, TableColumn};
use analysis::claims_record;
use experiment::definition::Experiment;
use experiment::error::LabError;
use experiment::profile::Profile;
use experiment::workloads;

/// Kind of a catalogue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Experiments of the papers, and the user's own studies.
    Experiments,
    Devices,
    /// Workloads as fio job files.
    Jobs,
    /// Workloads with a `kind`: caches, file systems, databases, tenants.
    Workloads,
}

impl EntryKind {
    pub const ALL: [EntryKind; 4] = [EntryKind::Experiments, EntryKind::Devices, EntryKind::Jobs, EntryKind::Workloads];

    pub fn name(self) -> &'static str {
        match self {
            EntryKind::Experiments => "experiments",
            EntryKind::Devices => "devices",
            EntryKind::Jobs => "jobs",
            EntryKind::Workloads => "workloads",
        }
    }

    /// Commands for an entry of this kind.
    fn remedy(self) -> &'static str {
        match self {
            EntryKind::Experiments => "`warp run NAME`, or `warp reproduce NAME` to compare it with the paper",
            EntryKind::Devices => "`warp show device NAME` shows every value with its source",
            EntryKind::Jobs => "`warp show job NAME` describes it, `warp run NAME --device DEVICE` runs it",
            EntryKind::Workloads => {
                "`warp show workload NAME` prints it, `warp run NAME --device DEVICE --drive-writes CAPACITIES` runs it"
            }
        }
    }

    pub fn entries(self) -> Result<Vec<CatalogueEntry>, LabError> {
        match self {
            EntryKind::Experiments => experiments(),
            EntryKind::Devices => devices(),
            EntryKind::Jobs => jobs(),
            EntryKind::Workloads => workloads_with_a_kind(),
        }
    }

    pub fn table(self, entries: &[CatalogueEntry]) -> ReportTable {
        let note = format!("{} ({})", self.name(), self.remedy());
        let has_durations = self == EntryKind::Experiments;
        let columns = [TableColumn::label("name"), TableColumn::text("about")].into_iter();
        let mut rows =
            ReportTable::new(columns.chain(has_durations.then(|| TableColumn::number("takes", "s")))).note(note);
        for entry in entries {
            let seconds = CellValue::optional(entry.seconds, |seconds| CellValue::Fixed(seconds, 0));
            let cells = [entry.name.as_str().into(), entry.title.as_str().into()];
            rows.add(cells.into_iter().chain(has_durations.then_some(seconds)));
        }
        rows
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CatalogueEntry {
    pub name: String,
    /// The question that it answers, or its description.
    pub title: String,
    /// Duration of its full form in the last record, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

impl CatalogueEntry {
    fn new(name: &str, title: impl Into<String>) -> CatalogueEntry {
        CatalogueEntry { name: name.to_string(), title: title.into(), seconds: None }
    }
}

fn experiments() -> Result<Vec<CatalogueEntry>, LabError> {
    let seconds = claims_record::recorded_seconds();
    let entry = |name: &String| {
        let experiment = Experiment::find(name)?;
        Ok(CatalogueEntry {
            seconds: seconds.get(&experiment.slug).copied().filter(|_| experiment.is_built_in()),
            ..CatalogueEntry::new(name, experiment.title)
        })
    };
    let mut names = Experiment::names();
    names.extend(Experiment::names_here());
    names.iter().map(entry).collect()
}

fn devices() -> Result<Vec<CatalogueEntry>, LabError> {
    let entry = |name: &String| Ok(CatalogueEntry::new(name, Profile::find(name)?.title));
    Profile::names().iter().map(entry).collect()
}

fn jobs() -> Result<Vec<CatalogueEntry>, LabError> {
    let entry = |name: &String| Ok(CatalogueEntry::new(name, first_sentence(&workloads::text_of_jobs(name)?)));
    workloads::job_names().iter().map(entry).collect()
}

fn workloads_with_a_kind() -> Result<Vec<CatalogueEntry>, LabError> {
    let entry = |name: &String| Ok(CatalogueEntry::new(name, first_sentence(&workloads::text_of_workload(name)?)));
    workloads::workload_names().iter().map(entry).collect()
}

/// First sentence of the comment at the beginning of a file.
fn first_sentence(text: &str) -> String {
    let comment = text.lines().map_while(|line| line.strip_prefix([';', '#']));
    let words: Vec<&str> = comment.flat_map(str::split_whitespace).collect();
    // A period before a number, as in "Fig. 4", does not end a sentence.
    let ends = |pair: &[&str]| pair[0].ends_with('.') && !pair[1].starts_with(char::is_numeric);
    let last = words.windows(2).position(ends).unwrap_or(words.len().saturating_sub(1));
    let sentence = words[..words.len().min(last + 1)].join(" ");
    sentence.trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_of_a_comment() {
        let text =
            "; Two streams, WARP Fig. 4a, on halves\n; of the drive. The paper gives no rates.\n[job]\nrw=write\n";
        assert_eq!(first_sentence(text), "Two streams, WARP Fig. 4a, on halves of the drive");
        assert_eq!(first_sentence("# One. Two. Three.\n"), "One");
        assert_eq!(first_sentence("[job]\n; not at the beginning\n"), "");
        assert_eq!(first_sentence("#\n"), "");
    }

    #[test]
    fn everything_that_is_built_in_says_what_it_is() {
        for kind in EntryKind::ALL {
            let entries = kind.entries().expect("they are right");
            assert!(!entries.is_empty(), "{kind:?}");
            for entry in &entries {
                assert!(entry.title.len() > 10, "{kind:?} {}: {:?}", entry.name, entry.title);
            }
            assert_eq!(kind.table(&entries).rows.len(), entries.len());
        }
    }

    #[test]
    fn most_experiments_have_a_record_of_how_long_they_take() {
        let entries = EntryKind::Experiments.entries().expect("they are right");
        let known = entries.iter().filter(|entry| entry.seconds.is_some()).count();
        assert!(10 * known > 9 * entries.len(), "{known} of {}", entries.len());
    }
}
