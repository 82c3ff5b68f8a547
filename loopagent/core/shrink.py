"""Changes that look like an accident: text that was cut, lists and objects that lost most of what they held.

Nothing is undone and nothing is refused; the model is told, so that it can look again. Only the places that
a patch names are looked at.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from loopagent.core.json_values import Json, is_array, is_object
from loopagent.core.spec import Spec


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TRACES: Final = re.compile(
    r"\.\.\.|…|[\[(<{]\s*(?:truncated|omitted|snip(?:ped)?|abridged|shortened|rest|unchanged)\b"
    r"|\betc\b\.?|\band (?:so on|so forth|more)\b|\bremains? (?:the same|unchanged)\b",
    re.IGNORECASE,
)
"""What is left where a model was too lazy to repeat a text."""


class ShrinkLimits(Spec):
    """From when on a loss is remarkable; shares are of what was there before, 0 to 1."""

    text_share: float = Field(default=0.7, ge=0, le=1)
    """Share of its characters that a text loses."""
    text_critical: float = Field(default=0.9, ge=0, le=1)
    """The same, for a critical loss."""
    text_chars: int = Field(default=100, ge=0)
    """Shorter texts may shrink as they like."""
    list_share: float = Field(default=0.5, ge=0, le=1)
    """Share of its items that a list loses."""
    list_critical: float = Field(default=0.8, ge=0, le=1)
    """The same, for a critical loss."""
    keys_share: float = Field(default=0.5, ge=0, le=1)
    """Share of its keys that an object loses."""
    keys_critical: float = Field(default=0.8, ge=0, le=1)
    """The same, for a critical loss."""
    top_share: float = Field(default=0.3, ge=0, le=1)
    """Share of its keys that the payload itself loses."""
    top_keys: int = Field(default=5, ge=0)
    """A payload with no more keys may lose them like any object."""
    removed_chars: int = Field(default=50, ge=0)
    """Size, as JSON, of something removed that is worth a word."""
    max_depth: int = Field(default=10, ge=0)
    """Levels below the root that are looked at."""
    max_warnings: int = Field(default=20, ge=0)
    """Most warnings about one change; further ones are only counted."""


def suspicious(
    old: Any,
    new: Any,
    patch: list[Json],
    limits: ShrinkLimits | None = None,
) -> list[str]:
    """Find remarkable losses in a change.

    Args:
        old: The payload before.
        new: The payload afterwards.
        patch: The RFC 6902 operations between them, as `apply_change` makes them.
        limits: From when on a loss counts.

    Returns:
        One line a loss, each starting with the place as a JSON Pointer.
    """
    bounds = limits or ShrinkLimits()
    found = list(dict.fromkeys(_all(old, new, patch, bounds)))
    more = len(found) - bounds.max_warnings
    return (
        found
        if more <= 0
        else [*found[: bounds.max_warnings], f"and {more} more losses like these"]
    )


def _all(old: Any, new: Any, patch: list[Json], bounds: ShrinkLimits) -> Iterator[str]:
    yield from _top(old, new, bounds)
    yield from _emptied(old, patch, bounds)
    for operation in patch:
        pointer: str = operation["path"]
        before = _at(old, pointer)
        if operation["op"] == "replace":
            yield from _replaced(before, operation["value"], pointer, bounds)
        elif operation["op"] == "remove" and pointer.count("/") <= bounds.max_depth:
            size = len(json.dumps(before, ensure_ascii=False))
            if size > bounds.removed_chars:
                yield f"{pointer} was removed ({size} characters)"


def _top(old: Any, new: Any, bounds: ShrinkLimits) -> Iterator[str]:
    """Keys that the payload itself lost."""
    if not is_object(old) or len(old) <= bounds.top_keys:
        return
    lost = [key for key in old if not is_object(new) or key not in new]
    if len(lost) > bounds.top_share * len(old):
        shown = ", ".join(lost[:5]) + (", …" if len(lost) > 5 else "")  # noqa: PLR2004
        yield f"(the whole) lost {len(lost)} of its {len(old)} top-level keys: {shown}"


def _emptied(old: Any, patch: list[Json], bounds: ShrinkLimits) -> Iterator[str]:
    """Objects and arrays that lost members one by one."""
    lost: dict[str, int] = {}
    for operation in patch:
        if operation["op"] == "remove":
            around = operation["path"].rpartition("/")[0]
            lost[around] = lost.get(around, 0) + 1
    for pointer, count in lost.items():
        yield from _fewer(_at(old, pointer), count, pointer, bounds)


def _fewer(before: Any, lost: int, pointer: str, bounds: ShrinkLimits) -> Iterator[str]:
    """Whether an object or array lost too many members."""
    if pointer.count("/") > bounds.max_depth or not before or not isinstance(before, dict | list):
        return
    held = len(before)  # pyright: ignore[reportUnknownArgumentType]
    keys = isinstance(before, dict)
    least, critical = (
        (bounds.keys_share, bounds.keys_critical)
        if keys
        else (bounds.list_share, bounds.list_critical)
    )
    if lost > least * held:
        what = "keys" if keys else "items"
        yield f"{pointer or '(the whole)'} lost {lost} of {held} {what}{_severity(lost, critical * held)}"


def _replaced(before: Any, after: Any, pointer: str, bounds: ShrinkLimits) -> Iterator[str]:
    """What is lost where one value took another's place."""
    if pointer.count("/") > bounds.max_depth:
        return
    if isinstance(before, str) and isinstance(after, str):
        yield from _shorter(before, after, pointer, bounds)
    elif is_object(before) and is_object(after):
        yield from _fewer(before, len(before.keys() - after.keys()), pointer, bounds)
        yield from _members(
            ((key, before[key], after[key]) for key in before if key in after), pointer, bounds
        )
    elif is_array(before) and is_array(after):
        yield from _fewer(before, len(before) - len(after), pointer, bounds)
        pairs = enumerate(zip(before, after, strict=False))
        yield from _members(((str(index), *pair) for index, pair in pairs), pointer, bounds)
    elif (is_object(before) or is_array(before)) and before:
        yield f"{pointer or '(the whole)'} was {kind_of(before)} and became {kind_of(after)}"


def _members(
    triples: Iterable[tuple[str, Any, Any]], pointer: str, bounds: ShrinkLimits
) -> Iterator[str]:
    for key, before, after in triples:
        if before is not after:
            inside = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            yield from _replaced(before, after, inside, bounds)


def _shorter(before: str, after: str, pointer: str, bounds: ShrinkLimits) -> Iterator[str]:
    if len(after) >= len(before):
        return
    lost = len(before) - len(after)
    if len(before) >= bounds.text_chars and lost > bounds.text_share * len(before):
        severity = _severity(lost, bounds.text_critical * len(before))
        yield f"{pointer} shrank from {len(before)} to {len(after)} characters{severity}"
    trace = TRACES.search(after)
    if trace and not TRACES.search(before):
        yield f"{pointer} became shorter and looks abbreviated ({trace.group()!r})"


def _severity(lost: int, critical: float) -> str:
    return ", a critical loss" if lost > critical else ""


def kind_of(value: Any) -> str:
    """What a value of the payload is, in words."""
    if is_object(value):
        return "an object"
    if is_array(value):
        return "a list"
    return "null" if value is None else "a single value"


def _at(value: Any, pointer: str) -> Any:
    """What stood at a place; None where nothing did."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if is_array(value):
            value = value[int(key)] if key.isdecimal() and int(key) < len(value) else None
        else:
            value = value.get(key) if is_object(value) else None
    return value
