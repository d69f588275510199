"""The studio in a notebook: one server, orders of finished runs, equal integers, and refusals of
unsuitable objects."""

from __future__ import annotations

import base64
import ctypes
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
import pytest
import warp_ssd
from warp_ssd import Experiment, PlacementPolicy, PointResult, Result, WarpError, run, stop_studio, studio

SMALL: dict[str, Any] = {"devices": ["ssd_a"], "scale": "1/2048", "drive_writes": 1.0}
#: Longer than anything takes on a machine that does other things too.
PATIENCE_SECONDS = 120


@pytest.fixture(scope="module", autouse=True)
def _server() -> Iterator[None]:
    yield
    stop_studio()


def ask(widget: Any, method: str, path: str, body: object = None, token: str | None = None) -> Any:
    """Sends a request as the widget in a browser does, from another origin and with the token."""
    headers = {"Origin": "http://localhost:8888", "Authorization": f"Bearer {widget.token if token is None else token}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(widget.url + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        text = answer.read()
    return json.loads(text) if text else None


class Page:
    """WebSocket client that plays a session to its end."""

    def __init__(self, widget: Any, session: str) -> None:
        place = urlparse(widget.url)
        assert place.hostname is not None and place.port is not None
        self._socket = socket.create_connection((place.hostname, place.port), PATIENCE_SECONDS)
        token = base64.urlsafe_b64encode(widget.token.encode()).decode().rstrip("=")
        head = [
            f"GET /api/sessions/{session}/live HTTP/1.1",
            f"Host: {place.netloc}",
            "Origin: http://localhost:8888",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            f"Sec-WebSocket-Protocol: warp.token.{token}",
        ]
        self._socket.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
        assert self._socket.recv(12) == b"HTTP/1.1 101"

    def say(self, command: Mapping[str, object]) -> None:
        text = json.dumps(command).encode()
        assert len(text) < 126
        self._socket.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)

    def close(self) -> None:
        self._socket.close()


