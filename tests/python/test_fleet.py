"""A fleet keeps its bytes, wears as arithmetic says, and is the same on every kind of workers."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from warp_ssd import WarpError, fleet
from warp_ssd.fleet import Drives, Factors, FleetResult, Volumes
from warp_ssd.fleet.__main__ import main as command

QUARTER_DAYS = 365.25 / 4
SEQUENTIAL = {"kind": "fio", "text": "[a]\nrw=write\nbs=128k\nsize=100%\n"}
RANDOM = {"kind": "random_writes"}
SMALL: dict[str, Any] = {"workers": 1, "progress": False}


def drives(count: int | None = None, erases: float = 100, **more: Any) -> Drives:
    """Small drives of 200 GB with reclaim units of 64 pages, for short runs."""
    return Drives("warp_default", count=count, overrides={"endurance.rated_erases": erases}, **{"scale": 1024, **more})


def volumes(count: int, gigabytes: Any = 40, gigabytes_per_day: Any = 500, workload: Any = SEQUENTIAL, growth: float = 0.0) -> Volumes:
    names = [f"v{index}" for index in range(count)]
    return Volumes(names, np.asarray(gigabytes) * 1e9, np.asarray(gigabytes_per_day) * 1e9, workload, np.asarray(growth))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[FleetResult, Path]:
    store = tmp_path_factory.mktemp("fleet")
    found = volumes(12, [5, 10, 20, 40] * 3, [10, 200, 50] * 4, [RANDOM, {**RANDOM, "zipf_exponent": 0.9}] * 6, 0.3)
    return fleet.simulate(found, drives(3), store=store, seeds=range(1, 6), factors=Factors(annual_failure_rate=0.2), **SMALL), store


def test_identical_volumes_wear_as_arithmetic_says() -> None:
    """Sequential overwrites have WAF 1. A drive dies whenever it has received its rated bytes, and a new one begins with its data."""
    factors = Factors(annual_failure_rate=0.0)
    found = fleet.simulate(volumes(12), drives(4), placement=None, factors=factors, assignment="round_robin", **SMALL)
    assert found.mixes()["write_amplification"].to_pylist() == [1.0], "equal drives are one mix"
    assert found.ran == 1
    rated, data, rate = 100 * 224 * 2**30, 3 * 40e9, 3 * 500e9
    deaths = 1 + np.floor((np.arange(1, 13) * QUARTER_DAYS * rate - (rated - data)) / (rated - data)).astype(int)
    expected = 4 * np.diff(np.maximum(deaths, 0), prepend=0)
    table = found.quarters()
    assert table["worn"].to_pylist() == table["worn_high"].to_pylist() == expected.tolist()
    assert sum(expected) > 20 and sum(table["failed"].to_pylist()) == 0
    assert table["rebuilt_bytes"].to_pylist() == (expected * data).tolist()


def test_a_known_write_amplification_shortens_the_life_in_proportion() -> None:
    """Uniform writes with a WAF that the engine measures. The deaths follow from that number alone."""
    factors = Factors(annual_failure_rate=0.0)
    found = fleet.simulate(volumes(8, 45, 500, RANDOM), drives(2), placement=None, factors=factors, **SMALL)
    (waf,) = found.mixes()["write_amplification"].to_pylist()
    assert waf > 1.4
    rated, data = 100 * 224 * 2**30, 4 * 45e9
    deaths = 2 * int(1 + np.floor((12 * QUARTER_DAYS * 4 * 500e9 * waf - (rated - data)) / (rated - data)))
    row = found.totals().to_pylist()[0]
    assert row["worn"] == deaths and row["bought"] == 2 + deaths
    assert row["dollars"] == pytest.approx((2 + deaths) * 100 * 224 * 2**30 / 1.1 / 1e12)
    assert row["carbon_kg"] == pytest.approx((2 + deaths) * 0.16 * 224 * 2**30 / 1e9)


def test_failures_have_the_annual_rate() -> None:
    rate = Factors(annual_failure_rate=0.1)
    found = fleet.simulate(volumes(100, 150, 0), drives(100), placement=None, factors=rate, years=2, seeds=range(40), **SMALL)
    row = found.totals().to_pylist()[0]
    expected = -np.log1p(-0.1) * 100 * 2
    assert row["failed"] == pytest.approx(expected, abs=4 * np.sqrt(expected / 40))
    assert row["failed_low"] < expected < row["failed_high"] and row["worn"] == 0
    again = fleet.simulate(volumes(100, 150, 0), drives(100), placement=None, factors=rate, years=2, seeds=range(40), **SMALL)
    assert again.quarters() == found.quarters()


def test_bytes_and_dollars_are_conserved(mixed: tuple[FleetResult, Path]) -> None:
    """What the volumes wrote and paid is what the drives received and cost."""
    found = mixed[0]
    quarters, per_volume, totals = found.quarters().to_pandas(), found.volumes().to_pandas(), found.totals().to_pandas()
    for name in found.placements:
        rows, ours, total = (one[one.placement == name] for one in (quarters, per_volume, totals))
        growth = sum(1.3 ** (quarter / 4) for quarter in range(12))
        written = 4 * (10 + 200 + 50) * 1e9 * QUARTER_DAYS * growth
        assert ours.host_bytes.sum() == pytest.approx(written) and rows.host_bytes.sum() == pytest.approx(written)
        causes = rows.flash_bytes.sum() - rows.moved_bytes.sum() - rows.rebuilt_bytes.sum()
        assert ours.flash_bytes.sum() == pytest.approx(causes, rel=1e-4)
        assert ours.dollars.sum() == pytest.approx(total.dollars.sum())
        assert ours.carbon_kg.sum() == pytest.approx(total.carbon_kg.sum())
        assert rows.replaced.sum() == pytest.approx(rows.worn.sum() + rows.failed.sum())
        assert total.failed.item() > 0


def test_a_repeated_fleet_only_reads(mixed: tuple[FleetResult, Path]) -> None:
    found, store = mixed
    names = [f"other{index}" for index in range(12)]
    same = volumes(12, [5, 10, 20, 40] * 3, [10, 200, 50] * 4, [RANDOM, {**RANDOM, "zipf_exponent": 0.9}] * 6, 0.3)
    renamed = Volumes(names, same.footprint_bytes, same.bytes_per_day, same.workloads, same.growth_per_year)
    again = fleet.simulate(renamed, drives(3), store=store, seeds=range(1, 6), factors=Factors(annual_failure_rate=0.2), **SMALL)
    assert found.ran > 0 and again.ran == 0
    assert again.quarters() == found.quarters() and again.drives() == found.drives()


def test_growth_moves_volumes_and_buys_drives() -> None:
    found = fleet.simulate(volumes(8, 40, 10, growth=1.0), drives(2), placement=None, years=2, tolerance=10, **SMALL)
    table = found.quarters().to_pydict()
    assert table["drives"][0] == 2 and table["drives"] == sorted(table["drives"])
    needed = 8 * 40e9 * 2**1.75 / (0.9 * 224 * 2**30 / 1.1)
    assert needed <= table["drives"][-1] <= 2 * needed
    assert table["moved_bytes"][0] == 8 * 40e9 and sum(table["moved_bytes"][1:]) > 0
    assert sum(table["bought_for_growth"]) == table["drives"][-1] - 2


def test_kinds_of_drives_take_data_by_their_room() -> None:
    """A drive of twice the size gets twice the data, and each seed of a mix has a row."""
    kinds = [drives(2), drives(2, capacity_bytes="400GB", scale=928)]
    found = fleet.simulate(volumes(60, 10, 10), kinds, placement=None, years=0.25, mix_seeds=[1, 2], **SMALL)
    assert found.drives()["volumes"].to_pylist() == pytest.approx([10, 10, 20, 20], abs=1)
    assert found.mixes()["seed"].to_pylist() == [1, 2] * (found.mixes().num_rows // 2)
    assert found.totals()["dollars"].to_pylist() == pytest.approx([2 * 100 * 0.224 * 1.073741824 / 1.1 + 2 * 40], rel=0.03)


def test_a_tolerance_saves_runs() -> None:
    growing = volumes(4, 20, [10, 20, 30, 40], RANDOM, 0.5)
    options: dict[str, Any] = {"placement": None, "seeds": [1], **SMALL}
    every = fleet.simulate(growing, drives(1), tolerance=0.0, years=1, **options)
    once = fleet.simulate(growing, drives(1), tolerance=10.0, years=1, **options)
    assert (every.ran, once.ran) == (4, 1)
    assert every.mixes()["write_amplification"][1] == once.mixes()["write_amplification"][0], "the middle quarter, the earlier of two"


def test_an_assignment_and_a_placement_of_your_own() -> None:
    """Functions see the columns, and their answers decide."""
    seen: list[int] = []

    def to_the_last(found: Volumes, room_bytes: Any) -> Any:
        return np.full(len(found), len(room_bytes) - 1)

    def odd_and_even(found: Volumes, handles: int) -> Any:
        seen.append(handles)
        return np.arange(len(found)) % 2

    found = fleet.simulate(
        volumes(4, 20, 10), drives(3), years=0.25, assignment=to_the_last, placement=odd_and_even, handles=4, **SMALL
    )
    assert found.drives().filter(pa.compute.equal(found.drives()["placement"], "none"))["volumes"].to_pylist() == [0, 0, 4]
    assert found.placements == ["none", "odd_and_even"] and seen == [4]


@pytest.mark.parametrize("name", list(fleet.ASSIGNMENTS))
def test_assignments_balance_their_quantity(name: str) -> None:
    found = fleet.population(400, seed=5, footprint_bytes_max=50e9)
    room = np.array([1e12] * 8 + [2e12])
    chosen = np.asarray(fleet.ASSIGNMENTS[name](found, room))
    weights = {"by_size": found.footprint_bytes, "by_write_rate": found.bytes_per_day, "by_lifetime": found.footprint_bytes}
    loads = np.bincount(chosen, weights.get(name), 9) / (room if name in weights else 1.0)
    assert loads.max() < 1.3 * loads.min()
    if name == "by_lifetime":
        lives = [found.lifetime_days[chosen == drive] for drive in range(9)]
        assert all(one.max() <= other.min() for one, other in zip(lives, lives[1:], strict=False))


def test_a_population_has_the_published_distributions() -> None:
    """Medians, tails and rank correlations of the sources, within the error of 4000 draws."""
    from scipy.stats import spearmanr  # type: ignore[import-untyped]

    found = fleet.population(4000, seed=1)
    gib, rewrites = found.footprint_bytes / 2**30, 1 / found.lifetime_days
    assert np.quantile(gib, [0.1, 0.5, 0.9]) == pytest.approx([0.25, 2.02, 88.6], rel=0.25)
    assert np.quantile(rewrites, [0.1, 0.5, 0.9]) == pytest.approx([0.385, 1.51, 7.83], rel=0.15)
    assert spearmanr(gib, rewrites).statistic == pytest.approx(-0.674, abs=0.03)
    exponents = np.array([workload["zipf_exponent"] for workload in found.workloads])
    assert np.median(0.2 ** (1 - exponents)) == pytest.approx(0.73, abs=0.02)
    scaled = fleet.population(4000, seed=1, mean_footprint_bytes=1e11, data_per_working_set=2.0)
    assert scaled.footprint_bytes.mean() == pytest.approx(1e11)
    assert scaled.lifetime_days == pytest.approx(2 * found.lifetime_days)


def test_a_folder_of_traces_is_a_fleet(tmp_path: Path) -> None:
    """A trace of one day that writes 1 GB four times is a volume of 1 GB with 4 GB a day."""
    for name, passes in (("a.csv", 4), ("b.csv", 1)):
        lines = [
            f"7,W,{block << 20},{1 << 20},{int((turn * 1000 + block) / (passes * 1000 - 1) * 86400e6)}"
            for turn in range(passes)
            for block in range(1000)
        ]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    found = fleet.from_folder(tmp_path, trace={"format": "alibaba"}, sample=1, **SMALL)
    assert found.names == ("a.csv", "b.csv")
    assert found.footprint_bytes.tolist() == [1000 << 20] * 2
    assert found.bytes_per_day == pytest.approx(np.array([4000 << 20, 1000 << 20]))
    result = fleet.simulate(found, drives(1, scale=4, capacity_bytes="4GiB"), years=0.25, **SMALL)
    assert result.totals()["not_steady"].to_pylist() == [0, 0]
    together, apart = result.quarters()["write_amplification"].to_pylist()
    assert apart == pytest.approx(1.0, abs=0.001) and apart < together < 1.1, "two sequences on one handle mix"


def test_a_page_shows_the_fleet(mixed: tuple[FleetResult, Path], tmp_path: Path) -> None:
    mixed[0].report(tmp_path / "fleet.html")
    text = (tmp_path / "fleet.html").read_text()
    assert text.count("data:image/svg+xml") == 4 and "placement by lifetime" in text.lower() and "<script" not in text


FILE = """
[volumes]
count = 8
mean_footprint_bytes = 20e9
footprint_bytes_max = 50e9

