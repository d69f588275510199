"""Policies in Python: which reclaim unit is collected next, and where the host's writes go.

Data flows from the engine to a policy in NumPy arrays, once for each decision or batch, never once for each page, and what the policy
returns flows back. Policies serve `warp_ssd.Device`, `warp_ssd.run`, `warp_ssd.Point.run` and `warp_ssd.sweep`. With a policy, the points
of one process run one after another; a sweep still uses all cores, by processes.

Results are as reproducible as the policy: draw random numbers from a generator with a seed of its own, made in ``__init__``. In runs each
point gets a deep copy of the policy, so that what it remembers from one point does not change the next. An exception ends the run and
is raised as it is.
"""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from warp_ssd._engine import NO_PLACEMENT, Candidates, Requests

__all__ = ["NO_PLACEMENT", "Candidates", "PlacementPolicy", "Requests", "VictimPolicy"]


class VictimPolicy(ABC):
    """Chooses the reclaim unit that garbage collection reclaims, instead of the profile's ``gc.unit_selection``.

    Examples
    --------
    Cost and benefit of Rosenblum and Ousterhout (1991), section 3.5:

    >>> class CostBenefit(VictimPolicy):
    ...     def select(self, candidates):
    ...         u = candidates.valid_pages / candidates.pages
    ...         return np.argmax((1 - u) * candidates.age / (1 + u))
    """

    @abstractmethod
    def select(self, candidates: Candidates) -> int | np.integer | None:
        """Choose a victim; called once for each decision.

        With a ``gc.handle_selection`` other than ``global`` the candidates are those of one owner; if none of them is chosen, the next
        owner's are shown.

        Parameters
        ----------
        candidates
            The closed reclaim units with an invalid page, at least one; in background collection only those that are at most as full
            as ``gc.lazy_valid_share`` (``candidates.lazy``). Their order is reproducible but means nothing; `closed_sequence` is the
            order of closing.

        Returns
        -------
        int or None
            Position of the victim in the arrays. None collects nothing: in the background until the next write; where room is
            needed, the drive then empties the superblock that suits it (a ``forced`` collection).
        """


class PlacementPolicy(ABC):
    """Says where the host's writes go, instead of the workload's placement indices.

    Examples
    --------
    Large writes apart from small ones:

    >>> class BySize(PlacementPolicy):
    ...     def place(self, requests):
    ...         return np.where(requests.pages >= 64, 1, 0)
    """

    @abstractmethod
    def place(self, requests: Requests) -> NDArray[np.integer]:
        """Place the next requests of the workload; called once for each batch, in their order.

        Parameters
        ----------
        requests
            Up to 8192 requests of a job file, 1024 of another workload, 64 in virtual time; reads and deallocations among them. When a
            run ends, the last of them may not have been carried out.

        Returns
        -------
        NDArray of integers, one for each request
            Index into the drive's list of placements, or `NO_PLACEMENT` for none. Of reads and deallocations it is ignored.
        """
