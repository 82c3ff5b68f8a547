"""Output mappings: parts of a result that are put into the payload without asking the model.

A mapping is `{"result path": "payload path"}`; `*` is the whole result, and a payload path that ends in `[]` appends to
an array. Objects, and arrays with a first item, are made on the way when they are missing; anything else that stands
in the way is a refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopagent.core.json_values import is_array, is_object
from loopagent.core.patch import Folding
from loopagent.core.paths import look_up, parse_path, pointer
from loopagent.core.problems import path_text


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.core.child_merge import Merge
    from loopagent.core.json_values import Json
    from loopagent.core.paths import Operation, Path, Rules

WHOLE: Final = "*"
"""Result path that stands for the whole result."""
APPEND: Final = "[]"
"""End of a payload path that appends."""
END_IN: Final = f"a path that ends in {APPEND} appends"
MAX_REFUSED: Final = 20
"""Refusals that are kept; further ones are counted."""


class Outputs:
    """A payload that takes results in, and the patch that leads to it.

    Args:
        payload: Where it starts; it is not changed.
        write: What may be written.
    """

    def __init__(self, payload: Any, write: Rules) -> None:
        self.payload: Any = {} if payload is None else payload
        self.patch: list[Json] = []
        self.refused: list[str] = []
        self.left_out = 0
        self.merge: Merge | None = None
        """The changes of sub-agents, when it is they that change the payload."""
        self._write = write
        self._free = write.everything
        self._folding = Folding()

    def take(self, mapping: Mapping[str, Any], value: Any) -> None:
        """Put parts of one result where the mapping says; what cannot be put is noted and left out."""
        for source, target in mapping.items():
            try:
                part = _part(value, source)
            except LookupError:
                self.refuse(f"the result has nothing at {source!r}")
                continue
            self.put(str(target), part)

    def put(self, target: str, value: Any) -> None:
        """Put a value at a payload path."""
        appends = target.rstrip().endswith(APPEND)
        path = parse_path(_bare(target))
        if isinstance(path, str):
            self.refuse(f"{target!r}: {path}")
            return
        fault = self._place(path, value, append=appends)
        if fault:
            self.refuse(f"{target!r}: {fault}")

    def _place(self, path: Path, value: Any, *, append: bool) -> str:
        """Write at a place; returns why not."""
        at, depth = self.payload, 0
        while depth < len(path) and _has(at, path[depth]):
            at, depth = at[path[depth]], depth + 1
        if depth == len(path):
            return self._append(path, at, value) if append else self._do("update", path, value)
        fault = _no_room(at, path, depth)
        if fault:
            return fault
        made: Any = [value] if append else value
        for part in reversed(path[depth + 1 :]):
            made = [made] if isinstance(part, int) else {part: made}
        return self._do("add", path[: depth + 1], made, place=path)

    def _append(self, path: Path, at: Any, value: Any) -> str:
        if not is_array(at):
            return "not an array"
        return self._do("add", (*path, len(at)), value)

    def _do(self, operation: Operation, path: Path, value: Any, place: Path | None = None) -> str:
        """Write, if that is allowed; `place` is where the value ends up when objects on the way are made with it."""
        if not (self._free or self._write.allows(place or path, operation)):
            return f"{operation} is not allowed there"
        op = {"add": "add", "update": "replace"}[operation]
        change: Json = {"op": op, "path": pointer(path), "value": value}
        self.payload = self._folding.apply(self.payload, change)
        self.patch.append(change)
        return ""

    def refuse(self, text: str) -> None:
        """Note what could not be put."""
        if len(self.refused) < MAX_REFUSED:
            self.refused.append(text)
        else:
            self.left_out += 1


def mapping_faults(mapping: Mapping[str, Any]) -> list[str]:
    """What is wrong with a mapping before anything runs; paths with `{{` are looked at when they are filled."""
    faults: list[str] = []
    for source, target in mapping.items():
        path = WHOLE if source == WHOLE else parse_path(source)
        if isinstance(path, str) and path != WHOLE:
            faults.append(f"{source!r}: {path}")
        if not isinstance(target, str):
            faults.append(f"{source!r}: expected a payload path, got {target!r}")
        elif "{{" not in target and isinstance(fault := parse_path(_bare(target)), str):
            faults.append(f"{target!r}: {fault}")
    return faults


def _part(value: Any, source: str) -> Any:
    if source == WHOLE:
        return value
    path = parse_path(source)
    return look_up(value, (source,) if isinstance(path, str) else path)


def _bare(target: str) -> str:
    return target.strip().removesuffix(APPEND).removeprefix("payload.")


def _has(at: Any, part: str | int) -> bool:
    if isinstance(part, int):
        return is_array(at) and part < len(at)
    return is_object(at) and part in at


def _no_room(at: Any, path: Path, depth: int) -> str:
    """Why nothing can be made at a place, of which `depth` parts are there: items are made only one after another."""
    part = path[depth]
    if isinstance(part, int):
        if not is_array(at):
            return f"there is no array at {_named(path[:depth])}"
        if part != len(at):
            where = _named(path[:depth])
            return f"{where} has {len(at)} items, so the next is at [{len(at)}]; {END_IN}"
    elif not is_object(at):
        return f"there is no object at {_named(path[:depth])}"
    later = next((one for one in path[depth + 1 :] if isinstance(one, int) and one != 0), None)
    return "" if later is None else f"an array that is not there begins at [0]; {END_IN}"


def _named(path: Path) -> str:
    return path_text(path) or "the top"
