"""What a planner's reply means for the run: refused, cut off, or accepted as a whole and then applied."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loopagent.core import compaction, ending, inline, limits, policy
from loopagent.core.changes import commit_payload, unconfirmed
from loopagent.core.facts import (
    CommandIssued,
    ReplyReceived,
    ReplyRejected,
    ReplyRepaired,
    ReplyTruncated,
    ScratchpadChanged,
)
from loopagent.core.facts_guards import GuardNudged, GuardRepeated
from loopagent.core.feedback import refusal_feedback, truncation_feedback
from loopagent.core.hashing import json_hash
from loopagent.core.params import DECODED
from loopagent.core.paths import rules_of
from loopagent.core.payload import PayloadChange, apply_change
from loopagent.core.per_object import PerObject
from loopagent.core.problems import Problem, in_a_line
from loopagent.core.reply import READ_TOOLS, Reading, ReplyRules, read_reply
from loopagent.core.scratchpad import Scratchpad
from loopagent.core.scratchpad import apply as apply_scratchpad
from loopagent.core.spending import NOTHING
from loopagent.core.state import Claim, StepInProgress
from loopagent.core.steps import STEP_TYPES, NextStep, offered
from loopagent.core.values import changed


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.effects import CallModel
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


BESIDE = frozenset(
    {
        "artifactToolCalls",
        "conversationToolCalls",
        "memoryWrites",
        "payloadChangeRequest",
        "scratchpad",
    }
)
"""Fields of a reply that want something and have nothing to do with its step."""
COMMANDS = {"automaticCommands": True, "actionableCommands": False}
"""Fields of a reply that hold commands, and whether the client carries them out by itself."""
ASIDE = BESIDE | COMMANDS.keys()
"""Fields of a reply that bring about something whatever it decides."""
READS_FIRST = "Your question or completion was not taken yet: look at what you asked for first, then say it again."


@dataclass
class Staged:
    """Everything a reply asks for, worked out but not applied: the plan before the commit."""

    problems: list[Problem] = field(default_factory=list[Problem])
    warnings: list[str] = field(default_factory=list[str])
    payload: PayloadChange | None = None
    scratchpad: Scratchpad | None = None
    step: NextStep | None = None
    asked: tuple[inline.Asked, ...] = ()
    held: str = ""
    """What a change of the payload leads to that has to be confirmed."""


def take_reply(tx: Tx, effect: CallModel, outcome: Outcome) -> None:
    """Absorb how a planner call ended."""
    del effect
    state = tx.state
    value: dict[str, Any] = outcome.value if isinstance(outcome.value, dict) else {}
    spent = _charge(state, value)
    state.replied_at = tx.at
    if not outcome.ok:
        _model_failed(tx, outcome)
        return
    compaction.measure(state, value)
    text, bound = str(value.get("text", "")), value.get("bound") is True
    rules = reply_rules(state, bound=bound)
    reading = read_reply(text, str(value.get("finish", "stop")), rules=rules)
    if reading.outcome == "truncated":
        _truncated(tx, text, spent)
        return
    staged = _stage(state, reading)
    if bound:  # the schema of its dialect wants text where the action's own wants a value
        staged.warnings = [one for one in staged.warnings if not one.endswith(DECODED)]
    state.held_change = staged.held
    if staged.problems:
        _refused(tx, text, staged.problems, spent)
        return
    _commit(tx, text, reading, staged, spent)


def _model_failed(tx: Tx, outcome: Outcome) -> None:
    reached = limits.reached(tx.state)
    if reached is not None:
        tx.close_turn("failed")
        limits.stop(tx, reached)
        return
    error = outcome.error
    if error is not None and error.code == "context_window" and compaction.overflowed(tx):
        return
    message = error.message if error else "The model call failed."
    ending.fail(tx, "model", message, kind=error.code if error else "unknown")


def _charge(state: RunState, value: dict[str, Any]) -> dict[str, Any]:
    """Count what the call cost, failed attempts included; returns the usage of this turn."""
    spent = NOTHING
    for attempt in value.get("attempts", ()):
        spent = spent.plus(attempt.get("usage") or {})
    if "usage" in value:
        spent = spent.plus(value["usage"])
    state.usage = state.usage.together(spent)
    return spent.told()


def reply_rules(state: RunState, *, bound: bool) -> ReplyRules:
    """What the next reply of a run may be; `bound`: a schema was enforced on it.

    Nothing postpones a question or a completion when no turn is left in which it could come again.
    """
    spec = state.spec
    left = state.counters.reads_first < spec.limits.max_reads_first
    return _RULES(spec)[left and limits.reached(state, turn=True) is None, bound]


def _rules_of(spec: AgentSpec) -> dict[tuple[bool, bool], ReplyRules]:
    """The rules of a definition, by whether read tools are left and whether a provider held the reply to a schema."""
    return {
        (left, bound): ReplyRules(
            interactive=spec.interactive,
            max_chars=spec.limits.max_reply_chars,
            allowed_steps=offered(spec),
            read_tools_left=left,
            bound=bound,
        )
        for left in (True, False)
        for bound in (True, False)
    }


_RULES: PerObject[AgentSpec, dict[tuple[bool, bool], ReplyRules]] = PerObject(_rules_of)


def _stage(state: RunState, reading: Reading) -> Staged:
    staged = Staged(list(reading.problems), list(reading.warnings))
    if reading.outcome == "refuse":
        return staged
    if not BESIDE.isdisjoint(reading.reply):
        _stage_beside(state, reading.reply, staged)
    if reading.outcome == "step" and reading.response is not None:
        step = reading.response.next_step or _bare_step(reading.step_type or "")
        staged.step, problems, warnings = step.resolve(state)
        staged.problems += problems
        staged.warnings += warnings
    return staged


def _bare_step(kind: str) -> NextStep:
    """The step of a reply that has none, such as a question that is only said."""
    return STEP_TYPES[kind].model_validate({"type": kind})


def _stage_beside(state: RunState, reply: dict[str, Any], staged: Staged) -> None:
    """What may stand beside a step."""
    staged.asked, problems, warnings = inline.stage(state, reply)
    staged.problems.extend(problems)
    staged.warnings.extend(warnings)
    if reply.get("memoryWrites"):
        held = policy.allowed(state, "write", path="memoryWrites")
        staged.problems.extend([held] if held else [])
    _stage_payload(state, reply.get("payloadChangeRequest"), staged)
    _stage_scratchpad(state, reply.get("scratchpad"), staged)


def _stage_payload(state: RunState, request: dict[str, Any] | None, staged: Staged) -> None:
    if not request:
        return
    write = rules_of(state.spec.payload.write)
    change = apply_change(
        state.payload, request, write=write, max_bytes=state.spec.limits.max_payload_bytes
    )
    staged.held, losses = unconfirmed(state, change)
    staged.problems.extend([*change.problems, *losses])
    staged.payload = change


def _stage_scratchpad(state: RunState, change: dict[str, Any] | None, staged: Staged) -> None:
    if change is None:
        return
    bounds = state.spec.limits
    pad, warnings, problems = apply_scratchpad(
        state.scratchpad,
        change,
        max_tasks=bounds.max_scratchpad_tasks,
        max_notes_chars=bounds.max_scratchpad_chars,
        max_task_chars=bounds.max_task_chars,
    )
    staged.scratchpad = pad
    staged.warnings.extend(warnings)
    staged.problems.extend(problems)


def _refused(tx: Tx, text: str, problems: list[Problem], spent: dict[str, Any]) -> None:
    """Nothing of the reply takes effect; the model hears every problem at once."""
    counters, bounds = tx.state.counters, tx.state.spec.limits
    tx.say("assistant", "reply", text)
    _collapse(tx, tx.state.messages)
    seen = compaction.keep_refused(tx, text)
    listed = [{"path": one.path, "message": one.message, "got": one.got} for one in problems]
    tx.fact(ReplyRejected(raw=text, problems=listed, usage=spent))
    tx.count(
        refusals=counters.refusals + 1,
        refusals_in_a_row=counters.refusals_in_a_row + 1,
        mistakes=counters.mistakes + 1,
        truncations=0,
        trouble=(trouble := in_a_line(str(problems[0]))),
    )
    tx.close_turn("refused")
    tx.notice(refusal_feedback(problems, shown=seen))
    if counters.refusals + 1 >= bounds.max_refusals:
        ending.fail(
            tx,
            "mistakes",
            f"{bounds.max_refusals} replies were refused. The last one: {trouble}",
            refusals=counters.refusals + 1,
        )


def _collapse(tx: Tx, reply: int) -> None:
    """Let what will be said about this reply stand for what was said about those before it."""
    counters = tx.state.counters
    again = counters.refusals_in_a_row + counters.truncations > 0
    tx.state.view = tx.state.view.not_taken(reply, again=again)


def _truncated(tx: Tx, text: str, spent: dict[str, Any]) -> None:
    """Nothing of a cut-off reply takes effect; a shorter one is asked for."""
    counters, bounds = tx.state.counters, tx.state.spec.limits
    tx.fact(ReplyTruncated(raw=text, usage=spent))
    _collapse(tx, 0)
    tx.count(truncations=counters.truncations + 1)
    tx.close_turn("truncated")
    tx.notice(truncation_feedback())
    if counters.truncations + 1 >= bounds.max_truncations:
        message = (
            f"The reply was cut off at the output limit {bounds.max_truncations} times in a row."
        )
        ending.fail(tx, "truncated", message)


def _commit(tx: Tx, text: str, reading: Reading, staged: Staged, spent: dict[str, Any]) -> None:
    """Apply an accepted reply, in the order of the protocol: payload, scratchpad, commands, then what follows."""
    reply, counters = reading.reply, tx.state.counters
    tx.say("assistant", "reply", text)
    received: dict[str, Any] = {"raw": text, "type": reading.step_type or reading.outcome}
    if (message := reply.get("message")) is not None:
        received["message"] = message
    received["warnings"], received["usage"] = staged.warnings, spent
    tx.tell(ReplyReceived, received, "model")
    if reading.repairs:
        tx.fact(ReplyRepaired(repairs=list(reading.repairs)))
    if counters.refusals_in_a_row or counters.truncations:
        tx.count(refusals_in_a_row=0, truncations=0)
    if not ASIDE.isdisjoint(reply):
        _commit_beside(tx, reading, staged)
    if reading.outcome == "complete":
        tx.state.claim = Claim(
            str(reply.get("message") or ""),
            tuple(reply.get("actionableCommands") or ()),
            reply.get("responseForm"),
        )
    elif staged.step is not None:
        _begin(tx, reading, staged.step)
    elif reading.reads_first:
        _postpone(tx)
    elif reading.nudge:
        _nudge(tx, str(reply.get("message") or reply.get("reasoning") or ""))
    else:
        _look(tx, reply)


def _commit_beside(tx: Tx, reading: Reading, staged: Staged) -> None:
    """Apply what stands beside what the reply decides."""
    if staged.payload is not None:
        commit_payload(tx, staged.payload)
    if staged.scratchpad is not None and staged.scratchpad != tx.state.scratchpad:
        tx.state.scratchpad = staged.scratchpad
        pad = staged.scratchpad.model_dump(by_alias=True, exclude_none=True)
        tx.fact(ScratchpadChanged(notes=pad["notes"], tasks=list(pad["tasks"])), "model")
    for field_name, automatic in COMMANDS.items():
        for command in reading.reply.get(field_name) or ():
            tx.fact(CommandIssued(command=command, automatic=automatic), "model")
    if staged.asked:
        inline.begin(tx, staged.asked, final=reading.outcome == "complete")


def _begin(tx: Tx, reading: Reading, step: NextStep) -> None:
    """Open the step; `carry_on` does the rest."""
    state, reply, request = tx.state, reading.reply, step.request()
    state.handler = step
    state.step = StepInProgress(  # by position, as keywords would double the time
        request,
        str(reply.get("message") or ""),
        reply.get("responseForm"),
        tuple(reply.get("actionableCommands") or ()),
        tx.at,
        state.active_ms,
        reading.claims_complete,
    )
    for key, fact in step.opened(state):
        tx.fact(fact, "model", key=key)
    _watch_repetition(tx, json_hash(step.sameness(request, reply)), reads_first=0)


def _watch_repetition(tx: Tx, digest: str, **counts: int) -> None:
    """Count how often in a row the same was asked for; `counts` are set beside."""
    counters, bounds = tx.state.counters, tx.state.spec.limits
    repeats = counters.repeats + 1 if digest == counters.last_step else 1
    tx.state.counters = changed(counters, last_step=digest, repeats=repeats, nudges=0, **counts)
    if repeats >= bounds.repeat_notice:
        tx.fact(GuardRepeated(count=repeats))
        tx.notice(
            f"You have asked for exactly the same step {repeats} times in a row. Do something else, or finish."
        )


def _postpone(tx: Tx) -> None:
    """What was asked to be looked up comes first, a bounded number of times; then the claim or question is taken."""
    tx.count(reads_first=tx.state.counters.reads_first + 1)
    tx.close_turn("continue")
    tx.notice(READS_FIRST)


def _look(tx: Tx, reply: dict[str, Any]) -> None:
    """The reply only looks something up."""
    tx.close_turn("continue")
    _watch_repetition(tx, json_hash({name: reply.get(name) for name in READ_TOOLS}))


def _nudge(tx: Tx, said: str) -> None:
    """The reply neither completes nor goes on: remind the model, a bounded number of times."""
    nudges = tx.state.counters.nudges + 1
    tx.count(nudges=nudges)
    tx.close_turn("continue")
    if nudges > tx.state.spec.limits.max_nudges:
        text = "The model neither went on nor finished, although it was reminded."
        ending.fail(tx, "stalled", f"{text} It said: {in_a_line(said)}" if said.strip() else text)
        return
    tx.fact(GuardNudged(reason="no_next_step"))
    tx.notice(
        "Go on with a nextStep, or set taskComplete to true with a message if the task is done."
    )
