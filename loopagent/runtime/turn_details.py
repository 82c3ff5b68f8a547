"""What there is to see in a turn beside prompt and reply: where problems stand, what changed, what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.core.child_payload import differences, member
from loopagent.core.inline import OPERATIONS
from loopagent.core.marks import Places, pointer, pointer_of
from loopagent.core.payload_writer import ABSENT
from loopagent.core.text import read_text
from loopagent.runtime.course import UNKNOWN


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loopagent.core.outcome import Outcome
    from loopagent.runtime.course import Turn

Json = dict[str, Any]


def placed(raw: str, problems: Sequence[Json]) -> list[Json]:
    """Problems, each with its JSON pointer, and its line in the reply where that is known.

    Args:
        raw: The reply as it came.
        problems: `{path, message, …}` each.
    """
    places = Places(raw) if problems else None
    found: list[Json] = []
    for one in problems:
        path = str(one.get("path") or "")
        line = places.line(path) if places is not None and path else None
        found.append({**one, "pointer": pointer_of(path), "line": line})
    return found


def changes(told: Turn | None) -> list[Json]:
    """What the turn made of the payload, place by place.

    Returns:
        `{path, change, before?, after?}` each: a JSON pointer, `added`, `changed` or `removed`, and the values. What is
        appended to a list is `added` at `-`, its items together.
    """
    if told is None or told.before is UNKNOWN:
        return []
    return [_change(told.before, one) for one in differences(told.before, told.payload)]


def _change(before: Any, one: Json) -> Json:
    steps, value = [*one["path"], *(["-"] if one["op"] == "append" else [])], before
    for step in steps:
        value = member(value, step)
    change: Json = {"path": pointer(steps)}
    change["change"] = (
        "removed" if "value" not in one else "added" if value is ABSENT else "changed"
    )
    if value is not ABSENT:
        change["before"] = value
    return {**change, "after": one["value"]} if "value" in one else change


def operations(turn: int, raw: str, settled: Mapping[str, Outcome]) -> list[Json]:
    """What a reply asked for beside its step, in its order, and what each brought as far as that is known.

    Args:
        turn: Number of the turn.
        raw: The reply as it came.
        settled: How the turn's effects ended, by their ids.

    Returns:
        `{field, callId, asked, ok?, result?, error?}` each.
    """
    value = read_text(raw).value
    if not isinstance(value, dict):
        return []
    found: list[Json] = []
    for field, operation in OPERATIONS.items():
        entries = value.get(field)
        for number, one in enumerate(entries if isinstance(entries, list) else ()):
            call_id = f"{turn}:inline.{operation.key}.{number}"
            told = {"field": field, "callId": call_id, "asked": one}
            found.append({**told, **_ended(settled.get(call_id))})
    return found


def _ended(outcome: Outcome | None) -> Json:
    if outcome is None:
        return {}
    if outcome.error is not None:
        return {"ok": False, "error": outcome.error.public()}
    return {"ok": True, "result": outcome.value}
