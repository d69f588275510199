//! `warp completions` and `warp man`: print shell completions and manual pages.

use clap::CommandFactory;
use experiment::LabError;

use crate::arguments::{Arguments, Completions, Man};
use crate::{Outcome, print};

pub fn completions(command: &Completions) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut Arguments::command(), "warp", &mut script);
    print(&String::from_utf8(script).expect("completions are text"));
    Outcome::Done
}

/// # Errors
/// The command is unknown.
pub fn page(command: &Man) -> Result<Outcome, LabError> {
    let mut all = Arguments::command();
    all.build();
    let mut shown = &all;
    for name in &command.command {
        let Some(found) = shown.find_subcommand(name) else {
            let names: Vec<&str> = shown.get_subcommands().map(clap::Command::get_name).collect();
            return Err(LabError::unknown("command", name, names.iter().copied()));
        };
        shown = found;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(shown.clone())
        .render(&mut page)
        .expect("memory can be written");
    print(&String::from_utf8(page).expect("a page is text"));
    Ok(Outcome::Done)
}
