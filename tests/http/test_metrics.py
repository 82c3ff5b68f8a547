"""`/metrics` and traces of a real server: who may look, what is counted, whose trace a run belongs to."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import httpx2

from tests.http.server import log_of, make_project, serving


OWNER = {"authorization": "Bearer server-token"}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def numbers(text: str) -> dict[str, float]:
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def start(client: httpx2.Client, agent: str, **headers: str) -> dict[str, Any]:
    body = {"agent": agent, "message": "SECRET-TASK"}
    answer = client.post("/runs", params={"wait": 20}, json=body, headers={**OWNER, **headers})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_metrics_are_shown_to_who_may_use_the_api(tmp_path: Path) -> None:
    made = make_project(tmp_path / "p")
    with serving(made, tmp_path / "db", LOOPAGENT_API_TOKEN="server-token") as (client, _):
        address = str(client.base_url).replace("/api/v1/", "/metrics")
        assert client.get(address).status_code == 401
        start(client, "looker")
        start(client, "mailer")  # waits for a person
        answer = client.get(address, headers=OWNER)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        found = numbers(answer.text)
    assert found['loopagent_turns_total{gen_ai_agent_name="looker",loopagent_turn_outcome="step"}'] == 1  # fmt: skip
    assert found['loopagent_runs_started_total{gen_ai_agent_name="mailer"}'] == 1
    ended = (
        'loopagent_runs_ended_total{gen_ai_agent_name="looker",loopagent_run_status="completed"}'
    )
    assert found[ended] == 1
    assert found["loopagent_requests_waiting"] == 1
    assert (found["loopagent_queue"], found["loopagent_runs_active"]) == (0, 0)
    calls = [
        name for name in found if name.startswith("gen_ai_client_operation_duration_seconds_count")
    ]
    assert sum(found[name] for name in calls) == 3
    assert "SECRET-TASK" not in answer.text
    assert not re.search(r"run_[0-9a-f]{8}", answer.text)  # no ids: few series


def test_metrics_can_be_off(tmp_path: Path) -> None:
    made = make_project(tmp_path / "p")
    with serving(made, tmp_path / "db", LOOPAGENT_METRICS="false") as (client, _):
        answer = client.get(str(client.base_url).replace("/api/v1/", "/metrics"))
        assert (answer.status_code, answer.json()["code"]) == (404, "metrics_off")


def test_a_call_brings_its_trace(tmp_path: Path) -> None:
    made, db = make_project(tmp_path / "p"), tmp_path / "db"
    env = {
        "LOOPAGENT_API_TOKEN": "server-token",
        "LOOPAGENT_OTEL": "true",
        "LOOPAGENT_LOG_FORMAT": "json",
        "OTEL_TRACES_EXPORTER": "console",
        "OTEL_METRICS_EXPORTER": "none",
    }
    with serving(made, db, **env) as (client, process):
        run = start(client, "looker", traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
        process.send_signal(signal.SIGTERM)
        told, _ = process.communicate(timeout=30)
    assert '"parent_id": "0x00f067aa0ba902b7"' in told
    assert told.count(f'"trace_id": "0x{TRACE}"') >= 6
    assert '"name": "invoke_agent looker"' in told
    assert '"service.name": "loopagent"' in told
    assert "SECRET-TASK" not in told
    lines = [json.loads(one) for one in log_of(db).read_text().splitlines()]
    effects = [one for one in lines if one["event"] == "effect.complete"]
    assert effects
    assert all(one["run_id"] == run["id"] and one["turn"] for one in effects)
