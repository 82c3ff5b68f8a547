"""A deploy while runs wait: other agents, other code; what waits goes on under the rules it started with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx2

from tests.http.server import serving


ACTIONS = '''
from loopagent import action

@action(effects="write")
async def store(text: str) -> str:
    """Store a text."""
    return "{version} stored " + text
'''
ASK = {"taskComplete": False, "message": "Which colour?", "nextStep": {"type": "Chat"}}
STORE = {
    "taskComplete": False,
    "nextStep": {"type": "Actions", "actions": [{"name": "store", "params": {"text": "red"}}]},
}
DONE = {
    "taskComplete": True,
    "message": "Stored.",
    "payloadChangeRequest": {"newElements": {"colour": "red"}},
}
AGENT = """
name: clerk
model: scripted:script.jsonl
instructions: {instructions}
actions: [store]
approval: {{write: {approval}}}
limits: {{maxTurns: {turns}}}
"""


def deploy(folder: Path, *, version: str, approval: str, turns: int) -> Path:
    """Write one version of the project over another."""
    for name in ("agents", "actions"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "actions" / "tools.py").write_text(ACTIONS.replace("{version}", version))
    text = AGENT.format(instructions=f"Rules of {version}.", approval=approval, turns=turns)
    (folder / "agents" / "clerk.agent.yaml").write_text(text)
    lines = [json.dumps(one) for one in (ASK, STORE, DONE)]
    (folder / "script.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def answered(client: httpx2.Client, run: dict[str, Any], **answer: Any) -> dict[str, Any]:
    """The run once it has heard an answer and waits or ends again."""
    (ask,) = run["requests"]
    done = client.post(f"/requests/{ask['requestId']}/answer", json=answer)
    assert done.status_code == 200, done.text
    found: dict[str, Any] = client.get(f"/runs/{run['id']}", params={"wait": 30}).json()
    return found


def test_a_run_goes_on_under_the_rules_it_started_with(tmp_path: Path) -> None:
    folder, db = tmp_path / "project", tmp_path / "runs.db"
    body = {"agent": "clerk", "message": "Store a colour."}
    first = deploy(folder, version="first", approval="auto", turns=10)
    with serving(first, db) as (client, _):
        old = client.post("/runs", params={"wait": 20}, json=body).json()
        assert old["state"]["state"] == "followup"
    second = deploy(folder, version="second", approval="ask", turns=1)
    with serving(second, db) as (client, _):
        done = answered(client, old, decision="answer", feedback="Red.")
        assert (done["status"], done["payload"]) == ("completed", {"colour": "red"})
        prompt = client.get(f"/runs/{old['id']}/turns/3").json()["prompt"]
        assert (prompt["exact"], "Rules of first." in prompt["system"]) == (True, True)
        events = client.get(f"/runs/{old['id']}/events", params={"limit": 1000}).json()["events"]
        (stored,) = [one["data"] for one in events if one["type"] == "action.completed"]
        assert stored["result"] == "second stored red"  # the code of today, under the rules of then
        new = client.post("/runs", params={"wait": 20}, json=body).json()
        over = answered(client, new, decision="answer", feedback="Red.")
        assert (over["status"], over["reason"]) == ("failed", "limit")


def test_an_agent_that_is_gone_ends_its_waiting_runs_in_words(tmp_path: Path) -> None:
    folder, db = tmp_path / "project", tmp_path / "runs.db"
    body = {"agent": "clerk", "message": "Store a colour."}
    with serving(deploy(folder, version="first", approval="auto", turns=10), db) as (client, _):
        run = client.post("/runs", params={"wait": 20}, json=body).json()
    (folder / "agents" / "clerk.agent.yaml").rename(folder / "agents" / "other.agent.yaml")
    text = (folder / "agents" / "other.agent.yaml").read_text()
    (folder / "agents" / "other.agent.yaml").write_text(text.replace("name: clerk", "name: other"))
    with serving(folder, db) as (client, _):
        done = answered(client, run, decision="answer", feedback="Red.")
        assert done["status"] == "completed", done
        events = client.get(f"/runs/{run['id']}/events", params={"limit": 1000}).json()["events"]
        (refused,) = [one["data"] for one in events if one["type"] == "action.completed"]
        assert (refused["ok"], refused["error"]["code"]) == (False, "unknown_action")


EARLIER = Path(__file__).parent.parent / "vectors" / "runs_1"
"""A project and a database with waiting runs, as the first stored format was written."""


def test_runs_stored_by_an_earlier_version_go_on(tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    shutil.copy(EARLIER / "runs.db", db)
    with serving(EARLIER / "project", db) as (client, _):
        rows = client.get("/runs", params={"limit": 100}).json()["runs"]
        waiting = [one for one in rows if one["status"] == "running"]
        assert {one["agent"] for one in waiting} == {"asker", "booker", "looper", "planner", "lead"}
        for one in waiting:
            run = client.get(f"/runs/{one['id']}").json()
            while run["status"] == "running":
                kind = run["requests"][0]["kind"]
                answer = {"decision": "answer", "feedback": "Go on."}
                run = answered(
                    client, run, **(answer if kind == "question" else {"decision": "approve"})
                )
            assert (run["status"], run["message"]) == ("completed", "Done."), run
            page = client.get(f"/runs/{run['id']}/events", params={"limit": 1000}).json()
            assert [event["seq"] for event in page["events"]] == list(range(1, run["seq"] + 1))
