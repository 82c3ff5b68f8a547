"""Stopped means stopped, for the whole tree: when `cancel` has returned, nothing below begins and nobody can answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, action
from loopagent.clients import ToolAnswer
from loopagent.core.advance import advance
from loopagent.core.events import CancelRequested
from loopagent.errors import ConflictError, RequestError
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import Commit
from loopagent.runtime.engine import MAX_CONFLICTS
from loopagent.stores.memory import MemoryStore
from tests.waiting import until


pytestmark = pytest.mark.anyio
WORKERS = 4


def family(kid: Agent[Any]) -> Agent[Any]:
    """An agent that gives the same work to several others at once, each two levels below."""
    give = {"type": "Sub-Agent", "subAgents": [{"name": "lead", "message": "Do it."}]}
    many = {"type": "Sub-Agent", "subAgents": [{"name": "kid", "message": "Do it."}] * WORKERS}
    lead = Agent(
        "lead", model=ScriptedModel([{"taskComplete": False, "nextStep": many}]), agents=[kid]
    )
    boss = [{"taskComplete": False, "nextStep": give}]
    return Agent("boss", model=ScriptedModel(boss), agents=[lead])


async def test_nothing_below_begins_after_a_cancel(tmp_path: Path) -> None:
    begun: list[int] = []

    @action(effects="read")
    async def look(item: int) -> str:
        begun.append(item)
        return "seen"

    loop = {
        "collectionPath": f"static:{list(range(2000))}",
        "action": {"name": "look", "params": {"item": "{{ item }}"}},
    }
    step = {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": loop}}
    boss = family(Agent("kid", model=ScriptedModel(lambda _: step), actions=[look]))
    async with App(agents=[boss], store=f"sqlite:///{tmp_path}/runs.db") as app:
        view = await app.start("boss", "Go.")
        await until(lambda: len(begun) > 5 * WORKERS)
        await app.cancel(view.id)
        before = len(begun)
        assert {one.status for one in await app.tree(view.id)} == {"cancelled"}
        await until(lambda: not app.engine.runs.works_on(view.id))
        assert len(begun) == before


async def test_an_approval_below_is_refused_after_a_cancel(tmp_path: Path) -> None:
    sent: list[str] = []

    @action(effects="external")
    async def mail(to: str) -> str:
        sent.append(to)
        return "sent"

    calls = [{"name": "mail", "params": {"to": "ann"}}]
    step = {"taskComplete": False, "nextStep": {"type": "Actions", "actions": calls}}
    boss = family(Agent("kid", model=ScriptedModel(lambda _: step), actions=[mail]))
    async with App(agents=[boss], store=f"sqlite:///{tmp_path}/runs.db") as app:
        view = await app.wait((await app.start("boss", "Go.")).id)
        asked = [one["requestId"] for one in view.asks]
        await app.cancel(view.id)
        answers = await asyncio.gather(
            *(app.answer(one, decision="approve") for one in asked), return_exceptions=True
        )
        codes = [one.code for one in answers if isinstance(one, RequestError)]
        assert (codes, sent) == (["gone"] * WORKERS, [])


async def _end_untold(app: App, run_id: str) -> None:
    """Cancel a run as a process does that dies before it can tell the runs below."""
    snapshot = await app.store.load(run_id)
    assert snapshot is not None
    event = CancelRequested(snapshot.state.clock + 1, "Enough.", "human")
    end = advance(snapshot.state, event)
    await app.store.commit(
        Commit(end.state, snapshot.version, event.at, (event,), end.facts, end.messages)
    )


async def test_nobody_answers_a_child_whose_parent_ended_without_telling() -> None:
    calls = [{"name": "pick", "params": {}}]
    tool = {"taskComplete": False, "nextStep": {"type": "ClientTools", "clientTools": calls}}
    kids = {
        "asker": Agent(
            "asker",
            model=ScriptedModel(
                [{"taskComplete": False, "message": "Which?", "nextStep": {"type": "Chat"}}]
            ),
        ),
        "picker": Agent(
            "picker",
            model=ScriptedModel([tool]),
            client_tools=[{"name": "pick", "description": "Pick one.", "effects": "read"}],
        ),
    }
    work = [{"name": one, "message": "Do it."} for one in kids]
    give = {"taskComplete": False, "nextStep": {"type": "Sub-Agent", "subAgents": work}}
    boss = Agent("boss", model=ScriptedModel([give]), agents=kids.values())
    async with App(agents=[boss], store="memory://") as app:
        view = await app.wait((await app.start("boss", "Go.")).id)
        await until(lambda: not app.engine.runs.works_on(view.id))
        picker = next(one.id for one in await app.tree(view.id) if one.agent == "picker")
        [call] = (await app.get(picker)).client_calls
        await _end_untold(app, view.id)
        with pytest.raises(RequestError, match="no longer needs an answer"):
            await app.answer(view.asks[0]["requestId"], decision="answer", feedback="This one.")
        with pytest.raises(RequestError, match="no longer needs an answer"):
            await app.answer_call(picker, call["callId"], ToolAnswer(result="x"))
        left = {one.status for one in await app.tree(view.id)} - {"cancelled"}
        assert left == {"running"}, "the next process that looks at them stops them"


class Contested(MemoryStore):
    """A store in which somebody else was always quicker, for a while."""

    lost = 0

    async def commit(self, commit: Commit, *later: Commit) -> int:
        if self.lost > 0:
            self.lost -= 1
            raise ConflictError("Somebody else moved it on.")
        return await super().commit(commit, *later)


async def test_a_cancel_gets_through_to_a_run_that_others_keep_busy() -> None:
    ask = {"taskComplete": False, "message": "Which?", "nextStep": {"type": "Chat"}}
    agent, store = Agent("asker", model=ScriptedModel([ask])), Contested()
    async with App(agents=[agent], store=store) as app:
        view = await app.wait((await app.start("asker", "Go.")).id)
        store.lost = 3 * MAX_CONFLICTS
        assert (await app.cancel(view.id)).state.status == "cancelled"
        assert store.lost == 0
