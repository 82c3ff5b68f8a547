"""From the text of a reply to what it decides (complete, a step, go on, refused, cut off), as one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, cast

from loopagent.core.envelope import LoopAgentResponse, validate_envelope
from loopagent.core.fold import Folder
from loopagent.core.problems import Problem
from loopagent.core.text import read_text


ReadingOutcome = Literal["complete", "step", "continue", "refuse", "truncated"]
CUT_OFF = frozenset({"length", "max_tokens", "truncated"})
READ_TOOLS = ("artifactToolCalls", "conversationToolCalls")
INLINE = (
    "payloadChangeRequest",
    "scratchpad",
    "memoryWrites",
    *READ_TOOLS,
    "actionableCommands",
    "automaticCommands",
)


@dataclass(frozen=True, slots=True)
class ReplyRules:
    """What a reply may be, for one agent at one moment.

    `allowed_steps`: step types it may ask for, None for all. `read_tools_left`: whether read tools may still
    postpone a question or a completion.
    """

    interactive: bool = True
    max_chars: int = 1_000_000
    allowed_steps: frozenset[str] | None = None
    read_tools_left: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply decides.

    `reply` is its canonical JSON. `claims_complete`: it also claimed completion, which is not taken this turn.
    `reads_first`: its read tools postpone its question or completion.
    """

    outcome: ReadingOutcome
    step_type: str | None = None
    reply: dict[str, Any] = field(default_factory=dict[str, Any])
    response: LoopAgentResponse | None = None
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    claims_complete: bool = False
    reads_first: bool = False


DEFAULT_RULES = ReplyRules()


def read_reply(text: str, finish: str = "stop", *, rules: ReplyRules = DEFAULT_RULES) -> Reading:
    """Read a reply; never raises, in time linear in the text.

    Args:
        text: The model's text as it came.
        finish: Why the provider stopped; `length` means cut off, whatever the text looks like.
        rules: What the agent may do.
    """
    if finish in CUT_OFF:
        return Reading("truncated")
    found = read_text(text, max_chars=rules.max_chars)
    if found.truncated:
        return Reading("truncated", warnings=found.repairs)
    if found.problems:
        return Reading("refuse", warnings=found.repairs, problems=found.problems)
    canonical = _canonical(found.value) if not found.repairs else None
    if canonical is not None:
        return _decide(found.value, canonical, [], rules)
    folder = Folder()
    reply = folder.fold(found.value)
    warnings = [*found.repairs, *folder.warnings]
    if reply is None or folder.problems:
        return Reading("refuse", warnings=tuple(warnings), problems=tuple(folder.problems))
    response = validate_envelope(reply)
    if isinstance(response, list):
        return Reading("refuse", warnings=tuple(warnings), problems=tuple(response))
    return _decide(reply, response, warnings, rules)


_PLAIN_KEYS = frozenset(
    {"taskComplete", "message", "reasoning", "nextStep", "payloadChangeRequest", "scratchpad"}
)
_PLAIN_STEPS = {
    "Actions": frozenset({"type", "actions"}),
    "Chat": frozenset({"type"}),
}
_CALL_KEYS = frozenset({"name", "params"})


def _canonical(value: Any) -> LoopAgentResponse | None:
    """A reply that is written exactly as the protocol has it needs no folding; most replies are."""
    if (
        not isinstance(value, dict)
        or not (reply := cast("dict[str, Any]", value)).keys() <= _PLAIN_KEYS
    ):
        return None
    if None in reply.values() or not isinstance(reply.get("taskComplete"), bool):
        return None
    step = reply.get("nextStep")
    if step is not None and not _plain_step(step):
        return None
    response = validate_envelope(reply)
    return None if isinstance(response, list) else response


def _plain_step(step: Any) -> bool:
    if not isinstance(step, dict):
        return False
    fields = cast("dict[str, Any]", step)
    keys = _PLAIN_STEPS.get(str(fields.get("type")))
    if keys is None or fields.keys() != keys:
        return False
    calls: Any = fields.get("actions", [])
    return isinstance(calls, list) and all(
        isinstance(one, dict) and cast("dict[str, Any]", one).keys() == _CALL_KEYS for one in calls
    )


