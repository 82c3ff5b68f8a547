"""A run as part of a tree: what a child takes over from its parent, and what it gives back.

A child is an ordinary run. Its definition is its own, made no looser than its parent's; its budget is what every
run above it has left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from loopagent.core.action_spec import ActionSpec
from loopagent.core.agent_spec import AgentSpec, Approval, ApprovalPolicy
from loopagent.core.child_messages import with_parameters
from loopagent.core.effects import StartRun
from loopagent.core.outcome import ErrorInfo, Outcome
from loopagent.core.spending import Ancestor, Spent
from loopagent.core.state import RunState


if TYPE_CHECKING:
    from loopagent.core.action_spec import CallSpec, EffectClass
    from loopagent.core.agent_spec import Limits, OneByOne, SubAgentSpec
    from loopagent.core.effects import AskHuman
    from loopagent.core.skill_spec import SkillSet

C = TypeVar("C", bound="CallSpec")
EFFECTS: Final[tuple[EffectClass, ...]] = ("read", "write", "external", "irreversible")
"""Effect classes, the most harmless first."""
STRICTNESS: Final[tuple[Approval, ...]] = ("auto", "ask", "never")
ABOVE: Final = "above"
"""Detail of an end at a limit of a run above."""
MAY_GO_ON: Final = "mayGoOn"
"""Key that is true in the outcome of a child that failed for a reason that may pass."""
ARROW: Final = " \u203a "
"""Between the names of a path of agents, parent first."""


def child_id(parent_id: str, effect_id: str) -> str:
    """The id of the run that an effect starts.

    Derived, so that it is the same after a crash; without `/` and `:`, so that it fits into a URL and into the
    ids of the child's own requests.
    """
    return f"{parent_id}.{effect_id.replace(':', '.')}"


def order_of(run_id: str) -> tuple[tuple[int, str], ...]:
    """By what children of one run are sorted so that those given work first come first."""
    return tuple((int(one), "") if one.isdigit() else (-1, one) for one in run_id.split("."))


def place_in_tree(state: RunState) -> str:
    """The root's id, and for a child the rest of its own behind a slash: one name per conversation of a tree."""
    root = state.root_id or state.id
    return root if state.id == root else f"{root}/{state.id.removeprefix(root).lstrip('.')}"


def children_of(state: RunState) -> list[str]:
    """Ids of the child runs under way that this run waits for, in the order they were asked for."""
    return [
        one.resume_run_id or child_id(state.id, one.id)
        for one in state.pending.values()
        if isinstance(one, StartRun)
    ]


def names_above(state: RunState) -> tuple[str, ...]:
    """Names that would close a circle: those of the runs above, and the run's own."""
    return (*(one.agent for one in state.ancestors), state.spec.name)


# --- what a child takes over -----------------------------------------------------------------------


def child_spec(parent: RunState, sub: SubAgentSpec, parameters: dict[str, Any]) -> AgentSpec:
    """The definition that a child run is pinned to.

    Args:
        parent: The run that gives the work.
        sub: The sub-agent as the parent's definition has it.
        parameters: Its template parameters.
    """
    spec = _no_looser(sub.spec, parent.spec)
    served = spec.interactive or bool(parent.client or parent.spec.client_tools)
    names = (*names_above(parent), spec.name)
    return spec.model_copy(
        update={
            "agents": tuple(one for one in spec.agents if one.name not in names),
            "client_tools": spec.client_tools if served else (),
            "instructions": with_parameters(spec.instructions, parameters)[0],
        }
    )


def _no_looser(spec: AgentSpec, above: AgentSpec) -> AgentSpec:
    """A definition that may do no more without a person than the one above it."""
    depth = min(spec.limits.max_depth, above.limits.max_depth - 1)
    return spec.model_copy(
        update={
            "approval": _bounded(spec.approval, above.approval),
            "actions": tuple(_bounded_call(one, above) for one in spec.actions),
            "client_tools": tuple(_bounded_call(one, above) for one in spec.client_tools),
            "skills": _bounded_skills(spec.skills, above),
            "autonomy": "interactive" if above.interactive and spec.interactive else "autonomous",
            "limits": spec.limits.model_copy(update={"max_depth": max(0, depth)}),
        }
    )


