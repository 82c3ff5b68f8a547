"""Copies of runs: from any turn, of any run, with the history up to there; the original is never touched."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, Attachment, RequestError, action
from loopagent.core.advance import advance
from loopagent.core.agent_spec import ApprovalPolicy, Limits
from loopagent.core.state import RunState
from loopagent.core.state_bytes import dump_state
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import Store
from loopagent.runtime.fold import beginning
from loopagent.runtime.turn import turn_record
from tests.waiting import until


pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parent.parent.parent
DONE = {"taskComplete": True, "message": "Done."}


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where runs are kept."""
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/runs.db"


@action(effects="read")
async def look(item: int) -> str:
    """Look at an item."""
    return f"seen {item} " + "x" * (9_000 if item == 1 else 1)


@action(effects="write")
async def write(item: int) -> str:
    """Write an item."""
    return f"wrote {item}"


def act(name: str, item: int, **more: Any) -> dict[str, Any]:
    """A reply that calls an action."""
    call = {"name": name, "params": {"item": item}}
    return {"taskComplete": False, "nextStep": {"type": "Actions", "actions": [call]}, **more}


def counting(request: Any) -> dict[str, Any]:
    """Look at 1, 2, 3, writing each down, then be done; goes by what the prompt says, not by a position."""
    text = request.messages[-1].text
    n = max((int(one) for one in "123" if f'"s{one}"' in text), default=0)
    if n == 3 or any("Stop" in one.text for one in request.messages):
        return {"taskComplete": True, "message": f"Saw {n}."}
    change = {"payloadChangeRequest": {"newElements": {"seen": {f"s{n + 1}": True}}}}
    return act("look", n + 1, **change)


def clerk(**options: Any) -> Agent[Any]:
    """An agent that looks at three items."""
    return Agent("clerk", model=ScriptedModel(counting), actions=[look, write], **options)


async def everything(store: Store, run_id: str) -> tuple[Any, ...]:
    """All that is known of a run."""
    snapshot = await store.load(run_id)
    assert snapshot is not None
    log, said = await store.log(run_id), await store.transcript(run_id)
    events = await store.events(run_id)
    return dump_state(snapshot.state), snapshot.version, snapshot.seq, log, said, events


async def folds(store: Store, run_id: str) -> None:
    """Folding the log gives the snapshot, and the same messages again."""
    snapshot = await store.load(run_id)
    assert snapshot is not None
    entries = await store.log(run_id)
    assert [one.version for one in entries] == list(range(1, snapshot.version + 1))
    state: RunState = beginning(snapshot.state, entries)
    for entry in entries:
        transition = advance(state, *entry.events)
        assert transition.messages == entry.messages
        state = transition.state
    assert json.loads(dump_state(state)) == json.loads(dump_state(snapshot.state))


async def finished(app: App, run_id: str) -> RunState:
    """The run at its end or its next wait."""
    return (await app.wait(run_id, timeout_seconds=30)).state


@pytest.mark.parametrize("turn", [1, 2, 3, 4])
async def test_a_copy_from_any_turn_ends_like_the_original(url: str, turn: int) -> None:
    async with App(agents=[clerk()], store=url) as app:
        run = await app.start("clerk", "Look.", payload={"seen": {}}, metadata={"a": 1})
        first = await finished(app, run.id)
        assert (first.status, first.turn) == ("completed", 4)
        before = await everything(app.store, run.id)
        view = await app.fork(run.id, turn=turn, by="ann")
        copy = await finished(app, view.id)
        assert (copy.status, copy.turn, copy.payload) == ("completed", 4, first.payload)
        assert copy.usage == first.usage
        assert await everything(app.store, run.id) == before
        told = [one.text for one in await app.store.transcript(copy.id)]
        assert told == [one.text for one in await app.store.transcript(run.id)]
        await folds(app.store, copy.id)
        events = [one async for one in app.events(copy.id, live=False)]
        assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
        assert {one["runId"] for one in events} == {copy.id}
        types = [one["type"] for one in events]
        assert types.count("turn.started") == types.count("turn.ended") == 4
        (forked,) = [one for one in events if one["type"] == "run.forked"]
        assert (forked["data"]["fromRunId"], forked["data"]["turn"]) == (run.id, turn)
        old = [one for one in events if "forkedFrom" in one]
        assert [one["seq"] for one in old] == list(range(1, forked["seq"]))
        originals = {one["id"]: one async for one in app.events(run.id, live=False)}
        for one in old:
            origin = originals[one["forkedFrom"]]
            assert (one["type"], one["data"], one["ts"]) == (
                origin["type"],
                origin["data"],
                origin["ts"],
            )
        row = next(one for one in (await app.runs())[0] if one.id == copy.id)
        assert row.title == "Look."
        for number in range(1, 5):
            record = await turn_record(app.store, copy.id, number, app.system)
            assert record.exact, number


