"""Pausing, resuming and raising limits of real runs: the whole tree, over restarts, with nothing lost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, RequestError, action
from loopagent.core.agent_spec import ApprovalPolicy, Limits
from loopagent.errors import ModelError
from loopagent.models.scripted import ScriptedModel
from loopagent.runtime.attempts import RetryPolicy
from loopagent.stores import open_store
from tests.waiting import until


pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parent.parent.parent
DONE = {"taskComplete": True, "message": "Done."}
FREE = ApprovalPolicy(write="auto")


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where runs are kept."""
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/runs.db"


def act(*names: str, **more: Any) -> dict[str, Any]:
    """A reply that calls actions without parameters."""
    calls = [{"name": one, "params": {}} for one in names]
    return {"taskComplete": False, "nextStep": {"type": "Actions", "actions": calls}, **more}


class Gate:
    """Two actions: one that waits until it is let through, one that is counted."""

    def __init__(self) -> None:
        self.begun = 0
        self.open = asyncio.Event()
        self.counted = 0
        gate = self

        @action(effects="write", approval="auto")
        async def wait_here() -> str:
            gate.begun += 1
            await gate.open.wait()
            return "let through"

        @action(effects="read")
        async def count() -> int:
            gate.counted += 1
            return gate.counted

        @action(effects="external")
        async def mail() -> str:
            return "sent"

        self.actions = [wait_here, count, mail]


def leading(gate: Gate, *replies: dict[str, Any], **more: Any) -> Agent[Any]:
    """An agent that gives its work to another one, whose replies these are."""
    helper = Agent("helper", model=ScriptedModel([*replies]), actions=gate.actions)
    work = {"type": "Sub-Agent", "subAgents": [{"name": "helper", "message": "Do it."}]}
    model = ScriptedModel([{"taskComplete": False, "nextStep": work}, DONE])
    return Agent("lead", model=model, agents=[helper], approval=FREE, **more)


async def test_what_is_under_way_ends_and_nothing_new_begins(url: str) -> None:
    gate = Gate()
    agent = Agent(
        "clerk",
        model=ScriptedModel([act("wait_here"), act("count"), DONE]),
        actions=gate.actions,
    )
    async with App(agents=[agent], store=url) as app:
        run = await app.start("clerk", "Go.")
        await until(lambda: gate.begun)
        view = await app.pause(run.id, reason="lunch", by="ann")
        assert (view.loop.state, view.loop.reason) == ("resumable", "paused")
        gate.open.set()
        view = await app.wait(run.id, timeout_seconds=20)
        assert view.state.turn == 1
        assert gate.counted == 0
        assert not app.engine.runs.works_on(run.id)  # it costs a row and nothing else
        assert await app.store.unfinished() == []
        view = await app.resume(run.id, by="ann")
        view = await app.wait(run.id, timeout_seconds=20)
        assert (view.state.status, gate.begun, gate.counted) == ("completed", 1, 1)
        events = [one async for one in app.events(run.id, live=False)]
        (paused,) = [one for one in events if one["type"] == "run.paused"]
        assert (paused["data"]["reason"], paused["decidedBy"]) == ("lunch", "human")
        states = [one["data"]["state"] for one in events if one["type"] == "run.state"]
        assert states == ["running", "resumable", "running", "idle"]
        assert [one["seq"] for one in events] == list(range(1, len(events) + 1))


async def test_answers_and_messages_to_a_paused_run_are_kept(url: str) -> None:
    gate = Gate()
    agent = Agent("clerk", model=ScriptedModel([act("mail"), DONE]), actions=gate.actions)
    async with App(agents=[agent], store=url) as app:
        run = await app.start("clerk", "Go.")
        view = await app.wait(run.id, timeout_seconds=20)
        (ask,) = view.asks
        view = await app.pause(run.id)
        assert [one["requestId"] for one in view.asks] == [ask["requestId"]]
        await app.answer(ask["requestId"], decision="approve")
        with pytest.raises(RequestError, match="answered already"):
            await app.answer(ask["requestId"], decision="reject")
        view = await app.post(run.id, "And be quick.")
        assert view.loop.state == "resumable"
        view = await app.resume(run.id)
        view = await app.wait(run.id, timeout_seconds=20)
        assert view.state.status == "completed"
        said = await app.store.transcript(run.id)
        assert "sent" in next(one.text for one in said if one.kind == "results")
        assert "And be quick." in [one.text for one in said if one.kind == "person"]


