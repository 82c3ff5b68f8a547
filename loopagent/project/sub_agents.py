"""The `subAgents` of agent files: names or terms, and the tree that they make of the project's agents."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from loopagent.agent import SubAgent
from loopagent.core.agent_spec import SubAgentEntry
from loopagent.core.child_payload import path_problems
from loopagent.core.json_values import is_array
from loopagent.core.lineage import ARROW
from loopagent.core.names import closest
from loopagent.project.files import explain


if TYPE_CHECKING:
    from loopagent.agent import Agent
    from loopagent.documents import Document
    from loopagent.project.files import Files, Loc

SUB_AGENTS: Final = "subAgents"


@dataclass
class Listed:
    """What one agent file says about its sub-agents, entry by entry, with the place of each."""

    document: Document
    entries: list[tuple[Loc, SubAgentEntry]] = field(
        default_factory=list["tuple[Loc, SubAgentEntry]"]
    )


def take_sub_agents(files: Files, document: Document) -> Listed:
    """Read the sub-agents of an agent file; complaints are kept with the files."""
    found = Listed(document)
    given: Any = document.value.get(SUB_AGENTS) or []
    if not is_array(given):
        files.complain_in(
            document, (SUB_AGENTS,), "must be a list of names, or of objects with agent"
        )
        return found
    seen: set[str] = set()
    for index, one in enumerate(given):
        loc = (SUB_AGENTS, index)
        entry = _entry(files, document, loc, one)
        if entry is None:
            continue
        if entry.agent in seen:
            files.complain_in(document, loc, f"{entry.agent} is listed twice")
        seen.add(entry.agent)
        found.entries.append((loc, entry))
    return found


def _entry(files: Files, document: Document, loc: Loc, given: Any) -> SubAgentEntry | None:
    body: Any = {"agent": given} if isinstance(given, str) else given
    try:
        entry = SubAgentEntry.model_validate_json(json.dumps(body), strict=True)
    except ValidationError as error:
        found = explain(
            error, body, SubAgentEntry, (), lambda inner: document.position((*loc, *inner))
        )
        for at, where, what in found:
            place = f"{SUB_AGENTS}[{loc[1]}]" + ("" if where == "(file)" else f".{where}")
            files.complain(document.path, what, at=at, where=place)
        return None
    for problem in path_problems(entry):
        files.complain_in(document, loc, problem)
    return entry


def link(files: Files, agents: dict[str, Agent[Any]], below: dict[str, Listed]) -> None:
    """Give every agent its sub-agents, each with its own below it.

    Args:
        files: The project's files; keeps the complaints.
        agents: Every agent by name, as yet without sub-agents; they are changed.
        below: What their files list.
    """
    done: set[str] = set()
    for name in agents:
        _link(files, agents, below, (name,), done)


def _link(
    files: Files,
    agents: dict[str, Agent[Any]],
    below: dict[str, Listed],
    path: tuple[str, ...],
    done: set[str],
) -> None:
    """Link the last agent of a path, after those that it lists."""
    name = path[-1]
    if name in done:
        return
    done.add(name)
    listed, subs = below[name], list[SubAgent]()
    for loc, entry in listed.entries:
        if entry.agent in path:
            circle = ARROW.join([*path[path.index(entry.agent) :], entry.agent])
            what = f"agents cannot give each other work in a circle ({circle}); remove one"
            files.complain_in(listed.document, loc, what)
        elif entry.agent not in agents:
            near = closest(entry.agent, list(agents))
            known = ", ".join(sorted(agents)) or "none"
            hint = f"; did you mean {' or '.join(near)}?" if near else f" (known: {known})"
            files.complain_in(listed.document, loc, f"there is no agent {entry.agent!r}{hint}")
        else:
            _link(files, agents, below, (*path, entry.agent), done)
            terms = entry.model_dump(exclude={"agent"})
            subs.append(SubAgent(agents[entry.agent], terms))
    explicit = {entry.agent for _, entry in listed.entries}
    for brought in _brought(agents[name]):
        if brought in agents and brought not in explicit and brought not in path:
            _link(files, agents, below, (*path, brought), done)
            subs.append(SubAgent(agents[brought], {"with_skill": True}))
    if not files.problems:
        agents[name].employ(subs)


def _brought(agent: Agent[Any]) -> tuple[str, ...]:
    """Names of the sub-agents that come with the skills an agent accepts, each once."""
    skills = agent.spec.skills.available
    return tuple(dict.fromkeys(name for one in skills for name in one.agents))
