"""Scenario files: `scenarios/NAME.scenario.yaml` or `.json`, each one test of an agent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from loopagent.core.facts import FACT_TYPES
from loopagent.core.json_values import is_array, is_object
from loopagent.core.names import closest
from loopagent.core.paths import parse_path
from loopagent.errors import ConfigError
from loopagent.matching import pattern_problems
from loopagent.models.script import BadEntryError, ScriptEntry, entry_of, read_script
from loopagent.project.files import Files, Loc, explain
from loopagent.project.loading import MAX_FILE_BYTES
from loopagent.scenario_spec import ScenarioSpec


if TYPE_CHECKING:
    from loopagent.agent import Agent
    from loopagent.documents import Document
    from loopagent.project.loading import Project

FOLDER: Final = "scenarios"
SUFFIXES: Final = (".scenario.yaml", ".scenario.yml", ".scenario.json")
_ENVELOPE: Final = {"apiVersion": "loopagent/v1", "kind": "Scenario"}
_EVENT_KEYS: Final = ("type", "decidedBy", "turn", "path", "runId", "data")


@dataclass(frozen=True)
class Scenario:
    """A scenario, ready to be played.

    `script` holds the replies. `document` knows where everything stands in the file.
    """

    name: str
    project: Project = field(repr=False)
    spec: ScenarioSpec = field(repr=False)
    script: tuple[ScriptEntry, ...] = field(repr=False)
    document: Document = field(repr=False)

    def __str__(self) -> str:
        """Its name."""
        return self.name

    @property
    def path(self) -> Path:
        """The file."""
        return self.document.path

    def where(self, loc: Loc) -> str:
        """`file:line:column` of a place in the scenario."""
        line, column = self.document.position(loc)
        return f"{self.path}:{line}:{column}"


def load_scenarios(project: Project, paths: Iterable[Path] | None = None) -> list[Scenario]:
    """Read scenario files.

    Args:
        project: Whose agents they test.
        paths: The files; None for all in the project's `scenarios` folder, sorted by name.

    Raises:
        ConfigError: Something is wrong; `problems` lists every complaint as `file:line:column: path: what`.
    """
    files = Files(project.folder, MAX_FILE_BYTES)
    chosen = _listed(files) if paths is None else list(paths)
    made = [_ScenarioFile(files, project, path).scenario() for path in chosen]
    if files.problems:
        count = len(files.problems)
        message = f"the scenarios have {count} problem{'s' if count > 1 else ''}"
        raise ConfigError(message, files.problems)
    return [one for one in made if one is not None]


def scenario_name(path: Path) -> str:
    """The name that a file gives to its scenario."""
    suffix = next((one for one in SUFFIXES if path.name.endswith(one)), path.suffix)
    return path.name.removesuffix(suffix)


def _with_those_below(agents: Mapping[str, Agent[Any]]) -> dict[str, Agent[Any]]:
    """The agents and all that they may give work to, by name."""
    found: dict[str, Agent[Any]] = {}
    for name, one in agents.items():
        found |= {name: one, **_with_those_below(one.agents)}
    return found


def _listed(files: Files) -> list[Path]:
    found = files.listed(*(f"{FOLDER}/*{suffix}" for suffix in SUFFIXES))
    for path in files.listed(f"{FOLDER}/*.yaml", f"{FOLDER}/*.yml"):
        if path not in found:
            files.complain(path, f"would be ignored; name it {path.stem}.scenario{path.suffix}")
    return found


class _ScenarioFile:
    """One file on its way to a scenario."""

    def __init__(self, files: Files, project: Project, path: Path) -> None:
        self._files = files
        self._project = project
        self._path = path
        self._document = files.document(path)
        self._body: dict[str, Any] = {} if self._document is None else dict(self._document.value)

    def scenario(self) -> Scenario | None:
        """The scenario, or None when there are complaints."""
        document, before = self._document, len(self._files.problems)
        if document is None:
            return None
        for key, wanted in _ENVELOPE.items():
            if self._body.pop(key, wanted) != wanted:
                self._complain((key,), f"must be {wanted}")
        spec = self._validated(document)
        script = self._script()
        self._check_names()
        self._check_choices()
        self._check_expectations()
        if spec is None or len(self._files.problems) > before:
            return None
        name = spec.name or scenario_name(self._path)
        return Scenario(name, self._project, spec, script, document)

    def _complain(self, loc: Loc, what: str) -> None:
        if self._document is not None:
            self._files.complain_in(self._document, loc, what)

    def _validated(self, document: Document) -> ScenarioSpec | None:
        try:
            return ScenarioSpec.model_validate_json(json.dumps(self._body), strict=True)
        except ValidationError as error:
            found = explain(error, self._body, ScenarioSpec, _ENVELOPE, document.position)
        for at, where, what in found:
            self._files.complain(self._path, what, at=at, where=where)
        return None

    # --- replies

    def _script(self) -> tuple[ScriptEntry, ...]:
        name = self._body.get("repliesFile")
        given = self._list("replies")
        if name is not None and given:
            self._complain(("repliesFile",), "give either replies or repliesFile, not both")
        elif isinstance(name, str):
            return self._script_file(name)
        elif not given:
            self._complain(("replies",), "must be given: what the model answers, in order")
        return tuple(self._entries(given))

    def _script_file(self, name: str) -> tuple[ScriptEntry, ...]:
        try:
            return tuple(read_script(self._path.parent / name))
        except ConfigError as error:
            if not error.problems:
                self._complain(("repliesFile",), str(error))
            self._files.problems.extend(error.problems)
        return ()

    def _entries(self, given: list[Any]) -> Iterator[ScriptEntry]:
        for index, value in enumerate(given):
            try:
                yield entry_of(value, f"replies[{index}]")
            except BadEntryError as error:
                self._complain(("replies", index), str(error))
                continue
            agent = value.get("agent") if is_object(value) else None
            if isinstance(agent, str):
                known = _with_those_below(self._project.agents)
                self._known(("replies", index, "agent"), agent, known, "agent")

    # --- names and choices

    def _check_names(self) -> None:
        agents = _with_those_below(self._project.agents)
        actions = {name for one in agents.values() for name in one.actions}
        agent = self._body.get("agent")
        if isinstance(agent, str):
            self._known(("agent",), agent, agents, "agent")
        for name in self._object("actions"):
            self._known(("actions", name), name, actions, "action")
        for index, name in enumerate(self._list("realActions")):
            self._known(("realActions", index), name, {*actions, "*"}, "action")
            if name in self._object("actions"):
                self._complain(("realActions", index), f"{name} has results in `actions` too")
        for name in self._object("expect", "calls"):
            self._known(("expect", "calls", name), name, actions, "action")

    def _known(self, loc: Loc, name: Any, known: Iterable[str], what: str) -> None:
        names = sorted(known)
        if not isinstance(name, str) or name in names:
            return
        near = closest(name, names)
        hint = f"; did you mean {' or '.join(near)}?" if near else f" (known: {', '.join(names)})"
        self._complain(loc, f"there is no {what} {name!r}{hint}")

    def _check_choices(self) -> None:
        """Fakes and answers say one thing each."""
        for name, entries in self._object("actions").items():
            for index, one in enumerate(entries if is_array(entries) else ()):
                loc = ("actions", name, index)
                self._one_of(loc, one, ("result", "error"))
                self._check_pattern((*loc, "when"), one.get("when") if is_object(one) else None)
        for index, one in enumerate(self._list("answers")):
            self._one_of(("answers", index), one, ("decision", "result", "error"))
            pattern = one.get("request") if is_object(one) else None
            self._check_pattern(("answers", index, "request"), pattern)

    def _one_of(self, loc: Loc, value: Any, keys: tuple[str, ...]) -> None:
        if is_object(value) and sum(key in value for key in keys) != 1:
            self._complain(loc, f"must have one of {', '.join(keys)}")

    # --- expectations

    def _check_expectations(self) -> None:
        for key in ("message", "payload", "payloadAt", "requests"):
            self._check_pattern(("expect", key), self._object("expect").get(key))
        for path in self._object("expect", "payloadAt"):
            read = parse_path(path)
            if isinstance(read, str):
                self._complain(("expect", "payloadAt", path), read)
        for key in ("events", "noEvents"):
            for index, one in enumerate(self._list("expect", key)):
                self._check_event(("expect", key, index), one)

    def _check_event(self, loc: Loc, wanted: Any) -> None:
        body: dict[str, Any] = {"type": wanted} if isinstance(wanted, str) else wanted
        if not is_object(body) or not isinstance(body.get("type"), str):
            self._complain(loc, "must be the type of an event, or an object with it")
            return
        at = loc if isinstance(wanted, str) else (*loc, "type")
        persisted = [name for name, one in FACT_TYPES.items() if name and not one.ephemeral]
        self._known(at, body["type"], persisted, "stored event")
        for key in body:
            self._known((*loc, key), key, _EVENT_KEYS, "key of events")
        self._check_pattern(loc, body)

    def _check_pattern(self, loc: Loc, wanted: Any) -> None:
        for inner, what in pattern_problems(wanted):
            self._complain((*loc, *inner), what)

    def _at(self, *keys: str) -> Any:
        value: Any = self._body
        for key in keys:
            value = value.get(key) if is_object(value) else None
        return value

    def _object(self, *keys: str) -> dict[str, Any]:
        value = self._at(*keys)
        return value if is_object(value) else {}

    def _list(self, *keys: str) -> list[Any]:
        value = self._at(*keys)
        return value if is_array(value) else []
