"""Low-code actions in a project folder: loaded, named by agents, approved, run, and without a secret anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopagent.cli.opening import open_app
from loopagent.errors import ConfigError
from loopagent.project import Project, load_project
from tests.fakes.web import Got, Reply, Web, as_json
from tests.folders import filled


pytestmark = pytest.mark.anyio
CANARY = "tok-CANARY-1"
ACTION = """\
name: orders.cancel
description: Cancels an order.
effects: external
secrets: [shop]
params:
  type: object
  required: [order]
  properties: {{order: {{type: string}}}}
egress: {{hosts: [127.0.0.1], ports: [{port}]}}
run:
  kind: http
  method: POST
  url: {url}/orders/{{order}}/cancel
  auth: {{type: bearer, token: {{secret: shop}}}}
"""
SETTINGS = """\
[egress]
privateNetworks = ["127.0.0.0/8"]
[credentials.shop]
file = "shop.token"
hosts = ["127.0.0.1"]
"""
AGENT = "name: clerk\nmodel: scripted:script.jsonl\nactions: [orders.cancel]\n"
SCRIPT = [
    {
        "taskComplete": False,
        "nextStep": {
            "type": "Actions",
            "actions": [{"name": "orders.cancel", "params": {"order": "a/1"}}],
        },
    },
    {"taskComplete": True, "message": "Cancelled."},
]


def echo(got: Got) -> Reply:
    return as_json({"cancelled": True, "you": got.headers["authorization"]})


@pytest.fixture
def web() -> Iterator[Web]:
    with Web(echo) as running:
        yield running


def made(folder: Path, web: Web, **files: str) -> Path:
    given = {
        "actions/cancel.action.yaml": ACTION.format(url=web.url, port=web.port),
        "loopagent.toml": SETTINGS,
        "shop.token": CANARY + "\n",
        "agents/clerk.agent.yaml": AGENT,
        "script.jsonl": "\n".join(map(json.dumps, SCRIPT)),
        **files,
    }
    return filled(folder, **given)


def complaints(folder: Path) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load_project(folder, env={})
    return [one.removeprefix(f"{folder}/") for one in error.value.problems]


async def test_an_agent_uses_an_action_after_approval(tmp_path: Path, web: Web) -> None:
    project: Project = load_project(made(tmp_path, web), env={})
    db = tmp_path / "runs.db"
    async with open_app(project, str(db)) as app:
        run = await app.start("clerk", "Cancel a/1.")
        run = await app.wait(run.id, timeout_seconds=30)
        (request,) = (await app.requests(status="open"))[0]
        assert web.seen == []
        assert request.body["subject"]["action"] == "orders.cancel"
        await app.answer(request.id, decision="approve")
        run = await app.wait(run.id, timeout_seconds=30)
        events = json.dumps([one async for one in app.events(run.id)])
    assert run.state.status == "completed"
    assert web.seen[0].target == "/orders/a%2F1/cancel"
    assert web.seen[0].headers["authorization"] == f"Bearer {CANARY}"
    assert "[redacted]" in events
    assert "CANARY" not in events
    assert b"CANARY" not in b"".join(path.read_bytes() for path in tmp_path.glob("runs.db*"))


async def test_the_agent_sees_what_the_action_is_for(tmp_path: Path, web: Web) -> None:
    project = load_project(made(tmp_path, web), env={})
    async with open_app(project, "memory://") as app:
        prompt = app.system(project.agents["clerk"].spec)
    assert "orders.cancel" in prompt
    assert "Cancels an order." in prompt
    assert "127.0.0.1" not in prompt
    assert "shop" not in prompt


def test_a_secret_that_the_operator_did_not_set_up(tmp_path: Path, web: Web) -> None:
    folder = made(
        tmp_path,
        web,
        **{"loopagent.toml": SETTINGS.replace("credentials.shop", "credentials.shap")},
    )
    assert complaints(folder) == [
        "actions/cancel.action.yaml:4:11: secrets[0]: there is no secret 'shop'; did you mean shap?"
    ]
    folder = made(tmp_path, web, **{"loopagent.toml": ""})
    assert complaints(folder)[0].endswith("; add [credentials.shop] to loopagent.toml")


def test_a_secret_that_is_for_other_hosts(tmp_path: Path, web: Web) -> None:
    text = SETTINGS.replace('hosts = ["127.0.0.1"]', 'hosts = ["shop.example.com"]')
    (found,) = complaints(made(tmp_path, web, **{"loopagent.toml": text}))
    assert "the secret shop is not for 127.0.0.1" in found


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"127.0.0.0/8"', '"inside"', "is no network; write it like 10.0.0.0/8"),
        ('hosts = ["127.0.0.1"]', 'hosts = ["https://x"]', "is no host"),
        ('file = "shop.token"\n', "", "give either env or file"),
        ('hosts = ["127.0.0.1"]', "hosts = []", "at least 1"),
    ],
)
def test_settings_that_are_wrong(tmp_path: Path, web: Web, old: str, new: str, told: str) -> None:
    found = complaints(made(tmp_path, web, **{"loopagent.toml": SETTINGS.replace(old, new)}))
    assert any("loopagent.toml" in one and told in one for one in found), found


def test_a_short_secret_is_refused_at_once(tmp_path: Path, web: Web) -> None:
    project = load_project(made(tmp_path, web, **{"shop.token": "abc"}), env={})
    with pytest.raises(ConfigError, match="fewer than 6 characters"):
        open_app(project, "memory://")


def test_names_are_taken_once(tmp_path: Path, web: Web) -> None:
    text = ACTION.format(url=web.url, port=web.port)
    python = "from loopagent import action\n@action(name='orders.cancel')\ndef it() -> int:\n    'X.'\n    return 1\n"
    files = {"actions/other.action.yaml": f"{text}---\n{text}", "actions/more.py": python}
    found = complaints(made(tmp_path, web, **files))
    assert [one.split(" ")[0] for one in found] == [
        "actions/cancel.action.yaml:1:1:",
        "actions/other.action.yaml:1:1:",
        "actions/other.action.yaml:16:1:",
    ]
    assert "another action is named orders.cancel too, in Python; rename one" in found[0]


def test_a_file_that_would_be_ignored(tmp_path: Path, web: Web) -> None:
    (found,) = complaints(made(tmp_path, web, **{"actions/x.yaml": "name: x"}))
    assert found == "actions/x.yaml:1:1: (file): would be ignored; name it x.action.yaml"


def test_a_deprecated_action_is_a_warning(tmp_path: Path, web: Web) -> None:
    text = ACTION.format(url=web.url, port=web.port) + "deprecated: true\n"
    project = load_project(made(tmp_path, web, **{"actions/cancel.action.yaml": text}), env={})
    assert project.warnings == ["agent clerk: the action orders.cancel is deprecated"]


PIPE = """\
name: all
description: Does all.
effects: {effects}
approval: {{policy: {policy}}}
run:
  kind: pipeline
  steps:
  - {{id: one, action: {action}, with: {given}}}
