"""Policies in Python decide for the engine, have their reported cost, and report their failures."""

import numpy as np
import pytest
from numpy.typing import NDArray

import warp_ssd
from warp_ssd import NO_PLACEMENT, Candidates, Device, Experiment, PlacementPolicy, Point, Requests, VictimPolicy


class Fifo(VictimPolicy):
    def select(self, candidates: Candidates) -> np.integer:
        return np.argmin(candidates.closed_sequence)


class Greedy(VictimPolicy):
    """Equals the engine's `greedy`. Among equal units it selects the one that was closed first."""

    def select(self, candidates: Candidates) -> np.integer:
        share = candidates.valid_pages / candidates.pages
        return np.lexsort((candidates.closed_sequence, share))[0]


class CostBenefit(VictimPolicy):
    """Equals the engine's `benefit_cost`."""

    def select(self, candidates: Candidates) -> np.integer:
        u = candidates.valid_pages / candidates.pages
        benefit = (1 - u) * candidates.age / (1 + u)
        return np.lexsort((candidates.closed_sequence, -benefit))[0]


def point(**choice: object) -> Point:
    experiment = Experiment("three_stream")
    points = experiment.points(quick=True, variants=["FDP", "zipf 1.2"], devices=["ssd_b"], **choice)  # type: ignore[arg-type]
    (one,) = points
    return one


@pytest.mark.parametrize(
    ("policy", "name"), [(Fifo(), "fifo"), (Greedy(), "greedy"), (CostBenefit(), "benefit_cost")]
)
def test_a_policy_in_python_is_the_engines_own(policy: VictimPolicy, name: str) -> None:
    overrides = {"gc.victim_policy": name}
    engine = point(overrides=overrides).run(gc_log=True)
    ours = point(overrides=overrides).run(gc_log=True, victim_policy=policy)
    assert ours.to_json() == engine.to_json()
    assert engine.policy_calls == 0 < ours.policy_calls and ours.policy_seconds > 0
    log = ours.gc_log().to_pandas()
    assert set(log.policy) <= {"external", "squeeze"}
    assert (log.victim_unit == engine.gc_log().to_pandas().victim_unit).all()


def test_candidates() -> None:
    seen: list[dict[str, object]] = []

    class Looking(VictimPolicy):
        def select(self, candidates: Candidates) -> int:
            assert (candidates.valid_pages < candidates.pages).all()
            assert len(candidates) == len(candidates.unit) == len(set(candidates.unit.tolist()))
            assert set(candidates.handle.tolist()) <= {-1, 0, 3}
            assert (candidates.age >= 0).all() and (candidates.since_invalidation >= 0).all()
            seen.append({"lazy": candidates.lazy, "now": candidates.host_pages_written})
            return int(np.argmin(candidates.valid_pages))

    device = Device("warp_default", scale="1/1024", victim_policy=Looking())
    pages = device.logical_pages
    random = np.random.default_rng(1)
    device.write(0, pages, 3)
    first = random.integers(pages, size=2 * pages)
    device.write(first, 1, np.where(first % 2 == 0, 0, 3))
    assert len(seen) == device.policy_calls > 10
    assert device.policy_seconds > 0
    assert {entry["lazy"] for entry in seen} == {True, False} or not any(entry["lazy"] for entry in seen)


def test_arrays_that_a_policy_keeps_stay_as_they_were() -> None:
    class Keeping(Greedy):
        def __init__(self) -> None:
            self.kept: list[tuple[Candidates | NDArray[np.int64], list[int]]] = []

        def select(self, candidates: Candidates) -> np.integer:
            if len(self.kept) < 20:
                whole = len(self.kept) % 2 == 0
                self.kept.append((candidates if whole else candidates.age, candidates.age.tolist()))
            return super().select(candidates)

    policy = Keeping()
    device = Device("warp_default", scale="1/1024", victim_policy=policy)
    device.write(0, device.logical_pages)
    device.write(np.random.default_rng(1).integers(device.logical_pages, size=2 * device.logical_pages))
    assert len(policy.kept) == 20 < device.policy_calls
    for kept, age in policy.kept:
        assert (kept.age if isinstance(kept, Candidates) else kept).tolist() == age


def test_no_choice_leaves_it_to_the_drive() -> None:
    class Nothing(VictimPolicy):
        def select(self, candidates: Candidates) -> None:
            return None

    device = Device("warp_default", scale="1/1024", victim_policy=Nothing())
    for _ in range(3):
        device.write(np.random.default_rng(1).permutation(device.logical_pages))
    assert device.stats.forced_collections > 0
    assert device.stats.foreground_collections == device.stats.background_collections == 0


