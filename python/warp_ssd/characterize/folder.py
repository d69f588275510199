"""The folder of a characterization: its measurements, read with bounds, and its checksums.

    drive.json, measurements.csv, times.csv -> Characterization
    all files -> SHA256SUMS

A folder may come from a stranger. Each file has a limit of its size, each number a range, and no file may be a link. The first
problem raises a `WarpError` of one sentence with the file and the place.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._engine import WarpError
from ..calibrate import Measurement, read_csv
from ..calibrate.measurement import read_lines

FORMAT, VERSION = "warp-characterization", 1
DRIVE, JOURNAL, MEASUREMENTS, TIMES = "drive.json", "journal.jsonl", "measurements.csv", "times.csv"
PROFILE, FIT, REPORT, SUMS = "profile.toml", "fit.json", "report.html", "SHA256SUMS"
MEASURED = (DRIVE, JOURNAL, MEASUREMENTS, TIMES)
"""Files of the measurement, beside the folders `jobs` and `samples`."""
FITTED = (PROFILE, FIT, REPORT)
"""Files of the fit, before the checksums."""

QUANTITIES = {
    **{f"{kind}_latency_{statistic}": "us" for kind in ("read", "write") for statistic in ("mean", "p99")},
    **{"read_rate": "MB/s", "write_rate": "MB/s", "read_iops": "1/s", "write_iops": "1/s", "buffer_bytes": "bytes"},
}
"""Quantities of times.csv with their units."""

_FILE_BYTES_MAX = 64 << 20
_LINES_MAX = 1000
_WAF_MAX = 1000.0
_FILE_OPTIONS = re.compile(r"^\s*(include|filename|directory|read_iolog|write_\w*log)\b\s*=?\s*(\S*)", re.MULTILINE)
"""Options of a job file that name files."""
_HASHED = "sha256:"
"""Begin of a serial number that was replaced by its hash."""


@dataclass(frozen=True)
class Fdp:
    """The FDP configuration of a drive. The names are those of drive.json."""

    handles: int
    isolation: tuple[str, ...] | None
    reclaim_unit_bytes: int | None
    reclaim_groups: int


@dataclass(frozen=True)
class Drive:
    """The contents of drive.json. `None` means that the drive does not report a value."""

    date: str
    model: str
    serial: str
    firmware: str
    capacity_bytes: int
    mapping_unit_bytes: int
    counter: str | None
    fdp: Fdp | None
    missing: tuple[str, ...]

    @property
    def serial_hash(self) -> str:
        """The serial number, or its hash, in the form of an anonymous folder."""
        if self.is_anonymous:
            return self.serial
        return _HASHED + hashlib.sha256(f"{self.model}\n{self.serial}".encode()).hexdigest()[:16]

    @property
    def is_anonymous(self) -> bool:
        """True if the folder does not contain the serial number."""
        return not self.serial or self.serial.startswith(_HASHED)


@dataclass(frozen=True)
class Time:
    """A line of times.csv: a rate or a latency."""

    probe: str
    what: str
    value: float
    block_bytes: int
    queue_depth: int

    @property
    def unit(self) -> str:
        """Unit of the value."""
        return QUANTITIES[self.what]

    @property
    def name(self) -> str:
        """The quantity with its load, in words."""
        words = self.what.replace("_", " ")
        return words if self.what == "buffer_bytes" else f"{words}, {self.block_bytes >> 10} KiB, QD {self.queue_depth}"


@dataclass(frozen=True)
class Characterization:
    """The measurements of a drive."""

    path: Path
    drive: Drive
    measurements: Sequence[Measurement]
    times: Sequence[Time]

    def measured(self, probe: str) -> float | None:
        """The write amplification of a probe, or `None` without an absolute number."""
        found = (one.waf for one in self.measurements if one.probe == probe and one.relative_to is None)
        return next(found, None)


def read_folder(path: str | os.PathLike[str]) -> Characterization:
    """Reads the measurements of a folder.

    Raises
    ------
    WarpError
        A file is missing, torn or out of range.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise WarpError(f"{folder} is not a folder. Give the folder of `warp characterize`")
    measurements = _read_measurements(folder)
    probes = [one.probe for one in measurements] + [one.relative_to.probe for one in measurements if one.relative_to]
    if "uniform" not in probes:
        raise WarpError(f"{folder / MEASUREMENTS}: the probe uniform is missing. The fit needs it")
    return Characterization(folder, _read_drive(folder / DRIVE), measurements, _read_times(folder / TIMES))


