//! The table of fio options, with their names, their effects in the lab and the parsers of their
//! values.
//!
//! The row of an option is the single source for three users. These are the parser of job files,
//! the "nearest option" of an error, and the manual (`docs/reference/job-files.md`, whose tables a
//! test compares with this one). An option acts, has no effect for a stated reason, or is refused.
//! Options without effect are legal, so that the same file runs under real fio. Options are refused
//! if ignoring them would change the workload.
//!
//! The table does not know sections and inheritance (see `parse`).

use std::sync::LazyLock;

use super::error::OptionError;
use super::job::Job;

mod data;
mod idle;
mod pace;
mod refused;
mod requests;
mod silent;
#[cfg(test)]
mod tests;

/// Maximum length of a list of names in a table cell.
const CELL_BYTES_MAX: usize = 160;

/// The form of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// Empty, 0 or 1.
    Flag,
    /// Empty or a name.
    FlagOrName,
    /// 0 or 1.
    Bool,
    /// A whole number.
    Number,
    /// Bytes with a suffix.
    Size,
    /// Bytes with a suffix, or a percentage.
    SizeOrPercent,
    /// Time with a suffix.
    Time,
    /// Up to three values, in the order read, write, trim.
    PerDirection,
    /// A word, a name or a list with its own grammar.
    Text,
}

impl OptionKind {
    fn describe(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::FlagOrName => "flag or name",
            Self::Bool => "0 or 1",
            Self::Number => "number",
            Self::Size => "size",
            Self::SizeOrPercent => "size or %",
            Self::Time => "time",
            Self::PerDirection => "read,write,trim",
            Self::Text => "text",
        }
    }
}

/// Effect of an option in the lab.
#[derive(Clone, Copy)]
pub enum Effect {
    /// Shapes the workload through this setter.
    Active(fn(&mut Job, &str) -> Result<(), OptionError>),
    /// Legal without effect in the lab. [`FioOption::help`] states the reason.
    None,
    /// Like [`Effect::None`], but some values are refused.
    Checked(fn(&str) -> Result<(), OptionError>),
    /// Legal for fio, but the lab's workload would differ from fio's. Holds the proposed
    /// alternative.
    Refused(&'static str),
}

/// One option of fio.
#[derive(Clone, Copy)]
pub struct FioOption {
    /// fio's name and its aliases, separated by spaces or `=`.
    names: &'static str,
    /// Form of the value.
    pub kind: OptionKind,
    /// Meaning of the option in the lab, or the reason for having none.
    pub help: &'static str,
    /// Effect of the option in the lab.
    pub effect: Effect,
}

/// Row of an option that shapes the workload.
const fn active_option(
    names: &'static str,
    kind: OptionKind,
    help: &'static str,
    set: fn(&mut Job, &str) -> Result<(), OptionError>,
) -> FioOption {
    FioOption { names, kind, help, effect: Effect::Active(set) }
}

/// All options, in the order of the manual.
pub fn options() -> &'static [FioOption] {
    static ALL: LazyLock<Vec<FioOption>> = LazyLock::new(|| {
        let tables = [requests::OPTIONS, pace::OPTIONS, data::OPTIONS, refused::OPTIONS];
        tables.concat().into_iter().chain(silent::options()).collect()
    });
    &ALL
}

/// Finds an option by name or alias.
pub fn find(name: &str) -> Option<&'static FioOption> {
    options().iter().find(|option| option.names().any(|known| known == name))
}

/// Returns the known name closest to an unknown one, if any is close.
pub fn nearest(name: &str) -> Option<&'static str> {
    base::nearest(name, options().iter().flat_map(|option| option.names()))
}

/// Joins names to as few table cells as their maximum length allows.
fn name_cells(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut cells: Vec<String> = Vec::new();
    for name in names {
        match cells.last_mut() {
            Some(cell) if cell.len() + name.len() + 2 <= CELL_BYTES_MAX => *cell += &format!(", {name}"),
            _ => cells.push(name),
        }
    }
    cells
}

/// Tables of the manual in Markdown.
pub fn manual() -> String {
    let row = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let table = |title: &str, columns: &[&str], rows: String| {
        let rule = vec!["---"; columns.len()].join("|");
        format!("### {title}\n\n{}|{rule}|\n{rows}", row(columns))
    };
    let acting = options().iter().filter(|option| matches!(option.effect, Effect::Active(_)));
    let acting = acting.map(|option| row(&[&option.in_markdown(), option.kind.describe(), option.help]));
    let refused = options().iter().filter_map(|option| match option.effect {
        Effect::Refused(remedy) => Some(row(&[&option.in_markdown(), option.help, remedy])),
        Effect::Active(_) | Effect::None | Effect::Checked(_) => None,
    });
    let silent: Vec<&FioOption> = options().iter().filter(|option| option.is_silent()).collect();
    let silent = silent.chunk_by(|a, b| a.help == b.help).flat_map(|group| {
        let cells = name_cells(group.iter().map(|option| option.in_markdown()));
        cells.into_iter().map(move |names| row(&[group[0].help, &names]))
    });
    [
        table("Options that act", &["option", "value", "meaning in the lab"], acting.collect()),
        table("Options that are refused", &["option", "why", "instead"], refused.collect()),
        table("Options without effect", &["why", "options"], silent.collect()),
    ]
    .join("\n")
}

impl FioOption {
    /// True if the option is accepted without effect.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self.effect, Effect::None | Effect::Checked(_))
    }

    /// True if the option is accepted without effect, but would have one on a drive with timing.
    pub fn is_pretended(&self) -> bool {
        self.help.starts_with(silent::PRETENDED)
    }

    /// Name and aliases.
    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.names.split([' ', '='])
    }

    /// fio's name.
    pub fn name(&self) -> &'static str {
        self.names().next().expect("an option has a name")
    }

    /// Name and aliases in Markdown.
    fn in_markdown(&self) -> String {
        self.names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    }
}

pub(super) use idle::idle_reason;

const ONE_TARGET: &str = "Write one section per target";

/// Option that is read before the rest of its section, because it defines the meaning of numbers.
pub(super) const READ_FIRST: &str = "kb_base";
