//! `warp studio`: serves the studio's page with simulated drives until Ctrl-C.

use std::process::{Command, Stdio};
use std::time::Duration;

use experiment::LabError;
use studio::{SessionSpec, StudioOptions};
use target::http::HttpOptions;

use crate::advise::InterruptFlag;
use crate::arguments::StudioArgs;
use crate::output::print_error;
use crate::token::token;
use crate::{AnyError, ExitOutcome, print};

pub fn studio(command: &StudioArgs) -> Result<ExitOutcome, AnyError> {
    let token = command.token.as_deref().map(token).transpose()?;
    let order = order(command)?;
    let stop = InterruptFlag::install()?;
    let http = HttpOptions { listen: command.listen, token: token.clone() };
    let options = StudioOptions {
        // The user of this machine may run any file, but a page may not.
        granted: command.target.iter().map(std::path::PathBuf::from).collect(),
        ..StudioOptions::new(http)
    };
    let studio = studio::Studio::start(options)?;
    let session = match order.map(|order| studio.begin(order)).transpose() {
        Ok(session) => session,
        Err(error) => {
            studio.stop();
            return Err(error.into());
        }
    };
    let place = session.map_or_else(String::new, |session| format!("#/session/{session}"));
    let url = page_address(&studio, token.as_deref(), &place);
    print(&format!("{url}\nStop the studio with Ctrl-C.\n"));
    if !command.no_open {
        open(&url);
    }
    stop.is_pressed_within(Duration::MAX);
    studio.stop();
    print("stopped\n");
    Ok(ExitOutcome::Done)
}

/// Session order of the command line, `None` without a target.
fn order(command: &StudioArgs) -> Result<Option<SessionSpec>, LabError> {
    let Some(target) = &command.target else { return Ok(None) };
    let (device, array, run) = (command.device.clone(), command.array.clone(), command.run.clone());
    let order = SessionSpec { device, array, run, ..SessionSpec::default() };
    order.with_target(target, &command.set.iter().cloned().collect()).map(Some)
}

/// Address of a view of the page, including the token.
pub fn page_address(studio: &studio::Studio, token: Option<&str>, place: &str) -> String {
    let query = token.map_or_else(String::new, |token| format!("?token={}", escaped(token)));
    format!("http://{}/{query}{place}", studio.local_address())
}

/// Percent-encodes a token for an address.
fn escaped(token: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    token.bytes().map(escape).collect()
}

/// Opens a browser if the machine has a display. The printed address serves as a fallback.
fn open(url: &str) {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !has_display {
        return;
    }
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started =
        Command::new(opener).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    match started {
        // The opener ends once the browser has the address. A thread reaps it.
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(error) => print_error(&format!("{opener} cannot be started ({error}). Open the address in a browser")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_escaped_in_an_address() {
        assert_eq!(escaped("abc-123"), "abc-123");
        assert_eq!(escaped("a/b+c=&#"), "a%2Fb%2Bc%3D%26%23");
    }
}
