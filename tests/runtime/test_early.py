"""Calls that begin while the reply that asks for them arrives: decision seat D9."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from loopagent import ActionContext, Agent, App, action
from loopagent.errors import ModelError
from loopagent.runtime.attempts import RetryPolicy
from loopagent.stores.memory import MemoryStore
from tests.runtime.arriving import Arriving, Listener, calls, done, listening


pytestmark = pytest.mark.anyio
QUICK = RetryPolicy(first_delay_seconds=0.001)
HEAD = '{"taskComplete": false, "nextStep": {"type": "Actions", "actions": ['
LOOK_1 = '{"name": "look", "params": {"item": 1}}'
LOOK_2 = '{"name": "look", "params": {"item": 2}}'
MAIL = '{"name": "mail", "params": {"item": 1}}'
TAIL = ']}, "message": "Looking."}'


class Desk:
    """The actions of a clerk, and what was done."""

    def __init__(self) -> None:
        self.began: list[tuple[str, int]] = []
        self.stopped: list[int] = []
        self.open = asyncio.Event()
        self.open.set()
        self.changed = asyncio.Condition()

        @action(effects="read")
        async def look(item: int, context: ActionContext) -> str:
            await self._note(("look", item))
            context.progress(f"looking at {item}")
            try:
                await self.open.wait()
            except asyncio.CancelledError:
                self.stopped.append(item)
                raise
            return f"seen {item} " + "x" * (9_000 if item == 2 else 0)

        @action(effects="external")
        async def mail(item: int) -> str:
            await self._note(("mail", item))
            return "sent"

        self.actions = [look, mail]

    async def _note(self, call: tuple[str, int]) -> None:
        async with self.changed:
            self.began.append(call)
            self.changed.notify_all()

    async def until(self, *began: tuple[str, int]) -> None:
        """Wait until exactly these have begun."""
        async with self.changed:
            wait = self.changed.wait_for(lambda: self.began == list(began))
            await asyncio.wait_for(wait, 20)

    def clerk(self, model: Arriving, **options: Any) -> Agent[Any]:
        return Agent("clerk", model=model, actions=self.actions, early_start=True, **options)


def results(heard: Listener) -> list[dict[str, Any]]:
    return [one["data"] for one in heard.of("action.completed")]


async def test_a_read_begins_when_its_object_is_complete_and_is_made_once() -> None:
    desk = Desk()
    model = Arriving([1, HEAD + LOOK_1 + ", {", 2, LOOK_2[1:] + TAIL], [done()])
    async with App(agents=[desk.clerk(model)]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await desk.until(("look", 1))
            assert not heard.of("action.started")
            await asyncio.sleep(0.02)  # so much of its time is not waited for
            await model.go()
            await heard.until("run.completed")
    assert desk.began == [("look", 1), ("look", 2)]
    first, second = sorted(results(heard), key=lambda one: str(one["callId"]))
    assert first["result"] == "seen 1 "
    assert first["startedEarlyMs"] >= 20
    assert second["ok"]
    assert not heard.of("action.discarded")
    kinds = [one["type"] for one in heard.events]
    assert (
        kinds.index("reply.received")
        < kinds.index("action.started")
        < kinds.index("action.completed")
    )
    assert "action.progress" not in kinds[: kinds.index("action.started")]


async def test_it_is_off_unless_the_agent_says_so() -> None:
    desk = Desk()
    model = Arriving([1, HEAD + LOOK_1 + ", {", 2, LOOK_2[1:] + TAIL], [done()])
    agent = Agent("clerk", model=model, actions=desk.actions)
    async with App(agents=[agent]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await heard.until("reply.delta", field="nextStep.actions")
            await asyncio.sleep(0.01)
            assert desk.began == []
            await model.go()
            await heard.until("run.completed")
    assert not any("startedEarlyMs" in one for one in results(heard))


async def test_checkpoint_gate_only_what_reads_begins() -> None:
    """Cline's rule: before things are in order only tools that read run; the others wait for the whole reply."""
    desk = Desk()
    reply = [1, HEAD + MAIL + "," + LOOK_1 + ", {", 2, LOOK_2[1:] + TAIL]
    async with App(agents=[desk.clerk(Arriving(reply, [done()]))]) as app:
        model = app.agents["clerk"].model_object
        assert isinstance(model, Arriving)
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await desk.until(("look", 1))
            await model.go()
            asked = await heard.until("request.created")
            # The whole step waits for the person, and with it the calls that only read.
            assert [one["data"]["reason"] for one in heard.of("action.discarded")] in (
                [],
                ["waits"] * 2,
            )
            await app.answer(asked["data"]["requestId"], decision="approve")
            await heard.until("run.completed")
    assert {one["data"]["reason"] for one in heard.of("action.discarded")} == {"waits"}
    assert desk.began.count(("mail", 1)) == 1
    assert [one["ok"] for one in results(heard)] == [True] * 3


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        (LOOK_2[1:] + '], "plan": 1}, "message": 5}', "refused"),
        (LOOK_2[1:12], "truncated"),
        ([ModelError("connection", "cut")], "retry"),
        (LOOK_2[1:] + TAIL + " </think>" + HEAD + LOOK_2 + TAIL, "changed"),
        (
            LOOK_2[1:] + TAIL + ' </think>{"message": "Well?", "nextStep": {"type": "Chat"}}',
            "changed",
        ),
    ],
)
async def test_what_the_reply_does_not_ask_for_is_stopped_and_told(rest: Any, reason: str) -> None:
    desk = Desk()
    desk.open.clear()
    more = rest if isinstance(rest, list) else [rest]
    model = Arriving([1, HEAD + LOOK_1 + ", {", 2, *more], [done()], [done()])
    async with App(agents=[desk.clerk(model)], retry=QUICK) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await desk.until(("look", 1))
            await model.go()
            told = await heard.until("action.discarded")
            desk.open.set()
            if "Chat" not in str(rest):
                await heard.until("run.completed")
    assert desk.stopped[0] == 1
    data = told["data"]
    assert (data["callId"], data["action"], data["params"]) == ("1:action.0", "look", {"item": 1})
    assert data["reason"] == reason
    assert all("seen 1" not in str(one["result"]) for one in results(heard))
    assert "seq" in told


