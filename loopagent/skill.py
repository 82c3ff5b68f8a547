"""Skills in Python: a folder with instructions and files, the actions it brings, and the reader of its files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from loopagent.action import Action, ActionContext, action
from loopagent.core.described import Described
from loopagent.core.skill_spec import READ_FILE, SkillSpec, file_reader
from loopagent.core.spec import Spec
from loopagent.errors import ActionError, ConfigError


SKILL_FILE: Final = "SKILL.md"


class SkillLimits(Spec):
    """How large skills may be; `[skills]` in `loopagent.toml`."""

    max_instructions_chars: int = Field(default=40_000, ge=1)
    """Length of a skill's instructions, the text of its `SKILL.md`."""
    max_description_chars: int = Field(default=1_024, ge=1)
    """Length of a description, which is in every prompt."""
    max_files: int = Field(default=100, ge=0)
    """Files in a skill's folder beside `SKILL.md`."""
    max_file_bytes: int = Field(default=512_000, ge=1)
    """Size of each of them."""
    max_path_chars: int = Field(default=500, ge=1)
    """Length of a file's path inside the folder."""
    max_read_chars: int = Field(default=6_000, ge=100)
    """Part of a file that one call of `read_skill_file` gives."""


class SkillSection(Described, BaseModel):
    """The `skills` section of an agent file."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    activation: Literal["none", "requested", "auto"] = "requested"
    """`auto` lets the model activate skills that allow it too, `requested` only people, `none` nobody."""
    names: list[str] | None = None
    """Names of the skills; null accepts every skill of the project."""


@dataclass(frozen=True)
class Skill:
    """A skill that agents may accept.

    Args:
        spec: What the engine knows about it.
        folder: Where its files are.
        actions: The actions it brings.
        digests: SHA-256 of each file by path, `SKILL.md` among them.
        about: Further things its author says, such as `license`; nothing depends on them.
        limits: How much of a file is read at once.
    """

    spec: SkillSpec
    folder: Path
    actions: tuple[Action[..., Any], ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    limits: SkillLimits = field(default_factory=SkillLimits)

    @property
    def name(self) -> str:
        """The skill's name."""
        return self.spec.name

    def read(self, path: str, offset: int = 0) -> dict[str, Any]:
        """A part of one of its text files, as JSON: where it starts, and where to read on if anywhere.

        Args:
            path: One of the paths in its definition; nothing else is ever opened.
            offset: Character to start at.

        Raises:
            ActionError: There is no such file, it is no text, or it is not what it was when the skill was loaded.
        """
        known = [one.path for one in self.spec.files]
        if path not in known:
            listed = ", ".join(known) or "none"
            raise ActionError(f"{self.name} has no file {path[:200]!r}; its files: {listed}")
        try:
            with (self.folder / path).open("rb") as file:
                data = file.read(self.limits.max_file_bytes + 1)
        except OSError as error:
            raise ActionError(f"{path} cannot be read: {error.strerror or error}") from error
        if sha256(data).hexdigest() != self.digests[path]:
            raise ActionError(f"{path} has changed since the skill was loaded; it is not read")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ActionError(f"{path} is no text ({len(data)} bytes)") from error
        part = text[offset : offset + self.limits.max_read_chars]
        end = offset + len(part)
        found = {"path": path, "offset": offset, "text": part, "chars": len(text)}
        return {**found, "next": end} if end < len(text) else found


def folder_hash(digests: Mapping[str, str]) -> str:
    """SHA-256 over a folder: over the lines `digest, two spaces, path`, ordered by path, as `sha256sum` prints them."""
    lines = (f"{digests[path]}  {path}\n" for path in sorted(digests, key=os.fsencode))
    return sha256("".join(lines).encode()).hexdigest()


def with_skills(
    actions: Iterable[Action[..., Any]], skills: Iterable[Skill]
) -> dict[str, Action[..., Any]]:
    """Everything an agent can ever call, by name: its own actions, those of its skills, and the reader of files.

    Raises:
        ConfigError: Two skills have one name, or two different actions.
    """
    known: dict[str, Skill] = {}
    for skill in skills:
        if known.setdefault(skill.name, skill) is not skill:
            raise ConfigError(f"there are two skills named {skill.name!r}; rename one")
    found: dict[str, Action[..., Any]] = {one.spec.name: one for one in actions}
    for skill in known.values():
        for one in skill.actions:
            if found.setdefault(one.spec.name, one) is not one:
                name = one.spec.name
                raise ConfigError(
                    f"skill {skill.name!r} brings another action {name!r} than the agent has; rename one"
                )
    if not any(one.spec.files for one in known.values()):
        return found
    if READ_FILE in found:
        raise ConfigError(f"{READ_FILE!r} is the engine's own action; rename the other one")
    return {**found, READ_FILE: _reader(known)}


def _reader(skills: Mapping[str, Skill]) -> Action[..., Any]:
    def read(skill: str, path: str, context: ActionContext, offset: int = 0) -> dict[str, Any]:
        pinned = context.skills.get(skill)
        known = skills.get(skill)
        if pinned is None or known is None:
            raise ActionError(f"the skill {skill[:100]!r} is not active; activate it first")
        if pinned != known.spec.hash:
            raise ActionError(
                f"the skill {skill} has changed since this run began; its files are not read"
            )
        return known.read(path, offset)

    spec = file_reader(())
    return action(name=spec.name, description=spec.description, effects="read")(read)
