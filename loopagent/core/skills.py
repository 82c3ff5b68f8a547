"""Skills becoming active: by a person's `/name` in front of a message, or by the model's Skill step.

The instructions are said once, as a message of their own kind, so that everything before them stays as it was
and they stay where they are; what a skill brings is looked up in `abilities`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from loopagent.core.abilities import brings, describe_call
from loopagent.core.facts_skills import SkillActivated, SkillRefused
from loopagent.core.skill_spec import READ_FILE
from loopagent.core.state import ActiveSkill


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.facts import DecidedBy
    from loopagent.core.skill_spec import SkillSpec
    from loopagent.core.state import MessageKind, RunState
    from loopagent.core.tx import Tx


_COMMAND: Final = re.compile(r"\s*/([A-Za-z0-9-]+)(?:\s+|\Z)")
_HEADINGS: Final = {
    "user": "A person activated the skill `{}`; what follows are its instructions.",
    "model": "The skill `{}` is active now; what follows are its instructions.",
}


def hear(tx: Tx, kind: MessageKind, text: str, *, by: DecidedBy = "human") -> None:
    """Say what a person said; skills that it begins with become active.

    Source: decision seat A5. A name that is no skill of the agent stays text, and so does one that may not be
    activated; then the model is told that the person asked for it.
    """
    rest, asked, refused = _commands(tx.state, text)
    tx.say("user", kind, rest or text)
    for skill in asked:
        activate(tx, skill.name, by="user", decided_by=by)
    if refused is not None:
        skill, reason = refused
        tx.fact(SkillRefused(skill=skill.name, reason=reason), "policy")
        told = f"The person asked for the skill `{skill.name}`. It is not available: {reason}."
        tx.say("user", "feedback", told)


def _commands(
    run: RunState, text: str
) -> tuple[str, list[SkillSpec], tuple[SkillSpec, str] | None]:
    """What is left of a text, the skills that it begins with, and the one that was refused with the reason."""
    asked: list[SkillSpec] = []
    while (found := _COMMAND.match(text)) and (skill := _named(run, found[1])) is not None:
        reason = refusal(run, skill, [one.name for one in asked], by_model=False)
        if reason is not None:
            return text, asked, (skill, reason)
        asked.append(skill)
        text = text[found.end() :]
    return text, asked, None


def _named(run: RunState, name: str) -> SkillSpec | None:
    """The skill of a name, exactly or blind to case."""
    if run.spec.skills.activation == "none":
        return None
    blind = (one for one in run.spec.skills.available if one.name == name.lower())
    return run.spec.skill(name) or next(blind, None)


def refusal(run: RunState, skill: SkillSpec, before: list[str], *, by_model: bool) -> str | None:
    """Why a skill may not become active now, or None when it may or is.

    Args:
        run: The run.
        skill: One of the agent's skills.
        before: Names of skills that become active before it.
        by_model: The model asks, not a person.
    """
    active = {one.name for one in run.skills} | set(before)
    if skill.name in active:
        return None
    most = run.spec.limits.max_active_skills
    if len(active) >= most:
        return f"{most} skills are active already, and no more are allowed"
    return run.spec.skills.refusal(skill, by_model=by_model)


def activate(
    tx: Tx,
    name: str,
    *,
    by: Literal["user", "model"],
    decided_by: DecidedBy,
    reason: str | None = None,
) -> None:
    """Make a skill active, for the rest of the run; one that is active already stays as it is."""
    state, skill = tx.state, tx.state.spec.skill(name)
    if skill is None or any(one.name == name for one in state.skills):
        return
    new = brings(state, skill)
    tx.say("user", "skill", skill_text(state.spec, skill, by))
    state.skills = (*state.skills, ActiveSkill(name, state.turn, by, state.messages))
    fact = SkillActivated(
        skill=name,
        hash=skill.hash,
        activated_by=by,
        reason=reason,
        gates={
            "agent": state.spec.skills.activation,
            "skill": skill.activation,
            "reviewed": skill.reviewed,
        },
        actions=[one.name for one in skill.actions if one.name in new],
        agents=[one for one in skill.agents if one in new],
        message=state.messages,
    )
    tx.fact(fact, decided_by)


def skill_text(spec: AgentSpec, skill: SkillSpec, by: Literal["user", "model"]) -> str:
    """The message that brings a skill: its instructions in full, what it adds, and its files by name."""
    parts = [_HEADINGS[by].format(skill.name), skill.instructions.strip()]
    actions = [
        one
        for one in skill.actions
        if spec.action(one.name) is None and spec.approval_of(one) != "never"
    ]
    lines = [_action_line(describe_call(spec, one)) for one in actions]
    if lines:
        parts.append("\n".join([f"Actions that `{skill.name}` adds:", *lines]))
    if skill.agents:
        listed = ", ".join(f"`{one}`" for one in skill.agents)
        parts.append(f"Sub-agents that `{skill.name}` adds: {listed}")
    if skill.files:
        files = [f"- `{one.path}` ({one.size_bytes} bytes)" for one in skill.files]
        heading = f"Files of `{skill.name}`; read a text file with the action `{READ_FILE}`"
        shape = f'{{skill: "{skill.name}", path, offset?}}'
        parts.append("\n".join([f"{heading} {shape}:", *files]))
    return "\n\n".join(parts)


def _action_line(action: dict[str, str]) -> str:
    parts = [f"- `{action['name']}` {action['shape']}", action["description"]]
    tags = f"[{action['tags']}]" if action["tags"] else ""
    return " ".join(one for one in (*parts, tags) if one)
