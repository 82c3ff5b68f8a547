"""What one run's public events say about what it does: a table from event type to what changes.

Whatever an event holds, nothing here raises: what has not the expected form counts as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from loopagent.core.loop_view import BUTTONS, STATE_OF_ASK, Ask, Button, Part, Word


Event = Mapping[str, Any]
WAITING: Final = frozenset(STATE_OF_ASK.values())
ENDED: Final = frozenset({"completed", "failed", "cancelled"})
FORMING: Final = {
    "Plan": ("plan", "Plan"),
    "Chat": ("question", "Question"),
    "ClientTools": ("client_tool", "Call of a client tool"),
}
"""Step type → kind and title of the request that it will make; of others it is not known yet."""


@dataclass(slots=True)
class Heard(Part):
    """A part of a tree as far as its events were heard."""

    people: dict[str, Ask] = field(default_factory=dict[str, Ask])
    client: dict[str, Ask] = field(default_factory=dict[str, Ask])
    calls: dict[str, str] = field(default_factory=dict[str, str])
    """Child runs by the call that they work for."""
    actions: set[str] = field(default_factory=set[str])
    calling: bool = False
    whole: bool = False
    """The last reply has arrived: what still comes of it is late."""
    turn: int = 0
    attempt: int = 0
    """The last attempt at the reply that failed."""
    lost: bool = False
    """It is thought to be left in the middle; whatever it does next shows that it is not."""

    def settle(self) -> None:
        """Bring what a `Part` says in step with what was heard."""
        self.asks = [*self.people.values(), *self.client.values()]
        self.children = list(dict.fromkeys(self.calls.values()))
        self.busy = self.calling or bool(self.actions)

    def found(self) -> None:
        """Something comes of it, so somebody works on it."""
        if self.lost:
            self.word, self.lost = "running", False

    def hush(self) -> None:
        """No reply is arriving any more."""
        self.streaming, self.forming = False, None

    def end(self, reason: str) -> None:
        """Nothing happens in the run any more."""
        self.word, self.reason, self.calling, self.whole = "idle", reason, False, True
        self.hush()
        for one in (self.people, self.client, self.calls, self.actions):
            one.clear()

    def put(self, body: Event) -> None:
        """Note an open request, as an event or a run tells of it."""
        kind = text(body, "kind")
        ask = Ask(
            request_id=text(body, "requestId"),
            run_id=self.run_id,
            agents=[str(one) for one in listed(body, "agents")],
            kind=kind,
            title=text(body, "title"),
            primary=_button(body, "primary"),
            secondary=_button(body, "secondary"),
            enabled=True,
            expires_at=_seconds(body.get("expiresAt")),
        )
        (self.client if kind == "client_tool" else self.people)[text(body, "requestId")] = ask


# --- reading ---------------------------------------------------------------------------------------


def text(body: Event, key: str) -> str:
    """A text of an event; empty when there is none."""
    value = body.get(key)
    return value if isinstance(value, str) else ""


def number(body: Event, key: str) -> int:
    """A whole number of an event; 0 when there is none."""
    value = body.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def listed(body: Event, key: str) -> list[Any]:
    """A list of an event; empty when there is none."""
    value = body.get(key)
    found: list[Any] = value if isinstance(value, list) else []
    return found


def mapping(body: Event, key: str) -> Event:
    """An object of an event; empty when there is none."""
    value = body.get(key)
    return cast("Event", value) if isinstance(value, Mapping) else {}


def _seconds(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _button(body: Event, which: str) -> Button:
    given = mapping(body, which)
    return Button(decision=text(given, "decision"), label=text(given, "label"))


# --- what each event says --------------------------------------------------------------------------


def _running(run: Heard, event: Event, data: Event) -> None:
    del event, data
    run.word = "running"


def _waiting(run: Heard, event: Event, data: Event) -> None:
    del event, data
    run.word = "waiting"


_WORDS: Final[dict[str, Word]] = {"queued": "queued", "resumable": "resumable"}


def _state(run: Heard, event: Event, data: Event) -> None:
    """The state that the server tells of; without a number it is its guess, which a later event corrects."""
    word, persisted = text(data, "state"), "seq" in event
    if run.word == "idle" and not persisted:
        return
    ask = mapping(data, "ask")
    if ask and text(ask, "runId") == run.run_id:
        run.agents = [str(one) for one in listed(ask, "agents")]
    if word == "idle":
        run.end(text(data, "reason"))
        return
    run.lost = word == "resumable" and not persisted
    run.word = "waiting" if word in WAITING else _WORDS.get(word, "running")
    if word == "resumable":
        run.reason = text(data, "reason")
        run.hush()
    if word in WAITING and ask:
        run.put(ask)


def _turn_started(run: Heard, event: Event, data: Event) -> None:
    del data
    run.hush()
    run.word, run.calling, run.whole = "running", True, False
    run.turn, run.attempt = number(event, "turn"), 0


def _reply(run: Heard, event: Event, data: Event) -> None:
    del event, data
    run.hush()
    run.calling, run.whole = False, True


def _turn_ended(run: Heard, event: Event, data: Event) -> None:
    _reply(run, event, data)
    run.actions.clear()


def _retry(run: Heard, event: Event, data: Event) -> None:
    del event
    run.hush()
    run.attempt = number(data, "attempt")


def _arriving(run: Heard, event: Event, data: Event) -> None:
    """A piece of a reply, unless it comes too late to be one of the reply that is arriving."""
    turn, attempt = number(event, "turn"), number(data, "attempt")
    late = (run.turn and turn and turn != run.turn) or (0 < attempt <= run.attempt)
    run.found()
    if late or run.whole or run.word != "running":
        return
    run.streaming = True
    for one in (data, *listed(data, "fields")):
        if isinstance(one, Mapping):
            _look(run, cast("Event", one))


def _look(run: Heard, piece: Event) -> None:
    """What a piece of a reply says about what the reply will ask."""
    if text(piece, "field") == "nextStep.type" and piece.get("done") is not False:
        run.forming = _forming(run, text(piece, "text") or text(piece, "value"))


def _retracted(run: Heard, event: Event, data: Event) -> None:
    """What was shown does not hold, of some fields or of all."""
    del event
    fields = listed(data, "fields")
    if not fields:
        run.hush()
    elif "nextStep.type" in fields:
        run.forming = None


def _paused(run: Heard, event: Event, data: Event) -> None:
    del event, data
    run.hush()
    run.word, run.reason = "resumable", "paused"


def _forming(run: Heard, step: str) -> Ask | None:
    """What a reply is about to ask; nobody can answer it yet."""
    kind, title = FORMING.get(step, ("", ""))
    if not kind:
        return None
    primary, secondary = BUTTONS[kind]
    return Ask(
        request_id=None,
        run_id=run.run_id,
        agents=run.agents,
        kind=kind,
        title=title,
        primary=primary,
        secondary=secondary,
        enabled=False,
    )


def _action_began(run: Heard, event: Event, data: Event) -> None:
    del event
    run.actions.add(text(data, "callId"))


def _action_over(run: Heard, event: Event, data: Event) -> None:
    del event
    run.actions.discard(text(data, "callId"))


def _child_began(run: Heard, event: Event, data: Event) -> None:
    del event
    run.calls[text(data, "callId")] = text(data, "runId")


def _child_over(run: Heard, event: Event, data: Event) -> None:
    del event
    child = text(data, "runId")
    run.calls = {key: one for key, one in run.calls.items() if one != child}


def _asked(run: Heard, event: Event, data: Event) -> None:
    del event
    run.put(data)


def _settled(run: Heard, event: Event, data: Event) -> None:
    del event
    run.people.pop(text(data, "requestId"), None)
    run.client.pop(text(data, "requestId"), None)


def _ended(run: Heard, event: Event, data: Event) -> None:
    word = text(event, "type").removeprefix("run.")
    run.end(text(data, "reason") if word == "failed" else word)


def _idle(run: Heard, event: Event, data: Event) -> None:
    """The loop stopped; of a run that goes on later, its numbered events say what for."""
    del event
    status = text(data, "status")
    if status in ENDED and run.word != "idle":
        run.end(status)


HANDLERS: Final[dict[str, Callable[[Heard, Event, Event], None]]] = {
    "run.started": _running,
    "run.state": _state,
    "run.waiting": _waiting,
    "run.resumed": _running,
    "run.paused": _paused,
    "run.completed": _ended,
    "run.failed": _ended,
    "run.cancelled": _ended,
    "run.idle": _idle,
    "turn.started": _turn_started,
    "turn.ended": _turn_ended,
    "reply.delta": _arriving,
    "reply.snapshot": _arriving,
    "reply.retracted": _retracted,
    "reply.received": _reply,
    "reply.rejected": _reply,
    "reply.truncated": _reply,
    "model.retry": _retry,
    "action.started": _action_began,
    "action.completed": _action_over,
    "action.rejected": _action_over,
    "subagent.started": _child_began,
    "subagent.completed": _child_over,
    "request.created": _asked,
    "request.resolved": _settled,
    "request.expired": _settled,
    "request.cancelled": _settled,
    "client_tool.requested": _asked,
    "client_tool.completed": _settled,
}
"""What each type of event changes; the others say nothing about what a run does."""
