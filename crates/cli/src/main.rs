//! The `warp` command. All of it is in the library, which the Python package calls, too.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(warp_cli::main(std::env::args_os().collect()))
}
