"""Times: each number of times.csv fixes one setting of `[timing]`.

    a number and its load -> short runs in virtual time on a small drive -> bisection of the setting -> the table `timing`
    all other numbers -> one run each -> measured and modelled side by side

The settings depend on each other a little, so the bisections run in turn until all numbers are met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .._engine import Experiment, profile_text
from ..calibrate.result import set_leaf
from .folder import Time
from .start import call_assumed

TIMING = "pm9d3a"
"""Profile with the times at the start."""

_BUFFER = "timing.write_buffer_bytes"
_CAPACITY_BYTES, _UNIT_BYTES = 2 << 30, 16 << 20
_CLOSE = 0.01
"""Relative error at which a bisection ends."""
_STEPS, _ROUNDS = 16, 3
_LINES_MAX = 40
"""Numbers that are modelled at most, because each costs a run."""


@dataclass(frozen=True)
class _Setting:
    """A setting, the number that fixes it, and its range. `scale` is the range's unit."""

    path: str
    what: str
    block_bytes: int
    queue_depth: int
    low: float
    high: float
    is_whole: bool = True


# Rates first, because the latencies contain their transfers.
_SETTINGS = (
    _Setting("timing.link.payload_share", "read_rate", 128 << 10, 16, 0.01, 1.0, is_whole=False),
    _Setting("timing.nand.program_ns", "write_rate", 128 << 10, 16, 1e3, 5e9),
    _Setting("timing.controller.read_ns", "read_iops", 4 << 10, 32, 1.0, 1e8),
    _Setting("timing.controller.read_pipeline_ns", "read_latency_mean", 4 << 10, 1, 1.0, 5e9),
    _Setting("timing.controller.write_pipeline_ns", "write_latency_mean", 4 << 10, 1, 1.0, 5e9),
)


@dataclass(frozen=True)
class ModelledTime:
    """A number of times.csv, the model's, and the path of the setting that it fixed."""

    measured: Time
    model: float
    fixed: str | None = None


@dataclass(frozen=True)
class TimesFit:
    """The fitted times.

    Attributes
    ----------
    settings
        Values by path, with the sentence of their source.
    table
        The table `timing` with sources, as TOML.
    numbers
        All numbers of times.csv that the model has.
    notes
        Sentences about numbers that no setting reaches.
    """

    settings: Mapping[str, tuple[object, str]]
    table: str
    numbers: Sequence[ModelledTime]
    notes: Sequence[str]


def fit_times(times: Sequence[Time], mapping_unit_bytes: int, date: str, work: Path) -> TimesFit | None:
    """Fits the times, or returns `None` without numbers.

    Parameters
    ----------
    date
        Date of the measurement, for the sources.
    work
        Folder for the profile of the runs.
    """
    if not times:
        return None
    model = _Model(work, mapping_unit_bytes)
    found: dict[str, tuple[object, str]] = {}
    fixed: dict[str, Time] = {}
    missed: dict[str, str] = {}
    buffer = next((one for one in times if one.what == "buffer_bytes"), None)
    if buffer is not None:
        model.buffer_bytes = max(1 << 20, int(buffer.value))
        found[_BUFFER] = (model.buffer_bytes, f"measured {date}, probe {buffer.probe}")
    pairs = [(setting, _number_of(times, setting)) for setting in _SETTINGS]
    for _ in range(_ROUNDS):
        is_close = True
        for setting, number in ((setting, number) for setting, number in pairs if number is not None):
            before = model.measure(number)
            if setting.path in found and abs(before / number.value - 1) <= 2 * _CLOSE:
                continue
            is_close = False
            value, reached = _bisect(partial(model.measure_with, number, setting.path), setting, number.value)
            model.settings[setting.path] = value
            about = f"{number.value:g} {number.unit} ({number.name})"
            found[setting.path] = (value, f"fitted to {about}, measured {date}, probe {number.probe}")
            fixed[setting.path] = number
            missed.pop(setting.path, None)
            if abs(reached / number.value - 1) > 2 * _CLOSE:
                missed[setting.path] = (
                    f"No {setting.path} gives the measured {about}. "
                    f"The nearest gives {reached:.4g} {number.unit}."
                )
        if is_close:
            break
    by_number = {id(number): path for path, number in fixed.items()}
    shown = [one for one in times if one.what != "buffer_bytes"][:_LINES_MAX]
    modelled = [ModelledTime(one, model.measure(one), by_number.get(id(one))) for one in shown]
    return TimesFit(found, model.table(found), modelled, list(missed.values()))


def _number_of(times: Sequence[Time], setting: _Setting) -> Time | None:
    """The number that fixes a setting: that of its load, or of the nearest load."""
    same = [one for one in times if one.what == setting.what]
    return min(
        same,
        key=lambda one: (abs(one.queue_depth - setting.queue_depth), abs(one.block_bytes - setting.block_bytes)),
        default=None,
    )


