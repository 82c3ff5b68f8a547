"""Two runs side by side: what differs, turn by turn, in what was decided, done and spent. Made from their logs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.child_payload import differences
from loopagent.core.text import read_text
from loopagent.runtime.course import course_of, told
from loopagent.runtime.fold import beginning


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopagent.core.state import RunState
    from loopagent.ports import LogEntry
    from loopagent.runtime.course import Turn, Work

Json = dict[str, Any]
CALLS: Final = ("action", "client_tool")
"""Kinds of work that are calls."""


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
    "decision": lambda one: (one.reply, one.type, one.message, _step(one.raw)),
    "calls": lambda one: _calls(one),  # noqa: PLW0108 - defined below
    "payload": lambda one: one.payload,
    "usage": lambda one: one.usage,
    "outcome": lambda one: one.outcome,
}
"""In what turns can differ."""
SHOWN: Final = ("reply", "type", "message", "patch", "usage", "outcome")


def side(state: RunState, entries: Sequence[LogEntry]) -> Side:
    """What there is to compare of a run.

    Args:
        state: The run.
        entries: Its log.
    """
    payload = beginning(state, entries).payload
    return Side(state, course_of(told(entries, state.id), state.id, payload).turns)


def _public(turn: Turn) -> Json:
    """A turn as JSON, without the payload: a patch says enough."""
    shown = {name: getattr(turn, name) for name in SHOWN}
    return {"turn": turn.number, **shown, "step": _step(turn.raw), "calls": _calls(turn)}


def _step(raw: str) -> Any:
    """The next step that a reply asks for, or the reply as text where it is no object."""
    value = read_text(raw).value
    return value.get("nextStep") if isinstance(value, dict) else raw


def _calls(turn: Turn) -> list[Json]:
    """`{name, ok}` of each call that ended, by its place, so that it makes no difference which ended first."""
    ended = [one for one in turn.work if one.kind in CALLS and one.ended_at is not None]
    return [{"name": one.name, "ok": bool(one.ok)} for one in sorted(ended, key=_place)]


def _place(work: Work) -> list[tuple[bool, int, str]]:
    parts = work.path.split("/")
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


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
                "turn": known.number if known else 0,
                "same": not differs,
                "differs": differs,
                "a": None if one is None else _public(one),
                "b": None if other is None else _public(other),
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
