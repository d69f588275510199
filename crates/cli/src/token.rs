//! Reads files with secrets, and checks their permissions.

use std::path::Path;

use base::input::TEXT_BYTES_MAX;
use experiment::LabError;

use crate::read_text;

/// Rejects a file of secrets that all users of the machine can read or change.
pub fn check_private(file: &Path) -> Result<(), LabError> {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS: u32 = 0o007;
    let name = file.display().to_string();
    let about = std::fs::metadata(file).map_err(|source| LabError::Io { file: name.clone(), source })?;
    let mode = about.permissions().mode() & 0o777;
    if about.is_file() && mode & OTHERS != 0 {
        let problem = format!(
            "every user of this machine can access the secrets in the file (mode {mode:o}). Run `chmod 600 {name}`"
        );
        return Err(LabError::invalid(&name, problem));
    }
    Ok(())
}

/// Reads a token, the first line of a file.
pub fn token(file: &Path) -> Result<String, LabError> {
    check_private(file)?;
    let text = read_text(file, TEXT_BYTES_MAX)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_string())
}
