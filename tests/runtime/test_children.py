"""Sub-agents in real runs: started once, heard wherever the parent is, one budget, stopped together."""

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

from loopagent import Agent, App, ConfigError, action
from loopagent.core.advance import advance
from loopagent.core.agent_spec import Limits
from loopagent.core.events import CancelRequested, Event
from loopagent.core.state import RunState
from loopagent.errors import RequestError
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import Commit, ModelRequest
from loopagent.runview import RunView
from loopagent.stores import open_store
from tests.waiting import until


pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parent.parent.parent
CHAT = {"taskComplete": False, "message": "Which one?", "nextStep": {"type": "Chat"}}
RETRY = {"taskComplete": False, "nextStep": {"type": "Retry"}}


def give(*work: Any) -> dict[str, Any]:
    """A reply that gives work: names, or whole entries."""
    entries = [{"name": one, "message": "Do it."} if isinstance(one, str) else one for one in work]
    return {"taskComplete": False, "nextStep": {"type": "Sub-Agent", "subAgents": entries}}


def done(message: str = "Done.", **update: Any) -> dict[str, Any]:
    """A reply that completes."""
    change = {"payloadChangeRequest": {"updateElements": update}} if update else {}
    return {"taskComplete": True, "message": message, **change}


def agent(name: str, *script: Any, **options: Any) -> Agent[Any]:
    """An agent that says this."""
    return Agent(name, model=ScriptedModel(script), **options)


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where runs are kept."""
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/runs.db"


async def finished(app: App, run_id: str) -> RunView:
    """The run at its end or its next wait."""
    return await app.wait(run_id, timeout_seconds=20)


async def test_children_work_side_by_side_and_their_changes_merge(url: str) -> None:
    boss = agent(
        "boss",
        give("left", "right"),
        done("All."),
        agents=[agent("left", done("L", a=2)), agent("right", done("R", b=2, a=1))],
    )
    async with App(agents=[boss], store=url) as app:
        view = await app.start("boss", "Go.", payload={"a": 1, "b": 1})
        view = await finished(app, view.id)
        assert (view.state.status, view.state.payload) == ("completed", {"a": 2, "b": 2})
        assert view.public()["usage"]["modelCalls"] == 4
        events = [one async for one in app.events(view.id, live=False)]
        assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
        rows = await app.tree(view.id)
        assert [(one.agent, one.parent_id) for one in rows] == [
            ("boss", None),
            ("left", view.id),
            ("right", view.id),
        ]
        assert [one.agent for one in (await app.runs())[0]] == ["boss"]
        assert len((await app.runs(children=True))[0]) == 3


async def test_the_root_stream_shows_the_tree_as_it_happens(url: str) -> None:
    heard = asyncio.Event()

    @action(effects="read")
    async def until_somebody_listens() -> str:
        await heard.wait()
        return "heard"

    wait = {"type": "Actions", "actions": [{"name": "until_somebody_listens"}]}
    script = ({"taskComplete": False, "nextStep": wait}, give("kid", "kid"), done())
    kid = agent("kid", RETRY, RETRY, done(), done())
    boss = agent("boss", *script, actions=[until_somebody_listens], agents=[kid])
    events: list[dict[str, Any]] = []
    async with App(agents=[boss], store=url) as app:
        view = await app.start("boss", "Go.")
        async for one in app.events(view.id):
            events.append(one)
            heard.set()
    numbers = [one["seq"] for one in events if "seq" in one]
    assert numbers == list(range(1, len(numbers) + 1))
    assert events[-1]["type"] == "run.completed"
    runs = {one["runId"] for one in events}
    assert runs == {view.id, f"{view.id}.2.sub.0", f"{view.id}.2.sub.1"}
    assert {one["runId"] for one in events if one["type"] == "run.idle"} <= {view.id}
    shown = {one["runId"] for one in events if one["type"] == "reply.delta"}
    assert shown - {view.id}, (
        "pieces of one child's reply may come too late, when the whole is stored"
    )
    whole = {
        (one["runId"], one["turn"]): at for at, one in enumerate(events) if "raw" in one["data"]
    }
    for at, one in enumerate(events):
        assert one["type"] != "reply.delta" or at < whole[one["runId"], one["turn"]]


def tree() -> Agent[Any]:
    """Three levels; the lowest asks a person."""
    worker = agent("worker", CHAT, done("Asked.", a=2))
    lead = agent("lead", give("worker"), done("Led."), agents=[worker])
    return agent("boss", give("lead", "quick"), done("All."), agents=[lead, agent("quick", done())])


async def test_a_run_that_was_read_only_to_say_no_is_let_go_and_keeps_nobody_waiting(
    url: str,
) -> None:
    async with App(agents=[agent("kid", CHAT, done())], store=url) as app:
        view = await app.start("kid", "Go.")
        (ask,) = (await finished(app, view.id)).public()["requests"]
        await app.answer(ask["requestId"], decision="answer", feedback="Red.")
        await finished(app, view.id)
        await until(lambda: not app.engine.runs.works_on(view.id))
        live = await app.engine.runs.load(view.id)
        waiting = asyncio.ensure_future(app.engine.runs.idle(view.id, 30))
        await asyncio.sleep(0)

        def refuse(_: RunState) -> list[Event]:
            raise RequestError("already_answered", "Too late.", status=409)

        with pytest.raises(RequestError, match="Too late"):
            await app.engine.deliver(view.id, refuse)
        assert await waiting
        assert live not in app.engine.runs


async def test_a_tree_that_waits_for_a_person_costs_nothing_and_shows_who_asks(url: str) -> None:
    async with App(agents=[tree()], store=url) as app:
        view = await app.start("boss", "Go.", payload={"a": 1})
        view = await finished(app, view.id)
        public = view.public()
        assert (public["status"], public["state"]["state"]) == ("running", "followup")
        (ask,) = public["requests"]
        assert ask == public["state"]["ask"]
        assert ask["agents"] == ["boss", "lead", "worker"]
        assert ask["runId"] == f"{view.id}.1.sub.0.1.sub.0"
        (row,), _ = await app.requests()
        assert (row.id, row.body["agents"]) == (ask["requestId"], ask["agents"])
        await until(lambda: not app.engine.runs.works_on(view.id))
        assert not await app.store.unfinished()
        answered = await app.answer(row.id, decision="answer", feedback="That one.")
        assert answered.id == ask["runId"]
        view = await finished(app, view.id)
        assert (view.state.status, view.state.payload) == ("completed", {"a": 2})
        await until(lambda: not app.engine.runs.works_on(view.id))
        assert not await app.store.unfinished()


async def test_another_process_answers_and_goes_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    async with App(agents=[tree()], store=url) as app:
        view = await app.start("boss", "Go.", payload={"a": 1})
        view = await finished(app, view.id)
    async with App(agents=[tree()], store=url) as app:
        (row,), _ = await app.requests()
        await app.answer(row.id, decision="answer", feedback="That one.")
        view = await finished(app, view.id)
        assert (view.state.status, view.state.payload) == ("completed", {"a": 2})


@action(effects="read")
async def sleep(seconds: float) -> str:
    """Take time."""
    await asyncio.sleep(seconds)
    return "slept"


SLEEP = {
    "taskComplete": False,
    "nextStep": {"type": "Actions", "actions": [{"name": "sleep", "params": {"seconds": 60}}]},
}


async def test_who_cancels_a_run_cancels_everything_below_it(url: str) -> None:
    sleeper = agent("sleeper", SLEEP, actions=[sleep])
    lead = agent("lead", give("sleeper", "asker"), agents=[sleeper, agent("asker", CHAT)])
    async with App(agents=[agent("boss", give("lead"), agents=[lead])], store=url) as app:
        view = await app.start("boss", "Go.")
        async for event in app.events(view.id):
            if event["type"] == "action.started":
                break
        async for event in app.events(view.id):
            if event["type"] == "request.created":
                break
        await app.cancel(view.id)
        await until(lambda: not app.engine.runs.works_on(view.id))
        rows = await app.tree(view.id)
        assert [one.status for one in rows] == ["cancelled"] * 4
        assert (await app.requests())[0] == []
        assert not await app.store.unfinished()


async def test_a_cancelled_child_is_a_failure_for_its_parent(url: str) -> None:
    boss = agent("boss", give("asker"), done("Without it."), agents=[agent("asker", CHAT)])
    async with App(agents=[boss], store=url) as app:
        view = await app.start("boss", "Go.")
        view = await finished(app, view.id)
        await app.answer(view.asks[0]["requestId"], decision="terminate", feedback="No.")
        view = await finished(app, view.id)
        assert view.state.status == "completed"
        results = next(
            one.text for one in await app.store.transcript(view.id) if one.kind == "results"
        )
        (entry,) = json.loads(results)["results"]
        assert (entry["ok"], entry["status"], entry["error"]["code"]) == (
            False,
            "cancelled",
            "cancelled",
        )


@pytest.mark.parametrize(("width", "most"), [(8, 13), (1, 11)])
async def test_fix_10_siblings_share_one_budget(url: str, width: int, most: int) -> None:
    async def again(_: ModelRequest) -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return {**RETRY, "reasoning": os.urandom(4).hex()}

    patient = Limits(repeat_limit=1_000, repeat_notice=1_000)
    kid = Agent("kid", model=ScriptedModel(again), limits=patient)
    limits = Limits(max_turns=10, max_concurrency=width)
    boss = agent("boss", give("kid", "kid", "kid"), agents=[kid], limits=limits)
    async with App(agents=[boss], store=url) as app:
        view = await app.start("boss", "Go.")
        view = await finished(app, view.id)
        assert (view.state.status, view.state.result and view.state.result.reason) == (
            "failed",
            "limit",
        )
        turns = sum(one.turn for one in await app.tree(view.id))
        assert 10 <= turns <= most, "at most one call more for each sibling"


async def test_a_parent_answers_its_child_itself(url: str) -> None:
    asker = agent("asker", CHAT, done("Took it.", a=2))

    def reply(request: ModelRequest) -> dict[str, Any]:
        said = request.messages[-2].text
        if said == "Go.":
            return give("asker")
        entry = json.loads(said)["results"][0]
        if entry["status"] != "asked":
            return done(entry["message"])
        return give({"name": "asker", "message": "The red one.", "resumeRunId": entry["runId"]})

    boss = Agent("boss", model=ScriptedModel(reply), agents=[asker.sub(questions="parent")])
    async with App(agents=[boss], store=url) as app:
        view = await app.start("boss", "Go.", payload={"a": 1})
        view = await finished(app, view.id)
        assert (view.state.status, view.state.payload) == ("completed", {"a": 2})
        assert view.state.result is not None
        assert view.state.result.message == "Took it."
        rows = await app.tree(view.id)
        assert len(rows) == 2
        transcript = await app.store.transcript(rows[1].id)
        assert [one.text for one in transcript if one.kind == "person"] == ["The red one."]
        assert view.public()["usage"]["modelCalls"] == 5


async def test_a_parent_that_does_not_answer_ends_its_child(url: str) -> None:
    boss = agent(
        "boss",
        give("asker"),
        done("Never mind."),
        agents=[agent("asker", CHAT).sub(questions="parent")],
    )
    async with App(agents=[boss], store=url) as app:
        view = await app.start("boss", "Go.")
        view = await finished(app, view.id)
        await until(lambda: not app.engine.runs.works_on(view.id))
        assert [one.status for one in await app.tree(view.id)] == ["completed", "cancelled"]


async def test_a_child_sees_only_what_it_may(url: str) -> None:
    seen: list[ModelRequest] = []

    def reply(request: ModelRequest) -> dict[str, Any]:
        seen.append(request)
        return done(note="read")

    kid = Agent("kid", model=ScriptedModel(reply))
    boss = agent(
        "boss",
        give("kid"),
        done(),
        agents=[kid.sub(downstream=["case.id"], scope="/case", messages="latest", max_messages=3)],
    )
    async with App(agents=[boss], store=url) as app:
        view = await app.start("boss", "Go with it.", payload={"case": {"id": 7, "key": "hidden"}})
        view = await finished(app, view.id)
        assert view.state.payload == {"case": {"id": 7, "key": "hidden", "note": "read"}}
    texts = [one.text for one in seen[0].messages]
    assert "Go with it." in texts[0]
    assert texts[1] == "Do it."
    assert "hidden" not in "".join(texts)


async def test_autonomy_and_models_are_inherited(url: str) -> None:
    quiet = Agent("quiet")
    boss = Agent(
        "boss",
        model=ScriptedModel([give("quiet"), {**done("Q"), "message": "Q"}, done()]),
        agents=[quiet],
        autonomy="autonomous",
    )
    async with App(agents=[boss], store=url) as app:
        view = await app.start("boss", "Go.")
        view = await finished(app, view.id)
        assert view.state.status == "completed"
        child = await app.get(f"{view.id}.1.sub.0")
        assert child.state.model == "object:boss"
        assert not child.state.spec.interactive


def test_wrong_terms_are_refused_at_once() -> None:
    kid = Agent("kid")
    for options in ({"upstream": ["a:fly"]}, {"scope": "a.b"}, {"nothing": 1}):
        with pytest.raises(ConfigError, match="kid"):
            Agent("boss", agents=[kid.sub(**options)])
    with pytest.raises(ConfigError, match="twice"):
        Agent("boss", agents=[kid, kid])


# --- crashes ---------------------------------------------------------------------------------------

WORKER = textwrap.dedent("""
    import asyncio, os, signal, sys
    from pathlib import Path
    from loopagent import Agent, App
    from loopagent.core.events import Reported, Settled, Started
    from loopagent.models.scripted import ScriptedModel
    from loopagent.ports import Commit
    from loopagent.stores.sqlite.store import SqliteStore

    folder, when = Path(sys.argv[1]), sys.argv[2]

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    class Mortal(SqliteStore):
        async def create(self, commit, **more):
            if when == "child unborn" and commit.state.parent_id:
                die()
            seq = await super().create(commit, **more)
            if when == "child born" and commit.state.parent_id:
                die()
            return seq

        async def commit(self, commit, *later):
            child, kinds = commit.state.parent_id, [type(one) for one in commit.events]
            told = any(isinstance(one, Reported) and one.what == "told" for one in commit.events)
            if when == "child ended" and not child and "1:sub.0" not in commit.state.pending:
                die()
            seq = await super().commit(commit, *later)
            if when == "child at work" and child and commit.state.turn == 2:
                die()
            if when == "parent told" and not child and "1:sub.0" not in commit.state.pending and Settled in kinds:
                die()
            return seq

    def give(*names):
        work = [{"name": one, "message": "Do it."} for one in names]
        return {"taskComplete": False, "nextStep": {"type": "Sub-Agent", "subAgents": work}}

    async def main():
        again = {"taskComplete": False, "nextStep": {"type": "Retry"}}
        done = {"taskComplete": True, "message": "Done.", "payloadChangeRequest": {"newElements": {"n": 1}}}
        kid = Agent("kid", model=ScriptedModel([again, done]))
        boss = Agent("boss", model=ScriptedModel([give("kid"), {"taskComplete": True, "message": "All."}]), agents=[kid])
        async with App(agents=[boss], store=Mortal(folder / "runs.db")) as app:
            rows, _ = await app.runs()
            run_id = rows[0].id if rows else (await app.start("boss", "Go.")).id
            view = await app.wait(run_id, timeout_seconds=20)
            while await app.store.unfinished():
                await asyncio.sleep(0.01)
            print(view.state.status, view.state.payload, view.public()["usage"]["modelCalls"], flush=True)

    asyncio.run(main())
