//! `warp calibrate`: hands over to the Python package, which searches with Optuna.

use std::process::Command;

use crate::arguments::Calibrate;
use crate::{AnyError, Outcome};

/// Names the interpreter that has the package installed.
const INTERPRETER: &str = "WARP_PYTHON";

pub fn calibrate(command: &Calibrate) -> Result<Outcome, AnyError> {
    let interpreter = std::env::var_os(INTERPRETER).unwrap_or_else(|| "python3".into());
    let name = interpreter.to_string_lossy().into_owned();
    let remedy = format!("run `pip install .` in WARP's folder, and set {INTERPRETER} if it is not for {name}");
    let mut python = Command::new(&interpreter);
    let found = python.args([
        "-c",
        "import importlib.util, sys; sys.exit(not importlib.util.find_spec('warp_ssd'))",
    ]);
    let found = found
        .status()
        .map_err(|error| format!("warp calibrate needs Python: {name}: {error}; {remedy}"))?;
    if !found.success() {
        return Err(format!("warp calibrate needs the Python package, which {name} does not have; {remedy}").into());
    }
    let status = Command::new(&interpreter)
        .args(["-m", "warp_ssd.calibrate"])
        .args(&command.arguments)
        .status()?;
    // It has said what was wrong; after Ctrl-C it ends by itself.
    std::process::exit(status.code().unwrap_or(i32::from(crate::STOPPED)));
}
