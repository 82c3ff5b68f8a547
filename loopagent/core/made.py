"""What took effect so far, in a line each: it stands beside a summary, so that nothing is forgotten and done twice.

A summary is some model's words, and may be empty. What was sent, booked or changed must not depend on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from loopagent.core.abilities import usable_action
from loopagent.core.json_values import compact_json
from loopagent.core.lineage import strongest_effects


if TYPE_CHECKING:
    from loopagent.core.state import RunState
    from loopagent.core.steps import Done, MadeCall
    from loopagent.core.tx import Tx

MAX_EACH: Final = 3
"""Calls of one action in one step that are listed one by one; more are counted."""
MAX_CHARS: Final = 160
"""Longest list of parameters, or message of a sub-agent, in characters."""


def note(tx: Tx, done: Done) -> None:
    """Keep in mind what a step did to the world; call it once the results were said."""
    state, most = tx.state, tx.state.spec.context.listed_effects
    if done.passes is not None:
        lines = _passes(state, done, done.passes)
    else:
        happened = [one for one in done.calls if _changes(state, one.action) and _happened(one)]
        lines = [*_calls(happened)] if happened else []
        if not done.calls:
            lines += _others(state, done)
    if lines:
        known = (*state.made, *((state.messages, one) for one in lines))
        state.made_before += max(0, len(known) - most)
        state.made = known[len(known) - most :] if most else ()


def listed(state: RunState, up_to: int) -> str:
    """What took effect in the messages up to a number; empty for nothing."""
    lines = [f"- #{number} {text}" for number, text in state.made if number <= up_to]
    if state.made_before:
        lines.insert(0, f"- and {state.made_before} before these")
    heading = "Done already in them, as the engine recorded it; do not repeat it by mistake:"
    return "\n".join([heading, *lines]) if lines else ""


def _calls(happened: list[MadeCall]) -> Iterator[str]:
    counts = Counter(one.action for one in happened)
    for one in happened:
        if counts[one.action] <= MAX_EACH:
            unsure = "" if one.outcome.ok else ", may have taken effect"
            yield f"{one.action}{_cut(compact_json(one.params))}{unsure}"
    yield from (f"{name}, {count} calls" for name, count in counts.items() if count > MAX_EACH)


def _happened(call: MadeCall) -> bool:
    error = call.outcome.error
    return call.outcome.ok or (error is not None and error.may_have_run)


def _changes(state: RunState, action: str) -> bool:
    spec = usable_action(state, action)
    return spec is None or spec.effects != "read"


def _others(state: RunState, done: Done) -> Iterator[str]:
    """Work of sub-agents and calls of client tools, as the results tell of them."""
    for one in done.results:
        if "agent" in one and one["ok"] and _agent_changes(state, str(one["agent"])):
            yield f"sub-agent {one['agent']}: {_cut(str(one.get('message', '')))}"
        elif "tool" in one and one["ok"] and _tool_changes(state, str(one["tool"])):
            yield f"client tool {one['tool']}"


def _passes(state: RunState, done: Done, count: int) -> list[str]:
    """Passes of a loop that ended well, unless its calls only read; of those, only the last ones are known."""
    if not count or (done.calls and not any(_changes(state, one.action) for one in done.calls)):
        return []
    return [f"{one['action']}, {count} pass{'es' if count > 1 else ''}" for one in done.results]


def _agent_changes(state: RunState, name: str) -> bool:
    sub = state.spec.agent(name)
    return sub is None or strongest_effects(state, sub) != "read"


def _tool_changes(state: RunState, name: str) -> bool:
    tool = state.spec.client_tool(name)
    return tool is None or tool.effects != "read"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_CHARS else f"{line[:MAX_CHARS]}…"
