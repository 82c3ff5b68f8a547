"""Small runs for putting stores through their paces, made by hand so that every number in them is known."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import Any

from loopagent.core.action_spec import ActionSpec
from loopagent.core.agent_spec import AgentSpec, PayloadSpec
from loopagent.core.effects import AskHuman, CallModel
from loopagent.core.events import Event, Settled, Started
from loopagent.core.facts import Fact
from loopagent.core.outcome import Outcome
from loopagent.core.outcomes import Outcomes
from loopagent.core.state import Message, Result, RunState, StepInProgress
from loopagent.errors import LoopAgentError
from loopagent.ports import Commit, Store


CREATED_AT = 1_700_000_000.25
"""When sample runs are created, in seconds since the epoch; each commit is a second later."""


def _spec(agent: str) -> AgentSpec:
    action = ActionSpec(name="sort", parameters={"type": "object", "properties": {"n": {}}})
    payload = PayloadSpec.model_validate({"schema": {"type": "object"}, "write": ["a.b:add"]})
    told = f"You are {agent}."
    return AgentSpec(name=agent, instructions=told, actions=(action,), payload=payload)


class SampleRun:
    """A run that grows by one commit at a time.

    Args:
        run_id: Its id.
        agent: Name of its agent.
        parent: The run it is a child of.
        task: Text of the task.
        payload: What it begins with.
    """

    def __init__(
        self,
        run_id: str,
        *,
        agent: str = "clerk",
        parent: SampleRun | None = None,
        task: str = "Sort the letters.",
        payload: dict[str, Any] | None = None,
    ) -> None:
        self.id = run_id
        self.state: RunState = RunState(
            id=run_id,
            spec=_spec(agent),
            model="scripted:sample",
            root_id=(parent.state.root_id or parent.id) if parent else run_id,
            parent_id=parent.id if parent else None,
            payload=payload or {},
        )
        self.task = task
        self.version = 0
        self.commits: list[Commit] = []

    def begin(self) -> Commit:
        """The first commit: two facts, one message, a model call pending."""
        created = {"agent": self.state.spec.name, "message": self.task}
        return self.next(
            events=(Started(self.task, CREATED_AT),),
            facts=(Fact("run.created", "client", created), Fact("run.started", "engine", {})),
            texts=(self.task,),
            pending={"1:model": CallModel("1:model")},
            shown="running",
        )

    def turn(self, text: str = "I look at the next letter.") -> Commit:
        """A reply came in: one fact, one message."""
        number = self.state.turn + 1
        fact = Fact("reply.received", "model", {"raw": text, "type": "Chat"}, turn=number)
        event = Settled(f"{number}:model", Outcome.done({"text": text}), self._now())
        pending = {f"{number + 1}:model": CallModel(f"{number + 1}:model")}
        return self.next(
            events=(event,), facts=(fact,), texts=(text,), turn=number, pending=pending
        )

    def quiet(self) -> Commit:
        """Something was noted that nobody else hears of: no fact, no message."""
        return self.next()

    def ask(self, name: str) -> Commit:
        """The run waits for a person."""
        ask = AskHuman(name, "question", "Which one?", ("answer", "terminate"))
        body = {"requestId": self.request_id(name), "kind": "question", "title": "Which one?"}
        fact = Fact("request.created", "engine", body, turn=self.state.turn or None)
        return self.next(facts=(fact,), pending={name: ask}, shown="followup")

    def close(self, name: str, how: str = "resolved") -> Commit:
        """The request is `resolved`, `cancelled` or `expired`, and the run goes on."""
        body = {"requestId": self.request_id(name), "decision": "answer", "by": "client"}
        fact = Fact(f"request.{how}", "human", body)
        pending = {"9:model": CallModel("9:model")}
        return self.next(facts=(fact,), pending=pending, shown="running")

    def end(self) -> Commit:
        """The run completed."""
        fact = Fact("run.completed", "engine", {"message": "Sorted.", "usage": {}})
        result = Result("completed", "Sorted.")
        return self.next(facts=(fact,), pending={}, status="completed", shown="idle", result=result)

    def next(
        self,
        *,
        events: tuple[Event, ...] = (),
        facts: tuple[Fact, ...] = (),
        texts: Sequence[str] = (),
        **changes: Any,
    ) -> Commit:
        """Any commit; `changes` are fields of the state."""
        number, turn = self.state.messages, changes.get("turn", self.state.turn)
        messages = tuple(
            Message(number + index, "assistant" if turn else "user", "reply", text, turn)
            for index, text in enumerate(texts, 1)
        )
        at = self._now()
        self.state = replace(self.state, messages=number + len(texts), clock=at, **changes)
        commit = Commit(self.state, self.version, at, events, facts, messages)
        self.version += 1
        self.commits.append(commit)
        return commit

    def loop(self, count: int, spilled: int) -> Commit:
        """A step knows so many results more; the first `spilled` of all are stored apart from now on."""
        known = self.state.step or StepInProgress({"type": "Actions", "actions": [{"name": "x"}]})
        results = known.results
        for number in range(len(results), len(results) + count):
            results = results.plus(f"each.{number}", Outcome.done(number))
        part = Outcomes(dict(results.since(known.spilled)[: spilled - known.spilled]))
        commit = self.next(step=replace(known, results=results, spilled=spilled))
        self.commits[-1] = commit = replace(commit, spilled=part or None)
        return commit

    def request_id(self, name: str) -> str:
        """Public id of a request of this run."""
        return f"{self.id}:{name}"

    def _now(self) -> float:
        return CREATED_AT + self.version


async def stored(store: Store, run_id: str, *, turns: int = 0, **options: Any) -> SampleRun:
    """A sample run that is in the store, with so many turns."""
    run = SampleRun(run_id, **options)
    await store.create(run.begin())
    for _ in range(turns):
        await store.commit(run.turn())
    return run


def same(got: object, wanted: object, what: str) -> None:
    """Complain when two values differ.

    Raises:
        AssertionError: They do.
    """
    if got != wanted:
        raise AssertionError(f"{what}: expected {wanted!r}, got {got!r}")


async def refused(
    call: Awaitable[object], error: type[LoopAgentError], what: str
) -> LoopAgentError:
    """Complain when a call is not refused with this error.

    Raises:
        AssertionError: It went through.
    """
    try:
        await call
    except error as found:
        return found
    raise AssertionError(f"{what}: expected {error.__name__}, and it went through")
