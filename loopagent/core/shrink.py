"""Changes that look like an accident: text that shrank, lists that lost most items, objects that became scalars.

Nothing is undone; the model is told, so that it can look again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast


_TRACES = re.compile(r"(\.\.\.|…|\[truncated\]|\betc\.|\band more\b|\(omitted\))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShrinkLimits:
    """From when on a loss is remarkable; shares are of the old size."""

    text_share: float = 0.7
    text_chars: int = 100
    list_share: float = 0.5
    keys_share: float = 0.5
    removed_chars: int = 50


def suspicious(
    old: Any, patch: list[dict[str, Any]], limits: ShrinkLimits | None = None
) -> list[str]:
    """Remarkable losses of a change; looks only at the places the patch names."""
    bounds = limits or ShrinkLimits()
    found: list[str] = []
    for operation in patch:
        if operation["op"] == "add":
            continue
        before = _at(old, operation["path"])
        where = operation["path"] or "(root)"
        after = operation.get("value")
        complaint = (
            _removed(before, bounds)
            if operation["op"] == "remove"
            else _shrunk(before, after, bounds)
        )
        if complaint:
            found.append(f"{where} {complaint}")
    return found


def _removed(before: Any, bounds: ShrinkLimits) -> str | None:
    size = len(str(before))
    return f"was removed ({size} characters)" if size > bounds.removed_chars else None


def _shrunk(before: Any, after: Any, bounds: ShrinkLimits) -> str | None:
    if isinstance(before, str) and isinstance(after, str):
        return _shorter(before, after, bounds)
    if isinstance(before, list) and isinstance(after, list):
        was, now = len(cast("list[Any]", before)), len(cast("list[Any]", after))
        return (
            f"shrank from {was} to {now} items"
            if was and now < was * (1 - bounds.list_share)
            else None
        )
    if isinstance(before, dict) and isinstance(after, dict):
        was, now = len(cast("dict[str, Any]", before)), len(cast("dict[str, Any]", after))
        return (
            f"lost keys: {was} before, {now} now"
            if was and now < was * (1 - bounds.keys_share)
            else None
        )
    if isinstance(before, dict | list) and before and not isinstance(after, dict | list):
        return "was an object or array and is a single value now"
    return None


def _shorter(before: str, after: str, bounds: ShrinkLimits) -> str | None:
    if len(before) < bounds.text_chars or len(after) >= len(before):
        return None
    if len(after) < len(before) * (1 - bounds.text_share):
        return f"shrank from {len(before)} to {len(after)} characters"
    if _TRACES.search(after) and not _TRACES.search(before):
        return "became shorter and looks abbreviated"
    return None


def _at(value: Any, path: str) -> Any:
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            items = cast("list[Any]", value)
            value = items[int(key)] if key.isdigit() and int(key) < len(items) else None
        elif isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(key)
        else:
            return None
    return value
