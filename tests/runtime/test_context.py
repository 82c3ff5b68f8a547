"""What the model is shown over a long run, and what it can still read of the rest."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, action
from loopagent.core.agent_spec import ContextSpec, Limits
from loopagent.errors import ModelError
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import ModelReply, ModelRequest, Usage
from loopagent.runtime.view import ChatView, shown_messages
from loopagent.stores.memory import MemoryStore


pytestmark = pytest.mark.anyio
PLAN = "Look at every shelf, then say what stands in the third."
TASK = "Take stock."
RESULT_CHARS = 7_900


def noise(number: int) -> str:
    """Text that does not compress well, the same for the same number."""
    rounds = (hashlib.sha256(f"{number}/{one}".encode()).hexdigest() for one in range(124))
    return "".join(rounds)[:RESULT_CHARS]


@action(effects="read")
async def shelf(number: int) -> str:
    """What stands on a shelf."""
    return noise(number)


def call(number: int) -> dict[str, Any]:
    step = {"type": "Actions", "actions": [{"name": "shelf", "params": {"number": number}}]}
    return {"taskComplete": False, "nextStep": step}


class Stocktaker:
    """A model with a small window that asks for shelf after shelf, keeps its prompts, and sums up when asked."""

    name = "fake:small"

    def __init__(self, turns: int, window: int = 10**9, *, keep: bool = True) -> None:
        self.turns, self.window, self.keep = turns, window, keep
        self.asked = self.summaries = self.largest = 0
        self.prompts: list[str] = []
        self.requests: list[ModelRequest] = []
        self.last = ""

    async def generate(self, request: ModelRequest, *, on_delta: Any = None) -> ModelReply:
        del on_delta
        text = request.system + "".join(one.text for one in request.messages)
        tokens = len(text) // 4
        if tokens > self.window:
            raise ModelError("context_window", "maximum context length exceeded")
        self.largest = max(self.largest, tokens)
        usage = Usage(input_tokens=tokens, output_tokens=10)
        if request.agent == "summary":
            self.summaries += 1
            return ModelReply("Every shelf so far was full.", usage=usage)
        self.asked += 1
        self.last = text
        if self.keep:
            self.requests.append(request)
        return ModelReply(json.dumps(self.reply()), usage=usage)

    def reply(self) -> dict[str, Any]:
        if self.asked == 1:
            return {"taskComplete": False, "nextStep": {"type": "Plan", "plan": PLAN}}
        if self.asked < self.turns:
            return call(self.asked)
        if self.asked == self.turns:
            return {"taskComplete": False, "nextStep": {"type": "Retry", "messageIndex": 8}}
        return {"taskComplete": True, "message": "Done."}

    async def aclose(self) -> None:
        pass


def agent(model: Any, **options: Any) -> Agent[Any]:
    limits = Limits(max_turns=1_000)
    return Agent("clerk", model=model, actions=[shelf], limits=limits, **options)


async def play(model: Stocktaker, database: str | None = None, **options: Any) -> tuple[Any, ...]:
    host = App(agents=[agent(model, **options)], store=database or MemoryStore())
    async with host:
        run = await host.start("clerk", TASK)
        view = await host.wait(run.id, timeout_seconds=60)
        while not view.state.ended:
            (ask,) = view.state.asks
            await host.answer(f"{run.id}:{ask.id}", decision="approve", by="ann")
            view = await host.wait(run.id, timeout_seconds=60)
        events = await host.store.events(run.id, limit=100_000)
        messages = await host.store.transcript(run.id)
    return view, events, messages


async def test_300_turns_of_8_kb_stay_within_a_small_window_and_cost_little(tmp_path: Path) -> None:
    model = Stocktaker(300, window=16_000, keep=False)
    where = tmp_path / "runs.db"
    context = ContextSpec(window_tokens=16_000)
    view, events, messages = await play(model, f"sqlite:///{where}", context=context)
    assert view.state.status == "completed"
    assert view.state.turn == 301
    assert model.largest <= 16_000
    assert TASK in model.last
    assert PLAN in model.last
    third = next(one for one in messages if one.turn == 3 and one.kind == "results")
    assert third.number == 8
    assert noise(3) in third.text
    assert noise(3) in model.last, "turn 3 is quoted exactly"
    said = sum(len(one.text.encode()) for one in messages)
    assert said > 300 * RESULT_CHARS * 0.95
    stored = sum(one.stat().st_size for one in tmp_path.iterdir())
    assert stored < 3 * said
    types = [one["type"] for one in events]
    assert types.count("model.call") == model.summaries >= 1
    assert types.count("turn.started") == types.count("turn.ended") == model.asked
    assert view.state.usage.model_calls == model.asked + model.summaries
    assert len(view.state.view.fresh) < 12


async def test_prompts_share_every_byte_up_to_the_newest_messages() -> None:
    model = Stocktaker(12)
    _, _, messages = await play(model)
    assert len(messages) > 20
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert after.system == before.system
        kept = before.messages[:-1]
        assert tuple(after.messages[: len(kept)]) == tuple(kept)
        assert before.messages[-1].text.startswith("State: ")


async def test_an_expired_result_becomes_a_stub_that_says_how_to_read_it() -> None:
    model = Stocktaker(12)
    context = ContextSpec(result_turns=2, rewrite_bytes=20_000)
    view, events, messages = await play(model, context=context)
    stubs = [one.text for one in model.requests[-1].messages if one.text.startswith("[#")]
    first = next(one for one in messages if one.kind == "results" and one.turn == 2)
    size = f"{len(first.text):,}"
    assert stubs[0] == (
        f"[#{first.number} results, {size} characters, of turn 2; "
        f"ask with Retry messageIndex {first.number}]"
    )
    reasons = {one["data"]["reason"] for one in events if one["type"] == "context.compacted"}
    assert reasons == {"lifetime"}
    rewrites = sum(one["type"] == "context.compacted" for one in events)
    assert rewrites < 6, "a rewrite costs the provider's cache, so several results go at once"
    assert view.state.status == "completed"


async def test_fix_22_every_overflow_is_recovered_from_while_that_makes_progress() -> None:
    model = Stocktaker(60, window=12_000)  # nobody told the engine
    view, events, _ = await play(model)
    assert view.state.status == "completed"
    overflows = [
        one["data"]["upTo"]
        for one in events
        if one["type"] == "context.compacted" and one["data"]["reason"] == "overflow"
    ]
    assert overflows
    ended = [one["data"]["outcome"] for one in events if one["type"] == "turn.ended"]
    assert ended.count("overflow") >= 1
    assert noise(3) in model.last


class Shrinking(Stocktaker):
    """Takes less and less, as if another model answered."""

    async def generate(self, request: ModelRequest, *, on_delta: Any = None) -> ModelReply:
        if self.asked in (20, 40):
            self.window = {20: 9_000, 40: 6_000}[self.asked]
        return await super().generate(request, on_delta=on_delta)


async def test_fix_22_a_run_recovers_as_often_as_it_overflows() -> None:
    model = Shrinking(60)
    view, events, _ = await play(model, context=ContextSpec(overflow_tries=3))
    assert view.state.status == "completed"
    ended = [one["data"]["outcome"] for one in events if one["type"] == "turn.ended"]
    assert ended.count("overflow") >= 2
    assert view.state.view.overflows == 0


async def test_fix_18_what_was_read_again_is_shown_in_full_and_the_original_stays() -> None:
    model = Stocktaker(12)
    context = ContextSpec(result_turns=2, rewrite_bytes=20_000)
    _, events, messages = await play(model, context=context)
    assert noise(3) in model.last
    assert noise(3) in messages[7].text
    assert any(one["type"] == "context.expanded" for one in events)


async def test_an_overflow_that_nothing_can_be_done_about_fails_the_run() -> None:
    model = Stocktaker(60, window=10)
    view, events, _ = await play(model)
    assert view.state.status == "failed"
    assert view.state.result.reason == "model"
    assert view.state.result.detail == {"kind": "context_window"}
    assert sum(one["type"] == "turn.started" for one in events) == 1


async def test_without_a_summary_the_oldest_turns_are_left_out_all_the_same() -> None:
    model = Stocktaker(80, window=6_000)
    context = ContextSpec(window_tokens=6_000, summary="none")
    view, events, messages = await play(model, context=context)
    assert view.state.status == "completed"
    assert model.summaries == 0
    assert "are left out here; read one in full" in model.last
    assert [one.number for one in messages] == list(range(1, len(messages) + 1))
    how = {one["data"]["how"] for one in events if one["type"] == "context.compacted"}
    assert how == {"stubs", "summary"}


async def test_the_view_is_the_same_read_from_the_store_as_kept_up() -> None:
    model = Stocktaker(80, window=6_000)
    store = MemoryStore()
    host = App(agents=[agent(model, context=ContextSpec(window_tokens=6_000))], store=store)
    async with host:
        run = await host.start("clerk", TASK)
        view = await host.wait(run.id, timeout_seconds=60)
        (ask,) = view.state.asks
        await host.answer(f"{run.id}:{ask.id}", decision="approve", by="ann")
        view = await host.wait(run.id, timeout_seconds=60)
        state = view.state
        fresh = ChatView(state)
        fresh.follow(state, await shown_messages(store, state))
        log = await store.log(run.id)
    asked = [
        one.outcome.value["prompt"]
        for entry in log
        for one in entry.events
        if one.kind == "settled" and isinstance(one.outcome.value, dict)
        if "prompt" in one.outcome.value
    ]
    last = model.requests[-1]
    shown = fresh.chat[: len(last.messages) - 1]
    assert tuple(shown) == tuple(last.messages[:-1])
    fresh.chat = shown
    assert fresh.fingerprint(last.system, last.messages[-1]) == asked[-1]


async def test_a_huge_reply_that_was_not_taken_leaves_room_for_the_next() -> None:
    prompts: list[list[str]] = []

    def reply(request: ModelRequest) -> Any:
        prompts.append([one.text for one in request.messages])
        if len(prompts) > 2:
            return {"taskComplete": True, "message": "Noted."}
        return {
            "taskComplete": False,
            "scratchpad": {"notes": "z" * [250_000, 50_000][len(prompts) - 1]},
        }

    agent = Agent("a", model=ScriptedModel(reply))
    async with App(agents=[agent], store="memory://") as app:
        run = await app.wait((await app.start("a", TASK)).id)
        assert run.state.status == "completed"
        said = await app.store.transcript(run.id)
    assert any(len(one.text) > 250_000 for one in said), "it can still be looked at"
    assert "too long to be shown to you again" in "".join(prompts[1])
    assert [sum(map(len, one)) < 10_000 for one in prompts] == [True, True, False]


@action(effects="external", approval="auto")
async def mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


async def test_what_took_effect_stands_beside_a_summary_that_says_nothing() -> None:
    loop = {
        "collectionPath": "static:[1,2,3,4]",
        "action": {"name": "mail", "params": {"to": "{{ item }}@example.com"}},
    }
    calls = [{"name": "mail", "params": {"to": "ann"}}, {"name": "shelf", "params": {"number": 0}}]
    steps = [
        {"type": "Actions", "actions": calls},
        {"type": "ForEach", "forEach": loop},
        *(call(number)["nextStep"] for number in range(8)),
    ]
    prompts: list[str] = []

    def reply(request: ModelRequest) -> Any:
        prompts.append("\n".join(one.text for one in request.messages))
        if len(prompts) > len(steps):
            return {"taskComplete": True, "message": "Done."}
        return {
            "taskComplete": False,
            "message": noise(9) * 2,
            "nextStep": steps[len(prompts) - 1],
        }

    small = ContextSpec(window_tokens=20_000, summary="none", keep_turns=1)
    agent = Agent("a", model=ScriptedModel(reply), actions=[shelf, mail], context=small)
    async with App(agents=[agent], store="memory://") as app:
        run = await app.wait((await app.start("a", TASK)).id)
        assert run.state.status == "completed"
    last = prompts[-1]
    assert "sent to ann" not in last
    assert '- #3 mail{"to":"ann"}\n- #5 forEach action mail, 4 passes' in last
    assert "shelf{" not in last
