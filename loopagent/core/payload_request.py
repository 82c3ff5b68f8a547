"""What a payload change request says about each place, in its four kinds."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from loopagent.core.json_values import Json, is_array, is_object
from loopagent.core.names import fold_name
from loopagent.core.payload_writer import ABSENT, place
from loopagent.core.problems import Problem, shorten


DELETE: Final = "__DELETE__"
"""Marks a key or an item that goes."""
WHERE: Final = "payloadChangeRequest"


class Parts(NamedTuple):
    """What a request says about one place, by kind; `ABSENT` where it says nothing."""

    replace: Any = ABSENT
    remove: Any = ABSENT
    new: Any = ABSENT
    update: Any = ABSENT

    def keys(self) -> dict[str, None]:
        """The keys that the objects name, each once, in order."""
        return dict.fromkeys(key for one in self if is_object(one) for key in one)

    def of(self, kind: type[Any]) -> Parts:
        """Only what is of this type."""
        return Parts(*(one if isinstance(one, kind) else ABSENT for one in self))

    def others(self, kind: type[Any]) -> Parts:
        """Only what is of another type; an empty object says nothing."""
        return Parts(*(ABSENT if isinstance(one, kind) or one == {} else one for one in self))

    def at(self, key: str | int) -> Parts:
        """What the objects or arrays say about a key or position inside."""
        return Parts(*(_inside(one, key) for one in self))

    def unmarked(self) -> Parts:
        """The rest of it, when nothing is there that could go."""
        return Parts(*(ABSENT if one == DELETE else one for one in self))

    @property
    def deletes(self) -> bool:
        """Whether it is marked to go."""
        return any(one == DELETE for one in self)

    @property
    def only_deletes(self) -> bool:
        """Whether nothing but marks and placeholders is said."""
        return all(one in (ABSENT, {}, DELETE) for one in self)


NAMES: Final = {
    "replace": "replaceElements",
    "remove": "removeElements",
    "new": "newElements",
    "update": "updateElements",
}
"""The field of a request for each kind."""
_FIELDS: Final = frozenset({*NAMES.values(), "reasoning"})
_FOLDED: Final = {fold_name(one): one for one in _FIELDS}


def read_request(payload: Any, request: Json) -> tuple[Parts, list[str], list[Problem]]:
    """Take a request apart.

    Args:
        payload: The payload as it is; null counts as an empty object.
        request: An `AgentPayloadChangeRequest` as camelCase JSON. Keys beside its fields are taken as
            updates of what is there, and as new elements otherwise.

    Returns:
        What it says about the whole payload, warnings, and what makes it unusable.
    """
    base: Any = {} if payload is None else payload
    request, warnings = _canonical(base, request)
    given = {part: request.get(name) for part, name in NAMES.items()}
    found = {part: one for part, one in given.items() if one not in (None, {}, [])}
    strays = {key: one for key, one in request.items() if key not in _FIELDS}
    if not found and not strays:
        return Parts(), [], []
    if not is_object(base) and not is_array(base):
        text = f"the payload is {shorten(payload)}, which has no elements; it cannot be changed"
        return Parts(), [], [Problem(WHERE, text)]
    problems = _misfits(found, list if is_array(base) else dict)
    if problems:
        return Parts(), [], problems
    warnings += _take_strays(base, strays, found) if is_object(base) else _no_place(strays)
    return Parts(**found), warnings, []


def _canonical(payload: Any, request: Json) -> tuple[Json, list[str]]:
    """The request with the names of its fields put right, unless the payload has such a key."""
    named: Json = {}
    warnings: list[str] = []
    keys: Json = payload if is_object(payload) else {}
    for key, value in request.items():
        name = _FOLDED.get(fold_name(key), key)
        if name != key and name not in request and key not in keys:
            warnings.append(f"{place((key,))}: read as {name}")
            named[name] = value
        else:
            named[key] = value
    return named, warnings


def _misfits(found: Json, kind: type[Any]) -> list[Problem]:
    wanted = "a list" if kind is list else "an object"
    return [
        Problem(
            f"{WHERE}.{NAMES[part]}",
            f"must be {wanted} in the shape of the payload, got {shorten(one)}",
            shorten(one),
        )
        for part, one in found.items()
        if not isinstance(one, kind)
    ]


def _take_strays(payload: Json, strays: Json, found: Json) -> list[str]:
    warnings: list[str] = []
    for key, value in strays.items():
        part = "update" if key in payload else "new"
        if key in found.get(part, ()):
            text = f"stands inside {NAMES[part]} and beside it; the one inside counts"
        else:
            text = f"stands beside the parts of the request; taken as part of {NAMES[part]}"
            found[part] = {**found.get(part, {}), key: value}
        warnings.append(f"{place((key,))}: {text}")
    return warnings


def _no_place(strays: Json) -> list[str]:
    return [f"{place((key,))}: the payload is a list and has no keys; ignored" for key in strays]


def _inside(part: Any, key: str | int) -> Any:
    if is_object(part) and isinstance(key, str):
        return part.get(key, ABSENT)
    if is_array(part) and isinstance(key, int) and key < len(part) and part[key] != {}:
        return part[key]
    return ABSENT