def strongest_effects(parent: RunState, sub: SubAgentSpec) -> EffectClass:
    """The strongest thing that a sub-agent, or one below it, may do to the world."""
    return EFFECTS[_strength(child_spec(parent, sub, {}))]


def _strength(spec: AgentSpec) -> int:
    brought = (call for one in spec.skills.available for call in one.actions)
    calls = (*spec.actions, *spec.client_tools, *brought)
    own = [EFFECTS.index(one.effects) for one in calls if spec.approval_of(one) != "never"]
    below = [_strength(_no_looser(one.spec, spec)) for one in spec.agents]
    return max([0, *own, *below])


def stricter(one: Approval, other: Approval) -> Approval:
    """The one that lets less through."""
    return STRICTNESS[max(STRICTNESS.index(one), STRICTNESS.index(other))]


def _bounded(policy: ApprovalPolicy, bound: ApprovalPolicy) -> ApprovalPolicy:
    return ApprovalPolicy(
        read=stricter(policy.read, bound.read),
        write=stricter(policy.write, bound.write),
        external=stricter(policy.external, bound.external),
        irreversible=stricter(policy.irreversible, bound.irreversible),
        actions=either(policy.actions, bound.actions),
    )


def either(one: dict[str, OneByOne], other: dict[str, OneByOne]) -> dict[str, OneByOne]:
    """What one of two policies asks about every time or forbids; the stricter where both say something."""
    both: dict[str, OneByOne] = {**one, **other}
    never: dict[str, OneByOne] = {
        name: "never" for name in both if "never" in (one.get(name), other.get(name))
    }
    return {**both, **never}


def _bounded_call(call: C, above: AgentSpec) -> C:
    """An action or client tool that lets itself through is let through no further than its parent's policy goes.

    Unless the parent has the very same one and may call it so.
    """
    if call.approval is None:
        return call
    known = above.action(call.name) or above.client_tool(call.name)
    same = known is not None and known.effects == call.effects
    plain = call.model_copy(update={"approval": None})
    bound = above.approval_of(known if known is not None and same else plain)
    bounded = call.model_copy(update={"approval": stricter(call.approval, bound)})
    alike = same and getattr(known, "asking", None) == getattr(call, "asking", None)
    return bounded if bound == "auto" or alike else _about_every_call(bounded)


def _about_every_call(call: C) -> C:
    """Without a condition of its own: where the parent asks about everything of its kind, so does the child."""
    if not isinstance(call, ActionSpec) or call.asking is None or call.asking.when is None:
        return call
    return call.model_copy(update={"asking": call.asking.model_copy(update={"when": None})})


def _bounded_skills(skills: SkillSet, above: AgentSpec) -> SkillSet:
    """The same for the actions that skills bring."""
    bounded = tuple(
        one.model_copy(update={"actions": tuple(_bounded_call(it, above) for it in one.actions)})
        for one in skills.available
    )
    return skills.model_copy(update={"available": bounded})


def child_state(parent: RunState, effect: StartRun, model: str) -> RunState | None:
    """The run that an effect starts, before anything happened in it; None when there is no such sub-agent.

    Args:
        parent: The run that gives the work.
        effect: What it asked for.
        model: `provider:model` that answers the child.
    """
    sub = parent.spec.agent(effect.agent)
    if sub is None:
        return None
    return RunState(
        id=child_id(parent.id, effect.id),
        root_id=parent.root_id or parent.id,
        parent_id=parent.id,
        spec=child_spec(parent, sub, effect.template_parameters),
        model=model,
        payload=effect.payload,
        ancestors=_ancestors(parent),
        serves=effect.id,
        user=parent.user,
        tenant=parent.tenant,
        notify=parent.notify,
        client=parent.client,
        trace=parent.trace,
        asks_parent=sub.questions == "parent",
    )