async def test_a_model_call_under_way_is_let_finish_and_not_paid_twice(url: str) -> None:
    go, asked = asyncio.Event(), 0

    async def reply(request: Any) -> Any:
        nonlocal asked
        asked += 1
        await go.wait()
        return DONE

    agent = Agent("clerk", model=ScriptedModel(reply))
    async with App(agents=[agent], store=url) as app:
        run = await app.start("clerk", "Go.")
        await until(lambda: asked)
        await app.pause(run.id)
        go.set()
        view = await app.wait(run.id, timeout_seconds=20)
        assert (view.loop.state, view.state.turn) == ("resumable", 1)
        await app.resume(run.id)
        view = await app.wait(run.id, timeout_seconds=20)
        assert (view.state.status, asked) == ("completed", 1)


async def test_a_tree_is_paused_and_resumed_as_a_whole(url: str) -> None:
    gate = Gate()
    lead = leading(gate, act("wait_here"), act("count"), DONE)
    async with App(agents=[lead], store=url) as app:
        run = await app.start("lead", "Go.")
        child = f"{run.id}.1.sub.0"
        await until(lambda: gate.begun)
        view = await app.pause(run.id)
        assert view.loop.state == "resumable"
        await _until_state(app, child, "resumable")
        gate.open.set()
        view = await app.wait(run.id, timeout_seconds=20)
        assert (view.loop.state, gate.counted) == ("resumable", 0)
        with pytest.raises(RequestError, match="resume that one"):
            await app.resume(child)
        await app.resume(run.id)
        view = await app.wait(run.id, timeout_seconds=20)
        assert (view.state.status, gate.begun, gate.counted) == ("completed", 1, 1)


async def test_a_child_that_is_paused_alone_shows_in_its_parent(url: str) -> None:
    gate = Gate()
    lead = leading(gate, act("wait_here"), DONE)
    async with App(agents=[lead], store=url) as app:
        run = await app.start("lead", "Go.")
        child = f"{run.id}.1.sub.0"
        await until(lambda: gate.begun)
        await app.pause(child)
        view = await app.get(run.id)
        assert view.loop.ask is not None
        assert (view.loop.state, view.loop.ask.run_id) == ("resumable", child)
        gate.open.set()
        await app.resume(run.id)
        view = await app.wait(run.id, timeout_seconds=20)
        assert view.state.status == "completed"


async def _until_state(app: App, run_id: str, wanted: str) -> None:
    for _ in range(4_000):
        if (await app.get(run_id)).loop.state == wanted:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"{run_id} never was {wanted}")


async def test_a_paused_run_can_be_cancelled_and_an_ended_one_not_paused(url: str) -> None:
    gate = Gate()
    agent = Agent("clerk", model=ScriptedModel([act("mail"), DONE]), actions=gate.actions)
    async with App(agents=[agent], store=url) as app:
        run = await app.start("clerk", "Go.")
        await app.wait(run.id, timeout_seconds=20)
        await app.pause(run.id)
        view = await app.cancel(run.id)
        assert (view.state.status, view.loop.state) == ("cancelled", "idle")
        with pytest.raises(RequestError, match="has ended"):
            await app.pause(run.id)
        assert (await app.resume(run.id)).state.status == "cancelled"


async def test_a_raised_limit_lets_a_run_go_on_and_its_stream_with_it(url: str) -> None:
    gate = Gate()
    agent = Agent(
        "clerk",
        model=ScriptedModel([act("count"), act("count"), DONE]),
        actions=gate.actions,
        limits=Limits(max_turns=1),
    )
    async with App(agents=[agent], store=url) as app:
        run = await app.start("clerk", "Go.")
        view = await app.wait(run.id, timeout_seconds=20)
        assert view.state.result is not None
        assert view.state.result.reason == "limit"
        ended_at = view.seq
        with pytest.raises(RequestError, match="must be more than it is: no limit"):
            await app.raise_limits(run.id, {"maxCostUsd": 0.5})
        with pytest.raises(RequestError, match="greater than or equal to 1"):
            await app.raise_limits(run.id, {"maxTurns": 0})
        with pytest.raises(RequestError, match="raise the limit"):
            await app.resume(run.id)
        with pytest.raises(RequestError, match="used already"):
            await app.raise_limits(run.id, {"maxTurns": 1})
        with pytest.raises(RequestError, match="must be one of"):
            await app.raise_limits(run.id, {"maxDepth": 9})
        view = await app.raise_limits(run.id, {"maxTurns": 3}, by="ann")
        assert view.public()["limits"]["maxTurns"] == 3
        view = await app.wait(run.id, timeout_seconds=20)
        assert (view.state.status, view.state.turn, gate.counted) == ("completed", 3, 2)
        events = [one async for one in app.events(run.id)]
        assert [one["seq"] for one in events if "seq" in one] == list(range(1, view.seq + 1))
        assert next(one["type"] for one in events if one["seq"] == ended_at) == "run.failed"
        assert events[-1]["type"] == "run.completed"
        with pytest.raises(RequestError, match="at no limit"):
            await app.raise_limits(run.id, {"maxTurns": 9})


