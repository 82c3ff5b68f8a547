"""Which calls may begin while the reply that asks for them still arrives: those that do nothing but read.

The same checks as for a call of a reply that is complete, and some more: whatever a person or a hook is asked about,
whatever is counted and whatever must run alone waits for the whole reply.

Source: decision seat D9.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from loopagent.core import breaker, limits, policy
from loopagent.core.abilities import usable_action
from loopagent.core.calls import call_action
from loopagent.core.fold_values import ValueFolder
from loopagent.core.hook_spec import at
from loopagent.core.steps import offered
from loopagent.core.steps.actions import ActionCall, Actions


if TYPE_CHECKING:
    from loopagent.core.action_spec import ActionSpec
    from loopagent.core.effects import RunAction
    from loopagent.core.state import RunState


def early_call(run: RunState, entry: Any, index: int) -> RunAction | None:
    """The call that an entry of `nextStep.actions` asks for, if it may begin before the reply is complete.

    Args:
        run: The run, whose model is answering.
        entry: The entry, complete, as JSON.
        index: Its place in the list.

    Returns:
        The very effect that the whole reply will lead to if the entry stays as it is; None when it has to wait.
    """
    spec = run.spec
    if not spec.early_start or run.paused is not None or "Actions" not in offered(spec):
        return None
    if index >= spec.limits.max_concurrency or limits.reached(run) is not None:
        return None
    call = _resolved(run, entry)
    action = None if call is None else usable_action(run, call.name)
    if call is None or action is None or not _only_reads(run, action):
        return None
    if breaker.blocked(run.breaker, call.name, call.params, spec.limits.breaker) is not None:
        return None
    effect = call_action(run, call.name, call.params, f"action.{index}")
    allowed_ms = limits.timeout_ms(run, effect.timeout_ms)
    return effect if allowed_ms is None else replace(effect, timeout_ms=allowed_ms)


def _resolved(run: RunState, entry: Any) -> ActionCall | None:
    """The call with its name and parameters as they would run, if nothing is wrong with it."""
    if not isinstance(entry, dict):
        return None
    meant = ValueFolder().record(ActionCall, cast("dict[str, Any]", entry), "")
    try:
        step = Actions(type="Actions", actions=[ActionCall.model_validate(meant)])
    except ValidationError:
        return None
    step, problems, _ = step.resolve(run)
    return None if problems else step.actions[0]


def _only_reads(run: RunState, action: ActionSpec) -> bool:
    """Whether calling it once too often harms nobody and nobody, person or hook, has to agree."""
    return (
        action.effects == "read"
        and run.spec.approval_of(action) == "auto"
        and action.max_calls is None
        and not action.serial
        and not at(run.spec.hooks, "before_action", action.name)
        and policy.allowed(run, "read", name=action.name) is None
    )
