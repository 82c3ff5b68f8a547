"""Commits that wait for the next one: what may, what never does, and that it makes no difference to what is kept."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent import Agent, App, action
from loopagent.core.events import Event, Settled
from loopagent.errors import StoreError
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import Commit
from loopagent.stores import MemoryStore, open_store


pytestmark = pytest.mark.anyio
LONG_SECONDS = 600.0


class Recorder(MemoryStore):
    """Remembers which commits came together, and fails when it is told to."""

    def __init__(self, hold_seconds: float = LONG_SECONDS) -> None:
        super().__init__()
        self.hold_seconds = hold_seconds
        self.groups: list[list[str]] = []
        self.broken = False

    async def commit(self, commit: Commit, *later: Commit) -> int:
        if self.broken:
            raise StoreError("the disk is gone")
        self.groups.append([name(one.events) for one in (commit, *later)])
        return await super().commit(commit, *later)


def name(events: tuple[Event, ...]) -> str:
    return "+".join(
        sorted(
            one.effect_id.partition(":")[2] if isinstance(one, Settled) else one.kind
            for one in events
        )
    )


@action(effects="read")
async def look(item: int = 1) -> int:
    """Look at an item."""
    return item


@action(effects="write", approval="auto", idempotent=True)
async def put(item: int = 1) -> int:
    """Put an item in its place."""
    return item


@action(effects="write", approval="auto")
async def change(item: int = 1) -> int:
    """Change an item."""
    return item


def calls(*names: str, **more: Any) -> dict[str, Any]:
    actions = [{"name": name, "params": {"item": 1}} for name in names]
    return {"taskComplete": False, "nextStep": {"type": "Actions", "actions": actions}, **more}


def done(text: str = "Done.") -> dict[str, Any]:
    return {"taskComplete": True, "message": text}


def agent(replies: list[dict[str, Any]], *more: Any) -> Agent[Any]:
    return Agent(
        "tester",
        model=ScriptedModel(replies),
        actions=[look, put, change, *more],
        autonomy="autonomous",
    )


async def play(store: MemoryStore, replies: list[dict[str, Any]]) -> str:
    """Run to the end; returns the run's id."""
    async with App(agents=[agent(replies)], store=store) as app:
        run = await app.start("tester", "Go.", payload={"rows": list(range(20))})
        assert (await app.wait(run.id)).state.ended
        return run.id


@pytest.mark.parametrize(
    ("replies", "groups"),
    [
        ([calls("look")], [["model", "action.0"], ["model"]]),
        ([calls("look"), calls("look")], [["model", "action.0"], ["model", "action.0"], ["model"]]),
        ([calls("put")], [["model"], ["action.0"], ["model"]]),
        ([calls("change")], [["model"], ["reported"], ["action.0"], ["model"]]),
        (
            [calls("look", "change")],
            [["model"], ["reported"], ["action.0+action.1"], ["model"]],
        ),
        ([{"taskComplete": False, "message": "?"}], [["model"], ["model"]]),
    ],
    ids=["reads", "twice", "writes, repeatable", "writes", "both", "only talks"],
)
async def test_what_only_leads_to_calls_that_read_is_stored_with_their_outcomes(
    replies: list[dict[str, Any]], groups: list[list[str]]
) -> None:
    store = Recorder()
    await play(store, [*replies, done()])
    assert store.groups == groups


async def test_nothing_waits_in_a_store_that_does_not_say_so() -> None:
    store = Recorder(hold_seconds=0.0)
    await play(store, [calls("look"), done()])
    assert store.groups == [["model"], ["action.0"], ["model"]]


STEP = st.one_of(
    st.lists(st.sampled_from(["look", "put", "change"]), min_size=1, max_size=3).map(
        lambda names: calls(*names)
    ),
    st.just(calls("look", payloadChangeRequest={"newElements": {"note": 1}})),
    st.just(
        {
            "taskComplete": False,
            "nextStep": {
                "type": "ForEach",
                "forEach": {
                    "collectionPath": "rows",
                    "executionMode": "parallel",
                    "maxConcurrency": 3,
                    "action": {"name": "look", "params": {"item": "{{ item }}"}},
                },
            },
        }
    ),
    st.just(calls("unknown")),
    st.just({"taskComplete": False, "message": "I wonder."}),
)