async def test_raised_limits_survive_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"

    def agent() -> Agent[Any]:
        gate = Gate()
        script = [act("count"), act("mail"), DONE]
        return Agent(
            "clerk",
            model=ScriptedModel(script),
            actions=gate.actions,
            limits=Limits(max_turns=2),
        )

    async with App(agents=[agent()], store=url) as app:
        run = await app.start("clerk", "Go.")
        view = await app.wait(run.id, timeout_seconds=20)
        await app.raise_limits(run.id, {"max_turns": 5})
    async with App(agents=[agent()], store=url) as app:
        view = await app.get(run.id)
        assert view.state.spec.limits.max_turns == 5
        await app.answer(view.asks[0]["requestId"], decision="approve")
        view = await app.wait(run.id, timeout_seconds=20)
        assert (view.state.status, view.state.turn) == ("completed", 3)


async def test_a_tree_may_spend_more_while_it_runs(url: str) -> None:
    gate = Gate()
    lead = leading(gate, act("wait_here"), act("count"), DONE, limits=Limits(max_turns=2))
    async with App(agents=[lead], store=url) as app:
        run = await app.start("lead", "Go.")
        await until(lambda: gate.begun)
        await app.raise_limits(run.id, {"maxTurns": 10})
        for _ in range(4_000):
            child = (await app.get(f"{run.id}.1.sub.0")).state
            if child.ancestors[0].max_turns == 10:
                break
            await asyncio.sleep(0.005)
        gate.open.set()
        view = await app.wait(run.id, timeout_seconds=20)
        assert (view.state.status, view.state.turn, gate.counted) == ("completed", 2, 1)


async def test_a_run_that_the_model_failed_is_tried_again(url: str) -> None:
    down = True

    def reply(request: Any) -> Any:
        if down:
            return ModelError("auth", "No such key.")
        return DONE

    agent = Agent("clerk", model=ScriptedModel(reply))
    policy = RetryPolicy(max_tries=1)
    async with App(agents=[agent], store=url, retry=policy) as app:
        run = await app.start("clerk", "Go.")
        view = await app.wait(run.id, timeout_seconds=20)
        assert view.state.result is not None
        assert view.state.result.reason == "model"
        assert view.loop.ask is not None
        assert view.loop.ask.primary.decision == "retry"
        down = False
        await app.resume(run.id, by="ann")
        view = await app.wait(run.id, timeout_seconds=20)
        assert (view.state.status, view.state.turn) == ("completed", 2)


async def test_a_run_of_a_conversation_goes_on_only_alone(url: str) -> None:
    gate = Gate()
    agent = Agent(
        "clerk",
        model=ScriptedModel([act("mail"), DONE]),
        actions=gate.actions,
        limits=Limits(max_turns=1),
    )
    async with App(agents=[agent], store=url) as app:
        first = await app.start("clerk", "Go.", conversation="c1")
        view = await app.wait(first.id, timeout_seconds=20)
        await app.answer(view.asks[0]["requestId"], decision="approve")
        await app.wait(first.id, timeout_seconds=20)
        second = await app.start("clerk", "Go on.", conversation="c1")
        await app.wait(second.id, timeout_seconds=20)
        with pytest.raises(RequestError, match="one at a time"):
            await app.raise_limits(first.id, {"maxTurns": 5})
        await app.cancel(second.id)
        await app.raise_limits(first.id, {"maxTurns": 5})
        view = await app.wait(first.id, timeout_seconds=20)
        assert view.state.status == "completed"


