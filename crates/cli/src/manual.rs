//! `warp completions` and `warp man`: print shell completions and manual pages.

use clap::CommandFactory;
use experiment::LabError;

use crate::arguments::{Arguments, CompletionsArgs, ManArgs};
use crate::{ExitOutcome, print};

pub fn completions(command: &CompletionsArgs) -> ExitOutcome {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut Arguments::command(), "warp", &mut script);
    print(&String::from_utf8(script).expect("completions are text"));
    ExitOutcome::Done
}

pub fn page(command: &ManArgs) -> Result<ExitOutcome, LabError> {
    let mut all = Arguments::command();
    all.build();
    let mut described = &all;
    for name in &command.command {
        let Some(subcommand) = described.find_subcommand(name) else {
            let names: Vec<&str> = described.get_subcommands().map(clap::Command::get_name).collect();
            return Err(LabError::unknown("command", name, names.iter().copied()));
        };
        described = subcommand;
    }
    let mut page = Vec::new();
    let manual = clap_mangen::Man::new(described.clone()).source(concat!("warp ", env!("CARGO_PKG_VERSION")));
    manual.render(&mut page).expect("memory can be written");
    print(&String::from_utf8(page).expect("a page is text"));
    Ok(ExitOutcome::Done)
}
