"""Skills: `skills/NAME/SKILL.md` in the open Agent Skills format, with the files beside it.

What is loopagent's own stands under `metadata`, so that a skill stays usable elsewhere: `loopagent-actions` and
`loopagent-agents` (names, separated by blanks or commas) and `loopagent-activation` (`auto` or `requested`). Scripts
are never run. `allowed-tools` grants nothing here: approval is the agent's business.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loopagent.action import Action
from loopagent.actions.build import is_disabled
from loopagent.core.described import Described
from loopagent.core.names import closest
from loopagent.core.skill_spec import MAX_NAME_CHARS, SkillFile, SkillSpec
from loopagent.core.tokens import estimate_tokens
from loopagent.errors import ConfigError
from loopagent.project.files import Files, explain
from loopagent.skill import SKILL_FILE, Skill, SkillLimits, folder_hash


if TYPE_CHECKING:
    from loopagent.documents import Document

FOLDER: Final = "skills"
MAX_COMPATIBILITY_CHARS: Final = 500
ADVISED_TOKENS: Final = 5_000
"""Size of instructions up to which the format advises to stay. Source: the open Agent Skills format."""
IGNORED: Final = ("__pycache__",)
"""Folders that belong to no skill, like everything whose name begins with a dot."""
OWN: Final = ("loopagent-actions", "loopagent-agents", "loopagent-activation")
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_BETWEEN: Final = re.compile(r"[\s,]+")


class Head(Described, BaseModel):
    """The front matter of a `SKILL.md`; further keys are other tools' business and only warned about."""

    model_config = ConfigDict(populate_by_name=True, defer_build=True)

    name: str
    description: str
    license: str | None = None
    compatibility: str | None = Field(default=None, max_length=MAX_COMPATIBILITY_CHARS)
    metadata: dict[str, Any] = {}
    allowed_tools: str | list[str] | None = Field(default=None, alias="allowed-tools")
    category: str | None = None
    actions: list[str] = []
    """Another place for `metadata.loopagent-actions`."""
    sub_agents: list[str] = Field(default=[], alias="subAgents")
    """Another place for `metadata.loopagent-agents`."""


def read_skills(
    files: Files,
    actions: Mapping[str, Action[..., Any]],
    reviewed: Mapping[str, str],
    limits: SkillLimits,
) -> dict[str, Skill]:
    """Read every skill of a project.

    Args:
        files: The project's files; keeps the complaints and warnings.
        actions: The actions that skills may bring.
        reviewed: Hash of the reviewed content by name.
        limits: How large skills may be.

    Returns:
        The skills by name; those with complaints are left out.
    """
    found: dict[str, Skill] = {}
    for folder in files.listed_folders(FOLDER):
        reader = _SkillFolder(files, folder, limits)
        skill = reader.skill(reader.named(actions), reviewed.get(folder.name, ""))
        if skill is not None:
            found[skill.name] = skill
    return found


