"""What becomes of the changes of sub-agents: merged into the payload of the run that gave the work.

The changes of several children merge in the order the work was asked for: of two changes to the same place the
first one stands, and the other is reported. What a child was not given is never deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from loopagent.core.child_payload import member
from loopagent.core.json_values import Json, is_array, is_object
from loopagent.core.paths import pointer
from loopagent.core.payload_writer import ABSENT, place, same, size_of


if TYPE_CHECKING:
    from loopagent.core.child_payload import Change
    from loopagent.core.paths import Operation, Path, Rules

MAX_NOTES: Final = 30
"""Most places that one list about a child's changes names; further ones are only counted."""
_END: Final = -1
"""Stands for "behind the last item" where a position would: two children may both append."""
_UNSEEN: Final = "it holds data that the sub-agent was not given"


@dataclass(slots=True)
class Taken:
    """What became of one child's changes: places that changed, writes that were refused, conflicts."""

    changed: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])
    conflicts: list[str] = field(default_factory=list[str])

    def public(self) -> dict[str, list[str]]:
        """As the parent's model is told; lists that are empty are left out."""
        lists = {"changed": self.changed, "refused": self.refused, "conflicts": self.conflicts}
        return {name: _capped(one) for name, one in lists.items() if one}


class Merge:
    """Takes the changes of children into a payload, one child after the other.

    Args:
        payload: The parent's payload; it is not changed.
        max_bytes: Size that the payload may grow to, as JSON in UTF-8.
    """

    def __init__(self, payload: Any, *, max_bytes: int) -> None:
        self.payload: Any = {} if payload is None else payload
        self.patch: list[Json] = []
        """RFC 6902 operations from the payload that came in to this one."""
        self.lost: list[str] = []
        """What was refused or in conflict, and whose it was."""
        self._max_bytes = max_bytes
        self._taken: dict[Path, str] = {}
        self._above: dict[Path, str] = {}

    def take(self, who: str, changes: list[Change], path: Path, rules: Rules) -> Taken:
        """Take in one child's changes.

        Args:
            who: How conflicts name the child.
            changes: What it changed, as `differences` tells.
            path: Where in this payload the child's payload is.
            rules: What its changes may do; see `upstream_rules`.
        """
        attempt = _Attempt(self.payload, rules)
        for change in changes:
            here = (*path, *cast("list[str | int]", change["path"]))
            other = self._conflict((*here, _END) if change["op"] == "append" else here)
            if other is None:
                attempt.make(change, here)
            elif not attempt.made_already(change, here):
                attempt.taken.conflicts.append(f"{place(here)} (changed by {other} as well)")
        if attempt.patch and size_of(attempt.payload) > max(self._max_bytes, size_of(self.payload)):
            text = f"everything (the payload would have more than {self._max_bytes} bytes)"
            return self.note(who, Taken(refused=[text]))
        self.payload = attempt.payload
        self.patch += attempt.patch
        for one in attempt.places:
            self._taken.setdefault(one, who)
            for length in range(len(one)):
                self._above.setdefault(one[:length], who)
        return self.note(who, attempt.taken)

    def note(self, who: str, taken: Taken) -> Taken:
        """Keep what did not get into the payload, and say what became of it all."""
        self.lost += [f"{who}: {one}" for one in _capped([*taken.refused, *taken.conflicts])]
        return taken

    def _conflict(self, path: Path) -> str | None:
        """Who changed this place, one around it or one inside it before."""
        if path in self._above:
            return self._above[path]
        prefixes = [path[:length] for length in range(len(path) + 1)]
        found = next((self._taken[one] for one in prefixes if one in self._taken), None)
        both_append = path[-1:] == (_END,) and found is not None
        if both_append and not any(one in self._taken for one in prefixes[:-1]):
            return None
        return found


