//! `warp calibrate`, and the fit of `warp characterize`: calls the Python package, which searches
//! with Optuna.

use std::ffi::OsString;
use std::process::Command;

use crate::arguments::CalibrateArgs;
use crate::{AnyError, ExitOutcome};

/// Environment variable with the Python interpreter that has the package.
const INTERPRETER: &str = "WARP_PYTHON";

/// Python code of `python -m MODULE`, the first argument. An interpreter without the package exits
/// silently with [`NO_PACKAGE`].
const MAIN: &str = "\
import importlib, importlib.util, sys
if importlib.util.find_spec('warp_ssd') is None:
    sys.exit(69)
main = importlib.import_module(sys.argv.pop(1) + '.__main__').main
sys.exit(main())
";

/// `EX_UNAVAILABLE` of BSD's sysexits, which the package never uses.
const NO_PACKAGE: i32 = 69;

pub fn calibrate(command: &CalibrateArgs) -> Result<ExitOutcome, AnyError> {
    run_module("warp_ssd.calibrate", "warp calibrate", command.arguments.iter().cloned())
}

/// Runs a module of the Python package and ends with its exit code.
pub fn run_module(
    module: &str,
    command: &str,
    arguments: impl Iterator<Item = OsString>,
) -> Result<ExitOutcome, AnyError> {
    let interpreter = std::env::var_os(INTERPRETER).unwrap_or_else(|| "python3".into());
    let name = interpreter.to_string_lossy().into_owned();
    let remedy =
        format!("Run `pip install .` in WARP's folder, and set {INTERPRETER} if the package is not for {name}");
    let status = Command::new(&interpreter)
        .args(["-c", MAIN, module])
        .args(arguments)
        .status()
        .map_err(|error| format!("{command} needs Python, but {name} cannot be started ({error}). {remedy}"))?;
    if status.code() == Some(NO_PACKAGE) {
        return Err(format!("{command} needs the Python package, which {name} does not have. {remedy}").into());
    }
    // Python has printed its own error. It also handles Ctrl-C itself.
    std::process::exit(status.code().unwrap_or(i32::from(crate::STOPPED)));
}
