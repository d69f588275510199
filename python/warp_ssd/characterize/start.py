"""The start of a fit: the profile before it, the settings to search, and the first guesses of them.

    drive.json -> start profile;  settings that it does not report -> knobs;  probes -> quotients without the media overhead
    uniform writes -> the over-provisioning of each policy -> starts of the search
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._engine import profile_text
from ..calibrate.fit import lookup
from ..calibrate.knobs import Knob, read_knobs
from ..calibrate.measurement import Measurement
from ..calibrate.objective import Objective
from ..calibrate.result import set_leaf, with_known
from .folder import Characterization

OP, OVERHEAD, UNIT = "geometry.over_provisioning", "geometry.media_overhead_share", "geometry.reclaim_unit_bytes"
POLICY, COPIES = "gc.victim_policy", "gc.copies"
ISOLATION, ABSORPTION = "handles.isolation", "handles.write_absorption_bytes"

OP_RANGE = (0.03, 0.6)
MODEL_ERROR = 0.01
"""Standard deviation of a scaled model from the drive, as a share. Scaled models agree to about 1 %."""
FAMILIES: dict[str, Sequence[object]] = {
    "greedy": ["greedy"],
    "random choices": [{"d_choices": count} for count in (2, 4, 8, 16, 32, 64)],
    "age-aware": ["benefit_cost", "cost_age"],
    "fifo": ["fifo"],
    "random": ["random"],
}
"""Families of victim policies with the policies that the fit tries."""

_UNITS_MIN, _UNITS_MAX = 16, 512
"""Range of the number of reclaim units, if the drive does not report their size."""

_HALVINGS = 6
"""Number of halvings of the range of over-provisioning for the first guesses."""


def family_of(policy: object) -> str:
    """The family of a victim policy."""
    return next((name for name, policies in FAMILIES.items() if policy in policies), str(policy))


def start_profile(folder: Characterization, device: str) -> str:
    """The profile before the fit, as TOML."""
    drive = folder.drive
    known: dict[str, tuple[object, str]] = {
        "geometry.capacity_bytes": (drive.capacity_bytes, "from the drive's identity"),
        "geometry.mapping_unit_bytes": (drive.mapping_unit_bytes, "from the drive's write granularity"),
        OP: (0.15, "start of the fit"),
        OVERHEAD: (0.0, "assumed: no probe measured it"),
        ABSORPTION: (0, "assumed: no probe shows it"),
        # Blocks of a scaled model are small, so that all their pages may be valid. Those of a drive are not.
        "gc.block_remapping": (False, "assumed: blocks of a drive are too large to stay fully valid"),
    }
    known |= _handles(folder)
    if drive.fdp is None or drive.fdp.reclaim_unit_bytes is None:
        sizes = unit_sizes(folder)
        known[UNIT] = (sizes[min(2, len(sizes) - 1)], "start of the fit")
    document = with_known(profile_text(device), {path: value for path, (value, _) in known.items()})
    call_assumed({name: document[name] for name in ("geometry", "handles", "gc") if name in document}, device)
    for name in ("timing", "endurance"):
        document.pop(name, None)
    for path, (value, source) in known.items():
        set_leaf(document, path, value, {"source": source})
    document["title"] = f"{drive.model or 'Unnamed drive'}, characterized on {drive.date or 'an unknown date'}"
    return document.as_string()


def _handles(folder: Characterization) -> dict[str, tuple[object, str]]:
    fdp = folder.drive.fdp
    if fdp is None:
        none = "the drive has no FDP"
        return {"handles.count": (1, none), ISOLATION: ("initially_isolated", f"without effect, because {none}")}
    source = "from the drive's FDP configuration"
    known: dict[str, tuple[object, str]] = {"handles.count": (fdp.handles, source)}
    known["geometry.reclaim_groups"] = (fdp.reclaim_groups, source)
    if fdp.reclaim_unit_bytes is not None:
        known[UNIT] = (fdp.reclaim_unit_bytes, source)
    if fdp.isolation is not None:
        usual = Counter(fdp.isolation).most_common(1)[0][0]
        others = [{"index": index, "isolation": one} for index, one in enumerate(fdp.isolation) if one != usual]
        known[ISOLATION] = (usual, source)
        if others:
            known["handles.overrides"] = (others, source)
    return known


def call_assumed(table: Any, device: str) -> None:
    """Says of each value of another drive's profile that it is assumed for this drive."""
    for value in table.values():
        if isinstance(value, dict):
            if "value" in value:
                value.pop("fitted", None)
                value["source"] = f"assumed, as in devices/{device}"
            else:
                call_assumed(value, device)