async def kept(store: MemoryStore, run_id: str) -> str:
    """Log, transcript and end of a run, without what differs from run to run."""
    snapshot = await store.load(run_id)
    assert snapshot is not None
    state = snapshot.state
    entries = [
        (one.version, one.first_seq, one.facts, one.messages) for one in await store.log(run_id)
    ]
    end = (snapshot.version, snapshot.seq, state.counters, state.calls, state.payload, state.result)
    text = repr((entries, end)).replace(run_id, "RUN")
    return re.sub(r"'durationMs': [0-9.e-]+", "", text)


@settings(max_examples=25)
@given(replies=st.lists(STEP, max_size=4))
def test_what_is_kept_is_the_same_whether_commits_wait_or_not(
    replies: list[dict[str, Any]],
) -> None:
    async def both() -> list[str]:
        stores = [MemoryStore(), MemoryStore()]
        stores[1].hold_seconds = LONG_SECONDS
        return [await kept(one, await play(one, [*replies, done()])) for one in stores]

    at_once, held = asyncio.run(both())
    assert held == at_once


async def test_what_waits_is_stored_when_its_time_is_up() -> None:
    store, begun, go_on = Recorder(hold_seconds=0.001), asyncio.Event(), asyncio.Event()

    @action(effects="read")
    async def ponder(item: int) -> str:
        """Take long."""
        begun.set()
        await go_on.wait()
        return "pondered"

    async with App(agents=[agent([calls("ponder"), done()], ponder)], store=store) as app:
        run = await app.start("tester", "Go.")
        await begun.wait()
        while not store.groups:  # noqa: ASYNC110 - a store tells nobody
            await asyncio.sleep(0.001)
        assert store.groups == [["model"]]
        snapshot = await store.load(run.id)
        assert snapshot is not None
        assert "1:action.0" in snapshot.state.pending
        go_on.set()
        assert (await app.wait(run.id)).state.status == "completed"
    assert store.groups == [["model"], ["action.0"], ["model"]]


async def test_what_waits_is_stored_when_the_process_ends_in_order() -> None:
    store, begun = Recorder(), asyncio.Event()

    @action(effects="read")
    async def ponder(item: int) -> str:
        """Take for ever, the first time."""
        if begun.is_set():
            return "pondered"
        begun.set()
        await asyncio.Event().wait()
        return "never"

    async with App(agents=[agent([calls("ponder"), done()], ponder)], store=store) as app:
        run = await app.start("tester", "Go.")
        await begun.wait()
        assert store.groups == []
    assert store.groups == [["model"]]
    async with App(
        agents=[agent([calls("ponder"), done()], ponder)], store=store, recover=True
    ) as app:
        assert (await app.wait(run.id)).state.status == "completed"


async def test_a_word_of_a_person_is_stored_at_once_with_what_waited() -> None:
    store, begun, go_on = Recorder(), asyncio.Event(), asyncio.Event()

    @action(effects="read")
    async def ponder(item: int) -> str:
        """Take long."""
        begun.set()
        await go_on.wait()
        return "pondered"

    async with App(agents=[agent([calls("ponder"), done()], ponder)], store=store) as app:
        run = await app.start("tester", "Go.")
        await begun.wait()
        await app.post(run.id, "Hurry up.")
        assert store.groups == [["model", "message_posted"]]
        go_on.set()
        assert (await app.wait(run.id)).state.status == "completed"


async def test_what_waits_happens_to_a_run_that_another_process_moved_on() -> None:
    store, begun, go_on = Recorder(), asyncio.Event(), asyncio.Event()
    asked: list[int] = []

    @action(effects="read")
    async def ponder(item: int) -> str:
        """Take long."""
        begun.set()
        await go_on.wait()
        return "pondered"

    class Counting(ScriptedModel):
        async def generate(self, request: Any, *, on_delta: Any = None) -> Any:
            asked.append(len(request.messages))
            return await super().generate(request, on_delta=on_delta)

    model = Counting([calls("ponder"), done()])
    mine = Agent("tester", model=model, actions=[ponder])
    async with App(agents=[mine], store=store) as app, App(agents=[mine], store=store) as other:
        run = await app.start("tester", "Go.")
        await begun.wait()
        await other.post(run.id, "Hurry up.")
        go_on.set()
        assert (await app.wait(run.id)).state.status == "completed"
    assert store.groups[:2] == [["message_posted"], ["model", "action.0"]]
    assert len(asked) == 2, "the reply that waited was not asked for again"
    texts = [one.text for one in await store.transcript(run.id)]
    assert "Hurry up." in texts