def read_text(path: Path) -> str:
    """The text of a file of a folder.

    Raises
    ------
    WarpError
        The file is missing, a link, too large or no text.
    """
    check_file(path)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise WarpError(f"{path}: not a text in UTF-8 ({error.reason} at byte {error.start})") from None


def check_file(path: Path) -> None:
    """Rejects a file that is missing, a link or too large."""
    if path.is_symlink():
        raise WarpError(f"{path} is a link. Replace it by the file")
    if not path.is_file():
        raise WarpError(f"{path} is missing, or no file")
    if path.stat().st_size > _FILE_BYTES_MAX:
        raise WarpError(f"{path} is larger than {_FILE_BYTES_MAX >> 20} MiB")


def read_json(path: Path) -> dict[str, Any]:
    """An object of a JSON file, without NaN and infinity."""

    def reject(name: str) -> None:
        raise ValueError(f"{name} is not a number of JSON")

    try:
        found = json.loads(read_text(path), parse_constant=reject)
    except (ValueError, RecursionError) as error:
        if isinstance(error, WarpError):
            raise
        raise WarpError(f"{path}: not JSON ({error})") from None
    if not isinstance(found, dict):
        raise WarpError(f"{path}: not an object of JSON")
    return found


def _read_drive(path: Path) -> Drive:
    found = read_json(path)
    if (found.get("format"), found.get("version")) != (FORMAT, VERSION):
        raise WarpError(f"{path}: format and version are not {FORMAT} and {VERSION}")
    unit = _whole(path, found, "write_granularity_bytes", 512, 1 << 40, default=4096)
    counter, fdp = found.get("counter"), found.get("fdp")
    if counter not in (None, "fdp", "ocp"):
        raise WarpError(f"{path}: counter = {counter!r} is unknown. It is fdp, ocp or null")
    if fdp is not None and not isinstance(fdp, dict):
        raise WarpError(f"{path}: fdp is neither an object nor null")
    missing = found.get("missing") or []
    if not isinstance(missing, list) or len(missing) > 100:
        raise WarpError(f"{path}: missing is not a list of at most 100 sentences")
    date, model, serial, firmware = (_words(found.get(name)) for name in ("date", "model", "serial", "firmware"))
    return Drive(
        date=date,
        model=model,
        serial=serial,
        firmware=firmware,
        capacity_bytes=_whole(path, found, "capacity_bytes", 1 << 24, 1 << 60),
        # The model's mapping units are powers of two from 4 to 64 KiB.
        mapping_unit_bytes=min(1 << 16, max(1 << 12, 1 << (unit - 1).bit_length())),
        counter=counter,
        fdp=None if fdp is None else _read_fdp(path, fdp),
        missing=tuple(_words(one) for one in missing),
    )


def _read_fdp(path: Path, found: Mapping[str, Any]) -> Fdp:
    handles = _whole(path, found, "handles", 1, 128)
    isolation = found.get("isolation")
    kinds = ("initially_isolated", "persistently_isolated")
    if isolation is not None and not (
        isinstance(isolation, list) and len(isolation) == handles and all(one in kinds for one in isolation)
    ):
        raise WarpError(f"{path}: isolation does not have {kinds[0]} or {kinds[1]} for each of {handles} handles")
    sizes = [
        _whole(path, found, name, 1 << 16, 1 << 40, default=0)
        for name in ("reclaim_unit_writable_bytes", "reclaim_unit_bytes")
    ]
    groups = _whole(path, found, "reclaim_groups", 1, 65535, default=1)
    return Fdp(handles, None if isolation is None else tuple(isolation), next(filter(None, sizes), None), groups)


def _whole(path: Path, table: Mapping[str, Any], name: str, low: int, high: int, default: int | None = None) -> int:
    value = table.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise WarpError(f"{path}: {name} = {_words(value)} is not a whole number from {low} to {high}")
    return value


def _words(value: object) -> str:
    """A text of a stranger, short and without control characters."""
    text = "" if value is None else str(value)[:300]
    return "".join(letter if letter.isprintable() else "?" for letter in text).strip()


