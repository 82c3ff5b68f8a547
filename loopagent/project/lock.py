"""`skills.lock`: which content of each skill somebody has reviewed.

The file is meant for version control: a change of a skill shows up as a change that nobody has reviewed, until
`loopagent skills review` writes its new hash.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loopagent.core.problems import path_text
from loopagent.skill import SKILL_FILE


if TYPE_CHECKING:
    from loopagent.project.files import Files
    from loopagent.skill import Skill

LOCK_FILE: Final = "skills.lock"
Digest = str
"""SHA-256 as hexadecimal digits."""


class LockedSkill(BaseModel):
    """The content of a skill that was reviewed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: Digest
    files: dict[str, Digest] = {}
    """SHA-256 of each file, to say later which ones have changed."""


class Lock(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    skills: dict[str, LockedSkill] = Field(default_factory=dict[str, LockedSkill])

    @property
    def hashes(self) -> dict[str, Digest]:
        """Hash of the reviewed content by name."""
        return {name: one.sha256 for name, one in self.skills.items()}

    def changes(self, skill: Skill) -> dict[str, list[str]]:
        """Which files of a skill are new, changed or gone since it was reviewed; empty lists are left out."""
        entry = self.skills.get(skill.name)
        before: Mapping[str, str] = {} if entry is None else entry.files
        now = skill.digests
        found = {
            "new": sorted(now.keys() - before.keys()),
            "changed": sorted(one for one in now.keys() & before.keys() if now[one] != before[one]),
            "gone": sorted(before.keys() - now.keys()),
        }
        return {key: names for key, names in found.items() if names}

    def with_reviewed(self, skill: Skill) -> Lock:
        """The lock with a skill's present content as reviewed."""
        entry = LockedSkill(sha256=skill.spec.hash, files=dict(skill.digests))
        return Lock(skills={**self.skills, skill.name: entry})

    def without(self, name: str) -> Lock:
        """The lock without a skill: it needs a new review."""
        return Lock(skills={key: one for key, one in self.skills.items() if key != name})


def warn_of_skills(
    files: Files, skills: Mapping[str, Skill], lock: Lock, agents: Iterable[str]
) -> None:
    """Warn of skills that cannot be activated yet, of sub-agents that are not there, of stale entries."""
    known = set(agents)
    for skill in skills.values():
        path = skill.folder / SKILL_FILE
        if not skill.spec.reviewed:
            state = "has changed since it was reviewed" if skill.name in lock.skills else "is new"
            what = f"{state}; nobody can activate it before `loopagent skills review {skill.name}`"
            files.warn(path, what)
        for name in skill.spec.agents:
            if name not in known:
                files.warn(path, f"there is no agent {name!r}", where="agents")
    for name in lock.skills.keys() - skills.keys():
        files.warn(files.folder / LOCK_FILE, "there is no such skill any more", where=name)


def read_lock(files: Files) -> Lock:
    """The lock of a project; a missing file is an empty lock, a broken one a complaint."""
    path = files.folder / LOCK_FILE
    text = files.text(path) if os.path.lexists(path) else None
    if text is None:
        return Lock()
    try:
        return Lock.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = f"cannot be used: {first['msg']}; restore it, or remove it and review again"
        files.complain(path, what, where=path_text(first["loc"]) or "(file)")
    return Lock()


def write_lock(folder: Path, lock: Lock) -> Path:
    """Write the lock of a project, whole or not at all; returns its path."""
    path = folder / LOCK_FILE
    ordered = Lock(
        skills={
            name: LockedSkill(sha256=one.sha256, files=dict(sorted(one.files.items())))
            for name, one in sorted(lock.skills.items())
        }
    )
    beside = path.with_name(f"{LOCK_FILE}.{os.getpid()}")
    beside.write_text(ordered.model_dump_json(indent=2) + "\n", encoding="utf-8")
    beside.replace(path)
    return path
