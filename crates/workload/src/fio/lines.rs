//! The lines of a job file, with comments, sections, included files and environment variables.
//!
//! The input is text. The output is sections with their option lines and the location of every
//! line. Options of an included file are read in place of the `include` line. As in fio, an
//! included file begins no sections. Errors are collected, and reading continues behind them.
//!
//! This module does not know options.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::HumanBytes;
use base::input::TEXT_BYTES_MAX;

use super::error::{FileLine, JobError, OptionError};

/// Maximum bytes of a line without its comment. Jobs hold copies of the text.
const LINE_BYTES_MAX: usize = 8192;
/// Maximum nesting of included files.
const DEPTH_MAX: usize = 8;
/// Maximum included files of a job file in total.
const INCLUDES_MAX: usize = 256;

/// Characters of a line that a message shows.
const SHOWN_CHARS: usize = 200;

/// One `option=value` or `option` line.
pub(super) struct OptionLine {
    pub(super) place: FileLine,
    pub(super) name: String,
    pub(super) value: Option<String>,
}

impl OptionLine {
    pub(super) fn bytes(&self) -> usize {
        self.name.len() + self.value.as_ref().map_or(0, String::len)
    }
}

/// A section with its lines.
pub(super) struct JobSection {
    pub(super) place: FileLine,
    pub(super) name: String,
    pub(super) lines: Vec<OptionLine>,
}

/// External inputs of a job file.
pub struct IncludeContext<'a> {
    /// Returns the text of an included file.
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
    /// Returns the value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// Reads files and variables of the system.
impl Default for IncludeContext<'_> {
    fn default() -> Self {
        IncludeContext {
            read: &|path| base::input::read_text(path, TEXT_BYTES_MAX),
            variable: &|name| std::env::var(name).ok(),
        }
    }
}

impl IncludeContext<'_> {
    /// Replaces each `${NAME}` by the variable's value. fio treats an unset variable as empty. Here
    /// it is refused.
    pub(super) fn substitute(&self, value: &str) -> Result<String, OptionError> {
        let mut out = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, behind) = after
                .split_once('}')
                .ok_or_else(|| OptionError::new("a variable has no closing brace", "Write ${NAME}"))?;
            let value = (self.variable)(name).ok_or_else(|| {
                OptionError::new(
                    format!("the variable {name} is not set"),
                    format!("Set it in the environment, for example {name}=... warp run"),
                )
            })?;
            out.push_str(before);
            out.push_str(&value);
            rest = behind;
        }
        Ok(out + rest)
    }
}

/// Returns the sections of a job file in order and adds errors in its lines to `problems`.
pub(super) fn sections(
    text: &str,
    file: &str,
    surroundings: &IncludeContext<'_>,
    problems: &mut Vec<JobError>,
) -> Vec<JobSection> {
    let mut reader = SectionReader {
        surroundings,
        problems,
        sections: Vec::new(),
        open: vec![PathBuf::from(file)],
        includes: 0,
        included_bytes: 0,
    };
    reader.read(text, file);
    reader.sections
}

struct SectionReader<'a> {
    surroundings: &'a IncludeContext<'a>,
    problems: &'a mut Vec<JobError>,
    sections: Vec<JobSection>,
    /// Nested files that are being read, outermost first.
    open: Vec<PathBuf>,
    /// Number and bytes of the included files so far.
    includes: usize,
    included_bytes: u64,
}

impl SectionReader<'_> {
    fn read(&mut self, text: &str, file: &str) {
        let file: Arc<str> = Arc::from(file);
        for (index, raw) in text.lines().enumerate() {
            let line = raw.split([';', '#']).next().unwrap_or("").trim();
            let place = FileLine { file: Arc::clone(&file), line: index + 1 };
            if line.is_empty() {
                continue;
            }
            if let Err(complaint) = self.line(line, &place) {
                let shown: String = line.chars().take(SHOWN_CHARS).collect();
                self.problems.push(complaint.at(&place, format!("`{shown}`")));
            }
        }
    }

    fn line(&mut self, line: &str, place: &FileLine) -> Result<(), OptionError> {
        if line.len() > LINE_BYTES_MAX {
            return Err(OptionError::new(
                format!("the line has {} bytes", line.len()),
                format!("Write at most {LINE_BYTES_MAX}"),
            ));
        }
        if let Some(header) = line.strip_prefix('[') {
            if self.open.len() > 1 {
                return Err(OptionError::new(
                    "the included file has a section, but may contain only options, as in fio",
                    "Begin the section in the including file",
                ));
            }
            let name = header.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
            // Lines below an unclosed header belong to that section, not to none.
            self.sections.push(JobSection {
                place: place.clone(),
                name: name.unwrap_or(header).to_owned(),
                lines: Vec::new(),
            });
            return match name {
                Some(_) => Ok(()),
                None => Err(OptionError::new("the section has no name or no closing bracket", "Write [name]")),
            };
        }
        if line == "include" || line.starts_with("include ") {
            return self.include(line["include".len()..].trim(), place);
        }
        let section = self.section()?;
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
            None => (line, None),
        };
        section.lines.push(OptionLine { place: place.clone(), name: name.to_owned(), value });
        Ok(())
    }

    /// Section of the current line.
    fn section(&mut self) -> Result<&mut JobSection, OptionError> {
        self.sections.last_mut().ok_or_else(|| {
            OptionError::new("the option stands before the first section", "Write [global] or [name] above it")
        })
    }

    /// Reads a file in the folder of the including file.
    fn include(&mut self, name: &str, place: &FileLine) -> Result<(), OptionError> {
        if name.is_empty() {
            return Err(OptionError::new("the name of the file is missing", "Write include FILE"));
        }
        self.section()?;
        let path = Path::new(&*place.file).with_file_name(name);
        if self.open.contains(&path) {
            return Err(OptionError::new(
                "the file includes itself, directly or through others",
                "Move the common part to a third file",
            ));
        }
        if self.open.len() > DEPTH_MAX {
            return Err(OptionError::new(
                format!("more than {DEPTH_MAX} files include each other"),
                "Merge some of them",
            ));
        }
        let too_much = |what: String| OptionError::new(what, "Include fewer files, or move their lines into this one");
        self.includes += 1;
        // One error is enough, so files behind the first refused one are skipped.
        if self.includes > INCLUDES_MAX + 1 {
            return Ok(());
        }
        if self.includes > INCLUDES_MAX {
            return Err(too_much(format!("the job file includes more than {INCLUDES_MAX} files")));
        }
        let text = (self.surroundings.read)(&path).map_err(|error| {
            OptionError::new(
                format!("{} cannot be read ({error})", path.display()),
                "Give a file in the folder of this one, or an absolute path",
            )
        })?;
        self.included_bytes += text.len() as u64;
        if self.included_bytes > TEXT_BYTES_MAX {
            let most = HumanBytes(TEXT_BYTES_MAX);
            return Err(too_much(format!("the included files have more than {most} in total")));
        }
        self.open.push(path.clone());
        assert!(
            self.open.len() <= DEPTH_MAX + 1,
            "{} files are read at once, at most {DEPTH_MAX} are included",
            self.open.len()
        );
        self.read(&text, &path.display().to_string());
        let closed = self.open.pop();
        assert_eq!(closed, Some(path), "another file ends than the included one");
        Ok(())
    }
}