def _decide(
    reply: dict[str, Any], response: LoopAgentResponse, warnings: list[str], rules: ReplyRules
) -> Reading:
    step = reply.get("nextStep")
    kind = step["type"] if step else _implied(reply, warnings, rules)
    if kind is not None and rules.allowed_steps is not None and kind not in rules.allowed_steps:
        return _not_allowed(kind, reply, response, warnings, rules)
    if kind == "Chat":
        return _chat(reply, response, warnings, rules)
    complete = reply.get("taskComplete") is True
    if kind is not None:
        return Reading("step", kind, reply, response, tuple(warnings), claims_complete=complete)
    if complete and not (_reads(reply) and rules.read_tools_left):
        return Reading("complete", None, reply, response, tuple(warnings))
    return Reading(
        "continue",
        None,
        reply,
        response,
        tuple(warnings),
        reads_first=complete,
        claims_complete=complete,
    )


def _implied(reply: dict[str, Any], warnings: list[str], rules: ReplyRules) -> str | None:
    """A reply that neither completes nor names a step, but says or asks something, is a question to the person."""
    if reply.get("taskComplete") is True or not rules.interactive:
        return None
    if not (_text(reply, "message") or _text(reply, "reasoning") or reply.get("responseForm")):
        return None
    if any(reply.get(key) for key in READ_TOOLS) and not _text(reply, "message"):
        return None
    warnings.append("nextStep: missing, read as Chat")
    return "Chat"


def _chat(
    reply: dict[str, Any], response: LoopAgentResponse, warnings: list[str], rules: ReplyRules
) -> Reading:
    if _reads(reply) and rules.read_tools_left:
        return Reading("continue", None, reply, response, tuple(warnings), reads_first=True)
    if not _text(reply, "message"):
        if _text(reply, "reasoning"):
            warnings.append("message: missing, the reasoning stands in for it")
            reply = {**reply, "message": reply["reasoning"]}
        elif not reply.get("responseForm"):
            problem = Problem("message", "Chat needs a message", "nothing")
            return Reading("refuse", warnings=tuple(warnings), problems=(problem,))
    return Reading("step", "Chat", reply, response, tuple(warnings))


def _not_allowed(
    kind: str,
    reply: dict[str, Any],
    response: LoopAgentResponse,
    warnings: list[str],
    rules: ReplyRules,
) -> Reading:
    allowed = sorted(rules.allowed_steps or ())
    if kind == "Chat" and not reply.get("nextStep"):
        return Reading("continue", None, reply, response, tuple(warnings))
    problem = Problem("nextStep.type", f"this agent may use: {', '.join(allowed)}", kind)
    return Reading("refuse", warnings=tuple(warnings), problems=(problem,))


def _reads(reply: dict[str, Any]) -> bool:
    return any(reply.get(key) for key in READ_TOOLS)


def _text(reply: dict[str, Any], key: str) -> bool:
    value = reply.get(key)
    return isinstance(value, str) and bool(value.strip())


def check_text(text: str, finish: str = "stop") -> dict[str, Any]:
    """What becomes of a text, for people who debug prompts; every name is taken as known.

    Returns:
        `{outcome, type, message, warnings, problems, reply}`; `outcome` is `complete`, `step:TYPE`, `continue`,
        `refuse` or `truncated`.
    """
    reading = read_reply(text, finish)
    outcome = f"step:{reading.step_type}" if reading.outcome == "step" else reading.outcome
    return {
        "outcome": outcome,
        "type": reading.step_type,
        "message": reading.reply.get("message"),
        "warnings": list(reading.warnings),
        "problems": [
            {"path": one.path, "message": one.message, "got": one.got} for one in reading.problems
        ],
        "reply": reading.reply or None,
    }
