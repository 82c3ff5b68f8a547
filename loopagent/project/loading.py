"""Loading a project folder."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from pydantic import ValidationError

from loopagent.action import Action
from loopagent.actions.complaints import did_you_mean
from loopagent.actions.means import Means
from loopagent.actions.secrets import Credentials
from loopagent.agent import Agent
from loopagent.core.names import closest
from loopagent.errors import ConfigError
from loopagent.hooks import Hook
from loopagent.project import environment
from loopagent.project.action_files import means_of, read_action_files, warn_of_deprecated
from loopagent.project.agents import read_agents
from loopagent.project.approval import callable_names
from loopagent.project.files import Files, Loc, explain
from loopagent.project.lock import Lock, read_lock, warn_of_skills
from loopagent.project.skills import read_skills
from loopagent.project.triggers import read_triggers
from loopagent.settings import Settings
from loopagent.skill import Skill
from loopagent.triggers.spec import TriggerSpec


MAX_FILE_BYTES: Final = 500_000
"""Size up to which a file of a project is read."""
SETTINGS_FILE: Final = "loopagent.toml"
_FRONT_KEYS: Final = ("enabled", "name", "description")
_PLACE: Final = re.compile(r"(.*?):(\d+):(\d+):")
_TOML_PLACE: Final = re.compile(r" \(at line (\d+), column (\d+)\)$")


@dataclass
class Project:
    """Everything a project folder holds.

    Args:
        folder: The folder.
        agents: Agents by name.
        actions: Actions by name.
        hooks: Functions around the runs of all agents, in the order of their files' names.
        skills: Skills by name.
        lock: What was reviewed of them.
        triggers: Triggers by name.
        instructions: Texts for all agents, in the order of their files' names.
        settings: What `loopagent.toml` and the environment say.
        means: What its low-code actions may use.
        env: The environment that it was read with.
        warnings: What works, but perhaps not as meant, as `file:line:column: path: what`.
    """

    folder: Path
    agents: dict[str, Agent[Any]] = field(default_factory=dict[str, Agent[Any]])
    actions: dict[str, Action[..., Any]] = field(default_factory=dict[str, Action[..., Any]])
    hooks: tuple[Hook, ...] = ()
    skills: dict[str, Skill] = field(default_factory=dict[str, Skill])
    lock: Lock = field(default_factory=Lock)
    triggers: dict[str, TriggerSpec] = field(default_factory=dict[str, TriggerSpec])
    instructions: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    means: Means = field(default_factory=Means, repr=False)
    env: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    warnings: list[str] = field(default_factory=list[str])

    @property
    def secret_values(self) -> list[str]:
        """Values of the secrets of its actions, and of signing in, to be masked.

        Raises:
            ConfigError: One is too short to be masked.
        """
        store = self.means.secrets
        own = store.values() if isinstance(store, Credentials) else []
        return [*own, *self.settings.oidc.secret_values(self.env)]


def load_means(folder: Path, *, env: Mapping[str, str] | None = None) -> Means:
    """What the settings of a folder let actions use, without reading the rest of the project.

    Args:
        folder: The folder; without settings in it, the defaults count.
        env: As for `load_project`.

    Raises:
        ConfigError: The settings are wrong.
    """
    files = Files(folder, MAX_FILE_BYTES)
    surroundings = os.environ if env is None else env
    settings = _settings(files, surroundings)
    if files.problems:
        raise ConfigError(f"the settings in {folder} are wrong", _in_order(files.problems))
    return means_of(settings, surroundings, folder)


def load_project(
    folder: Path, *, env: Mapping[str, str] | None = None, max_file_bytes: int = MAX_FILE_BYTES
) -> Project:
    """Read a project folder.

    Args:
        folder: The folder; the Python files in its `actions` and `hooks` are imported, which runs them.
        env: Environment whose `LOOPAGENT_*` wins over `loopagent.toml`; None for that of the process.
        max_file_bytes: Size up to which a file is read.

    Raises:
        ConfigError: Something is wrong; `problems` lists every complaint as `file:line:column: path: what`.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: there is no such folder; `loopagent init {folder}` makes a project"
        )
    files = Files(folder, max_file_bytes)
    project = Project(folder)
    surroundings = project.env = os.environ if env is None else env
    project.settings = _settings(files, surroundings)
    project.means = means_of(project.settings, surroundings, folder)
    project.actions = read_action_files(files, project.settings, project.means, _actions(files))
    project.hooks = _hooks(files)
    project.instructions = _instructions(files)
    project.lock = read_lock(files)
    project.skills = read_skills(
        files, project.actions, project.lock.hashes, project.settings.skills
    )
    project.agents = read_agents(
        files,
        project.actions,
        project.skills,
        project.instructions,
        project.settings.approval,
    )
    _check_approval(files, project)
    project.triggers = read_triggers(files, project.agents)
    warn_of_deprecated(files, project.agents)
    warn_of_skills(files, project.skills, project.lock, project.agents)
    project.warnings = files.warnings
    if files.problems:
        count = len(files.problems)
        message = f"the project in {folder} has {count} problem{'s' if count > 1 else ''}"
        raise ConfigError(message, _in_order(files.problems))
    return project


def _check_approval(files: Files, project: Project) -> None:
    """Complain about names in `[approval]` that nothing has: what they should hold back would go on."""
    known = {*project.actions, *callable_names(one.spec for one in project.agents.values())}
    for name in project.settings.approval:
        if name not in known and not files.problems:
            what = f"there is no action {name!r}{did_you_mean(name, known)}"
            files.complain(files.folder / SETTINGS_FILE, what, where=f"approval.{name}")


