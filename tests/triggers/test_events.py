"""What becomes of events: ids, filters, dedupe, debounce, cooldown, how many runs may go on."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent import ConfigError, RequestError
from loopagent.core.origin import Origin
from tests.triggers.playing import ASK, BEGIN, Clock, call, log, playing, tasks, trigger


pytestmark = pytest.mark.anyio


async def test_a_call_starts_a_run_that_knows_where_it_comes_from() -> None:
    spec = trigger(
        message="Look at {{ body.issue.title }}",
        payload={"issue": "{{ body.issue }}", "fixed": 1},
        metadata={"team": "{{ body.team }}"},
        conversation="issue-{{ body.issue.id }}",
        user="ann",
    )
    async with playing(spec) as app:
        body = {"team": "a", "issue": {"id": 7, "title": "It {{ body.team }} breaks"}}
        done = await app.triggers.deliver("t", call(body, webhook_id="e1"))
        assert (done.status, done.event_id) == ("fired", "e1")
        assert done.run_id == Origin("t", "webhook", "e1").run_id
        view = await app.wait(done.run_id)
        assert view.state.status == "completed"
        assert view.state.payload == {"issue": body["issue"], "fixed": 1}
        assert (view.state.user, view.state.conversation) == ("ann", "issue-7")
        first, *_ = [event async for event in app.events(done.run_id)]
        assert (first["type"], first["decidedBy"]) == ("run.created", "trigger")
        assert first["data"]["trigger"] == {"name": "t", "kind": "webhook", "eventId": "e1"}
        assert first["data"]["message"] == "Look at It {{ body.team }} breaks"  # data is not filled
        rows, _ = await app.runs()
        assert rows[0].metadata == {"team": "a", "trigger": "t", "eventId": "e1"}


async def test_the_same_event_never_starts_two_runs() -> None:
    async with playing(trigger(), trigger(name="other")) as app:
        first = await app.triggers.deliver("t", call({}, webhook_id="e1"))
        again = await app.triggers.deliver("t", call({"x": 1}, webhook_id="e1"))
        assert (again.status, again.run_id) == ("duplicate", first.run_id)
        assert first.id in again.reason
        await app.triggers.deliver("other", call({}, webhook_id="e1"))
        assert len(await tasks(app)) == 2
        assert len({one async for one in _run_ids(app)}) == 2


async def _run_ids(app: Any) -> Any:
    rows, _ = await app.runs()
    for one in rows:
        yield one.id


@pytest.mark.parametrize(
    ("about", "body", "status"),
    [
        ({"match": {"body.action": ["opened", "reopened"]}}, {"action": "opened"}, "fired"),
        ({"match": {"body.action": ["opened", "reopened"]}}, {"action": "closed"}, "filtered"),
        ({"match": {"body.action": []}}, {"action": "closed"}, "fired"),
        ({"match": {}}, {}, "fired"),
        ({"match": {"body.action": "opened"}}, {}, "filtered"),
        ({"match": {"body.count": 1}}, {"count": True}, "filtered"),
        ({"match": {"event.trigger": "t", "headers.kind": "push"}}, {}, "filtered"),
        ({"filter": "size(body.labels) > 1"}, {"labels": [1, 2]}, "fired"),
        ({"filter": "size(body.labels) > 1"}, {"labels": [1]}, "filtered"),
        ({"filter": "body.a.b.c == 1"}, {"a": 1}, "filtered"),
        ({"filter": "body.a > 1"}, {"a": "x"}, "failed"),
        ({"enabled": False}, {}, "filtered"),
        ({"message": "{{ body.gone }}"}, {}, "failed"),
        ({"message": "{{ body.text }}"}, {"text": " "}, "failed"),
    ],
)
async def test_filters(about: dict[str, Any], body: Any, status: str) -> None:
    async with playing(trigger(**about)) as app:
        done = await app.triggers.deliver("t", call(body, kind="pull"))
        assert done.status == status
        assert bool(done.reason) == (status != "fired")
        assert bool(done.run_id) == (status == "fired")
        assert done.task is None
        assert len(await tasks(app)) == (1 if status == "fired" else 0)


async def test_a_failed_event_may_be_sent_again() -> None:
    async with playing(trigger(message="{{ body.text }}")) as app:
        bad = await app.triggers.deliver("t", call({}, webhook_id="e1"))
        good = await app.triggers.deliver("t", call({"text": "Go"}, webhook_id="e1"))
        assert (bad.status, good.status) == ("failed", "fired")


async def test_an_event_cannot_activate_a_skill_or_name_an_agent() -> None:
    async with playing(trigger(message="{{ body.text }}")) as app:
        done = await app.triggers.deliver("t", call({"text": "/deploy now", "agent": "root"}))
        view = await app.wait(done.run_id)
        assert view.state.spec.name == "clerk"
        assert not view.state.skills
        said = await app.store.transcript(done.run_id)
        assert (said[0].kind, said[0].text) == ("task", "/deploy now")


async def test_dedupe_window() -> None:
    clock = Clock()
    spec = trigger(dedupe_window_seconds=60, dedupe_key="{{ body.issue }}")
    async with playing(spec, clock=clock) as app:
        for seconds, issue in ((0, 1), (10, 1), (20, 2), (59, 1), (61, 1)):
            clock.now = BEGIN + seconds
            await app.triggers.deliver("t", call({"issue": issue}))
        wanted = ["fired", "duplicate", "fired", "duplicate", "fired"]
        assert await log(app, "status") == [(one,) for one in wanted]
    async with playing(trigger(dedupe_window_seconds=60, message="Same"), clock=clock) as app:
        assert (await app.triggers.deliver("t", call({"a": 1}))).status == "fired"
        assert (await app.triggers.deliver("t", call({"a": 2}))).status == "duplicate"
    async with playing(trigger(message="Same"), clock=clock) as app:  # off at 0
        assert (await app.triggers.deliver("t", call({}))).status == "fired"
        assert (await app.triggers.deliver("t", call({}))).status == "fired"


async def test_cooldown() -> None:
    clock = Clock()
    async with playing(trigger(cooldown_seconds=30), clock=clock) as app:
        for seconds in (0, 10, 29, 30, 45):
            clock.now = BEGIN + seconds
            await app.triggers.deliver("t", call({}))
        wanted = ["fired", "cooldown", "cooldown", "fired", "cooldown"]
        assert await log(app, "status") == [(one,) for one in wanted]


async def test_debounce_fires_the_last_when_it_is_quiet() -> None:
    clock = Clock()
    spec = trigger(message="{{ body.n }}", debounce_seconds=10, debounce_key="{{ body.of }}")
    async with playing(spec, clock=clock) as app:
        for seconds, body in ((0, {"of": "a", "n": 1}), (5, {"of": "b", "n": 2}), (9, {"of": "a", "n": 3})):  # fmt: skip
            clock.now = BEGIN + seconds
            await app.triggers.deliver("t", call(body))
        assert await log(app, "status") == [("superseded",), ("held",), ("held",)]
        assert await tasks(app) == []
        clock.now = BEGIN + 15
        wait = await app.triggers.sweep()
        assert await tasks(app) == ["2"]
        assert wait == pytest.approx(4.0)
        clock.now = BEGIN + 19
        await app.triggers.sweep()
        assert await tasks(app) == ["2", "3"]
        assert await log(app, "status") == [("superseded",), ("fired",), ("fired",)]


async def test_debounce_ends_some_time() -> None:
    clock = Clock()
    spec = trigger(message="{{ body }}", debounce_seconds=10, debounce_max_seconds=25)
    async with playing(spec, clock=clock) as app:
        for number in range(6):
            clock.now = BEGIN + 5 * number
            await app.triggers.deliver("t", call(number))
            await app.triggers.sweep()
        assert await tasks(app) == ["5"]


async def test_so_many_runs_and_no_more() -> None:
    clock = Clock()
    spec = trigger(max_concurrent=1, max_waiting=1, message="{{ body }}")
    async with playing(spec, clock=clock, reply=ASK) as app:
        ends = [await app.triggers.deliver("t", call(number)) for number in range(3)]
        assert [one.status for one in ends] == ["fired", "waiting", "busy"]
        await app.wait(ends[0].run_id)
        clock.now += 2
        await app.triggers.sweep()
        assert await tasks(app) == ["0"]
        await app.cancel(ends[0].run_id)
        clock.now += 2
        await app.triggers.sweep()
        assert await tasks(app) == ["0", "1"]
        assert await log(app, "status") == [("fired",), ("fired",), ("busy",)]


async def test_on_busy_reject_and_interrupt() -> None:
    clock = Clock()
    reject = trigger(name="r", max_concurrent=1, on_busy="reject")
    interrupt = trigger(name="i", max_concurrent=1, on_busy="interrupt")
    async with playing(reject, interrupt, clock=clock, reply=ASK) as app:
        first = await app.triggers.deliver("r", call({}))
        assert (await app.triggers.deliver("r", call({}))).status == "busy"
        old = await app.triggers.deliver("i", call({}))
        new = await app.triggers.deliver("i", call({}))
        assert new.status == "fired"
        assert (await app.get(old.run_id)).state.status == "cancelled"
        assert (await app.get(first.run_id)).state.status == "running"
        last = [event async for event in app.events(old.run_id)][-1]
        assert (last["type"], last["decidedBy"]) == ("run.cancelled", "trigger")


async def test_a_run_that_cannot_be_made_is_a_failed_delivery() -> None:
    async with playing(
        trigger(message="{{ body }}", webhook={"auth": {"type": "none"}, "maxBodyBytes": 9_000_000})
    ) as app:
        done = await app.triggers.deliver("t", call("y" * 2_000_000))
        assert done.status == "failed"
        assert "invalid_message" in done.reason


async def test_by_hand() -> None:
    clock = Clock()
    spec = trigger(enabled=False, cooldown_seconds=99, message="{{ body.n }}", debounce_seconds=9)
    async with playing(spec, clock=clock) as app:
        first = await app.triggers.fire("t", {"n": 1}, event_id="e1")
        again = await app.triggers.fire("t", {"n": 1}, event_id="e1")
        assert (first.status, first.source, again.status) == ("fired", "manual", "duplicate")


async def test_an_unknown_trigger() -> None:
    async with playing(trigger(name="mails")) as app:
        for work in (
            app.triggers.get("mail"),
            app.triggers.fire("mail"),
            app.triggers.deliver("mail", call({})),
        ):
            with pytest.raises(RequestError, match="did you mean mails") as caught:
                await work
            assert (caught.value.code, caught.value.status) == ("unknown_trigger", 404)


async def test_old_deliveries_are_forgotten() -> None:
    clock = Clock()
    async with playing(trigger(keep_days=1), clock=clock) as app:
        await app.triggers.deliver("t", call({}, webhook_id="old"))
        clock.now += 90_000
        await app.triggers.deliver("t", call({}, webhook_id="new"))
        await app.triggers.sweep()
        assert await log(app, "event_id") == [("new",)]
        # the run is still there, so the event starts no second one
        again = await app.triggers.deliver("t", call({}, webhook_id="old"))
        assert again.status == "fired"
        assert len(await tasks(app)) == 2


async def test_definitions_that_cannot_work() -> None:
    with pytest.raises(ConfigError, match="Two triggers"):
        async with playing(trigger(), trigger()):
            pass
    with pytest.raises(ConfigError, match=r"agent: there is no agent 'clark'; did you mean clerk"):
        async with playing(trigger(agent="clark")):
            pass
    with pytest.raises(ConfigError, match=r"message: .*unknown name bodi"):
        async with playing(trigger(message="{{ bodi.x }}")):
            pass
