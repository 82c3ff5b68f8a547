"""May this effect happen now? One rule for every path that can cause an effect.

Whatever wants something done (a step when it is resolved, the gate when an effect is dispatched) asks here, by
effect class: what a person has forbidden for a class never happens, and while a plan waits for approval only
`read` happens. Nothing that is written in a message, a result or a plan is looked at.

Source:
    protocol decisions 4 and 6; decision seats A3 and B4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loopagent.core.abilities import usable_actions
from loopagent.core.problems import Problem


if TYPE_CHECKING:
    from loopagent.core.action_spec import CallSpec, EffectClass
    from loopagent.core.effects import Effect
    from loopagent.core.plan_state import Mode
    from loopagent.core.state import RunState


CODE: Final = "plan_mode"
"""Outcome code of an effect that the plan gate held back."""
INWARD: Final = frozenset(
    {
        "call_hook",
        "call_model",
        "await_conversation",
        "ask_human",
        "read_message",
        "read_artifact",
        "read_conversation",
        "read_memory",
        "cancel_effect",
        "cancel_run",
        "set_timer",
        "compact",
        "keep_value",
        "verify",
    }
)
"""Kinds of effects that change nothing outside of the run."""
OUTWARD: Final[dict[str, EffectClass]] = {
    "start_run": "write",
    "call_client_tool": "external",
    "write_memory": "write",
}
"""Effect class of other kinds, where the effect itself names none in `effects`."""
_HOW: Final = 'put your plan to a person first: {"type": "Plan", "plan": "…"}'


def gated(run: RunState) -> bool:
    """Whether only `read` may happen until a person approves a plan.

    That is so in plan mode, and also whenever a plan was put forward and is not approved: no part of a rejected
    plan happens by another way.
    """
    status = run.plan.status
    return status in {"draft", "rejected"} or (status == "none" and mode(run) == "plan")


def mode(run: RunState) -> Mode:
    """Whether the run is to plan before it acts: as it was switched, else as its definition says."""
    return run.plan.mode or defined_mode(run)


def defined_mode(run: RunState) -> Mode:
    """The mode that the run was created in."""
    return "plan" if run.spec.plan_mode == "required" else "act"


def allowed(
    run: RunState, effects: EffectClass, *, name: str | None = None, path: str = "nextStep"
) -> Problem | None:
    """Say whether an effect may happen in the run as it is now.

    Args:
        run: The run.
        effects: Effect class of what is wanted.
        name: Name of the action or client tool, where it is one. An approval unlocks only those that its card
            showed, so one that came later (with a skill) needs a new plan.
        path: Where in the reply it is asked for.

    Returns:
        None when it may happen, else the reason in words for the model.
    """
    if name is None and getattr(run.spec.approval, effects) == "never":
        return Problem(path, f"this agent may cause no {effects} effects", effects)
    if effects == "read":
        return None
    what = f"{name} has {effects} effects" if name else f"this has {effects} effects"
    if gated(run):
        return Problem(path, f"{what}, and {_closed(run)}", name or effects)
    plan = run.plan
    if plan.status == "approved" and name is not None and name not in plan.unlocked:
        later = (
            f"{what} and was not among those that plan revision {plan.revision} was approved for"
        )
        return Problem(path, f"{later}; {_HOW}", name)
    return None


def held(run: RunState, spec: CallSpec, path: str) -> list[Problem]:
    """Why a call of an action or client tool may not happen now, at the place that names it; empty when it may."""
    if spec.effects == "read":
        return []
    found = allowed(run, spec.effects, name=spec.name, path=path)
    return [] if found is None else [found]


def _closed(run: RunState) -> str:
    """Why the gate is closed and what opens it."""
    if not run.spec.interactive:
        return "in plan mode only reading is allowed; nobody can approve a plan in this run"
    if run.plan.status == "rejected":
        return f"plan revision {run.plan.revision} was rejected; {_HOW}"
    return f"no plan has been approved yet; {_HOW}"


def class_of(effect: Effect) -> EffectClass | None:
    """The effect class of an effect that is no action's call; None for one that changes nothing outside.

    A kind that is not known counts as `write`.
    """
    if effect.kind in INWARD:
        return None
    declared: EffectClass | None = getattr(effect, "effects", None)
    return declared or OUTWARD.get(effect.kind, "write")


def unlockable(run: RunState) -> list[CallSpec]:
    """What an approval would unlock: all actions and client tools that change something and are not forbidden.

    Actions of active skills are among them; a skill that is activated later widens nothing by itself.
    """
    spec = run.spec
    return [
        one
        for one in (*usable_actions(run), *spec.client_tools)
        if one.effects != "read" and spec.approval_of(one) != "never"
    ]


def note(run: RunState) -> str | None:
    """Where the plan stands, for the end of the prompt; None when the run has to do with no plan."""
    plan = run.plan
    if plan.status == "none" and plan.mode is None and run.spec.plan_mode != "required":
        return None  # as in most runs
    if gated(run):
        state = f"revision {plan.revision} {plan.status}" if plan.revision else "none yet"
        return f"{state}; only read-only effects until one is approved"
    return f"revision {plan.revision} approved" if plan.status == "approved" else None