def _read_measurements(folder: Path) -> list[Measurement]:
    path = folder / MEASUREMENTS
    read_text(path)
    found = read_csv(path)
    for one in found:
        for each in (one, one.relative_to) if one.relative_to else (one,):
            _check_probe(path, folder, each)
        if one.waf > _WAF_MAX or (one.drive_writes or 0) > 1000 or one.precondition_drive_writes > 100:
            raise WarpError(f"{path}: a number of the probe {one.probe} is too large for a drive")
    names = [one.probe for one in found]
    if len(set(names)) < len(names) or len(names) > _LINES_MAX:
        raise WarpError(f"{path}: a probe has two lines, or there are more than {_LINES_MAX}")
    if not found:
        raise WarpError(f"{path}: no probe has a write amplification. Without one there is no fit")
    return found


def _check_probe(path: Path, folder: Path, one: Measurement) -> None:
    if one.probe is None or not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", one.probe):
        raise WarpError(f"{path}: probe = {_words(one.probe)} is not a name of letters, digits, _ and -")
    if one.workload is None or one.at:
        raise WarpError(f"{path}: the probe {one.probe} has no workload, or an unknown column")
    workload = Path(one.workload)
    if workload.parent != folder / "jobs" or workload.suffix not in (".fio", ".toml"):
        raise WarpError(f"{path}: the workload of the probe {one.probe} is not a file jobs/NAME.fio of the folder")
    check_file(workload)
    for option, value in _FILE_OPTIONS.findall(read_text(workload)):
        if option != "filename" or ("/" in value and not re.fullmatch(r"/dev/\w+", value)):
            raise WarpError(f"{workload}: {option} names another file. Only devices in /dev are allowed")


def _read_times(path: Path) -> list[Time]:
    read_text(path)
    found = []
    for number, line in read_lines(path):
        place = f"{path}, line {number}"
        what = line.get("what", "")
        if what not in QUANTITIES or line.get("unit", QUANTITIES[what]) != QUANTITIES[what]:
            raise WarpError(f"{place}: {_words(what)} is no known quantity, or has another unit")
        value, block, depth = (_number(place, line, name) for name in ("value", "block_bytes", "queue_depth"))
        if block is not None and not 512 <= block <= 1 << 26 or depth is not None and not 1 <= depth <= 65536:
            raise WarpError(f"{place}: block_bytes or queue_depth is out of range")
        if value is not None:
            found.append(Time(_words(line.get("probe")), what, value, int(block or 4096), int(depth or 1)))
        if number > _LINES_MAX:
            raise WarpError(f"{path}: there are more than {_LINES_MAX} lines")
    return found


def _number(place: str, line: Mapping[str, str], name: str) -> float | None:
    if name not in line:
        return None
    try:
        value = float(line[name])
    except ValueError:
        value = math.nan
    if not 0 < value < 1e15:
        raise WarpError(f"{place}: {name} = {_words(line[name])} is not a number above 0 and below 1e15")
    return value


def make_anonymous(folder: Path) -> None:
    """Replaces the serial number and the target of the drive in the files of the measurement.

    The first 16 digits of SHA-256 over model and serial number take its place. They show that two folders are of one drive.
    """
    drive = _read_drive(folder / DRIVE)
    found = read_json(folder / DRIVE)
    target = found.get("target")
    kind = None if target is None else str(target).partition(":")[0] if ":" in str(target) else Path(str(target)).name
    for name in (DRIVE, JOURNAL):
        if (folder / name).exists():
            text = read_text(folder / name)
            if not drive.is_anonymous:
                text = text.replace(json.dumps(str(found["serial"])), json.dumps(drive.serial_hash))
                text = text.replace(drive.serial, drive.serial_hash)
            if target and kind:
                text = text.replace(json.dumps(str(target)), json.dumps(kind))
            (folder / name).write_text(text, encoding="utf-8")


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a folder but the checksums, by its path in the folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            check_file(path)
            found[path.relative_to(folder).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    found.pop(SUMS, None)
    return found


def write_checksums(folder: Path) -> None:
    """Writes SHA256SUMS in the form of `sha256sum`."""
    lines = [f"{digest}  {name}\n" for name, digest in checksums(folder).items()]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")
