"""A JSON value as a tree that people unfold: the levels at the top, the rest by its path."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from loopagent.artifacts.jsons import kind, load, select, step
from loopagent.core.json_values import compact_json, is_array, is_object


if TYPE_CHECKING:
    from collections.abc import Iterable

    from loopagent.artifacts.source import Source

MAX_LEVELS = 4
"""Levels below the one asked for."""
MAX_CHILDREN = 100
"""Entries of one list or object; further ones come with the next page."""
MAX_NODES = 1_000
"""Nodes in all; what is left out is there by its path."""
MAX_TEXT_CHARS = 2_000
"""How much of a text is shown."""


@dataclass(slots=True)
class Node:
    """One place in a value."""

    key: str
    path: str
    kind: str
    """`object`, `list`, `text`, `number`, `boolean`, `null`."""
    text: str = ""
    """The value, if it is no object and no list; the beginning of a long one."""
    length: int = 0
    """Entries, or characters of a text."""
    children: list[Node] = field(default_factory=list["Node"])
    next: int | None = None
    """The first entry that is not among the children, to go on from by the path; None when there is none."""


def tree(source: Source, path: str = "", start: int = 0) -> Node:
    """A value as a tree.

    Args:
        source: The JSON.
        path: The place to begin at, as `json_path` takes it.
        start: The first of its entries that is shown.

    Raises:
        ToolError: It is no JSON, or nothing is there.
    """
    at, value = select(source, load(source), path)[0]
    root = _node(at or "$", at, value)
    level, left = [(root, value, start)], MAX_NODES
    for _ in range(MAX_LEVELS):
        source.check_time()
        below: list[tuple[Node, Any, int]] = []
        for node, one, first in level:
            room = min(MAX_CHILDREN, left)
            taken = [
                (_node(*place), place[2]) for place in islice(_entries(node, one, first), room)
            ]
            left -= len(taken)
            node.children = [child for child, _ in taken]
            after = first + len(taken)
            node.next = after if _sized(one) and after < len(one) else None
            below += [(child, inner, 0) for child, inner in taken]
        level = below
    for node, one, _ in level:
        node.next = 0 if _sized(one) and len(one) else None
    return root


def _entries(node: Node, value: Any, start: int) -> Iterable[tuple[str, str, Any]]:
    """Key, path and value of each entry from a position on."""
    if is_object(value):
        pairs = islice(value.items(), start, None)
        return ((name, step(node.path, name), one) for name, one in pairs)
    if is_array(value):
        rest = enumerate(islice(value, start, None), start)
        return ((f"[{at}]", f"{node.path}[{at}]", one) for at, one in rest)
    return ()


def _sized(value: Any) -> bool:
    return is_object(value) or is_array(value)


def _node(key: str, path: str, value: Any) -> Node:
    made = Node(key, path, kind(value))
    if isinstance(value, str | list | dict):
        made.length = len(value)
    if not _sized(value):
        text = value if isinstance(value, str) else compact_json(value)
        made.text = text[:MAX_TEXT_CHARS]
    return made
