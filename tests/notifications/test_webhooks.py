"""Webhooks of an app: what is sent, signed with what, tried again when, and where they may lead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from loopagent import Agent, App
from loopagent.egress import EgressSettings
from loopagent.errors import ConfigError, RequestError
from loopagent.models.scripted import ScriptedModel
from loopagent.notification_port import Notice
from loopagent.notifications import NotificationSettings
from loopagent.notifications.senders import Senders, Told
from loopagent.notifications.service import judged, public
from tests.notifications.receivers import ENV, SECRET, Hook


pytestmark = pytest.mark.anyio
DONE = {"taskComplete": True, "message": "Done."}
ASK = {"taskComplete": False, "nextStep": {"type": "Chat", "message": "Which one?"}}
HERE = EgressSettings(private_networks=("127.0.0.0/8",))


def settings(hook: Hook | None = None, **more: Any) -> NotificationSettings:
    given: dict[str, Any] = {"first_retry_seconds": 0.05, "timeout_seconds": 10, **more}
    if hook is not None:
        given["webhooks"] = [{"name": "ops", "url": hook.url, **given.pop("wants", {})}]
    return NotificationSettings.model_validate(given)


@asynccontextmanager
async def app(told: NotificationSettings, *replies: Any, **more: Any) -> AsyncIterator[App]:
    agent = Agent("clerk", model=ScriptedModel([*replies] or [DONE]))
    given: dict[str, Any] = {"env": ENV, "egress": HERE, **more}
    async with App(agents=[agent], notifications=told, **given) as made:
        yield made


async def settled(made: App, run_id: str | None = None) -> list[Notice]:
    """All notifications, when nothing is left to do; oldest first."""
    async with asyncio.timeout(30):
        while True:
            rows, _ = await made.notifications.list(run_id=run_id)
            if rows and all(one.due is None for one in rows):
                return rows[::-1]
            await asyncio.sleep(0.02)


async def test_a_request_and_an_end_are_told_of_with_signatures() -> None:
    with Hook() as hook:
        async with app(settings(hook, base_url="https://agents.example/x/"), ASK, DONE) as made:
            view = await made.start("clerk", "Do it")
            view = await made.wait(view.id, timeout_seconds=30)
            request = view.asks[0]["requestId"]
            await settled(made)
            await made.answer(request, decision="answer", values={"answer": "this"})
            await made.wait(view.id, timeout_seconds=30)
            rows = await settled(made)
    assert [one.kind for one in rows] == ["request.created", "run.completed"]
    first, last = hook.calls
    assert first.signed_with(SECRET)
    assert last.signed_with(SECRET)
    assert [one.id for one in hook.calls] == [one.id for one in rows]
    assert first.body["type"] == "request.created"
    assert first.body["data"]["requestId"] == request
    assert first.body["data"]["url"] == f"https://agents.example/x/requests/{request}"
    assert last.body["data"] == {
        "runId": view.id,
        "rootRunId": view.id,
        "agent": "clerk",
        "status": "completed",
        "url": f"https://agents.example/x/runs/{view.id}",
    }
    assert last.body["timestamp"].endswith("Z")


async def test_what_fails_is_sent_again_under_the_same_id() -> None:
    with Hook(answers=[500, 302, 200]) as hook:
        async with app(settings(hook)) as made:
            await made.start("clerk", "Do it")
            (row,) = await settled(made)
    assert row.status == "sent"
    assert [one.status for one in row.attempts] == [500, 302, 200]
    assert {one.id for one in hook.calls} == {row.id}
    assert len({one.raw for one in hook.calls}) == 1


async def test_a_receiver_that_never_answers_is_given_up() -> None:
    told = {"timeout_seconds": 0.2, "give_up_seconds": 0.3}
    with Hook(answers=[0] * 50) as hook:
        async with app(settings(hook, **told)) as made:
            await made.start("clerk", "Do it")
            (row,) = await settled(made)
            assert row.status == "failed"
            assert row.attempts[-1].error == "there was no answer in time"
            hook.answers.clear()
            again = await made.notifications.replay(row.id)
            assert (again.status, again.tries) == ("waiting", 0)
            (row,) = await settled(made)
    assert row.status == "sent"
    assert {one.id for one in hook.calls} == {row.id}


async def test_a_receiver_that_is_gone_is_asked_once() -> None:
    with Hook(answers=[410]) as hook:
        async with app(settings(hook)) as made:
            await made.start("clerk", "Do it")
            (row,) = await settled(made)
    assert (row.status, row.tries) == ("failed", 1)


async def test_a_run_may_name_an_address_of_its_own() -> None:
    with Hook() as hook, Hook() as ops:
        told = settings(ops, wants={"agents": ["another"]})
        async with app(told) as made:
            view = await made.start("clerk", "Do it", webhook=hook.url)
            (row,) = await settled(made, view.id)
    assert row.status == "sent"
    assert hook.calls[0].signed_with(SECRET)
    assert ops.calls == []
    assert "in-the-address" not in str(public(row))


async def test_receivers_hear_only_what_they_want() -> None:
    with Hook() as hook:
        told = settings(hook, wants={"events": ["run.failed", "run.cancelled"]})
        async with app(told, ASK) as made:
            view = await made.start("clerk", "Do it")
            await made.wait(view.id, timeout_seconds=30)
            await made.cancel(view.id, reason="Enough.")
            (row,) = await settled(made)
    assert row.kind == "run.cancelled"
    assert hook.calls[0].body["data"]["reason"] == "Enough."


@pytest.mark.parametrize(
    ("url", "egress", "more", "why"),
    [
        ("http://127.0.0.1/x", EgressSettings(), {}, "not allowed here"),
        ("http://metadata.google.internal/", EgressSettings(), {}, "not allowed here"),
        ("https://user:pass@hooks.example.com/", EgressSettings(), {}, "not allowed here"),
        ("https://hooks.example.com:8443/", EgressSettings(), {}, "not allowed here"),
        ("https://evil.example/", EgressSettings(), {"hosts": ["*.example.com"]}, "not allowed"),
        ("https://evil.example/", EgressSettings(hosts=("a.example",)), {}, "not allowed"),
        ("ftp://hooks.example.com/", EgressSettings(), {}, "not allowed here"),
        ("ops", EgressSettings(), {}, "no address"),
        ("https://hooks.example.com/|run.failed", EgressSettings(), {}, "no address"),
        ("https://hooks.example.com/", EgressSettings(), {"run_webhooks": False}, "run_webhooks"),
    ],
)
async def test_addresses_that_are_refused(
    url: str, egress: EgressSettings, more: dict[str, Any], why: str
) -> None:
    async with app(settings(**more), egress=egress) as made:
        with pytest.raises(RequestError, match=why) as refused:
            await made.start("clerk", "Do it", webhook=url)
        assert refused.value.code == "invalid_webhook"
        assert "pass" not in str(refused.value).replace("passed", "")
        assert (await made.runs())[0] == []


async def test_nothing_is_sent_unsigned() -> None:
    async with app(settings(), env={}) as made:
        with pytest.raises(RequestError, match="LOOPAGENT_WEBHOOK_SECRET"):
            await made.start("clerk", "Do it", webhook="https://hooks.example.com/")
    with Hook() as hook:
        for wrong in ("hunter2-hunter2", "whsec_c2hvcnQ=", "whsec_!"):
            with pytest.raises(ConfigError, match="holds no secret") as refused:
                App(notifications=settings(hook), env={"LOOPAGENT_WEBHOOK_SECRET": wrong})
            assert wrong not in str(refused.value)


async def test_while_secrets_change_both_sign() -> None:
    other = "YW5vdGhlci1zZWNyZXQtZm9yLXRlc3Rz"
    with Hook() as hook:
        env = {"LOOPAGENT_WEBHOOK_SECRET": f"whsec_{other} whsec_{SECRET}"}
        async with app(settings(hook), env=env) as made:
            await made.start("clerk", "Do it")
            await settled(made)
            for one in (other, SECRET):
                assert one not in made.redactor.mask(f"a {one} b whsec_{one}")
    (call,) = hook.calls
    assert call.signed_with(SECRET)
    assert call.signed_with(other)
    assert not call.signed_with("bm90LXRoaXMtc2VjcmV0LW5vdC10aGlz")


async def test_a_receiver_that_is_configured_no_more() -> None:
    with Hook(answers=[500]) as hook:
        told = settings(hook, first_retry_seconds=600)
        async with app(told, recover=False) as made:
            view = await made.start("clerk", "Do it")
            await made.wait(view.id, timeout_seconds=30)
            store = made.store
    async with app(settings(), store=store) as made:
        (row,) = await settled(made)
    assert row.status == "failed"
    assert "no receiver ops" in row.attempts[-1].error


GIVE = {
    "taskComplete": False,
    "nextStep": {"type": "Sub-Agent", "subAgents": [{"name": "helper", "message": "Do it."}]},
}


async def test_sub_agents_and_forks_are_told_of_as_well() -> None:
    helper = Agent("helper", model=ScriptedModel([ASK, DONE]))
    boss = Agent("boss", model=ScriptedModel([GIVE, DONE, DONE]), agents=[helper])
    with Hook() as hook:
        async with App(agents=[boss], notifications=settings(), env=ENV, egress=HERE) as made:
            view = await made.start("boss", "Do it", webhook=hook.url)
            view = await made.wait(view.id, timeout_seconds=30)
            await made.answer(
                view.asks[0]["requestId"], decision="answer", values={"answer": "this"}
            )
            await made.wait(view.id, timeout_seconds=30)
            copy = await made.fork(view.id)
            await made.wait(copy.id, timeout_seconds=30)
            rows = await settled(made)
    told = [(one.kind, one.agent, one.data["rootRunId"]) for one in rows]
    assert told == [
        ("request.created", "helper", view.id),
        ("run.completed", "boss", view.id),
        ("run.completed", "boss", copy.id),
    ]
    assert {one.id for one in hook.calls} == {one.id for one in rows}


async def test_only_the_operator_is_told_what_lies_inside() -> None:
    senders = Senders(settings(), EgressSettings(), ENV)
    told = await senders.tell(replace(NOTICE, target="https://metadata.google.internal/"), 1.0)
    assert told.final
    assert told.error == "calls to metadata.google.internal are not allowed here"


async def test_what_cannot_be_told_is_said_and_does_not_raise() -> None:
    senders = Senders(settings(), HERE, ENV)
    for target in ("https://hooks.example.com/\udcff", "https://[::1", "https://a b/", "://"):
        told = await senders.tell(replace(NOTICE, target=target), 1.0)
        assert told.error


NOTICE = Notice("msg_1", "run.completed", "r", "a", "ops", at=100.0, since=100.0, due=160.0)


@pytest.mark.parametrize(
    ("tries", "told", "chance", "due"),
    [
        (0, Told(500, "no"), 0.0, 205.0),
        (0, Told(500, "no"), 1.0, 202.5),
        (3, Told(500, "no"), 0.0, 240.0),
        (60, Told(500, "no"), 0.0, 3_800.0),
        (0, Told(429, "later", after_seconds=90), 0.0, 290.0),
        (0, Told(429, "later", after_seconds=1e9), 0.0, 3_800.0),
    ],
)
def test_pauses(tries: int, told: Told, chance: float, due: float) -> None:
    after = judged(
        replace(NOTICE, tries=tries), told, NotificationSettings(), (199.0, 200.0), chance
    )
    assert (after.status, after.due, after.tries) == ("waiting", due, tries + 1)


def test_after_a_day_nobody_tries_any_more() -> None:
    late = (100.0, 100.0 + 86_399.0)
    after = judged(replace(NOTICE, tries=30), Told(500, "no"), NotificationSettings(), late, 0.0)
    assert (after.status, after.due) == ("failed", None)


async def test_replay_of_what_is_not_there() -> None:
    async with app(settings()) as made:
        with pytest.raises(RequestError, match="no notification"):
            await made.notifications.replay("msg_0")
