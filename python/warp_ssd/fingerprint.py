"""What a policy written in Python is, as far as results depend on it: a fingerprint for the hash of a point."""

from __future__ import annotations

import hashlib
import pickle
from types import CodeType
from typing import Any

from ._engine import WarpError

_OURS = ("builtins", "abc", "warp_ssd.policies")
"""Modules whose classes are the same for every policy."""


def fingerprint(*policies: object | None) -> str:
    """A hash of policies' code and attributes; empty if there are none.

    The code is that of all methods of the class and the classes that it inherits from, not that of functions which they call:
    a policy that calls others gives itself a class attribute `version` and changes it with them.

    Raises
    ------
    WarpError
        An attribute of a policy cannot be pickled.
    """
    if not any(policy is not None for policy in policies):
        return ""
    digest = hashlib.sha256()
    for policy in policies:
        digest.update(repr(None if policy is None else _parts(policy)).encode())
    return digest.hexdigest()


def _parts(policy: object) -> list[object]:
    kinds = [kind for kind in type(policy).__mro__ if kind.__module__ not in _OURS]
    code = [[kind.__qualname__, _members(vars(kind))] for kind in kinds]
    try:
        state = pickle.dumps(sorted(getattr(policy, "__dict__", {}).items()))
    except Exception as error:
        name = type(policy).__qualname__
        raise WarpError(
            f"policy {name}: its attributes cannot be pickled ({error}); keep such things out of it"
        ) from error
    return [code, state]


def _members(members: Any) -> list[object]:
    """Methods by their code, other attributes by their value; in the order of their names."""
    found: list[object] = []
    for name, member in sorted(members.items()):
        function = getattr(member, "__func__", getattr(member, "fget", member))
        if hasattr(function, "__code__"):
            defaults = (function.__defaults__, function.__kwdefaults__)
            found.append([name, _code(function.__code__), repr(defaults)])
        elif not name.startswith("__"):
            found.append([name, repr(member)])
    return found


def _code(code: CodeType) -> list[object]:
    """Instructions and what they refer to, without the place where they were written."""
    constants = [_code(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts]
    return [code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants]
