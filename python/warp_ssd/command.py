"""The `warp` command as `pip install` puts it on the path: the engine's own, which is the one that `cargo build` makes."""

import os
import signal
import sys

from warp_ssd._engine import command


def main() -> None:
    """Runs the command with the process's arguments and ends with its exit code."""
    # The command listens to Ctrl-C itself, or is ended by it; Python's way waits for the engine.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # `warp calibrate` starts Python: the one that has this package.
    os.environ.setdefault("WARP_PYTHON", sys.executable)
    sys.exit(command(["warp", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
