"""What the events of a tree say that it does is what the server, which knows the states, says: after every commit."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent.core.advance import advance
from loopagent.core.client_tool_spec import ClientToolSpec
from loopagent.core.effects import (
    AskHuman,
    CallClientTool,
    CallModel,
    Effect,
    RunAction,
    SetTimer,
    StartRun,
)
from loopagent.core.events import (
    CancelRequested,
    Event,
    MessagePosted,
    PauseRequested,
    Reported,
    ResumeRequested,
    Settled,
    Started,
)
from loopagent.core.facts import public_event
from loopagent.core.lineage import child_state, children_of, news
from loopagent.core.loop_fold import LoopFold, loop_state
from loopagent.core.loop_state import parts_of
from loopagent.core.loop_view import combine, open_asks
from loopagent.core.outcome import Outcome
from loopagent.core.state import RunState
from loopagent.runview import RunView
from tests.core.play import agent
from tests.core.test_sub_agents import kid


TOOL = ClientToolSpec(name="open-map", description="Opens a map.", parameters={"type": "object"})
ACTIONS = [{"name": name, "params": {"item": 1}} for name in ("work", "mail", "mail")]
WORK = [{"name": name, "message": "Do it."} for name in ("left", "right")]
STEPS: list[dict[str, Any]] = [
    {"type": "Actions", "actions": ACTIONS},
    {"type": "Actions", "actions": ACTIONS[:1]},
    {"type": "Chat"},
    {"type": "Plan", "plan": "1. Go."},
    {"type": "ClientTools", "clientTools": [{"name": "open-map", "params": {}}] * 2},
    {"type": "Sub-Agent", "subAgents": WORK},
    {"type": "Sub-Agent", "subAgents": WORK[:1]},
]


class Tree:
    """A root run and what becomes of it, without a runtime; whatever is drawn happens next."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.states: dict[str, RunState] = {}
        self.events: list[dict[str, Any]] = []
        self.at = 1.0
        below = [
            kid(
                one,
                terms={"questions": questions},
                actions=agent().actions,
                client_tools=(TOOL,),
                agents=(kid("left"),) if one == "right" else (),
            )
            for one, questions in (("left", "person"), ("right", "parent"))
        ]
        spec = agent(
            name="boss", agents=tuple(below), client_tools=(TOOL,), limits={"max_turns": 9}
        )
        state = RunState(id="run_1", root_id="run_1", spec=spec, model="m")
        self.give(state, Started("Do it.", self.at))

    def give(self, state: RunState, *events: Event) -> None:
        """Let something happen to a run, commit it, and do at once what costs no time."""
        moved = advance(state, *events)
        self.states[state.id] = moved.state
        for fact in moved.facts:
            self.events.append(
                public_event(
                    fact,
                    seq=len(self.events) + 1,
                    at=self.at,
                    run_id=state.id,
                    root_id="run_1",
                    parent_id=state.parent_id,
                )
            )
        self.check()

    def check(self) -> None:
        """Every run, looked at as the root of what is below it, is told the same by events and states."""
        for run_id in self.states:
            parts = parts_of(self.under_way(run_id))
            told = combine(run_id, parts)
            assert loop_state(self.events, run_id) == told, (run_id, self.events[-5:])
            view = RunView(
                self.states[run_id],
                len(self.events),
                told,
                [one.model_dump() for one in open_asks(run_id, parts)],
            )
            assert LoopFold.of_run(json.loads(json.dumps(view.public()))).state == told

    def under_way(self, run_id: str) -> list[RunState]:
        """A run and those below it that it waits for."""
        found = [self.states[run_id]]
        for child in children_of(found[0]):
            found += self.under_way(child) if child in self.states else []
        return found

    def choices(self) -> list[tuple[str, Any]]:
        """What may happen next: an effect ends, or a run tells another one how it stands."""
        return [
            (run_id, one)
            for run_id, state in self.states.items()
            for one in (*state.pending.values(), *news(state))
            if not (isinstance(one, StartRun) and one.started)
        ]

    def step(self) -> bool:
        """One thing happens; False when nothing can."""
        self.at += 1
        if self.data.draw(st.integers(0, 9)) == 0:
            state = self.data.draw(st.sampled_from([*self.states.values()]))
            stands = state.paused is not None or state.ended
            self.give(state, (ResumeRequested if stands else PauseRequested)(self.at, by="ann"))
            return True
        choices = self.choices()
        if not choices:
            return False
        run_id, what = self.data.draw(st.sampled_from(choices))
        state = self.states[run_id]
        if isinstance(what, StartRun):
            self.begin(state, what)
        elif isinstance(what, Effect):
            self.give(state, Settled(what.id, self.outcome(state, what), self.at))
        else:
            self.tell(state, what)
        return True

    def begin(self, parent: RunState, work: StartRun) -> None:
        """A child run begins, or takes the answer to its question."""
        if work.resume_run_id is None:
            child = child_state(parent, work, "m")
            assert child is not None
            self.give(child, Started(work.message, self.at))
        else:
            child = self.states[work.resume_run_id]
            taken = Reported("serves", {"effect": work.id}, self.at)
            self.give(child, taken, MessagePosted(work.message, self.at, by="model"))
        self.give(self.states[parent.id], Reported("started", {"effects": [work.id]}, self.at))

    def tell(self, state: RunState, said: Any) -> None:
        """A run hears of another one."""
        other = self.states.get(said.run_id)
        if other is not None and not other.ended:
            event = (
                CancelRequested(self.at, "Not needed.", "engine")
                if said.outcome is None
                else Settled(state.serves, said.outcome, self.at)
            )
            self.give(other, event)
        self.give(self.states[state.id], Reported("told", {"runs": [said.run_id]}, self.at))

    def outcome(self, state: RunState, effect: Effect) -> Outcome:
        """How an effect ends."""
        match effect:
            case CallModel():
                return Outcome.done({"text": self.reply(state), "finish": "stop", "usage": {}})
            case AskHuman():
                decision = self.data.draw(st.sampled_from(effect.decisions))
                return Outcome.done({"decision": decision, "feedback": "Go on.", "by": "ann"})
            case RunAction():
                fails = self.data.draw(st.booleans())
                return Outcome.failed("broken", "It broke.") if fails else Outcome.done("ok")
            case CallClientTool():
                return Outcome.done({"result": 1, "media": []})
            case SetTimer():
                return Outcome.done()
            case _:
                raise AssertionError(effect)

    def reply(self, state: RunState) -> str:
        """A reply; an answer to a child that asked is given now and then."""
        if self.data.draw(st.integers(0, 5)) == 0:
            return json.dumps({"taskComplete": True, "message": "Done."})
        step = self.data.draw(st.sampled_from(STEPS))
        if state.asked and self.data.draw(st.booleans()):
            run_id, asked = next(iter(state.asked.items()))
            work = {"name": asked.agent, "message": "That one.", "resumeRunId": run_id}
            step = {"type": "Sub-Agent", "subAgents": [work]}
        return json.dumps({"taskComplete": False, "message": "On it.", "nextStep": step})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_events_and_states_agree_after_every_commit(data: st.DataObject) -> None:
    tree = Tree(data)
    for _ in range(25):
        if not tree.step():
            break
    root = tree.states["run_1"]
    if not root.ended:
        tree.give(root, CancelRequested(tree.at, "Enough.", "human"))
    again = data.draw(st.lists(st.sampled_from(tree.events), max_size=5))
    assert loop_state([*tree.events, *again]) == loop_state(tree.events)
    assert loop_state(tree.events).state == "idle"
