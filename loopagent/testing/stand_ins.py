"""What stands in for the world in a scenario: a scripted model for every agent, fakes for actions, and people."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from loopagent.action import Action, ActionContext
from loopagent.agent import Agent
from loopagent.clients import ToolAnswer
from loopagent.core.skill_spec import READ_FILE
from loopagent.errors import ActionError, RequestError
from loopagent.matching import differences, shown
from loopagent.request_view import one_of_them
from loopagent.testing.jumping import JumpingLoop


if TYPE_CHECKING:
    from loopagent.app import App
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.ports import Model, RequestRow
    from loopagent.project.files import Loc
    from loopagent.project.scenarios import Scenario
    from loopagent.scenario_spec import FakeCall, PersonAnswer

AnyAction = Action[..., Any]
Problem = tuple["Loc", str]
"""A place in the scenario, and what went wrong there."""


def stand_ins(agents: Iterable[Agent[Any]], model: Model, fakes: Fakes) -> list[Agent[Any]]:
    """The agents and those below them as they are, but a model of ours answers for all, and fakes for actions."""
    twins: dict[int, Agent[Any]] = {}
    return [_twin(one, model, fakes, twins) for one in agents]


def _twin(
    agent: Agent[Any], model: Model, fakes: Fakes, twins: dict[int, Agent[Any]]
) -> Agent[Any]:
    known = twins.get(id(agent))
    if known is not None:
        return known
    twin = twins[id(agent)] = copy.copy(agent)
    twin.spec = _answered_by_us(agent.spec)
    twin.model_object = model
    twin.actions = {key: fakes.action(one) for key, one in agent.actions.items()}
    twin.agents = {key: _twin(one, model, fakes, twins) for key, one in agent.agents.items()}
    return twin


def _answered_by_us(spec: AgentSpec) -> AgentSpec:
    """The definition, and those below it, with our model in the place of each of theirs."""
    name = f"object:{spec.name}"
    others = tuple(name for _ in spec.fallback_models)
    below = tuple(one.model_copy(update={"spec": _answered_by_us(one.spec)}) for one in spec.agents)
    return spec.model_copy(update={"model": name, "fallback_models": others, "agents": below})


class Fakes:
    """The fake results of a scenario, and what went wrong with them."""

    def __init__(self, scenario: Scenario) -> None:
        self._given = scenario.spec.actions
        # Files of skills lie in the project and are only read: nothing has to be made up for them.
        self._real = {READ_FILE, *scenario.spec.real_actions}
        self._used = {name: [0] * len(entries) for name, entries in self._given.items()}
        self._actions: dict[int, AnyAction] = {}
        self.problems: list[Problem] = []

    def action(self, real: AnyAction) -> AnyAction:
        """What is called instead of an action; the same for all agents that have it."""
        known = self._actions.get(id(real))
        if known is None:
            runs = real.spec.name not in self._given and bool({real.spec.name, "*"} & self._real)
            known = _slowly(real) if runs else _Fake(real, self)
            self._actions[id(real)] = known
        return known

    async def call(self, name: str, params: dict[str, Any]) -> Any:
        """Answer a call.

        Raises:
            ActionError: The scenario says so, or says nothing about this call.
        """
        index = self._find(name, params)
        if index is None:
            raise ActionError(self._no_answer(name, params), code="no_fake", fatal=True)
        self._used[name][index] += 1
        fake = self._given[name][index]
        await asyncio.sleep(fake.delay_ms / 1000)
        if fake.error is not None:
            raise ActionError(fake.error.message, code=fake.error.code, fatal=fake.error.fatal)
        return copy.deepcopy(fake.result)

    def _find(self, name: str, params: dict[str, Any]) -> int | None:
        used = self._used.get(name, [])
        for index, fake in enumerate(self._given.get(name, ())):
            most = fake.times or (1 if fake.when is None else None)
            left = most is None or used[index] < most
            if left and not differences(fake.when or {}, params):
                return index
        return None

    def _no_answer(self, name: str, params: dict[str, Any]) -> str:
        if name not in self._given:
            hint = "give it results there, or name it in realActions"
            problem = f"{name} was called, and has no results: {hint}"
        else:
            problem = f"no entry is left that fits this call of {name}"
        self.problems.append((("actions", name), f"{problem}; parameters: {shown(params)}"))
        return f"The scenario has no result for this call of {name}."

    def unused(self) -> Iterator[Problem]:
        """Entries that answered no call."""
        for name, entries in self._given.items():
            for index, (fake, used) in enumerate(zip(entries, self._used[name], strict=True)):
                if not used and not fake.optional:
                    what = f"no call of {name} {_fitting(fake)}; remove it, or make it `optional`"
                    yield ("actions", name, index), what


def _fitting(fake: FakeCall) -> str:
    return "used this entry" if fake.when is None else f"fits {shown(fake.when)}"


class _Fake(Action[..., Any]):
    """An action that takes its results from a scenario; the parameters are checked as the real one does."""

    def __init__(self, real: AnyAction, fakes: Fakes) -> None:
        async def play(params: dict[str, Any]) -> Any:
            return await fakes.call(real.spec.name, params)

        super().__init__(play, real.spec, BaseModel)
        self._real = real

    def arguments(self, params: dict[str, Any], context: ActionContext | None) -> dict[str, Any]:
        """The parameters as one argument; see `Action.arguments`."""
        self._real.arguments(params, context)
        return {"params": params}


def _slowly(real: AnyAction) -> AnyAction:
    """The action itself, during which the clock does not jump; threads are noticed without help."""
    if not real.is_async:
        return real

    async def run(**arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        with loop.real_time() if isinstance(loop, JumpingLoop) else nullcontext():
            return await real.fn(**arguments)

    twin = copy.copy(real)
    twin.fn = run
    return twin


class People:
    """The people and clients of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._answers = scenario.spec.answers
        self._left = dict(enumerate(self._answers))
        self.problems: list[Problem] = []

    async def answer(self, app: App) -> bool:
        """Give the next answer to the oldest open request it fits; False when there is none."""
        rows, _ = await app.requests(limit=200)
        for row in rows:
            fitting = (index for index, one in self._left.items() if _fits(one, row))
            index = next(fitting, None)
            if index is not None:
                return await self._give(app, row, index)
        return False

    async def _give(self, app: App, row: RequestRow, index: int) -> bool:
        given = self._left.pop(index)
        await asyncio.sleep(given.delay_ms / 1000)
        refused = ""
        try:
            await _deliver(app, row, given)
        except RequestError as error:
            refused = error.code
            if refused != given.refused:
                details = "; ".join(f"{one['pointer']}: {one['detail']}" for one in error.errors)
                said = f"{error} {details}".strip()
                self.problems.append((("answers", index), f"was refused ({refused}): {said}"))
                return False
        if given.refused and not refused:
            what = f"was taken; it should have been refused ({given.refused})"
            self.problems.append((("answers", index, "refused"), what))
        return True

    def unused(self) -> Iterator[Problem]:
        """Answers that nobody asked for."""
        for index in self._left:
            yield ("answers", index), "no open request fitted this answer"


def _fits(given: PersonAnswer, row: RequestRow) -> bool:
    """Whether an answer is for a request: people decide, clients bring results."""
    of_client = row.body.get("kind") == "client_tool"
    return (given.decision is None) == of_client and not differences(given.request, row.body)


async def _deliver(app: App, row: RequestRow, given: PersonAnswer) -> None:
    if given.decision is None:
        call_id = row.id.partition(":")[2]
        answer = ToolAnswer(given.error is None, given.result, given.error or "")
        await app.answer_call(row.run_id, call_id, answer)
        return
    await app.answer(
        row.id,
        decision=given.decision,
        values=given.values,
        edited=given.edited,
        feedback=given.feedback,
        by="scenario",
        who=one_of_them(row),
    )
