//! `warp calibrate`: calls the Python package, which searches with Optuna.

use std::process::Command;

use crate::arguments::CalibrateArgs;
use crate::{AnyError, ExitOutcome};

/// Environment variable with the Python interpreter that has the package.
const INTERPRETER: &str = "WARP_PYTHON";

/// Python code of `python -m warp_ssd.calibrate`. An interpreter without the package exits silently
/// with [`NO_PACKAGE`].
const MAIN: &str = "\
import importlib.util, sys
if importlib.util.find_spec('warp_ssd') is None:
    sys.exit(69)
from warp_ssd.calibrate.__main__ import main
sys.exit(main())
";

/// `EX_UNAVAILABLE` of BSD's sysexits, which the package never uses.
const NO_PACKAGE: i32 = 69;

pub fn calibrate(command: &CalibrateArgs) -> Result<ExitOutcome, AnyError> {
    let interpreter = std::env::var_os(INTERPRETER).unwrap_or_else(|| "python3".into());
    let name = interpreter.to_string_lossy().into_owned();
    let remedy =
        format!("Run `pip install .` in WARP's folder, and set {INTERPRETER} if the package is not for {name}");
    let status =
        Command::new(&interpreter).args(["-c", MAIN]).args(&command.arguments).status().map_err(|error| {
            format!("warp calibrate needs Python, but {name} cannot be started ({error}). {remedy}")
        })?;
    if status.code() == Some(NO_PACKAGE) {
        return Err(format!("warp calibrate needs the Python package, which {name} does not have. {remedy}").into());
    }
    // Python has printed its own error. It also handles Ctrl-C itself.
    std::process::exit(status.code().unwrap_or(i32::from(crate::STOPPED)));
}
