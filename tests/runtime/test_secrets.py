"""No secret gets into what a run stores, shows, sends to a model or logs."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from loopagent import ActionContext, ActionError, Agent, App, ConfigError, action, logs
from loopagent.project import load_project
from loopagent.runtime.attempts import RetryPolicy
from tests.fakes.provider import FakeProvider, Said
from tests.http.server import log_of, make_project, serving


pytestmark = pytest.mark.anyio
KEY = "key-CANARY-1/a"
TOKEN = "tok-CANARY-2"
ENV = {"LOOPAGENT_API_KEY": KEY, "ERP_TOKEN": TOKEN}
MARKS = ("CANARY", "Q0FOQVJZ", quote(KEY, safe=""))


HEARD: list[asyncio.Event] = []


@action(effects="read")
async def echo(context: ActionContext, how: str) -> Any:
    """Give back what the remote side said, which repeats the request."""
    if how == "give":
        await HEARD[-1].wait()  # progress is told only to whoever listens
    context.progress(f"sending {TOKEN}")
    coded = base64.b64encode(f"user:{TOKEN}".encode()).decode()
    told = {
        "url": f"https://x/?key={quote(KEY, safe='')}",
        "header": f"Basic {coded}",
        TOKEN: [KEY],
    }
    if how == "fail":
        raise ActionError(f"401 for {told}", code="remote")
    if how == "crash":
        raise RuntimeError(json.dumps(told))
    return "long " * 4000 + KEY if how == "long" else told


def step(how: str) -> dict[str, Any]:
    call = {"name": "echo", "params": {"how": how}}
    return {"taskComplete": False, "nextStep": {"type": "Actions", "actions": [call]}}


def clean(text: str) -> bool:
    return not [one for one in MARKS if one in text]


async def test_a_run_keeps_no_secret(tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    stream = io.StringIO()
    with FakeProvider() as provider:
        agent = Agent("echoer", model=f"{provider.url}#script", actions=[echo])
        app = App(
            agents=[agent],
            env=ENV,
            secrets=["ERP_TOKEN"],
            store=f"sqlite:///{db}",
            retry=RetryPolicy(max_tries=2, first_delay_seconds=0.01),
        )
        handler = logs.set_up(mask=app.redactor.mask, level="debug", form="json", stream=stream)
        try:
            provider.say(
                *(step(how) for how in ("give", "fail", "crash", "long")),
                Said(f"the key is {KEY}"),
                {"taskComplete": True, "message": f"Never tell {TOKEN}."},
            )
            async with app:
                HEARD.append(asyncio.Event())
                view = await app.start("echoer", "Go.")
                events = []
                async for one in app.events(view.id):
                    events.append(one)
                    HEARD[-1].set()
                view = await app.get(view.id)
        finally:
            logging.getLogger().removeHandler(handler)
            logging.getLogger(logs.NAME).setLevel(logging.NOTSET)
        requests = json.dumps([one.body for one in provider.seen])
    assert view.state.status == "completed"
    assert view.state.result is not None
    assert view.state.result.message == "Never tell [redacted]."
    told = json.dumps(events)
    assert "action.progress" in told
    assert told.count("[redacted]") > 5
    assert clean(told), told
    assert clean(requests), requests
    assert clean(stream.getvalue()), stream.getvalue()
    for file in tmp_path.iterdir():
        assert clean(file.read_bytes().decode("latin-1")), file


async def test_a_failing_provider_that_repeats_the_key_does_not_tell_it() -> None:
    with FakeProvider() as provider:
        agent = Agent("echoer", model=f"{provider.url}#echo", actions=[echo])
        env = {"LOOPAGENT_API_KEY": "plain-other-41", "OTHER": "plain-secret-42"}
        app = App(agents=[agent], env=env, secrets=["OTHER"])
        async with app:
            view = await app.start("echoer", "Go.")
            events = json.dumps([one async for one in app.events(view.id)])
    assert "run.failed" in events
    assert "plain-secret-42" not in events


def test_secrets_are_declared_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "loopagent.toml").write_text('secrets = ["ERP_TOKEN"]\n')
    assert load_project(tmp_path, env={}).settings.secrets == ("ERP_TOKEN",)
    named = load_project(tmp_path, env={"LOOPAGENT_SECRETS": "A_B, C"}).settings.secrets
    assert named == ("A_B", "C")
    with pytest.raises(ConfigError, match="cannot be masked"):
        App(env={"PIN": "1234"}, secrets=["PIN"])


SPILL = '''
import os
from loopagent import action

@action(effects="read")
async def look(item: int) -> str:
    """Look at an item."""
    raise RuntimeError("no luck with " + os.environ["ERP_TOKEN"])
'''


def test_a_server_logs_what_it_does_and_no_secret(tmp_path: Path) -> None:
    project, db = make_project(tmp_path / "p"), tmp_path / "runs.db"
    (project / "actions" / "spill.py").write_text(SPILL)
    tools = project / "actions" / "tools.py"
    tools.write_text(tools.read_text().replace("def look(", "def peek("))
    (project / "loopagent.toml").write_text('secrets = ["ERP_TOKEN"]\n')
    with serving(project, db, ERP_TOKEN=TOKEN) as (client, _):
        made = client.post("/runs?wait=10", json={"agent": "looker", "message": "Go."})
        events = client.get(f"/runs/{made.json()['id']}/events").text
    lines = [json.loads(line) for line in log_of(db).read_text().splitlines()]
    assert made.status_code == 201
    assert "no luck with [redacted]" in events
    assert clean(events)
    assert clean(log_of(db).read_text())
    ended = [one for one in lines if one["event"] in {"effect.complete", "effect.failed"}]
    assert [one["kind"] for one in ended] == ["call_model", "run_action", "call_model"]
    assert [one["turn"] for one in ended] == [1, 1, 2]
    assert ended[1] | {"time": ""} == {
        "time": "",
        "level": "info",
        "logger": "loopagent",
        "event": "effect.failed",
        "run_id": made.json()["id"],
        "turn": 1,
        "effect_id": "1:action.0",
        "kind": "run_action",
        "code": "exception",
    }
