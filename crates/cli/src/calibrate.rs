//! `warp calibrate`: hands over to the Python package, which searches with Optuna.

use std::process::Command;

use crate::arguments::Calibrate;
use crate::{AnyError, Outcome};

/// Names the interpreter that has the package installed.
const INTERPRETER: &str = "WARP_PYTHON";

/// `python -m warp_ssd.calibrate`, but for an interpreter without the package, which ends with [`NO_PACKAGE`] and says
/// nothing.
const MAIN: &str = "\
import importlib.util, sys
if importlib.util.find_spec('warp_ssd') is None:
    sys.exit(69)
from warp_ssd.calibrate.__main__ import main
sys.exit(main())
";

/// `EX_UNAVAILABLE` of BSD's sysexits: no exit code of the package.
const NO_PACKAGE: i32 = 69;

pub fn calibrate(command: &Calibrate) -> Result<Outcome, AnyError> {
    let interpreter = std::env::var_os(INTERPRETER).unwrap_or_else(|| "python3".into());
    let name = interpreter.to_string_lossy().into_owned();
    let remedy = format!("run `pip install .` in WARP's folder, and set {INTERPRETER} if it is not for {name}");
    let status = Command::new(&interpreter)
        .args(["-c", MAIN])
        .args(&command.arguments)
        .status()
        .map_err(|error| format!("warp calibrate needs Python: {name}: {error}; {remedy}"))?;
    if status.code() == Some(NO_PACKAGE) {
        return Err(format!("warp calibrate needs the Python package, which {name} does not have; {remedy}").into());
    }
    // It has said what was wrong; after Ctrl-C it ends by itself.
    std::process::exit(status.code().unwrap_or(i32::from(crate::STOPPED)));
}
