"""Pipeline: dataflow whose last value alone comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import PrivateAttr

from loopagent.core.abilities import may_have_actions
from loopagent.core.effects import KeepValue
from loopagent.core.loops import seen_payload
from loopagent.core.outcome import Outcome
from loopagent.core.outcomes import Outcomes
from loopagent.core.pipeline import diagnosis
from loopagent.core.pipeline.calls import bounds_of, maker, startable, tool_at, under_way
from loopagent.core.pipeline.checker import check_pipeline
from loopagent.core.pipeline.memo import Memo
from loopagent.core.pipeline.trace import (
    ENGINE_CODES,
    Failed,
    Failure,
    Needs,
    Value,
    calls_of,
)
from loopagent.core.pipeline.walker import Spot, walk
from loopagent.core.protocol.pipeline import AgentPipelineRequest
from loopagent.core.results import STORED, call_result
from loopagent.core.steps import Done, MadeCall, NextStep, Wait


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.facts import FactData
    from loopagent.core.problems import Problem
    from loopagent.core.state import RunState

KEY: Final = "pipe"
"""Prefix of the keys of its calls."""
KEPT: Final = "pipe.keep"
"""Key of the effect that stores a long last value."""
BATCH: Final = "pipe.all."
"""Start of the keys of approvals that all entries of a `map` share; the place of the call follows."""
SAMPLES: Final = 3
"""Filled-in parameters that such an approval shows."""
NAMES: Final = frozenset({"payload"})
"""Names that templates may use from the start."""


class Pipeline(NextStep):
    """Pass data through stages without being asked; only the last value comes back.

    A stage has one verb: tool (with `with`, `pipeInto`), where, select, sort, distinct, groupBy, jsonpath, grep,
    first, last, head, tail, count, flatten, lines, map `{as, do, continueOnError}` or let `{name, value}`.
    Conditions know and, or, not, in, contains, matches, today; paths are like `A.B[0].C`. In `{{ }}`, `$` is what
    the stage before gave.
    """

    type: Literal["Pipeline"]
    pipeline: AgentPipelineRequest
    """The stages."""
    body: ClassVar = ("pipeline",)
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "Pipeline",
            "pipeline": {
                "steps": [
                    {"tool": "list-orders"},
                    {"where": "total > 100 and not state in [new, lost]"},
                    {"map": {"do": [{"tool": "get-order", "with": {"id": "{{item.id}}"}}]}},
                    {"groupBy": {"by": "city", "sum": "total"}},
                ]
            },
        },
    }
    _memo: Memo = PrivateAttr(default_factory=Memo)
    _scope: tuple[Any, dict[str, Any]] | None = PrivateAttr(default=None)

    @classmethod
    def offered(cls, agent: AgentSpec) -> bool:
        """Only agents that have actions: they are where data comes from."""
        return may_have_actions(agent)

    def resolve(self, run: RunState) -> tuple[Self, list[Problem], list[str]]:
        """Check the whole pipeline before its first stage runs."""
        checked, problems, warnings = check_pipeline(
            self.pipeline, run, names=NAMES, where="nextStep.pipeline"
        )
        same = checked is self.pipeline
        return (
            self if same else self.model_copy(update={"pipeline": checked}),
            problems,
            warnings,
        )

    def opened(self, run: RunState) -> tuple[tuple[str, FactData], ...]:
        """The pipeline begins."""
        del run
        return ((KEY, diagnosis.started(self.pipeline)),)

    def resume(self, run: RunState, results: Outcomes) -> Wait | Done:
        """Walk it from the start with what is known: ask for the next calls, or hand out the last value."""
        move = self._walk(run, results)
        if isinstance(move, Needs):
            late = _late(run)
            if late is None:
                return Wait(startable(run, move.effects))
            move = Failed(late, move.trace)
        if under_way(run, KEY):
            return Wait(())
        return (
            self._failed(run, move) if isinstance(move, Failed) else self._ended(run, move, results)
        )

    def abandon(self, run: RunState, results: Outcomes) -> Done | None:
        """How far it came."""
        trace = self._walk(run, results).trace
        return self._failed(run, Failed(Failure("", "the run ended", "cancelled"), trace))

    def batch(self, run: RunState, key: str) -> dict[str, Any]:
        """What a person approves for all entries of a `map`: the call as written, and the first ones filled in."""
        place = key.removeprefix(BATCH)
        tool = tool_at(self.pipeline, place)
        shown: list[dict[str, Any]] = []
        passes = 1

        def batch_of(spot: Spot) -> str:
            nonlocal passes
            passes = spot.entries if spot.place == place else passes
            return _batch(spot)

        results = run.step.results if run.step else Outcomes()
        move = self._walk(run, results, batch_of, Memo())
        if isinstance(move, Needs):
            shown = [one.params for one in move.effects if one.batch == key]
        return {
            "params": (tool.with_ if tool else None) or {},
            "first": shown[:SAMPLES],
            "passes": passes,
        }

    def _walk(
        self,
        run: RunState,
        results: Outcomes,
        batch: Callable[[Spot], str] | None = None,
        memo: Memo | None = None,
    ) -> Value | Failed | Needs:
        return walk(
            self.pipeline,
            scope=self._names(run),
            key=KEY,
            results=results,
            call=maker(run, batch or _batch),
            bounds=bounds_of(run),
            at=run.step.began_at if run.step else run.clock,
            memo=memo or self._memo,
        )

    def _names(self, run: RunState) -> dict[str, Any]:
        """What templates see besides what the stages name: the payload, as far as the model may read it."""
        if self._scope is None or self._scope[0] is not run.payload:
            self._scope = (run.payload, {"payload": seen_payload(run, run.payload)})
        return self._scope[1]

    def _ended(self, run: RunState, end: Value, results: Outcomes) -> Wait | Done:
        outcome = results.get(KEPT) or Outcome.done(end.value)
        if KEPT not in results and _is_long(outcome, run.spec.limits.max_result_chars):
            return Wait((KeepValue(f"{run.turn}:{KEPT}", end.value),))
        return self._done(run, end, outcome)

    def _failed(self, run: RunState, end: Failed) -> Done:
        failure = end.failure
        outcome = Outcome.failed(failure.code, str(failure), may_have_run=failure.may_have_run)
        return self._done(run, end, outcome)

    def _done(self, run: RunState, end: Value | Failed, outcome: Outcome) -> Done:
        entry = call_result(1, diagnosis.label_of(self.pipeline), outcome)
        note = diagnosis.note_on(end)
        return Done(
            calls=tuple(
                MadeCall(one.action, one.params, one.outcome) for one in calls_of(end.trace)
            ),
            results=({**entry, "note": note} if note else entry,),
            progress=isinstance(end, Value),
            failed=isinstance(end, Failed) and end.failure.code in ENGINE_CODES,
            facts=diagnosis.ended(end, KEY, run.spec.limits.max_pipeline_preview_chars),
        )


def _batch(spot: Spot) -> str:
    """Calls for the entries of a `map` are approved together; inside another `map` their number is not known yet."""
    return f"{BATCH}{spot.place}" if spot.depth == 1 else ""


def _is_long(outcome: Outcome, max_chars: int) -> bool:
    """Whether a value has to be stored; also one that looks like a stored value and is none."""
    value = outcome.value
    return len(outcome.text()) > max_chars or (isinstance(value, dict) and STORED in value)


def _late(run: RunState) -> Failure | None:
    """The failure of working too long, if it does."""
    most, step = run.spec.limits.max_pipeline_seconds, run.step
    if most is None or step is None or run.active_ms - step.began_ms <= most * 1000:
        return None
    return Failure(
        "", f"took longer than {most:g} s; ask for less at a time", "max_pipeline_seconds"
    )
