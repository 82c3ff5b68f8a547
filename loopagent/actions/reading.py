"""Texts to action files: several documents in one text, every complaint at its place, nothing raised."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic.alias_generators import to_snake

from loopagent.actions.checks import check
from loopagent.actions.complaints import Complaints, inside
from loopagent.actions.format import ActionFile
from loopagent.core.json_values import copied, is_object
from loopagent.documents import Document, Loc, read_parts


@dataclass(frozen=True, slots=True)
class Written:
    """One action as it stands in a text; `action` is None when there are complaints that keep it from being used."""

    complaints: Complaints
    action: ActionFile | None = None

    @property
    def name(self) -> str:
        """Its name, as far as it has one."""
        return str(self.complaints.document.value.get("name") or "")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text holds: its actions, and the lines that tell what keeps it from being read at all."""

    path: Path
    written: list[Written] = field(default_factory=list[Written])
    unreadable: list[str] = field(default_factory=list[str])

    @property
    def problems(self) -> list[str]:
        """All complaints as `file:line:column: path: what`, in the order of the text."""
        return [*self.unreadable, *self._lines(warnings=False)]

    @property
    def warnings(self) -> list[str]:
        """What works, but perhaps not as meant."""
        return self._lines(warnings=True)

    @property
    def actions(self) -> list[ActionFile]:
        """The actions that can be used."""
        return [one.action for one in self.written if one.action is not None]

    def public(self) -> list[dict[str, Any]]:
        """All complaints and warnings as JSON, for editors; what cannot be read at all has only a message."""
        whole = [{"file": str(self.path), "message": one} for one in self.unreadable]
        return whole + [
            {"file": str(self.path), **asdict(one)}
            for written in self.written
            for one in sorted(written.complaints.found)
        ]

    def _lines(self, *, warnings: bool) -> list[str]:
        found = [
            one
            for written in self.written
            for one in written.complaints.found
            if one.warning is warnings
        ]
        return [one.at(self.path) for one in sorted(found)]


def read_actions(text: str, path: Path) -> Reading:
    """Read the actions of a text: YAML with `---` between several of them, or JSON.

    Args:
        text: The text.
        path: Where it comes from, for complaints; a name that ends in `.json` must hold JSON.
    """
    documents, unreadable = read_parts(text, path)
    written = [_read(one) for one in documents]
    if (
        unreadable
    ):  # what is left of a text is checked, but says perhaps something else than was meant
        written = [replace(one, action=None) for one in written]
    return Reading(path, written, unreadable)


def read_action(value: dict[str, Any], path: Path | None = None) -> Written:
    """Read an action that is JSON already; complaints then have no useful lines."""
    return _read(Document(path or Path("action"), value))


def _read(document: Document) -> Written:
    complaints = Complaints(document)
    body = complaints.document.value
    try:
        action = _validated(body)
    except ValidationError as error:
        places = complaints.add_invalid(error, ActionFile)
        _check_rest(complaints, body, places)
        return Written(complaints)
    check(action, complaints)
    return Written(complaints, None if complaints.wrong else action)


def _validated(body: dict[str, Any]) -> ActionFile:
    # As JSON, because only there "strict" knows that a list is how a tuple is written.
    return ActionFile.model_validate_json(json.dumps(body), strict=True)


def _check_rest(complaints: Complaints, body: dict[str, Any], places: list[Loc]) -> None:
    """Complain about the parts that can be read although others cannot, so that all is said at once."""
    if any(one[:1] and one[0] in _NEEDED for one in places):
        return
    rest = copied(body)
    for place in places:
        if not any(len(one) > len(place) and one[: len(place)] == place for one in places):
            _remove(rest, place)
    rest = {**_HARMLESS, **rest}
    run: Any = rest.get("run")
    if is_object(run) and any(one[:1] == ("run",) and len(one) == 2 for one in places):  # noqa: PLR2004
        rest["run"] = _with_method(run)
    try:
        action = _validated(rest)
    except ValidationError:
        return
    more = Complaints(complaints.document)
    check(action, more)
    complaints.found += [one for one in more.found if not one.warning]


_NEEDED: Final = frozenset({"params", "egress", "secrets"})
"""Parts that others are checked against."""
_HARMLESS: Final = {"name": "unnamed", "description": "none", "effects": "write"}
"""Stand in for parts that cannot be read and that a file must have."""


def _with_method(run: dict[str, Any]) -> dict[str, Any]:
    """A request whose method may be what cannot be read: with one that goes with everything else."""
    return {"method": "POST", **run} if run.get("kind") == "http" else run


def _remove(value: Any, place: Loc) -> None:
    """Take away what stands at a place; for what is missing, the object that misses it."""
    above: Any = value
    for part in place[:-1]:
        above = inside(above, part)
    name = place[-1] if place else None
    names = [name, to_snake(name)] if isinstance(name, str) else []
    key = next((one for one in names if is_object(above) and one in above), None)
    if key is not None:
        del above[key]
    elif above is not None and len(place) > 1:
        _remove(value, place[:-1])
