"""Calls of a pipeline: what the agent's definition says about the actions it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.core.effects import RunAction
from loopagent.core.params import check_params
from loopagent.core.pipeline.walker import Bounds, MakeCall, Room
from loopagent.core.problems import Problem


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.state import RunState


def maker(spec: AgentSpec, turn: int) -> MakeCall:
    """What makes the effects of calls in a turn; their results come back whole, for the next stage to read."""

    def make(action: str, params: dict[str, Any], key: str) -> RunAction | list[Problem]:
        known = spec.action(action)
        if known is None:
            return [Problem("", f"there is no action {action}")]
        ready, problems, _ = check_params(known.parameters, params, "with")
        return problems or RunAction(
            id=f"{turn}:{key}",
            action=action,
            params=ready,
            timeout_ms=known.timeout_ms,
            repeatable=known.repeatable,
            on_unknown=known.on_unknown,
            whole=True,
        )

    return make


def bounds_of(run: RunState) -> Bounds:
    """How much a pipeline of a run may do now."""
    limits = run.spec.limits
    return Bounds(
        max_entries=limits.max_pipeline_entries,
        window=limits.max_concurrency,
        max_bytes=limits.max_pipeline_bytes,
        room=_room(run),
    )


def _room(run: RunState) -> Room:
    def room(action: str, key: str) -> int | None:
        known = run.spec.action(action)
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


def under_way(run: RunState, key: str) -> bool:
    """Whether calls of a pipeline are pending."""
    return any(one.startswith(f"{run.turn}:{key}.") for one in run.pending)