""")


def work(folder: Path, when: str) -> subprocess.CompletedProcess[str]:
    """Run a worker process to its end or its death."""
    script = folder / "worker.py"
    script.write_text(WORKER)
    return subprocess.run(
        [sys.executable, str(script), str(folder), when],
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize(
    "when", ["child unborn", "child born", "child at work", "child ended", "parent told"]
)
async def test_kill_9_with_a_child_in_the_middle(tmp_path: Path, when: str) -> None:
    dead = work(tmp_path, when)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    alive = work(tmp_path, "never")
    assert alive.stdout.split() == ["completed", "{'n':", "1}", "4"], alive.stderr
    store = open_store(f"sqlite:///{tmp_path}/runs.db")
    await store.open()
    rows, _ = await store.runs()
    assert sorted(one.agent for one in rows) == ["boss", "kid"], "the child was started once"
    root = next(one.id for one in rows if one.agent == "boss")
    events = await store.events(root)
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    types = [one["type"] for one in events]
    assert (types.count("subagent.started"), types.count("subagent.completed")) == (1, 1)
    assert not await store.unfinished()
    await store.aclose()


async def test_a_child_whose_parent_ended_in_a_crash_is_stopped(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    boss = agent("boss", give("asker"), agents=[agent("asker", CHAT)])
    async with App(agents=[boss], store=url) as app:
        view = await app.start("boss", "Go.")
        view = await finished(app, view.id)
        await until(lambda: not app.engine.runs.works_on(view.id))
    store = open_store(url)
    await store.open()
    snapshot = await store.load(view.id)
    assert snapshot is not None
    event = CancelRequested(snapshot.state.clock + 1, "Enough.", "human")
    end = advance(snapshot.state, event)
    await store.commit(
        Commit(end.state, snapshot.version, event.at, (event,), end.facts, end.messages)
    )
    assert await store.unfinished() == [view.id]
    await store.aclose()
    async with App(agents=[boss], store=url) as app:
        await until(lambda: not app.engine.runs.works_on(view.id))
        assert [one.status for one in await app.tree(view.id)] == ["cancelled", "cancelled"]
        assert not await app.store.unfinished()


async def test_the_stream_of_a_cancelled_run_shows_how_its_children_ended(url: str) -> None:
    @action(effects="read")
    async def wait_long() -> None:
        await asyncio.sleep(60)

    step = {"type": "Actions", "actions": [{"name": "wait_long", "params": {}}]}
    low = agent("low", {"taskComplete": False, "nextStep": step}, actions=[wait_long])
    helper = agent("helper", give("low"), agents=[low])
    lead = agent("lead", give("helper"), agents=[helper])
    async with App(agents=[lead], store=url) as app:
        run = await app.start("lead", "Go.")
        ended: list[str] = []
        async for event in app.events(run.id):
            if event["type"] == "action.started":
                await app.cancel(run.id)
            if event["type"] == "run.cancelled":
                ended.append(event["runId"])
        assert ended == [run.id, f"{run.id}.1.sub.0", f"{run.id}.1.sub.0.1.sub.0"]
        again = [one["runId"] async for one in app.events(run.id) if one["type"] == "run.cancelled"]
        assert again == ended
