"""What whoever listens sees of a reply while it arrives, and what becomes of it when it does not count."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, action
from loopagent.errors import ModelError
from loopagent.runtime.attempts import RetryPolicy
from tests.runtime.arriving import Arriving, Listener, calls, done, listening


pytestmark = pytest.mark.anyio
QUICK = RetryPolicy(first_delay_seconds=0.001)


@action(effects="read")
async def look(item: int) -> str:
    """Look at an item."""
    return f"seen {item}"


def clerk(model: Any, **options: Any) -> Agent[Any]:
    return Agent("clerk", model=model, actions=[look], **options)


def kinds(listener: Listener) -> list[str]:
    return [one["type"] for one in listener.events]


async def test_a_message_is_read_while_the_rest_still_arrives() -> None:
    model = Arriving([1, '{"message": "Hel', 2, 'lo", "task', 3, 'Complete": true}'])
    async with App(agents=[clerk(model)], retry=QUICK) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            first = await heard.until("reply.delta")
            assert first["data"] == {
                "callId": "1:model",
                "attempt": 1,
                "field": "message",
                "text": "Hel",
                "done": False,
                "role": "narration",
            }
            assert "seq" not in first
            assert (await app.get(run.id)).loop.state == "streaming"
            await model.go()
            await heard.until("reply.delta", text="lo")
            await model.go()
            await heard.until("run.completed")
    assert heard.text() == "Hello"
    received = heard.of("reply.received")[0]["data"]
    assert (received["message"], received["type"]) == ("Hello", "complete")
    assert [one for one in kinds(heard) if one == "reply.retracted"] == []
    finished = [one["data"]["field"] for one in heard.of("reply.delta") if one["data"]["done"]]
    assert finished == ["message", "taskComplete"]


async def test_nobody_listens_so_nobody_reads_along() -> None:
    model = Arriving([1, '{"message": "Hel', 2, 'lo", "taskComplete": true}'])
    async with App(agents=[clerk(model)]) as app:
        run = await app.start("clerk", "Go.")
        live = app.engine.runs.get(run.id)
        assert live is not None
        await model.go()
        while live.reply is None or not live.reply.streams:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.001)
        assert (live.reply.message, live.partial) == ("", "")
        assert (await app.get(run.id)).loop.state == "streaming"
        async with listening(app, run.id) as heard:
            await heard.until("reply.snapshot")
            assert live.partial == "Hel"
            await model.go()
            await heard.until("run.completed")
    assert heard.text() == "Hello"


async def test_narration_and_answer_are_told_apart() -> None:
    model = Arriving([1, calls(("look", {"item": 1}))], [done("Seen.")])
    async with App(agents=[clerk(model)]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await heard.until("run.completed")
    said = [one["data"] for one in heard.of("reply.delta") if one["data"]["field"] == "message"]
    assert [(one["text"], one["role"]) for one in said] == [
        ("Looking.", "narration"),
        ("Seen.", "answer"),
    ]
    assert [one["data"]["type"] for one in heard.of("reply.received")] == ["Actions", "complete"]


async def test_who_comes_late_gets_what_was_shown_and_then_the_rest() -> None:
    reply = ['{"message": "One two', 2, ' three", "taskComplete": true}']
    model = Arriving([1, *reply])
    async with App(agents=[clerk(model)]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as first:
            await first.until("turn.started")
            await model.go()
            await first.until("reply.delta")
            async with listening(app, run.id) as late:
                snapshot = await late.until("reply.snapshot")
                assert kinds(late)[-1] == "reply.snapshot"
                assert snapshot["data"]["fields"] == [
                    {"field": "message", "text": "One two", "done": False, "role": "narration"}
                ]
                async with listening(app, run.id, after=late.events[-2]["seq"]) as again:
                    await again.until("reply.snapshot")
                    await model.go()
                    for one in (first, late, again):
                        await one.until("run.completed")
    assert [one.text() for one in (first, late, again)] == ["One two three"] * 3
    assert "reply.snapshot" not in kinds(first)


async def test_who_falls_behind_goes_on_with_a_snapshot_and_holds_nobody_up() -> None:
    pieces = [f"{number} " for number in range(10_500)]
    apart: list[str | None] = [one for piece in pieces for one in (piece, None)]
    model = Arriving([1, '{"message": "', *apart, 2, '", "taskComplete": true}'])
    async with App(agents=[clerk(model)]) as app:
        run = await app.start("clerk", "Go.")
        slow = app.bus.subscribe(run.id)
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            while not slow.lost:  # noqa: ASYNC110 - it never takes anything out of its buffer
                await asyncio.sleep(0)
            fresh = app.bus.subscribe(run.id)
            shown = (await fresh.get(1))[0]
            await model.go()
            await heard.until("run.completed")
            so_far = shown["data"]["fields"][0]["text"]
            rest = [one["data"] for one in await fresh.get(1) if one["type"] == "reply.delta"]
    assert shown["type"] == "reply.snapshot"
    texts = [one["text"] for one in rest if one["field"] == "message"]
    assert so_far + "".join(texts) == heard.text() == "".join(pieces)


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ([1, '{"message": "no", "nextStep": {"type": "Nonsense"}}'], "refused"),
        ([1, '{"message": "no", "nextStep": {"ty'], "truncated"),
        ([1, '{"message": "no', 2, ModelError("connection", "cut")], "retry"),
    ],
)
async def test_reject_gate_what_does_not_count_is_taken_back(first: list[Any], reason: str) -> None:
    model = Arriving(first, [done("yes")])
    async with App(agents=[clerk(model)], retry=QUICK) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await heard.until("reply.delta", field="message")
            await model.go()
            await heard.until("run.completed")
    taken_back = heard.of("reply.retracted")
    assert [one["data"]["reason"] for one in taken_back] == [reason]
    assert heard.text() == "yes"
    told = [one["type"] for one in heard.events]
    verdict = {"refused": "reply.rejected", "truncated": "reply.truncated"}.get(reason)
    if verdict is not None:
        assert told.index("reply.retracted") == told.index(verdict) - 1
    else:
        attempts = [one["data"]["attempt"] for one in heard.of("reply.delta")]
        assert attempts == [1, 2, 2]


async def test_a_fallback_model_starts_anew(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text(json.dumps(done("from the other")))
    model = Arriving([1, '{"message": "half', 2, ModelError("quota", "used up")])
    agent = clerk(model, fallback_models=("scripted:other.jsonl",))
    async with App(agents=[agent], base_dir=tmp_path) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await heard.until("reply.delta")
            await model.go()
            await heard.until("run.completed")
    assert [one["data"]["reason"] for one in heard.of("reply.retracted")] == ["fallback"]
    assert heard.text() == "from the other"


async def test_a_model_that_fails_for_good_closes_what_is_open() -> None:
    model = Arriving([1, '{"message": "half', ModelError("auth", "no key")])
    async with App(agents=[clerk(model)]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await heard.until("run.failed")
    last = heard.of("reply.delta")[-1]["data"]
    assert (last["done"], last["truncated"]) == (False, True)


async def test_abort_first_after_a_cancel_nothing_more_is_shown() -> None:
    model = Arriving([1, '{"message": "Hel', 2, "lo there", 3])
    async with App(agents=[clerk(model)]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await heard.until("reply.delta")
            subscription = app.bus.subscribe(run.id)
            assert [one["type"] for one in await subscription.get(1)] == ["reply.snapshot"]
            # The next piece has arrived and waits for its pass when the cancel is stored.
            await model.go()
            await app.cancel(run.id)
            await heard.until("run.cancelled")
            rest = await subscription.get(1)
            app.bus.unsubscribe(subscription)
    after = [one["type"] for one in rest]
    cancelled = after.index("run.cancelled")
    assert not [one for one in after[cancelled:] if one.startswith("reply.")]


async def test_a_steering_message_takes_back_what_was_shown() -> None:
    model = Arriving([1, '{"message": "I go left', 9], [done("Right it is.")])
    async with App(agents=[clerk(model)]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await heard.until("reply.delta")
            await app.post(run.id, "Go right.", delivery="steer")
            await heard.until("run.completed")
    assert [one["data"]["reason"] for one in heard.of("reply.retracted")] == ["interrupted"]
    assert heard.text() == "Right it is."
    assert "I go left" in str(model.requests[1].messages)


async def test_lock_and_pending_pieces_that_come_together_are_one_pass() -> None:
    """Cline's rule: a piece that arrives while it could not work is folded into the next pass."""
    model = Arriving([1, '{"mess', 'age": "a', "b", "c", 'd"', ', "taskComplete": true}'])
    async with App(agents=[clerk(model)]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await heard.until("run.completed")
    said = [one["data"]["text"] for one in heard.of("reply.delta") if "text" in one["data"]]
    assert said == ["abcd"]


async def test_one_presenter_for_each_run_and_no_way_back_into_it() -> None:
    """Each run of a tree has its own stream; listeners that act on what they hear do not enter it again."""
    models = [
        Arriving([1, f'{{"message": "from {name}', 2, '", "taskComplete": true}']) for name in "ab"
    ]
    agents = [Agent(f"clerk-{name}", model=model) for name, model in zip("ab", models, strict=True)]
    async with App(agents=agents) as app:
        runs = [await app.start(one.name, "Go.") for one in agents]
        async with listening(app, runs[0].id) as one, listening(app, runs[1].id) as other:
            for heard in (one, other):
                await heard.until("turn.started")
            for model in models:
                await model.go()
            for heard in (one, other):
                await heard.until("reply.delta")
            for model in models:
                await model.go()
            await asyncio.gather(*[heard.until("run.completed") for heard in (one, other)])
    assert [one.text(), other.text()] == ["from a", "from b"]
    assert {event["runId"] for event in one.of("reply.delta")} == {runs[0].id}


async def test_who_listens_to_a_tree_sees_the_replies_of_the_runs_below() -> None:
    work = {"name": "kid", "message": "Say it.", "terminateAfter": False}
    give = {"taskComplete": False, "nextStep": {"type": "Sub-Agent", "subAgents": [work, work]}}
    below = ['{"message": "from below', 2, '", "taskComplete": true}']
    kid = Agent("kid", model=Arriving([1, *below], [1, *below]))
    boss = Agent("boss", model=Arriving([give], [done()]), agents=[kid])
    async with App(agents=[boss]) as app:
        model = kid.model_object
        assert isinstance(model, Arriving)
        run = await app.start("boss", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("subagent.started", 2)
            await model.go()
            await heard.until("reply.delta", 2, text="from below")
            async with listening(app, run.id) as late:
                await late.until("reply.snapshot", 2)
                await model.go()
                await late.until("run.completed", 3)
    below_runs = {f"{run.id}.1.sub.0", f"{run.id}.1.sub.1"}
    assert {one["runId"] for one in late.of("reply.snapshot")} == below_runs
    for one in below_runs:
        assert late.text("message", one) == "from below"


async def test_secrets_are_masked_in_texts_in_entries_and_in_snapshots() -> None:
    reply = '{"message": "the key is sec", "nextStep": {"type": "Actions", "actions": [{"name": "look", "params":'
    model = Arriving(
        [1, reply.replace("sec", "secret-va"), ' {"item": "secret-value"}}', 2, "]}}"],
        [3, '{"message": "the key is secret-va', 4, 'lue", "taskComplete": true}'],
    )
    env = {"TOKEN": "secret-value"}
    async with App(agents=[clerk(model)], env=env, secrets=["TOKEN"]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await heard.until("reply.delta", field="nextStep.type")
            await model.go()
            await heard.until("turn.started", 2)
            await model.go()
            await heard.until("reply.delta", text="the key is ")
            async with listening(app, run.id, after=10**6) as late:
                shown = await late.until("reply.snapshot")
            await model.go()
            await heard.until("run.completed")
    told = str([*heard.events, shown])
    assert "secret-value" not in told
    assert heard.text() == "the key is [redacted]"
    entry = next(
        one for one in heard.of("reply.delta") if one["data"]["field"] == "nextStep.actions"
    )
    assert entry["data"]["value"]["params"] == {"item": "[redacted]"}


async def test_pieces_that_the_whole_reply_has_overtaken_are_left_out() -> None:
    """Somebody starts to listen, and while they read what is stored the reply is completed."""
    model = Arriving([1, '{"message": "Hel', 2, 'lo", "taskComplete": false}'], [3, done()])
    async with App(agents=[clerk(model, autonomy="autonomous")]) as app:
        run = await app.start("clerk", "Go.")
        async with listening(app, run.id) as heard:
            await heard.until("turn.started")
            await model.go()
            await heard.until("reply.delta")
            late: list[dict[str, Any]] = []
            async with aclosing(app.events(run.id)) as events:
                late.append(await anext(events))  # from now on it listens
                await model.go()
                await heard.until("turn.started", 2)
                await model.go()
                late += [one async for one in events]
    received = [one["type"] for one in late].index("reply.received")
    turns = [one["turn"] for one in late[received:] if one["type"].startswith("reply.")]
    assert (turns[0], min(turns[1:])) == (1, 2)
