"""The command `python -m warp_ssd.calibrate` (and `warp calibrate`): arguments in, text and a profile out.

python -m warp_ssd.calibrate measurements.csv --device ssd_a --free geometry.over_provisioning gc.victim_policy --out mine.toml
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .._engine import WarpError
from . import (
    ENSEMBLES_OF,
    KNOBS,
    CalibrationStopped,
    Measurement,
    Nuisance,
    calibrate,
    fdp_stats,
    published,
    read_csv,
    read_nuisances,
)
from .cross_validation import BY
from .ensemble import MEMBERS
from .measurement import parse_value
from .nuisances import parse_nuisance
from .objective import LOSSES


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        found = calibrate(
            _measurements(options),
            _free(options.free),
            options.device,
            nuisances=_nuisances(options.nuisance),
            known=dict(_setting(text) for text in options.known),
            scales=options.scales,
            trials=options.trials,
            seeds=options.seeds,
            seed=options.seed,
            noise=options.noise,
            loss=options.loss,
            members=options.members,
            ensemble_of=options.ensemble_of,
            cross_validate=options.leave_one_out or False,
            intervals=options.intervals,
            title=options.title,
            engine=options.engine,
            workers=options.workers,
            store=options.store,
        )
        print(found.summary())
        if options.out is not None:
            found.write(options.out)
            print(f"\n{'profile' if options.ensemble_of == 'device' else 'experiment'} written to {options.out}")
    except (WarpError, OSError) as error:
        print(f"calibrate: {error}", file=sys.stderr)
        return 1
    except CalibrationStopped as stop:
        print(stop.so_far)
        print(f"calibrate: stopped. The same command with --store {stop.store} continues from here", file=sys.stderr)
        return 130
    except KeyboardInterrupt:
        print("calibrate: stopped before the first evaluation", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="warp calibrate",
        description="Find the hidden knobs of a drive from measured write amplifications.",
        epilog=f"These knobs have a usual range: {', '.join(KNOBS)}. Other settings of a profile need values.",
    )
    parser.add_argument(
        "measurements",
        nargs="*",
        help="CSV files, or experiments with published numbers of --drive as measurements",
    )
    parser.add_argument(
        "--free",
        nargs="+",
        required=True,
        metavar="KNOB",
        help="knobs to find, as PATH, PATH=LOW:HIGH or PATH=[JSON list]",
    )
    parser.add_argument(
        "--nuisance",
        nargs="+",
        default=[],
        metavar="KEY[@OF,...]=VALUES",
        help="unknowns of the workloads (workload:SECTION.OPTION, change:NAME) or of the reading (run:precondition_drive_writes, metric). "
        "OF limits a nuisance to experiments or to workload:NAME. VALUES is a JSON list or LOW:HIGH. A TOML file of [[nuisance]] "
        "is possible too",
    )
    parser.add_argument("--device", default="warp_default", help="start profile (default: %(default)s)")
    parser.add_argument("--drive", help="drive of published numbers (default: --device)")
    parser.add_argument(
        "--set", nargs="+", default=[], dest="known", metavar="PATH=VALUE", help="known settings of the drive"
    )
    parser.add_argument("--out", metavar="FILE", help="write the fitted profile, or the experiment (TOML)")
    parser.add_argument(
        "--ensemble-of",
        choices=ENSEMBLES_OF,
        default=ENSEMBLES_OF[0],
        help="device, or experiment for an ensemble of the measured experiment with its nuisances (default: %(default)s)",
    )
    parser.add_argument(
        "--members", type=int, default=MEMBERS, help="maximum number of settings in the ensemble (default: %(default)s)"
    )
    parser.add_argument(
        "--leave-one-out",
        nargs="?",
        const=BY[0],
        choices=BY,
        help="predict each figure from a fit to the others, with a figure for each experiment (default) or for each source",
    )
    parser.add_argument(
        "--no-intervals",
        action="store_false",
        dest="intervals",
        help="omit the intervals of the knobs, which take most of the runs",
    )
    parser.add_argument("--title", help="title of the profile (default: the start profile's)")
    parser.add_argument(
        "--scales",
        nargs="+",
        help="scales, smallest models first, with 1/1 for the full drive (default: reclaim units of 512 and of 2048 pages)",
    )
    parser.add_argument(
        "--trials", type=int, default=200, help="number of settings that the search evaluates (default: %(default)s)"
    )
    parser.add_argument(
        "--seeds", nargs="+", type=int, default=[1, 2], help="seeds of each run (default: 1 2)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the search (default: %(default)s)")
    parser.add_argument(
        "--noise",
        type=float,
        default=0.02,
        help="relative standard deviation of a measurement without sigma (default: %(default)s)",
    )
    parser.add_argument("--sigma", type=float, help="standard deviation of published numbers (default: --noise)")
    parser.add_argument(
        "--loss",
        choices=LOSSES,
        default="squared",
        help="loss function, with absolute if some measurements are outliers (default: %(default)s)",
    )
    parser.add_argument(
        "--store", metavar="FOLDER", help="folder for evaluations, which lets a stopped calibration continue"
    )
    parser.add_argument("--workers", type=int, help="number of processes (default: one per processor)")
    parser.add_argument(
        "--engine", choices=["local", "ray"], default="local", help="engine that runs the evaluations (default: %(default)s)"
    )
    real = parser.add_argument_group("measurements from nvme-cli and fio")
    real.add_argument(
        "--fdp-stats",
        nargs=2,
        action="append",
        default=[],
        metavar=("BEFORE", "AFTER"),
        help="output of `nvme fdp stats -o json` before and after a job, once per --job",
    )
    real.add_argument("--job", action="append", default=[], metavar="FILE", help="fio job file of the measurement")
    real.add_argument("--capacity-bytes", type=int, help="capacity of the drive, required by --fdp-stats")
    real.add_argument(
        "--precondition",
        dest="precondition_drive_writes",
        metavar="N",
        type=float,
        default=0.0,
        help="bytes written before the job, in multiples of the capacity (default: 0)",
    )
    return parser


def _measurements(options: argparse.Namespace) -> list[Measurement]:
    found: list[Measurement] = []
    for name in options.measurements:
        if name.endswith(".csv"):
            found += read_csv(name)
        else:
            found += published(name, options.drive or Path(options.device).stem, sigma=options.sigma)
    if len(options.fdp_stats) != len(options.job):
        raise WarpError("--job and --fdp-stats differ in number. Give --job once per --fdp-stats")
    if options.fdp_stats and options.capacity_bytes is None:
        raise WarpError("--fdp-stats needs --capacity-bytes. Give the capacity of the drive")
    for (before, after), job in zip(options.fdp_stats, options.job, strict=True):
        found.append(
            fdp_stats(before, after, job, options.capacity_bytes, precondition_drive_writes=options.precondition_drive_writes)
        )
    return found


def _free(texts: Sequence[str]) -> dict[str, object]:
    return dict(_knob(text) for text in texts)


def _knob(text: str) -> tuple[str, object]:
    path, equals, values = text.partition("=")
    if not equals:
        return path, None
    return path, _values(values)


def _nuisances(texts: Sequence[str]) -> list[Nuisance]:
    found: list[Nuisance] = []
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals and text.endswith(".toml"):
            found += read_nuisances(text)
        else:
            found.append(parse_nuisance(key, _values(values)))
    return found


def _values(text: str) -> object:
    """A range LOW:HIGH, or a JSON list."""
    value = parse_value(text)
    if isinstance(value, list):
        return value
    ends = [parse_value(end) for end in text.split(":")]
    return tuple(ends) if len(ends) == 2 and all(isinstance(end, int | float) for end in ends) else value


def _setting(text: str) -> tuple[str, object]:
    path, equals, value = text.partition("=")
    if not equals:
        raise WarpError(f"--set {text} has no value. Give PATH=VALUE")
    return path, parse_value(value)


if __name__ == "__main__":
    sys.exit(main())
