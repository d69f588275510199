//! The table of fio options: what each one is called, what it does in the lab, and how its value is read.
//!
//! One row per option is the single source for reading job files, for the "nearest option" of an error and for the manual
//! (`docs/job-files.md`, whose tables a test compares with this one). An option either acts, has no effect for a stated reason
//! (it is legal, so that the same file runs under real fio), or is refused because ignoring it would change the workload.
//!
//! The table does not know about sections and inheritance; see `parse`.

use std::sync::LazyLock;

use super::error::Complaint;
use super::job::Job;

mod data;
mod idle;
mod pace;
mod refused;
mod requests;
mod silent;
#[cfg(test)]
mod tests;

/// What an option's value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, or 0 or 1.
    Flag,
    /// Nothing, or a name.
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
    /// Up to three values: read,write,trim.
    PerDirection,
    /// A word, a name or a list with a grammar of its own.
    Text,
}

impl Kind {
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

/// What the lab does with an option.
#[derive(Clone, Copy)]
pub enum Effect {
    /// It shapes the workload: this sets it.
    Acts(fn(&mut Job, &str) -> Result<(), Complaint>),
    /// Legal, and nothing in the lab depends on it, for the reason in [`FioOption::help`].
    None,
    /// As [`Effect::None`], but some values are refused.
    Checked(fn(&str) -> Result<(), Complaint>),
    /// Legal for fio, but the lab would run another workload than fio; what to do instead.
    Refused(&'static str),
}

/// One option of fio.
#[derive(Clone, Copy)]
pub struct FioOption {
    /// fio's name.
    pub name: &'static str,
    /// fio's other names for it, with spaces between.
    pub aliases: &'static str,
    /// The shape of its value.
    pub kind: Kind,
    /// What it means in the lab, or why it means nothing there.
    pub help: &'static str,
    /// What the lab does with it.
    pub effect: Effect,
}

/// A row of an option that shapes the workload.
const fn acts(
    name: &'static str,
    aliases: &'static str,
    kind: Kind,
    help: &'static str,
    set: fn(&mut Job, &str) -> Result<(), Complaint>,
) -> FioOption {
    FioOption {
        name,
        aliases,
        kind,
        help,
        effect: Effect::Acts(set),
    }
}

/// All options, in the order of the manual.
pub fn options() -> &'static [FioOption] {
    static ALL: LazyLock<Vec<FioOption>> = LazyLock::new(|| {
        let tables = [requests::OPTIONS, pace::OPTIONS, data::OPTIONS, refused::OPTIONS];
        tables.concat().into_iter().chain(silent::options()).collect()
    });
    &ALL
}

/// The option of this name or alias.
pub fn find(name: &str) -> Option<&'static FioOption> {
    options()
        .iter()
        .find(|option| option.names().any(|known| known == name))
}

/// The known name nearest to an unknown one, if any is near.
pub fn nearest(name: &str) -> Option<&'static str> {
    base::nearest(name, options().iter().flat_map(|option| option.names()))
}

/// The tables of the manual, as Markdown.
pub fn manual() -> String {
    let row = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let table = |title: &str, columns: &[&str], rows: String| {
        let rule = vec!["---"; columns.len()].join("|");
        format!("### {title}\n\n{}|{rule}|\n{rows}", row(columns))
    };
    let acting = options()
        .iter()
        .filter(|option| matches!(option.effect, Effect::Acts(_)));
    let acting = acting.map(|option| row(&[&option.in_markdown(), option.kind.describe(), option.help]));
    let refused = options().iter().filter_map(|option| match option.effect {
        Effect::Refused(remedy) => Some(row(&[&option.in_markdown(), option.help, remedy])),
        Effect::Acts(_) | Effect::None | Effect::Checked(_) => None,
    });
    let silent: Vec<&FioOption> = options().iter().filter(|option| option.is_silent()).collect();
    let silent = silent.chunk_by(|a, b| a.help == b.help).map(|group| {
        let names: Vec<String> = group.iter().map(|option| option.in_markdown()).collect();
        row(&[group[0].help, &names.join(", ")])
    });
    [
        table(
            "Options that act",
            &["option", "value", "meaning in the lab"],
            acting.collect(),
        ),
        table(
            "Options that are refused",
            &["option", "why", "instead"],
            refused.collect(),
        ),
        table("Options without effect", &["why", "options"], silent.collect()),
    ]
    .join("\n")
}

impl FioOption {
    /// Whether it is accepted without effect.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self.effect, Effect::None | Effect::Checked(_))
    }

    /// Whether it is accepted without effect, though it would change something on a drive whose commands take time.
    pub fn is_pretended(&self) -> bool {
        self.help.starts_with(silent::PRETENDED)
    }

    /// The name and the aliases.
    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.split_whitespace())
    }

    /// The name and the aliases, as Markdown.
    fn in_markdown(&self) -> String {
        self.names()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

pub(super) use idle::why_idle;

const ONE_TARGET: &str = "one target per job: write one section per target";

/// The option that is read before the others of its section, because it says what their numbers mean.
pub(super) const READ_FIRST: &str = "kb_base";
