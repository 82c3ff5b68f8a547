"""Whatever order outcomes come in, whatever comes twice or too late, and wherever a process dies: the same run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent.core.advance import advance
from loopagent.core.effects import (
    AskHuman,
    CallClientTool,
    CallHook,
    CallModel,
    Effect,
    KeepValue,
    ReadArtifact,
    ReadConversation,
    ReadMemory,
    ReadMessage,
    RunAction,
    SetTimer,
    WriteMemory,
)
from loopagent.core.events import Event, Settled, Started
from loopagent.core.outcome import Outcome
from loopagent.core.state import RunState
from loopagent.core.state_bytes import dump_outcomes, dump_state, load_state
from tests.core.play import agent


ROWS = [{"id": number} for number in range(5)]
WORK = {"name": "work", "params": {"item": "{{ item.id }}"}}
ACTIONS = {
    "type": "Actions",
    "actions": [{"name": "work", "params": {"item": one}} for one in (1, 2, 3)],
}
EACH = {
    "type": "ForEach",
    "forEach": {
        "collectionPath": "rows",
        "executionMode": "parallel",
        "maxConcurrency": 3,
        "continueOnError": True,
        "action": {**WORK, "outputMapping": {"*": "out[]"}},
    },
}
PIPES = {
    "type": "ForEach",
    "forEach": {
        "collectionPath": "rows",
        "executionMode": "parallel",
        "continueOnError": True,
        "pipeline": {
            "steps": [{"tool": "work", "with": {"item": "{{ item.id }}"}}, {"count": True}]
        },
    },
}
WHILE = {
    "type": "While",
    "while": {
        "condition": "attempt < 4",
        "delayBetweenIterationsMs": 5,
        "continueOnError": True,
        "action": {"name": "work", "params": {"item": "{{ attempt }}"}},
    },
}
PIPELINE = {
    "type": "Pipeline",
    "pipeline": {
        "steps": [
            {"tool": "work", "with": {"item": 9}},
            {"map": {"do": [{"tool": "work", "with": {"item": "{{ item }}"}}]}},
        ]
    },
}
MAIL = {"type": "Actions", "actions": [{"name": "mail", "params": {"item": one}} for one in (1, 2)]}
CHAT = {"type": "Chat"}
RETRY = {"type": "Retry", "messageIndex": 1}
BESIDE = {
    "artifactToolCalls": [{"artifactId": "A", "tool": "get_full", "input": {}}] * 2,
    "conversationToolCalls": [
        {"tool": "searchConversation", "input": {"query": "sea"}},
        {"tool": "getMessageBySequence", "input": {"sequence": 1}},
    ],
    "memoryWrites": [{"note": f"likes {what}", "type": "Preference"} for what in ("tea", "trams")],
}
"""Reads and writes that run beside a step."""
STEPS = st.lists(
    st.tuples(
        st.sampled_from([ACTIONS, EACH, PIPES, WHILE, PIPELINE, MAIL, CHAT, RETRY]),
        st.sets(st.sampled_from(sorted(BESIDE))),
    ).map(
        lambda drawn: {
            "nextStep": drawn[0],
            **{name: BESIDE[name] for name in sorted(drawn[1])},
        }
    ),
    min_size=1,
    max_size=4,
)
FILE = {"artifactId": "ab" * 32, "name": "notes.txt", "mediaType": "text/plain", "bytes": 5}
HOOKS = tuple(
    {"name": point, "point": point}
    for point in ("before_run", "before_turn", "before_action", "after_action", "after_run")
)


@dataclass
class World:
    """Everything outside: it always gives the same answer to the same effect."""

    steps: list[dict[str, Any]]
    hooks: bool = False
    """Whether hooks stand everywhere."""

    def answer(self, effect: Effect) -> Outcome:
        """How an effect ends."""
        match effect:
            case CallModel():
                return Outcome.done(self._reply(int(effect.id.partition(":")[0])))
            case RunAction():
                return self._call(effect)
            case AskHuman():
                decision = "answer" if effect.ask == "question" else "approve"
                return Outcome.done({"decision": decision, "feedback": "Go on.", "by": "ann"})
            case ReadMessage():
                return Outcome.done({"number": 1, "role": "user", "text": "Do it."})
            case KeepValue():
                return Outcome.done(effect.value)
            case _:
                return self._beside(effect)

    def _reply(self, turn: int) -> dict[str, Any]:
        last = turn > len(self.steps)
        step = {} if last else self.steps[turn - 1]
        body = {"taskComplete": last, "message": f"turn {turn}", **step}
        return {"text": json.dumps(body), "finish": "stop", "usage": {"input_tokens": 1}}

    def _beside(self, effect: Effect) -> Outcome:
        """What is asked around and beside a step."""
        match effect:
            case CallHook():
                return Outcome.done({"answers": self._hook(effect)})
            case ReadArtifact() | ReadConversation():
                return Outcome.done({"text": effect.id})
            case SetTimer() | CallClientTool():
                return Outcome.done()
            case WriteMemory():
                said = {"disposition": "written", "reason": "", "id": effect.id, "scope": "user"}
                return Outcome.done({**said, "note": effect.note})
            case ReadMemory():
                return Outcome.done(
                    {"notes": [{"id": "n", "type": "Context", "note": "It rains."}]}
                )
            case _:
                raise AssertionError(effect)

    def _hook(self, effect: CallHook) -> list[dict[str, Any]]:
        params = effect.data.get("params")
        if params == {"item": 2}:
            return [{"hook": "h", "deny": "No twos."}]
        if params == {"item": 4}:
            return [
                {"hook": "h", "context": f"before {effect.id}"},
                {"hook": "i", "params": {"item": 5}},
            ]
        return [{"hook": "h", "context": f"before {effect.id}"}] if len(effect.id) % 2 else []

    def _call(self, call: RunAction) -> Outcome:
        outcome = self._result(call)
        said = {"hook": "after_action", "context": f"after {call.id}"}
        return replace(outcome, hooks=(said,)) if self.hooks and len(call.id) % 2 else outcome

    def _result(self, call: RunAction) -> Outcome:
        item = call.params["item"]
        if item == 9:
            return Outcome.done([1, 2, 3, 4])
        if item == 3 and call.id.startswith("1:"):
            return Outcome.failed("broken", "no three in the first turn")
        return Outcome.done([item] * item)


@dataclass
class Player:
    """Plays a run to its end, with whatever order, repetition and crashes it is told to try."""

    world: World
    data: st.DataObject | None = None
    said: list[str] = field(default_factory=list[str])
    old: list[Event] = field(default_factory=list[Event])
    parts: list[bytes] = field(default_factory=list[bytes])

    def play(self) -> RunState:
        """The run's last state."""
        spec = agent(
            limits={"max_turns": 20, "repeat_limit": 20, "max_mistakes": 0},
            memory={},
            conversation_tools=True,
            hooks=HOOKS if self.world.hooks else (),
        )
        state = RunState(
            id="r",
            root_id="r",
            spec=spec,
            model="scripted",
            payload={"rows": ROWS},
            conversation="c1",
        )
        state = self._give(state, Started("Do it.", 1.0, artifacts=(FILE,)))
        while not state.ended:
            state = self._give(state, *self._next(state))
        return state

    def _next(self, state: RunState) -> list[Event]:
        pending = list(state.pending.values())
        if self.data is None:
            chosen = pending[:1]
        else:
            order = self.data.draw(st.permutations(pending))
            chosen = list(order)[: self.data.draw(st.integers(1, len(order)))]
        events: list[Event] = [Settled(one.id, self.world.answer(one), 2.0) for one in chosen]
        if self.data is not None and self.old and self.data.draw(st.booleans()):
            again = self.data.draw(st.sampled_from(self.old))
            events.insert(self.data.draw(st.integers(0, len(events))), again)
        self.old += events
        return events

    def _give(self, state: RunState, *events: Event) -> RunState:
        moved = advance(state, *events)
        self.said += [one.text for one in moved.messages]
        if moved.spilled is not None:
            self.parts.append(dump_outcomes(moved.spilled))
        if moved.state.step is None:
            self.parts.clear()
        if self.data is not None and self.data.draw(st.booleans()):  # the process dies here
            return load_state(dump_state(moved.state), moved.state.spec, self.parts)
        return moved.state


@settings(max_examples=60, deadline=None)
@given(STEPS, st.booleans(), st.data())
def test_the_run_is_the_same_however_it_comes_about(
    steps: list[dict[str, Any]], hooks: bool, data: st.DataObject
) -> None:
    world = World(steps, hooks)
    plain, tried = Player(world), Player(world, data)
    wanted, got = plain.play(), tried.play()
    assert tried.said == plain.said
    assert json.loads(dump_state(got)) == json.loads(dump_state(wanted))
    assert got.result is not None
    assert got.result.message == f"turn {len(steps) + 1}"


@settings(max_examples=60, deadline=None)
@given(STEPS, st.booleans(), st.data())
def test_what_comes_twice_or_too_late_changes_nothing(
    steps: list[dict[str, Any]], hooks: bool, data: st.DataObject
) -> None:
    player = Player(World(steps, hooks))
    state = player.play()
    late = data.draw(st.lists(st.sampled_from(player.old), min_size=1, max_size=5))
    moved = advance(state, *late)
    assert not moved.changed
    assert moved.state is state
