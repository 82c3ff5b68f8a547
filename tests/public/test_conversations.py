"""Conversations in whole runs: continued, one run at a time, each for its own user."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, RequestError
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import ModelRequest
from loopagent.runview import RunView


pytestmark = pytest.mark.anyio


def chatty(request: ModelRequest) -> dict[str, Any]:
    """Ask about a task that says so; else echo the task."""
    texts = [one.text for one in request.messages]
    task = next(one for one in texts if not one.startswith("This task continues"))
    if task.startswith("Ask") and "Blue." not in texts:
        return {"taskComplete": False, "message": "Which one?", "nextStep": {"type": "Chat"}}
    return {"taskComplete": True, "message": f"Done: {task}"}


def host(store: str = "memory://", **options: Any) -> tuple[App, ScriptedModel]:
    model = ScriptedModel(chatty)
    return App(agents=[Agent("guide", model=model)], store=store, **options), model


async def ended(app: App, run: RunView) -> RunView:
    """The run at its end, also when it still has to begin."""
    async with asyncio.timeout(10):
        while not run.state.ended:
            await asyncio.sleep(0.01)
            run = await app.wait(run.id)
    return run


async def texts(app: App, user: str = "", conversation: str = "c1") -> list[str]:
    return [one.text for one in await app.conversations.messages(conversation, user=user)]


async def test_a_run_continues_a_conversation() -> None:
    app, model = host()
    async with app:
        for task in ("One.", "Ask me.", "Three."):
            run = await app.start("guide", task, conversation="c1")
            run = await app.wait(run.id)
            if run.waiting:
                await app.post(run.id, "Blue.")
                run = await app.wait(run.id)
            assert run.state.status == "completed"
        assert await texts(app) == [
            "One.",
            "Done: One.",
            "Ask me.",
            "Which one?",
            "Blue.",
            "Done: Ask me.",
            "Three.",
            "Done: Three.",
        ]
        row = await app.conversations.get("c1")
        assert (row.messages, row.title, row.active) == (8, "One.", ())
    first = model.requests[-1].messages[0].text
    body = json.loads(first[first.index("{") :])
    assert [one["text"] for one in body["conversation"]][-1] == "Done: Ask me."
    assert "earlier" not in body
    assert model.requests[0].messages[0].text == "One."


async def test_a_budget_bounds_what_is_shown() -> None:
    app, model = host()
    async with app:
        for number in range(20):
            limits = {"maxHistoryTokens": 60}
            run = await app.start("guide", f"Task {number}.", conversation="c1", limits=limits)
            await app.wait(run.id)
    first = model.requests[-1].messages[0].text
    body = json.loads(first[first.index("{") :])
    assert body["conversation"][-1] == {"sequence": 38, "role": "AI", "text": "Done: Task 18."}
    assert body["earlier"] == 38 - len(body["conversation"])


async def test_a_second_active_run_is_refused() -> None:
    app, _ = host()
    async with app:
        first = await app.start("guide", "Ask me.", conversation="c1")
        await app.wait(first.id)
        with pytest.raises(RequestError, match=first.id) as refused:
            await app.start("guide", "Two.", conversation="c1")
        assert (refused.value.code, refused.value.status) == ("conversation_busy", 409)
        other = await app.start("guide", "Two.", conversation="c2")
        assert (await app.wait(other.id)).state.status == "completed"
        assert len((await app.runs())[0]) == 2


async def test_a_second_run_waits_for_the_first() -> None:
    app, _ = host()
    async with app:
        first = await app.start("guide", "Ask me.", conversation="c1")
        await app.wait(first.id)
        queued = [
            await app.start("guide", f"{word}.", conversation="c1", on_busy="enqueue")
            for word in ("Two", "Three")
        ]
        assert [one.loop.state for one in queued] == ["queued", "queued"]
        assert (await app.conversations.get("c1")).active == tuple(
            one.id for one in (first, *queued)
        )
        await app.post(first.id, "Blue.")
        for one in queued:
            assert (await ended(app, one)).state.status == "completed"
        assert (await texts(app))[-4:] == ["Two.", "Done: Two.", "Three.", "Done: Three."]


async def test_a_run_may_wait_where_nobody_is() -> None:
    app, _ = host()
    async with app:
        run = await app.start("guide", "One.", conversation="c1", on_busy="enqueue")
        assert (await app.wait(run.id)).state.status == "completed"


async def test_who_waits_is_let_in_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    app, _ = host(url)
    async with app:
        first = await app.start("guide", "Ask me.", conversation="c1", user="ann")
        await app.wait(first.id)
        queued = await app.start("guide", "Two.", conversation="c1", user="ann", on_busy="enqueue")
    app, _ = host(url, recover=False)
    async with app:
        app.engine.closing = True  # the process ends with the first run, before it lets anybody in
        await app.cancel(first.id)
        assert (await app.get(queued.id)).loop.state == "queued"
    app, model = host(url)
    async with app:
        assert (await ended(app, queued)).state.status == "completed"
        assert "was cancelled" in model.requests[-1].messages[0].text


async def test_an_interrupting_run_cancels_those_before_it() -> None:
    app, _ = host()
    async with app:
        first = await app.start("guide", "Ask me.", conversation="c1")
        await app.wait(first.id)
        queued = await app.start("guide", "Two.", conversation="c1", on_busy="enqueue")
        last = await app.start("guide", "Three.", conversation="c1", on_busy="interrupt")
        assert (await app.wait(last.id)).state.status == "completed"
        for one in (first, queued):
            assert (await app.get(one.id)).state.status == "cancelled"
        assert (await texts(app))[-2:] == ["Three.", "Done: Three."]


async def test_many_at_once_are_one_after_the_other(tmp_path: Path) -> None:
    app, _ = host(f"sqlite:///{tmp_path / 'runs.db'}")
    async with app:
        runs = await asyncio.gather(
            *(
                app.start("guide", f"Task {number}.", conversation="c1", on_busy="enqueue")
                for number in range(8)
            )
        )
        for one in runs:
            assert (await ended(app, one)).state.status == "completed"
        said = await texts(app)
    pairs = list(zip(said[::2], said[1::2], strict=True))
    assert sorted(pairs) == sorted((f"Task {n}.", f"Done: Task {n}.") for n in range(8))


async def test_fix_42_two_processes_let_the_next_run_in_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    (app, _), (other, _) = host(url), host(url)
    async with app, other:
        first = await app.start("guide", "Ask me.", conversation="c1")
        await app.wait(first.id)
        queued = await other.start("guide", "Two.", conversation="c1", on_busy="enqueue")
        await app.cancel(first.id)
        await asyncio.gather(*(one.engine.recover() for one in (app, other) for _ in range(3)))
        run = await ended(app, queued)
        events = [one["type"] async for one in app.events(run.id, live=False)]
        assert events.count("run.started") == 1
        assert (await texts(app))[2:] == [
            "(No answer: the run was cancelled)",
            "Two.",
            "Done: Two.",
        ]


async def test_users_see_nothing_of_each_other() -> None:
    app, model = host()
    async with app:
        for user, task in (("ann", "The code is 7391."), ("bob", "What is the code?"), ("", "?")):
            run = await app.start("guide", task, conversation="c1", user=user)
            await app.wait(run.id)
        assert await texts(app, "ann") == ["The code is 7391.", "Done: The code is 7391."]
        assert await texts(app, "bob") == ["What is the code?", "Done: What is the code?"]
        rows, _ = await app.conversations.page(user="bob")
        assert [(one.id, one.user, one.messages) for one in rows] == [("c1", "bob", 2)]
        with pytest.raises(RequestError, match="no conversation"):
            await app.conversations.get("c1", user="eve")
        with pytest.raises(RequestError, match="no conversation"):
            await app.conversations.messages("c1", user="eve")
        with pytest.raises(RequestError, match="no conversation"):
            await app.conversations.delete("c1", user="eve")
        await app.conversations.delete("c1", user="bob")
        assert len(await texts(app, "ann")) == 2
    for one in model.requests[1:]:
        assert "7391" not in str(one)


@pytest.mark.parametrize("name", ["", "../x", "a b", "-x", "x" * 201, "a/b", "ä"])
async def test_bad_names_are_refused(name: str) -> None:
    app, _ = host()
    async with app:
        if not name:
            run = await app.start("guide", "One.", conversation=name)
            assert run.public()["conversationId"] is None
            return
        with pytest.raises(RequestError) as refused:
            await app.start("guide", "One.", conversation=name)
        assert refused.value.code == "invalid_conversation"
        assert (await app.runs())[0] == []


async def test_a_user_has_a_printable_name() -> None:
    app, _ = host()
    async with app:
        with pytest.raises(RequestError) as refused:
            await app.start("guide", "One.", user="ann\nbob")
        assert refused.value.code == "invalid_user"


async def test_a_deleted_conversation_leaves_nothing(tmp_path: Path) -> None:
    app, _ = host(f"sqlite:///{tmp_path / 'runs.db'}")
    async with app:
        run = await app.start("guide", "The code is 7391.", conversation="c1", user="ann")
        await app.wait(run.id)
        await app.conversations.delete("c1", user="ann")
        with pytest.raises(RequestError, match="no run"):
            await app.get(run.id)


async def test_a_word_that_means_nothing_is_not_taken_for_another() -> None:
    app, _ = host()
    wrong: Any = "queue_it"
    async with app:
        run = await app.wait((await app.start("guide", "Ask me.", conversation="c1")).id)
        with pytest.raises(RequestError, match="reject, enqueue, interrupt"):
            await app.start("guide", "Two.", conversation="c1", on_busy=wrong)
        with pytest.raises(RequestError, match="queue, steer"):
            await app.post(run.id, "Blue.", delivery=wrong)
        with pytest.raises(RequestError, match="plan, act"):
            await app.set_mode(run.id, wrong)
        assert (await app.get(run.id)).loop.state == "followup"
