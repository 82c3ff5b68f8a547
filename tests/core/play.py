"""A run played by hand: events in, transitions out, no loop, no mocks."""

from __future__ import annotations

import json
from typing import Any

from loopagent.core.action_spec import ActionSpec
from loopagent.core.advance import advance
from loopagent.core.agent_spec import AgentSpec
from loopagent.core.effects import AskHuman, CallModel, Effect, RunAction
from loopagent.core.events import CancelRequested, Event, MessagePosted, Settled, Started
from loopagent.core.facts import Fact
from loopagent.core.outcome import Outcome
from loopagent.core.state import Message, RunState
from loopagent.core.state_bytes import dump_outcomes, dump_state, load_state
from loopagent.core.transition import Transition


ITEM = {
    "type": "object",
    "properties": {"item": {"type": "integer"}},
    "required": ["item"],
    "additionalProperties": False,
}
WORK = ActionSpec(name="work", effects="read", parameters=ITEM)
MAIL = ActionSpec(name="mail", effects="external", parameters=ITEM)


def agent(**options: Any) -> AgentSpec:
    """An agent with a read-only and an external action."""
    return AgentSpec(**{"name": "tester", "actions": (WORK, MAIL), **options})


class Play:
    """Drives one run; the state goes through its stored form after every event."""

    def __init__(self, spec: AgentSpec | None = None, *, payload: Any = None) -> None:
        spec = spec or agent()
        self.state = RunState(
            id="run_1", root_id="run_1", spec=spec, model="scripted", payload=payload or {}
        )
        self.facts: list[Fact] = []
        self.messages: list[Message] = []
        self.effects: list[Effect] = []
        self.spilled: list[bytes] = []
        self.at = 1.0
        self.give(Started("Do it.", self.at))

    def give(self, *events: Event) -> Play:
        """Feed events together."""
        before = dump_state(self.state)
        transition = advance(self.state, *events)
        assert dump_state(self.state) == before, "advance changed the state it was given"
        self._store(transition)
        self.facts += transition.facts
        self.messages += transition.messages
        self.effects = list(transition.effects)
        return self

    def _store(self, transition: Transition) -> None:
        """Take the state as a fresh process would find it."""
        if transition.spilled is not None:
            self.spilled.append(dump_outcomes(transition.spilled))
        if transition.state.step is None:
            self.spilled.clear()
        spec = transition.state.spec
        self.state = load_state(dump_state(transition.state), spec, self.spilled)

    def reply(self, body: Any, *, finish: str = "stop", **value: Any) -> Play:
        """Settle the planner call with a reply: an object, or a text as it is."""
        calling = self.state.calling
        assert calling is not None, "no planner call is under way"
        text = body if isinstance(body, str) else json.dumps(body)
        usage = {"input_tokens": 100, "output_tokens": 10}
        self.at += 1
        done = Outcome.done({"text": text, "finish": finish, "usage": usage, **value})
        return self.give(Settled(calling.id, done, self.at))

    def settle(self, key: str, value: Any = None, *, error: str | None = None) -> Play:
        """Settle an effect of the current turn by its key."""
        self.at += 1
        outcome = Outcome.done(value) if error is None else Outcome.failed(error, f"it {error}")
        return self.give(Settled(f"{self.state.turn}:{key}", outcome, self.at))

    def answer(self, decision: str, **answer: Any) -> Play:
        """Answer the first open request."""
        self.at += 1
        value = {"decision": decision, "by": "ann", **answer}
        return self.give(Settled(self.state.asks[0].id, Outcome.done(value), self.at))

    def post(self, text: str, delivery: Any = "queue", partial: str = "") -> Play:
        """Say something as a person."""
        self.at += 1
        return self.give(MessagePosted(text, self.at, delivery, "ann", partial))

    def cancel(self) -> Play:
        """Stop the run."""
        self.at += 1
        return self.give(CancelRequested(self.at, "enough", "human"))

    @property
    def types(self) -> list[str]:
        """Types of all facts so far."""
        return [one.type for one in self.facts]

    def last(self, kind: str) -> dict[str, Any]:
        """Data of the last fact of a type."""
        return next(one.data for one in reversed(self.facts) if one.type == kind)

    @property
    def said(self) -> str:
        """The last message that is not the model's."""
        return next(one.text for one in reversed(self.messages) if one.role == "user")


def act(*calls: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A reply that asks for calls."""
    actions = [{"name": name, "params": params} for name, params in calls]
    return {"taskComplete": False, "nextStep": {"type": "Actions", "actions": actions}, **more}


def pending(play: Play, kind: type[Effect]) -> list[str]:
    """Keys of pending effects of a kind."""
    return [
        one.id.partition(":")[2] for one in play.state.pending.values() if isinstance(one, kind)
    ]


__all__ = ["AskHuman", "CallModel", "Play", "RunAction", "act", "agent", "pending"]


def calls(run: Play) -> list[RunAction]:
    """Calls of actions that are under way."""
    return [one for one in run.state.pending.values() if isinstance(one, RunAction)]


def report(run: Play) -> dict[str, Any]:
    """What the model was told last of the only result of a step."""
    told = [one.text for one in run.messages if one.kind == "results"]
    (entry,) = json.loads(told[-1])["results"]
    return dict(entry)