def _bisect(measure: Callable[[float], float], setting: _Setting, target: float) -> tuple[float, float]:
    """The value of a setting at which a monotone measure has a target, and what it has there. The nearest end if none."""

    def rounded(value: float) -> float:
        return round(value) if setting.is_whole else float(f"{value:.4g}")

    low, high = setting.low, setting.high
    at_low, at_high = measure(rounded(low)), measure(rounded(high))
    rises = at_high > at_low
    if not min(at_low, at_high) < target < max(at_low, at_high):
        near = abs(at_low - target) <= abs(at_high - target)
        return (rounded(low), at_low) if near else (rounded(high), at_high)
    best = (rounded(low), at_low)
    for _ in range(2 * _STEPS):
        middle = rounded((low * high) ** 0.5)
        found = measure(middle)
        if abs(found - target) < abs(best[1] - target):
            best = (middle, found)
        if abs(found / target - 1) <= _CLOSE / 4 or middle in (low, high):
            break
        low, high = (middle, high) if (found < target) == rises else (low, middle)
    return best


class _Model:
    """A small drive in virtual time."""

    def __init__(self, work: Path, mapping_unit_bytes: int) -> None:
        import tomlkit

        self.settings: dict[str, object] = {}
        self.buffer_bytes = 64 << 20
        self._known: dict[str, float] = {}
        self._timing = tomlkit.parse(profile_text(TIMING))["timing"]
        document = tomlkit.parse(profile_text("warp_default"))
        document["timing"] = self._timing
        document["geometry"].pop("physical_bytes")
        for path, value in {
            "geometry.capacity_bytes": _CAPACITY_BYTES,
            "geometry.over_provisioning": 0.28,
            "geometry.reclaim_unit_bytes": _UNIT_BYTES,
            "geometry.mapping_unit_bytes": mapping_unit_bytes,
            "timing.nand.page_bytes": max(16 << 10, mapping_unit_bytes),
        }.items():
            set_leaf(document, path, value, {"source": "a small drive"})
        self._file = work / "times.toml"
        self._file.write_text(tomlkit.dumps(document), encoding="utf-8")

    def measure_with(self, one: Time, path: str, value: float) -> float:
        """The same with another value of a setting."""
        return self.measure(one, {path: value})

    def measure(self, one: Time, change: Mapping[str, object] | None = None) -> float:
        """The model's number for the load of a measured one."""
        overrides = self.settings | {_BUFFER: self.buffer_bytes} | dict(change or {})
        key = repr((one.what, one.block_bytes, one.queue_depth, sorted(overrides.items())))
        if key not in self._known:
            self._known[key] = self._run(one, overrides)
        return self._known[key]

    def _run(self, one: Time, overrides: Mapping[str, object]) -> float:
        kind, _, quantity = one.what.partition("_")
        workload = {"kind": "fio", "text": self._job(one, kind, quantity)}
        run = {"timed": True, "scale": "1/1", "precondition_drive_writes": 1.0}
        about = {"title": one.name, "source": "measured", "devices": [str(self._file)], "workload": workload}
        point = Experiment({**about, "run": run, "quick": run}).points(overrides=overrides)[0]
        (row,) = (row for row in point.run().jobs().to_pyarrow().to_pylist() if row["job"] == "measured")
        numbers = {
            "latency_mean": row["mean_ns"] / 1e3,
            "latency_p99": row["p99_ns"] / 1e3,
            "rate": row["bytes_per_second"] / 1e6,
            "iops": row["iops"],
        }
        return float(numbers[quantity])

    def _job(self, one: Time, kind: str, quantity: str) -> str:
        """A job file with the load of a number. A rate of writes is that behind a full buffer."""
        is_rate = quantity == "rate"
        pattern = kind if is_rate else f"rand{kind}"
        bs = max(512, one.block_bytes)
        count = 2000 if one.queue_depth == 1 else 10_000
        fill = ""
        if kind == "write" and (is_rate or one.queue_depth > 1):
            size = min(_CAPACITY_BYTES // 4, max(64 << 20, self.buffer_bytes))
            fill = f"[fill]\nrw=write\nbs=128k\nio_size={2 * size}\nsize=100%\niodepth=16\n"
            count = max(64, size // bs)
        elif is_rate:
            count = max(64, (256 << 20) // bs)
        wait = "stonewall\n" if fill else ""
        return f"{fill}[measured]\n{wait}rw={pattern}\nbs={bs}\niodepth={one.queue_depth}\nnorandommap\nnumber_ios={count}\n"

    def table(self, found: Mapping[str, tuple[object, str]]) -> str:
        """The table `timing` with the fitted values and their sources."""
        import tomlkit

        document = tomlkit.document()
        document["timing"] = self._timing
        call_assumed(document, TIMING)
        for path, (value, source) in found.items():
            set_leaf(document, path, value, {"fitted": True, "source": source})
        return tomlkit.dumps(document)
