"""Fingerprints of policies and workloads in Python, for the hash of a point. They cover all code and data that results depend on.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
import re
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from ._engine import WarpError

_OURS = ("builtins", "abc", "warp_ssd.policies")
"""Modules whose classes are the same for every policy."""

_CONSTANTS = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, np.ndarray, np.generic, type(None))
"""Types of module values that count if a workload names them."""

_DIGITS = 16
"""Number of hexadecimal digits that distinguish versions of a workload."""


def fingerprint(*policies: object | None) -> str:
    """Returns a hash of the code and attributes of policies, or an empty text without policies.

    The hash covers all methods of the class and of its base classes. It does not cover functions that they call. A policy that
    calls such functions needs a class attribute `version` that changes with them.

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


def workload_name(workload: object) -> str:
    """Returns the engine's name of a workload in Python: its label and a hash, such as ``writes#0123456789abcdef``.

    The hash covers the code of the function, of functions of its module that it calls, and of its class if it is an object. It
    also covers defaults, the closure, constants of the module that the function names, and attributes.

    Raises
    ------
    WarpError
        A value of the closure, or an attribute, cannot be pickled.
    """
    digest = hashlib.sha256(repr(_callable(workload, set())).encode()).hexdigest()[:_DIGITS]
    return f"{workload_label(workload)}#{digest}"


def workload_label(workload: object) -> str:
    """Returns the readable name of a workload in Python: the name of the function, or of the object's class."""
    while isinstance(workload, functools.partial):
        workload = workload.func
    name = getattr(workload, "__name__", None) or type(workload).__name__
    return re.sub(r"\W+", "", str(name)) or "workload"


def _callable(workload: Any, seen: set[int]) -> list[object]:
    """Contents of a function, class, bound method, partial or callable object. Each function and class appears once."""
    if id(workload) in seen:
        return ["again", getattr(workload, "__qualname__", "")]
    if isinstance(workload, FunctionType):
        seen.add(id(workload))
        return _function(workload, seen)
    if isinstance(workload, type):
        seen.add(id(workload))
        kinds = [kind for kind in workload.__mro__ if kind.__module__ not in _OURS]
        functions = [member for kind in kinds for _, member in sorted(vars(kind).items()) if isinstance(member, FunctionType)]
        return [[[kind.__qualname__, _members(vars(kind))] for kind in kinds], [_named(one, seen) for one in functions]]
    if isinstance(workload, functools.partial):
        given = _pickled(workload, (workload.args, sorted(workload.keywords.items())))
        return [_callable(workload.func, seen), given]
    if isinstance(workload, MethodType):
        return [_callable(workload.__self__, seen), workload.__func__.__qualname__]
    if isinstance(workload, BuiltinFunctionType):
        return [workload.__module__, workload.__qualname__]
    state = _pickled(workload, sorted(getattr(workload, "__dict__", {}).items()))
    return [_callable(type(workload), seen), state]


def _function(function: FunctionType, seen: set[int]) -> list[object]:
    """The code of a function and the values that it depends on."""
    enclosed = []
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        is_code = isinstance(value, FunctionType | type | MethodType | BuiltinFunctionType)
        enclosed.append(_callable(value, seen) if is_code else _pickled(function, value))
    attributes = _pickled(function, sorted(vars(function).items()))
    defaults = _pickled(function, (function.__defaults__, function.__kwdefaults__))
    return [function.__qualname__, _code(function.__code__), defaults, enclosed, attributes, _named(function, seen)]


def _named(function: FunctionType, seen: set[int]) -> list[object]:
    """The constants, functions and classes of its module that a function names."""
    found: list[object] = []
    for name in sorted(_names(function.__code__)):
        value = function.__globals__.get(name)
        if isinstance(value, FunctionType | type) and value.__module__ == function.__module__:
            found.append([name, _callable(value, seen)])
        elif isinstance(value, _CONSTANTS) and name in function.__globals__:
            try:
                found.append([name, pickle.dumps(value)])
            except Exception:  # a list of modules, for example, is no constant
                continue
    return found


def _names(code: CodeType) -> set[str]:
    """Global names that a function, or a function inside it, looks up."""
    inner = [_names(value) for value in code.co_consts if isinstance(value, CodeType)]
    return set(code.co_names).union(*inner)


def _pickled(workload: object, value: object) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:
        raise WarpError(
            f"the state of workload {workload_label(workload)} cannot be pickled ({error}). "
            "Make these objects in the function, from its target"
        ) from error


def _parts(policy: object) -> list[object]:
    kinds = [kind for kind in type(policy).__mro__ if kind.__module__ not in _OURS]
    code = [[kind.__qualname__, _members(vars(kind))] for kind in kinds]
    try:
        state = pickle.dumps(sorted(getattr(policy, "__dict__", {}).items()))
    except Exception as error:
        name = type(policy).__qualname__
        raise WarpError(
            f"the attributes of policy {name} cannot be pickled ({error}). Remove these attributes"
        ) from error
    return [code, state]


def _members(members: Any) -> list[object]:
    """Methods by their code and other attributes by their value, in the order of their names."""
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
    """Instructions and their operands, without source positions."""
    constants = [_code(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts]
    return [code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants]
