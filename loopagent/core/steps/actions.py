"""Actions: calls that run side by side, with their results in the order they were asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from loopagent.core import policy
from loopagent.core.abilities import callable_actions, find_named, may_have_actions
from loopagent.core.calls import call_action, too_many
from loopagent.core.effects import RunAction
from loopagent.core.flat_params import fits_as_it_is
from loopagent.core.json_values import copied
from loopagent.core.params import check_params
from loopagent.core.problems import Problem
from loopagent.core.protocol.base import PARAMETERS, NonBlank, Params, Wire, named
from loopagent.core.results import call_result
from loopagent.core.steps import Done, MadeCall, NextStep, Wait


if TYPE_CHECKING:
    from loopagent.core.action_spec import ActionSpec
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import RunState


class ActionCall(Wire):
    """One call."""

    other_names: ClassVar = {**named("params", *PARAMETERS), **named("name", "action", "tool")}
    name: NonBlank
    """Name of the action."""
    params: Params = {}
    """Its parameters."""


class Actions(NextStep):
    """Call actions; all calls of one reply run side by side and their results come back together."""

    type: Literal["Actions"]
    actions: list[ActionCall] = Field(min_length=1)
    """Calls to make."""
    body: ClassVar = ("actions",)
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "Actions",
            "actions": [{"name": "search", "params": {"query": "open orders"}}],
        },
    }

    @classmethod
    def offered(cls, agent: AgentSpec) -> bool:
        """Only agents that have actions, or get some with a skill."""
        return may_have_actions(agent)

    def resolve(self, run: RunState) -> tuple[Self, list[Problem], list[str]]:
        """Resolve names, check parameters against their schemas, and reserve counts for the whole batch."""
        allowed, most = callable_actions(run), run.spec.limits.max_actions_per_reply
        problems: list[Problem] = []
        warnings: list[str] = []
        calls: list[ActionCall] = []
        counted: list[str] = []
        if len(self.actions) > most:
            text, got = f"at most {most} calls in one reply", f"{len(self.actions)}"
            problems.append(Problem("nextStep.actions", text, got))
        for index, asked in enumerate(self.actions):
            call, action = asked, allowed.get(asked.name)
            # Most calls change nothing, and their parameters need nothing to be filled in.
            if (
                action is None
                or action.effects != "read"
                or not fits_as_it_is(action.parameters)(asked.params)
            ):
                found, wrong, notes = _closely(run, asked, allowed, f"nextStep.actions[{index}]")
                problems += wrong
                warnings += notes
                if found is None:
                    continue
                call, action = found, allowed[found.name]
            calls.append(call)
            if action.max_calls is not None:
                counted.append(action.name)
        if counted:
            problems += too_many(run, Counter(counted), "nextStep.actions")
        same = problems or calls == self.actions
        return self if same else type(self)(type="Actions", actions=calls), problems, warnings

    def request(self) -> dict[str, Any]:
        """The step as canonical JSON; made by hand, as it is the step of most turns."""
        calls = [{"name": one.name, "params": copied(one.params)} for one in self.actions]
        return {"type": "Actions", "actions": calls}

    def resume(self, run: RunState, results: Mapping[str, Outcome]) -> Wait | Done:
        """Keep up to `maxConcurrency` calls under way until all have settled."""
        most = run.spec.limits.max_concurrency
        wanted: list[RunAction] = []
        for index, call in enumerate(self.actions):
            key = f"action.{index}"
            if len(wanted) < most and key not in results:
                wanted.append(call_action(run, call.name, call.params, key))
        if wanted:
            return Wait(tuple(wanted))
        made: list[MadeCall] = []
        shown: list[dict[str, Any]] = []
        for index, call in enumerate(self.actions):
            outcome = results[f"action.{index}"]
            made.append(MadeCall(call.name, call.params, outcome))
            shown.append(call_result(index + 1, call.name, outcome))
        return Done(tuple(made), tuple(shown))

    def abandon(self, run: RunState, results: Mapping[str, Outcome]) -> Done:
        """The calls that have ended."""
        del run
        known = [(index, results.get(f"action.{index}")) for index in range(len(self.actions))]
        return Done(
            results=tuple(
                call_result(index + 1, self.actions[index].name, outcome)
                for index, outcome in known
                if outcome is not None
            )
        )


def _closely(
    run: RunState, call: ActionCall, allowed: dict[str, ActionSpec], path: str
) -> tuple[ActionCall | None, list[Problem], list[str]]:
    """A call with name and parameters as they will be used, or None; its problems; and what was tolerated."""
    action = allowed.get(call.name)
    warnings: list[str] = []
    if action is None:
        match = find_named(run, call.name, allowed, f"{path}.name", "action")
        warnings = list(match.warnings)
        if match.name is None:
            return None, list(match.problems), warnings
        action = allowed[match.name]
    params, wrong, notes = check_params(action.parameters, call.params, f"{path}.params")
    problems = [*policy.held(run, action, f"{path}.name"), *wrong]
    if action.name != call.name or params != call.params:
        call = ActionCall(name=action.name, params=params)
    return call, problems, [*warnings, *notes]
