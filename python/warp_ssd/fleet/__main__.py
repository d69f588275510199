"""The command `python -m warp_ssd.fleet`: a TOML file in, totals and a page out.

python -m warp_ssd.fleet fleet.toml --out fleet
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet as pq

from .._engine import WarpError
from . import Drives, Factors, FleetResult, Volumes, from_folder, population, simulate

_T = TypeVar("_T")

TABLES = ("totals", "quarters", "volumes", "drives", "mixes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        found = run(options.file, engine=options.engine, workers=options.workers, store=options.store)
        print(found.summary())
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            found.report(options.out / "fleet.html")
            for name in TABLES:
                pq.write_table(getattr(found, name)(), options.out / f"{name}.parquet")
            print(f"page and tables written to {options.out}")
    except (WarpError, OSError) as error:
        print(f"fleet: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fleet: stopped. The same command with --store continues from here", file=sys.stderr)
        return 130
    return 0


def run(path: Path, **more: Any) -> FleetResult:
    """Simulates the fleet of a file."""
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WarpError(f"{path}: {error}") from error
    for key in text:
        if key not in ("volumes", "drives", "run", "factors"):
            raise WarpError(f"{path}: {key} is unknown. Give volumes, drives, run and factors")
    kinds = text.get("drives", [{}])
    volumes = _volumes(path, _table(path, "volumes", text.get("volumes")), more)
    drives = [_call(path, "drives", Drives, _table(path, "drives", kind)) for kind in (kinds if isinstance(kinds, list) else [kinds])]
    factors = _call(path, "factors", Factors, _table(path, "factors", text.get("factors", {})))
    return _call(path, "run", simulate, {**_table(path, "run", text.get("run", {})), **more}, volumes, drives, factors=factors)


def _volumes(path: Path, table: Mapping[str, Any], more: Mapping[str, Any]) -> Volumes:
    if "folder" in table:
        folder = path.parent / str(table["folder"])
        return _call(path, "volumes", from_folder, {**table, "folder": folder, **more})
    if "count" not in table:
        raise WarpError(f"{path}: volumes has neither a folder of traces nor a count of drawn volumes. Give one of them")
    return _call(path, "volumes", population, table)


def _table(path: Path, name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WarpError(f"{path}: {name} is not a table. Write [{name}]")
    return value


def _call(path: Path, name: str, function: Callable[..., _T], table: Mapping[str, Any], *arguments: Any, **more: Any) -> _T:
    """Calls a function with the keys of a table."""
    allowed = [key for key in list(inspect.signature(function).parameters)[len(arguments) :] if key not in more]
    for key in table:
        if key not in allowed:
            raise WarpError(f"{path}: {name}.{key} is unknown. Give one of {', '.join(allowed)}")
    try:
        return function(*arguments, **table, **more)
    except TypeError as error:
        raise WarpError(f"{path}: {name} has a value of a wrong type. docs/reference/fleet.md has the types") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m warp_ssd.fleet", description="Simulate many volumes on many drives for some years."
    )
    parser.add_argument("file", type=Path, help="TOML file with [volumes], [[drives]], [run] and [factors]")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write a page and the tables")
    parser.add_argument("--store", metavar="FOLDER", help="folder for results, which lets a stopped fleet continue")
    parser.add_argument("--workers", type=int, help="number of processes (default: one per processor)")
    parser.add_argument("--engine", choices=["local", "ray"], default="local", help="engine that runs the mixes (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
