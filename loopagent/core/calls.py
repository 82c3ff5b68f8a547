"""Calls of actions as step types make them: the effect, its limits taken from the action's definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.core.abilities import usable_action
from loopagent.core.effects import RunAction
from loopagent.core.problems import Problem


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loopagent.core.state import RunState


def call_action(
    run: RunState,
    name: str,
    params: dict[str, Any],
    key: str,
    *,
    batch: str = "",
    whole: bool = False,
    room: int = 0,
) -> RunAction:
    """The effect that calls an action.

    Args:
        run: The run; its turn becomes part of the effect's id.
        name: An action of the run, resolved.
        params: Parameters, checked.
        key: Where in the turn.
        batch: Key of the approval that this call shares with others; empty for one of its own.
        whole: Whether the engine needs all of the result, however long.
        room: Length up to which it needs all of the result.
    """
    make = calls_to(run, name, batch=batch, whole=whole, room=room)
    return make(f"{run.turn}:{key}", params)


def calls_to(
    run: RunState, name: str, *, batch: str = "", whole: bool = False, room: int = 0
) -> Callable[[str, dict[str, Any]], RunAction]:
    """What makes calls of one action, given an id and the parameters; the rest is as in `call_action`."""
    action = usable_action(run, name)
    timeout_ms = action.timeout_ms if action else 0
    repeatable = action is not None and action.repeatable
    on_unknown = action.on_unknown if action else "report"

    def make(effect_id: str, params: dict[str, Any]) -> RunAction:
        # By position, as keywords would double the time.
        return RunAction(
            effect_id,
            name,
            params,
            timeout_ms,
            repeatable,
            on_unknown,
            False,  # not started
            batch,
            whole,
            room,
        )

    return make


def too_many(run: RunState, asked: Mapping[str, int], path: str) -> list[Problem]:
    """Problems with calls that, taken together, exceed what an action still allows in this run."""
    problems: list[Problem] = []
    for name, times in asked.items():
        action = usable_action(run, name)
        if action is None or action.max_calls is None:
            continue
        left = action.max_calls - run.calls.get(name, 0)
        if times > left:
            text = f"{name} may be called {left} more time(s)"
            problems.append(Problem(path, text, f"{times} calls"))
    return problems
