//! Output to standard output, standard error and files, with checks of the destinations before a
//! run.
//!
//! A failed write is never ignored. The program reports the failure in one sentence and ends with
//! [`crate::FAILED`]. If the reader of a pipe closed it (`warp ... | head`), the program ends
//! silently with the exit code that shells show for SIGPIPE.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::exit;

use experiment::LabError;
use report::rows;

use crate::bad_option;

/// Exit code after the reader closed the pipe, 128 + SIGPIPE by the convention of shells.
const NO_READER: i32 = 141;

/// Prints to standard output. Ends the program on failure.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        unwritten(&error);
    }
}

/// Writes a document to standard output. Ends the program on failure.
pub fn stream(fill: impl FnOnce(&mut io::BufWriter<io::Stdout>) -> io::Result<()>) {
    let mut out = io::BufWriter::new(io::stdout());
    if let Err(error) = fill(&mut out).and_then(|()| out.flush()) {
        unwritten(&error);
    }
}

/// Ends the program after a failed write to standard output.
pub fn unwritten(error: &io::Error) -> ! {
    if error.kind() == io::ErrorKind::BrokenPipe {
        exit(NO_READER);
    }
    print_error(&format!("standard output cannot be written ({error})"));
    exit(i32::from(crate::FAILED))
}

/// Prints a message to standard error, in lines of a terminal's width. Ignores a failure, which
/// cannot be reported.
pub fn print_error(sentence: &str) {
    let message = rows::wrapped_message(&format!("warp: {}", base::with_short_numbers(sentence)));
    let _ = io::stderr().lock().write_all(message.as_bytes());
}

/// Prints help or the version, with colors on a terminal.
pub fn print_help(help: &clap::Error) -> ! {
    if io::stdout().is_terminal() {
        help.exit();
    }
    print(&help.render().to_string());
    exit(0)
}

/// Returns true if a path is any of the names of standard output.
pub fn is_standard_output(path: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.iter().any(|name| path.as_os_str() == *name)
}

pub struct OutputFile<'a> {
    pub option: &'static str,
    pub path: &'a Path,
    /// Content of the file, which decides if standard output can take it.
    pub content: OutputContent,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OutputContent {
    Text,
    /// Binary document, unreadable on a terminal.
    Binary,
    /// Document with random access, which must be a file.
    Random,
}

impl OutputFile<'_> {
    /// Reason against standard output, for example an earlier destination or JSON that uses it too.
    fn standard_output_problem(&self, before: &[OutputFile<'_>], prints_json: bool) -> Option<String> {
        let other = before.iter().find(|other| is_standard_output(other.path));
        let other = prints_json.then_some("--json").or(other.map(|other| other.option));
        match (self.content, other) {
            (OutputContent::Random, _) => Some("standard output has no random access. Give a file".to_string()),
            (_, Some(other)) => {
                Some(format!("standard output takes one document, and {other} prints one already. Give a file"))
            }
            (OutputContent::Binary, None) if io::stdout().is_terminal() => {
                Some("standard output is a terminal, which cannot show Parquet. Give a file or a pipe".to_string())
            }
            _ => None,
        }
    }
}

/// Rejects unwritable destinations before the hours of a run. Creates `folder` as a trial and
/// removes it again. With `prints_json`, a document occupies standard output.
///
/// # Errors
/// The folder cannot be created or written, two results share a file, or standard output cannot
/// take the document.
pub fn check(destinations: &[OutputFile<'_>], folder: Option<&Path>, prints_json: bool) -> Result<(), LabError> {
    for (index, destination) in destinations.iter().enumerate() {
        let OutputFile { option, path, .. } = destination;
        if is_standard_output(path) {
            let problem = destination.standard_output_problem(&destinations[..index], prints_json);
            problem.map_or(Ok(()), |problem| Err(bad_option(option, problem)))?;
            continue;
        }
        if let Some(other) = destinations[..index].iter().find(|other| other.path == *path) {
            let problem = format!("{} is the file of {} already. Give another file", path.display(), other.option);
            return Err(bad_option(option, problem));
        }
        // A named pipe would wait for a reader.
        if destination.content == OutputContent::Random && path.exists() && !path.is_file() && !path.is_dir() {
            let problem = format!("{} is not a regular file. Give a file", path.display());
            return Err(bad_option(option, problem));
        }
    }
    let made = folder.map(CreatedFolders::create).transpose()?;
    for destination in destinations.iter().filter(|destination| !is_standard_output(destination.path)) {
        check_file(destination.path)?;
    }
    drop(made);
    Ok(())
}

/// Tests if a file can be written.
pub fn check_file(path: &Path) -> Result<(), LabError> {
    let refuse = |reason: &str| {
        let problem = format!("cannot be written ({reason}). Give a file in a folder that exists");
        Err(LabError::invalid(&path.display().to_string(), problem))
    };
    if path.is_dir() {
        return refuse("it is a folder");
    }
    // Devices and pipes are opened only when there is data to write.
    if path.exists() && !path.is_file() {
        return Ok(());
    }
    // Attributes of the file (chattr) can forbid its replacement.
    if let Err(error) = std::fs::File::options().write(true).open(path)
        && rustix::io::Errno::from_io_error(&error) == Some(rustix::io::Errno::PERM)
    {
        return refuse("its attributes forbid a change, as lsattr shows");
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

/// Folders created for the trial, innermost first, removed on drop.
struct CreatedFolders(Vec<PathBuf>);

impl CreatedFolders {
    fn create(folder: &Path) -> Result<CreatedFolders, LabError> {
        let missing = folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let made = CreatedFolders(missing.map(Path::to_path_buf).collect());
        let create = || std::fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
        // Another run beside this one may just remove its own empty folders.
        let tried = create().or_else(|_| create());
        match tried {
            Ok(_) => Ok(made),
            Err(error) => {
                let problem = format!("is not a folder and cannot be created ({error}). Give another folder");
                Err(LabError::invalid(&folder.display().to_string(), problem))
            }
        }
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // A folder that is not empty or was never created is left alone.
            let _ = std::fs::remove_dir(folder);
        }
    }
}
