"""Runs explained from the events that real runs leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loopagent.core.facts import FACT_TYPES
from loopagent.explain import Explanation, explain
from loopagent.explain_rules import NONE, QUIET, RULES
from loopagent.explain_seats import SEATS
from tests.cli.commands import loopagent
from tests.http.server import make_project
from tests.testing.test_scenarios import DONE, LOOK, MAIL, calls, play


def explained(folder: Path, **body: Any) -> Explanation:
    result = play(folder, **body)
    assert result.played is not None
    events = json.loads(json.dumps(result.played.events))
    explanation = explain(events)
    seqs = [one.seq for chapter in explanation.chapters for one in chapter.decisions]
    assert seqs == [one["seq"] for one in events if one["type"] not in QUIET]
    return explanation


def lines(explanation: Explanation) -> list[tuple[int | None, str, str, str]]:
    return [
        (
            chapter.turn,
            one.seat,
            one.decided_by,
            f"{one.decision} - {one.grounds}".removesuffix(" - "),
        )
        for chapter in explanation.chapters
        for one in chapter.decisions
    ]


def test_every_stored_event_has_a_rule_and_every_seat_a_question() -> None:
    stored = {name for name, one in FACT_TYPES.items() if name and not one.ephemeral}
    assert stored - QUIET - RULES.keys() == set()
    fixed = {one.seat for one in RULES.values() if isinstance(one.seat, str)}
    assert fixed - {NONE} <= SEATS.keys()


def test_an_approved_call_names_who_approved_it(tmp_path: Path) -> None:
    said = lines(
        explained(
            tmp_path,
            replies=[MAIL, MAIL, DONE],
            actions={"mail": [{"result": "sent"}]},
            answers=[
                {"decision": "approve", "edited": {"to": "bob"}},
                {"decision": "reject", "feedback": "Enough."},
            ],
        )
    )
    assert (1, "C1", "model", "next step Actions") in said
    assert (1, "D2", "policy", "a person is asked: Run mail? - Send a mail.") in said
    assert (1, "D2", "human", "answered: approve - by scenario; with changes") in said
    runs = next(line for line in said if line[3].startswith("mail runs"))
    assert runs[:3] == (1, "D1", "model")
    assert 'with {"to": "bob"}; scenario approved it with other parameters (event' in runs[3]
    assert (2, "D2", "human", "answered: reject - by scenario; they said: Enough.") in said
    refused = next(line for line in said if line[3].startswith("mail does not run (rejected)"))
    assert refused[:3] == (2, "D3", "human")
    assert (3, "G1", "engine", "the run is completed") in said


def test_failures_refusals_and_limits_have_their_seats(tmp_path: Path) -> None:
    broken = calls(("nothing", {}))
    failing = {"look": [{"error": {"message": "lost", "code": "gone"}}]}
    said = lines(
        explained(
            tmp_path,
            limits={"maxTurns": 3},
            replies=[{"error": {"status": 503}}, {"raw": "{"}, broken, LOOK, DONE],
            actions=failing,
            expect={"status": "failed"},
        )
    )
    seats = {(seat, who) for _, seat, who, _ in said}
    assert {("A1", "client"), ("C2", "engine"), ("C4", "engine"), ("D4", "engine")} <= seats
    assert any(seat == "F3" and "failed (limit)" in text for _, seat, _, text in said)
    assert any("look failed - gone: lost" in text for _, _, _, text in said)


def test_a_call_that_nobody_was_asked_about_says_so(tmp_path: Path) -> None:
    said = lines(explained(tmp_path, replies=[LOOK, DONE], realActions=["look"]))
    assert (
        1,
        "D1",
        "model",
        'look runs - with {"item": 1}; the policy asks nobody about it',
    ) in said


def test_turns_of_runs_side_by_side_stay_together() -> None:
    def event(seq: int, run: str, kind: str, **data: Any) -> dict[str, Any]:
        turn = {} if kind == "run.created" else {"turn": 1}
        return {
            "seq": seq,
            "ts": 1.0,
            "runId": run,
            "type": kind,
            "decidedBy": "model",
            "data": data,
            **turn,
        }

    def made(seq: int, run: str, agent: str) -> dict[str, Any]:
        return event(seq, run, "run.created", agent=agent, model="m", specHash="0", message="Go.")

    events = [made(1, "run_1", "chief"), made(2, "run_1.a", "one"), made(3, "run_1.b", "two")]
    for seq, run in enumerate(("run_1.a", "run_1.b", "run_1.a", "run_1.b"), 4):
        events.append(event(seq, run, "guard.repeated", count=seq))
    explanation = explain(events)
    assert [[one.seq for one in chapter.decisions] for chapter in explanation.chapters] == [
        [1],
        [2],
        [3],
        [4, 6],
        [5, 7],
    ]
    assert "turn 1 of one (a)" in explanation.text()


def test_an_unknown_type_of_event_is_shown_as_it_is() -> None:
    event = {
        "seq": 1,
        "ts": 0.0,
        "runId": "run_1",
        "type": "x.new",
        "decidedBy": "engine",
        "data": {"a": 1},
    }
    [chapter] = explain([event]).chapters
    [one] = chapter.decisions
    assert (one.seat, one.decision, one.grounds) == (NONE, "x.new", '{"a": 1}')
    assert explain([]).text().startswith(": , running")


@pytest.mark.parametrize("approve", ["--approve", "--reject"])
def test_runs_explain_prints_text_and_json(tmp_path: Path, approve: str) -> None:
    project, db = str(make_project(tmp_path / "p")), str(tmp_path / "runs.db")
    where = ("--project", project, "--db", db)
    run = json.loads(loopagent("run", "mailer", "Go.", *where, "--json").stdout)
    request = run["requests"][0]["requestId"]
    loopagent("requests", "answer", request, *where, approve)
    done = loopagent("runs", "explain", run["id"], *where)
    assert done.returncode == 0, done.stderr
    assert "turn 1\n" in done.stdout
    assert "  D2  human   answered: " in done.stdout
    assert "  D2  Is it allowed?" in done.stdout
    made = json.loads(loopagent("runs", "explain", run["id"], *where, "--json").stdout)
    assert made["status"] == "completed"
    assert made["decidedBy"]["human"] >= 1
    first = made["chapters"][0]["decisions"][0]
    assert (first["seat"], first["question"], first["seq"]) == ("A1", "Which model is asked?", 1)
