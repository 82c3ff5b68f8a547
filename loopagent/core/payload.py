"""Changes to the payload: one walk over the request gives the new payload and the patch that leads to it.

Nothing that came in is changed, and whatever the request does not touch is shared between old and new.
The cost grows with the request, not with the payload, apart from measuring a payload that grows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.json_values import Json, is_array, is_object
from loopagent.core.payload_request import DELETE, NAMES, WHERE, Parts, read_request
from loopagent.core.payload_writer import ABSENT, Writer, place, size_of
from loopagent.core.problems import Problem


if TYPE_CHECKING:
    from collections.abc import Iterable

    from loopagent.core.paths import Path, Rules

MAX_DEPTH: Final = 100
"""Levels of nesting that a change may reach."""
MAX_NOTES: Final = 30
"""Most warnings, and most refusals, that one change lists; further ones are only counted."""
_ALMOST_DELETE: Final = frozenset({"DELETE", "DELETED", "REMOVE", "REMOVED"})


@dataclass(slots=True)
class PayloadChange:
    """What a change request makes of a payload.

    Args:
        payload: The payload afterwards; the very same object when nothing changed.
        patch: RFC 6902 operations that lead from the old payload to this one.
        warnings: What was taken otherwise than written, or had no effect.
        refused: Writes that the agent may not make; they were left out, the rest was done.
        problems: Why the request cannot be carried out at all; then nothing changed.
        told: What was refused as well, of which the model hears elsewhere.
    """

    payload: Any
    patch: list[Json] = field(default_factory=list[Json])
    warnings: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])
    problems: list[Problem] = field(default_factory=list[Problem])
    told: list[str] = field(default_factory=list[str])

    @property
    def counts(self) -> dict[str, int]:
        """How many places were added, updated and deleted."""
        kinds = [one["op"] for one in self.patch]
        names = {"added": "add", "updated": "replace", "deleted": "remove"}
        return {name: kinds.count(kind) for name, kind in names.items()}


def apply_change(payload: Any, request: Json, *, write: Rules, max_bytes: int) -> PayloadChange:
    """Apply a change request.

    For every key the first that fits counts: replace it whole; remove it; add it when it is not there;
    update it. Objects merge, everything else is assigned; null is a value. Arrays count by position in
    the old array: `{}` leaves an item, `"__DELETE__"` takes it away, positions past the end append, and
    arrays in `newElements` append. In `replaceElements` an array with `{}` places swaps single items.

    Args:
        payload: The payload as it is; null counts as an empty object.
        request: An `AgentPayloadChangeRequest` as camelCase JSON; unknown keys are taken as changes.
        write: What may be written.
        max_bytes: Size that the payload may grow to, as JSON in UTF-8; getting smaller is always fine.

    Returns:
        The new payload and all there is to say about it; never raises for a bad request.
    """
    parts, warnings, problems = read_request(payload, request)
    if problems:
        return PayloadChange(payload, problems=problems)
    walk = _Walk(Writer(write), warnings)
    try:
        after = walk.root({} if payload is None else payload, parts)
    except RecursionError:
        text = f"nested more than {MAX_DEPTH} levels deep; make it flatter"
        return PayloadChange(payload, problems=[Problem(WHERE, text)])
    if walk.writer.growth > 0 and (size := size_of(after)) > max_bytes:
        text = f"the payload would have {size} bytes, {max_bytes} are allowed; keep large data out of it"
        return PayloadChange(payload, problems=[Problem(WHERE, text, f"{size} bytes")])
    change = PayloadChange(
        payload, walk.writer.patch, _capped(warnings), _capped(walk.writer.refused)
    )
    if change.patch:
        change.payload = after
    if change.patch and payload is None:
        change.patch = [{"op": "replace", "path": "", "value": after}]
    return change


def _capped(notes: list[str]) -> list[str]:
    notes = list(dict.fromkeys(notes))
    more = len(notes) - MAX_NOTES
    return notes if more <= 0 else [*notes[:MAX_NOTES], f"and {more} more like these"]


class _Walk:
    """One walk over a request: makes the new payload and has the writer keep what changed."""

    def __init__(self, writer: Writer, warnings: list[str]) -> None:
        self.writer = writer
        self._warnings = warnings

    def root(self, old: Any, parts: Parts) -> Any:
        """The new payload."""
        return self._array(old, parts, ()) if is_array(old) else self._object(old, parts, ())

    def _warn(self, path: Path, text: str) -> None:
        self._warnings.append(f"{place(path)}: {text}")

    # --- objects

    def _object(self, old: Json, parts: Parts, path: Path) -> Json:
        """An object with the keys that the parts name changed; the same one when none was."""
        _limit(path)
        new = old
        for key in parts.keys():  # noqa: SIM118 - no dict: the keys of all parts
            before = old.get(key, ABSENT)
            after = self._value(before, parts.at(key), (*path, key))
            if after is before:
                continue
            if new is old:
                new = dict(old)
            if after is ABSENT:
                del new[key]
            else:
                new[key] = after
        return new

    # --- arrays

    def _array(self, old: list[Any], parts: Parts, path: Path) -> list[Any]:
        """An array with the positions that the parts name changed; the same one when none was.

        Deletions come last and from the end, so that every position means the old array.
        """
        _limit(path)
        places = parts._replace(new=ABSENT)
        reach = max((len(one) for one in places if is_array(one)), default=0)
        new, gone = list(old), set[int]()
        for index in range(min(len(old), reach)):
            here = self._marked(places.at(index), (*path, index))
            if here.deletes:
                gone.add(index)
            else:
                new[index] = self._value(old[index], here, (*path, index))
        self._past_end(new, len(old), places, path)
        for one in parts.new if is_array(parts.new) else ():
            self._push(new, one, path)
        gone = {
            one for one in sorted(gone, reverse=True) if self.writer.delete(old[one], (*path, one))
        }
        if gone:
            return [one for index, one in enumerate(new) if index not in gone]
        same = len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))
        return old if same else new

    def _past_end(self, new: list[Any], end: int, places: Parts, path: Path) -> None:
        """Append what stands at positions past the end."""
        for name in ("replace", "update"):
            items: Any = getattr(places, name)
            for index in range(end, len(items) if is_array(items) else 0):
                if index > len(new) and items[index] not in ({}, DELETE):
                    self._warn((*path, index), f"past the end; appended at position {len(new)}")
                self._push(new, items[index], path)
        if is_array(places.remove) and any(one != {} for one in places.remove[end:]):
            self._warn(path, f"has {end} items; nothing to remove past its end")

    def _push(self, new: list[Any], value: Any, path: Path) -> None:
        here = (*path, len(new))
        if value == DELETE:
            self._warn(here, "there is no such item; nothing to remove")
        elif value != {}:
            made = self.writer.put(ABSENT, self._clean(value, here), here)
            new += [] if made is ABSENT else [made]

    # --- one place

    def _value(self, old: Any, parts: Parts, path: Path) -> Any:
        """What becomes of one key or item; `ABSENT` when it goes."""
        if parts.replace is not ABSENT:
            return self._replace(old, parts, path)
        parts = self._marked(parts, path)
        if parts.deletes and old is not ABSENT:
            return ABSENT if self.writer.delete(old, path) else old
        if parts.deletes:
            self._warn(path, "is not there; nothing to remove")
            parts = parts.unmarked()
        if is_object(old):
            old, parts = self._object(old, parts.of(dict), path), parts.others(dict)
        elif is_array(old):
            self._watch_length(old, parts.update, path)
            old, parts = self._array(old, parts.of(list), path), parts.others(list)
        if parts.remove not in (ABSENT, {}):
            reason = "is not there" if old is ABSENT else f'mark what goes with "{DELETE}"'
            self._warn(path, f"{reason}; nothing was removed")
        return self._set(old, parts.new, parts.update, path)

    def _replace(self, old: Any, parts: Parts, path: Path) -> Any:
        """Swap a place out whole; in an array with `{}` places, single items."""
        wanted = parts.replace
        if any(one is not ABSENT for one in parts[1:]):
            self._warn(path, f"{NAMES['replace']} has it, so nothing else was done to it")
        if wanted == DELETE:
            return self._value(old, Parts(remove=DELETE), path)
        if is_array(old) and is_array(wanted) and {} in wanted:
            self._warn(
                path, f"an array with {{}} in {NAMES['replace']} swaps single items; others stay"
            )
            return self._array(old, Parts(replace=wanted), path)
        return self.writer.put(old, self._clean(wanted, path), path)

    def _set(self, old: Any, new: Any, update: Any, path: Path) -> Any:
        """Add or assign what could not be merged."""
        if old is ABSENT and new is not ABSENT:
            made = self.writer.put(ABSENT, self._clean(new, path), path)
            return made if update is ABSENT else self._value(made, Parts(update=update), path)
        new, update = (ABSENT if one == {} else one for one in (new, update))
        if update is not ABSENT:
            return self._update(old, update, path)
        if new is ABSENT:
            return old
        after = self.writer.put(old, self._clean(new, path), path)
        if after is not old:
            self._warn(path, "was there already; taken as an update")
        return after

    def _update(self, old: Any, update: Any, path: Path) -> Any:
        if old is ABSENT and is_array(update):
            update = [one for one in update if one != {}]
        after = self.writer.put(old, self._clean(update, path), path)
        if old is ABSENT and after is not ABSENT:
            self._warn(path, "was not there; added")
        return after

    # --- what models get wrong

    def _marked(self, parts: Parts, path: Path) -> Parts:
        """The parts with a misspelt mark put right."""
        word = parts.remove
        if isinstance(word, str) and word != DELETE and word.strip("_ ").upper() in _ALMOST_DELETE:
            self._warn(path, f'{json.dumps(word)} read as "{DELETE}"')
            parts = parts._replace(remove=DELETE)
        if parts.deletes and not parts.only_deletes:
            self._warn(path, "is marked to be removed and changed as well; the mark counts")
        return parts

    def _watch_length(self, old: list[Any], update: Any, path: Path) -> None:
        if is_array(update) and len(update) < len(old) and update == old[: len(update)]:
            how = f'use {NAMES["replace"]}, or mark items with "{DELETE}"'
            self._warn(
                path, f"an array in {NAMES['update']} never shortens; nothing changed ({how})"
            )

    def _clean(self, value: Any, path: Path) -> Any:
        """A copy of a value that is to be put, without marks: there is nothing in it to remove."""
        _limit(path)
        if is_object(value):
            self._watch_marks(value.values(), path)
            fields = ((key, one) for key, one in value.items() if one != DELETE)
            return {key: self._clean(one, (*path, key)) for key, one in fields}
        if is_array(value):
            self._watch_marks(value, path)
            items = (one for one in value if one != DELETE)
            return [self._clean(one, (*path, index)) for index, one in enumerate(items)]
        return value

    def _watch_marks(self, values: Iterable[Any], path: Path) -> None:
        if any(one == DELETE for one in values):
            self._warn(path, f'"{DELETE}" inside a new value marks nothing; left out')


def _limit(path: Path) -> None:
    if len(path) > MAX_DEPTH:
        raise RecursionError
