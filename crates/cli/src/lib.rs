//! The `warp` command: parses arguments, calls the other crates, and prints or writes the results.
//! This crate has no logic of its own.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | success |
//! | 1 | a claim, a limit or a golden result fails, or a result cannot be written |
//! | 2 | bad input, with one sentence on standard error |
//! | 3 | a fault plan cut the power of a served drive |
//! | 130 | stopped with Ctrl-C, after the results so far were printed and written |
//! | 141 | the reader of standard output closed the pipe |
//!
//! `warp capture` and `warp guest` return the exit code of their command. `warp guest` also returns
//! 124 after its time limit and 125 without a guest.

mod advise;
mod arguments;
mod bench;
mod calibrate;
mod capture;
mod characterize;
mod check;
mod execute;
mod export;
mod faults;
mod guest;
mod hints;
mod inspect;
mod lifetimes;
mod manual;
mod output;
mod plan;
mod renamed;
mod reproduce;
mod results;
mod run;
mod run_on_drive;
mod serve;
mod show;
mod studies;
mod studio;
mod target;
mod token;
mod watch;
mod whatif;

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;
use experiment::LabError;

use arguments::{Arguments, DriveCommand, WarpCommand};
use output::{print, print_error};

/// Exit code if a claim fails or a result cannot be written.
const FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;
/// Exit code of a server after a simulated power loss.
const POWER_LOST: i32 = 3;
/// Exit code after Ctrl-C, 128 + SIGINT by the convention of shells.
const STOPPED: u8 = 130;

/// Any error of the input, of a server or of a drive.
type AnyError = Box<dyn std::error::Error>;

/// Outcome of a command with valid input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExitOutcome {
    Done,
    Failed,
    Stopped,
    /// Exit code of a child command.
    As(u8),
}

/// Runs the command with these arguments and returns its exit code. The first argument is the
/// program name. Arguments that clap rejects, and a reader that closes the pipe, end the process
/// immediately.
pub fn main(arguments: Vec<OsString>) -> u8 {
    let is_bare = arguments.len() <= 2;
    let arguments = Arguments::try_parse_from(&arguments).unwrap_or_else(|error| refuse(&error, &arguments));
    let outcome: Result<ExitOutcome, AnyError> = match &arguments.command {
        WarpCommand::Run(command) if command.remote.drive.is_some() => run_on_drive::run(command),
        WarpCommand::Run(command) => run::run(command, is_bare).map_err(AnyError::from),
        WarpCommand::WhatIf(command) => whatif::whatif(command).map_err(AnyError::from),
        WarpCommand::Plan(command) => plan::plan(command).map_err(AnyError::from),
        WarpCommand::Reproduce(command) => reproduce::reproduce(command).map_err(AnyError::from),
        WarpCommand::List(command) => studies::list(command).map_err(AnyError::from),
        WarpCommand::Show(command) => show::show(command).map_err(AnyError::from),
        WarpCommand::New(command) => studies::new(command).map_err(AnyError::from),
        WarpCommand::Results(command) => results::results(command).map_err(AnyError::from),
        WarpCommand::Lifetimes(command) => lifetimes::lifetimes(command).map_err(AnyError::from),
        WarpCommand::Export(command) => export::export(command).map_err(AnyError::from),
        WarpCommand::Bench(command) => bench::bench(command),
        WarpCommand::Serve(command) => serve::serve(command),
        WarpCommand::Studio(command) => studio::studio(command),
        WarpCommand::Guest(command) => guest::guest(command),
        WarpCommand::Drive(drive) => match &drive.command {
            DriveCommand::Inspect(command) => inspect::inspect(command),
            DriveCommand::Check(command) => check::check(command),
            DriveCommand::Advise(command) => advise::advise(command),
            DriveCommand::Faults(command) => faults::faults(command),
        },
        WarpCommand::Capture(command) => capture::capture(command),
        WarpCommand::Hints(command) => hints::hints(command),
        WarpCommand::Characterize(command) => characterize::characterize(command),
        WarpCommand::Watch(command) => watch::watch(command),
        WarpCommand::Calibrate(command) => calibrate::calibrate(command),
        WarpCommand::Completions(command) => Ok(manual::completions(command)),
        WarpCommand::Man(command) => manual::page(command).map_err(AnyError::from),
    };
    match outcome {
        Ok(ExitOutcome::Done) => 0,
        Ok(ExitOutcome::Failed) => FAILED,
        Ok(ExitOutcome::Stopped) => STOPPED,
        Ok(ExitOutcome::As(code)) => code,
        Err(error) => {
            print_error(&error.to_string());
            let is_output = matches!(error.downcast_ref(), Some(LabError::Output { .. }));
            if is_output { FAILED } else { BAD_INPUT }
        }
    }
}

/// Ends the program with the help text, or with a message of one line instead of clap's paragraph.
fn refuse(error: &clap::Error, arguments: &[OsString]) -> ! {
    use clap::error::ErrorKind;
    if !error.use_stderr() {
        output::print_help(error);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    let text = error.to_string();
    let ends = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more information");
    let mut message = String::new();
    for line in text
        .lines()
        .map(str::trim)
        .take_while(ends)
        // clap's tip about `--` is misleading, because no option takes a value after `--`.
        .filter(|line| !line.is_empty() && !line.starts_with("tip: to pass"))
    {
        let line = line.trim_start_matches("error: ").trim_start_matches("tip: ");
        let line = line.trim_start_matches('[').trim_end_matches(']');
        match message.chars().last() {
            None => message.push_str(line),
            Some(':') => message += &format!(" {line}"),
            Some(_) => message += &format!(". {}", base::capitalized(line)),
        }
    }
    if error.kind() == ErrorKind::MissingRequiredArgument
        && let Some(usage) = text.lines().find_map(|line| line.trim().strip_prefix("Usage:"))
    {
        message += &format!(". Usage:{usage}");
    }
    if error.kind() == ErrorKind::ArgumentConflict {
        message += ". Remove one of them";
    }
    print_error(
        &renamed::sentence(error)
            .or_else(|| negative(error, arguments))
            .unwrap_or_else(|| base::translate_message(&message)),
    );
    std::process::exit(i32::from(BAD_INPUT))
}

/// Message for a negative value, which clap mistakes for an option.
fn negative(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_number = value.strip_prefix('-')?.starts_with(|letter: char| letter.is_ascii_digit());
    // clap names only the first letters of the argument.
    let place =
        arguments.iter().position(|argument| argument.to_str().is_some_and(|text| text.starts_with(value.as_str())));
    let place = place.filter(|place| is_number && *place > 0)?;
    let [option, value] = [place - 1, place].map(|place| arguments[place].to_string_lossy());
    option.starts_with("--").then(|| format!("{option} {value} is negative. Give a positive number"))
}

/// Error about an invalid option value.
fn bad_option(option: &str, problem: impl std::fmt::Display) -> LabError {
    LabError::invalid(option, problem.to_string())
}

fn read_text(file: &Path, bytes_max: u64) -> Result<String, LabError> {
    base::input::read_text(file, bytes_max).map_err(|source| LabError::Io { file: file.display().to_string(), source })
}
