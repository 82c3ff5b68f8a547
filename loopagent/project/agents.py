"""Agent files: `agents/NAME.agent.yaml` or `.json`, each one agent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from loopagent.actions.build import DISABLED, is_disabled
from loopagent.agent import MAX_NAME_CHARS, NAME, Agent
from loopagent.core.agent_spec import AgentSpec
from loopagent.core.json_values import is_array, is_object
from loopagent.core.names import closest
from loopagent.core.paths import OPERATIONS, parse_rules
from loopagent.core.schema_check import schema_problem
from loopagent.core.skill_spec import SkillSet
from loopagent.project.approval import tightened, unknown_names
from loopagent.project.files import explain
from loopagent.project.skill_section import KEY, read_section
from loopagent.project.sub_agents import SUB_AGENTS, Listed, link, take_sub_agents
from loopagent.project.verifier import checked_verifier, take_verifier, with_verifier


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.action import Action
    from loopagent.core.action_spec import ActionSpec
    from loopagent.core.agent_spec import OneByOne
    from loopagent.documents import Document
    from loopagent.project.files import Files, Loc
    from loopagent.skill import Skill

API_VERSION: Final = "loopagent/v1"
KIND: Final = "Agent"
PATTERNS: Final = ("agents/*.agent.yaml", "agents/*.agent.yml", "agents/*.agent.json")
FILE_KEYS: Final = ("apiVersion", "kind", "instructionsFile")
"""Keys of a file that are no fields of an agent's definition."""
_MODEL: Final = re.compile(r"[A-Za-z][\w.+-]*:\S.*")


def read_agents(
    files: Files,
    actions: dict[str, Action[..., Any]],
    skills: dict[str, Skill],
    standing: tuple[str, ...],
    approval: Mapping[str, OneByOne] | None = None,
) -> dict[str, Agent[Any]]:
    """Read every agent file of a project.

    Args:
        files: The project's files; keeps the complaints.
        actions: The actions that agents may name.
        skills: The skills that agents may accept.
        standing: Instructions that all agents get.
        approval: Actions that the operator wants to be asked about every time, or forbids.

    Returns:
        The agents by name; files with complaints are left out.
    """
    found: dict[str, Agent[Any]] = {}
    origin: dict[str, Path] = {}
    below: dict[str, Listed] = {}
    paths = files.listed(*PATTERNS)
    for path in files.listed("agents/*.yaml", "agents/*.yml", "agents/*.json"):
        if path not in paths:
            files.complain(path, f"would be ignored; name it {path.stem}.agent{path.suffix}")
    for path in paths:
        document = files.document(path)
        if document is None:
            continue
        listed = take_sub_agents(files, document)
        spec = _AgentFile(files, document, actions, skills).spec(standing)
        if spec is None:
            continue
        if spec.name in origin:
            what = f"another agent is named {spec.name} too, in {origin[spec.name]}; rename one"
            files.complain_in(document, ("name",), what)
            continue
        origin[spec.name] = path
        for what in unknown_names(spec):
            files.complain_in(document, ("approval", "actions"), what)
        spec = tightened(spec, approval or {})
        found[spec.name] = Agent(
            spec=spec,
            actions=[actions[one.name] for one in spec.actions],
            skills=[skills[one.name] for one in spec.skills.available],
        )
        below[spec.name] = listed
    link(files, found, below)
    return found


