"""Consecutive prompts share every byte up to the newest messages, whatever happens to the run between them."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from loopagent import Agent, App, Attachment, add_context, before_turn
from loopagent.ports import ModelReply, ModelRequest
from tests.runtime.hooked import DONE, Json, Listening, act, fetch, mail, send


pytestmark = pytest.mark.anyio
ASK: Json = {"taskComplete": False, "message": "Which?", "nextStep": {"type": "Chat"}}
RETRY: Json = {"taskComplete": False, "message": "On.", "nextStep": {"type": "Retry"}}
EVERYTHING: Json = {
    "taskComplete": False,
    "scratchpad": {"notes": "Mine."},
    "payloadChangeRequest": {"newElements": {"n": 1}},
    "memoryWrites": [{"note": "Likes tea", "type": "Preference"}],
    "artifactToolCalls": [{"artifactId": "A", "tool": "get_full", "input": {}}],
    "conversationToolCalls": [{"tool": "searchConversation", "input": {"query": "Go"}}],
    "nextStep": {"type": "Retry"},
}


class Gated(Listening):
    """Waits before each reply until it is let through, and can be interrupted there."""

    def __init__(self, *replies: Json) -> None:
        super().__init__(*replies)
        self.inside, self.through = asyncio.Event(), asyncio.Event()

    async def generate(self, request: ModelRequest, *, on_delta: Any = None) -> ModelReply:
        """Reply once `through` is set."""
        if not self.through.is_set():
            self.asked.append(request)
            self.inside.set()
            await self.through.wait()
            self.asked.pop()
        return await super().generate(request, on_delta=on_delta)


def shared(asked: list[ModelRequest]) -> list[int]:
    """How many messages each prompt shares with the one before it; complains where the prefix is broken."""
    found: list[int] = []
    for before, after in pairwise(asked):
        assert after.system == before.system
        assert before.messages[-1].text.startswith("State: ")
        kept = list(before.messages[:-1])
        assert list(after.messages[: len(kept)]) == kept
        found.append(len(kept))
    return found


async def test_with_notes_files_look_ups_payload_and_hooks() -> None:
    @before_turn
    async def weather(call: Any) -> Any:
        return add_context(f"It rains in turn {call.turn}.")

    model = Listening(EVERYTHING, DONE, EVERYTHING, act(("send", {"to": "ann"})), EVERYTHING)
    agent = Agent("a", model=model, memory={}, actions=[send])
    async with App(agents=[agent], hooks=[weather]) as app:
        for _ in range(2):
            files = [Attachment("a.txt", b"hello")]
            started = await app.start("a", "Go.", conversation="c1", attachments=files)
            view = await app.wait(started.id)
            assert view.state.status == "completed", view.state.result
    assert len(shared(model.asked[:2])) == 1
    counts = shared(model.asked[2:])
    assert counts == sorted(counts)
    assert counts[0] >= 3, "notes, history and what was looked up come once, at the beginning"


async def test_with_mode_changes_answers_and_refused_calls() -> None:
    plan: Json = {"taskComplete": False, "nextStep": {"type": "Plan", "plan": "1. Mail."}}
    model = Listening(ASK, act(("mail", {"to": "ann"})), plan, act(("mail", {"to": "ann"})), ASK)
    agent = Agent("a", model=model, actions=[mail, fetch])
    async with App(agents=[agent]) as app:
        view = await app.wait((await app.start("a", "Go.")).id)
        await app.set_mode(view.id, "plan")
        await app.post(view.id, "The blue one.")
        view = await app.wait(view.id)
        for _ in range(3):
            [request] = (await app.requests(run_id=view.id))[0]
            kind = request.body["kind"]
            said: dict[str, Any] = {"feedback": "Both."} if kind == "question" else {}
            decision = "answer" if kind == "question" else "approve"
            await app.answer(request.id, decision=decision, **said)
            view = await app.wait(view.id)
            if view.state.ended:
                break
            await app.set_mode(view.id, "act")
    assert view.state.status == "completed", view.state.result
    assert len(shared(model.asked)) >= 4
    assert "The mode was changed from act to plan." in model.text()


async def test_with_steering_that_aborts_a_reply() -> None:
    model = Gated(RETRY, DONE)
    async with App(agents=[Agent("a", model=model)]) as app:
        view = await app.start("a", "Go.")
        await model.inside.wait()
        await app.post(view.id, "Rather something else.", delivery="steer")
        model.through.set()
        view = await app.wait(view.id)
    assert view.state.status == "completed"
    assert "Rather something else." in model.text()
    assert view.state.turn == len(model.asked) == 3, "the first was asked and given up"
    assert len(shared(model.asked)) == 2
