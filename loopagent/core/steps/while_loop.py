"""While: the same as long as a condition holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import PrivateAttr

from loopagent.core.expression import Expression, Failure, parse
from loopagent.core.facts_loop import LoopProgress, LoopStarted
from loopagent.core.loop_body import body_of, check_body, describe
from loopagent.core.loop_report import finished, progress
from loopagent.core.loop_step import LoopStep, most_passes
from loopagent.core.loops import Course, Rule, name_problems
from loopagent.core.problems import Problem
from loopagent.core.protocol.loops import WhileOperation
from loopagent.core.steps import Done, NextStep


if TYPE_CHECKING:
    from loopagent.core.facts import FactData
    from loopagent.core.outcomes import Outcomes
    from loopagent.core.state import RunState

PREFIX: Final = "pass"
NAMES: Final = ("payload", "data", "item", "attempt", "last", "results", "errors")
"""What a condition and the templates of a pass may use, besides the loop's own variable."""


class While(LoopStep, NextStep):
    """Do the same as long as a condition holds without being asked again."""

    type: Literal["While"]
    while_: WhileOperation
    """How long, and what to do in each pass."""
    body: ClassVar = ("while",)
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "While",
            "while": {
                "condition": "payload.status != 'done'",
                "action": {"name": "poll", "params": {}},
            },
        },
    }
    _course: Course | None = PrivateAttr(None)

    def resolve(self, run: RunState) -> tuple[Self, list[Problem], list[str]]:
        """Check condition, body and templates as a whole."""
        loop = self.while_
        names = {*NAMES, loop.item_variable}
        checked, problems, warnings = check_body(loop, run, names, "nextStep.while")
        problems[:0] = name_problems("nextStep.while", itemVariable=loop.item_variable)
        condition = parse(loop.condition)
        if isinstance(condition, Failure):
            problems.insert(0, Problem("nextStep.while.condition", str(condition), loop.condition))
        else:
            problems[:0] = _unknown(condition, names)
        delay, most = loop.delay_between_iterations_ms, run.spec.limits.max_pause_ms
        if delay > most:
            where = "nextStep.while.delayBetweenIterationsMs"
            problems.append(Problem(where, f"at most {most}", str(delay)))
        step = self if checked is loop else self.model_copy(update={"while_": checked})
        return step, problems, warnings

    def opened(self, run: RunState) -> tuple[tuple[str, FactData], ...]:
        """The loop begins."""
        what, over = self._open(run).body.what, self.while_.condition[:200]
        return ((PREFIX, LoopStarted(kind="while", over=over, what=what)),)

    def _done(self, run: RunState, course: Course, results: Outcomes) -> Done:
        count, most = len(course.ended), course.rule.most
        if not course.stopped and count >= most:
            condition = parse(self.while_.condition)
            if _holds(condition, course.rule.scope(course, count)) is True:
                course.stopped = f"{most} passes are the most; the condition still holds"
        return finished(run, course, results, "while", passes=None)

    def progress(self) -> LoopProgress | None:
        """How many passes are done."""
        return progress(self._course, None)

    def batch(self, run: RunState, key: str) -> dict[str, Any]:
        """What a person approves: the call of every pass, with the first one filled in."""
        course = self._begin(run)
        described = describe(self.while_, run, [course.rule.scope(course, 0)], key)
        return {**described, "condition": self.while_.condition, "passes": course.rule.most}

    def _begin(self, run: RunState) -> Course:
        loop = self.while_
        past = _Past(loop)

        def scope(course: Course, index: int) -> dict[str, Any]:
            payload = course.payload
            values, errors = past.before(course, index)
            item = {"attemptNumber": index + 1, "totalAttempts": index}
            return {
                "payload": payload,
                "data": payload,
                "item": item,
                "last": course.ended[index - 1].value if index else None,
                "results": values,
                "errors": errors,
                loop.item_variable: item,
                "attempt": index + 1,
            }

        most, longest_ms = most_passes(run, loop), run.spec.limits.max_pause_ms
        pauses = loop.delay_between_iterations_ms > 0
        rule = Rule(
            prefix=PREFIX,
            most=most,
            side_by_side=1,
            go_on=loop.continue_on_error,
            pause_ms=(lambda index: min(_pause_ms(loop, index), longest_ms)) if pauses else None,
            scope=scope,
            more=partial(_holds, parse(loop.condition)),
            carry=True,
        )
        return Course.begin(run, rule, body_of(loop, run, most))


def _holds(condition: Expression | Failure, scope: dict[str, Any]) -> bool | str:
    """Whether the condition holds before a pass that would see this, or why that cannot be said."""
    if isinstance(condition, Failure):
        return str(condition)
    holds = condition.holds(scope)
    return f"the condition cannot be evaluated: {holds}" if isinstance(holds, Failure) else holds


class _Past:
    """What a loop's passes brought, in order, brought along instead of gathered anew for each of them.

    A loop that reads `results` or `errors` gets copies, as what it makes of them is kept; nobody else looks at them.
    """

    def __init__(self, loop: WhileOperation) -> None:
        text = loop.model_dump_json()
        self._read = "results" in text or "errors" in text
        self._values: list[Any] = []
        self._errors: list[str] = []

    def before(self, course: Course, index: int) -> tuple[list[Any], list[str]]:
        """The results of the passes before one, and the errors of all that have ended."""
        for number in range(len(self._values), len(course.ended)):
            outcome = course.ended[number]
            self._values.append(outcome.value)
            if outcome.error is not None:
                self._errors.append(outcome.error.message)
        if self._read:
            return self._values[:index], self._errors.copy()
        return self._values, self._errors


def _unknown(condition: Expression, names: set[str]) -> list[Problem]:
    unknown = sorted(condition.names - names)
    if not unknown:
        return []
    text = f"unknown name {unknown[0]!r}; known: {', '.join(sorted(names))}"
    return [Problem("nextStep.while.condition", text, condition.source)]


def _pause_ms(loop: WhileOperation, index: int) -> int:
    """The pause before a pass; with a backoff each is so many times the one before."""
    if loop.backoff == 1.0 or index <= 1:
        return loop.delay_between_iterations_ms
    try:
        return int(loop.delay_between_iterations_ms * loop.backoff ** (index - 1))
    except OverflowError:
        return 2**62
