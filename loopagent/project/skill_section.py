"""The `skills` section of an agent file: which skills the agent accepts, and who may activate them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from loopagent.core.names import closest
from loopagent.core.skill_spec import SkillSet
from loopagent.project.files import explain
from loopagent.project.skills import FOLDER
from loopagent.skill import SkillSection


if TYPE_CHECKING:
    from loopagent.documents import Document
    from loopagent.project.files import Files
    from loopagent.skill import Skill

KEY: Final = "skills"


def read_section(files: Files, document: Document, skills: Mapping[str, Skill]) -> SkillSet:
    """The skills that an agent file asks for.

    Args:
        files: The project's files; keeps the complaints.
        document: The agent file, with a value at `skills`.
        skills: The project's skills; one that is there and cannot be read has complaints of its own.
    """
    section = document.value["skills"]
    try:
        asked = SkillSection.model_validate(section, strict=True)
    except ValidationError as error:
        found = explain(
            error, section, SkillSection, (), lambda loc: document.position((KEY, *loc))
        )
        for at, where, what in found:
            inside = "" if where == "(file)" else f".{where}"
            files.complain(document.path, what, at=at, where=f"{KEY}{inside}")
        return SkillSet()
    names = sorted(skills) if asked.names is None else asked.names
    present = {one.name for one in files.listed_folders(FOLDER)}
    for index, name in enumerate(names):
        loc = (KEY, "names", index)
        if name in names[:index]:
            files.complain_in(document, loc, f"{name} is listed twice")
        elif name not in skills and name not in present:
            files.complain_in(document, loc, f"there is no skill {name!r}{_hint(name, skills)}")
    available = tuple(skills[one].spec for one in dict.fromkeys(names) if one in skills)
    return SkillSet(activation=asked.activation, available=available)


def _hint(name: str, known: Mapping[str, Any]) -> str:
    near = closest(name, sorted(known))
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f" (known: {', '.join(sorted(known)) or 'none'})"