def _in_order(complaints: list[str]) -> list[str]:
    """Complaints of one file together and in its order; the files as they were read."""
    files: dict[str, int] = {}

    def place(complaint: str) -> tuple[int, int, int]:
        found = _PLACE.match(complaint)
        file, line, column = found.groups() if found else (complaint, "0", "0")
        return files.setdefault(file, len(files)), int(line), int(column)

    return sorted(complaints, key=place)


# --- settings --------------------------------------------------------------------------------------


def _settings(files: Files, env: Mapping[str, str]) -> Settings:
    path = files.folder / SETTINGS_FILE
    text = files.text(path) if path.exists() else ""
    values = _toml(files, path, text or "")
    known = environment.given(env)
    for one in known.values():
        environment.put(values, one, env[one.name])
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        found = explain(error, values, Settings, (), lambda loc: _toml_position(text or "", loc))
    for at, where, what in found:
        variable = environment.origin(known, where)
        files.complain(Path(f"${variable.name}") if variable else path, what, at=at, where=where)
    return Settings()


def _toml(files: Files, path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _TOML_PLACE.search(str(error))
        at = (int(found[1]), int(found[2])) if found else (text.count("\n") + 1, 1)
        files.complain(path, f"not TOML: {_TOML_PLACE.sub('', str(error))}", at=at)
    except RecursionError:
        files.complain(path, "nested too deeply")
    return {}


def _toml_position(text: str, loc: Loc) -> tuple[int, int]:
    """Where a key of the root stands; the TOML reader does not tell."""
    key = re.escape(str(loc[0])) if loc else ""
    found = re.search(rf"^[ \t]*\[*[ \t]*([\"']?{key}[\"']?)[ \t]*[.=\]]", text, re.MULTILINE)
    if not key or found is None:
        return 1, 1
    start = found.start(1)
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


# --- actions ---------------------------------------------------------------------------------------


def _actions(files: Files) -> dict[str, Action[..., Any]]:
    found: dict[str, Action[..., Any]] = {}
    for path in files.listed("actions/*.py"):
        module = _imported(files, path)
        for value in [] if module is None else list(vars(module).values()):
            if not isinstance(value, Action):
                continue
            made = cast("Action[..., Any]", value)
            name = made.spec.name
            if found.setdefault(name, made) is not made:
                what = f"another action is named {name} too, in {_source(found[name])}; rename one"
                files.complain(path, what, at=(_first_line(made), 1), where=name)
    return found


def _hooks(files: Files) -> tuple[Hook, ...]:
    """The hooks in `hooks/*.py`, as they stand there."""
    found: dict[tuple[str, str], Hook] = {}
    for path in files.listed("hooks/*.py"):
        module = _imported(files, path)
        values = [] if module is None else list(vars(module).values())
        for made in [one for one in values if isinstance(one, Hook)]:
            place = (made.spec.point, made.spec.name)
            if found.setdefault(place, made) is not made:
                what = f"there are two {place[0]} hooks named {place[1]}; pass `name` to one"
                files.complain(path, what, where=place[1])
    return tuple(found.values())


def _imported(files: Files, path: Path) -> ModuleType | None:
    """A file as a module, under a name of its own so that no two projects meet."""
    if files.text(path) is None:
        return None
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    name = f"loopagent_actions_{digest}_{path.stem}"
    loader = SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(
        cast("ModuleSpec", importlib.util.spec_from_loader(name, loader))
    )
    sys.modules[name] = module  # dataclasses and pydantic look the module up by its name
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's file raises is a complaint about it
        del sys.modules[name]
        said = f"{type(error).__name__}: {error}"
        files.complain(path, f"cannot be imported: {said}", at=_raised_at(error, path))
        return None
    return module


def _raised_at(error: BaseException, path: Path) -> tuple[int, int]:
    """Line and column of a file in which an import failed."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 1, error.offset or 1
    line = 1
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line, 1


def _first_line(made: Action[..., Any]) -> int:
    code = getattr(inspect.unwrap(made.fn), "__code__", None)
    return 1 if code is None else int(code.co_firstlineno)


def _source(made: Action[..., Any]) -> str:
    code = getattr(inspect.unwrap(made.fn), "__code__", None)
    return "another file" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


# --- instructions ----------------------------------------------------------------------------------


def _instructions(files: Files) -> tuple[str, ...]:
    """Texts for all agents: `instructions/*.md` and `AGENTS.md` beside the agents, sorted by name."""
    texts: list[str] = []
    paths = files.listed("instructions/*.md", "agents/AGENTS.md")
    for path in sorted(paths, key=lambda one: one.name):
        text = files.text(path)
        parts = None if text is None else files.front_matter(path, text)
        if parts is None:
            continue
        head, body = parts
        for key in [one for one in head.value if one not in _FRONT_KEYS]:
            # Other tools have keys of their own; only what looks like a slip is one.
            if near := closest(key, _FRONT_KEYS):
                files.complain_in(head, (key,), f"unknown key; did you mean {near[0]}?")
        enabled = head.value.get("enabled", True)
        if not isinstance(enabled, bool):
            files.complain_in(head, ("enabled",), "must be true or false")
        elif enabled and body.strip():
            texts.append(body.strip())
    return tuple(texts)
