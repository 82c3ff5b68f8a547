"""Nothing is lost at `kill -9`: before an action is performed, after it was, and after its outcome was committed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, action
from loopagent.core.advance import advance
from loopagent.core.events import Started
from loopagent.core.state import RunState
from loopagent.core.state_bytes import dump_state
from loopagent.models.scripted import ScriptedModel
from loopagent.stores import open_store
from tests.waiting import until


pytestmark = pytest.mark.anyio
WORKER = textwrap.dedent("""
    import asyncio, os, signal, sys
    from pathlib import Path
    from loopagent import Agent, App, action
    from loopagent.models.scripted import ScriptedModel
    from loopagent.runtime.engine import Engine
    from loopagent.runtime.perform import Performer

    folder, when, effects = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    @action(effects=effects, approval="auto")
    async def charge(item: int) -> str:
        if when == "before":
            die()
        with (folder / "effects.txt").open("a") as file:
            file.write(f"{item}\\n")
            file.flush()
            os.fsync(file.fileno())
        if when == "performed":
            die()
        return f"charged {item}"

    @action(effects="read")
    async def look() -> str:
        return "seen"

    SCRIPT = [
        {"nextStep": {"type": "Actions", "actions": [{"name": "charge", "params": {"item": 1}}, {"name": "look", "params": {}}]},
         "taskComplete": False, "payloadChangeRequest": {"newElements": {"n": 1}}},
        {"taskComplete": True, "message": "finished"},
    ]
    if when == "committed":
        # the second planner call finds the outcome already on disk
        async def perform(self, live, effect, report, original=Performer.perform):
            if effect.id == "2:model":
                die()
            return await original(self, live, effect, report)
        Performer.perform = perform

    async def main():
        agent = Agent("clerk", model=ScriptedModel(SCRIPT), actions=[charge, look])
        async with App(agents=[agent], store=f"sqlite:///{folder}/runs.db") as app:
            rows, _ = await app.runs()
            run_id = rows[0].id if rows else (await app.start("clerk", "charge it")).id
            view = await app.wait(run_id, timeout_seconds=20)
            print(view.state.status, view.state.payload, flush=True)

    asyncio.run(main())
