"""A digest of what a function does, to see that it is still the one that was looked at."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any


def function_digest(function: Any) -> str:
    """SHA-256 over the instructions, names and constants of a function and the functions inside of it.

    Where it stands does not matter, nor what it calls. Another version of Python compiles it differently, which is
    taken for a change. Of what is no Python function it is that of nothing.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    parts = "".join(_parts(code)) if isinstance(code, CodeType) else ""
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()


def _parts(code: CodeType) -> Iterator[str]:
    yield repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _parts(one)
        elif isinstance(one, frozenset):
            yield repr(sorted(map(repr, one)))
        else:
            yield repr(one)