[[drives]]
profile = "warp_default"
scale = 1024
overrides = { "endurance.rated_erases" = 100 }

[run]
years = 0.5
seeds = [1, 2]

[factors]
dollars_per_terabyte = 80
"""


def test_the_command_runs_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the totals, writes a page and tables, and names a key that does not exist."""
    file = tmp_path / "fleet.toml"
    file.write_text(FILE)
    assert command([str(file), "--workers", "1", "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("8 volumes, 0.5 years, ")
    totals = pq.read_table(tmp_path / "out" / "totals.parquet").to_pylist()
    assert [row["dollars"] / row["bought"] for row in totals] == pytest.approx([80 * 224 * 2**30 / 1.1 / 1e12] * 2)
    for was, now, message in [
        ("years = 0.5", "yeers = 0.5", "run.yeers is unknown. Give one of years"),
        ("[volumes]", "[volume]", "volume is unknown. Give volumes, drives, run and factors"),
        ("count = 8", "", "volumes has neither a folder of traces nor a count of drawn volumes"),
        ("count = 8", 'count = "many"', "count = 'many'. Give a whole number from 1 to 1,000,000"),
        ("years = 0.5", "years = nan", "years = nan. Give a number from 0 to 100"),
        ("seeds = [1, 2]", "seeds = 0", "seeds = 0. Give a list of whole numbers"),
        ("scale = 1024", "count = 1000000000", "count = 1000000000. Give a whole number from 1 to 1,000,000"),
        ("[factors]", "[factors", "fleet.toml"),
    ]:
        file.write_text(FILE.replace(was, now))
        assert command([str(file), "--workers", "1"]) == 1
        assert message in capsys.readouterr().err


def test_mistakes_are_one_sentence() -> None:
    """Each sentence names the place, the cause and the remedy."""

    def wrong(found: Volumes, room_bytes: Any) -> Any:
        return np.full(len(found), 7)

    one = volumes(1, 20, 10)

    def of(**options: Any) -> Any:
        return lambda: fleet.simulate(one, drives(1), **options)

    for build, message in [
        (lambda: volumes(0), "volumes: there are none. Give at least one volume"),
        (lambda: volumes(2, [1, -1]), "volume v1: footprint_bytes = -1000000000.0. Give a number from 1 to 1e+18"),
        (lambda: volumes(3, [1, 2]), "footprint_bytes: 2 numbers for 3 volumes. Give one number, or one for each volume"),
        (lambda: Volumes(["a", "a"], np.ones(1), np.ones(1), [RANDOM, RANDOM]), "volumes: a name occurs twice"),
        (lambda: fleet.population(5, working_sets="azure"), "working_sets = 'azure' is unknown. Give one of alibaba, tencent"),
        (lambda: fleet.from_folder("/nowhere"), "/nowhere has no entry *. Give a folder with a trace for each volume"),
        (lambda: fleet.simulate(one, drives(1), assignment="by_luck"), "assignment = 'by_luck' is unknown. Give one of round_robin"),
        (lambda: fleet.simulate(one, drives(1), assignment=wrong), "the assignment returned drive 7 for volume 0. Return integers from 0 to 0"),
        (lambda: fleet.simulate(one, drives(1), assignment=lambda found, room: [0.5]), "the assignment returned float64 of shape"),
        (lambda: fleet.simulate(volumes(1, 900), drives(1)), "volume v0 has 900 GB, and a drive takes 197 GB. Give larger drives"),
        (lambda: fleet.simulate(one, Drives("warp_default")), "the profile has no [endurance], so no drive wears out"),
        (lambda: fleet.simulate(one, drives(1), years=0), "a fleet needs a kind of drives, a seed, a mix seed and a quarter"),
        (lambda: fleet.simulate(one, drives(1), fill_limit=2), "fill_limit = 2. Give a number from 0.01 to 1"),
        (lambda: fleet.simulate(one, drives(1), handles=9), "handles = 9, and drives warp_default have 8. Give 8 or fewer"),
        (lambda: Factors(annual_failure_rate=1), "annual_failure_rate = 1. Give a share from 0 to below 1"),
        (lambda: fleet.simulate(volumes(1, 20, 10, {"kind": "nothing"}), drives(1)), "nothing"),
        (of(years=float("nan")), "years = nan. Give a number from 0 to 100"),
        (of(years=float("inf")), "years = inf. Give a number from 0 to 100"),
        (of(years="3"), "years = '3'. Give a number from 0 to 100"),
        (of(years=1e5), "years = 100000.0. Give a number from 0 to 100"),
        (of(seeds=0), "seeds = 0. Give a list of whole numbers, such as seeds = [1, 2, 3]"),
        (of(seeds=[1.5]), "seeds = 1.5. Give a whole number from 0 to"),
        (of(seeds=range(10**12)), "seeds has more than 10,000 seeds"),
        (lambda: fleet.simulate(one, drives(60), years=100, seeds=range(10_000)), "the fleet has 60 drives or more, and at most 50"),
        (of(workers=0), "workers = 0 is out of range. Give a whole number of 1 or more"),
        (of(tolerance="0.1"), "tolerance = '0.1'. Give a number"),
        (of(assignment=3), "assignment = 3 is unknown. Give one of round_robin"),
        (lambda: drives(1, scale=0), "drives warp_default: scale = 0. Give a whole number from 1 to 65,536"),
        (lambda: drives(10**9), "drives warp_default: count = 1000000000. Give a whole number from 1 to 1,000,000"),
        (lambda: fleet.population(10**10), "count = 10000000000. Give a whole number from 1 to 1,000,000"),
        (lambda: fleet.simulate(volumes(9, 1e9), Drives("ssd_b")), "Give fewer drives or less data"),
        (lambda: Volumes(["a"], np.array(["x"]), np.ones(1), [RANDOM]), "footprint_bytes has a value that is no number"),
        (lambda: volumes(1, 1, 1e7), "volume v0: bytes_per_day = 1e+16. Give a number from 0 to 1e+15"),
        (lambda: Factors(dollars_per_terabyte=float("inf")), "dollars_per_terabyte = inf. Give a number"),
    ]:
        with pytest.raises(WarpError, match=re.escape(message)):
            build()


@pytest.mark.deep
def test_ray_with_a_killed_node_gives_the_same_integers(tmp_path: Path) -> None:
    """A mix of a killed node runs again, and no mix counts twice."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    many = volumes(32, 20, np.arange(1, 33) * 10, RANDOM)
    options: dict[str, Any] = {"placement": None, "assignment": "round_robin", "progress": False, "seeds": [1, 2]}
    sixteen = drives(16, scale=128)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        victim = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
        found: list[FleetResult] = []
        run = threading.Thread(target=lambda: found.append(fleet.simulate(many, sixteen, engine="ray", store=tmp_path, **options)))
        run.start()
        while len(list(tmp_path.glob("points/*.parquet"))) < 3 and run.is_alive():
            run.join(0.01)
        assert run.is_alive(), "the node has to be killed while the fleet runs"
        cluster.remove_node(victim, allow_graceful=False)
        run.join(120)
        assert found, "the fleet did not end"
    finally:
        ray.shutdown()
        cluster.shutdown()
    local = fleet.simulate(many, sixteen, workers=2, **options)
    assert found[0].ran == local.ran == 16
    for table in ("mixes", "quarters", "volumes", "drives", "totals"):
        assert getattr(found[0], table)() == getattr(local, table)()
