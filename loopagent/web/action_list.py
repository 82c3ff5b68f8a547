"""The list of actions: those of files and code beside the library's, and what a draft says as far as it can be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loopagent.actions.listing import action_row
from loopagent.library.drafts import Said, said_by


if TYPE_CHECKING:
    from loopagent.action import Action
    from loopagent.library_port import Built

STATES = ("published", "draft", "changed", "retired", "file")
EFFECTS = ("read", "write", "external", "irreversible")
FILTERS = ("kind", "effects", "state", "agent")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is shown of an action; of a draft, as far as it can be read."""

    title: str = ""
    description: str = ""
    kind: str = ""
    effects: str = ""
    steps: tuple[str, ...] = ()
    """Actions that it calls."""


@dataclass(frozen=True, slots=True)
class Row:
    """One action of the list; `state` is `file` for one that is not of the library."""

    name: str
    facts: Facts
    state: str
    agents: tuple[str, ...]
    pipelines: tuple[str, ...] = ()
    version: str = ""
    shadowed: bool = False
    """Whether an action of a file has the name and is used instead."""


def list_rows(
    code: Mapping[str, Action[..., Any]],
    agents: Mapping[str, Any],
    built: Iterable[Built],
    live: Mapping[str, Action[..., Any]],
) -> list[Row]:
    """All actions, sorted by name.

    Args:
        code: Those of files and Python.
        agents: Agents by name; each has `actions`.
        built: Those of the library.
        live: What is published of the library, by name.
    """
    rows = [_of_code(one, agents) for one in code.values()]
    rows += [_of_library(one, live.get(one.name), one.name in code) for one in built]
    callers: dict[str, list[str]] = {}
    for row in rows:
        for step in row.facts.steps:
            callers.setdefault(step, []).append(row.name)
    whole = [_with_callers(one, callers.get(one.name, [])) for one in rows]
    return sorted(whole, key=lambda one: (one.name, one.state != "file"))


def _with_callers(row: Row, callers: Sequence[str]) -> Row:
    pipelines = tuple(sorted(set(callers)))
    return Row(row.name, row.facts, row.state, row.agents, pipelines, row.version, row.shadowed)


def _of_code(action: Action[..., Any], agents: Mapping[str, Any]) -> Row:
    name = action.spec.name
    used_by = tuple(sorted(one for one, agent in agents.items() if name in agent.actions))
    version = action_row(action, [])["version"]
    return Row(name, _facts(action), "file", used_by, version=version)


def _facts(action: Action[..., Any]) -> Facts:
    row = action_row(action, [])
    steps = getattr(getattr(getattr(action, "file", None), "run", None), "steps", ())
    called = tuple(str(one.action) for one in steps)
    return Facts(row["title"], row["description"], row["kind"], row["effects"], called)


def _drafted(said: Said) -> Facts:
    return Facts(said.title, said.description, said.kind, said.effects or "", said.steps)


def _of_library(built: Built, live: Action[..., Any] | None, shadowed: bool) -> Row:
    version = f"version {built.published}" if built.published is not None else ""
    agents = built.agents if built.published is not None else ()
    facts = _drafted(said_by(built)) if live is None else _facts(live)
    return Row(built.name, facts, built.state, agents, (), version, shadowed)


def wanted(rows: Iterable[Row], asked: Mapping[str, str]) -> list[Row]:
    """The rows that fit the words and choices of a search."""
    words = asked.get("q", "").lower().split()
    return [one for one in rows if _fits(one, asked) and all(word in _words(one) for word in words)]


def _words(row: Row) -> str:
    return f"{row.name} {row.facts.title} {row.facts.description}".lower()


def _fits(row: Row, asked: Mapping[str, str]) -> bool:
    has = {
        "kind": {row.facts.kind},
        "effects": {row.facts.effects},
        "state": {row.state},
        "agent": set(row.agents),
    }
    return all(asked.get(key, "") in {"", *values} for key, values in has.items())
