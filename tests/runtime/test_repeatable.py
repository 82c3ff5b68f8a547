"""What may be lost in a power cut where a store is told so: outcomes that come back by themselves, nothing else."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from loopagent import Agent, App, action
from loopagent.core.events import Event, Settled
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import Commit
from loopagent.stores import MemoryStore


pytestmark = pytest.mark.anyio


class Recorder(MemoryStore):
    """Remembers what was committed."""

    def __init__(self) -> None:
        super().__init__()
        self.durability: Literal["effect", "turn"] = "turn"
        self.commits: list[Commit] = []

    async def create(self, commit: Commit, *, metadata: dict[str, Any] | None = None) -> int:
        self.commits.append(commit)
        return await super().create(commit, metadata=metadata)

    async def commit(self, commit: Commit, *later: Commit) -> int:
        self.commits.append(commit)
        return await super().commit(commit, *later)


@action(effects="read")
async def look(item: int) -> int:
    """Look at an item."""
    return item


@action(effects="write", approval="auto")
async def change(item: int) -> int:
    """Change an item."""
    return item


@action(effects="write", approval="ask")
async def guarded(item: int) -> int:
    """Change an item that is guarded."""
    return item


def calls(*names: str) -> dict[str, Any]:
    actions = [{"name": name, "params": {"item": 1}} for name in names]
    return {"taskComplete": False, "nextStep": {"type": "Actions", "actions": actions}}


def names(event: Event) -> str:
    if isinstance(event, Settled):
        return event.effect_id.partition(":")[2]
    return event.kind


async def commits(*replies: dict[str, Any]) -> list[tuple[set[str], bool]]:
    """Per commit what happened, and whether it may be lost."""
    store = Recorder()
    model = ScriptedModel([*replies, {"taskComplete": True, "message": "Done."}])
    agent = Agent("tester", model=model, actions=[look, change, guarded])
    async with App(agents=[agent], store=store) as app:
        view = await app.start("tester", "Go.")
        view = await app.wait(view.id)
        while view.state.waiting:
            await app.answer(f"{view.id}:{view.state.asks[0].id}", decision="approve")
            view = await app.wait(view.id)
        assert view.state.status == "completed"
    return [({names(event) for event in one.events}, one.repeatable) for one in store.commits]


async def test_an_outcome_of_a_call_that_may_be_repeated_may_be_lost() -> None:
    assert await commits(calls("look")) == [
        ({"started"}, False),
        ({"model"}, False),
        ({"action.0"}, True),
        ({"model"}, False),
    ]


async def test_an_outcome_of_any_other_call_may_not() -> None:
    assert await commits(calls("change")) == [
        ({"started"}, False),
        ({"model"}, False),
        ({"reported"}, False),
        ({"action.0"}, False),
        ({"model"}, False),
    ]


async def test_several_outcomes_may_be_lost_together_when_each_may() -> None:
    for happened, lost in await commits(calls("look", "change", "look")):
        assert lost == (happened <= {"action.0", "action.2"})


async def test_what_a_person_decides_and_what_follows_is_kept() -> None:
    for happened, lost in await commits(calls("look"), calls("guarded"), calls("look")):
        assert not lost or happened == {"action.0"}
