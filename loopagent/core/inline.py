"""Operations of a reply that run beside its step: staged with it, issued with its effects, told at the next turn.

Outcomes come in any order. They are kept by the id of their effect, and told to the model in the order in which
they were asked for, so that the next prompt does not depend on which was faster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loopagent.core.artifact_calls import ArtifactCalls
from loopagent.core.conversation_calls import ConversationCalls
from loopagent.core.effects import key_of
from loopagent.core.json_values import compact_json
from loopagent.core.memory_writes import MemoryWrites
from loopagent.core.problems import Problem
from loopagent.core.state import InlineCall


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.effects import Effect
    from loopagent.core.inline_operation import Entry, Operation
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


FIELDS = ("artifactToolCalls", "conversationToolCalls", "memoryWrites")
"""Fields of a reply that hold such operations, in the order in which their outcomes are told."""
OPERATIONS: dict[str, Operation[Any]] = {
    one.field: one for one in (ArtifactCalls(), ConversationCalls(), MemoryWrites())
}
"""What can be done, by field. A new operation is a module with a class, and one entry here."""
LOOKED_UP = tuple(f'{{"{one.field}":' for one in OPERATIONS.values() if one.reads)
"""How a message with results of look-ups begins."""
_BY_KEY = {one.key: one for one in OPERATIONS.values()}


@dataclass(frozen=True, slots=True)
class Asked:
    """The checked entries of one field."""

    operation: Operation[Any]
    entries: list[Entry]


def offered_fields(spec: AgentSpec) -> tuple[str, ...]:
    """The fields that an agent may use."""
    return tuple(one for one in FIELDS if one in OPERATIONS and OPERATIONS[one].offered(spec))


def stage(
    run: RunState, reply: dict[str, Any]
) -> tuple[tuple[Asked, ...], list[Problem], list[str]]:
    """Look at everything a reply asks for beside its step; nothing takes effect yet.

    Returns:
        What is asked for, what is wrong with it, and warnings.
    """
    asked: list[Asked] = []
    problems: list[Problem] = []
    warnings: list[str] = []
    for name in FIELDS:
        if not reply.get(name):
            continue
        operation = OPERATIONS.get(name)
        if operation is None or not (operation.tolerant or operation.offered(run.spec)):
            problems.append(Problem(name, "this agent has no such tools; leave the field out", ""))
            continue
        entries, wrong, tolerated = operation.check(run, reply[name], name)
        asked.append(Asked(operation, entries))
        problems += wrong
        warnings += tolerated
    return tuple(asked), problems, warnings


def begin(tx: Tx, asked: tuple[Asked, ...], *, final: bool) -> None:
    """Issue what was asked for. Beside a claim that is taken at once (`final`) nothing is read any more."""
    for one in asked:
        if final and one.operation.reads:
            text = "was not carried out beside your claim; ask again if you need it."
            tx.notice(f"`{one.operation.field}` {text}")
            continue
        for effect in one.operation.effects(tx.state, one.entries):
            outcome = one.operation.answered(tx.state, effect)
            tx.state.inline = (*tx.state.inline, InlineCall(effect, outcome))
            if outcome is None:
                tx.issue(effect)
            else:
                _tell(tx, effect, outcome)


def settled(tx: Tx, effect: Effect, outcome: Outcome) -> bool:
    """Keep how an effect ended; False when it belongs to no such operation."""
    if not is_inline(effect):
        return False
    tx.state.inline = tuple(
        replace(one, outcome=outcome) if one.effect.id == effect.id else one
        for one in tx.state.inline
    )
    _tell(tx, effect, outcome)
    return True


def is_inline(effect: Effect) -> bool:
    """Whether an effect runs beside the step, so that the end of the step does not end it."""
    return ":inline." in effect.id


def hand_over(tx: Tx) -> None:
    """Tell the model what its operations brought, in the order of its request, and forget it."""
    calls = tx.state.inline
    if not calls:
        return
    told: dict[str, list[Entry]] = {}
    for one in calls:
        operation = _operation(one.effect)
        assert one.outcome is not None  # the turn boundary waits for everything that is pending
        entries = told.setdefault(operation.field, [])
        entries.append({"call": len(entries) + 1, **operation.entry(one.effect, one.outcome)})
    tx.say("user", "results", compact_json(told))
    tx.state.inline = ()


def _operation(effect: Effect) -> Operation[Any]:
    return _BY_KEY[effect.id.partition(":inline.")[2].partition(".")[0]]


def _tell(tx: Tx, effect: Effect, outcome: Outcome) -> None:
    operation = _operation(effect)
    operation.absorb(tx, effect, outcome)
    fact = operation.fact(effect, outcome)
    if fact is not None:
        tx.fact(fact, "model", key=key_of(effect.id))