async def test_a_message_and_another_payload_change_the_course(url: str) -> None:
    async with App(agents=[clerk()], store=url) as app:
        run = await app.start("clerk", "Look.", payload={"seen": {}})
        await finished(app, run.id)
        told = await app.fork(run.id, turn=3, message="Stop now.")
        assert told.public()["forkedFrom"] == {"runId": run.id, "turn": 3}
        state = await finished(app, told.id)
        assert (state.turn, state.result and state.result.message) == (3, "Saw 2.")
        assert (await turn_record(app.store, told.id, 3, app.system)).exact
        other = await app.fork(run.id, turn=1, payload={"seen": {"s1": True, "s2": True}})
        state = await finished(app, other.id)
        assert state.turn < 4
        assert list(state.payload["seen"]) == ["s1", "s2", "s3"]
        changed = [
            one
            async for one in app.events(other.id, live=False)
            if one["type"] == "payload.changed"
        ]
        assert changed[0]["decidedBy"] == "client"
        await folds(app.store, other.id)


async def test_a_copy_of_a_copy_and_of_an_early_part_of_it(url: str) -> None:
    async with App(agents=[clerk()], store=url) as app:
        run = await app.start("clerk", "Look.", payload={"seen": {}}, conversation="c1")
        await finished(app, run.id)
        first = await app.fork(run.id, turn=3)
        await finished(app, first.id)
        for turn in (2, 4):
            second = await app.fork(first.id, turn=turn)
            state = await finished(app, second.id)
            assert (state.status, state.turn, state.conversation) == ("completed", 4, "")
            assert state.forked_from is not None
            assert (state.forked_from.run_id, state.forked_from.turn) == (first.id, turn)
            await folds(app.store, second.id)
        said = await app.conversations.messages("c1")
        assert {one.run_id for one in said} == {run.id}


async def test_artifacts_of_the_history_can_be_looked_into(url: str) -> None:
    async with App(agents=[clerk()], store=url) as app:
        given = Attachment("notes.txt", b"some notes", "text/plain")
        run = await app.start("clerk", "Look.", payload={"seen": {}}, attachments=[given])
        original = await finished(app, run.id)
        early = await finished(app, (await app.fork(run.id, turn=1, message="Stop.")).id)
        late = await finished(app, (await app.fork(run.id, turn=3, message="Stop.")).id)
        assert [one.handle for one in late.artifacts] == [one.handle for one in original.artifacts]
        assert len(early.artifacts) == 1
        for one in late.artifacts:
            stored = await app.store.artifact(late.id, one.artifact_id)
            assert stored is not None
        hidden = late.artifacts[-1].artifact_id
        assert await app.store.artifact(early.id, hidden) is None
        await app.delete(run.id)
        assert await app.store.artifact(late.id, hidden) is not None


