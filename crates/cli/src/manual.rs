//! `warp completions` and `warp man`: print shell completions and manual pages.

use base::hint;
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
    let shown = match &command.command {
        None => all,
        Some(name) => match all.find_subcommand(name) {
            Some(found) => found.clone(),
            None => {
                let names: Vec<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
                return Err(LabError::Unknown {
                    what: "command".to_string(),
                    name: name.clone(),
                    hint: hint(name, names.iter().copied()),
                    known: names.join(", "),
                });
            }
        },
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(shown)
        .render(&mut page)
        .expect("memory can be written");
    print(&String::from_utf8(page).expect("a page is text"));
    Ok(Outcome::Done)
}
