"""Receivers that keep failing are disabled; what a full body and one of CloudEvents hold; whose notifications are whose."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from loopagent import App
from loopagent.cli.main import cli
from loopagent.errors import RequestError
from loopagent.http import create_api
from loopagent.notification_port import Notice
from tests.http.server import make_project
from tests.notifications.receivers import ENV, SECRET, Hook
from tests.notifications.test_webhooks import ASK, DONE, app, settings, settled


pytestmark = pytest.mark.anyio


def client_of(made: App) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=create_api(made, manage=False))
    return httpx2.AsyncClient(transport=transport, base_url="http://test/api/v1")


async def told(made: App, **how: Any) -> Notice:
    """The notification of the end of a new run, when nothing is left to do."""
    run = await made.start("clerk", "Do it", **how)
    [row] = await settled(made, run.id)
    return row


async def test_a_receiver_that_keeps_failing_is_disabled_until_somebody_enables_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "loopagent")
    once = {"give_up_seconds": 0, "disable_after": 2}
    with Hook(answers=[500, 204, 500, 500, 503]) as hook:
        async with app(settings(hook, **once), *[DONE] * 9) as made, client_of(made) as client:
            assert [(await told(made)).status for _ in range(3)] == ["failed", "sent", "failed"]
            [shown] = (await client.get("/notifications/receivers")).json()["receivers"]
            assert (shown["id"], shown["status"], shown["failures"]) == ("ops", "failing", 1)
            assert shown["target"] == f"{hook.url.partition('/hook')[0]}/…"
            await told(made)
            [shown] = (await client.get("/notifications/receivers")).json()["receivers"]
            assert (shown["status"], shown["error"]) == ("disabled", "it answered 500")
            assert "notification.receiver_disabled" in caplog.text

            kept = await told(made)
            assert (kept.status, len(hook.calls)) == ("failed", 4)
            assert "its receiver is disabled" in kept.attempts[-1].error
            with pytest.raises(RequestError, match="enable it first"):
                await made.notifications.replay(kept.id)

            enabled = await client.post("/notifications/receivers/ops/enable")
            assert (enabled.status_code, enabled.json()["status"]) == (200, "enabled")
            again = await client.post("/notifications/receivers/ops/enable")
            assert (again.status_code, again.json()["code"]) == (409, "not_disabled")
            nobody = await client.post("/notifications/receivers/nobody/enable")
            assert nobody.status_code == 404
            hook.answers.clear()
            await made.notifications.replay(kept.id)
            await settled(made)
            assert (await made.notifications.get(kept.id)).status == "sent"
            assert hook.calls[-1].id == kept.id


async def test_a_receiver_that_says_gone_is_disabled_at_once() -> None:
    with Hook(answers=[410]) as hook:
        async with app(settings(), *[DONE] * 9) as made:
            assert (await told(made, webhook=hook.url)).status == "failed"
            [shown] = await made.notifications.receivers.list()
            assert (shown.kind, shown.is_disabled) == ("run", True)
            assert "in-the-address" not in str(shown.public())
            assert shown.id.startswith("run-")
            assert (await told(made, webhook=hook.url)).status == "failed"
            assert len(hook.calls) == 1
            await made.notifications.receivers.enable(shown.id)
            assert (await told(made, webhook=hook.url)).status == "sent"
            assert await made.notifications.receivers.list() == []


async def test_a_full_body_holds_what_the_api_shows_without_secrets() -> None:
    secret = "hunter2-hunter2"
    ask = {"taskComplete": False, "nextStep": {"type": "Chat", "message": f"Use {secret}?"}}
    with Hook() as hook:
        full = settings(hook, wants={"payload": "full", "format": "cloudevents"})
        more = {"secret_values": [secret]}
        async with app(full, ask, DONE, **more) as made, client_of(made) as client:
            run = await made.start("clerk", "Do it")
            view = await made.wait(run.id, timeout_seconds=60)
            await settled(made)
            request = view.asks[0]["requestId"]
            card = (await client.get(f"/requests/{request}")).json()
            await made.answer(request, decision="answer", values={"answer": "yes"})
            await made.wait(run.id, timeout_seconds=60)
            await settled(made)
            ended = (await client.get(f"/runs/{run.id}")).json()
    first, last = hook.calls
    assert first.signed_with(SECRET)
    assert first.headers["content-type"] == "application/cloudevents+json"
    event = first.body
    assert {name: event[name] for name in ("specversion", "id", "source", "type", "subject")} == {
        "specversion": "1.0",
        "id": first.id,
        "source": f"/runs/{run.id}",
        "type": "loopagent.request.created",
        "subject": request,
    }
    assert event["datacontenttype"] == "application/json"
    assert event["time"].endswith("Z")
    assert secret not in first.raw.decode()
    sent = event["data"]["request"]
    looked_at = {name: card.pop(name) for name in ("mayAnswer", "preview")}
    assert looked_at == {"mayAnswer": True, "preview": None}
    assert {**sent, "body": None} == {**card, "body": None}
    assert sent["body"]["revision"] == card["body"]["revision"]
    run_sent = last.body["data"]["run"]
    assert {name: ended[name] for name in run_sent if name in ended} == run_sent


async def test_a_full_body_that_would_be_too_large_is_sent_thin() -> None:
    with Hook() as hook:
        full = settings(hook, wants={"payload": "full"}, max_payload_bytes=1_000)
        long = {"taskComplete": True, "message": "x" * 2_000}
        async with app(full, long) as made:
            await told(made)
    [call] = hook.calls
    assert call.body["data"]["truncated"] is True
    assert "run" not in call.body["data"]


async def test_the_key_of_a_tenant_lists_what_its_runs_tell() -> None:
    with Hook() as hook:
        async with app(settings(hook), ASK, ASK) as made, client_of(made) as client:
            for tenant in ("acme", ""):
                run = await made.start("clerk", "Do it", tenant=tenant)
                await made.wait(run.id, timeout_seconds=60)
            await settled(made)
            seen: dict[str | None, list[str]] = {}
            whose: tuple[str | None, ...] = ("acme", "", "other", None)
            for one_of in whose:
                key, _ = await made.keys.create("k", tenant=one_of, scopes=["admin"])
                listed = await client.get(
                    "/notifications", headers={"authorization": f"Bearer {key}"}
                )
                rows = listed.json()["notifications"]
                seen[one_of] = [(await made.get(one["runId"])).state.tenant for one in rows]
    assert seen == {"acme": ["acme"], "": [""], "other": [], None: ["", "acme"]}


def test_the_command_line_shows_receivers_and_enables_them(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "project")
    (folder / "loopagent.toml").write_text(
        '[notifications]\n[[notifications.webhooks]]\nname = "ops"\nurl = "http://127.0.0.1:9/x"\n'
    )
    where = ["--project", str(folder), "--db", str(tmp_path / "runs.db")]
    (tmp_path / "runs.db").touch()
    shown = CliRunner().invoke(cli, ["notifications", "receivers", *where, "--json"], env=ENV)
    assert '"status": "enabled"' in shown.stdout, shown.output
    refused = CliRunner().invoke(cli, ["notifications", "enable", "ops", *where], env=ENV)
    assert refused.exit_code != 0
    assert "not disabled" in str(refused.exception) + refused.output