async def test_two_processes_pause_and_resume_the_same_run(tmp_path: Path) -> None:
    url, gate = f"sqlite:///{tmp_path}/runs.db", Gate()
    script = [act("wait_here", "count"), act("count"), DONE]
    agents = [Agent("clerk", model=ScriptedModel(script), actions=gate.actions) for _ in range(2)]
    async with (
        App(agents=agents[:1], store=url) as works,
        App(agents=agents[1:], store=url, recover=False) as other,
    ):
        run = await works.start("clerk", "Go.")
        await until(lambda: gate.begun and gate.counted)
        await other.pause(run.id)
        assert (await works.get(run.id)).loop.state == "resumable"
        await works.resume(run.id)
        assert (await other.get(run.id)).loop.state == "running"
        await works.pause(run.id)
        await other.resume(run.id)
        await works.pause(run.id)
        gate.open.set()
        await until(lambda: not works.engine.runs.works_on(run.id))
        assert gate.counted == 1
        await other.resume(run.id)
        view = await other.wait(run.id, timeout_seconds=20)
        assert (view.state.status, gate.begun, gate.counted) == ("completed", 1, 2)


WORKER = textwrap.dedent("""
    import asyncio, os, signal, sys
    from pathlib import Path
    from loopagent import Agent, App, action
    from loopagent.core.agent_spec import ApprovalPolicy
    from loopagent.models.scripted import ScriptedModel

    folder, what = Path(sys.argv[1]), sys.argv[2]

    @action(effects="write", approval="auto")
    async def charge() -> str:
        with (folder / "effects.txt").open("a") as file:
            file.write("charged\\n")
        if what == "begin":
            print("working", flush=True)
            await asyncio.sleep(60)
        return "charged"

    @action(effects="read")
    async def look() -> str:
        with (folder / "effects.txt").open("a") as file:
            file.write("looked\\n")
        return "seen"

    def act(name):
        return {"taskComplete": False, "nextStep": {"type": "Actions", "actions": [{"name": name, "params": {}}]}}

    DONE = {"taskComplete": True, "message": "Done."}
    GIVE = {"taskComplete": False, "nextStep": {"type": "Sub-Agent", "subAgents": [{"name": "helper", "message": "Go."}]}}

    async def main():
        helper = Agent("helper", model=ScriptedModel([act("charge"), act("look"), DONE]), actions=[charge, look])
        lead = Agent("lead", model=ScriptedModel([GIVE, DONE]), agents=[helper], approval=ApprovalPolicy(write="auto"))
        async with App(agents=[lead], store=f"sqlite:///{folder}/runs.db") as app:
            rows, _ = await app.runs()
            run_id = rows[0].id if rows else (await app.start("lead", "Go.")).id
            if what == "begin":
                while not (folder / "effects.txt").exists():
                    await asyncio.sleep(0.01)
                await app.pause(run_id)
                if len(sys.argv) > 3:
                    while (await app.get(f"{run_id}.1.sub.0")).state.paused is None:
                        await asyncio.sleep(0.01)
                os.kill(os.getpid(), signal.SIGKILL)
            await asyncio.sleep(0.5)
            for _ in range(2):
                view = await app.wait(run_id, timeout_seconds=20)
                child = await app.get(f"{run_id}.1.sub.0")
                done = (folder / "effects.txt").read_text().split()
                print(view.loop.state, child.loop.state, view.state.status, *done, flush=True)
                await app.resume(run_id)

    asyncio.run(main())
""")


@pytest.mark.parametrize("told", [(), ("told",)])
def test_kill_9_leaves_a_paused_tree_paused_until_it_is_resumed(
    tmp_path: Path, told: tuple[str, ...]
) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)

    def work(*what: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(script), str(tmp_path), *what],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    dead = work("begin", *told)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    alive = work("look")
    assert alive.stdout.splitlines() == [
        "resumable resumable running charged",
        "idle idle completed charged looked",
    ], alive.stderr
    asyncio.run(_gap_free(f"sqlite:///{tmp_path}/runs.db"))


async def _gap_free(url: str) -> None:
    store = open_store(url)
    await store.open()
    rows, _ = await store.runs(roots=True)
    events = await store.events(rows[0].id)
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    assert [one["type"] for one in events].count("run.paused") == 2
    await store.aclose()
