"""Results that a later identical call replaced: marked at once, shown as stubs once that saves enough.

Only calls that read are looked at: asking the same again is asking how it is now. A message gives way when all of its
results were replaced; rewriting it breaks what the provider has cached, so that waits until enough comes together.
Source: decision seat B6.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopagent.core.abilities import usable_action
from loopagent.core.compaction import estimated_tokens, window_tokens
from loopagent.core.context import STUB_BYTES, Fresh, Latest
from loopagent.core.facts_context import ContextCompacted
from loopagent.core.hashing import json_hash


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.core.steps import MadeCall
    from loopagent.core.tx import Tx

MAX_TRACKED = 100
"""Messages of which is known what could replace them."""
KEY_CHARS = 16
"""How much of a hash tells calls apart."""


def note(tx: Tx, calls: Sequence[MadeCall], size: int) -> None:
    """Take in that results were just said, and mark those before them that they replace.

    Args:
        tx: The transition; its last message is that of the results.
        calls: The calls that brought them, all of the step.
        size: Its size in bytes.
    """
    state, view = tx.state, tx.state.view
    long = size >= state.spec.context.stub_bytes
    if not (long or view.latest or view.outdated):
        return  # too short to give way to anything, and nothing is there that could give way to it
    keys = _keys(tx, calls)
    if not keys:
        return
    good = {key for key, ok in keys.items() if ok}
    live: list[Latest] = []
    outdated = [one for one in view.outdated if one.number > max(view.stubbed, view.summarised)]
    for one in view.latest:
        if one.number <= max(view.stubbed, view.summarised):
            continue
        left = tuple(key for key in one.keys if key not in good)
        (live if left else outdated).append(replace(one, keys=left))
    if long and all(_reads(tx, one) for one in calls):
        live.append(Latest(state.messages, size, tuple(keys)))
    state.view = replace(view, latest=tuple(live[-MAX_TRACKED:]), outdated=tuple(outdated))
    _rewrite(tx)


def _keys(tx: Tx, calls: Sequence[MadeCall]) -> dict[str, bool]:
    """What tells each reading call apart, and whether it worked; a call that is there twice counts as one."""
    found: dict[str, bool] = {}
    for one in calls:
        if _reads(tx, one):
            key = json_hash([one.action, one.params])[:KEY_CHARS]
            found[key] = found.get(key, False) or one.outcome.ok
    return found


def _reads(tx: Tx, call: MadeCall) -> bool:
    spec = usable_action(tx.state, call.action)
    return spec is not None and spec.effects == "read"


def _rewrite(tx: Tx) -> None:
    """Show what is marked as stubs, once that saves as much as breaking the cached prefix is worth."""
    state, view = tx.state, tx.state.view
    freed = sum(one.size_bytes - STUB_BYTES for one in view.outdated)
    if not view.outdated or freed < state.spec.context.rewrite_bytes:
        return
    fresh = view.fresh
    for one in view.outdated:
        fresh = _without(fresh, one)
    numbers = tuple(sorted(one.number for one in view.outdated))
    state.view = replace(
        view, fresh=fresh, outdated=(), superseded=tuple(sorted({*view.superseded, *numbers}))
    )
    state.shown_bytes -= freed
    fact = ContextCompacted(
        reason="superseded",
        how="stubs",
        up_to=numbers[-1],
        messages=len(numbers),
        freed_bytes=freed,
        tokens=estimated_tokens(state),
        window_tokens=window_tokens(state),
    )
    tx.fact(fact)


def _without(fresh: tuple[Fresh, ...], gone: Latest) -> tuple[Fresh, ...]:
    """What is still shown in full, without one message."""
    at = next((at for at, one in enumerate(fresh) if one.last >= gone.number), None)
    if at is None:
        return fresh
    one = fresh[at]
    left = replace(one, count=one.count - 1, size_bytes=one.size_bytes - gone.size_bytes)
    return (*fresh[:at], *((left,) if left.count else ()), *fresh[at + 1 :])
