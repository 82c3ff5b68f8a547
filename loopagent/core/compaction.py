"""Making room in the context: old results become stubs first, then a summary stands for the oldest turns.

How full it is comes from the tokens that the provider counted last and the bytes said since. Only the view changes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from loopagent.core import ending, made
from loopagent.core.context import STUB_BYTES, size_of, summary_text
from loopagent.core.effects import Compact
from loopagent.core.facts_context import ContextCompacted, ModelCalled
from loopagent.core.windows import input_tokens


if TYPE_CHECKING:
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx

Reason = Literal["lifetime", "window", "overflow"]
BYTES_PER_TOKEN = 3
"""Assumed until a provider has counted."""
CEILING_SHARE = 0.95
"""Of a prompt that was too long: what is taken for the model's window from then on."""


def window_tokens(state: RunState) -> int:
    """The longest prompt that the run's model takes, as far as is known."""
    known = state.spec.context.window_tokens or input_tokens(state.model)
    seen = state.view.ceiling_tokens
    return min(known, seen) if seen else known


def estimated_tokens(state: RunState, more_bytes: int = 0) -> int:
    """How many tokens the next prompt has, about.

    Args:
        state: The run.
        more_bytes: What will be added to it.
    """
    size_bytes, tokens = state.measured
    ratio = tokens / size_bytes if size_bytes and tokens else 1 / BYTES_PER_TOKEN
    return math.ceil((state.shown_bytes + more_bytes) * ratio)


def measure(state: RunState, value: dict[str, Any]) -> None:
    """Learn from a planner call that came back how large its prompt was, in bytes and in tokens."""
    prompt = value.get("prompt")
    if prompt and (size := prompt.get("bytes")):
        usage = value.get("usage") or {}
        state.shown_bytes = size
        state.measured = (size, int(usage.get("input_tokens") or 0))
    if state.view.overflows:
        state.view = replace(state.view, overflows=0)


def keep_refused(tx: Tx, reply: str) -> bool:
    """Whether the model is shown the reply of this turn, which was not taken, again; a huge one would leave no room."""
    state, size = tx.state, size_of(reply)
    if size / BYTES_PER_TOKEN <= state.spec.context.refused_share * window_tokens(state):
        return True
    state.view = state.view.without(state.messages)
    state.shown_bytes -= size
    return False


def make_room(tx: Tx) -> bool:
    """Make room for the next prompt, if it needs any; True when that has to be waited for."""
    state, bounds = tx.state, tx.state.spec.context
    if state.view.fresh:
        _expire(tx)
    waiting = sum(map(len, state.notices)) if state.notices else 0
    if state.mail:
        waiting += len(state.mail[0].text)
    window = window_tokens(state)
    if state.view.tried == state.turn or estimated_tokens(state, waiting) < bounds.start * window:
        return False
    state.view = replace(state.view, tried=state.turn)
    return _shrink(tx, "window", int(bounds.target * window), waiting)


def overflowed(tx: Tx) -> bool:
    """Take it that the prompt was too long for the model; False when nothing more can be done about it."""
    state, bounds = tx.state, tx.state.spec.context
    if state.view.overflows >= bounds.overflow_tries:
        return False
    tx.close_turn("overflow")
    ceiling = max(1, int(min(window_tokens(state), estimated_tokens(state)) * CEILING_SHARE))
    state.view = replace(
        state.view,
        overflows=state.view.overflows + 1,
        ceiling_tokens=ceiling,
        tried=state.turn,
    )
    before = state.shown_bytes
    if not _shrink(tx, "overflow", int(bounds.target * ceiling), 0):
        _progress(tx, before)
    return True


def settled(tx: Tx, effect: Compact, outcome: Outcome) -> None:
    """Absorb a summary: what it stands for is left out of the view from now on."""
    value = cast("dict[str, Any]", outcome.value) if isinstance(outcome.value, dict) else {}
    if call := value.get("call"):
        count_call(tx, "summary", call)
    view, up_to = tx.state.view, int(value.get("upTo") or 0)
    if up_to > view.summarised:
        first = next(one for one in range(1, up_to + 1) if one not in value["kept"])
        tx.say("user", "summary", summary_text(first, up_to, _words(tx, value, up_to)))
        tx.state.shown_bytes -= int(value["freedBytes"])
        tx.state.view = replace(
            view,
            summarised=up_to,
            summary=tx.state.messages,
            kept=tuple(value["kept"]),
            fresh=tuple(one for one in view.fresh if one.last > up_to),
        )
        _tell(tx, effect.reason, "summary", up_to, int(value["count"]), int(value["freedBytes"]))
    if effect.reason == "overflow":
        _progress(tx, effect.before_bytes)