def load_skill(
    folder: Path | str,
    *,
    actions: Iterable[Action[..., Any]] = (),
    sha256: str | None = None,
    limits: SkillLimits | None = None,
) -> Skill:
    """Read one skill for agents that are made in Python.

    Args:
        folder: Its folder, with `SKILL.md` in it.
        actions: The actions it brings.
        sha256: Hash of the content that was reviewed; with other content the skill cannot be activated. None
            takes the content as reviewed.
        limits: How large it may be.

    Raises:
        ConfigError: Something is wrong; `problems` lists every complaint.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder")
    bounds = limits or SkillLimits()
    files = Files(folder, bounds.max_file_bytes)
    reader = _SkillFolder(files, folder.resolve(), bounds)
    made = reader.skill(tuple(actions), sha256)
    if made is None:
        raise ConfigError(f"the skill in {folder} cannot be used", files.problems)
    return made


class _SkillFolder:
    """One skill's folder on its way to a definition."""

    def __init__(self, files: Files, folder: Path, limits: SkillLimits) -> None:
        self._files = files
        self._folder = folder
        self._limits = limits
        self._path = folder / SKILL_FILE
        self._problems = len(files.problems)
        self._document, self._body = self._parts()
        self._head = None if self._document is None else self._read_head(self._document)

    def named(self, actions: Mapping[str, Action[..., Any]]) -> tuple[Action[..., Any], ...]:
        """The actions that the front matter names; names that nothing has are warned about."""
        names = [one for one in self._names("actions") if one in actions]
        return tuple(actions[one] for one in names if not is_disabled(actions[one]))

    def skill(self, actions: tuple[Action[..., Any], ...], reviewed: str | None) -> Skill | None:
        """The skill, or None when there are complaints.

        Args:
            actions: The actions it brings.
            reviewed: Hash of the content that was reviewed; None takes any.
        """
        head, paths = self._head, self._scan()
        sizes, digests = self._hashed(paths)
        if head is None or len(self._files.problems) > self._problems:
            return None
        self._warn(head, {one.spec.name for one in actions})
        digest = folder_hash(digests)
        spec = SkillSpec(
            name=head.name,
            description=head.description.strip(),
            instructions=self._body.strip(),
            hash=digest,
            activation=head.metadata.get("loopagent-activation", "requested"),
            reviewed=reviewed in {None, digest},
            actions=tuple(one.spec for one in actions),
            agents=tuple(self._names("agents")),
            files=tuple(
                SkillFile(path=one, size_bytes=sizes[one]) for one in paths if one != SKILL_FILE
            ),
        )
        about = head.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
        return Skill(spec, self._folder, actions, digests, about, self._limits)

    # --- SKILL.md

    def _parts(self) -> tuple[Document | None, str]:
        if not self._path.is_file():
            near = [one.name for one in self._folder.iterdir() if one.name.lower() == "skill.md"]
            hint = f"rename {near[0]}" if near else "every folder of skills needs one"
            self._files.complain(self._path, f"there is no {SKILL_FILE}; {hint}")
            return None, ""
        text = self._files.text(self._path)
        parts = None if text is None else self._files.front_matter(self._path, text)
        if parts is None:
            return None, ""
        document, body = parts
        if not document.value:
            what = "must begin with a line ---, then name and description, then a line ---"
            self._files.complain(self._path, what)
            return None, ""
        most = self._limits.max_instructions_chars
        if not body.strip():
            self._files.complain(self._path, "has no instructions; write them below the second ---")
        elif len(body) > most:
            what = f"has {len(body)} characters of instructions, {most} are allowed; move parts to files"
            self._files.complain(self._path, what)
        return document, body

    def _read_head(self, document: Document) -> Head | None:
        try:
            head = Head.model_validate_json(json.dumps(document.value), strict=True)
        except ValidationError as error:
            found = explain(error, document.value, Head, (), document.position)
            for at, where, what in found:
                self._files.complain(self._path, what, at=at, where=where)
            return None
        self._check(document, head)
        return head

    def _check(self, document: Document, head: Head) -> None:
        """What the types alone cannot say."""
        name, most = head.name, self._limits.max_description_chars
        if not _NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
            what = f"{name[:80]!r} is no name; use lower case letters, digits and single hyphens"
            self._files.complain_in(document, ("name",), f"{what}, at most {MAX_NAME_CHARS}")
        elif name != self._folder.name:
            what = f"must be {self._folder.name!r} like its folder; rename one of them"
            self._files.complain_in(document, ("name",), what)
        if not head.description.strip() or len(head.description) > most:
            what = (
                f"must say what the skill is for and when to use it, in at most {most} characters"
            )
            self._files.complain_in(document, ("description",), what)
        for key in OWN:
            if not isinstance(head.metadata.get(key, ""), str):
                self._files.complain_in(document, ("metadata", key), "must be text")
        if head.metadata.get(OWN[2], "auto") not in {"auto", "requested"}:
            self._files.complain_in(document, ("metadata", OWN[2]), "must be auto or requested")

    def _names(self, what: str) -> list[str]:
        """Names of actions or agents, from both places, each once."""
        head = self._head
        if head is None:
            return []
        text = head.metadata.get(f"loopagent-{what}", "")
        split = _BETWEEN.split(text) if isinstance(text, str) else []
        more = head.actions if what == "actions" else head.sub_agents
        return list(dict.fromkeys(one for one in (*split, *more) if one))

    def _warn(self, head: Head, actions: set[str]) -> None:
        document = self._document
        known = [one.alias or name for name, one in Head.model_fields.items()]
        for key in () if document is None else (one for one in document.value if one not in known):
            near = closest(key, known)
            hint = f"; did you mean {near[0]}?" if near else ""
            self._files.warn(self._path, f"unknown key, nothing depends on it{hint}", where=key)
        for key in head.metadata:
            if key.startswith("loopagent-") and key not in OWN:
                what = f"unknown key (known: {', '.join(OWN)})"
                self._files.warn(self._path, what, where=f"metadata.{key}")
        for name in self._names("actions"):
            if name not in actions:
                what = f"there is no action {name!r}; the skill works without it"
                self._files.warn(self._path, what, where="actions")
        tokens = estimate_tokens(self._body)
        if tokens > ADVISED_TOKENS:
            what = f"about {tokens} tokens of instructions; move what is seldom needed to files"
            self._files.warn(self._path, what)

    # --- the folder

    def _scan(self) -> dict[str, Path]:
        """Every file of the folder by its path inside; links and odd names are complained about."""
        found: dict[str, Path] = {}
        for place, folders, names in os.walk(self._folder):
            folders[:] = sorted(one for one in folders if not _ignored(one))
            here = Path(place)
            for name in (*folders, *names):
                path = here / name
                if path.is_symlink():
                    self._files.complain(path, "is a link; put the file itself there")
                elif name not in folders and not _ignored(name):
                    self._take(found, path)
            if len(found) > self._limits.max_files + 1:
                most = self._limits.max_files
                self._files.complain(self._folder, f"has more than {most} files; remove some")
                break
        return dict(sorted(found.items(), key=lambda one: os.fsencode(one[0])))

    def _take(self, found: dict[str, Path], path: Path) -> None:
        name = path.relative_to(self._folder).as_posix()
        if not name.isprintable():
            self._files.complain(self._path, f"there is a file with an odd name, {name!r}")
        elif len(name) > self._limits.max_path_chars:
            self._files.complain(path, f"its path is longer than {self._limits.max_path_chars}")
        else:
            found[name] = path

    def _hashed(self, paths: Mapping[str, Path]) -> tuple[dict[str, int], dict[str, str]]:
        """Size and SHA-256 of each file."""
        sizes: dict[str, int] = {}
        digests: dict[str, str] = {}
        for name, path in paths.items():
            data = self._files.data(path, self._limits.max_file_bytes)
            if data is not None:
                sizes[name], digests[name] = len(data), sha256(data).hexdigest()
        return sizes, digests


def _ignored(name: str) -> bool:
    return name.startswith(".") or name in IGNORED
