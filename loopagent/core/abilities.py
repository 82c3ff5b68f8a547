"""What a run may use now: the agent's own actions and sub-agents, and those that its active skills brought.

Everything that names an action asks here, so that an activated skill counts everywhere at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopagent.core.names import Match, fold_name, resolve_name
from loopagent.core.per_object import PerObject
from loopagent.core.problems import Problem
from loopagent.core.shapes import schema_shape
from loopagent.core.skill_spec import READ_FILE, file_reader


if TYPE_CHECKING:
    from collections.abc import Iterable

    from loopagent.core.action_spec import ActionSpec, CallSpec
    from loopagent.core.agent_spec import AgentSpec, SubAgentSpec
    from loopagent.core.skill_spec import SkillSpec
    from loopagent.core.state import RunState


HOW: Final = {
    "action": "Actions, or `action` in a loop, or `tool` in a pipeline",
    "sub-agent": "Sub-Agent, or `subAgent` in a loop",
    "client tool": "ClientTools",
    "skill": "Skill",
}
"""Kinds of things with names, and how each is used."""


def _own(spec: AgentSpec) -> dict[str, ActionSpec]:
    return {one.name: one for one in spec.actions if spec.approval_of(one) != "never"}


_OWN: PerObject[AgentSpec, dict[str, ActionSpec]] = PerObject(_own)
"""The actions an agent has by itself and may call at all, by name."""


def active_skills(run: RunState) -> tuple[SkillSpec, ...]:
    """The active skills, in the order of their activation."""
    found = (run.spec.skill(one.name) for one in run.skills)
    return tuple(one for one in found if one is not None)


def usable_actions(run: RunState) -> tuple[ActionSpec, ...]:
    """Actions the run may name now, its own first; those that approval forbids are among them."""
    if not run.skills:
        return run.spec.actions
    known = {one.name: one for one in run.spec.actions}
    for skill in active_skills(run):
        for action in skill.actions:
            known.setdefault(action.name, action)
    reading = tuple(one.name for one in active_skills(run) if one.files)
    return (*known.values(), file_reader(reading)) if reading else tuple(known.values())


def usable_action(run: RunState, name: str) -> ActionSpec | None:
    """The action of exactly this name that the run may use now, or None."""
    for one in run.spec.actions:
        if one.name == name:
            return one
    if not run.skills:
        return None
    return next((one for one in usable_actions(run) if one.name == name), None)


def callable_actions(run: RunState) -> dict[str, ActionSpec]:
    """Actions by name that a model may ask for now: the usable ones that approval does not forbid."""
    if not run.skills:
        return _OWN(run.spec)
    spec = run.spec
    return {one.name: one for one in usable_actions(run) if spec.approval_of(one) != "never"}


def possible_actions(spec: AgentSpec) -> tuple[ActionSpec, ...]:
    """Every action that runs of an agent can ever ask for, now or once a skill is active, each once."""
    skills = spec.skills.usable
    known = {one.name: one for one in spec.actions}
    for action in (one for skill in skills for one in skill.actions):
        known.setdefault(action.name, action)
    if any(one.files for one in skills):
        known[READ_FILE] = file_reader(())
    return tuple(one for one in known.values() if spec.approval_of(one) != "never")


def may_have_actions(spec: AgentSpec) -> bool:
    """Whether runs of an agent can have actions at all; only then the steps that call them are explained."""
    own = any(spec.approval_of(one) != "never" for one in spec.actions)
    return own or bool(spec.skills.usable and possible_actions(spec))


def usable_agents(run: RunState) -> tuple[str, ...]:
    """Names of the sub-agents that active skills brought."""
    return tuple(dict.fromkeys(name for one in active_skills(run) for name in one.agents))


def possible_children(agent: AgentSpec) -> tuple[SubAgentSpec, ...]:
    """The sub-agents that an agent may give work to; none where the tree is deep enough."""
    return agent.agents if agent.limits.max_depth > 0 else ()


def usable_children(run: RunState) -> tuple[SubAgentSpec, ...]:
    """The sub-agents that a run may give work to now: the agent's own, and those that active skills brought."""
    brought = usable_agents(run) if run.skills else ()
    return tuple(
        one for one in possible_children(run.spec) if not one.with_skill or one.name in brought
    )


def find_named(run: RunState, asked: str, available: Iterable[str], path: str, noun: str) -> Match:
    """Find the name that is meant, as `names.resolve` does; what is a thing of another kind is said to be that.

    Args:
        run: The run.
        asked: What the model wrote.
        available: The names that fit here.
        path: Where in the reply it stands.
        noun: What is named here: one of `HOW`.
    """
    match = resolve_name(asked, list(available), path, noun)
    if match.name is not None:
        return match
    others = {
        "action": callable_actions(run),
        "sub-agent": [one.name for one in usable_children(run)],
        "client tool": [one.name for one in run.spec.client_tools],
        "skill": [one.name for one in run.spec.skills.usable],
    }
    folded = fold_name(asked)
    for kind, names in others.items():
        name = next((one for one in names if fold_name(one) == folded), None)
        if name is not None and kind != noun:
            text = f"{name} is no {noun}, but known as {kind}: use {HOW[kind]}"
            return Match(None, problem=Problem(path, text, asked))
    return match


def supplied_by(run: RunState, name: str) -> str | None:
    """The active skill that an action came with; None when the agent has it by itself."""
    if not run.skills or run.spec.action(name) is not None or name == READ_FILE:
        return None
    return next(
        (
            skill.name
            for skill in active_skills(run)
            if any(one.name == name for one in skill.actions)
        ),
        None,
    )


def name_skill(run: RunState, action: str, event: dict[str, Any]) -> None:
    """Say in the data of a call's event which skill brought its action, if one did."""
    skill = supplied_by(run, action)
    if skill is not None:
        event["skill"] = skill


def brings(run: RunState, skill: SkillSpec) -> tuple[str, ...]:
    """Actions and sub-agents that a skill adds to what the run may use already."""
    known = {one.name for one in usable_actions(run)} | set(usable_agents(run))
    names = (*(one.name for one in skill.actions), *skill.agents)
    return tuple(one for one in names if one not in known)


def describe_call(spec: AgentSpec, call: CallSpec) -> dict[str, str]:
    """An action or client tool as the model reads it: name, shape, description, and what to know before calling it."""
    tags: list[str] = [] if call.effects == "read" else [call.effects]
    if spec.approval_of(call) == "ask":
        tags.append("a person approves")
    return {
        "name": call.name,
        "shape": schema_shape(call.parameters),
        "description": " ".join(call.description.split()),
        "tags": ", ".join(tags),
    }
