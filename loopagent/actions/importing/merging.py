"""What the document said before, what a person made of it, what the document says now: all three as one."""

from __future__ import annotations

from typing import Any, Final

from loopagent.core.json_values import is_object


ABSENT: Final[Any] = object()
"""Nothing stands there."""


def merged(base: Any, mine: Any, theirs: Any, conflicts: list[str], where: str = "") -> Any:
    """What a person changed stays, what only the document changed is taken over.

    Args:
        base: As it was imported.
        mine: As it is in the file.
        theirs: As it would be imported now.
        conflicts: Gets the places that both changed; there the person's stays.
        where: The place.
    """
    if _same(mine, theirs) or _same(theirs, base):
        return mine
    if _same(mine, base):
        return theirs
    if is_object(mine) and is_object(theirs):
        before = base if is_object(base) else {}
        made: dict[str, Any] = {}
        for key in dict.fromkeys((*mine, *theirs)):
            here = f"{where}.{key}" if where else key
            was, own, new = (one.get(key, ABSENT) for one in (before, mine, theirs))
            value = merged(was, own, new, conflicts, here)
            if value is not ABSENT:
                made[key] = value
        return made
    conflicts.append(where)
    return mine


def _same(one: Any, other: Any) -> bool:
    if one is ABSENT or other is ABSENT:
        return one is other
    return bool(one == other)


def put_into(node: Any, value: dict[str, Any]) -> None:
    """Make an object that remembers comments equal to a value, touching only what differs.

    Args:
        node: The object, of `ruamel.yaml`.
        value: What it shall be.
    """
    for key in [one for one in node if one not in value]:
        del node[key]
    for key, one in value.items():
        if key in node and is_object(one) and isinstance(node[key], dict):
            put_into(node[key], one)
        elif key not in node or node[key] != one:
            node[key] = one
