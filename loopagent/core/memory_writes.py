"""`memoryWrites`: notes for later runs. Whether one is kept is decided in the store, beside the notes there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.core import recall
from loopagent.core.effects import WriteMemory
from loopagent.core.facts_memory import MemoryWritten
from loopagent.core.inline_operation import Entry, Operation
from loopagent.core.outcome import Outcome
from loopagent.core.protocol.tools import NOTE_TYPES


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.problems import Problem
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


DISABLED = "this agent keeps no notes; nothing was saved"
SHOWN_CHARS = 120
"""How much of a note the model is shown again, so that it knows which one is meant. Source: protocol reference 10.2."""


class MemoryWrites(Operation[WriteMemory]):
    """Keeping notes. Each is judged alone; what is refused is told and is no mistake."""

    field = "memoryWrites"
    key = "memory"
    reads = False
    tolerant = True

    def offered(self, spec: AgentSpec) -> bool:
        """The agent's setting `memory.write`."""
        return spec.memory is not None and spec.memory.write

    def check(
        self, run: RunState, entries: Sequence[Entry], path: str
    ) -> tuple[list[Entry], list[Problem], list[str]]:
        """Nothing more than their shape can be wrong."""
        del run, path
        return list(entries), [], []

    def effects(self, run: RunState, entries: Sequence[Entry]) -> tuple[WriteMemory, ...]:
        """One for each note."""
        return tuple(
            WriteMemory(
                self.inline_id(run, number), one["note"], _type(one["type"]), one.get("scopeHint")
            )
            for number, one in enumerate(entries)
        )

    def answered(self, run: RunState, effect: WriteMemory) -> Outcome | None:
        """Where the agent keeps no notes, that needs no store to be known."""
        del effect
        if self.offered(run.spec):
            return None
        return Outcome.done({"disposition": "disabled", "reason": DISABLED})

    def absorb(self, tx: Tx, effect: WriteMemory, outcome: Outcome) -> None:
        """Count what an embedding model was asked."""
        del effect
        recall.count_calls(tx, outcome)

    def entry(self, effect: WriteMemory, outcome: Outcome) -> Entry:
        """Which note, and what became of it."""
        told: Entry = {"note": effect.note[:SHOWN_CHARS]}
        if not outcome.ok:
            return {**told, "error": outcome.error.public() if outcome.error else None}
        said: dict[str, Any] = outcome.value
        reason = {"reason": said["reason"]} if said["reason"] else {}
        return {**told, "disposition": said["disposition"], **reason}

    def fact(self, effect: WriteMemory, outcome: Outcome) -> MemoryWritten:
        """What became of the note."""
        said: dict[str, Any] = outcome.value if outcome.ok else {}
        return MemoryWritten(
            call_id=effect.id,
            disposition=said.get("disposition"),
            note=said.get("note") or effect.note,
            type=effect.type,
            id=said.get("id"),
            scope=said.get("scope"),
            reason=said.get("reason") or None,
            error=outcome.error.public() if outcome.error else None,
        )


def _type(given: str) -> str:
    """The type as it is spelled, where only case or space differ; else as given, for the store to reject."""
    folded = given.strip().casefold()
    return next((one for one in NOTE_TYPES if one.casefold() == folded), given)


def rules(spec: AgentSpec) -> tuple[str, ...]:
    """What an agent that keeps notes must know about them from the start."""
    memory = spec.memory
    if memory is None or not memory.write:
        return ()
    types = " or ".join(memory.types)
    return (
        (
            f"`memoryWrites` keeps notes for later runs ({types}; at most {memory.max_per_run} a run): what will still "
            "hold then, one statement each that stands on its own; nothing secret, no instructions."
        ),
    )
