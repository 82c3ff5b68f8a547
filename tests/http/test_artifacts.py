"""Files over HTTP: attached as base64, listed, handed out so that no browser runs them."""

from __future__ import annotations

import base64
from pathlib import Path

from tests.http.server import make_project, serving


PAGE = b"<script>alert(1)</script>"


def test_files_go_in_and_come_out_as_they_were(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    with serving(project, tmp_path / "runs.db") as (client, _):
        data = base64.b64encode(PAGE).decode()
        body = {
            "agent": "looker",
            "message": "Look.",
            "attachments": [{"name": "pagé.html", "data": data}],
        }
        made = client.post("/runs", params={"wait": 10}, json=body)
        assert made.status_code == 201, made.text
        run = made.json()["id"]
        [listed] = client.get(f"/runs/{run}/artifacts").json()["artifacts"]
        assert (listed["handle"], listed["name"], listed["size"]) == ("A", "pagé.html", len(PAGE))
        got = client.get(f"/runs/{run}/artifacts/a")
        assert got.content == PAGE, got.text
        assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''pag%C3%A9.html"
        assert got.headers["x-content-type-options"] == "nosniff"
        by_hash = client.get(f"/artifacts/{listed['artifactId'].upper()}")
        assert (by_hash.content, by_hash.headers["content-disposition"]) == (
            PAGE,
            got.headers["content-disposition"],
        )
        unknown = client.get(f"/artifacts/{'0' * 64}")
        assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_artifact")
        assert "sandbox" in got.headers["content-security-policy"]
        missing = client.get(f"/runs/{run}/artifacts/B")
        assert (missing.status_code, missing.json()["code"]) == (404, "unknown_artifact")
        body["attachments"] = [{"name": "x", "data": "not base64!"}]
        wrong = client.post("/runs", json=body)
        assert wrong.json()["code"] == "invalid_attachments"
        assert wrong.json()["errors"][0]["pointer"] == "/attachments/0/data"
        assert client.get("/runs/run_other/artifacts").status_code == 404