"""


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"action": "orders.cancle"},
            "there is no action 'orders.cancle'; did you mean orders.cancel?",
        ),
        ({"action": "all", "given": "{}"}, "all leads back to all: a circle"),
        ({"effects": "read"}, "orders.cancel has external effects, but the pipeline says read"),
        ({"given": "{}"}, "the parameter 'order' of orders.cancel is missing"),
        ({"given": "{order: 5}"}, "must be of type string"),
    ],
)
def test_pipelines_fit_what_they_call(
    tmp_path: Path, web: Web, changes: dict[str, str], told: str
) -> None:
    given = {
        "effects": "external",
        "policy": "ask",
        "action": "orders.cancel",
        "given": "{order: x}",
    }
    text = PIPE.format(**{**given, **changes})
    found = complaints(made(tmp_path, web, **{"actions/all.action.yaml": text}))
    assert any(told in one for one in found), found


def test_a_pipeline_does_not_open_what_is_closed(tmp_path: Path, web: Web) -> None:
    text = ACTION.format(url=web.url, port=web.port) + "approval: {policy: never}\n"
    pipe = PIPE.format(
        effects="external", policy="auto", action="orders.cancel", given="{order: x}"
    )
    files = {"actions/cancel.action.yaml": text, "actions/all.action.yaml": pipe}
    (found,) = complaints(made(tmp_path, web, **files))
    assert "has approval never; the pipeline needs" in found
