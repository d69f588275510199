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

use crate::rows::{CellValue, ReportTable};
use analysis::claims_record;
use experiment::{Experiment, LabError, Profile, workloads};

/// Reads the title of an entry by its name.
type TitleOf = fn(&str) -> Result<String, LabError>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EntryKind {
    /// Figures and tables of the papers, and your own studies in this folder
    Experiments,
    /// Device profiles
    Devices,
    /// fio job files
    Jobs,
    /// Models of caches, file systems and databases
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

    /// All entries of this kind, by name.
    pub fn entries(self) -> Result<Vec<CatalogueEntry>, LabError> {
        let (names, title): (Vec<String>, TitleOf) = match self {
            EntryKind::Experiments => return experiments(),
            EntryKind::Devices => (Profile::names(), |name| Ok(Profile::find(name)?.title)),
            EntryKind::Jobs => (workloads::job_names(), |name| Ok(first_sentence(&workloads::text_of_jobs(name)?))),
            EntryKind::Workloads => {
                (workloads::workload_names(), |name| Ok(first_sentence(&workloads::text_of_workload(name)?)))
            }
        };
        let entry = |name: String| Ok(CatalogueEntry { title: title(&name)?, name, seconds: None });
        names.into_iter().map(entry).collect()
    }

    pub fn table(self, entries: &[CatalogueEntry]) -> ReportTable {
        let remedy = match self {
            EntryKind::Experiments => "`warp run NAME`, or `warp reproduce NAME` to compare it with the paper",
            EntryKind::Devices => "`warp show device NAME` shows every value with its source",
            EntryKind::Jobs => "`warp show job NAME` describes it, `warp run NAME --device DEVICE` runs it",
            EntryKind::Workloads => {
                "`warp show workload NAME` prints it, `warp run NAME --device DEVICE --drive-writes CAPACITIES` runs it"
            }
        };
        let note = format!("{} ({remedy})", self.name());
        let has_durations = self == EntryKind::Experiments;
        let mut rows = ReportTable::default().labels(["name"]).texts(["about"]);
        rows = rows.numbers("s", has_durations.then_some("takes")).note(note);
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

fn experiments() -> Result<Vec<CatalogueEntry>, LabError> {
    let seconds = claims_record::recorded_seconds();
    let entry = |name: String| {
        let experiment = Experiment::find(&name)?;
        let seconds = seconds.get(&experiment.slug).copied().filter(|_| experiment.is_built_in());
        Ok(CatalogueEntry { name, title: experiment.title, seconds })
    };
    let mut names = Experiment::names();
    names.extend(Experiment::names_here());
    names.into_iter().map(entry).collect()
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
