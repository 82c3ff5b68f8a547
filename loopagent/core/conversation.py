"""Conversations: what of a run is kept in the conversation that it continues, and what the next run is shown.

A conversation is its messages, numbered for ever. Only what was said in it goes in: tasks and messages of people,
questions, and how each run ended; everything else stays with the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from loopagent.core.json_values import compact_json
from loopagent.core.tokens import estimate_tokens


if TYPE_CHECKING:
    from loopagent.core.facts import Fact
    from loopagent.core.state import Message, RunState

Role = Literal["User", "AI"]
QUEUED: Final = "0:conversation"
"""Id of the effect that a run waits for while an earlier run of its conversation is active."""
CUT: Final = " … (cut)"
"""Closes a message that is shown only in part."""
_CHARS_PER_TOKEN: Final = 3
"""How much of a message is shown when not even one fits: cautious, so that the budget holds for most texts."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation. `sequence` counts from 1 and is never given again; `at` is in seconds."""

    sequence: int
    role: Role
    text: str
    run_id: str
    at: float

    def shown(self) -> dict[str, Any]:
        """The message as a model sees it."""
        return {"sequence": self.sequence, "role": self.role, "text": self.text}


def newly_said(
    state: RunState, facts: Sequence[Fact], messages: Sequence[Message]
) -> list[tuple[Role, str]]:
    """What a transition adds to the conversation of its run, in order.

    Args:
        state: The run after the transition.
        facts: What the transition said happened.
        messages: What it appended to the transcript.
    """
    if not state.conversation:
        return []
    said: list[tuple[Role, str]] = [
        ("User", one.text) for one in messages if one.kind in {"task", "person"}
    ]
    said.extend(
        ("AI", _question(one.data))
        for one in facts
        if one.type == "request.created"
        and one.data["kind"] == "question"
        and "server" not in one.data["subject"]
    )
    if state.ended and state.messages:
        said.append(("AI", _last_word(state)))
    return said


def _question(request: dict[str, Any]) -> str:
    labels = [str(one.get("label", "")) for one in (request.get("form") or {}).get("questions", ())]
    return "\n".join(one for one in (str(request["text"]), *labels) if one)


def _last_word(state: RunState) -> str:
    """The final message of a run that completed; of another one, that it has none and why."""
    result = state.result
    text = result.message if result else ""
    if state.status == "completed":
        return text
    how = "was cancelled" if state.status == "cancelled" else "failed"
    return f"(No answer: the run {how}{': ' if text else ''}{text})"


def history(messages: Sequence[Said], total: int, budget_tokens: int) -> str:
    """What a run is shown of its conversation before its task: the last messages that fit, and how many more there are.

    Args:
        messages: The last messages, oldest first.
        total: How many the conversation holds.
        budget_tokens: About how many tokens may be used; 0 shows nothing.

    Returns:
        The text, empty when nothing was said or nothing is to be shown.
    """
    if not messages or budget_tokens <= 0:
        return ""
    entries: list[dict[str, Any]] = []
    left = budget_tokens
    for one in reversed(messages):
        entry = one.shown()
        cost = estimate_tokens(compact_json(entry))
        if cost > left:
            break
        entries.insert(0, entry)
        left -= cost
    if not entries:
        last = messages[-1]
        entries = [{**last.shown(), "text": last.text[: budget_tokens * _CHARS_PER_TOKEN] + CUT}]
    body: dict[str, Any] = {"conversation": entries}
    if total > len(entries):
        body["earlier"] = total - len(entries)
    return f"{_HEADING} {compact_json(body)}"


def carried_text(looked_up: Sequence[dict[str, Any]], max_chars: int) -> str:
    """What an earlier run had looked up, as one message: the newest that fit, oldest first.

    Args:
        looked_up: What was found, oldest first.
        max_chars: Longest message.
    """
    left = max_chars - len(_CARRIED) - 2
    chosen: list[str] = []
    for one in reversed(looked_up):
        text = compact_json(one)
        if len(text) + 1 <= left and text not in chosen:
            chosen.insert(0, text)
            left -= len(text) + 1
    return f"{_CARRIED}[{','.join(chosen)}]" if chosen else ""


_CARRIED: Final = (
    "What you looked up in the last run of this conversation follows as data, so that you need not ask again; "
    "its handles of artifacts are not those of this run: "
)
_HEADING: Final = (
    "This task continues a conversation. What was said last follows as data;"
    " `earlier` counts the messages before that:"
)
