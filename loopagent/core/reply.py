"""From the text of a reply to what it decides: complete, a step, go on, refused or cut off."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from loopagent.core.canonical import canonical_reply
from loopagent.core.envelope import LoopAgentResponse, envelope_at_a_glance, validate_envelope
from loopagent.core.fold import Folder
from loopagent.core.fold_values import MAX_ENTRIES
from loopagent.core.problems import Problem, shorten
from loopagent.core.text import MAX_CHARS, read_text
from loopagent.core.values import value_object


Json = dict[str, Any]
ReadingOutcome = Literal["complete", "step", "continue", "refuse", "truncated"]
CUT_OFF: Final = frozenset({"length", "max_tokens", "truncated"})
"""Finish reasons of a reply that stops in the middle, whatever its text looks like."""
WITHHELD: Final = frozenset(
    {"content_filter", "refusal", "safety", "recitation", "malformed_function_call"}
)
"""Finish reasons of a reply that the provider did not let through as it was."""
READ_TOOLS: Final = ("artifactToolCalls", "conversationToolCalls")
"""Fields whose results the model wants to see before it decides anything else."""


@value_object(frozen=True, slots=True)
class ReplyRules:
    """What a reply may be, for one agent at one moment.

    Args:
        interactive: Whether a person or client is there to be asked.
        max_chars: Longest text that is read, in characters.
        max_entries: Most entries in all lists of the protocol together; lists in data do not count.
        allowed_steps: Step types it may ask for; None for all.
        read_tools_left: Whether read tools may still postpone a question or a completion.
        bound: The provider held the reply to a schema; then a wrapper, and text that holds JSON, are how the
            schema wants it and not something to be tolerated.
    """

    interactive: bool = True
    max_chars: int = MAX_CHARS
    max_entries: int = MAX_ENTRIES
    allowed_steps: frozenset[str] | None = None
    read_tools_left: bool = True
    bound: bool = False


@value_object(frozen=True, slots=True)
class Reading:
    """What a reply decides.

    Args:
        outcome: What comes of it. `refuse` and `truncated`: nothing of it takes effect.
        step_type: Type of the step, for `step`.
        reply: The reply as canonical JSON, nulls dropped; empty if it has no effect.
        response: The same, typed.
        warnings: What was tolerated.
        repairs: Those of the warnings that are about its text.
        problems: Why it is refused.
        claims_complete: It also says that the task is done, which is not taken this turn.
        implied_chat: It is a question only because it says something and nothing else.
        nudge: It neither goes on nor ends; the model is to be reminded.
        reads_first: Its read tools postpone its question or completion.
    """

    outcome: ReadingOutcome
    step_type: str | None = None
    reply: Json = field(default_factory=dict[str, Any])
    response: LoopAgentResponse | None = None
    warnings: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    claims_complete: bool = False
    implied_chat: bool = False
    nudge: bool = False
    reads_first: bool = False


DEFAULT_RULES: Final = ReplyRules()
"""A person is there, and everything is allowed."""


def read_reply(text: str, finish: str = "stop", *, rules: ReplyRules = DEFAULT_RULES) -> Reading:
    """Read a reply. Never raises; takes time linear in the text.

    Args:
        text: What the model wrote.
        finish: Why the provider stopped.
        rules: What the agent may do.
    """
    if finish in CUT_OFF:
        return Reading("truncated")
    if finish in WITHHELD:
        message = f"the provider withheld the reply ({finish}); answer in another way"
        return Reading("refuse", problems=(Problem("", message),))
    found = read_text(text, max_chars=rules.max_chars)
    if found.truncated:
        return Reading("truncated", warnings=found.repairs)
    if found.problems:
        return Reading("refuse", warnings=found.repairs, problems=found.problems)
    warnings, seen = list(found.repairs), envelope_at_a_glance(found.value, rules.max_entries)
    case = _closely(found.value, warnings, rules) if seen is None else _Case(*seen, warnings, rules)
    reading = case.decide() if isinstance(case, _Case) else case
    if found.closed and (reading.outcome not in {"complete", "step"} or reading.implied_chat):
        # Its last brace was missing and it does not say what to do: more than the brace is missing.
        return Reading("truncated", warnings=reading.warnings)
    return replace(reading, repairs=found.repairs) if found.repairs else reading


def _closely(value: Any, warnings: list[str], rules: ReplyRules) -> _Case | Reading:
    """A reply that may have to be folded first, and is validated field by field; a refusal where that fails."""
    reply = canonical_reply(value, rules.max_entries)
    found: list[Problem] = []
    if reply is None:
        folder = Folder(rules.max_entries, bound=rules.bound)
        reply = folder.fold(value)
        warnings += folder.warnings
        found = folder.problems
    response = [] if reply is None else validate_envelope(reply)
    problems = [*found, *(response if isinstance(response, list) else ())]
    if reply is None or problems or isinstance(response, list):
        return _refused(warnings, *problems)
    return _Case(reply, response, warnings, rules)


def _refused(warnings: list[str], *problems: Problem) -> Reading:
    return Reading("refuse", warnings=tuple(warnings), problems=problems)


@dataclass(slots=True)
class _Case:
    """A valid reply on its way to a decision."""

    reply: Json
    response: LoopAgentResponse
    warnings: list[str]
    rules: ReplyRules

    def decide(self) -> Reading:
        """The first row that fits: a step (even beside a completion), completion, going on."""
        reply, complete = self.reply, self.response.task_complete is True
        step = reply.get("nextStep")
        if step is None:
            return self._complete() if complete else self._no_step()
        kind: str = step["type"]
        if complete and kind == "Retry":
            self._set("nextStep", "next_step", None)
            self.warnings.append("nextStep: Retry ignored beside the completion")
            return self._complete()
        if not self._allows(kind):
            names = ", ".join(sorted(self.rules.allowed_steps or ())) or "none"
            got = shorten(kind)
            message = f"expected a step this agent may use ({names}), got {got}"
            return _refused(self.warnings, Problem("nextStep.type", message, got))
        if kind == "Chat":
            return self._chat()
        if "responseForm" in reply:
            self.warnings.append(f"responseForm: not shown with {kind}; ask with Chat")
        warnings = tuple(self.warnings)
        return Reading("step", kind, reply, self.response, warnings, claims_complete=complete)

    def _allows(self, kind: str) -> bool:
        return self.rules.allowed_steps is None or kind in self.rules.allowed_steps

    def _complete(self) -> Reading:
        if self._reads() and self.rules.read_tools_left:
            return self._reading("continue", claims_complete=True, reads_first=True)
        return self._reading("complete")

    def _no_step(self) -> Reading:
        """Neither a step nor a completion: a question if it says something to a person."""
        reads = self._reads()
        asks = self._says("message") or "responseForm" in self.reply
        asks = asks or (self._says("reasoning") and not reads)
        if asks and self.rules.interactive and self._allows("Chat"):
            self.warnings.append("nextStep: missing, read as Chat")
            return self._chat(implied=True)
        return self._reading("continue", nudge=not reads)

    def _chat(self, *, implied: bool = False) -> Reading:
        if self._reads() and self.rules.read_tools_left:
            complete = self.response.task_complete is True
            return self._reading("continue", claims_complete=complete, reads_first=True)
        if not self._says("message") and self._says("reasoning"):
            self.warnings.append("message: missing, the reasoning stands in for it")
            self._set("message", "message", self.reply["reasoning"])
        elif not self._says("message") and "responseForm" not in self.reply:
            problem = Problem("message", "required for Chat, but missing or blank")
            return _refused(self.warnings, problem)
        return self._reading("step", "Chat", implied_chat=implied)

    def _reads(self) -> bool:
        return any(self.reply.get(key) for key in READ_TOOLS)

    def _says(self, key: str) -> bool:
        value = self.reply.get(key)
        return isinstance(value, str) and bool(value.strip())

    def _set(self, key: str, name: str, value: Any) -> None:
        """Change a field of the reply in both of its forms."""
        self.reply = {one: said for one, said in self.reply.items() if one != key}
        if value is not None:
            self.reply[key] = value
        self.response = self.response.model_copy(update={name: value})

    def _reading(
        self,
        outcome: ReadingOutcome,
        step_type: str | None = None,
        *,
        claims_complete: bool = False,
        implied_chat: bool = False,
        nudge: bool = False,
        reads_first: bool = False,
    ) -> Reading:
        return Reading(
            outcome,
            step_type,
            self.reply,
            self.response,
            tuple(self.warnings),
            claims_complete=claims_complete,
            implied_chat=implied_chat,
            nudge=nudge,
            reads_first=reads_first,
        )


def check_text(text: str, finish: str = "stop") -> Json:
    """Say what becomes of a text, for people who debug prompts; every name counts as known.

    Args:
        text: What the model wrote.
        finish: Why the provider stopped.

    Returns:
        `{outcome, type, message, warnings, problems, reply}`; `outcome` is `complete`, `step:TYPE`,
        `continue`, `refuse` or `truncated`.
    """
    reading = read_reply(text, finish)
    step = reading.outcome == "step"
    return {
        "outcome": f"step:{reading.step_type}" if step else reading.outcome,
        "type": reading.step_type,
        "message": reading.reply.get("message"),
        "warnings": list(reading.warnings),
        "problems": [
            {"path": one.path, "message": one.message, "got": one.got} for one in reading.problems
        ],
        "reply": reading.reply or None,
    }
