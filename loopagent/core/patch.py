"""Applying RFC 6902 patches, as far as payload changes make them: `add`, `replace`, `remove`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from loopagent.core.json_values import Json, is_array, is_object


_POSITION: Final = re.compile(r"0|[1-9][0-9]{0,17}")


def apply_patch(payload: Any, patch: Iterable[Json]) -> Any:
    """Apply operations one after the other.

    Args:
        payload: What they start from; it is not changed, and shares with the result what they do not touch.
        patch: Operations as `PayloadChange.patch` has them.

    Raises:
        ValueError: An operation does not fit what is there, or is of another kind.
    """
    folding = Folding()
    for operation in patch:
        payload = folding.apply(payload, operation)
    return payload


class Folding:
    """One application: remembers its own copies, so that each container is copied only once."""

    def __init__(self) -> None:
        self._owned: dict[int, Any] = {}

    def apply(self, payload: Any, operation: Json) -> Any:
        """What one operation makes of a value."""
        kind, pointer, value = _read(operation)
        if not pointer:
            return value
        *way, last = [one.replace("~1", "/").replace("~0", "~") for one in pointer.split("/")[1:]]
        payload = at = self._own(payload, pointer)
        for part in way:
            key = _key(at, part, pointer)
            inner = at[key] = self._own(at[key], pointer)
            at = inner
        if kind == "add" and is_array(at):
            at.insert(len(at) if last == "-" else _key(at, last, pointer, 1), value)
        elif kind == "add":
            at[last] = value
        elif kind == "replace":
            at[_key(at, last, pointer)] = value
        else:
            del at[_key(at, last, pointer)]
        return payload

    def _own(self, container: Any, pointer: str) -> Any:
        """The container itself if it is one of the copies, else a copy."""
        if id(container) in self._owned:
            return container
        copy: Any = None
        if is_object(container):
            copy = dict(container)
        elif is_array(container):
            copy = list(container)
        else:
            raise ValueError(f"{pointer!r} leads through something that is no object and no array")
        self._owned[id(copy)] = copy
        return copy


def _read(operation: Json) -> tuple[str, str, Any]:
    kind, pointer = operation.get("op"), operation.get("path")
    if kind not in {"add", "replace", "remove"} or not isinstance(pointer, str):
        raise ValueError(f"not an operation that a payload change makes: {str(operation)[:200]}")
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"not a JSON Pointer: {pointer!r}")
    if kind == "remove" and not pointer:
        raise ValueError("the whole payload cannot be removed")
    if kind != "remove" and "value" not in operation:
        raise ValueError(f"{kind} at {pointer!r} has no value")
    return kind, pointer, operation.get("value")


def _key(at: Any, part: str, pointer: str, beyond: int = 0) -> Any:
    """The key or position of something that is there, or so far beyond the end."""
    if is_object(at) and part in at:
        return part
    if is_array(at) and _POSITION.fullmatch(part) and int(part) < len(at) + beyond:
        return int(part)
    raise ValueError(f"{pointer!r}: there is no {part!r}")
