//! Connects this terminal to a terminal of the guest, for keys and output.

use std::io::{self, Read, Write, stdin, stdout};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Escape key for commands to this program, Ctrl-A.
const ESCAPE: u8 = 1;
/// Command after the escape key that stops the guest.
const END: u8 = b'x';
const PAUSE: Duration = Duration::from_millis(100);

/// Terminal in raw mode (no line editing, echo or signals), restored on drop.
pub struct RawTerminal(Termios);

impl RawTerminal {
    pub fn enter() -> io::Result<RawTerminal> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(RawTerminal(before))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // An error is ignored, because the terminal may be gone.
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.0);
    }
}

/// Size of the terminal as arguments of `stty`.
pub fn size() -> String {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => format!("rows {} cols {}", size.ws_row, size.ws_col),
        _ => "rows 24 cols 80".to_string(),
    }
}

/// Parser of typed keys. Returns the keys for the guest, and true for the command that stops it.
#[derive(Default)]
struct KeyParser {
    escaped: bool,
}

impl KeyParser {
    fn parse(&mut self, keys: &[u8]) -> (Vec<u8>, bool) {
        let mut through = Vec::new();
        for &key in keys {
            match (std::mem::take(&mut self.escaped), key) {
                (true, END) => return (through, true),
                // Ctrl-A twice sends one Ctrl-A to the guest.
                (false, ESCAPE) => self.escaped = true,
                (_, key) => through.push(key),
            }
        }
        (through, false)
    }
}

/// Forwards typed keys in a thread until the guest has `ended`. Sets `exit_requested` after the keys that
/// stop the guest.
pub fn forward_keys(mut guest: UnixStream, ended: Arc<AtomicBool>, exit_requested: Arc<AtomicBool>) {
    thread::spawn(move || {
        let mut keys = KeyParser::default();
        let mut buffer = [0; 1024];
        let pause = Timespec::try_from(PAUSE).expect("it is short");
        while !ended.load(Ordering::Acquire) {
            let input = stdin();
            let mut polled = [PollFd::new(&input, PollFlags::IN)];
            if !matches!(poll(&mut polled, Some(&pause)), Ok(1..)) {
                continue;
            }
            let Ok(count @ 1..) = stdin().lock().read(&mut buffer) else {
                break;
            };
            let (through, is_end) = keys.parse(&buffer[..count]);
            if guest.write_all(&through).is_err() {
                break;
            }
            if is_end {
                exit_requested.store(true, Ordering::Release);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_through_but_for_the_one_word() {
        let mut keys = KeyParser::default();
        assert_eq!(keys.parse(b"ls\x01\x01\r"), (b"ls\x01\r".to_vec(), false));
        assert_eq!(keys.parse(b"\x01y"), (b"y".to_vec(), false));
        assert_eq!(keys.parse(b"a\x01"), (b"a".to_vec(), false));
        assert_eq!(keys.parse(b"x"), (Vec::new(), true));
    }
}
