"""The studio's components in a notebook: drives at work, live.

    Result, PointResult, Points, Experiment, order -> order -> widget (traits: url, token, order) -> browser -> server

The server is the engine's own and runs in this process, on loopback, from the first widget on until the interpreter ends or
`stop_studio`. A notebook's page comes from elsewhere, so it shows a token, which is made anew in each process. A session is begun by the
browser when it shows a widget, and ended when it no longer does. What is said between the two is not this module's business.
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

#: What can be shown.
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
    """Show drives at work in a notebook: play, pause, set back, change and branch off.

    Parameters
    ----------
    shown
        What to show, up to 8 runs side by side:

        - a `Result` or `PointResult`: the same runs anew, to the same integers;
        - a `Point`, or a list of them, before anything was run;
        - an `Experiment`, or its name or path: a run for each variant, with the first value of each axis, on the first device;
        - an order: a dictionary with ``lanes``, as ``docs/studio.md`` describes it.
    device, overrides, seed, **options
        Of an experiment: what to show of it, as for `Experiment.points`. Anything else is shown as it is.

    Returns
    -------
    anywidget.AnyWidget
        As the last value of a cell it shows itself. The browser has to reach this process: on the same machine, or by a forwarded
        port (``widget.url``).

    Raises
    ------
    WarpError
        Something is missing, or a session cannot show it: why.
    """
    how = {"device": device, "overrides": overrides, "seed": seed, **options}
    order, files = _order(shown, {name: value for name, value in how.items() if value is not None})
    widget = _widget_class()
    url, token = _server.granting(files)
    return widget(url=url, token=token, order=order)


def stop_studio() -> None:
    """End the studio of this process and its sessions; what notebooks show of them stays as it was last. The next `studio` begins anew."""
    _server.stop()


def _order(shown: Shown, how: dict[str, Any]) -> tuple[dict[str, Any], list[Path]]:
    """What to run, and the files beside the catalogue that it names."""
    if isinstance(shown, (str, os.PathLike)):
        shown = Experiment(shown)
    if isinstance(shown, Experiment):
        seed = how.pop("seed", None)
        return studio_order_of_experiment(shown, **how, seeds=None if seed is None else [seed])
    if how:
        name = next(iter(how))
        raise WarpError(
            f"studio: {name} is of an experiment, and {type(shown).__name__} is shown as it is; "
            "give it to Experiment.points or run, or write it into the order"
        )
    if isinstance(shown, Mapping):
        if "lanes" not in shown:
            raise WarpError(
                "studio: a dictionary is an order, and this one has no lanes; docs/studio.md says what it holds. "
                "An experiment of one's own is given by the path of its experiment.toml"
            )
        return studio_order(json.dumps(dict(shown))), []
    if isinstance(shown, (Result, PointResult)):
        return studio_order_of_runs(shown)
    points = [shown] if isinstance(shown, Point) else shown
    if isinstance(points, Sequence) and points and all(isinstance(point, Point) for point in points):
        return studio_order_of_runs(points)
    raise WarpError(
        f"studio: {type(shown).__name__} cannot be shown; give a Result, a PointResult, Points, an Experiment or an order"
    )


class _Server:
    """The one server of this process, from the first time that it is asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[StudioServer, str] | None = None
        self._process = 0

    def granting(self, files: Sequence[Path]) -> tuple[str, str]:
        """Its address and token; these files may be run from now on."""
        with self._lock:
            # A copy of the process (fork) has none of the server's threads.
            if self._running is None or self._process != os.getpid():
                token = secrets.token_urlsafe(TOKEN_BYTES)
                self._running = (StudioServer(token), token)
                self._process = os.getpid()
            server, token = self._running
            server.grant(files)
            return server.url, token

    def stop(self) -> None:
        """Ends it, if this process has one."""
        with self._lock:
            running, self._running = self._running, None
            if running is not None and self._process == os.getpid():
                running[0].stop()


_server = _Server()
atexit.register(_server.stop)


@cache
def _widget_class() -> type[AnyWidget]:
    """The widget; made when it is first needed, because anywidget is."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise WarpError('studio needs anywidget: pip install "warp_ssd[notebook]"') from error
    module = studio_widget()
    if module is None:
        raise WarpError(
            "studio: this build has no page (crates/studio/web/dist); build the package from complete sources"
        )

    class StudioWidget(anywidget.AnyWidget):
        """Drives at work. Its traits are for the browser, and are not changed once it is there."""

        _esm = module
        url = traitlets.Unicode().tag(sync=True)
        token = traitlets.Unicode().tag(sync=True)
        order = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
        session = traitlets.Unicode(allow_none=True, default_value=None).tag(sync=True)

        def __repr__(self) -> str:
            # That of all widgets shows every trait, and this text is kept in notebooks: the token has no place in it.
            lanes = ", ".join(lane["name"] for lane in (self.order or {}).get("lanes", []))
            return f"StudioWidget({lanes} at {self.url})"

    return StudioWidget
