"""A sub-agent's question, answered over HTTP at the real server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx2

from tests.http.server import serving


AGENTS = {
    "lead": "subAgents:\n  - asker\n  - {agent: helper, downstream: [note], upstream: ['note:add']}\n",
    "asker": "",
    "helper": "",
}
SCRIPT = """
- {agent: lead, taskComplete: false, nextStep: {type: Sub-Agent, subAgents: [{name: asker, message: Ask.}, {name: helper, message: Help.}]}}
- {agent: asker, taskComplete: false, message: Which one?, nextStep: {type: Chat}}
- {agent: asker, taskComplete: true, message: Asked., payloadChangeRequest: {newElements: {answer: red}}}
- {agent: helper, taskComplete: true, message: Helped., payloadChangeRequest: {newElements: {note: x}}}
- {agent: lead, taskComplete: true, message: All.}
"""


def project(folder: Path) -> Path:
    """A lead and two agents that it may give work to."""
    (folder / "agents").mkdir(parents=True)
    (folder / "script.yaml").write_text(SCRIPT)
    for name, more in AGENTS.items():
        text = f"name: {name}\nmodel: scripted:script.yaml\n{more}"
        (folder / "agents" / f"{name}.agent.yaml").write_text(text)
    return folder


def waiting(client: httpx2.Client, run_id: str) -> dict[str, Any]:
    """The run once it waits for somebody."""
    for _ in range(400):
        run: dict[str, Any] = client.get(f"/runs/{run_id}", params={"wait": 5}).json()
        if run["state"]["state"] == "followup":
            return run
        time.sleep(0.02)
    raise AssertionError("it never waited")


def test_a_question_of_a_child_is_shown_with_its_path_and_answered(tmp_path: Path) -> None:
    with serving(project(tmp_path / "project"), tmp_path / "runs.db") as (client, _):
        body = {"agent": "lead", "message": "Go."}
        run_id = client.post("/runs", json=body).json()["id"]
        run = waiting(client, run_id)
        (ask,) = run["requests"]
        child = f"{run_id}.1.sub.0"
        assert (ask["agents"], ask["runId"]) == (["lead", "asker"], child)
        assert run["children"][0] == child
        (listed,) = client.get("/requests").json()["requests"]
        assert listed["body"]["agents"] == ["lead", "asker"]
        where = f"/requests/{ask['requestId']}/answer"
        answered = client.post(where, json={"decision": "answer", "feedback": "Red."})
        assert (answered.status_code, answered.json()["parentRunId"]) == (200, run_id)
        again = client.post(where, json={"decision": "answer", "feedback": "Blue."})
        assert again.status_code == 409
        run = client.get(f"/runs/{run_id}", params={"wait": 20}).json()
        assert (run["status"], run["payload"]) == ("completed", {"answer": "red", "note": "x"})
        tree = client.get(f"/runs/{run_id}/tree").json()
        assert [one["agent"] for one in tree["children"]] == ["asker", "helper"]
        assert client.get("/runs/nobody/tree").status_code == 404
        assert len(client.get("/runs").json()["runs"]) == 1
        assert len(client.get("/runs", params={"children": True}).json()["runs"]) == 3
        events = client.get(f"/runs/{run_id}/events", params={"limit": 1000}).json()["events"]
        assert {one["runId"] for one in events} == {run_id, child, f"{run_id}.1.sub.1"}
