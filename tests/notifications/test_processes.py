"""Real processes: notifications survive a kill, several senders share them, and people look at them and replay them."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.http.server import log_of, make_project, serving
from tests.notifications.receivers import ENV, SECRET, Hook, until


SETTINGS = """
[egress]
private_networks = ["127.0.0.0/8"]

[notifications]
base_url = "https://agents.example"
first_retry_seconds = 0.2
timeout_seconds = 1

[[notifications.webhooks]]
name = "ops"
url = "{url}"
"""


def project(folder: Path, hook: Hook) -> Path:
    made = make_project(folder)
    (made / "loopagent.toml").write_text(SETTINGS.format(url=hook.url))
    return made


def test_a_kill_loses_none_and_repeats_only_under_the_same_id(tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    with Hook(answers=[0] * 20) as hook:
        made = project(tmp_path / "p", hook)
        with serving(made, db, **ENV) as (client, process):
            run = {"agent": "looker", "message": "Look"}
            ids = [
                client.post("/runs?wait=30", json=run).json()["id"],
                client.post("/runs?wait=30", json={**run, "agent": "planner"}).json()["id"],
            ]
            until(lambda: hook.calls)  # the sender waits for an answer that does not come
            process.kill()
            process.wait()
        hook.answers.clear()
        with ExitStack() as stack:
            clients = [stack.enter_context(serving(made, db, **ENV))[0]]
            second = tmp_path / "second"
            second.mkdir()
            (second / "link.db").symlink_to(db)
            clients.append(stack.enter_context(serving(made, second / "link.db", **ENV))[0])

            def rows() -> Any:
                found = clients[0].get("/notifications").json()["notifications"]
                return found if all(one["status"] == "sent" for one in found) else None

            found = until(rows)
    assert {one["runId"] for one in found} >= set(ids)
    assert Counter(one["type"] for one in found)["run.completed"] == 1
    assert Counter(one["type"] for one in found)["request.created"] >= 1
    assert {one.id for one in hook.calls} == {one["id"] for one in found}
    assert len({(one.id, one.raw) for one in hook.calls}) == len(found)
    assert all(one.signed_with(SECRET) for one in hook.calls)
    log = log_of(db).read_text()
    assert SECRET not in log
    assert "in-the-address" not in log


def test_an_address_of_a_run_and_a_replay(tmp_path: Path) -> None:
    with Hook() as own, Hook() as hook:
        made = project(tmp_path / "p", hook)
        with serving(made, tmp_path / "runs.db", **ENV) as (client, _):
            run = {"agent": "looker", "message": "Look", "webhook": own.url}
            view = client.post("/runs?wait=30", json=run).json()
            assert "in-the-address" not in json.dumps(view)
            until(lambda: own.calls and hook.calls)
            path = f"/notifications/{own.calls[0].id}"
            one = until(lambda: sent(client.get(path).json()))
            assert one["target"].startswith("http://127.0.0.1:")
            assert one["target"].endswith("/…")
            listed = client.get(f"/notifications?runId={view['id']}").json()
            assert len(listed["notifications"]) == 2
            assert client.post(f"{path}/replay").status_code == 202
            until(lambda: len(own.calls) == 2)
            assert own.calls[1].id == own.calls[0].id
            missing = client.post("/notifications/msg_0/replay")
            assert (missing.status_code, missing.json()["code"]) == (404, "unknown_notification")
            refused = client.post("/runs", json={**run, "webhook": "http://10.0.0.1/"})
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid_webhook")


def sent(row: Any) -> Any:
    return row if row["status"] == "sent" else None
