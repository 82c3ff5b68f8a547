"""Playing scenarios: a real app over a store in memory, scripted replies, fake results, a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from loopagent.app import App
from loopagent.core.text import clean_text
from loopagent.errors import RequestError
from loopagent.models.scripted import ScriptedModel
from loopagent.project.scenarios import Scenario
from loopagent.testing.expectations import Mismatch, Played, check
from loopagent.testing.jumping import JumpingLoop
from loopagent.testing.stand_ins import Fakes, People, stand_ins


if TYPE_CHECKING:
    from loopagent.project.files import Loc
    from loopagent.runview import RunView

EPOCH_SECONDS: Final = 1_767_258_000.0
"""When every scenario begins on its clock: 1 January 2026, 9:00 UTC."""
PATIENCE_SECONDS: Final = 30 * 86_400.0
"""How long a run may work without a rest, on the scenario's clock."""
MAX_PROMPTS: Final = 100_000
"""Prompts that are kept to be looked at."""


@dataclass(frozen=True)
class ScenarioResult:
    """What came of a scenario. `seconds` is how long it took, `played` is None when no run was started."""

    scenario: Scenario
    problems: tuple[Mismatch, ...]
    seconds: float
    played: Played | None = None

    @property
    def passed(self) -> bool:
        """Whether everything is as expected."""
        return not self.problems

    def check(self) -> None:
        """Fail a test when something is not as expected.

        Raises:
            AssertionError: Says what, and where it stands in the scenario.
        """
        if self.problems:
            raise AssertionError(self.text())

    def text(self) -> str:
        """What is not as expected, for people: one line a problem and its details below."""
        lines: list[str] = []
        for one in self.problems:
            lines.append(f"{self.scenario.where(one.loc)}: {_place(one.loc)}: {one.message}")
            lines += [f"    {clean_text(detail)}" for detail in one.details]
        return "\n".join(lines)

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON."""
        scenario, played = self.scenario, self.played
        return {
            "scenario": scenario.name,
            "file": str(scenario.path),
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
            "status": played.status if played else None,
            "modelCalls": len(played.prompts) if played else 0,
            "problems": [
                {
                    "where": scenario.where(one.loc),
                    "path": _place(one.loc),
                    "message": one.message,
                    "details": list(one.details),
                }
                for one in self.problems
            ],
        }


def run_scenario(scenario: Scenario) -> ScenarioResult:
    """Play a scenario and compare what comes of it with what is expected; nothing is kept.

    It has an event loop of its own, so call it from synchronous code, or in a thread: `asyncio.to_thread`.

    Args:
        scenario: The scenario, as `load_scenarios` gives it.

    Returns:
        What came of it; `check()` on it fails a test that should fail.

    Raises:
        RuntimeError: Called inside a running event loop.
    """
    started = perf_counter()
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        problems, played = runner.run(_Play(scenario).play())
    return ScenarioResult(scenario, tuple(problems), perf_counter() - started, played)


def _place(loc: Loc) -> str:
    parts = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in loc)
    return "".join(parts).removeprefix(".") or "(file)"


class _Play:
    """One scenario while it is played."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._model = ScriptedModel(
            scenario.script, name="scripted:scenario", keep_requests=MAX_PROMPTS
        )
        self._fakes = Fakes(scenario)
        self._people = People(scenario)

    async def play(self) -> tuple[list[Mismatch], Played | None]:
        """Run the agent until it ends or nobody answers it any more."""
        agents = self._scenario.project.agents.values()
        app = App(
            agents=stand_ins(agents, self._model, self._fakes),
            env={},
            base_dir=self._scenario.project.folder,
            hooks=self._scenario.project.hooks,
            clock=_clock(),
            recover=False,
        )
        async with app:
            try:
                view = await self._started(app)
            except RequestError as error:
                what = f"the run was refused ({error.code}): {error}"
                details = tuple(f"{one['pointer']}: {one['detail']}" for one in error.errors)
                return [Mismatch((), what, details)], None
            view = await self._finished(app, view)
            events = [one async for one in app.events(view.id, live=False)]
        return self._judged(view, events)

    async def _started(self, app: App) -> RunView:
        spec = self._scenario.spec
        return await app.start(
            spec.agent,
            spec.message,
            payload=spec.payload,
            limits=spec.limits or None,
            plan_mode=spec.plan_mode,
        )

    async def _finished(self, app: App, view: RunView) -> RunView:
        while True:
            view = await app.wait(view.id, timeout_seconds=PATIENCE_SECONDS)
            if view.state.ended or not await self._people.answer(app):
                return view

    def _judged(
        self, view: RunView, events: list[dict[str, Any]]
    ) -> tuple[list[Mismatch], Played | None]:
        status = "waiting" if view.waiting else view.state.status
        played = Played(view.public(), status, events, self._model.requests)
        wrong = [*self._fakes.problems, *self._people.problems]
        found = [Mismatch(loc, what) for loc, what in wrong] + check(
            self._scenario.spec.expect, played
        )
        left = [*self._fakes.unused(), *self._people.unused(), *self._unused_replies()]
        return found + [Mismatch(loc, what) for loc, what in left], played

    def _unused_replies(self) -> list[tuple[Loc, str]]:
        spec = self._scenario.spec
        count = len(self._scenario.script) - len(self._model.requests)
        if count <= 0 or spec.unused_replies:
            return []
        place: Loc = ("repliesFile",) if spec.replies_file else ("replies",)
        return [(place, f"{count} of {len(self._scenario.script)} replies were not asked for")]


def _clock() -> Callable[[], float]:
    """Seconds since the epoch, on the clock of the running loop."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    return lambda: EPOCH_SECONDS + loop.time() - started
