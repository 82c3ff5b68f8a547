"""Calls of a pipeline: what the agent's definition says about the actions it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loopagent.core.abilities import usable_action
from loopagent.core.calls import call_action
from loopagent.core.params import check_params
from loopagent.core.pipeline.walker import Bounds, MakeCall, Room, Spot
from loopagent.core.problems import Problem
from loopagent.core.protocol.stages import LetStage, MapStage, ToolStage


if TYPE_CHECKING:
    from loopagent.core.effects import RunAction
    from loopagent.core.protocol.pipeline import AgentPipelineRequest
    from loopagent.core.protocol.stages import Stage
    from loopagent.core.state import RunState


def maker(run: RunState, batch: Callable[[Spot], str]) -> MakeCall:
    """What makes the effects of calls; their results come back whole, for the next stage to read.

    Args:
        run: The run.
        batch: Key of the approval that a call shares with others; empty for one of its own.
    """

    def make(action: str, params: dict[str, Any], spot: Spot) -> RunAction | list[Problem]:
        known = usable_action(run, action)
        if known is None:
            return [Problem("", f"there is no action {action}")]
        ready, problems, _ = check_params(known.parameters, params, "with")
        if problems:
            return problems
        return call_action(run, action, ready, spot.key, batch=batch(spot), whole=True)

    return make


def tool_at(request: AgentPipelineRequest, place: str) -> ToolStage | None:
    """The call that stands at a place of a request, such as `2.0`."""
    stages: list[Stage] = request.steps
    stage: Stage | None = None
    for index in place.split("."):
        if not index.isdecimal() or int(index) >= len(stages):
            return None
        stage = stages[int(index)]
        if isinstance(stage, MapStage):
            stages = stage.map.do
        elif isinstance(stage, LetStage):
            stages = stage.let.value
    return stage if isinstance(stage, ToolStage) else None


def bounds_of(run: RunState, window: int | None = None) -> Bounds:
    """How much a pipeline of a run may do now; `window` are its calls side by side, if not all that may run so."""
    limits = run.spec.limits
    return Bounds(
        max_entries=limits.max_pipeline_entries,
        window=window or limits.max_concurrency,
        in_a_row=limits.breaker.in_a_row,
        max_bytes=limits.max_pipeline_bytes,
        room=_room(run),
    )


def _room(run: RunState) -> Room:
    def room(action: str, key: str) -> int | None:
        known = usable_action(run, action)
        if known is None or known.max_calls is None or _begun(run, key):
            return None
        return known.max_calls - run.calls.get(action, 0)

    return room


def _begun(run: RunState, key: str) -> bool:
    """Whether calls of a `map` were made: then its room was looked at before them."""
    prefix = f"{key}."
    if any(one.startswith(f"{run.turn}:{prefix}") for one in run.pending):
        return True
    return run.step is not None and any(one.startswith(prefix) for one in run.step.results)


def startable(run: RunState, effects: tuple[RunAction, ...]) -> tuple[RunAction, ...]:
    """Those calls of a pipeline that fit beside what is under way; the others are asked for later."""
    room = run.spec.limits.max_concurrency - len(run.pending)
    fresh = [one for one in effects if one.id not in run.pending]
    return tuple(fresh[: max(0, room)])


def under_way(run: RunState, key: str) -> bool:
    """Whether calls of a pipeline are pending."""
    return any(one.startswith(f"{run.turn}:{key}.") for one in run.pending)
