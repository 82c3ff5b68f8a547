"""Which moment of a schedule fires now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loopagent.triggers.moments import following, passed, plan_of


if TYPE_CHECKING:
    from loopagent.triggers.judging import TriggerState
    from loopagent.triggers.spec import TriggerSpec


@dataclass(frozen=True, slots=True)
class Due:
    """A moment that has come. `missed` others before it fire nothing; a `late` one is missed itself."""

    moment: float
    missed: int
    late: bool


def adopt(spec: TriggerSpec, state: TriggerState, now: float) -> TriggerState:
    """The state under this definition: another schedule than before begins anew, now.

    Whoever starts last adopts; a process with another definition leaves the trigger alone from then on.
    """
    plan = "" if spec.schedule is None or not spec.enabled else plan_of(spec.schedule)
    if plan == state.plan:
        return state
    first = following(spec.schedule, now) if spec.schedule is not None and plan else None
    return replace(state, plan=plan, next_at=first)


def due_moment(
    spec: TriggerSpec, state: TriggerState, now: float
) -> tuple[TriggerState, Due | None]:
    """The moment that has come, if one has, and the state that waits for the next.

    Args:
        spec: The trigger.
        state: Its state.
        now: Seconds since the epoch.
    """
    schedule, first = spec.schedule, state.next_at
    if schedule is None or first is None or first > now or plan_of(schedule) != state.plan:
        return state, None
    moment, missed = passed(schedule, first, now)
    late = now - moment > schedule.grace_seconds
    return replace(state, next_at=following(schedule, now)), Due(moment, missed, late)
