"""The command `python -m warp_ssd.characterize`: arguments in, text and files out.

python -m warp_ssd.characterize fit my_drive
python -m warp_ssd.characterize check devices/community/*
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .._engine import WarpError
from ..calibrate import CalibrationStopped
from . import check_folder, fit_folder
from .fit import TRIALS, TRIALS_QUICK


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "check":
            return _check(options.folders)
        fitted = fit_folder(
            options.folder,
            device=options.device,
            trials=options.trials,
            quick=options.quick,
            out=options.out,
            workers=options.workers,
            store=options.store,
            anonymous=options.anonymous,
        )
        print(fitted.summary())
        print(f"\nprofile and report written to {options.folder}")
    except (WarpError, OSError) as error:
        print(f"characterize: {error}", file=sys.stderr)
        return 1
    except CalibrationStopped as stop:
        print(stop.so_far)
        print("characterize: stopped. The same command continues from here", file=sys.stderr)
        return 130
    except KeyboardInterrupt:
        print("characterize: stopped. The same command continues from here", file=sys.stderr)
        return 130
    return 0


def _check(folders: Sequence[str]) -> int:
    failed = False
    for folder in folders:
        try:
            check_folder(folder)
            print(f"{folder}: accepted")
        except (WarpError, OSError) as error:
            failed = True
            print(f"characterize: {error}", file=sys.stderr)
    return int(failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m warp_ssd.characterize", description="Make the profile of a drive that `warp characterize` measured."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    fit = commands.add_parser("fit", help="fit a profile to the measurements of a folder")
    fit.add_argument("folder", help="folder of `warp characterize`")
    fit.add_argument(
        "--device", default="warp_default", help="profile of the settings that are not measured (default: %(default)s)"
    )
    fit.add_argument(
        "--trials", type=int, help=f"settings that the search evaluates (default: {TRIALS}, or {TRIALS_QUICK} with --quick)"
    )
    fit.add_argument("--quick", action="store_true", help="fewer trials, policies and seeds, and small models only")
    fit.add_argument("--out", metavar="FILE", help="also write the profile to this file")
    fit.add_argument("--anonymous", action="store_true", help="replace the serial number and the target in the folder")
    fit.add_argument("--workers", type=int, help="number of processes (default: one per processor)")
    fit.add_argument("--store", metavar="FOLDER", help="folder for evaluations (default: beside the folder, until the end)")
    check = commands.add_parser("check", help="check folders that others contributed")
    check.add_argument("folders", nargs="+", metavar="FOLDER", help="folder of a drive, such as devices/community/NAME")
    return parser


if __name__ == "__main__":
    sys.exit(main())
