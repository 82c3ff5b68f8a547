"""What the step types ForEach and While do alike: follow the course of their passes, and report when all have ended."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from loopagent.core.abilities import may_have_actions, possible_children
from loopagent.core.loop_body import hidden_bodies
from loopagent.core.loop_report import KEPT, keep_results
from loopagent.core.steps import Done, Wait


if TYPE_CHECKING:
    from collections.abc import Collection

    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.loops import Course
    from loopagent.core.outcomes import Outcomes
    from loopagent.core.protocol.loops import ForEachOperation, WhileOperation
    from loopagent.core.state import RunState


class LoopStep:
    """Mixed into a step type whose `_course` is made by `_begin` and reported on by `_done`."""

    _course: Course | None

    @classmethod
    def offered(cls, agent: AgentSpec) -> bool:
        """Only agents that have something to do in a pass."""
        return may_have_actions(agent) or bool(possible_children(agent))

    @classmethod
    def hidden(cls, usable: Collection[str]) -> frozenset[str]:
        """Bodies that the agent has no other use for either."""
        return hidden_bodies(usable)

    def resume(self, run: RunState, results: Outcomes) -> Wait | Done:
        """Have passes done until all have ended; then keep the full results, and report."""
        course = self._follow(run, results)
        needed = course.follow(run, results)
        if course.under_way:
            return Wait(tuple(needed))
        keep = None if KEPT in results else keep_results(run, course)
        return Wait((keep,)) if keep is not None else self._done(run, course, results)

    def abandon(self, run: RunState, results: Outcomes) -> Done | None:
        """Keep what the finished passes brought."""
        course = self._follow(run, results)
        course.stopped = course.stopped or "the run ended"
        course.follow(run, results)
        return self._done(run, course, results)

    def _follow(self, run: RunState, results: Outcomes) -> Course:
        """The course, brought along; made anew when it is not that of these results."""
        course = self._course
        if course is None or not results.continues(course.results):
            course = self._course = self._begin(run)
        return course

    def _open(self, run: RunState) -> Course:
        """The course, as the step begins; it is the one that is followed then."""
        course = self._course = self._begin(run)
        if run.step is not None:
            course.results = run.step.results  # of which there are none yet
        return course

    @abstractmethod
    def _begin(self, run: RunState) -> Course:
        """The loop with nothing known of it yet."""

    @abstractmethod
    def _done(self, run: RunState, course: Course, results: Outcomes) -> Done:
        """The end of the loop, all of whose passes have ended."""


def most_passes(run: RunState, loop: ForEachOperation | WhileOperation) -> int:
    """Passes at most: what the model asks for, within the agent's limit."""
    return min(loop.max_iterations, run.spec.limits.max_passes)
