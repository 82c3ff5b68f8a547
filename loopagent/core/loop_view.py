"""What a client sees a run doing, and what it may do about it: data enough to draw buttons from.

A run is looked at together with the runs below it. What each of them does by itself is a `Part`; `combine` says what
that makes of the whole. The server makes the parts from its states, a client from the events, and both combine them
here.

Source: events-and-states, section 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from loopagent.core.described import Described


State: TypeAlias = Literal[
    "queued",
    "running",
    "streaming",
    "interactive",
    "followup",
    "client_tool",
    "idle",
    "resumable",
]
Word: TypeAlias = Literal["queued", "running", "waiting", "idle", "resumable"]
"""What one run does by itself."""


class _Public(Described, BaseModel):
    """Base: camelCase as it goes over the wire."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        json_schema_serialization_defaults_required=True,
        defer_build=True,
    )


class Button(_Public):
    """One thing that may be done."""

    decision: str
    """What it does: the `decision` of an answer, or one of `DOES`."""
    label: str
    """What to write on it."""


class Ask(_Public):
    """An open request, complete enough to draw its buttons."""

    request_id: str | None
    """Null while the reply that asks is still arriving, and where a run stands still and nobody is asked."""
    run_id: str
    """The run that asks: the one looked at, or one below it."""
    agents: list[str]
    """Who asks: the agents from the root run to the one that asks."""
    kind: str
    """`approval`, `plan`, `guard`, `limit`, `question`, `client_tool`; where a run stands still `resume`, `raise`,
    `retry`."""
    title: str
    primary: Button
    secondary: Button
    enabled: bool
    """False while anything of it is still being made, and once an answer is on its way: show it, but take none."""
    expires_at: float | None = None
    """When nobody can answer any more, seconds since the epoch."""


class LoopState(_Public):
    """What a run is doing."""

    state: State
    reason: str | None = None
    """Why it is idle: `completed`, `cancelled`, or why it failed (`limit`, `model`, …); null when there is no run.
    Why it is resumable: `paused`, or `unattended` where nobody works on it."""
    ask: Ask | None = None
    """The first open request of the run and the runs below it, or how a run that stands still may go on."""
    primary: Button | None = None
    """What there is to do first: of a waiting run, the first button of its request."""
    secondary: Button | None = None

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON."""
        return self.model_dump()


def _button(decision: str, label: str) -> Button:
    return Button(decision=decision, label=label)


STATE_OF_ASK: Final[dict[str, State]] = {
    "approval": "interactive",
    "guard": "interactive",
    "limit": "interactive",
    "plan": "interactive",
    "question": "followup",
    "client_tool": "client_tool",
}
_STOP: Final = _button("terminate", "Stop the run")
_LEAVE: Final = _button("stop", "Leave it")
BUTTONS: Final[dict[str, tuple[Button, Button]]] = {
    "approval": (_button("approve", "Approve"), _button("reject", "Reject")),
    "plan": (_button("approve", "Approve"), _button("reject", "Reject")),
    "guard": (_button("approve", "Try another way"), _STOP),
    "limit": (_button("approve", "Approve"), _button("reject", "Reject")),
    "question": (_button("answer", "Answer"), _STOP),
    "client_tool": (_button("result", "Give the result"), _button("error", "Give an error")),
}
"""The first two buttons of each kind of request."""
_WORKING: Final = (_button("message", "Send a message"), _button("cancel", "Stop the run"))
_ENDED: Final = (_button("new_run", "New run"), _button("continue", "Continue the conversation"))
UNATTENDED: Final = "unattended"
"""Reason of a run that would go on, and that nobody works on."""
OFFERS: Final[dict[str, tuple[str, str, Button, Button]]] = {
    "paused": ("resume", "The run is paused", _button("resume", "Go on"), _STOP),
    UNATTENDED: ("resume", "Nobody works on the run", _button("resume", "Go on"), _STOP),
    "limit": (
        "raise",
        "The run reached a limit",
        _button("raise", "Raise the limit and go on"),
        _LEAVE,
    ),
    "model": ("retry", "The model failed", _button("retry", "Try again"), _LEAVE),
}
"""What may be done with a run that stands still, by why it does: kind, title and buttons."""
DOES: Final = frozenset({"message", "cancel", "new_run", "continue"}) | {
    one.decision for offered in OFFERS.values() for one in offered[2:]
}
"""Every `decision` that answers no request."""


@dataclass(slots=True)
class Part:
    """What one run does by itself."""

    run_id: str
    word: Word = "running"
    reason: str | None = None
    """Why it is idle or resumable."""
    child: bool = False
    """It works for another run, whose business its end is."""
    agents: list[str] = field(default_factory=list[str])
    """Its agent, after those above it."""
    busy: bool = False
    """It asks a model or runs an action."""
    streaming: bool = False
    """A model reply is arriving."""
    forming: Ask | None = None
    """What that reply is about to ask."""
    asks: list[Ask] = field(default_factory=list[Ask])
    """Its open requests, people's first."""
    children: list[str] = field(default_factory=list[str])
    """Ids of the runs that work for it, in the order they were asked for."""
    heard: bool = True
    """False from the moment it is given an answer until it takes it."""


