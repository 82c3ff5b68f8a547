"""Grouping: one object for each group, with its key fields, its count, and what was computed over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from loopagent.core.pipeline.paths import Path
from loopagent.core.pipeline.values import identity_of, mean_of, number_of, total_of


Numbers = list[int | float]
_COMPUTE: Final[dict[str, Callable[[Numbers], int | float | None]]] = {
    "sum": total_of,
    "avg": mean_of,
    "min": min,
    "max": max,
}


def grouped(
    entries: list[Any], by: list[Path], computed: Mapping[str, list[Path]]
) -> list[dict[str, Any]]:
    """Group entries, in the order in which the groups first appear.

    Args:
        entries: What to group; not changed.
        by: Fields that make up the key.
        computed: Computation (`sum`, `avg`, `min`, `max`) → fields; a field without any number gives null.
    """
    groups: dict[tuple[str, ...], list[Any]] = {}
    for one in entries:
        groups.setdefault(tuple(identity_of(path.field(one)) for path in by), []).append(one)
    names = names_of(by)
    return [
        {
            **{name: path.field(members[0]) for name, path in zip(names, by, strict=True)},
            "count": len(members),
            **_computed(members, computed),
        }
        for members in groups.values()
    ]


def _computed(members: list[Any], computed: Mapping[str, list[Path]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for how, paths in computed.items():
        for name, path in zip(names_of(paths), paths, strict=True):
            numbers = [
                number for one in members if (number := number_of(path.field(one))) is not None
            ]
            found[f"{how}_{name}"] = _COMPUTE[how](numbers) if numbers else None
    return found


def names_of(paths: list[Path]) -> list[str]:
    """The last key of each path, or the whole path where several end alike."""
    last = [one.name for one in paths]
    return [one.name if last.count(one.name) == 1 else one.text for one in paths]
