"""What a run is given of what the run before it in its conversation had looked up, so that it need not look again.

Source: semantics reference 9.5.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.conversation import carried_text
from loopagent.core.inline import LOOKED_UP


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loopagent.core.conversation import Said
    from loopagent.core.state import Message, RunState
    from loopagent.ports import Store

MAX_BACK: Final = 5
"""Runs that are looked at to find the last one of the same agent."""


async def carried(store: Store, state: RunState, recent: Iterable[Said]) -> str:
    """What to show a run of the look-ups of the last run of its agent in its conversation.

    Args:
        store: Where runs are kept.
        state: The run that begins.
        recent: What was said last in its conversation, oldest first.

    Returns:
        The text of one message, empty when there is nothing or nothing is wanted.
    """
    most = state.spec.limits.max_carried_chars
    run_ids = list(dict.fromkeys(one.run_id for one in reversed(list(recent))))
    for run_id in run_ids[:MAX_BACK] if most else ():
        found = await store.load(run_id)
        before = None if found is None else found.state
        if before is None or run_id == state.id or before.spec.name != state.spec.name:
            continue
        if (before.user, before.tenant) != (state.user, state.tenant):
            return ""
        return carried_text(_looked_up(await store.transcript(run_id)), most)
    return ""


async def approvals(
    store: Store, state: RunState, recent: Sequence[Said]
) -> tuple[dict[str, Any], ...]:
    """Approvals that a person gave for the whole conversation, as the run before this one has them.

    Args:
        store: Where runs are kept.
        state: The run that begins.
        recent: What was said last in its conversation, oldest first.

    Returns:
        Each as JSON. None when the last run is gone: an older one may not know of all that was revoked.
    """
    before = next((one.run_id for one in reversed(recent) if one.run_id != state.id), None)
    found = None if before is None else await store.load(before)
    if found is None or (found.state.user, found.state.tenant) != (state.user, state.tenant):
        return ()
    return tuple(asdict(one) for one in found.state.remembered if one.scope == "session")


def _looked_up(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Successful look-ups of a run, oldest first."""
    found: list[dict[str, Any]] = []
    for one in messages:
        if one.kind != "results" or not one.text.startswith(LOOKED_UP):
            continue
        told: dict[str, list[dict[str, Any]]] = json.loads(one.text)
        for field in ("artifactToolCalls", "conversationToolCalls"):
            entries = (entry for entry in told.get(field, ()) if entry.get("ok"))
            found += [
                {key: value for key, value in one.items() if key not in _NOISE} for one in entries
            ]
    return found


_NOISE: Final = frozenset({"call", "ok"})