def unit_sizes(folder: Characterization) -> list[int]:
    """Sizes of reclaim units to try, if the drive does not report one."""
    least = max(1 << 20, folder.drive.capacity_bytes // _UNITS_MAX)
    most = min(1 << 34, folder.drive.capacity_bytes // _UNITS_MIN)
    return [1 << power for power in range(20, 35) if least <= 1 << power <= most] or [1 << 20]


def free_settings(folder: Characterization, quick: bool) -> dict[str, object]:
    """The settings to search with their values, in the form of `calibrate`."""
    fdp = folder.drive.fdp
    policies = [policy for family in FAMILIES.values() for policy in family]
    if quick:
        policies = [policy for policy in policies if policy not in ({"d_choices": 32}, {"d_choices": 64}, "cost_age")]
    free: dict[str, object] = {OP: OP_RANGE, POLICY: policies, COPIES: ["apart", "with_host"]}
    if fdp is not None and fdp.isolation is None:
        free[ISOLATION] = ["initially_isolated", "persistently_isolated"]
    if (fdp is None or fdp.reclaim_unit_bytes is None) and len(unit_sizes(folder)) > 1:
        free[UNIT] = unit_sizes(folder)
    return free


def least_unit(start: str, free: Mapping[str, object]) -> int:
    """The smallest size of reclaim units of the search."""
    sizes = _choices(free, UNIT) if UNIT in free else [lookup(tomllib.loads(start), Knob(UNIT))]
    return min(int(str(size)) for size in sizes)


def overhead_probe(folder: Characterization) -> Measurement | None:
    """The measurement that gives the media overhead. Its drive copies least."""
    found = {one.probe: one for one in folder.measurements if one.relative_to is None and one.use == "fit"}
    return found.get("fill") or found.get("sequential")


def evidence(folder: Characterization) -> list[Measurement]:
    """The measurements for the search.

    The media overhead multiplies every write amplification. The search therefore takes quotients of them, which do not contain
    it. Without a counter of the drive, the measurements are quotients already.
    """
    reference = overhead_probe(folder)
    used = [one for one in folder.measurements if one.use == "fit" and one.probe != "hot_overwrite"]
    if reference is None:
        return [_with_model_error(one) for one in used]
    return [_with_model_error(quotient(one, reference)) for one in used if one is not reference]


def quotient(one: Measurement, reference: Measurement) -> Measurement:
    """An absolute measurement as a quotient."""
    if one.relative_to is not None:
        return one
    shares = (each.sigma / each.waf for each in (one, reference) if each.sigma is not None)
    waf = one.waf / reference.waf
    return replace(one, waf=waf, sigma=waf * math.hypot(*shares) or None, relative_to=reference)


def _with_model_error(one: Measurement) -> Measurement:
    return replace(one, sigma=math.hypot(one.sigma or 0.0, MODEL_ERROR * one.waf))


def anchor(measurements: Sequence[Measurement]) -> Measurement | None:
    """The measurement that gives the over-provisioning for each policy: uniform writes compared with those in order."""
    found = {one.probe: one for one in measurements}
    return found.get("uniform") or found.get("sequential")


def first_guesses(objective: Objective, free: Mapping[str, object], start: str) -> list[dict[str, object]]:
    """The starts of the search: each combination of names, with the over-provisioning that explains the one measurement of an
    objective. The isolation of handles does not matter for it, because one handle writes.
    """
    document = tomllib.loads(start)
    target = objective.measurements[0].waf
    common = {path: lookup(document, Knob(path)) for path in free if path not in (POLICY, COPIES, OP)}
    pairs = itertools.product(_choices(free, POLICY), _choices(free, COPIES))
    kinds = [common | {POLICY: policy, COPIES: copies} for policy, copies in pairs]
    op = read_knobs({OP: OP_RANGE})[0]
    ends = iter(objective.evaluate([kind | {OP: end} for kind in kinds for end in OP_RANGE]))
    falls = [_waf(low) >= _waf(high) for low, high in zip(ends, ends)]
    ranges = [OP_RANGE] * len(kinds)
    for _ in range(_HALVINGS):
        middles = [op.rounded((low * high) ** 0.5) for low, high in ranges]
        found = objective.evaluate([kind | {OP: middle} for kind, middle in zip(kinds, middles, strict=True)])
        more = [(_waf(one) > target) == fall for one, fall in zip(found, falls, strict=True)]
        ranges = [
            (middle, high) if is_more else (low, middle)
            for (low, high), middle, is_more in zip(ranges, middles, more, strict=True)
        ]
    guesses = [kind | {OP: op.rounded((low * high) ** 0.5)} for kind, (low, high) in zip(kinds, ranges, strict=True)]
    isolations = _choices(free, ISOLATION) if ISOLATION in free else [None]
    return [guess | ({} if one is None else {ISOLATION: one}) for one in isolations for guess in guesses]


def _choices(free: Mapping[str, object], path: str) -> list[object]:
    choices = free[path]
    assert isinstance(choices, list)
    return choices


def _waf(one: Any) -> float:
    # A drive that cannot exist has too little spare.
    return one.wafs[0] if one.wafs else 1e9