class _AgentFile:
    """One agent file on its way to a definition."""

    def __init__(
        self,
        files: Files,
        document: Document,
        actions: dict[str, Action[..., Any]],
        skills: dict[str, Skill],
    ) -> None:
        self._files = files
        self._document = document
        self._actions = actions
        self._skills = skills
        self._body = {key: one for key, one in document.value.items() if key != SUB_AGENTS}

    def spec(self, standing: tuple[str, ...]) -> AgentSpec | None:
        """The definition, or None when there are complaints."""
        before = len(self._files.problems)
        self._take_envelope()
        instructions = self._take_instructions_file()
        used = self._take_actions()
        skills = self._take_skills()
        verifier = take_verifier(self._body)
        spec = self._validated()
        brought = (one for skill in skills.available for one in skill.actions)
        workers = (self._body.get("model"), *(one for _, one in self._items("fallbackModels")))
        agreed = checked_verifier(verifier, used, workers, self._complain)
        self._check({one.name for one in (*used, *brought)})
        if spec is None or len(self._files.problems) > before:
            return None
        more: dict[str, Any] = {"actions": tuple(used), "skills": skills, "standing": standing}
        more["completion"] = with_verifier(spec.completion, agreed)
        return spec.model_copy(
            update=more if instructions is None else {**more, "instructions": instructions}
        )

    def _complain(self, loc: Loc, what: str) -> None:
        self._files.complain_in(self._document, loc, what)

    # --- what is no field of the definition

    def _take_envelope(self) -> None:
        for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
            value = self._body.pop(key, wanted)
            if value != wanted:
                self._complain((key,), f"must be {wanted}")
        if self._body.pop("hooks", None) is not None:
            self._complain(
                ("hooks",), "are Python: put them into files in the project's hooks folder"
            )
        if self._body.pop("standing", None) is not None:
            self._complain(
                ("standing",), "is made of the project's instructions/*.md; put the text there"
            )

    def _take_instructions_file(self) -> str | None:
        name = self._body.pop("instructionsFile", None)
        if name is None:
            return None
        if not isinstance(name, str) or not name.strip() or "\0" in name:
            self._complain(("instructionsFile",), "must be the name of a file")
            return None
        if self._body.get("instructions"):
            self._complain(
                ("instructionsFile",), "give either instructions or instructionsFile, not both"
            )
            return None
        path = self._document.path.parent / name
        root = self._files.folder.resolve()
        try:
            inside, there = path.resolve().is_relative_to(root), path.is_file()
        except (OSError, RuntimeError):  # a name that is too long, links in a circle
            inside, there = True, False
        if not inside:
            what = f"{name!r} lies outside the project; move it into {root}"
            self._complain(("instructionsFile",), what)
        elif not there:
            self._complain(("instructionsFile",), f"there is no file {str(path)[:200]}")
        return self._files.text(path) if inside and there else None

    def _take_actions(self) -> list[ActionSpec]:
        names: Any = self._body.pop("actions", None) or []
        if not is_array(names):
            self._complain(("actions",), "must be a list of names")
            return []
        specs: dict[str, ActionSpec] = {}
        for index, name in enumerate(names):
            if not isinstance(name, str):
                self._complain(("actions", index), "must be the name of an action")
            elif name in specs:
                self._complain(("actions", index), f"{name} is listed twice")
            elif name in self._actions and is_disabled(self._actions[name]):
                self._complain(("actions", index), DISABLED.format(name=name))
            elif name in self._actions:
                specs[name] = self._actions[name].spec
            elif name not in self._files.broken_actions:
                self._complain(
                    ("actions", index), f"there is no action {name!r}{_hint(name, self._actions)}"
                )
        return list(specs.values())

    def _take_skills(self) -> SkillSet:
        if self._body.pop(KEY, None) is None:
            return SkillSet()
        return read_section(self._files, self._document, self._skills)

    # --- the definition

    def _validated(self) -> AgentSpec | None:
        try:
            # As JSON, because only there "strict" knows that a list is how a tuple is written.
            return AgentSpec.model_validate_json(json.dumps(self._body), strict=True)
        except ValidationError as error:
            more = (*FILE_KEYS, "actions", "skills", SUB_AGENTS)
            found = explain(error, self._body, AgentSpec, more, self._document.position)
        for at, where, what in found:
            self._files.complain(self._document.path, what, at=at, where=where)
        return None

    def _check(self, actions: set[str]) -> None:
        """What the types alone cannot say; values of a wrong type were complained about before."""
        name = self._body.get("name")
        if isinstance(name, str) and (not NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS):
            what = f"{name[:80]!r} is no name; use lower case letters, digits and single hyphens"
            self._complain(("name",), f"{what}, at most {MAX_NAME_CHARS}")
        models: list[tuple[Loc, Any]] = [(("model",), self._body.get("model"))]
        for loc, model in [*models, *self._items("fallbackModels")]:
            if isinstance(model, str) and not _MODEL.fullmatch(model):
                what = f"{model[:80]!r} is no model; write provider:name, like openai:gpt-5-mini"
                self._complain(loc, what)
        for loc, rule in [*self._items("payload", "read"), *self._items("payload", "write")]:
            self._check_rule(loc, rule)
        schema = self._at("payload", "schema")
        wrong = schema_problem(schema) if is_object(schema) else None
        if wrong is not None:
            self._complain(("payload", "schema"), f"is no valid JSON Schema: {wrong}")
        self._check_calls(actions)

    def _check_rule(self, loc: Loc, rule: Any) -> None:
        rules, problems = parse_rules([rule] if isinstance(rule, str) else [])
        for one in problems:
            self._complain(loc, one)
        if loc[1] == "read" and any(one.operations != OPERATIONS for one in rules.rules):
            self._complain(loc, "operations mean nothing for reading; leave them out")

    def _check_calls(self, actions: set[str]) -> None:
        calls = self._at("completion", "minCalls")
        for name, least in calls.items() if is_object(calls) else ():
            if name not in actions:
                what = f"the agent has no such action{_hint(name, actions)}"
                self._complain(("completion", "minCalls", name), what)
            elif isinstance(least, int) and least < 0:
                self._complain(("completion", "minCalls", name), "must be 0 or more")

    def _at(self, *keys: str) -> Any:
        value: Any = self._body
        for key in keys:
            value = value.get(key) if is_object(value) else None
        return value

    def _items(self, *keys: str) -> list[tuple[Loc, Any]]:
        value = self._at(*keys)
        return [((*keys, index), one) for index, one in enumerate(value if is_array(value) else ())]


def _hint(name: str, known: Any) -> str:
    names = sorted(known)
    near = closest(name, names)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f" (known: {', '.join(names) or 'none'})"
