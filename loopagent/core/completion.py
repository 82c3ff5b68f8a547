"""Is it done? A completion claim is accepted when the agent's completion policy holds (decision seat G1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.core.final_check import payload_problems


if TYPE_CHECKING:
    from loopagent.core.state import RunState


def missing_for_completion(state: RunState) -> list[str]:
    """What still stands between the run and its completion; empty when nothing does."""
    policy, spec = state.spec.completion, state.spec
    missing = [
        f"action {name!r} must succeed {least} time(s), so far {state.succeeded.get(name, 0)}"
        for name, least in policy.min_calls.items()
        if state.succeeded.get(name, 0) < least
    ]
    if policy.require_tasks_done:
        missing += [
            f"task {one.id!r} is {one.status}"
            for one in state.scratchpad.tasks
            if one.status != "completed"
        ]
    if spec.payload.schema_ is not None:
        missing += [
            f"payload {one.path or '(root)'}: {one.message}"
            for one in payload_problems(spec.payload.schema_, state.payload)
        ]
    return missing