""")


def work(folder: Path, when: str, effects: str) -> subprocess.CompletedProcess[str]:
    """Run a worker process to its end or its death."""
    script = folder / "worker.py"
    script.write_text(WORKER)
    return subprocess.run(
        [sys.executable, str(script), str(folder), when, effects],
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
        cwd=Path(__file__).parent.parent.parent,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)},
    )


def charged(folder: Path) -> list[str]:
    """What really happened outside."""
    file = folder / "effects.txt"
    return file.read_text().split() if file.exists() else []


@pytest.mark.parametrize(
    ("when", "effects", "times", "told"),
    [
        ("before", "write", 0, "interrupted"),
        ("performed", "write", 1, "interrupted"),
        ("committed", "write", 1, "charged 1"),
        ("before", "read", 1, "charged 1"),
        ("performed", "read", 2, "charged 1"),
        ("committed", "read", 1, "charged 1"),
    ],
)
async def test_kill_9_never_repeats_silently_what_must_not_be(
    tmp_path: Path, when: str, effects: str, times: int, told: str
) -> None:
    dead = work(tmp_path, when, effects)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    alive = work(tmp_path, "never", effects)
    assert alive.returncode == 0, alive.stderr
    assert alive.stdout.startswith("completed {'n': 1}")
    assert len(charged(tmp_path)) == times
    store = open_store(f"sqlite:///{tmp_path}/runs.db")
    await store.open()
    rows, _ = await store.runs()
    transcript = await store.transcript(rows[0].id)
    results = next(one.text for one in transcript if one.kind == "results")
    assert told in results
    assert "seen" in results
    events = await store.events(rows[0].id)
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    assert [one["type"] for one in events].count("action.completed") == 2
    await _folds(store, rows[0].id)
    await store.aclose()


async def _folds(store: Any, run_id: str) -> None:
    """Folding the log gives the snapshot, and the same facts and messages again."""
    snapshot = await store.load(run_id)
    final = snapshot.state
    entries = await store.log(run_id)
    started = entries[0].events[0]
    assert isinstance(started, Started)
    state = RunState(
        id=final.id, root_id=final.root_id, spec=final.spec, model=final.model, payload={}
    )
    for entry in entries:
        transition = advance(state, *entry.events)
        assert transition.facts == entry.facts
        assert transition.messages == entry.messages
        state = transition.state
    assert json.loads(dump_state(state)) == json.loads(dump_state(final))


@pytest.mark.parametrize("store", ["memory://", "sqlite:///{folder}/runs.db"])
async def test_the_log_folds_to_the_snapshot(tmp_path: Path, store: str) -> None:
    @action(effects="read")
    async def look(item: int) -> str:
        return "x" * 20_000 if item == 2 else f"seen {item}"

    calls = [{"name": "look", "params": {"item": one}} for one in range(4)]
    script: list[Any] = [
        {"taskComplete": False, "nextStep": {"type": "Actions", "actions": calls}},
        {"raw": "rubbish"},
        {"taskComplete": False, "message": "Go on?", "nextStep": {"type": "Chat"}},
        {"taskComplete": False, "nextStep": {"type": "Retry", "messageIndex": 1}},
        {
            "taskComplete": True,
            "message": "done",
            "payloadChangeRequest": {"newElements": {"a": [1]}},
        },
    ]
    agent: Agent[Any] = Agent("reader", model=ScriptedModel(script), actions=[look])
    async with App(agents=[agent], store=store.format(folder=tmp_path)) as app:
        view = await app.wait((await app.start("reader", "look")).id)
        assert view.state.waiting
        await app.answer(f"{view.id}:{view.state.asks[0].id}", decision="answer", feedback="yes")
        view = await app.wait(view.id)
        assert view.state.status == "completed"
        await _folds(app.store, view.id)
        kept = view.state.artifacts[0]
        found = await app.store.artifact(view.id, kept.artifact_id)
        assert found is not None
        assert found.content == b"x" * 20_000


async def test_a_waiting_run_is_answered_by_another_process(tmp_path: Path) -> None:
    def app() -> App:
        script: list[Any] = [
            {"taskComplete": False, "message": "Go on?", "nextStep": {"type": "Chat"}},
            {"taskComplete": True},
        ]
        return App(
            agents=[Agent("asker", model=ScriptedModel(script))],
            store=f"sqlite:///{tmp_path}/runs.db",
        )

    async with app() as first:
        view = await first.wait((await first.start("asker", "ask")).id)
        assert view.state.waiting
    async with app() as second:
        request = f"{view.id}:{view.state.asks[0].id}"
        await second.answer(request, decision="answer", feedback="yes")
        assert (await second.wait(view.id)).state.status == "completed"


async def test_only_one_of_two_answers_wins(tmp_path: Path) -> None:
    script: list[Any] = [
        {"taskComplete": False, "message": "Go on?", "nextStep": {"type": "Chat"}},
        {"taskComplete": True},
    ]
    agent: Agent[Any] = Agent("asker", model=ScriptedModel(script))
    async with App(agents=[agent], store=f"sqlite:///{tmp_path}/runs.db") as app:
        view = await app.wait((await app.start("asker", "ask")).id)
        request = f"{view.id}:{view.state.asks[0].id}"
        answers = [app.answer(request, decision="answer", feedback=str(one)) for one in range(5)]
        done = await asyncio.gather(*answers, return_exceptions=True)
        assert sum(not isinstance(one, Exception) for one in done) == 1
        assert {getattr(one, "code", "") for one in done if isinstance(one, Exception)} == {
            "already_resolved"
        }


async def test_a_run_that_cannot_be_saved_is_let_go_and_taken_up_again(tmp_path: Path) -> None:
    @action(effects="read")
    async def big() -> str:
        return "".join(sha256(str(one).encode()).hexdigest() for one in range(16_000))

    calls = {"type": "Actions", "actions": [{"name": "big", "params": {}}]}
    script: list[Any] = [
        {"taskComplete": False, "nextStep": calls},
        {"taskComplete": True, "message": "done"},
    ]
    limits = {"max_result_chars": 5_000_000}

    def app(size: str) -> App:
        agent: Agent[Any] = Agent(
            "reader", model=ScriptedModel(script), actions=[big], limits=limits
        )
        return App(agents=[agent], store=f"sqlite:///{tmp_path}/runs.db{size}")

    async with app("?max_bytes=300000") as full:
        run_id = (await full.start("reader", "read")).id
        await until(lambda: full.engine.runs.get(run_id) is None)  # it is let go
        view = await full.get(run_id)
        assert view.state.status == "running"
        assert "1:action.0" in view.state.pending
    async with app("") as roomy:
        assert (await roomy.wait(view.id, timeout_seconds=20)).state.status == "completed"


async def test_one_run_at_a_time_is_enough_for_all_of_them(tmp_path: Path) -> None:
    """Also for a parent with its children, which rests while they work."""
    give = [{"name": "helper", "message": "Help."}] * 2
    step = {"taskComplete": False, "nextStep": {"type": "Sub-Agent", "subAgents": give}}
    done = {"taskComplete": True, "message": "Done."}
    model = ScriptedModel([{"agent": "clerk", **step}, done, done, done])
    clerk = Agent("clerk", model=model, agents=[Agent("helper", model=model)])
    async with App(agents=[clerk], store=f"sqlite:///{tmp_path / 'r.db'}", max_runs=1) as app:
        ids = [(await app.start("clerk", "Go.")).id for _ in range(3)]
        for one in ids:
            async for _ in app.events(one):
                pass
            assert (await app.get(one)).state.status == "completed"


async def test_who_waits_for_an_overloaded_model_takes_nobodys_place() -> None:
    busy = {"error": {"status": 429, "message": "slow down", "retryAfter": 50}}
    patient = Agent("patient", model=ScriptedModel([busy]))
    quick = Agent("quick", model=ScriptedModel([{"taskComplete": True, "message": "Done."}]))
    async with App(agents=[patient, quick], max_runs=1) as app:
        waits = await app.start("patient", "Go.")
        async for event in app.events(waits.id):
            if event["type"] == "model.retry":
                break
        run = await app.start("quick", "Go.")
        assert (await app.wait(run.id, timeout_seconds=40)).state.status == "completed"
        assert (await app.get(waits.id)).state.status == "running"
