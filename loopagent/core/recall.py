"""What a new run is shown of the notes of earlier ones: looked up once, after its task, then part of its transcript.

So the beginning of the prompt stays the same bytes in every turn, and what was shown can be seen in the run afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.core.effects import ReadMemory
from loopagent.core.facts_context import ModelCalled
from loopagent.core.facts_memory import MemoryRead
from loopagent.core.notes import message


if TYPE_CHECKING:
    from loopagent.core.outcome import Outcome
    from loopagent.core.tx import Tx


KEY = "recall"
"""Key of the effect; a stored format."""


def ask(tx: Tx, task: str) -> None:
    """Have the notes looked up that are of use for a task, if the agent is to see any."""
    spec = tx.state.spec.memory
    if spec is not None and spec.max_tokens and spec.max_shown:
        tx.issue(ReadMemory(f"{tx.state.turn}:{KEY}", task))


def count_calls(tx: Tx, outcome: Outcome) -> None:
    """Count the calls of an embedding model that an outcome tells of, and let them be seen."""
    value: dict[str, Any] = outcome.value if isinstance(outcome.value, dict) else {}
    for call in value.get("calls", ()):
        before = tx.state.usage
        tx.state.usage = before.plus(call["usage"])
        spent = tx.state.usage.less(before).told()
        model, error = str(call["model"]), call.get("error")
        tx.fact(ModelCalled(purpose="embedding", model=model, usage=spent, error=error), key=KEY)


def told(tx: Tx, effect: ReadMemory, outcome: Outcome) -> None:
    """Show what was found; nothing when the notes could not be read."""
    del effect
    count_calls(tx, outcome)
    found: list[dict[str, Any]] = outcome.value["notes"] if outcome.ok else []
    error = outcome.error.public() if outcome.error else None
    if found or error:
        tx.fact(MemoryRead(notes=[one["id"] for one in found], error=error), key=KEY)
    if found:
        tx.say("user", "memory", message(found))
