//! The hook of `warp drive advise`, a shell command that carries out a move.

use std::io;
use std::process::{Command, Stdio};

use ::advise::OwnerMove;

/// Runs `sh -c HOOK` with the move in its environment and waits for the end. The output of the hook
/// goes to standard error, because standard output may be JSON.
///
pub fn run(hook: &str, owner: &str, step: &OwnerMove) -> Result<(), String> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(hook).stdin(Stdio::null()).stdout(io::stderr());
    command.env("WARP_OWNER", owner);
    command.env("WARP_FROM", step.from.to_string());
    command.env("WARP_TO", step.to.to_string());
    command.env("WARP_REASON", step.reason.to_string());
    command.env("WARP_EXPECTED_SAVING_BYTES", step.expected_saving_bytes.to_string());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the hook ended with {status}")),
        Err(error) => Err(format!("the hook cannot be started ({error})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::advise::MoveReason;

    #[test]
    fn the_move_is_in_the_environment_and_failure_is_said() {
        let step = OwnerMove { owner: 0, from: 1, to: 2, reason: MoveReason::Split, expected_saving_bytes: 4096 };
        let test =
            r#"test "$WARP_OWNER $WARP_FROM $WARP_TO $WARP_REASON $WARP_EXPECTED_SAVING_BYTES" = "a b 1 2 split 4096""#;
        assert_eq!(run(test, "a b", &step), Ok(()));
        assert_eq!(run("exit 3", "a", &step), Err("the hook ended with exit status: 3".to_string()));
    }
}
