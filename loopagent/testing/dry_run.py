"""An agent tried out on replies that somebody wrote: no model is asked, no action runs, nothing is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from loopagent.documents import Document
from loopagent.models.script import ScriptEntry
from loopagent.project.loading import Project
from loopagent.project.scenarios import Scenario
from loopagent.scenario_spec import FakeCall, PersonAnswer, ScenarioSpec
from loopagent.testing.scenarios import run_scenario


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loopagent.agent import Agent
    from loopagent.testing.expectations import Played

MAX_APPROVALS: Final = 100
"""Requests that are answered with yes when everything is to be approved."""
SEPARATOR: Final = "---"
"""A line that stands between two replies."""
STAND_IN: Final = "(dry run: the action did not run)"
"""What a call brings for which no result is given."""


def dry_run(
    agents: Mapping[str, Agent[Any]],
    name: str,
    *,
    message: str,
    payload: Any = None,
    plan_mode: bool | None = None,
    replies: Sequence[str],
    results: Mapping[str, Any] | None = None,
    approve: bool = False,
) -> tuple[Played | None, list[str]]:
    """Play a run; it has an event loop of its own, so call it in a thread.

    Args:
        agents: The agents that there are.
        name: Which of them is tried out.
        message: The task.
        payload: Working data to start with; None takes the agent's.
        plan_mode: Whether a person must approve a plan first; None as the agent says.
        replies: What the model says, in order, to whichever agent asks.
        results: What actions bring, by their names; others bring `STAND_IN`.
        approve: Say yes to whatever a person is asked; otherwise the run waits at the first request.

    Returns:
        What came of it, None where the run was refused; and why something in it could not be, one line each.
    """
    actions = {one: [_fake((results or {}).get(one, STAND_IN))] for one in _names(agents)}
    yes: Literal["approve", "answer"] = "approve"
    spec = ScenarioSpec(
        agent=name,
        message=message,
        payload=payload,
        plan_mode=plan_mode,
        replies=list(replies),
        actions=actions,
        answers=[PersonAnswer(decision=yes) for _ in range(MAX_APPROVALS if approve else 0)],
        unused_replies=True,
    )
    script = tuple(ScriptEntry(text=one) for one in replies)
    project = Project(Path(), agents=dict(agents))
    played = run_scenario(Scenario("dry run", project, spec, script, Document(Path("dry-run"), {})))
    told = [
        one.message for one in played.problems if one.loc[:1] not in {("expect",), ("answers",)}
    ]
    return played.played, told


def _fake(result: Any) -> FakeCall:
    return FakeCall(when={}, result=result, optional=True)


def _names(agents: Mapping[str, Agent[Any]]) -> Iterator[str]:
    """The actions of agents and of those below them."""
    seen: set[int] = set()
    rest = list(agents.values())
    while rest:
        one = rest.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield from one.actions
            rest += one.agents.values()


def replies_in(text: str) -> list[str]:
    """The replies in a text that somebody pasted.

    They stand between lines of `---`; without such a line a JSON array holds them, or each line is one, as long as
    every line is JSON. Anything else is one reply.
    """
    lines = text.strip().splitlines()
    if any(one.strip() == SEPARATOR for one in lines):
        parts = "\n".join("\0" if one.strip() == SEPARATOR else one for one in lines).split("\0")
        return [one.strip() for one in parts if one.strip()]
    whole = _json(text)
    if isinstance(whole, list):
        return [one if isinstance(one, str) else json.dumps(one) for one in whole]
    filled = [one for one in lines if one.strip()]
    if whole is None and all(isinstance(_json(one), dict) for one in filled):
        return filled
    return [text.strip()] if text.strip() else []


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