def combine(run_id: str, parts: Mapping[str, Part]) -> LoopState:
    """What a run does, together with everything below it.

    It waits as soon as everything under way in it waits: then its state is that of the first request, which may
    be one of a run below.
    """
    first = parts.get(run_id)
    if first is None:
        return _shown("idle", None, None, _ENDED)
    if first.word == "idle":
        may_go_on = not first.child and first.reason in GOES_ON
        offered = _offer(first, first.reason or "") if may_go_on else None
        return _shown("idle", first.reason, offered, _ENDED)
    if first.word == "queued":
        return _shown("queued", None, None, _WORKING)
    below = list(under_way(run_id, parts))
    ask = next((ask for part in below for ask in _asks_of(part)), None)
    course = _course(first, parts)
    if course == "waiting" and ask is not None:
        return _shown(STATE_OF_ASK.get(ask.kind, "interactive"), None, ask, None)
    if course == "resumable":
        still = next(one for one in below if one.word == "resumable")
        why = UNATTENDED if still.reason == UNATTENDED else "paused"
        return _shown("resumable", why, _offer(still, why), None)
    arriving = [one for one in below if one.streaming]
    forming = next((one.forming for one in arriving if one.forming), None)
    return _shown("streaming" if arriving else "running", None, ask or forming, _WORKING)


GOES_ON: Final = frozenset({"limit", "model"})
"""Reasons of a failure after which a person may let the run go on: with a higher limit, or by trying again."""


def _offer(part: Part, why: str) -> Ask:
    """What may be done with a run that stands still: nobody is asked anything, so there is no request to answer."""
    kind, title, primary, secondary = OFFERS[why]
    return Ask(
        request_id=None,
        run_id=part.run_id,
        agents=part.agents,
        kind=kind,
        title=title,
        primary=primary,
        secondary=secondary,
        enabled=True,
    )


def _shown(
    state: State, reason: str | None, ask: Ask | None, else_: tuple[Button, Button] | None
) -> LoopState:
    """A state with its buttons: `else_`, or those of what is asked."""
    asks = ask is not None and (else_ is None or state == "idle")
    primary, secondary = (ask.primary, ask.secondary) if ask and asks else else_ or _ENDED
    return LoopState(state=state, reason=reason, ask=ask, primary=primary, secondary=secondary)


def open_asks(run_id: str, parts: Mapping[str, Part]) -> list[Ask]:
    """Every open request of a run and of the runs below it that it waits for, its own first."""
    return [ask for part in under_way(run_id, parts) for ask in _asks_of(part)]


def _asks_of(part: Part) -> list[Ask]:
    """A run's open requests. Nobody can answer yet while it prepares them, or any more once an answer is on its way."""
    if part.heard and (part.word != "running" or part.children):
        return part.asks
    return [one.model_copy(update={"enabled": False}) for one in part.asks]


def under_way(run_id: str, parts: Mapping[str, Part], *above: str) -> Iterator[Part]:
    """A run and, depth first, the runs below it that it waits for; those that are not known are left out."""
    part = parts.get(run_id)
    if part is None or run_id in above:
        return
    yield part
    for child in part.children:
        yield from under_way(child, parts, run_id, *above)


def _course(part: Part, parts: Mapping[str, Part], *above: str) -> Word:
    """Whether anything goes on in a run and below it: `running`; else what holds it up."""
    if part.word != "running":
        return "running" if part.word in {"idle", "queued"} else part.word
    if part.busy or not part.children:
        return "running"
    below = {_course_of(child, parts, part.run_id, *above) for child in part.children}
    return next(one for one in _FIRST if one in below)


def _course_of(run_id: str, parts: Mapping[str, Part], *above: str) -> Word:
    """The same of a child; one that has not begun, or not yet told how it ended, is under way."""
    part = parts.get(run_id)
    if part is None or not part.heard or run_id in above:
        return "running"
    return _course(part, parts, *above)


_FIRST: Final[tuple[Word, ...]] = ("running", "waiting", "resumable")
"""Of several children, what counts."""
