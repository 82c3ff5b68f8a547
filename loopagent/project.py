"""A project folder: agents, actions, instructions and settings, read as a whole and complained about as a whole."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from loopagent.action import Action
from loopagent.agent import Agent
from loopagent.core.agent_spec import AgentSpec
from loopagent.core.names import closest
from loopagent.core.paths import parse_rules
from loopagent.core.schema_check import schema_problem
from loopagent.documents import Document, DocumentError, read_document
from loopagent.errors import ConfigError
from loopagent.settings import Settings


Json = dict[str, Any]
MAX_FILE_BYTES = 2_000_000
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
API_VERSION = "loopagent/v1"
ENVELOPE = ("apiVersion", "kind")
FILE_ONLY = ("instructionsFile",)
LATER = (
    "subAgents",
    "skills",
    "clientTools",
    "planMode",
    "memory",
    "artifactTools",
    "conversationTools",
)
"""Parts of an agent file that this version cannot carry out yet: refused, never silently ignored."""


@dataclass
class Project:
    """Everything a project folder holds."""

    folder: Path
    agents: dict[str, Agent[Any]] = field(default_factory=dict[str, Agent[Any]])
    actions: dict[str, Action[..., Any]] = field(default_factory=dict[str, Action[..., Any]])
    instructions: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)


def load_project(folder: Path, *, env: Mapping[str, str] | None = None) -> Project:
    """Read a project folder.

    Args:
        folder: The folder.
        env: Environment whose `LOOPAGENT_*` wins over `loopagent.toml`; default: the process environment.

    Raises:
        ConfigError: Something is wrong; `problems` lists every complaint as `file:line:column: path: what`.
    """
    if not folder.is_dir():
        message = f"{folder}: there is no such folder; `loopagent init {folder}` makes a project"
        raise ConfigError(message)
    return _Loader(folder, os.environ if env is None else env).load()


class _Loader:
    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._env = env
        self._project = Project(folder)
        self._problems: list[str] = []

    def load(self) -> Project:
        project = self._project
        project.settings = self._settings()
        for path in sorted((project.folder / "actions").glob("*.py")):
            self._actions(path)
        project.instructions = tuple(self._instructions())
        patterns = ("*.agent.yaml", "*.agent.yml", "*.agent.json")
        for path in sorted(
            one for pattern in patterns for one in (project.folder / "agents").glob(pattern)
        ):
            self._agent(path)
        if self._problems:
            count = len(self._problems)
            message = (
                f"the project in {project.folder} has {count} problem{'s' if count > 1 else ''}"
            )
            raise ConfigError(message, self._problems)
        return project

    # ---------------------------------------------------------------- parts

    def _settings(self) -> Settings:
        path = self._project.folder / "loopagent.toml"
        values: Json = {}
        if path.exists():
            text = self._text(path)
            try:
                values = tomllib.loads(text) if text is not None else {}
            except tomllib.TOMLDecodeError as error:
                self._problems.append(f"{path}:1:1: not TOML: {error}")
        values |= {
            name: self._env[f"LOOPAGENT_{name.upper()}"]
            for name in ("db", "model")
            if self._env.get(f"LOOPAGENT_{name.upper()}")
        }
        try:
            return Settings.model_validate(values)
        except ValidationError as error:
            known = list(Settings.model_fields)
            for one in error.errors():
                self._problems.append(f"{path}:1:1: {_where(one['loc'])}: {_complaint(one, known)}")
            return Settings()

    def _actions(self, path: Path) -> None:
        """Import a file of Python actions under a name of its own and collect what it defines."""
        name = f"loopagent_actions_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            self._problems.append(f"{path}:1:1: cannot be imported")
            return
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:  # noqa: BLE001 - whatever a user's file raises is a complaint about it
            self._problems.append(f"{path}:{_line(error, path)}:1: {type(error).__name__}: {error}")
            return
        for value in vars(module).values():
            if isinstance(value, Action):
                self._add_action(cast("Action[..., Any]", value), path)

    def _add_action(self, action: Action[..., Any], path: Path) -> None:
        known = self._project.actions.setdefault(action.spec.name, action)
        if known is not action:
            self._problems.append(
                f"{path}:1:1: action {action.spec.name!r} is defined twice; rename one"
            )

    def _instructions(self) -> list[str]:
        texts: list[str] = []
        folder = self._project.folder
        for path in [
            *sorted((folder / "instructions").glob("*.md")),
            *folder.glob("agents/AGENTS.md"),
        ]:
            text = self._text(path)
            if text is None:
                continue
            head, body = _front_matter(text)
            if head.get("enabled", "true") != "false" and body.strip():
                texts.append(body.strip())
        return texts

    def _text(self, path: Path) -> str | None:
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                self._problems.append(f"{path}:1:1: larger than {MAX_FILE_BYTES} bytes")
                return None
            return path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            self._problems.append(f"{path}:1:1: not UTF-8 at byte {error.start}; save it as UTF-8")
        except OSError as error:
            self._problems.append(f"{path}:1:1: cannot be read: {error.strerror}")
        return None

    # ---------------------------------------------------------------- agents

    def _agent(self, path: Path) -> None:
        text = self._text(path)
        if text is None:
            return
        try:
            document = read_document(text, path)
        except DocumentError as error:
            self._problems.append(str(error))
            return
        before = len(self._problems)
        spec = self._spec(document)
        if spec is not None and len(self._problems) == before:
            self._add_agent(spec, document)

    def _spec(self, document: Document) -> AgentSpec | None:
        body = dict(document.value)
        self._envelope(document, body)
        for key in ENVELOPE:
            body.pop(key, None)
        for key in LATER:
            if key in body:
                self._complain(document, (key,), "is not supported by this version; remove it")
                body.pop(key)
        self._read_instructions(document, body)
        names = body.get("actions", [])
        body["actions"] = self._action_specs(document, names) if isinstance(names, list) else names
        body["standing"] = self._project.instructions
        try:
            spec = AgentSpec.model_validate(body)
        except ValidationError as error:
            known = [
                *(one.alias or name for name, one in AgentSpec.model_fields.items()),
                *ENVELOPE,
                *FILE_ONLY,
            ]
            for one in error.errors():
                self._complain(document, one["loc"], _complaint(one, known))
            return None
        self._check(document, spec)
        return spec

    def _envelope(self, document: Document, body: Json) -> None:
        if body.get("apiVersion", API_VERSION) != API_VERSION:
            self._complain(document, ("apiVersion",), f"must be {API_VERSION}")
        if body.get("kind", "Agent") != "Agent":
            self._complain(document, ("kind",), "must be Agent")

    def _read_instructions(self, document: Document, body: Json) -> None:
        name = body.pop("instructionsFile", None)
        if name is None:
            return
        path = (document.path.parent / str(name)).resolve()
        if "instructions" in body:
            self._complain(
                document, ("instructionsFile",), "give either instructions or instructionsFile"
            )
        elif not path.is_relative_to(self._project.folder.resolve()) or not path.is_file():
            self._complain(
                document, ("instructionsFile",), f"there is no file {name!r} in the project"
            )
        else:
            body["instructions"] = self._text(path) or ""

    def _action_specs(self, document: Document, names: list[Any]) -> list[Any]:
        specs: list[Any] = []
        known = self._project.actions
        for index, name in enumerate(names):
            if isinstance(name, str) and name in known:
                specs.append(known[name].spec)
                continue
            near = closest(str(name), list(known))
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            listed = ", ".join(sorted(known)) or "none"
            self._complain(
                document, ("actions", index), f"there is no action {name!r}{hint} (known: {listed})"
            )
        return specs

    def _check(self, document: Document, spec: AgentSpec) -> None:
        """What the types alone cannot say."""
        if not NAME.fullmatch(spec.name):
            self._complain(
                document,
                ("name",),
                f"{spec.name!r}: use lower case letters, digits and single hyphens",
            )
        for side, rules in (("read", spec.payload.read), ("write", spec.payload.write)):
            for one in parse_rules(list(rules))[1]:
                self._complain(document, ("payload", side), one)
        if spec.payload.schema_ is not None and (wrong := schema_problem(spec.payload.schema_)):
            self._complain(document, ("payload", "schema"), f"not a JSON Schema: {wrong}")
        for name in spec.completion.min_calls:
            if spec.action(name) is None:
                self._complain(
                    document, ("completion", "minCalls", name), "the agent has no such action"
                )

    def _add_agent(self, spec: AgentSpec, document: Document) -> None:
        if spec.name in self._project.agents:
            self._complain(document, ("name",), f"there is another agent named {spec.name!r}")
            return
        actions = [self._project.actions[one.name] for one in spec.actions]
        self._project.agents[spec.name] = Agent(spec=spec, actions=actions)

    def _complain(self, document: Document, loc: tuple[int | str, ...], what: str) -> None:
        line, column = document.position(loc)
        self._problems.append(f"{document.path}:{line}:{column}: {_where(loc)}: {what}")


def _where(loc: tuple[int | str, ...]) -> str:
    return (
        "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in loc).lstrip(".")
        or "(file)"
    )


def _complaint(error: Any, known: list[str]) -> str:
    """A pydantic complaint in plain words, with the nearest known name for an unknown one."""
    if error["type"] == "extra_forbidden":
        near = closest(str(error["loc"][-1]), known) if len(error["loc"]) == 1 else []
        return "unknown key" + (f"; did you mean {' or '.join(near)}?" if near else "")
    message = str(error["msg"])
    return message[:1].lower() + message[1:]


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    """`key: value` lines between two `---` lines at the start, and the rest."""
    if not text.startswith("---\n"):
        return {}, text
    head, separator, body = text[4:].partition("\n---\n")
    if not separator:
        return {}, text
    pairs = (line.partition(":") for line in head.splitlines())
    return {key.strip(): value.strip().lower() for key, _, value in pairs}, body


def _line(error: BaseException, path: Path) -> int:
    """The line of the file in which an import failed."""
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line or 1
