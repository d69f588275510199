"""The validator of contributed folders (`devices/community/NAME`).

It runs no workload. It reads each file with the bounds of folder.py, and stops at the first problem.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from .._engine import Experiment, WarpError
from ..calibrate import usual_scales
from ..calibrate.fit import lookup
from ..calibrate.knobs import Knob
from .folder import (
    FIT,
    FITTED,
    MEASURED,
    PROFILE,
    SUMS,
    Characterization,
    check_file,
    checksums,
    read_folder,
    read_json,
    read_text,
)

_FILES_MAX, _BYTES_MAX = 500, 64 << 20
_SAMPLES = {"host_bytes", "media_bytes", "erased_bytes", "seconds", "waf"}
_TEXTS = (".json", ".jsonl", ".csv", ".toml", ".html", ".fio")
_ABSOLUTE = re.compile(r"""(?:^|[\s"'=(,])((?:/[\w.-]+){2,}|[A-Za-z]:\\[\w.\\-]+)""", re.MULTILINE)
"""Absolute paths of Linux and Windows. Those of devices in /dev are allowed."""


def check_folder(path: str | os.PathLike[str]) -> None:
    """Checks a folder that somebody contributes.

    Raises
    ------
    WarpError
        The folder is not complete, its files disagree, or they tell more about their author than about the drive.
    """
    folder = Path(path)
    if folder.is_symlink():
        raise WarpError(f"{folder} is a link. Replace it by the folder")
    characterization = None
    if folder.is_dir():
        _check_files(folder)
        characterization = read_folder(folder)
    if characterization is None:
        raise WarpError(f"{folder} is not a folder. Give a folder such as devices/community/NAME")
    _check_samples(characterization)
    _check_privacy(characterization)
    _check_profile(folder)


def _check_files(folder: Path) -> None:
    for name in (*MEASURED, *FITTED, SUMS):
        check_file(folder / name)
    paths = list(folder.rglob("*"))
    if len(paths) > _FILES_MAX or sum(path.lstat().st_size for path in paths) > _BYTES_MAX:
        raise WarpError(f"{folder}: the folder has more than {_FILES_MAX} files or {_BYTES_MAX >> 20} MiB")
    found, lines = checksums(folder), read_text(folder / SUMS).splitlines()
    stated = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    for name in sorted(found.keys() | stated.keys()):
        if name not in found or name not in stated:
            raise WarpError(f"{folder / name}: the file is not in both the folder and {SUMS}. Run the fit again")
        if found[name] != stated[name]:
            raise WarpError(f"{folder / name}: the checksum differs from {SUMS}. Run the fit again")


def _check_samples(found: Characterization) -> None:
    names = {one.name for one in found.measurements}
    for name in sorted(names):
        check_file(found.path / "jobs" / f"{name}.fio")
        file = found.path / "samples" / f"{name}.parquet"
        check_file(file)
        try:
            columns = set(pq.read_schema(file).names)
        except (pa.ArrowException, OSError, ValueError):
            raise WarpError(f"{file}: not a Parquet file") from None
        if not columns >= _SAMPLES:
            raise WarpError(f"{file}: the columns {', '.join(sorted(_SAMPLES - columns))} are missing")


def _check_privacy(found: Characterization) -> None:
    if not found.drive.is_anonymous:
        raise WarpError(f"{found.path}: drive.json has the serial number. Run the fit with --anonymous")
    for file in sorted(path for path in found.path.rglob("*") if path.suffix in _TEXTS):
        paths = [one for one in _ABSOLUTE.findall(read_text(file)) if not re.fullmatch(r"/dev/\w+", one)]
        if paths:
            raise WarpError(f"{file}: the file has the absolute path {paths[0][:80]}. Remove it")


def _check_profile(folder: Path) -> None:
    file = folder / PROFILE
    try:
        document = tomllib.loads(read_text(file))
        scale = usual_scales(read_text(file), [])[0]
        # Makes the drive and each member of its ensemble, but runs nothing.
        Experiment.of_workload("one_stream", str(file)).points(scale=scale, timed=False, uncertainty=True)
    except WarpError:
        raise
    except (tomllib.TOMLDecodeError, ValueError, TypeError, KeyError) as error:
        raise WarpError(f"{file}: not a profile ({error})") from None
    fit = read_json(folder / FIT)
    settings = fit.get("settings")
    if not isinstance(settings, Mapping) or not settings or fit.get("profile") != PROFILE:
        raise WarpError(f"{folder / FIT}: settings or profile are missing")
    for path, value in settings.items():
        if lookup(document, Knob(str(path))) != value:
            raise WarpError(f"{folder / FIT}: {path} = {value!r} differs from {PROFILE}. Run the fit again"[:300])


__all__ = ["check_folder"]
