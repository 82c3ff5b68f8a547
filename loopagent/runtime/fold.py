"""A run made again from its log: as it was before anything happened, and after so many transactions.

Source: architecture 2.8. Runs resume from their snapshots; the log is for looking back, and for copies of runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopagent.core.advance import advance
from loopagent.core.control_state import with_raised
from loopagent.core.events import Started
from loopagent.core.state import RunState
from loopagent.errors import RequestError
from loopagent.ports import LogEntry


if TYPE_CHECKING:
    from collections.abc import Sequence


KEPT = (
    "id model root_id parent_id client ancestors serves asks_parent user tenant origin notify".split()  # noqa: SIM905
)
"""What a run has from its beginning and keeps."""


def beginning(now: RunState, entries: Sequence[LogEntry]) -> RunState:
    """A run before anything happened in it.

    Args:
        now: The run.
        entries: Its log.
    """
    kept: dict[str, Any] = {name: getattr(now, name) for name in KEPT}
    talk = now.conversation if now.forked_from is None else now.forked_from.conversation
    kept["ancestors"] = now.ancestors_before or now.ancestors
    return RunState(
        **kept,
        spec=with_raised(now.spec, now.unraised),
        conversation=talk,
        payload=_initial_payload(entries),
    )


def _initial_payload(entries: Sequence[LogEntry]) -> Any:
    events = (one for entry in entries[:1] for one in entry.events)
    return next((one.payload for one in events if isinstance(one, Started)), None)


def before_turn(
    now: RunState, entries: Sequence[LogEntry], turn: int, new_id: str
) -> tuple[RunState, tuple[LogEntry, ...]]:
    """A run of another id to which the same has happened, up to the beginning of a turn.

    Args:
        now: The run.
        entries: Its log.
        turn: Number of the turn.
        new_id: Id of the copy.

    Returns:
        The copy, which has just begun the turn, and its log without that beginning.

    Raises:
        RequestError: `unknown_turn` (404), the turn never began; `not_forkable` (409), the log does not lead there.
    """
    count = next((at for at, one in enumerate(entries, 1) if _opens(one, turn)), 0)
    if not count:
        text = f"Run {now.id!r} has begun turns 1 to {now.turn}, not {turn}."
        raise RequestError("unknown_turn", text, status=404)
    alone = replace(now, id=new_id, root_id=new_id, parent_id=None, ancestors=(), serves="")
    state = replace(beginning(alone, entries), asks_parent=False)
    history: list[LogEntry] = []
    seq = 1
    for at, one in enumerate(entries[:count], 1):
        transition = advance(state, *one.events)
        if transition.messages != one.messages:
            raise _diverged(now)
        state = transition.state
        facts = tuple(
            replace(fact, copy_of=fact.copy_of or f"{now.root_id or now.id}.{number}")
            for number, fact in enumerate(one.facts, one.first_seq)
            if not (at == count and fact.type == "turn.started")
        )
        history.append(LogEntry(at, seq, one.at, one.events, facts, one.messages))
        seq += len(facts)
    if state.turn != turn or state.calling is None or len(state.pending) != 1:
        raise _diverged(now)
    return state, tuple(history)


def _opens(entry: LogEntry, turn: int) -> bool:
    return any(one.turn == turn and one.type == "turn.started" for one in entry.facts)


def _diverged(run: RunState) -> RequestError:
    text = f"The log of run {run.id!r} was written by another version and does not lead where it led then."
    return RequestError("not_forkable", text, status=409)