def _words(tx: Tx, value: dict[str, Any], up_to: int) -> str:
    """What is said about messages that are left out: the summary, if there is one, and what took effect in them."""
    parts = (str(value.get("text") or "").strip(), made.listed(tx.state, up_to))
    return "\n\n".join(one for one in parts if one)


def _expire(tx: Tx) -> None:
    """Turn old results into stubs, once that frees enough to be worth a prompt that begins differently."""
    state, bounds = tx.state, tx.state.spec.context
    old = [one for one in state.view.fresh if state.turn - one.turn > bounds.result_turns]
    if sum(one.size_bytes for one in old) >= bounds.rewrite_bytes:
        _stub(tx, "lifetime", len(old))


def _shrink(tx: Tx, reason: Reason, target_tokens: int, more_bytes: int) -> bool:
    """Get down to a target: as many stubs as it takes, else all and a summary; True when that is under way."""
    state, before = tx.state, tx.state.shown_bytes
    over = estimated_tokens(state, more_bytes) - target_tokens
    bytes_each = (before + more_bytes) / max(1, estimated_tokens(state, more_bytes))
    want = freed = math.ceil(over * bytes_each)
    unseen = state.turn - state.view.overflows
    old = [one for one in state.view.fresh if one.turn < unseen]
    count = 0
    while count < len(old) and freed > 0:
        freed -= old[count].size_bytes - old[count].count * STUB_BYTES
        count += 1
    _stub(tx, reason, count)
    if freed <= 0 < want:
        return False
    newest = unseen - state.spec.context.keep_turns + 1
    tx.issue(Compact(f"{state.turn}:compact", max(1, freed), newest, reason, before))
    return True


def _stub(tx: Tx, reason: Reason, count: int) -> None:
    """Show the results of the oldest turns that are shown in full as stubs from now on."""
    if not count:
        return
    state = tx.state
    old = state.view.fresh[:count]
    messages = sum(one.count for one in old)
    freed = sum(one.size_bytes for one in old) - messages * STUB_BYTES
    state.shown_bytes -= freed
    state.view = replace(state.view, fresh=state.view.fresh[count:], stubbed=old[-1].last)
    _tell(tx, reason, "stubs", old[-1].last, messages, freed)


def _tell(tx: Tx, reason: Reason, how: Literal["stubs", "summary"], *numbers: int) -> None:
    up_to, messages, freed = numbers
    fact = ContextCompacted(
        reason=reason,
        how=how,
        up_to=up_to,
        messages=messages,
        freed_bytes=freed,
        tokens=estimated_tokens(tx.state),
        window_tokens=window_tokens(tx.state),
    )
    tx.fact(fact)


def count_call(tx: Tx, purpose: str, call: dict[str, Any]) -> None:
    """Count a model call that is not the planner's, and let it be seen.

    Args:
        tx: The transition.
        purpose: What the call was for.
        call: Its `model`, `usage`, and `error` if it failed.
    """
    usage = call.get("usage") or {}
    before, after = tx.state.usage, tx.state.usage.plus(usage)
    tx.state.usage = after
    spent = after.less(before).told()
    tx.fact(
        ModelCalled(
            purpose=purpose,
            model=str(call.get("model") or tx.state.model),
            usage=spent,
            error=call.get("error"),
        )
    )


def _progress(tx: Tx, before_bytes: int) -> None:
    """Another try needs a prompt that is shorter by a good part, or it would fail in the same way."""
    least = tx.state.spec.context.least_progress
    if tx.state.shown_bytes > before_bytes * (1 - least):
        ending.fail(
            tx,
            "model",
            "The prompt is too long for the model, and hardly anything in it can be left out.",
            kind="context_window",
        )
