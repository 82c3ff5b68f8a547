"""What the engine knows about a skill: plain data, pinned into every run of an agent that accepts it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Literal

from pydantic import Field

from loopagent.core.action_spec import ActionSpec
from loopagent.core.spec import Spec


MAX_NAME_CHARS: Final = 64
"""Longest name of a skill. Source: the open Agent Skills format."""
READ_FILE: Final = "read_skill_file"
"""Name of the engine's own action that reads the files of active skills."""
Activation = Literal["requested", "auto"]


class SkillFile(Spec):
    """A file that belongs to a skill; it is read by reference, never put into a prompt by itself."""

    path: str
    """Path inside the skill's folder, with `/`."""
    size_bytes: int = Field(ge=0)
    """Size in bytes."""


class SkillSpec(Spec):
    """One skill as the model and the engine see it."""

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=MAX_NAME_CHARS)
    """Lower case letters, digits and single hyphens."""
    description: str = Field(min_length=1)
    """What it is good for and when to use it; all that is known of it before it is active."""
    instructions: str = Field(min_length=1)
    """What the model is told once the skill is active; Markdown, sent as written."""
    hash: str = ""
    """SHA-256 over everything in the skill's folder."""
    activation: Activation = "requested"
    """The skill's own gate: `auto` lets a model activate it, `requested` only people."""
    reviewed: bool = True
    """Whether somebody has looked at exactly this content; nobody can activate it before."""
    actions: tuple[ActionSpec, ...] = ()
    """Actions that the agent may use once the skill is active."""
    agents: tuple[str, ...] = ()
    """Sub-agents that the agent may call once the skill is active."""
    files: tuple[SkillFile, ...] = ()
    """The other files of its folder, ordered by path."""


class SkillSet(Spec):
    """Which skills an agent accepts, and who may activate them."""

    activation: Literal["none", "requested", "auto"] = "requested"
    """The agent's gate: `auto` lets the model activate skills that allow it too, `requested` only people,
    `none` nobody."""
    available: tuple[SkillSpec, ...] = ()
    """The skills it accepts."""

    def refusal(self, skill: SkillSpec, *, by_model: bool) -> str | None:
        """Why a skill may not be activated now, or None when it may.

        Args:
            skill: One of the available skills.
            by_model: The model asks, not a person: then skill and agent must both allow that.
        """
        if self.activation == "none":
            return "this agent uses no skills"
        if not skill.reviewed:
            return "it is new or has changed, and nobody has reviewed it yet"
        if by_model and not self.activation == skill.activation == "auto":
            return f"only a person can activate it, by a message that begins with /{skill.name}"
        return None

    @property
    def offered(self) -> tuple[SkillSpec, ...]:
        """Skills that the model may activate by itself: the catalogue."""
        return tuple(one for one in self.available if self.refusal(one, by_model=True) is None)

    @property
    def usable(self) -> tuple[SkillSpec, ...]:
        """Skills that can become active at all."""
        return tuple(one for one in self.available if self.refusal(one, by_model=False) is None)


@lru_cache(maxsize=256)
def file_reader(skills: tuple[str, ...]) -> ActionSpec:
    """The action that reads files of these skills; any other name fails its schema.

    Args:
        skills: Names of skills that have files; empty for any name, as where the action is defined.
    """
    skill: dict[str, Any] = {"type": "string", "description": "Name of an active skill."}
    if skills:
        skill["enum"] = list(skills)
    properties = {
        "skill": skill,
        "path": {"type": "string", "description": "Path of one of its files."},
        "offset": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "Character to start at, to read on where the last part ended.",
        },
    }
    return ActionSpec(
        name=READ_FILE,
        description="Read a text file that belongs to an active skill.",
        parameters={
            "type": "object",
            "properties": properties,
            "required": ["skill", "path"],
            "additionalProperties": False,
        },
        effects="read",
        approval="auto",
    )
