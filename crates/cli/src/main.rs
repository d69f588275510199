//! Binary of the `warp` command. The library has all of its code, because the Python package calls
//! it too.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(warp_cli::main(std::env::args_os().collect()))
}