async def test_running_waiting_and_failed_runs_can_be_copied(url: str) -> None:
    go, calls = asyncio.Event(), 0

    async def slow(request: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            await go.wait()
        return act("write", 1) if len(request.messages) < 4 else DONE

    agent = Agent("slow", model=ScriptedModel(slow), actions=[look, write])
    async with App(agents=[agent], store=url) as app:
        running = await app.start("slow", "Write.")
        await until(lambda: calls)
        copy = await app.fork(running.id)
        waiting = await finished(app, copy.id)
        assert [one.ask for one in waiting.asks] == ["approval"]
        go.set()
        assert (await finished(app, running.id)).asks
        again = await app.fork(copy.id)
        state = await finished(app, again.id)
        (ask,) = (await app.get(again.id)).asks
        assert ask["requestId"].startswith(again.id)
        await app.answer(ask["requestId"], decision="approve")
        state = await finished(app, again.id)
        assert (state.status, state.turn) == ("completed", 2)
        assert (await app.get(copy.id)).asks  # the one that it is a copy of still waits
        await app.cancel(copy.id)
        from_cancelled = await app.fork(copy.id, turn=1)
        assert (await finished(app, from_cancelled.id)).asks


async def test_a_run_at_its_limit_is_copied_with_a_higher_one(url: str) -> None:
    async with App(agents=[clerk(limits=Limits(max_turns=2))], store=url) as app:
        run = await app.start("clerk", "Look.", payload={"seen": {}})
        assert (await finished(app, run.id)).status == "failed"
        view = await app.fork(run.id, limits={"maxTurns": 9})
        state = await finished(app, view.id)
        assert (state.status, state.turn, state.spec.limits.max_turns) == ("completed", 4, 9)
        assert (await app.get(run.id)).state.spec.limits.max_turns == 2
        await folds(app.store, view.id)
        await app.raise_limits(run.id, {"maxTurns": 9})
        assert (await finished(app, run.id)).status == "completed"
        copy = await finished(app, (await app.fork(run.id, turn=1)).id)
        assert copy.spec.limits.max_turns == 2  # what was raised later had not been raised then


async def test_what_cannot_be_copied_is_refused(url: str) -> None:
    async with App(agents=[clerk()], store=url) as app:
        run = await app.start("clerk", "Look.", payload={"seen": {}})
        await finished(app, run.id)
        for turn in (0, 5):
            with pytest.raises(RequestError, match="turns 1 to 4"):
                await app.fork(run.id, turn=turn)
        with pytest.raises(RequestError, match="no run"):
            await app.fork("nobody")
        with pytest.raises(RequestError, match="empty"):
            await app.fork(run.id, message=" ")
        with pytest.raises(RequestError, match="not JSON"):
            await app.fork(run.id, payload={"x": object()})
        with pytest.raises(RequestError, match="must be one of"):
            await app.fork(run.id, limits={"maxDepth": 1})
        assert len((await app.runs())[0]) == 1


PLAN: list[Any] = [
    {"taskComplete": False, "nextStep": {"type": "Plan", "plan": "1. Write it."}},
    act("write", 1),
    DONE,
]


@pytest.mark.parametrize(
    ("change", "status"),
    [({}, "approved"), ({"message": "Use 2."}, "none"), ({"payload": {}}, "none")],
)
async def test_an_approval_holds_only_for_an_unchanged_copy(
    url: str, change: dict[str, Any], status: str
) -> None:
    planner = Agent(
        "planner",
        model=ScriptedModel(PLAN),
        actions=[look, write],
        approval=ApprovalPolicy(write="auto"),
        plan_mode="required",
    )
    async with App(agents=[planner], store=url) as app:
        run = await app.start("planner", "Write.")
        await finished(app, run.id)
        (ask,) = (await app.get(run.id)).asks
        await app.answer(ask["requestId"], decision="approve", by="ann")
        original = await finished(app, run.id)
        assert original.status == "completed"
        view = await app.fork(run.id, turn=2, **change)
        copy = await finished(app, view.id)
        assert copy.plan.status == status
        assert (copy.plan.sha256, copy.plan.revision) == (original.plan.sha256, 1)
        calls = [one["type"] async for one in app.events(copy.id, live=False)]
        forked = calls.index("run.forked")
        assert ("action.started" in calls[forked:]) is (status == "approved")
        if status == "none":
            said = [one.text for one in await app.store.transcript(copy.id)]
            assert any("does not hold any more" in one for one in said)
        await folds(app.store, copy.id)


async def test_a_child_becomes_a_run_of_its_own_and_a_parent_gives_work_anew(url: str) -> None:
    helper = Agent("helper", model=ScriptedModel([act("look", 2), DONE]), actions=[look])
    give = {
        "taskComplete": False,
        "nextStep": {"type": "Sub-Agent", "subAgents": [{"name": "helper", "message": "Help."}]},
    }
    lead = Agent("lead", model=ScriptedModel([give, DONE]), agents=[helper])
    async with App(agents=[lead, helper], store=url) as app:
        run = await app.start("lead", "Go.")
        await finished(app, run.id)
        child = f"{run.id}.1.sub.0"
        alone = await finished(app, (await app.fork(child, turn=2)).id)
        assert (alone.status, alone.parent_id, alone.ancestors) == ("completed", None, ())
        assert alone.root_id == alone.id
        events = [one async for one in app.events(alone.id, live=False)]
        assert all(one["forkedFrom"].startswith(run.id) for one in events if "forkedFrom" in one)
        await folds(app.store, alone.id)
        anew = await app.fork(run.id, turn=1)
        state = await finished(app, anew.id)
        assert state.status == "completed"
        assert [one.id for one in await app.tree(anew.id)] == [anew.id, f"{anew.id}.1.sub.0"]
        after = await app.fork(run.id, turn=2)
        await finished(app, after.id)
        assert [one.id for one in await app.tree(after.id)] == [after.id]


WORKER = textwrap.dedent("""
    import asyncio, os, signal, sys
    from pathlib import Path
    from loopagent import Agent, App
    from loopagent.models.scripted import ScriptedModel
    from loopagent.runtime.engine import Engine

    folder, what = Path(sys.argv[1]), sys.argv[2]
    SCRIPT = [{"taskComplete": False, "nextStep": {"type": "Retry"}} for _ in range(3)]

    if what == "die":
        async def resume(self, run_id):
            os.kill(os.getpid(), signal.SIGKILL)

    async def main():
        agent = Agent("clerk", model=ScriptedModel([*SCRIPT, {"taskComplete": True, "message": "Done."}]))
        async with App(agents=[agent], store=f"sqlite:///{folder}/runs.db") as app:
            rows, _ = await app.runs()
            if what == "die":
                run = await app.start("clerk", "Go.")
                await app.wait(run.id, timeout_seconds=20)
                Engine.resume = resume
                await app.fork(run.id, turn=2)
            for row in rows:
                view = await app.wait(row.id, timeout_seconds=20)
                print(view.state.status, view.state.turn, view.state.forked_from is not None, flush=True)

    asyncio.run(main())
""")


def test_kill_9_after_a_copy_was_made_does_not_lose_it(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)

    def work(what: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(script), str(tmp_path), what],
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    dead = work("die")
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    alive = work("go on")
    lines = alive.stdout.splitlines()
    assert lines == ["completed 4 True", "completed 4 False"], alive.stderr
