"""Fleets: how many drives many volumes need, how many drives die in each quarter, and what each volume costs.

    volumes + drives -> plan.py (assignment, growth, epochs) -> mixes.py (each different mix to its steady state, on workers)
    -> years.py (wear, replacement, failures) -> FleetResult -> Arrow tables, report.py (a page)

`simulate` runs the fleet without placement, and with one. Mixes are points of the store and workers of a sweep, so all cores or a Ray
cluster run them, and a repeated or killed simulation runs only what the store lacks. docs/reference/fleet.md lists the columns and
what the model leaves out.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from .._engine import WarpError
from ..store import Store
from ..workers import Workers, make_workers
from .assign import ASSIGNMENTS, PLACEMENTS, Assignment, Placement, named
from .drives import DriveModel, Drives, resolve
from .limits import CELLS_MAX, COUNT_MAX, YEARS_MAX, number, seed_list, whole
from .mixes import MixRuns, run_mixes
from .plan import QUARTERS_PER_YEAR, Plan, make_plan
from .volumes import Volumes, from_folder, population
from .years import Years, live

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

__all__ = ["ASSIGNMENTS", "PLACEMENTS", "Drives", "Factors", "FleetResult", "Volumes", "from_folder", "population", "simulate"]

NO_PLACEMENT = "none"
"""Name of the fleet without placement."""

INTERVAL = (0.05, 0.95)
"""Quantiles of the seeds at the ends of an interval."""


@dataclass(frozen=True)
class Factors:
    """Factors of cost, carbon and failures.

    Parameters
    ----------
    dollars_per_terabyte
        Price of logical capacity. The default is about the price of enterprise TLC in 2025, as in `warp whatif`.
    embodied_kg_per_gigabyte
        Embodied CO2e of flash, spare flash included. The default is from Tannu and Nair, "The Dirty Secret of SSDs: Embodied
        Carbon" (HotCarbon '22).
    annual_failure_rate
        Share of drives that fail in a year for other reasons than wear. The default is a round number above the rate of 2,200 drives
        in 2021, which was below 1 % (Klein, Backblaze, "The SSD Edition: 2021 Drive Stats Review").
    """

    dollars_per_terabyte: float = 100.0
    embodied_kg_per_gigabyte: float = 0.16
    annual_failure_rate: float = 0.01

    def __post_init__(self) -> None:
        for name in ("dollars_per_terabyte", "embodied_kg_per_gigabyte"):
            number(name, getattr(self, name), 0.0, 1e9)
        if number("annual_failure_rate", self.annual_failure_rate, 0.0, 1.0) == 1.0:
            raise WarpError(f"annual_failure_rate = {self.annual_failure_rate}. Give a share from 0 to below 1, such as 0.01")


def simulate(
    volumes: Volumes,
    drives: Drives | Sequence[Drives],
    *,
    years: float = 3.0,
    assignment: str | Assignment = "by_size",
    placement: str | Placement | None = "by_lifetime",
    handles: int | None = None,
    fill_limit: float = 0.9,
    tolerance: float = 0.1,
    factors: Factors | None = None,
    seeds: Iterable[int] = range(1, 21),
    mix_seeds: Sequence[int] = (1,),
    drive_writes_max: float = 40.0,
    engine: str = "local",
    workers: int | None = None,
    store: str | os.PathLike[str] | None = None,
    retry_failed: bool = False,
    progress: bool = True,
) -> FleetResult:
    """Simulates a fleet for some years, quarter by quarter.

    Parameters
    ----------
    volumes
        The volumes, from `population`, `from_folder` or your own columns.
    drives
        One or several kinds of drives. The last kind is the one that the fleet buys when its volumes outgrow it.
    years
        Duration of at most 100 years. It is rounded to quarters.
    assignment
        A name of `ASSIGNMENTS`, or a function of the volumes and the room of each drive that returns a drive for each volume.
    placement
        A name of `PLACEMENTS`, or a function of the volumes on a drive and the number of handles that returns a handle for each
        volume. `None` simulates only the fleet without placement.
    handles
        Handles that the placement uses. Default: all of the profile.
    fill_limit
        Largest share of a drive's capacity with live data. Volumes move off a drive beyond it.
    tolerance
        A drive's mix runs again when its volumes change, or when its spare space, its write shares or its data shares have changed
        by more than this share. One run stands for the quarters until then, with the volumes of the middle one.
    factors
        Cost, carbon, failure rate.
    seeds
        Seeds of the failures. Intervals are over them.
    mix_seeds
        Seeds of each mix. The seeds of failures take them in turn.
    drive_writes_max
        Limit of a run that does not reach its steady state. The result counts these runs.
    engine, workers, store, retry_failed, progress
        As in `sweep`.

    Raises
    ------
    WarpError
        A volume does not fit on a drive, a function returned something else than an index for each volume, or a mix failed.
    """
    kinds = [drives] if isinstance(drives, Drives) else list(drives)
    seeds, mix_seeds, factors = seed_list("seeds", seeds), seed_list("mix_seeds", mix_seeds), factors or Factors()
    quarters = round(number("years", years, 0.0, YEARS_MAX) * QUARTERS_PER_YEAR)
    if not kinds or not seeds or not mix_seeds or quarters < 1:
        raise WarpError("a fleet needs a kind of drives, a seed, a mix seed and a quarter. Give at least one of each")
    number("fill_limit", fill_limit, 0.01, 1.0)
    number("tolerance", tolerance, 0.0, 1e9)
    number("drive_writes_max", drive_writes_max, 1.0, 1000.0)
    if handles is not None:
        whole("handles", handles, 1, 65535)
    if store is not None and not isinstance(store, str | os.PathLike):
        raise WarpError(f"store = {store!r}. Give the path of a folder")
    if len(volumes) * quarters > CELLS_MAX:
        raise WarpError(f"{len(volumes):,} volumes and {quarters} quarters are too many. Give at most {CELLS_MAX // quarters:,} volumes")
    chosen = None if placement is None else named("placement", placement, PLACEMENTS)
    label = placement if isinstance(placement, str) else getattr(placement, "__name__", "own")
    label = "own" if label == NO_PLACEMENT else label
    models = [resolve(kind) for kind in kinds]
    for model in models:
        if handles is not None and handles > model.handles:
            raise WarpError(f"handles = {handles}, and drives {model.drives.profile} have {model.handles}. Give {model.handles} or fewer")
    plan = make_plan(
        volumes,
        models,
        named("assignment", assignment, ASSIGNMENTS),
        quarters=quarters,
        drives_max=min(COUNT_MAX, CELLS_MAX // (quarters * len(seeds))),
        fill_limit=fill_limit,
        tolerance=tolerance,
    )
    folder = None if store is not None else tempfile.TemporaryDirectory(prefix="warp-fleet-")
    results = Store(store if store is not None else folder.name)  # type: ignore[union-attr]
    pool: Workers = make_workers(engine, workers, None)
    found: dict[str, tuple[MixRuns, Years]] = {}
    try:
        for name, place in {NO_PLACEMENT: None, **({} if chosen is None else {label: chosen})}.items():
            runs = run_mixes(
                plan,
                models,
                place,
                handles=handles,
                seeds=mix_seeds,
                drive_writes=drive_writes_max,
                store=results,
                workers=pool,
                retry_failed=retry_failed,
                progress=progress,
            )
            found[name] = runs, live(plan, models, runs, annual_failure_rate=factors.annual_failure_rate, seeds=seeds)
    finally:
        pool.close()
    return FleetResult(plan, models, found, factors)


class FleetResult:
    """Result of a fleet. Tables are `pyarrow.Table`, with the placement in their first column.

    Attributes
    ----------
    ran
        Points that ran. All others were in the store.
    placements
        `none`, and the name of the placement.
    """

    def __init__(
        self, plan: Plan, models: Sequence[DriveModel], found: Mapping[str, tuple[MixRuns, Years]], factors: Factors
    ) -> None:
        self._plan = plan
        self._models = models
        self._found = found
        self.factors = factors
        self.ran = sum(runs.ran for runs, _ in found.values())
        self.placements = list(found)

    def __repr__(self) -> str:
        return f"<fleet of {len(self._plan.volumes[0])} volumes on {self._plan.drives[-1]} drives>"

    def quarters(self) -> pa.Table:
        """A row for each quarter: drives, deaths with their intervals over the seeds, and bytes by cause."""
        parts = []
        for _, years in self._found.values():
            replaced = years.worn + years.failed
            columns: dict[str, object] = {
                "quarter": np.arange(1, len(self._plan.drives) + 1),
                "drives": self._plan.drives,
                "bought_for_growth": np.diff(self._plan.drives, prepend=self._plan.drives[0]),
            }
            for name, deaths in (("worn", years.worn), ("failed", years.failed), ("replaced", replaced)):
                columns |= _interval(name, deaths.sum(axis=2))
            host = years.host_bytes.sum(axis=1)
            flash = years.flash_bytes.mean(axis=0)
            columns |= {
                "host_bytes": host,
                "moved_bytes": years.moved_bytes,
                "rebuilt_bytes": years.rebuilt_bytes.mean(axis=0),
                "flash_bytes": flash,
                "write_amplification": (flash - years.moved_bytes - years.rebuilt_bytes.mean(axis=0)) / np.maximum(host, 1.0),
            }
            parts.append(pa.table(columns))
        return self._with_placement(parts)

    def volumes(self) -> pa.Table:
        """A row for each volume: its bytes, write amplification, drive lives used, cost and carbon."""
        first = self._plan.volumes[0]
        parts = []
        for _, years in self._found.values():
            host, media = years.host_bytes.sum(axis=0), years.media_bytes.sum(axis=0)
            dollars, carbon = self._shares(years)
            parts.append(
                pa.table(
                    {
                        "name": pa.array(first.names, pa.string()),
                        "footprint_bytes": first.footprint_bytes,
                        "bytes_per_day": first.bytes_per_day,
                        "host_bytes": host,
                        "flash_bytes": media,
                        "write_amplification": np.divide(media, host, out=np.ones(len(host)), where=host > 0),
                        "drive_lives": self._lives(years),
                        "dollars": dollars,
                        "carbon_kg": carbon,
                    }
                )
            )
        return self._with_placement(parts)

    def drives(self) -> pa.Table:
        """A row for each drive: its volumes and data at the end, its write amplification in the last quarter, and its deaths."""
        plan, last = self._plan, self._plan.volumes[-1]
        count = len(plan.kinds)
        parts = []
        for runs, years in self._found.values():
            waf = [float(runs.results[runs.mix_of[epoch]].drive.mean()) if epoch >= 0 else None for epoch in plan.epoch_of[-1]]
            parts.append(
                pa.table(
                    {
                        "drive": np.arange(count),
                        "profile": pa.array([self._models[kind].drives.profile for kind in plan.kinds], pa.string()),
                        "volumes": np.bincount(plan.drive_of[-1], minlength=count),
                        "live_bytes": np.bincount(plan.drive_of[-1], last.footprint_bytes, count),
                        "host_bytes_per_day": np.bincount(plan.drive_of[-1], last.bytes_per_day, count),
                        "write_amplification": pa.array(waf, pa.float64()),
                        "life_used": years.life_used.mean(axis=0),
                        "worn": years.worn.sum(axis=1).mean(axis=0),
                        "failed": years.failed.sum(axis=1).mean(axis=0),
                    }
                )
            )
        return self._with_placement(parts)

    def mixes(self) -> pa.Table:
        """A row for each run of a mix: its hash in the store, its data and its write amplification."""
        return self._with_placement([runs.table for runs, _ in self._found.values()])

    def totals(self) -> pa.Table:
        """A row for each placement: drives bought, deaths, write amplification, cost and carbon, with intervals over the seeds."""
        parts = []
        host = sum(volumes.bytes_per_day.sum() for volumes in self._plan.volumes)
        for runs, years in self._found.values():
            deaths = (years.worn + years.failed).sum(axis=1)
            bought = self._plan.drives[-1] + deaths.sum(axis=1)
            dollars, carbon = (price.sum() + deaths @ price for price in self._prices())
            columns: dict[str, object] = {"drives": [self._plan.drives[-1]]}
            columns |= _interval("worn", years.worn.sum(axis=(1, 2))[:, None])
            columns |= _interval("failed", years.failed.sum(axis=(1, 2))[:, None])
            columns |= _interval("bought", bought[:, None])
            columns |= {"write_amplification": [years.media_bytes.sum() / years.host_bytes.sum()] if host > 0 else [1.0]}
            columns |= _interval("dollars", dollars[:, None]) | _interval("carbon_kg", carbon[:, None])
            columns |= {"mixes": [len(runs.results)], "not_steady": [int(sum((~one.is_steady).sum() for one in runs.results))]}
            parts.append(pa.table(columns))
        return self._with_placement(parts)

    def summary(self) -> str:
        """The totals in words."""
        years = len(self._plan.drives) / QUARTERS_PER_YEAR
        lines = [f"{len(self._plan.volumes[0])} volumes, {years:g} years, {self.ran} runs"]
        for row in self.totals().to_pylist():
            lines.append(
                f"placement {row['placement']}: {row['drives']} drives, {_range(row, 'worn')} worn out and {_range(row, 'failed')} failed, "
                f"WAF {row['write_amplification']:.3f}, {row['dollars']:,.0f} dollars, {row['carbon_kg']:,.0f} kg CO2e"
            )
            if row["not_steady"]:
                lines.append(f"  {row['not_steady']} runs of mixes did not reach their steady state. Raise drive_writes_max")
        return "\n".join(lines)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes a page with plots and tables."""
        from .report import page

        with open(path, "w", encoding="utf-8") as file:
            file.write(page(self))

    def _prices(self) -> tuple[Numbers, Numbers]:
        """Dollars and embodied carbon of each drive."""
        capacity = np.array([self._models[kind].capacity_bytes for kind in self._plan.kinds])
        physical = np.array([self._models[kind].physical_bytes for kind in self._plan.kinds])
        return self.factors.dollars_per_terabyte * capacity / 1e12, self.factors.embodied_kg_per_gigabyte * physical / 1e9

    def _shares(self, years: Years) -> list[Numbers]:
        """Dollars and carbon of each volume: the shares of what was bought.

        The first drive of a place and those that replace a failed one are divided by stored data. Those that replace a worn one are
        divided by flash bytes. A place that never has data is divided like the rest.
        """
        plan, quarters = self._plan, range(len(self._plan.drives))
        count = len(plan.kinds)
        worn, failed = (deaths.sum(axis=1).mean(axis=0) for deaths in (years.worn, years.failed))
        data = [volumes.footprint_bytes for volumes in plan.volumes]
        found = []
        for price in self._prices():
            shares = np.zeros(len(data[0]))
            for deaths, weights in ((1.0 + failed, data), (worn, list(years.media_bytes))):
                totals = sum(np.bincount(plan.drive_of[quarter], weights[quarter], count) for quarter in quarters)
                cost = np.asarray(deaths * price)
                rate = np.divide(cost, totals, out=np.zeros(count), where=totals > 0)
                for quarter in quarters:
                    shares += weights[quarter] * rate[plan.drive_of[quarter]]
                rest = cost[totals == 0].sum()
                shares += rest * sum(weights) / max(sum(one.sum() for one in weights), 1.0)
            assert np.isclose(shares.sum(), ((1.0 + failed + worn) * price).sum()), "the volumes pay another sum than the fleet"
            found.append(shares)
        return found

    def _lives(self, years: Years) -> Numbers:
        """Rated drive lives that the flash bytes of each volume used."""
        rated = np.array([self._models[kind].rated_bytes for kind in self._plan.kinds])
        lives = [bytes_ / rated[on] for bytes_, on in zip(years.media_bytes, self._plan.drive_of, strict=True)]
        return np.asarray(sum(lives))

    def _with_placement(self, parts: Sequence[pa.Table]) -> pa.Table:
        named_parts = [
            table.add_column(0, "placement", pa.repeat(pa.scalar(name), table.num_rows))
            for name, table in zip(self.placements, parts, strict=True)
        ]
        return pa.concat_tables(named_parts)


def _interval(name: str, values: NDArray[np.generic]) -> dict[str, object]:
    """Mean and interval over the seeds, which are the first axis."""
    low, high = np.quantile(values.astype(np.float64), INTERVAL, axis=0, method="inverted_cdf")
    return {name: values.mean(axis=0), f"{name}_low": low, f"{name}_high": high}


def _range(row: Mapping[str, float], name: str) -> str:
    mean, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    return f"{mean:g}" if low == high else f"{mean:.1f} ({low:.0f}-{high:.0f})"
