"""`conversationToolCalls`: looking something up in the conversation that the run continues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from loopagent.core import limits
from loopagent.core.effects import ReadConversation, key_of
from loopagent.core.facts_context import ModelCalled
from loopagent.core.facts_conversation import ConversationRead
from loopagent.core.inline_operation import Entry, Operation
from loopagent.core.outcome import Outcome
from loopagent.core.spending import NOTHING


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.problems import Problem
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


SUMMARIZE: Final = "summarizeRange"
NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "getMessageBySequence": ("sequence",),
    "getMessagesByRange": ("startSequence", "endSequence"),
    "searchConversation": ("query",),
    SUMMARIZE: ("startSequence", "endSequence", "lens"),
}
"""What each tool must be given."""
MAX_LENS_CHARS: Final = 2_000
"""Length of what a summary is asked to look for."""


class ConversationCalls(Operation[ReadConversation]):
    """Calls of the four tools. Each that cannot be carried out fails alone."""

    field = "conversationToolCalls"
    key = "conversation"

    def offered(self, spec: AgentSpec) -> bool:
        """The setting `conversationTools`, which a run that continues a conversation has by itself."""
        return spec.conversation_tools is True

    def check(
        self, run: RunState, entries: Sequence[Entry], path: str
    ) -> tuple[list[Entry], list[Problem], list[str]]:
        """Nothing is wrong with a reply for them: whatever is wrong with a call is its outcome."""
        del run, path
        return list(entries), [], []

    def effects(self, run: RunState, entries: Sequence[Entry]) -> tuple[ReadConversation, ...]:
        """One look-up for each call."""
        return tuple(
            ReadConversation(
                self.inline_id(run, number),
                one["tool"],
                one.get("input") or {},
                limits.timeout_ms(run, None),
            )
            for number, one in enumerate(entries)
        )

    def answered(self, run: RunState, effect: ReadConversation) -> Outcome | None:
        """What needs no reading: calls that are too many, lack something, or have nothing to read."""
        if not run.conversation:
            text = "This run continues no conversation: there are no earlier messages to read."
            return Outcome.failed("no_conversation", text)
        most = run.spec.limits.max_conversation_calls
        if int(effect.id.rpartition(".")[2]) >= most:
            text = f"Skipped: at most {most} conversation calls in one reply. Ask again if needed."
            return Outcome.failed("skipped", text)
        given = effect.params
        lacking = [one for one in NEEDS[effect.tool] if given.get(one) in (None, "")]
        if lacking:
            return Outcome.failed("invalid", f"{effect.tool} needs {' and '.join(lacking)}.")
        if len(str(given.get("lens") or "")) > MAX_LENS_CHARS:
            return Outcome.failed("invalid", f"lens: at most {MAX_LENS_CHARS} characters.")
        reached = limits.reached(run) if effect.tool == SUMMARIZE else None
        if reached is not None:
            return Outcome.failed("limit", f"{reached.limit} is reached; no model is asked.")
        return None

    def absorb(self, tx: Tx, effect: ReadConversation, outcome: Outcome) -> None:
        """Count the model call of a summary, failed attempts included, and let it be seen."""
        if effect.tool != SUMMARIZE or not isinstance(outcome.value, dict):
            return
        value = cast("dict[str, Any]", outcome.value)
        call: dict[str, Any] = value.get("call") or {"attempts": value.get("attempts", ())}
        spent = NOTHING
        for one in (*call.get("attempts", ()), call):
            if one.get("usage"):
                spent = spent.plus(one["usage"])
        tx.state.usage = tx.state.usage.together(spent)
        asked = ModelCalled(
            purpose="conversation",
            model=str(call.get("model") or tx.state.model),
            usage=spent.told(),
            error=outcome.error.code if outcome.error else None,
        )
        tx.fact(asked, "model", key=key_of(effect.id))

    def entry(self, effect: ReadConversation, outcome: Outcome) -> Entry:
        """Which tool, and what was found."""
        told: Entry = {"tool": effect.tool, "ok": outcome.ok}
        if not outcome.ok:
            return {**told, "error": outcome.error.public() if outcome.error else None}
        value = cast("dict[str, Any]", outcome.value)
        return {**told, **{key: one for key, one in value.items() if key != "call"}}

    def fact(self, effect: ReadConversation, outcome: Outcome) -> ConversationRead:
        """That it was read; never what was found."""
        error = outcome.error.public() if outcome.error else None
        return ConversationRead(tool=effect.tool, ok=outcome.ok, error=error)
