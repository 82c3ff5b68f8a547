"""How the model sees the payload: whole, or when it is long by an outline and with the tools for stored JSON.

Source: row 21 of section 17.2 of the semantics reference: a size budget, an outline, and reading on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from loopagent.core.json_values import compact_json, is_array, is_object
from loopagent.core.paths import rules_of
from loopagent.core.state_bytes import payload_json


if TYPE_CHECKING:
    from loopagent.core.state import RunState

HANDLE: Final = "payload"
"""What `artifactToolCalls` call the payload."""
KIND: Final = "json"
"""Whose tools look into it."""
CUT: Final = "…"
"""Begins what an outline says of a part that it leaves out."""
OUTLINE_SHARE: Final = 8
"""An outline takes at most this part of the room that a payload has."""


class _Detail(NamedTuple):
    """How much of a value an outline shows."""

    chars: int
    items: int
    keys: int
    levels: int


DETAILS: Final = (
    _Detail(200, 5, 100, 8),
    _Detail(80, 3, 60, 6),
    _Detail(40, 2, 40, 4),
    _Detail(20, 1, 30, 3),
    _Detail(10, 1, 20, 2),
    _Detail(10, 1, 10, 1),
)
"""From generous to bare: the first that fits is taken."""


def _seen(state: RunState) -> Any:
    return rules_of(state.spec.payload.read).filter(state.payload)


def seen_json(state: RunState) -> str:
    """What the agent may read of the payload, as JSON. All of it is seldom different from the turn before."""
    seen = _seen(state)
    try:
        return payload_json(state).decode() if seen is state.payload else compact_json(seen)
    except ValueError:  # half a surrogate pair, or nested very deeply
        return compact_json(seen)


def is_long(state: RunState, text: str) -> bool:
    """Whether a payload, as `seen_json` gives it, is too long to be shown whole.

    An agent that could not look into it is shown all of it.
    """
    return state.spec.artifact_tools and len(text) > state.spec.limits.max_payload_chars


def outline_members(state: RunState, text: str) -> str:
    """The members of the state message that show a payload that is too long, as JSON without braces."""
    most = state.spec.limits.max_payload_chars // OUTLINE_SHARE
    note = (
        f"{len(text)} chars, too long to be shown whole: this is its outline, where {CUT} stands for what is left out. "
        f'Look at parts with artifactToolCalls, artifactId "{HANDLE}", before you change them.'
    )
    shown = {"payloadNote": note, "payloadOutline": outline(_seen(state), most)}
    return compact_json(shown)[1:-1]


def outline(value: Any, max_chars: int) -> Any:
    """A value with its shape and the beginning of what is in it.

    Args:
        value: Any JSON value.
        max_chars: Room for it as JSON; the barest outline is given even where that is longer.
    """
    shown: Any = None
    for detail in DETAILS:
        shown = _outlined(value, detail, detail.levels)
        if len(compact_json(shown)) <= max_chars:
            break
    return shown


def _outlined(value: Any, detail: _Detail, levels: int) -> Any:
    if isinstance(value, str):
        more = len(value) - detail.chars
        return value if more <= len(CUT) else f"{value[: detail.chars]}{CUT} {more} more chars"
    if is_array(value):
        return _items(value, detail, levels)
    return _members(value, detail, levels) if is_object(value) else value


def _items(value: list[Any], detail: _Detail, levels: int) -> Any:
    if not value:
        return []
    if levels == 0:
        return f"{CUT} {len(value)} items"
    shown = [_outlined(one, detail, levels - 1) for one in value[: detail.items]]
    more = len(value) - len(shown)
    return [*shown, f"{CUT} {more} more items"] if more else shown


def _members(value: dict[str, Any], detail: _Detail, levels: int) -> Any:
    if not value:
        return {}
    if levels == 0:
        return f"{CUT} {len(value)} members"
    names = list(value)[: detail.keys]
    shown = {
        cast("str", _outlined(name, detail, 0)): _outlined(value[name], detail, levels - 1)
        for name in names
    }
    more = len(value) - len(names)
    return {**shown, CUT: f"{more} more members"} if more else shown
