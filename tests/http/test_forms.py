"""A form over HTTP: checked field by field, open until it fits, typed when it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.http.server import make_project, serving


Json = dict[str, Any]
FORM = {
    "questions": [
        {"id": "count", "label": "Count", "type": {"type": "number", "max": 9}, "required": True},
        {"id": "day", "label": "Day", "type": {"type": "date"}},
    ]
}


def test_a_form_stays_open_until_it_fits_and_comes_back_typed(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    ask = {"message": "Tell me.", "nextStep": {"type": "Chat"}, "responseForm": FORM}
    end: Json = {"message": "Thanks.", "taskComplete": True, "responseForm": FORM}
    end["when"] = {"contains": "Count: 3"}
    (project / "scripts" / "looker.jsonl").write_text(f"{json.dumps(ask)}\n{json.dumps(end)}\n")
    with serving(project, tmp_path / "runs.db") as (client, _):
        asked = {"agent": "looker", "message": "Go."}
        run: Json = client.post("/runs", params={"wait": 10}, json=asked).json()
        assert (run["state"]["state"], run["state"]["ask"]["kind"]) == ("followup", "question")
        url = f"/requests/{run['state']['ask']['requestId']}/answer"
        values = {"count": "12", "day": "2026-02-30", "more": 1}
        wrong = client.post(url, json={"decision": "answer", "values": values})
        assert wrong.status_code == 422
        assert {one["pointer"] for one in wrong.json()["errors"]} == {
            "/values/count",
            "/values/day",
            "/values/more",
        }
        good = {"decision": "answer", "values": {"count": " 3 ", "day": ""}}
        assert client.post(url, json=good).status_code == 200
        assert client.post(url, json=good).status_code == 409
        run = client.get(f"/runs/{run['id']}", params={"wait": 10}).json()
        assert (run["status"], run["message"]) == ("completed", "Thanks.")
        assert [one["id"] for one in run["form"]["questions"]] == ["count", "day"]
        page = client.get(f"/runs/{run['id']}/events", params={"limit": 1000}).json()
        [resolved] = [one for one in page["events"] if one["type"] == "request.resolved"]
        assert (resolved["decidedBy"], resolved["data"]["values"]) == ("human", {"count": 3})
