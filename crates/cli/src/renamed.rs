//! Commands and options of older builds, and the names that they have now.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Old command, new command.
const COMMANDS: [(&str, &str); 9] = [
    ("advise", "warp drive advise"),
    ("assert", "warp drive check"),
    ("compare", "warp results compare"),
    ("devices", "warp list devices` or `warp show device"),
    ("explain", "warp show device"),
    ("faults", "warp drive faults"),
    ("inspect", "warp drive inspect"),
    ("jobs", "warp list jobs` or `warp show job"),
    ("runs", "warp results list` or `warp results show"),
];

/// Old option, new option.
const OPTIONS: [(&str, &str); 10] = [
    ("--bless", "--update-golden"),
    ("--from", "--load-snapshot"),
    ("--interval", "--uncertainty"),
    ("--no-interval", "--no-uncertainty"),
    ("--on", "--target"),
    ("--only", "--variant"),
    ("--prefill", "--precondition"),
    ("--save", "--save-snapshot"),
    ("--until", "--steady-state"),
    ("--write", "--drive-writes"),
];

/// Message for an old name in an error of clap, `None` for other errors.
pub fn sentence(error: &clap::Error) -> Option<String> {
    let name_of = |kind| match error.get(kind)? {
        ContextValue::String(name) => Some(name.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = name_of(ContextKind::InvalidSubcommand)?;
            let (old, new) = COMMANDS.iter().find(|(old, _)| *old == name)?;
            Some(format!("`warp {old}` was renamed. Use `{new}`"))
        }
        ErrorKind::UnknownArgument => {
            let name = name_of(ContextKind::InvalidArg)?;
            let (old, new) = OPTIONS.iter().find(|(old, _)| *old == name)?;
            Some(format!("{old} was renamed. Use {new}"))
        }
        _ => None,
    }
}
