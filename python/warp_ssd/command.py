"""The `warp` command that `pip install` puts on the path. It runs the same code as the binary that `cargo build` makes."""

import os
import signal
import sys

from warp_ssd._engine import command


def main() -> None:
    """Runs the command with the arguments of the process and exits with its exit code."""
    # The command handles Ctrl-C itself, or Ctrl-C ends it. Python's handler would wait for the engine.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # `warp calibrate` starts Python. It has to be the interpreter with this package.
    os.environ.setdefault("WARP_PYTHON", sys.executable)
    sys.exit(command(["warp", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