class _Attempt:
    """One child's changes made to a payload, as far as they may be."""

    def __init__(self, payload: Any, rules: Rules) -> None:
        self.payload = payload
        self.patch: list[Json] = []
        self.taken = Taken()
        self.places: list[Path] = []
        self._rules = rules

    def made_already(self, change: Change, path: Path) -> bool:
        """Whether somebody else's change led to the very same."""
        current = _at(self.payload, path)
        if change["op"] == "delete" or current is ABSENT:
            return change["op"] == "delete" and current is ABSENT
        return change["op"] == "set" and same(current, change["value"])

    def make(self, change: Change, path: Path) -> None:
        """Make one change, or note why not."""
        current = _at(self.payload, path)
        was = change.get("was", ABSENT)
        if change["op"] == "delete":
            self._delete(path, current, was)
        elif is_array(current) and is_array(change["value"]) and was is ABSENT:
            self._append(path, len(current), change["value"])
        else:
            self._set(path, current, was, change["value"])

    def _append(self, path: Path, end: int, values: list[Any]) -> None:
        """Put items behind those that are there, which the child need not have seen."""
        if not self._rules.allows((*path, end), "add"):
            self._refuse((*path, end), "add is not permitted")
            return
        for index, one in enumerate(values, end):
            self._write((*path, index), one)
        self._note((*path, _END), path)

    def _set(self, path: Path, current: Any, was: Any, value: Any) -> None:
        if current is not ABSENT and same(current, value):
            return
        blocked = _blocked(self.payload, path)
        if blocked is not None:
            self._refuse(path, f"there is no room for it at {place(blocked)}")
            return
        if isinstance(current, dict | list) and _unseen(current, was):
            self._refuse(path, _UNSEEN)
            return
        for operation in _needed(current, value):
            if not self._rules.allows(path, operation):
                self._refuse(path, f"{operation} is not permitted")
                return
        self._write(path, value)
        self._note(path, path)

    def _delete(self, path: Path, current: Any, was: Any) -> None:
        """Delete what the child saw; an object stays as long as it holds something else."""
        if current is ABSENT:
            return
        if isinstance(current, dict | list) and _unseen(current, was):
            if not (is_object(current) and is_object(was)):
                self._refuse(path, _UNSEEN)
                return
            for key, seen in was.items():
                self._delete((*path, key), member(current, key), seen)
            return
        if not self._rules.allows(path, "delete"):
            self._refuse(path, "delete is not permitted")
            return
        self.payload = _with(self.payload, path, ABSENT)
        self.patch.append({"op": "remove", "path": pointer(path)})
        self._note(path, path)

    def _write(self, path: Path, value: Any) -> None:
        """Put a value; objects that are missing on the way are made."""
        made = next(
            (one for one in range(len(path)) if _at(self.payload, path[:one]) is ABSENT), len(path)
        )
        for key in reversed(path[made:]):
            value = {key: value}
        path = path[:made]
        op = "add" if _at(self.payload, path) is ABSENT else "replace"
        self.payload = _with(self.payload, path, value)
        self.patch.append({"op": op, "path": pointer(path), "value": value})

    def _note(self, taken: Path, shown: Path) -> None:
        self.places.append(taken)
        self.taken.changed.append(place(shown))

    def _refuse(self, path: Path, why: str) -> None:
        self.taken.refused.append(f"{place(path)} ({why})")


def _needed(current: Any, value: Any) -> tuple[Operation, ...]:
    """What putting a value at a place amounts to."""
    if current is ABSENT:
        return ("add",)
    if is_array(current) and is_array(value):
        longer, shorter = len(value) > len(current), len(value) < len(current)
        return ("update", "add") if longer else ("update", "delete") if shorter else ("update",)
    return ("update", "delete") if isinstance(current, dict | list) and current else ("update",)


def _unseen(current: Any, was: Any) -> bool:
    """Whether a value holds anything that is not in what a child was given."""
    if is_object(current):
        seen = was if is_object(was) else {}
        return any(_unseen(one, seen.get(key, ABSENT)) for key, one in current.items()) or (
            was is ABSENT and not current
        )
    if is_array(current):
        known = was if is_array(was) else []
        given = [*known, *[ABSENT] * max(0, len(current) - len(known))]
        return any(_unseen(one, seen) for one, seen in zip(current, given, strict=False)) or (
            was is ABSENT and not current
        )
    return was is ABSENT or isinstance(was, dict | list)


def _blocked(payload: Any, path: Path) -> Path | None:
    """The place on the way that holds something into which nothing can be put."""
    for length in range(len(path)):
        value = _at(payload, path[:length])
        if value is ABSENT:
            return None
        key = path[length]
        fits = is_object(value) if isinstance(key, str) else is_array(value) and key <= len(value)
        if not fits:
            return path[:length]
    return None


def _at(value: Any, path: Path) -> Any:
    """What is at a place, or `ABSENT`."""
    for key in path:
        value = member(value, key)
    return value


def _with(value: Any, path: Path, new: Any) -> Any:
    """A value with another one at a place, or with the key there gone; shares what did not change."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    if is_array(value):
        position = cast("int", key)
        items = list(value)
        items[position : position + 1] = [_with(member(value, position), rest, new)]
        return items
    fields = dict(cast("Json", value))
    made = _with(fields.get(cast("str", key), ABSENT), rest, new)
    if made is ABSENT:
        fields.pop(cast("str", key), None)
    else:
        fields[cast("str", key)] = made
    return fields


def _capped(notes: list[str]) -> list[str]:
    notes = list(dict.fromkeys(notes))
    more = len(notes) - MAX_NOTES
    return notes if more <= 0 else [*notes[:MAX_NOTES], f"and {more} more like these"]