class Mistaken(VictimPolicy):
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def select(self, candidates: Candidates) -> int:
        if self.answer is ZeroDivisionError:
            return 1 // 0
        return self.answer  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("answer", "error", "sentence"),
    [
        (ZeroDivisionError, ZeroDivisionError, "division"),
        (-1, IndexError, "select returned -1"),
        (1 << 40, IndexError, "candidates"),
        ("the first", TypeError, "position or None, not str"),
        (0.5, TypeError, "position or None, not float"),
    ],
)
def test_an_exception_ends_the_run(answer: object, error: type[Exception], sentence: str) -> None:
    policy = Mistaken(answer)
    with pytest.raises(error, match=sentence):
        point().run(victim_policy=policy)
    with pytest.raises(error, match=sentence):
        warp_ssd.run("three_stream", quick=True, victim_policy=policy)
    device = Device("warp_default", scale="1/1024", victim_policy=policy)
    with pytest.raises(error, match=sentence):
        for _ in range(3):
            device.write(np.random.default_rng(1).permutation(device.logical_pages))


def test_each_point_has_a_policy_of_its_own() -> None:
    class Counting(VictimPolicy):
        def __init__(self) -> None:
            self.calls = 0

        def select(self, candidates: Candidates) -> int:
            self.calls += 1
            return self.calls % len(candidates)

    policy = Counting()
    together = warp_ssd.run("three_stream", quick=True, variants=["FDP"], victim_policy=policy)
    assert policy.calls == 0
    cells = together.cells().to_pandas().set_index(["device", "overwrite"])
    alone = point().run(victim_policy=policy).cells().to_pandas()
    expected = cells.loc[("ssd_b", "zipf 1.2")].media_bytes_written
    assert alone.media_bytes_written.item() == expected


def test_what_is_no_policy_is_refused() -> None:
    with pytest.raises(TypeError, match="victim_policy must have a method select"):
        point().run(victim_policy="greedy")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="placement_policy must have a method place"):
        point().run(placement_policy=Fifo())  # type: ignore[arg-type]


class AsTold(PlacementPolicy):
    def place(self, requests: Requests) -> NDArray[np.uint16]:
        return requests.placement


class Together(PlacementPolicy):
    def place(self, requests: Requests) -> NDArray[np.integer]:
        assert len(requests) <= 8192 and (requests.pages > 0).all()
        assert requests.operation.max() <= 2 and requests.stream.max() < 8
        return np.full(len(requests), NO_PLACEMENT)


def test_placement() -> None:
    plain = point().run()
    assert point().run(placement_policy=AsTold()).to_json() == plain.to_json()
    together = point().run(placement_policy=Together())
    assert together.policy_calls > 0
    owners = together.owners().to_pandas()
    assert (owners.host_bytes_written[1:] == 0).all()
    (unplaced,) = Experiment("three_stream").points(quick=True, variants=["NoFDP", "zipf 1.2"], devices=["ssd_b"])
    reference = unplaced.run().cells().to_pandas().media_bytes_written
    assert together.cells().to_pandas().media_bytes_written.item() == reference.item()


def test_requests_that_are_kept_stay_as_they_were() -> None:
    class Keeping(AsTold):
        kept: list[tuple[Requests, NDArray[np.int64]]] = []

        def place(self, requests: Requests) -> NDArray[np.uint16]:
            if len(self.kept) < 2:
                self.kept.append((requests, requests.first.copy()))
            assert requests.first is requests.first
            return requests.placement

    point().run(placement_policy=Keeping())
    (one, one_first), (two, two_first) = Keeping.kept
    assert (one.first == one_first).all() and (two.first == two_first).all()
    assert not np.array_equal(one.first, two.first)
    assert len(one.pages) == len(one), "columns can be asked for later too"


def test_placement_in_virtual_time() -> None:
    experiment = Experiment("noisy_neighbour")
    one = experiment.points(quick=True)[0]
    plain, told = one.run(), one.run(placement_policy=AsTold())
    assert told.to_json() == plain.to_json() and told.policy_calls > 0


@pytest.mark.parametrize(
    ("answer", "error", "sentence"),
    [
        (lambda requests: np.zeros(3, dtype=int), ValueError, "3 placement indices for"),
        (lambda requests: np.full(len(requests), 9), warp_ssd.WarpError, "returned placement index 9, but the drive has only 0 to 7"),
        (lambda requests: np.full(len(requests), -1), ValueError, "placement index -1"),
        (lambda requests: requests.pages / 2, TypeError, "place must return integers, not float64"),
        (lambda requests: {}["no"], KeyError, "no"),
    ],
)
def test_mistakes_of_placement_end_the_run(answer: object, error: type[Exception], sentence: str) -> None:
    class Wrong(PlacementPolicy):
        def place(self, requests: Requests) -> NDArray[np.integer]:
            return answer(requests)  # type: ignore[operator, no-any-return]

    with pytest.raises(error, match=sentence):
        point().run(placement_policy=Wrong())


def test_forks_do_not_have_the_policy() -> None:
    device = Device("warp_default", scale="1/1024", victim_policy=Mistaken(ZeroDivisionError))
    fork = device.fork()
    for _ in range(3):
        fork.write(np.random.default_rng(1).permutation(fork.logical_pages))
    assert fork.policy_calls == 0 and fork.stats.units_reclaimed > 0