async def test_what_is_corrected_beside_a_call_does_not_stop_it() -> None:
    desk = Desk()
    reply = '{"message": "one", "nextStep": {"type": "Actions", "actions": [' + LOOK_1 + "]}"
    text = [
        1,
        reply + ', "reasoning": "x"',
        2,
        ', "nextStep": ' + '{"type": "Actions", "actions": [',
    ]
    model = Arriving([*text, LOOK_1 + "]}, 'Message': 'one'}"], [done()])
    async with App(agents=[desk.clerk(model)]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await desk.until(("look", 1))
            await model.go()
            await heard.until("run.completed")
    assert desk.began == [("look", 1)]
    assert [one["ok"] for one in results(heard)] == [True]


async def test_what_is_certain_only_in_the_end_does_not_begin_early() -> None:
    desk = Desk()
    text = "{'nextStep': {'type': 'Actions', 'actions': [" + LOOK_1.replace('"', "'") + "]}}"
    model = Arriving([1, text], [done()])
    async with App(agents=[desk.clerk(model)]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await heard.until("run.completed")
    assert heard.of("reply.delta")
    assert not any("startedEarlyMs" in one for one in results(heard))


async def test_abort_first_a_cancel_stops_what_began_early() -> None:
    desk = Desk()
    desk.open.clear()
    model = Arriving([1, HEAD + LOOK_1 + ", {", 2, LOOK_2[1:] + TAIL])
    async with App(agents=[desk.clerk(model)]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await desk.until(("look", 1))
            await model.go()
            await app.cancel(run.id)
            await heard.until("run.cancelled")
        await asyncio.sleep(0.01)
        assert (desk.began, desk.stopped) == ([("look", 1)], [1])
    assert not heard.of("action.started")


async def test_a_process_that_stops_leaves_nothing_behind() -> None:
    desk, store = Desk(), MemoryStore()
    desk.open.clear()
    model = Arriving([1, HEAD + LOOK_1 + ", {", 2, LOOK_2[1:] + TAIL])
    async with App(agents=[desk.clerk(model)], store=store) as app:
        run = await app.start("clerk", "Go.")
        await model.go()
        await desk.until(("look", 1))
        before = [one["type"] for one in await store.events(run.id, after=0, limit=100)]
    assert desk.stopped == [1]
    assert not [one for one in before if one.startswith(("action.", "artifact."))]
    desk.open.set()
    again = Arriving([calls(("look", {"item": 1}))], [done()])
    async with App(agents=[desk.clerk(again)], store=store) as app:
        view = await app.wait(run.id, timeout_seconds=20)
        assert view.state.status == "completed"
    assert desk.began == [("look", 1)] * 2


async def test_a_long_result_is_kept_only_once_the_reply_counts() -> None:
    desk, store = Desk(), MemoryStore()
    model = Arriving([1, HEAD + LOOK_2 + ", {", 2, LOOK_1[1:] + TAIL], [done()])
    async with App(agents=[desk.clerk(model)], store=store) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await desk.until(("look", 2))
            await asyncio.sleep(0.01)
            assert not heard.of("artifact.created")
            await model.go()
            await heard.until("run.completed")
    assert len(heard.of("artifact.created")) == 1
    assert desk.began == [("look", 2), ("look", 1)]