def integers(cells: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    """Returns the integers that identical runs have in common."""
    of_owner = ("host_bytes_written", "gc_pages_copied", "units_opened", "units_reclaimed")
    return [
        (
            *(cell[name] for name in ("host_bytes_written", "media_bytes_written", "media_bytes_erased")),
            *(tuple(owner.get(name) for name in of_owner) for owner in cell["owners"]),
        )
        for cell in cells
    ]


def played(widget: Any) -> list[dict[str, Any]]:
    """Plays the widget's session to its end as a browser does. Returns one cell for each lane."""
    session = ask(widget, "POST", "/api/sessions", widget.order)["id"]
    page = Page(widget, session)
    page.say({"do": "speed", "host_bytes_per_second": None})
    page.say({"do": "play"})
    begun = time.monotonic()
    while True:
        assert time.monotonic() - begun < PATIENCE_SECONDS, "it does not end"
        (phase,) = [entry["phase"] for entry in ask(widget, "GET", "/api/sessions") if entry["id"] == session]
        assert phase != "failed"
        if phase == "ended":
            break
        time.sleep(0.1)
    result = ask(widget, "GET", f"/api/sessions/{session}/export/result.json")
    page.close()
    ask(widget, "DELETE", f"/api/sessions/{session}")
    cells: list[dict[str, Any]] = result if isinstance(result, list) else result["cells"]
    return cells


def cells_of(result: Result | PointResult) -> list[dict[str, Any]]:
    """Returns the cells of a result as JSON."""
    if isinstance(result, PointResult):
        return [json.loads(result.to_json())]
    cells: list[dict[str, Any]] = result.to_dict()["cells"]
    return cells


@pytest.fixture(scope="module")
def result() -> Result:
    return run(
        "three_stream", **SMALL, variants=["80/20", "FDP", "NoFDP"], seeds=[3], overrides={"gc.victim_policy": "fifo"}
    )


def test_a_widget_has_what_the_browser_needs_and_tells_nobody(result: Result) -> None:
    widget: Any = studio(result)
    assert widget.url.startswith("http://127.0.0.1:")
    assert len(widget.token) >= 32
    assert widget.session is None
    assert {"url", "token", "order", "session", "_esm"} <= set(widget.keys)
    assert "attachShadow" in widget._esm
    assert widget.token not in repr(widget) and "FDP, NoFDP" in repr(widget)
    bundle = json.dumps(widget._repr_mimebundle_()[0])
    assert "application/vnd.jupyter.widget-view+json" in bundle and widget.token not in bundle


def test_there_is_one_server_until_it_is_stopped(result: Result) -> None:
    first: Any = studio(result)
    second: Any = studio("three_stream", scale="1/2048")
    assert (first.url, first.token) == (second.url, second.token)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        ask(first, "GET", "/api/about", token="x" * 43)
    assert ask(first, "GET", "/api/about")["version"] == warp_ssd.__version__
    stop_studio()
    with pytest.raises(urllib.error.URLError):
        ask(first, "GET", "/api/about")
    third: Any = studio(result)
    assert third.token != first.token
    ask(third, "GET", "/api/about")


def test_a_result_is_shown_to_the_same_integers(result: Result) -> None:
    widget: Any = studio(result)
    assert [lane["name"] for lane in widget.order["lanes"]] == ["FDP", "NoFDP"]
    assert widget.order["experiment"] == "three_stream" and widget.order["seed"] == 3
    assert integers(played(widget)) == integers(cells_of(result))


def test_a_part_of_a_result_and_a_point_of_it_are_shown(result: Result) -> None:
    assert integers(played(studio(result["NoFDP"]))) == integers(cells_of(result["NoFDP"]))
    assert integers(played(studio(result[0]))) == integers(cells_of(result[0]))


def test_a_quick_form_and_an_automatic_scale_are_shown_as_they_ran() -> None:
    quick = run("three_stream", quick=True, devices=["ssd_a"], variants=["FDP", "80/20"])
    assert integers(played(studio(quick))) == integers(cells_of(quick))
    found = run("three_stream", devices=["ssd_a"], variants=["FDP", "80/20"], scale="auto:1/1024", drive_writes=0.5)
    widget: Any = studio(found)
    assert "auto" not in widget.order["scale"]
    assert integers(played(widget)) == integers(cells_of(found))


def test_a_workload_of_ones_own_is_shown(tmp_path: Path) -> None:
    job = tmp_path / "mine.fio"
    job.write_text(
        "[cold]\nrw=write\nbs=128k\nsize=60%\n[overwrite]\nstonewall\nrw=randwrite\nbs=16k\nsize=20%\nio_size=60%\n"
    )
    experiment = Experiment.of_workload(str(job), "ssd_a")
    found = run(experiment, scale="1/2048", settings={"overwrite.bs": "32k"})
    assert integers(played(studio(found))) == integers(cells_of(found))
    other = run("three_stream", **SMALL, variants=["FDP", "80/20"], workload=str(job))
    assert integers(played(studio(other))) == integers(cells_of(other))
    table = {"kind": "fio", "text": job.read_text()}
    other = run("three_stream", **SMALL, variants=["FDP", "80/20"], workload=table)
    assert integers(played(studio(other))) == integers(cells_of(other))


def test_an_experiment_of_ones_own_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "mine" / "experiment.toml"
    file.parent.mkdir()
    device = tmp_path / "mine" / "mine.toml"
    device.write_text(warp_ssd.profile_text("ssd_a"))
    text = 'devices = ["mine.toml"]\nworkload = "three_stream"\n[run]\nscale = "1/2048"\ndrive_writes = 0.5\n'
    file.write_text(
        text + '[[variants]]\nname = "one"\n[[variants]]\nname = "other"\ndevice = { "gc.victim_policy" = "fifo" }\n'
    )
    found = run(file)
    assert integers(played(studio(found))) == integers(cells_of(found))
    widget: Any = studio(file)
    assert [lane["name"] for lane in widget.order["lanes"]] == ["one", "other"]
    assert integers(played(widget)) == integers(cells_of(found))


def test_points_and_experiments_are_shown_before_they_are_run() -> None:
    experiment = Experiment("three_stream")
    points = experiment.points(**SMALL, variants=["FDP", "80/20"])
    want = integers(cells_of(experiment.run_points(points)))
    assert integers(played(studio(points))) == want
    assert integers(played(studio(points[0]))) == want
    how: dict[str, Any] = {"device": "ssd_a", "scale": 2048, "drive_writes": 1.0, "variants": ["FDP", "80/20"]}
    assert integers(played(studio(experiment, **how))) == want
    widget: Any = studio("three_stream")
    assert [lane["variants"] for lane in widget.order["lanes"]] == [[name, "zipf 2.2"] for name in experiment.variants]
    written: Any = studio(experiment, **how)
    assert integers(played(studio(written.order))) == want


class Least(warp_ssd.VictimPolicy):
    def select(self, candidates: warp_ssd.Candidates) -> int:
        return int(np.argmin(candidates.valid_pages))


class Same(PlacementPolicy):
    def place(self, requests: warp_ssd.Requests) -> Any:
        return requests.placement


@pytest.mark.parametrize("policies", [{"victim_policy": Least()}, {"placement_policy": Same()}])
def test_policies_in_python_are_not_shown(policies: dict[str, Any]) -> None:
    found = run(
        "three_stream", devices=["ssd_a"], scale="1/4096", drive_writes=0.2, variants=["FDP", "80/20"], **policies
    )
    for shown in (found, found[0]):
        with pytest.raises(WarpError, match="a policy or a workload in Python"):
            studio(shown)


def test_what_cannot_be_shown_is_said_in_a_sentence(tmp_path: Path) -> None:
    experiment, one = Experiment("three_stream"), Experiment.of_workload("three_stream", "ssd_a")
    small: dict[str, Any] = {**SMALL, "variants": ["FDP", "80/20"]}
    saved = tmp_path / "saved.warp"
    warp_ssd.Device("ssd_a", scale="1/2048").snapshot(saved)
    mapping = {"devices": ["ssd_a"], "workload": "three_stream", "run": {"scale": "1/2048", "drive_writes": 0.5}}
    pickled = [point.__reduce__() for point in experiment.points(**small)]
    for shown, says in [
        (experiment.points(**SMALL), "9 runs, but a session shows 1 to 8"),
        (experiment.points(scale="1/2048", variants=["FDP", "80/20"]), "devices ssd_a and ssd_b"),
        (experiment.points(**small, seeds=[1, 2]), "seeds 1 and 2"),
        (one.points(capacity_bytes=16 << 30, drive_writes=0.5), "cannot change its capacity_bytes"),
        (experiment.points(**small, feedback={"policy": "lifetimes"}), "cannot change its feedback"),
        (one.points(snapshot=saved, drive_writes=0.5), "saved device"),
        (
            [warp_ssd.Point(*arguments) for _, arguments in pickled],
            "with one call of Experiment.points",
        ),
        (experiment.points(**small) + experiment.points(**small), "with one call of Experiment.points"),
        (Experiment(mapping), "neither in the catalogue nor a file"),
        (mapping, "this one has no lanes"),
        ({"lanes": [], "experiment": "three_stream"}, "lanes: the list is empty"),
        ({"lanes": [{"name": "a"}], "experiment": "three_streams"}, "did you mean three_stream?"),
        ({"lanes": [{"name": "a"}], "experiment": "three_stream", "device": "ssd_a"}, "lane a: has 9 runs"),
        ({"lanes": [{"name": "a"}], "workload": {"name": "/dev/zero"}, "device": "ssd_a"}, "no workload /dev/zero"),
        ([], "cannot show list"),
        (3, "studio cannot show int. Give a Result"),
        (warp_ssd.whatif, "cannot show"),
    ]:
        with pytest.raises(WarpError) as error:
            studio(shown)  # type: ignore[arg-type]
        assert says in str(error.value), f"{says}: {error.value}"
        assert "\n" not in str(error.value)
    with pytest.raises(WarpError, match="studio cannot change device of list"):
        studio(experiment.points(**small), device="ssd_b")
    with pytest.raises(WarpError, match="is not a variant or value"):
        studio(experiment, variants=["NoFPD"])


def in_python(program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in another process, which must end without help."""
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_without_anywidget_the_remedy_is_said() -> None:
    done = in_python("import sys; sys.modules['anywidget'] = None\nfrom warp_ssd import studio\nstudio('three_stream')")
    assert done.returncode == 1
    assert done.stderr.strip().endswith('studio needs anywidget. Run pip install "warp_ssd[notebook]"')


def test_a_process_ends_while_its_studio_is_busy() -> None:
    program = """
import json, os, urllib.request
from warp_ssd import studio
widget = studio("three_stream", scale="1/512", drive_writes=100.0)
head = {"Authorization": "Bearer " + widget.token}
body = json.dumps(widget.order).encode()
urllib.request.urlopen(urllib.request.Request(widget.url + "/api/sessions", body, head)).read()
child = os.fork()
if child == 0:
    again = studio("three_stream", scale="1/2048")
    assert again.url != widget.url and again.token != widget.token, "a copy of the process has a server of its own"
    about = urllib.request.Request(again.url + "/api/about", headers={"Authorization": "Bearer " + again.token})
    urllib.request.urlopen(about).read()
else:
    _, status = os.waitpid(child, 0)
    print("child", status)
"""
    begun = time.monotonic()
    done = in_python(program)
    assert (done.returncode, done.stdout) == (0, "child 0\n"), done.stderr
    assert time.monotonic() - begun < PATIENCE_SECONDS / 2


def test_it_serves_while_the_interpreter_is_busy(result: Result) -> None:
    """The server needs no lock of the interpreter. This thread keeps the lock until the answer
    is there."""
    widget: Any = studio(result)
    program = f"""
import json, urllib.request
request = urllib.request.Request({widget.url!r} + "/api/about", headers={{"Authorization": "Bearer " + {widget.token!r}}})
print(json.loads(urllib.request.urlopen(request, timeout={PATIENCE_SECONDS}).read())["version"], end="")
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as asking:
        assert asking.stdout is not None
        answer = ctypes.create_string_buffer(64)
        # PyDLL calls functions without releasing the lock.
        length = ctypes.PyDLL(None).read(asking.stdout.fileno(), answer, 64)
    assert answer.raw[:length].decode() == warp_ssd.__version__
