"""A request as a card: what is asked, what may be decided, how it ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loopagent.access import OPERATOR, Caller
from loopagent.core.json_values import compact_json
from loopagent.core.lineage import ARROW
from loopagent.ports import RequestRow
from loopagent.request_view import approvers_of, shown_params
from loopagent.web.client_call import form_of
from loopagent.web.posts import Fields
from loopagent.web.questions import Question, questions_of
from loopagent.web.render import person


GIST_CHARS = 120
GIST_READ_CHARS = 400
"""Of a line that a gist is made of; more of it is not looked at."""
_LEADING = re.compile(r"^(?:>\s*|(?:#{1,6}|[-*+])(?:\s+|$))+")
_PAIR = re.compile(r"(?<!\w)(\*{1,3}|`)(?=\S)([^*`]+)(?<=\S)\1(?!\w)")
"""What is set off in Markdown: emphasis and code."""
RISK_OF_EFFECTS = {"read": "low", "write": "medium", "external": "high", "irreversible": "highest"}
RISKS = ("low", "medium", "high", "highest")
KINDS = {
    "approval": "Approval",
    "plan": "Plan",
    "question": "Question",
    "guard": "Stuck run",
    "client_tool": "Client tool",
    "limit": "Limit reached",
}
LABELS = {
    "approve": "Approve",
    "reject": "Send back",
    "answer": "Answer",
    "terminate": "Stop the run",
}


@dataclass(frozen=True, slots=True)
class Card:
    """What a template draws."""

    row: RequestRow
    kind: str
    title: str
    text: str
    who: str
    """The agents from the root run to the one that asks."""
    risk: str
    """The gravest effect of what is asked: low, medium, high, highest; empty when nothing is done."""
    subject: Mapping[str, Any]
    decisions: list[str]
    revision: int
    content_hash: str
    expires_at: float | None
    form: Mapping[str, Any] | None
    questions: list[Question] = field(default_factory=list[Question])
    error: str = ""
    sent: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was typed and refused, by field."""

    may_answer: bool = True
    """Whether whoever looks at it is among those who may answer it."""
    preview: Mapping[str, Any] | None = None
    """The HTTP request that would be sent."""

    @property
    def open(self) -> bool:
        """Whether it can be answered, by whoever looks at it."""
        return self.row.status == "open" and self.may_answer

    @property
    def gist(self) -> str:
        """What is asked, in a line: the parameters of a call, or how the text begins; empty when the title says it."""
        if self.params:
            said = ", ".join(f"{name}: {compact_json(one)}" for name, one in self.params.items())
        else:
            lines = (_plain(line) for line in self.text.split("\n"))
            said = next((line for line in lines if line), "")
        cut = said if len(said) <= GIST_CHARS else f"{said[:GIST_CHARS]}…"
        return "" if said == self.title else cut

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the call, those first that are to be shown first."""
        return shown_params(self.subject)

    @property
    def shown_first(self) -> list[str]:
        """Names of those."""
        return [str(one) for one in self.subject.get("show") or ()]

    @property
    def changes(self) -> list[tuple[str, Any, Any]]:
        """Where the call differs from the one that was refused before, what it was and what it is."""
        before: Mapping[str, Any] = self.subject.get("before") or {}
        return [
            (".".join(map(str, one.get("path", ()))), one.get("old"), one.get("new"))
            for one in before.get("changes") or ()
        ]

    @property
    def holder(self) -> str:
        """Who takes care of it, as people call that person; empty for nobody."""
        return person(self.row.holder) if self.row.holder != "human" else "the operator"

    @property
    def kind_label(self) -> str:
        """Its kind in words."""
        return KINDS.get(self.kind, self.kind)

    @property
    def foreign(self) -> bool:
        """Whether it is the question of a server, not of the agent."""
        return self.kind == "question" and "server" in self.subject

    @property
    def editable(self) -> bool:
        """Whether the parameters of the call may be changed."""
        return self.kind == "approval" and bool(self.subject.get("schema"))


def card_of(
    row: RequestRow,
    sent: Fields | None = None,
    *,
    error: str = "",
    errors: Mapping[str, str] | None = None,
    who: Caller = OPERATOR,
    preview: Mapping[str, Any] | None = None,
) -> Card:
    """A request as a card.

    Args:
        row: The request as stored.
        sent: What was sent and refused; it stays in the fields.
        error: Why it was refused.
        errors: What was wrong, by question id.
        who: Who looks at it.
        preview: The HTTP request that would be sent.
    """
    body = row.body
    form: Mapping[str, Any] | None = body.get("form")
    if body.get("kind") == "client_tool":
        form = form_of(body.get("resultSchema"))
    typed = {
        "use_edited": "",
        "edited": "",
        "feedback": "",
        "amount": "",
        "result": "",
        "remember": "",
    }
    typed |= {name: values[-1] for name, values in (sent or {}).items()}
    return Card(
        row=row,
        kind=str(body.get("kind", "")),
        title=str(body.get("title", "")),
        text=str(body.get("text") or ""),
        who=ARROW.join(body.get("agents") or [row.agent]),
        risk=risk_of(body),
        subject=body.get("subject") or {},
        decisions=list(body.get("decisions") or ()),
        revision=int(body.get("revision") or 1),
        content_hash=str(body.get("contentHash") or ""),
        expires_at=body.get("expiresAt"),
        form=form,
        questions=questions_of(form, sent, errors) if form else [],
        error=error,
        sent=typed,
        may_answer=who.approves(approvers_of(row)),
        preview=preview,
    )


def _plain(line: str) -> str:
    """How a line of Markdown begins, without the marks of headings, quotes, lists, emphasis and code."""
    return _PAIR.sub(r"\2", _LEADING.sub("", line.strip()[:GIST_READ_CHARS]))


def risk_of(body: Mapping[str, Any]) -> str:
    """The gravest effect that an answer lets happen."""
    subject: Mapping[str, Any] = body.get("subject") or {}
    effects = [subject.get("effects")] if isinstance(subject.get("effects"), str) else []
    effects += [one.get("effects") for one in subject.get("unlocks") or ()]
    risks = [RISK_OF_EFFECTS.get(str(one), "medium") for one in effects]
    return max(risks, key=RISKS.index, default="")