async def test_a_run_whose_commits_cannot_be_stored_is_let_go_of() -> None:
    store, begun = Recorder(hold_seconds=0.001), asyncio.Event()

    @action(effects="read")
    async def ponder(item: int) -> str:
        """Take for ever, the first time."""
        if begun.is_set():
            return "pondered"
        store.broken = True
        begun.set()
        await asyncio.Event().wait()
        return "never"

    async with App(agents=[agent([calls("ponder"), done()], ponder)], store=store) as app:
        run = await app.start("tester", "Go.")
        await begun.wait()
        await app.wait(run.id, timeout_seconds=1)
        assert store.groups == []
        store.broken = False
    async with App(
        agents=[agent([calls("ponder"), done()], ponder)], store=store, recover=True
    ) as app:
        assert (await app.wait(run.id)).state.status == "completed"


async def test_nothing_waits_while_somebody_listens() -> None:
    store, go_on = Recorder(), asyncio.Event()

    @action(effects="read")
    async def ponder(item: int) -> str:
        """Take long."""
        await go_on.wait()
        return "pondered"

    types: list[str] = []
    async with App(agents=[agent([calls("ponder"), done()], ponder)], store=store) as app:
        run = await app.start("tester", "Go.")
        async for event in app.events(run.id):
            types.append(event["type"])
            if event["type"] == "action.started":
                go_on.set()
    assert types.index("action.started") < types.index("action.completed")
    assert store.groups == [["model"], ["action.0"], ["model"]]


WORKER = textwrap.dedent("""
    import asyncio, json, os, signal, sys
    from pathlib import Path
    from loopagent import Agent, App, action
    from loopagent.ports import ModelReply

    folder, when = Path(sys.argv[1]), int(sys.argv[2])

    @action(effects="read")
    async def look(item: int) -> int:
        with (folder / "looked.txt").open("a") as file:
            file.write(f"{item}\\n")
        if item == when:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    @action(effects="write", approval="auto")
    async def charge(item: int) -> int:
        with (folder / "charged.txt").open("a") as file:
            file.write(f"{item}\\n")
        return item

    def calls(item):
        name = "charge" if item % 3 == 2 else "look"
        step = {"type": "Actions", "actions": [{"name": name, "params": {"item": item}}]}
        return {"taskComplete": False, "nextStep": step}

    class ByHistory:
        name = "object:history"

        async def generate(self, request, *, on_delta=None):
            said = [one.text for one in request.messages if one.role == "user"]
            return ModelReply(text=json.dumps(SCRIPT[sum('"call":' in one for one in said)]))

        async def aclose(self):
            pass

    SCRIPT = [calls(item) for item in range(9)] + [{"taskComplete": True, "message": "finished"}]

    async def main():
        agent = Agent("a", model=ByHistory(), actions=[look, charge])
        url = f"sqlite:///{folder}/runs.db?durability=turn&hold_seconds=1"
        async with App(agents=[agent], store=url, recover=True) as app:
            rows, _ = await app.runs()
            run = rows[0] if rows else await app.start("a", "go")
            view = await app.wait(run.id)
            print(view.state.status, view.state.turn)

    asyncio.run(main())
""")


def work(folder: Path, when: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WORKER, str(folder), str(when)],
        capture_output=True,
        text=True,
        check=False,
    )


def lines(path: Path) -> list[int]:
    return [int(one) for one in path.read_text().split()]


async def test_kill_9_loses_no_more_than_the_turn_that_waited(tmp_path: Path) -> None:
    for when in (4, 7):
        dead = work(tmp_path, when)
        assert dead.returncode == -signal.SIGKILL, dead.stderr
    alive = work(tmp_path, -1)
    assert alive.stdout.split() == ["completed", "10"], alive.stderr
    assert lines(tmp_path / "charged.txt") == [2, 5, 8], "what writes happened once"
    assert lines(tmp_path / "looked.txt") == [0, 1, 3, 4, 4, 6, 7, 7]
    store = open_store(f"sqlite:///{tmp_path}/runs.db")
    await store.open()
    rows, _ = await store.runs()
    events = await store.events(rows[0].id)
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    assert [one["type"] for one in events].count("reply.received") == 10
    entries = await store.log(rows[0].id)
    assert [one.version for one in entries] == list(range(1, len(entries) + 1))
    await store.aclose()
