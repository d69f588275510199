"""Policies in Python: the choice of the reclaim unit to collect, and the placement of the host's writes.

The engine passes NumPy arrays to a policy, once for each decision or batch and never once for each page. The policy returns its
choice. Policies work with `warp_ssd.Device`, `warp_ssd.run`, `warp_ssd.Point.run` and `warp_ssd.sweep`. With a policy, the points
of one process run one after another. A sweep still uses all cores, with processes.

Results are as reproducible as the policy. Draw random numbers from a generator with a fixed seed, made in ``__init__``. Each
point of a run gets a deep copy of the policy, so the state of one point does not affect the next. If a policy raises an
exception, the run ends and raises the same exception.
"""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from warp_ssd._engine import NO_PLACEMENT, Candidates, Requests

__all__ = ["NO_PLACEMENT", "Candidates", "PlacementPolicy", "Requests", "VictimPolicy"]


class VictimPolicy(ABC):
    """Chooses the reclaim unit that garbage collection reclaims, instead of the profile's ``gc.victim_policy``.

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
        """Choose a victim. The drive calls this method once for each decision.

        If ``gc.source_policy`` is not ``global``, the candidates belong to one owner. If the policy chooses none of them, the
        drive offers the candidates of the next owner.

        Parameters
        ----------
        candidates
            The closed reclaim units with an invalid page, at least one. In background collection (``candidates.lazy``) these are
            only units within ``gc.lazy_valid_share``. Their order is reproducible but arbitrary. `closed_sequence` is the order
            of closing.

        Returns
        -------
        int or None
            Position of the victim in the arrays. None collects no unit. In background collection this holds until the next write. If
            the drive needs room, it empties the superblock that suits it best (a ``forced`` collection).
        """


class PlacementPolicy(ABC):
    """Chooses the placement of the host's writes, instead of the workload's placement indices.

    Examples
    --------
    Separate large writes from small ones:

    >>> class BySize(PlacementPolicy):
    ...     def place(self, requests):
    ...         return np.where(requests.pages >= 64, 1, 0)
    """

    @abstractmethod
    def place(self, requests: Requests) -> NDArray[np.integer]:
        """Place the next requests of the workload. The engine calls this method once for each batch, in order.

        Parameters
        ----------
        requests
            Up to 8192 requests of a job file, 1024 of another workload, 64 in virtual time. They include reads and deallocations.
            At the end of a run, the last requests may not have been executed.

        Returns
        -------
        NDArray of integers, one for each request
            Index into the drive's list of placements, or `NO_PLACEMENT` for none. The engine ignores it for reads and
            deallocations.
        """
