"""Writes into the payload, one place at a time: permission, patch operation, size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeVar

from loopagent.core.json_values import Json, is_array, is_object
from loopagent.core.paths import Operation, pointer
from loopagent.core.problems import path_text


if TYPE_CHECKING:
    from loopagent.core.paths import Path, Rules


C = TypeVar("C", Json, list[Any])


class _Absent:
    """The type of `ABSENT`."""


ABSENT: Final = _Absent()
"""Stands for "not there", where null is a value."""


def place(path: Path) -> str:
    """A path as people write it."""
    return path_text(path) or "(the whole)"


def size_of(value: Any) -> int:
    """Bytes of a value as compact JSON in UTF-8."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode("utf-8", "replace"))


def same(old: Any, new: Any) -> bool:
    """Equality as JSON has it: true is not 1, and 1 is not 1.0."""
    return old == new and _canonical(old) == _canonical(new)


class Writer:
    """Checks each write against the rules and keeps the patch.

    A write of a whole object or array that the rules do not allow as such is taken apart: it is the
    additions, updates and deletions that it amounts to, and each of them is checked by itself.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._free = rules.everything
        self.patch: list[Json] = []
        self.refused: list[str] = []
        self.growth = 0
        """Bytes by which the payload grew, as JSON; never less than it really did."""

    def put(self, old: Any, value: Any, path: Path) -> Any:
        """Put a value at a place.

        Args:
            old: What is there, or `ABSENT`.
            value: What is to be there.
            path: The place.

        Returns:
            What is there afterwards: the value, a permitted part of it, or `old`.
        """
        if old is ABSENT:
            return self._add(value, path)
        if same(old, value):
            return old
        if self._may_swap(path, old, value):
            self._keep("replace", path, old, value)
            return value
        if is_object(old) and is_object(value):
            return self._put_object(old, value, path)
        if is_array(old) and is_array(value):
            return self._put_array(old, value, path)
        self._refuse("update", path)
        return old

    def delete(self, old: Any, path: Path) -> bool:
        """Delete what is at a place; says whether that was permitted."""
        if not self._may("delete", path):
            self._refuse("delete", path)
            return False
        self._keep("remove", path, old, ABSENT)
        return True

    # --- wholes and their parts

    def _add(self, value: Any, path: Path) -> Any:
        made = self._permitted(value, path)
        if made is not ABSENT:
            self._keep("add", path, ABSENT, made)
        return made

    def _permitted(self, value: Any, path: Path) -> Any:
        """The part of a new value that may be added, or `ABSENT`."""
        if self._may("add", path):
            return value
        made: Any = None
        if is_object(value):
            fields = ((key, self._permitted(one, (*path, key))) for key, one in value.items())
            made = {key: one for key, one in fields if one is not ABSENT}
        elif is_array(value):
            made = self._permitted_items(value, path)
        if not made and (made is None or not value):
            self._refuse("add", path)
        return made or ABSENT

    def _permitted_items(self, value: list[Any], path: Path) -> list[Any]:
        made: list[Any] = []
        for one in value:
            part = self._permitted(one, (*path, len(made)))
            if part is not ABSENT:
                made.append(part)
        return made

    def _put_object(self, old: Json, value: Json, path: Path) -> Json:
        new: Json = {}
        for key, before in old.items():
            here = (*path, key)
            if key in value:
                new[key] = self.put(before, value[key], here)
            elif not self.delete(before, here):
                new[key] = before
        for key, one in value.items():
            made = ABSENT if key in old else self._add(one, (*path, key))
            if made is not ABSENT:
                new[key] = made
        return _unless_same(old, new, [new.get(key) is one for key, one in old.items()])

    def _put_array(self, old: list[Any], value: list[Any], path: Path) -> list[Any]:
        """Items change by position; surplus ones go, from the end, before further ones are added."""
        pairs = zip(old, value, strict=False)
        new = [self.put(before, one, (*path, index)) for index, (before, one) in enumerate(pairs)]
        new += old[len(value) :]
        for index in range(len(old) - 1, len(value) - 1, -1):
            if self.delete(old[index], (*path, index)):
                del new[index]
        for one in value[len(old) :]:
            made = self._add(one, (*path, len(new)))
            if made is not ABSENT:
                new.append(made)
        return _unless_same(old, new, [a is b for a, b in zip(old, new, strict=False)])

    # --- rules and records

    def _may(self, operation: Operation, path: Path) -> bool:
        return self._free or self._rules.allows(path, operation)

    def _may_swap(self, path: Path, old: Any, value: Any) -> bool:
        """Whether a value may take another's place; with containers, things come and go as well."""
        holds = isinstance(old, dict | list) or isinstance(value, dict | list)
        needed: tuple[Operation, ...] = ("add", "update", "delete") if holds else ("update",)
        return self._free or all(self._rules.allows(path, one) for one in needed)

    def _refuse(self, operation: Operation, path: Path) -> None:
        self.refused.append(f"{place(path)} ({operation} is not permitted)")

    def _keep(self, op: str, path: Path, old: Any, value: Any) -> None:
        entry: Json = {"op": op, "path": pointer(path)}
        if value is not ABSENT:
            entry["value"] = value
            self.growth += size_of(value)
        if old is ABSENT:
            self.growth += size_of(path[-1]) + 2  # the key, its colon and a comma
        else:
            self.growth -= size_of(old)
        self.patch.append(entry)


def _unless_same(old: C, new: C, kept: list[bool]) -> C:
    """The old container when nothing in it changed, so that whoever compares by identity sees it."""
    return old if len(old) == len(new) and all(kept) else new


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
