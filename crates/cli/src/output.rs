//! Where output goes: standard output, standard error, files; and what is refused of it before a run.
//!
//! A result that cannot be written is never taken for written: the program says so in one sentence and ends with
//! [`crate::FAILED`], or, where the reader of a pipe went away (`warp ... | head`), without a word and with the exit code
//! that shells show for SIGPIPE.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::exit;

use experiment::LabError;

use crate::bad_option;

/// Exit code where nobody reads any more: 128 + SIGPIPE, as shells count.
const NO_READER: i32 = 141;

/// Prints to standard output, or ends the program.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        unwritten(&error);
    }
}

/// Fills standard output with a document, or ends the program.
pub fn stream(fill: impl FnOnce(&mut io::BufWriter<io::Stdout>) -> io::Result<()>) {
    let mut out = io::BufWriter::new(io::stdout());
    if let Err(error) = fill(&mut out).and_then(|()| out.flush()) {
        unwritten(&error);
    }
}

/// Ends the program because standard output takes no more.
pub fn unwritten(error: &io::Error) -> ! {
    if error.kind() == io::ErrorKind::BrokenPipe {
        exit(NO_READER);
    }
    complain(&format!("standard output cannot be written: {error}"));
    exit(i32::from(crate::FAILED))
}

/// Says something on standard error. There is nowhere to complain about that one, so it may fail.
pub fn complain(sentence: &str) {
    let _ = writeln!(io::stderr().lock(), "warp: {sentence}");
}

/// Help and version: in colours on a terminal.
pub fn print_help(help: &clap::Error) -> ! {
    if io::stdout().is_terminal() {
        help.exit();
    }
    print(&help.render().to_string());
    exit(0)
}

/// Whether a destination is standard output, by any of its names.
pub fn is_standard_output(path: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.iter().any(|name| path.as_os_str() == *name)
}

/// A file that a command is to write.
pub struct Destination<'a> {
    /// The option that names it.
    pub option: &'static str,
    /// What it names.
    pub path: &'a Path,
    /// What of it can go to standard output.
    pub content: Content,
}

/// What a file holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A document of text.
    Text,
    /// A document that no terminal shows.
    Binary,
    /// Something that is read at random, so it must be a file.
    Random,
}

impl Destination<'_> {
    /// Reason why it cannot go to standard output, where those before it go too, or JSON does.
    fn standard_output_problem(&self, before: &[Destination<'_>], prints_json: bool) -> Option<String> {
        let other = before.iter().find(|other| is_standard_output(other.path));
        let other = prints_json.then_some("--json").or(other.map(|other| other.option));
        match (self.content, other) {
            (Content::Random, _) => Some("standard output cannot be read at random; give a file".to_string()),
            (_, Some(other)) => Some(format!(
                "standard output takes one document, and {other} prints one; give a file"
            )),
            (Content::Binary, None) if io::stdout().is_terminal() => {
                Some("standard output is a terminal, which does not show Parquet; give a file or a pipe".to_string())
            }
            _ => None,
        }
    }
}

/// Refuses destinations that cannot be written, before hours are spent on what goes there. `folder` is made for results if
/// there is one; `prints_json` says that standard output is taken by a document.
///
/// # Errors
/// A folder that cannot be made or written to; two results for one file; two documents for standard output, or one that
/// does not belong there.
pub fn check(destinations: &[Destination<'_>], folder: Option<&Path>, prints_json: bool) -> Result<(), LabError> {
    for (index, destination) in destinations.iter().enumerate() {
        let Destination { option, path, .. } = destination;
        if is_standard_output(path) {
            let problem = destination.standard_output_problem(&destinations[..index], prints_json);
            problem.map_or(Ok(()), |problem| Err(bad_option(option, problem)))?;
            continue;
        }
        if let Some(other) = destinations[..index].iter().find(|other| other.path == *path) {
            let problem = format!("{} is where {} goes; give another file", path.display(), other.option);
            return Err(bad_option(option, problem));
        }
    }
    let made = folder.map(MadeFolders::make).transpose()?;
    for destination in destinations
        .iter()
        .filter(|destination| !is_standard_output(destination.path))
    {
        check_file(destination.path)?;
    }
    drop(made);
    Ok(())
}

/// Refuses a file that cannot be written, by a trial.
///
/// # Errors
/// It is a folder, or its folder does not exist or takes no file.
pub fn check_file(path: &Path) -> Result<(), LabError> {
    let refuse = |reason: &str| {
        let problem = format!("cannot be written ({reason}); give a file in a folder that exists");
        Err(LabError::invalid(&path.display().to_string(), problem))
    };
    if path.is_dir() {
        return refuse("it is a folder");
    }
    // A device or a pipe is opened when there is something to write.
    if path.exists() && !path.is_file() {
        return Ok(());
    }
    match tempfile::tempfile_in(folder_of(path)) {
        Ok(_) => Ok(()),
        Err(error) => refuse(&error.to_string()),
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Folders that were made for a trial and go away again, the innermost first.
struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    fn make(folder: &Path) -> Result<MadeFolders, LabError> {
        let missing = folder
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let made = MadeFolders(missing.map(Path::to_path_buf).collect());
        let tried = std::fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
        match tried {
            Ok(_) => Ok(made),
            Err(error) => {
                let problem = format!("is not a folder, nor can one be made there ({error}); give another folder");
                Err(LabError::invalid(&folder.display().to_string(), problem))
            }
        }
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // One that was not made, or in which somebody has put something meanwhile, stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}
