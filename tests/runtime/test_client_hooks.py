"""Hooks after calls that a client carries out: asked when the answer comes, before anything of it is kept."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from loopagent import (
    Agent,
    App,
    ClientToolSpec,
    HookCall,
    RequestError,
    ToolAnswer,
    add_context,
    after_action,
    replace_result,
    stop,
)
from tests.runtime.hooked import Json, Listening, decided


pytestmark = pytest.mark.anyio
PICK = ClientToolSpec(name="pick", effects="read", result={"type": "string"})
CALLS: Json = {
    "taskComplete": False,
    "nextStep": {"type": "ClientTools", "clientTools": [{"name": "pick", "params": {}}]},
}
SECRET = "4242 4242 4242"
PICTURE = b"\x89PNG a picture of a card"
MEDIA = {"mediaType": "image/png", "name": "card.png", "data": base64.b64encode(PICTURE).decode()}


@asynccontextmanager
async def waiting(
    hook: Callable[[HookCall], Any], store: str = "memory://", **more: Any
) -> AsyncIterator[tuple[App, str, Listening]]:
    """A run that waits for its client, with one hook after calls."""
    model = Listening(CALLS)
    agent = Agent("picker", model=model, client_tools=(PICK,))
    async with App(agents=[agent], store=store, hooks=[after_action(hook, **more)]) as app:
        view = await app.wait((await app.start("picker", "Go.")).id, timeout_seconds=60)
        assert view.loop.state == "client_tool"
        yield app, view.id, model


async def ended(app: App, run_id: str, answer: ToolAnswer) -> tuple[Any, list[Json]]:
    await app.answer_call(run_id, "1:tool.0", answer)
    view = await app.wait(run_id, timeout_seconds=60)
    return view.state, [one async for one in app.events(run_id, live=False)]


async def test_what_a_hook_replaces_is_stored_nowhere_and_its_media_go_with_it(
    tmp_path: Path,
) -> None:
    told: list[HookCall] = []

    def hide(call: HookCall) -> Any:
        told.append(call)
        return replace_result("(card)") & add_context("A card was shown.")

    async with waiting(hide, f"sqlite:///{tmp_path}/runs.db") as (app, run, model):
        with pytest.raises(RequestError, match="does not fit"):
            await app.answer_call(run, "1:tool.0", ToolAnswer(result=7))
        state, events = await ended(app, run, ToolAnswer(result=SECRET, media=(MEDIA,)))
        assert state.status == "completed"
        assert "(card)" in model.text()
        assert "A card was shown." in model.text()
    [call] = told
    about = {"mediaType": "image/png", "bytes": len(PICTURE), "name": "card.png"}
    assert (call.action, call.call_id, call.ok) == ("pick", "1:tool.0", True)
    assert (call.result, call.media) == (SECRET, (about,))
    [end] = [one["data"] for one in events if one["type"] == "client_tool.completed"]
    assert (end["result"], end["media"], end["ok"]) == ("(card)", [], True)
    assert decided(events) == [
        ("hide", "after_action", "context"),
        ("hide", "after_action", "result"),
    ]
    kept = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert (SECRET.encode() in kept, PICTURE in kept) == (False, False)


async def test_a_hook_that_fails_keeps_the_answer_back() -> None:
    def broken(call: HookCall) -> Any:
        raise ValueError(call.action)

    async with waiting(broken) as (app, run, model):
        _, events = await ended(app, run, ToolAnswer(result=SECRET))
        assert "its result is kept back" in model.text()
        assert SECRET not in model.text()
    [end] = [one["data"] for one in events if one["type"] == "client_tool.completed"]
    assert (end["status"], end["ok"], end["error"]["code"]) == ("answered", False, "hook_failed")


async def test_a_hook_stops_the_run_once_the_answer_is_recorded() -> None:
    async with waiting(lambda _: stop("Enough."), name="strict") as (app, run, _):
        state, events = await ended(app, run, ToolAnswer(result="a"))
    assert (state.status, state.result.reason) == ("failed", "hook")
    assert "client_tool.completed" in [one["type"] for one in events]


async def test_a_hook_hears_of_an_error_and_may_give_a_result_instead() -> None:
    def mend(call: HookCall) -> Any:
        assert call.error is not None
        return replace_result(f"instead of: {call.error['message']}")

    async with waiting(mend) as (app, run, model):
        _, events = await ended(app, run, ToolAnswer(success=False, error="No camera."))
        assert "instead of: No camera." in model.text()
    [end] = [one["data"] for one in events if one["type"] == "client_tool.completed"]
    assert end["ok"] is True


async def test_hooks_after_other_calls_are_not_asked() -> None:
    async with waiting(lambda _: stop("No."), name="strict", actions=["mail.send"]) as (
        app,
        run,
        _,
    ):
        state, events = await ended(app, run, ToolAnswer(result="a", media=(MEDIA,)))
    assert state.status == "completed"
    assert decided(events) == []
    [end] = [one["data"] for one in events if one["type"] == "client_tool.completed"]
    assert [one["name"] for one in end["media"]] == ["card.png"]
