"""Two runs side by side: what differs, turn by turn, in what was decided, done and spent. Made from their logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.child_payload import differences
from loopagent.core.patch import apply_patch
from loopagent.core.text import read_text
from loopagent.runtime.fold import beginning
from loopagent.runtime.turn import REPLIES


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loopagent.core.facts import Fact
    from loopagent.core.state import RunState
    from loopagent.ports import LogEntry

Json = dict[str, Any]
CALLS: Final = ("action.completed", "action.rejected", "client_tool.completed")
"""Events that say how a call ended; what is called is under `action` or `tool`."""


@dataclass
class Turn:
    """One turn of a run: its decision, what it did, and what the payload was afterwards."""

    turn: int
    reply: str = ""
    """`accepted`, `rejected` or `truncated`; empty while none came."""
    type: str = ""
    """What an accepted reply asked for."""
    message: str = ""
    step: Any = None
    """The `nextStep` of the reply as it came."""
    calls: list[Json] = field(default_factory=list[Json])
    """`{name, ok}` of each call that ended, in the order of their keys."""
    patch: list[Json] = field(default_factory=list[Json])
    usage: Json = field(default_factory=dict[str, Any])
    outcome: str = ""
    """How the turn ended; empty while it goes on."""
    payload: Any = None

    def public(self) -> Json:
        """The same as JSON, without the payload: a patch says enough."""
        return {name: value for name, value in self.__dict__.items() if name != "payload"}


@dataclass(frozen=True)
class Side:
    """One of the runs."""

    state: RunState
    turns: list[Turn]

    def public(self) -> Json:
        """What there is to say of the run as a whole."""
        state, result = self.state, self.state.result
        origin = state.forked_from
        return {
            "id": state.id,
            "agent": state.spec.name,
            "model": state.model,
            "status": state.status,
            "reason": None if result is None else result.reason,
            "message": None if result is None else result.message,
            "turns": state.turn,
            "usage": state.usage.public(),
            "forkedFrom": None if origin is None else origin.public(),
        }


ASPECTS: Final[dict[str, Callable[[Turn], Any]]] = {
    "decision": lambda one: (one.reply, one.type, one.message, one.step),
    "calls": lambda one: one.calls,
    "payload": lambda one: one.payload,
    "usage": lambda one: one.usage,
    "outcome": lambda one: one.outcome,
}
"""In what turns can differ."""


def side(state: RunState, entries: Sequence[LogEntry]) -> Side:
    """What there is to compare of a run.

    Args:
        state: The run.
        entries: Its log.
    """
    turns: dict[int, Turn] = {}
    payload = beginning(state, entries).payload
    current = Turn(0, payload=payload)
    for fact in (one for entry in entries for one in entry.facts):
        if fact.type == "turn.started":
            number = fact.turn or 0
            current = turns[number] = Turn(number, payload=current.payload)
        elif fact.type == "run.forked":  # what follows belongs to no turn of the other run
            current = Turn(0, payload=current.payload)
        elif fact.type == "payload.changed":
            current.payload = apply_patch(current.payload, fact.data["patch"])
            current.patch += fact.data["patch"]
        else:
            _take(current, fact)
    for one in turns.values():
        one.calls = [call for _, call in sorted(_keyed(one.calls))]
    return Side(state, list(turns.values()))


def _take(turn: Turn, fact: Fact) -> None:
    data = fact.data
    if fact.type in REPLIES:
        turn.reply, turn.type = REPLIES[fact.type], str(data.get("type", ""))
        turn.message, turn.usage = str(data.get("message", "")), dict(data.get("usage", {}))
        turn.step = _step(str(data.get("raw", "")))
    elif fact.type in CALLS:
        name = data.get("action") or data.get("tool")
        turn.calls.append({"name": name, "ok": data.get("ok", False), "key": fact.path or ""})
    elif fact.type == "turn.ended":
        turn.outcome = str(data["outcome"])


def _step(raw: str) -> Any:
    """The next step that a reply asks for, or the reply as text where it is no object."""
    value = read_text(raw).value
    return value.get("nextStep") if isinstance(value, dict) else raw


def _keyed(calls: list[Json]) -> Iterator[tuple[list[tuple[bool, int, str]], Json]]:
    """Calls by their place in the turn, so that it makes no difference which ended first."""
    for one in calls:
        parts = one.pop("key").split("/")
        place = [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]
        yield place, one


def compare(a: Side, b: Side) -> Json:
    """Two runs side by side.

    Returns:
        `a` and `b` as a whole; `shared`, how many turns from the first on are the same; `turns`, each with whether it
        is the same in both, in what it `differs`, and how it was in each (null where one has no such turn); and
        `payload`, what leads from the last payload of `a` to that of `b`: `{path, op, value?, was?}` each.
    """
    turns: list[Json] = []
    for one, other in zip_longest(a.turns, b.turns):
        differs = _differs(one, other)
        known = one or other
        turns.append(
            {
                "turn": known.turn if known else 0,
                "same": not differs,
                "differs": differs,
                "a": None if one is None else one.public(),
                "b": None if other is None else other.public(),
            }
        )
    first = next((at for at, one in enumerate(turns) if not one["same"]), len(turns))
    return {
        "a": a.public(),
        "b": b.public(),
        "shared": first,
        "turns": turns,
        "payload": differences(a.state.payload, b.state.payload),
    }


def _differs(one: Turn | None, other: Turn | None) -> list[str]:
    if one is None or other is None:
        return list(ASPECTS)
    return [name for name, aspect in ASPECTS.items() if aspect(one) != aspect(other)]
