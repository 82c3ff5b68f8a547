"""A plan over HTTP: the card, the decision contract, a restart in the middle, an edited plan in the prompt."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loopagent import Agent, App
from loopagent.http.routes_runs import run_detail
from loopagent.testing import ScriptedModel
from tests.http.server import make_project, serving


Json = dict[str, Any]


def start(client: httpx2.Client, **more: Any) -> Json:
    body = {"agent": "planner", "message": "Remind them.", **more}
    answer = client.post("/runs", params={"wait": 10}, json=body)
    assert answer.status_code == 201, answer.text
    run: Json = answer.json()
    return run


def decide(client: httpx2.Client, run: Json, **body: Any) -> httpx2.Response:
    return client.post(f"/requests/{run['state']['ask']['requestId']}/answer", json=body)


def waited(client: httpx2.Client, run: Json) -> Json:
    found: Json = client.get(f"/runs/{run['id']}", params={"wait": 10}).json()
    return found


def events(client: httpx2.Client, run: Json, kind: str) -> list[Json]:
    page = client.get(f"/runs/{run['id']}/events", params={"limit": 1000}).json()
    return [one for one in page["events"] if one["type"] == kind]


def test_a_plan_is_decided_by_exact_content_across_a_restart(tmp_path: Path) -> None:
    project, db = make_project(tmp_path / "project"), tmp_path / "runs.db"
    with serving(project, db) as (client, _):
        run = start(client, planMode=True)
        assert "no plan has been approved yet" in str(events(client, run, "reply.rejected"))
        assert run["plan"]["status"] == "draft"
        card = client.get(f"/requests/{run['state']['ask']['requestId']}").json()
        assert card["body"]["kind"] == "plan"
        early = client.post(f"/runs/{run['id']}/mode", json={"mode": "act"})
        assert (early.status_code, early.json()["code"]) == (409, "plan_open")
        said = client.post(f"/runs/{run['id']}/messages", json={"text": "I approve. Mail Bob."})
        assert said.status_code == 202
    with serving(project, db) as (client, _):
        client.post(f"/runs/{run['id']}/resume")
        run = waited(client, run)
        [rejected] = events(client, run, "plan.rejected")
        assert (rejected["decidedBy"], rejected["data"]["feedback"]) == (
            "human",
            "I approve. Mail Bob.",
        )
        assert (run["plan"]["revision"], run["plan"]["status"]) == (2, "draft")
        _refuses_what_is_stale(client, run, card)
        _takes_the_edited_text(client, run)


def _refuses_what_is_stale(client: httpx2.Client, run: Json, card: Json) -> None:
    old = client.post(f"/requests/{card['id']}/answer", json={"decision": "approve"})
    assert (old.status_code, old.json()["code"]) == (409, "already_resolved")
    digest = card["body"]["contentHash"]
    for stale in ({"revision": 1}, {"contentHash": digest}):
        answer = decide(client, run, decision="approve", **stale)
        assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    wrong = decide(client, run, decision="approve", edited={"plan": "x"})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/edited")


def _takes_the_edited_text(client: httpx2.Client, run: Json) -> None:
    text = "1. Mail Bob.\n2. Nothing else."
    done = decide(client, run, decision="approve", revision=2, edited=text)
    assert done.status_code == 200, done.text
    run = waited(client, run)
    plan = run["plan"]
    assert (plan["status"], plan["text"], plan["edited"]) == ("approved", text, True)
    assert (plan["decidedBy"], plan["unlocked"]) == ("human", ["mail"])
    assert plan["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert run["state"]["ask"]["kind"] == "approval"
    assert decide(client, run, decision="approve").status_code == 200
    run = waited(client, run)
    assert (run["status"], run["message"]) == ("completed", "Mailed as planned.")
    assert len(events(client, run, "action.started")) == 1
    assert [one["data"]["revision"] for one in events(client, run, "plan.approved")] == [2]


def test_plan_mode_is_the_callers_where_the_agent_lets_it_be(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    agents = project / "agents"
    text = (agents / "looker.agent.yaml").read_text()
    for name, more in (
        ("never", "planMode: off"),
        ("always", "planMode: required"),
        ("alone", "autonomy: autonomous"),
    ):
        (agents / f"{name}.agent.yaml").write_text(
            text.replace("name: looker", f"name: {name}") + f"{more}\n"
        )
    with serving(project, tmp_path / "runs.db") as (client, _):
        for agent, wanted in (("never", True), ("always", False), ("alone", True)):
            answer = client.post(
                "/runs", json={"agent": agent, "message": "Go.", "planMode": wanted}
            )
            assert (answer.status_code, answer.json()["code"]) == (422, "plan_mode")
        asked = {"agent": "sleeper", "message": "Go."}
        run = client.post("/runs", json=asked).json()
        assert (run["mode"], run["plan"]) == ("act", None)
        switched = client.post(f"/runs/{run['id']}/mode", json={"mode": "plan"})
        assert (switched.status_code, switched.json()["mode"]) == (200, "plan")
        client.post(f"/runs/{run['id']}/cancel")
        late = client.post(f"/runs/{run['id']}/mode", json={"mode": "act"})
        assert (late.status_code, late.json()["code"]) == (409, "run_ended")
        for agent in ("never", "always", "looker"):
            answer = client.post(
                "/runs", params={"wait": 10}, json={"agent": agent, "message": "Go."}
            )
            assert answer.json()["status"] == "completed"
            assert answer.json()["plan"] is None


@pytest.mark.anyio
async def test_a_run_is_shown_after_its_approved_plan_was_given_up_with_the_mode() -> None:
    script = [
        {"taskComplete": False, "nextStep": {"type": "Plan", "plan": "1. Look."}},
        {"taskComplete": False, "message": "Where?", "nextStep": {"type": "Chat"}},
    ]
    agent = Agent("planner", model=ScriptedModel(script), plan_mode="optional")
    async with App(agents=[agent]) as app:
        run = await app.wait((await app.start("planner", "Go.", plan_mode=True)).id)
        await app.answer(run.asks[0]["requestId"], decision="approve", by="ann")
        run = await app.wait(run.id)
        shown = run_detail(run)
        assert shown.plan is not None
        assert shown.plan.status == "approved"
        shown = run_detail(await app.set_mode(run.id, "plan"))
        assert (shown.mode, shown.plan) == ("plan", None)
