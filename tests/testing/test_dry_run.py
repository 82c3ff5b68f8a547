"""An agent tried out on pasted replies: nothing real happens, and what cannot be is said."""

from __future__ import annotations

import json

import pytest

from loopagent import Agent, action
from loopagent.testing.dry_run import STAND_IN, dry_run, replies_in


CALLS = {
    "taskComplete": False,
    "nextStep": {"type": "Actions", "actions": [{"name": "wipe", "params": {"disk": "a"}}]},
}
DONE = {"taskComplete": True, "message": "Done."}
REPLIES = [json.dumps(one) for one in (CALLS, DONE)]
wiped: list[str] = []


@action(effects="external")
def wipe(disk: str) -> str:
    """Wipe a disk."""
    wiped.append(disk)
    return "wiped"


AGENTS = {"a": Agent("a", instructions="Work.", model="openai:none", actions=[wipe])}


def test_no_action_runs_and_people_are_not_asked_for_real() -> None:
    waiting, _ = dry_run(AGENTS, "a", message="Go.", replies=REPLIES)
    done, problems = dry_run(AGENTS, "a", message="Go.", replies=REPLIES, approve=True)
    assert waiting is not None
    assert done is not None
    assert (waiting.status, done.status, problems) == ("waiting", "completed", [])
    results = [one["data"]["result"] for one in done.events if one["type"] == "action.completed"]
    assert (results, wiped) == ([STAND_IN], [])


def test_results_may_be_given_and_replies_may_run_out() -> None:
    played, _ = dry_run(
        AGENTS, "a", message="Go.", replies=REPLIES[:1], results={"wipe": {"ok": 1}}, approve=True
    )
    assert played is not None
    assert (played.status, played.run["reason"]) == ("failed", "model")
    results = [one["data"]["result"] for one in played.events if one["type"] == "action.completed"]
    assert results == [{"ok": 1}]


def test_a_run_that_cannot_begin_says_why() -> None:
    played, [problem] = dry_run(AGENTS, "nobody", message="Go.", replies=REPLIES)
    assert played is None
    assert "nobody" in problem


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", []),
        ('{"a": 1}\n\n{"b": 2}\n', ['{"a": 1}', '{"b": 2}']),
        ('[{"a": 1}, "text"]', ['{"a": 1}', "text"]),
        ('{\n"a": 1\n}\n---\nSure: {}\n---\n', ['{\n"a": 1\n}', "Sure: {}"]),
        ('{"a":\n1}', ['{"a":\n1}']),
        ("Sure:\n{}", ["Sure:\n{}"]),
    ],
)
def test_replies_are_told_apart(text: str, wanted: list[str]) -> None:
    assert replies_in(text) == wanted
