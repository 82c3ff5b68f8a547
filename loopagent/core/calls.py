"""Calls of actions as step types make them: the effect, its limits taken from the action's definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.core.abilities import usable_action
from loopagent.core.effects import RunAction
from loopagent.core.problems import Problem


if TYPE_CHECKING:
    from collections.abc import Mapping

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
    action = usable_action(run, name)
    return RunAction(
        id=f"{run.turn}:{key}",
        action=name,
        params=params,
        timeout_ms=action.timeout_ms if action else 0,
        repeatable=action.repeatable if action else False,
        on_unknown=action.on_unknown if action else "report",
        batch=batch,
        whole=whole,
        room=room,
    )


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
