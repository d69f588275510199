"""The studio's components in a notebook: live drives.

    Result, PointResult, Points, Experiment, order -> order -> widget (traits: url, token, order) -> browser -> server

The server belongs to the engine. It runs in this process on loopback, from the first widget until the interpreter ends or
`stop_studio` is called. The page of a notebook comes from another server, so it shows a token, which is new in each process. The
browser begins a session when it shows a widget, and ends it when it hides the widget. This module does not take part in their
protocol.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from warp_ssd._engine import (
    Experiment,
    Point,
    PointResult,
    Result,
    StudioServer,
    WarpError,
    studio_order,
    studio_order_of_experiment,
    studio_order_of_runs,
    studio_widget,
)

if TYPE_CHECKING:
    from anywidget import AnyWidget

    from warp_ssd._engine import RunOptions

#: Content that `studio` can show.
Shown: TypeAlias = (
    Result | PointResult | Point | Sequence[Point] | Experiment | str | os.PathLike[str] | Mapping[str, object]
)

TOKEN_BYTES = 32


def studio(
    shown: Shown,
    *,
    device: str | None = None,
    overrides: Mapping[str, object] | None = None,
    seed: int | None = None,
    **options: Unpack[RunOptions],
) -> AnyWidget:
    """Show live drives in a notebook: play, pause, go back, change and fork.

    Parameters
    ----------
    shown
        The content, up to 8 runs side by side:

        - A `Result` or `PointResult` repeats the same runs, with the same integers.
        - A `Point`, or a list of points, needs no earlier run.
        - An `Experiment`, its name or its path gives a run for each variant. It takes the first value of each axis and the
          first device.
        - An order is a dictionary with ``lanes``, as described in ``docs/reference/studio.md``.
    device, overrides, seed, **options
        Selection for an experiment, as in `Experiment.points`. Other content appears as it is.

    Returns
    -------
    anywidget.AnyWidget
        The widget displays itself as the last value of a cell. The browser has to reach this process, on the same machine or
        through a forwarded port (``widget.url``).

    Raises
    ------
    WarpError
        An argument or package is missing, or a session cannot show the content. The message gives the reason.
    """
    how = {"device": device, "overrides": overrides, "seed": seed, **options}
    order, files = _order(shown, {name: value for name, value in how.items() if value is not None})
    widget = _widget_class()
    url, token = _server.granting(files)
    return widget(url=url, token=token, order=order)


def stop_studio() -> None:
    """End the studio of this process and its sessions. Notebooks keep their last picture. A later `studio` starts again."""
    _server.stop()


def _order(shown: Shown, how: dict[str, Any]) -> tuple[dict[str, Any], list[Path]]:
    """The order to run, and the files outside the catalogue that it names."""
    if isinstance(shown, (str, os.PathLike)):
        shown = Experiment(shown)
    if isinstance(shown, Experiment):
        seed = how.pop("seed", None)
        return studio_order_of_experiment(shown, **how, seeds=None if seed is None else [seed])
    if how:
        name = next(iter(how))
        raise WarpError(
            f"studio cannot change {name} of {type(shown).__name__}. "
            "Give it to Experiment.points or run, or write it into the order"
        )
    if isinstance(shown, Mapping):
        if "lanes" not in shown:
            raise WarpError(
                "studio takes a dictionary as an order, but this one has no lanes (docs/reference/studio.md). "
                "Give your own experiment by the path of its experiment.toml"
            )
        return studio_order(json.dumps(dict(shown))), []
    if isinstance(shown, (Result, PointResult)):
        return studio_order_of_runs(shown)
    points = [shown] if isinstance(shown, Point) else shown
    if isinstance(points, Sequence) and points and all(isinstance(point, Point) for point in points):
        return studio_order_of_runs(points)
    raise WarpError(
        f"studio cannot show {type(shown).__name__}. Give a Result, a PointResult, Points, an Experiment or an order"
    )


class _Server:
    """The only server of this process, started on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[StudioServer, str] | None = None
        self._process = 0

    def granting(self, files: Sequence[Path]) -> tuple[str, str]:
        """The address and the token of the server, which may run these files from now on."""
        with self._lock:
            # A forked copy of the process has none of the server's threads.
            if self._running is None or self._process != os.getpid():
                token = secrets.token_urlsafe(TOKEN_BYTES)
                self._running = (StudioServer(token), token)
                self._process = os.getpid()
            server, token = self._running
            server.grant(files)
            return server.url, token

    def stop(self) -> None:
        """Stops the server if this process has one."""
        with self._lock:
            running, self._running = self._running, None
            if running is not None and self._process == os.getpid():
                running[0].stop()


_server = _Server()
atexit.register(_server.stop)


@cache
def _widget_class() -> type[AnyWidget]:
    """The class of the widget. It is made on first use, because anywidget is optional."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise WarpError('studio needs anywidget. Run pip install "warp_ssd[notebook]"') from error
    module = studio_widget()
    if module is None:
        raise WarpError(
            "studio has no page in this build (crates/studio/web/dist). Build the package from complete sources"
        )

    class StudioWidget(anywidget.AnyWidget):
        """Live drives. The browser reads the traits, which never change after it has connected."""

        _esm = module
        url = traitlets.Unicode().tag(sync=True)
        token = traitlets.Unicode().tag(sync=True)
        order = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
        session = traitlets.Unicode(allow_none=True, default_value=None).tag(sync=True)

        def __repr__(self) -> str:
            # The default text of a widget shows every trait. Notebooks store this text, so it must not contain the token.
            lanes = ", ".join(lane["name"] for lane in (self.order or {}).get("lanes", []))
            return f"StudioWidget({lanes} at {self.url})"

    return StudioWidget
