"""Files for a run that goes on: over HTTP and at the command line; the model is told, an ended run takes none."""

from __future__ import annotations

import base64
from pathlib import Path

from tests.cli.commands import loopagent
from tests.http.server import make_project, serving


def test_files_are_given_to_a_run_that_waits(tmp_path: Path) -> None:
    project, db = make_project(tmp_path / "project"), tmp_path / "runs.db"
    with serving(project, db) as (client, _):
        body = {"agent": "mailer", "message": "Mail."}
        run = client.post("/runs", params={"wait": 10}, json=body).json()["id"]
        files = [
            ("attachments", ("C:\\a\\orders.csv", b"id\n7\n", "text/csv")),
            ("attachments", ("b.txt", b"hello", "text/plain")),
        ]
        made = client.post("/artifacts", data={"runId": run}, files=files)
        assert made.status_code == 201, made.text
        assert made.headers["location"] == f"/api/v1/runs/{run}/artifacts"
        known = [(one["handle"], one["name"], one["kind"]) for one in made.json()["artifacts"]]
        assert known == [("A", "orders.csv", "csv"), ("B", "b.txt", "text")]
        more = {"name": "c.json", "data": base64.b64encode(b"{}").decode()}
        made = client.post("/artifacts", json={"runId": run, "attachments": [more]})
        assert [one["handle"] for one in made.json()["artifacts"]] == ["C"]
        (tmp_path / "d.md").write_text("# D")
        place = ("--project", str(project), "--db", str(db))
        given = loopagent("runs", "attach", run, str(tmp_path / "d.md"), *place)
        assert "D: d.md" in given.stdout, given.stderr
        [request] = client.get("/requests").json()["requests"]
        client.post(f"/requests/{request['id']}/answer", json={"decision": "approve"})
        done = client.get(f"/runs/{run}", params={"wait": 10}).json()
        assert done["status"] == "completed"
        turn = client.get(f"/runs/{run}/turns/2").json()
        said = "\n".join(one["text"] for one in turn["prompt"]["messages"])
        assert "You were given files: A (orders.csv), B (b.txt)." in said
        assert "You were given files: D (d.md)." in said
        assert turn["prompt"]["exact"] is True
        late = client.post("/artifacts", data={"runId": run}, files=files)
        assert (late.status_code, late.json()["code"]) == (409, "run_ended")


def test_what_cannot_be_given_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    with serving(project, tmp_path / "runs.db") as (client, _):
        body = {"agent": "mailer", "message": "Mail."}
        run = client.post("/runs", params={"wait": 10}, json=body).json()["id"]
        file = ("attachments", ("a.txt", b"x"))
        tries = [
            ({"runId": "run_none"}, [file], 404, "unknown_run"),
            ({"runId": run}, [file] * 21, 413, "attachments_too_large"),
            ({}, [file], 422, "invalid_request"),
        ]
        for data, files, status, code in tries:
            answer = client.post("/artifacts", data=data, files=files)
            assert (answer.status_code, answer.json()["code"]) == (status, code)
        empty = client.post("/artifacts", json={"runId": run})
        assert (empty.status_code, empty.json()["code"]) == (422, "invalid_attachments")
        other = client.post("/artifacts", content=b"x", headers={"content-type": "text/plain"})
        assert other.status_code == 415
        assert client.get(f"/runs/{run}/artifacts").json()["artifacts"] == []