def _ancestors(parent: RunState) -> tuple[Ancestor, ...]:
    """The runs above a new child, with what each has spent and may spend."""
    spent, seconds = spent_by(parent), parent.active_ms / 1000.0
    older = tuple(
        replace(
            one,
            spent=one.spent.plus(spent),
            seconds=None if one.seconds is None else one.seconds - seconds,
        )
        for one in parent.ancestors
    )
    return (*older, _frame(parent, parent.spec.limits, spent, seconds))


def _frame(parent: RunState, limits: Limits, spent: Spent, seconds: float) -> Ancestor:
    return Ancestor(
        run_id=parent.id,
        agent=parent.spec.name,
        max_turns=limits.max_turns,
        max_tokens=limits.max_tokens,
        max_cost_usd=limits.max_cost_usd,
        seconds=None if limits.max_seconds is None else limits.max_seconds - seconds,
        spent=spent,
        max_seconds=limits.max_seconds,
    )


def above(state: RunState) -> dict[str, Any]:
    """How a run and those above it stand, for the children under way below it; see `Reported`."""
    own = state.spec.limits
    frames = [
        [one.max_turns, one.max_tokens, one.max_cost_usd, one.max_seconds]
        for one in state.ancestors
    ]
    frames.append([own.max_turns, own.max_tokens, own.max_cost_usd, own.max_seconds])
    paused = state.paused
    return {"paused": None if paused is None else paused.reason, "limits": frames}


def spent_by(state: RunState) -> Spent:
    """What a run has spent, with those of its children that have ended."""
    usage = state.usage
    tokens = usage.input_tokens + usage.output_tokens
    return Spent(state.turn + state.below.turns, tokens, usage.cost_usd or 0.0)


# --- what a child gives back -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class News:
    """What a run has to tell another one: that it ended or asks something, how it stands, or that it is to stop."""

    run_id: str
    outcome: Outcome | None = None
    """For the parent: how the work ended. None for a child."""
    above: dict[str, Any] | None = None
    """For a child under way: how the runs above it stand. None for one that is to stop."""


def news(state: RunState) -> list[News]:
    """Everything a run still has to tell, in no order that matters."""
    found: list[News] = []
    needed = () if state.ended else children_of(state)
    for one in state.unheard:
        if one != state.parent_id:
            found.append(News(one, above=above(state) if one in needed else None))
        elif state.ended or state.asks:
            found.append(News(one, outcome_of(state)))
    return found


def outcome_of(child: RunState) -> Outcome:
    """How a child's work ended, or the question it asks its parent, as the outcome of the parent's effect."""
    value: dict[str, Any] = {
        "runId": child.id,
        "agent": child.spec.name,
        "usage": child.usage.public(),
        "turns": child.turn + child.below.turns,
        "activeMs": child.active_ms,
    }
    result = child.result
    if result is None:
        return Outcome.done({**value, **_asked(child.asks[0] if child.asks else None)})
    value |= {"status": child.status, "message": result.message}
    if result.form is not None:
        value["form"] = result.form
    if child.status == "completed":
        return Outcome.done({**value, "payload": child.payload})
    if result.reason == "model" or ABOVE in result.detail:
        value[MAY_GO_ON] = True
    error = ErrorInfo(result.reason, result.message or f"The sub-agent's run was {child.status}.")
    return Outcome(ok=False, value=value, error=error)


def _asked(question: AskHuman | None) -> dict[str, Any]:
    asked: dict[str, Any] = {"status": "asked", "message": question.text if question else ""}
    if question is not None and question.form is not None:
        asked["form"] = question.form
    return asked
