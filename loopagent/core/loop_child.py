"""A loop whose passes give work to a sub-agent: its message and parameters are filled in for each pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loopagent.core.child_merge import Merge
from loopagent.core.child_work import check_work, find_agent, start_child, take_child
from loopagent.core.json_values import compact_json
from loopagent.core.lineage import MAY_GO_ON
from loopagent.core.outcome import Outcome
from loopagent.core.problems import Problem
from loopagent.core.template import compile_template


if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from loopagent.core.effects import Effect
    from loopagent.core.loop_body import Pass
    from loopagent.core.mapping import Outputs
    from loopagent.core.protocol.loops import LoopSubAgent
    from loopagent.core.state import RunState
    from loopagent.core.steps import MadeCall


UNFINISHED = "unfinished"
"""Outcome code of a pass whose sub-agent asked something instead of finishing."""
_KEPT = ("status", "message", "runId", "form")
"""What the model is told of a pass."""


@dataclass(frozen=True, slots=True)
class _Work:
    """The work of one pass."""

    name: str
    message: str
    template_parameters: dict[str, Any] | None
    resume_run_id: str | None = None


class SubAgentBody:
    """One piece of work for one sub-agent in each pass; its changes merge in the order of the passes."""

    def __init__(self, call: LoopSubAgent, run: RunState) -> None:
        self.what = f"sub-agent {call.name}"
        self.puts = True
        self._call = call
        texts = {"message": call.message, "parameters": call.template_parameters}
        self._bare = run.spec.references == "bare"
        self._texts = compile_template({**texts, "context": call.context}, bare=self._bare)

    def look(
        self, run: RunState, key: str, scope: Mapping[str, Any], new: Mapping[str, Outcome]
    ) -> Outcome | tuple[Effect, ...]:
        """How the work ended, or the effect that has it done."""
        if key in new:
            return _passed(new[key])
        filled = self._texts.fill(scope, where="subAgent")
        if filled.problems:
            return Outcome.failed("invalid_params", "; ".join(str(one) for one in filled.problems))
        work = self._work(filled.value, scope)
        sub = run.spec.agent(work.name)
        if sub is None:
            return Outcome.failed("unknown_agent", f"There is no sub-agent {work.name!r}.")
        parameters, problems, _ = check_work(run, sub, work, "subAgent")
        if problems:
            return Outcome.failed("invalid_params", "; ".join(str(one) for one in problems))
        ready = _Work(work.name, work.message, parameters)
        begun = start_child(run, ready, key)
        return begun if isinstance(begun, Outcome) else (begun,)

    def _work(self, filled: dict[str, Any], scope: Mapping[str, Any]) -> _Work:
        """The work of a pass; a message that names nothing of the pass is given the item."""
        message = str(filled["message"])
        if not self._texts.names:
            message = f"{message}\n\nItem: {compact_json(scope['item'])}"
        if filled["context"] is not None:
            context = filled["context"]
            text = context if isinstance(context, str) else compact_json(context)
            message = f"{message}\n\nContext: {text}"
        return _Work(self._call.name, message, filled["parameters"])

    def put(self, run: RunState, outputs: Outputs, one: Pass) -> None:
        """Take in what the sub-agent of a pass changed; of two changes to one place the first stands."""
        step = run.step
        outcome = step.results.get(one.key) if step else None
        if outcome is None:
            return
        if outputs.merge is None:
            outputs.merge = Merge(outputs.payload, max_bytes=run.spec.limits.max_payload_bytes)
        before = len(outputs.merge.patch)
        index = int(one.key.rpartition(".")[2])
        who, known = f"pass {index}", len(outputs.merge.lost)
        take_child(run, outputs.merge, index + 1, self._call.name, outcome, who=who)
        outputs.payload = outputs.merge.payload
        outputs.patch += outputs.merge.patch[before:]
        for text in outputs.merge.lost[known:]:
            outputs.refuse(text)

    def calls(self, run: RunState, one: Pass) -> list[MadeCall]:
        """None: the circuit breaker is about actions."""
        del run, one
        return []


def _passed(outcome: Outcome) -> Outcome:
    """The outcome of a pass: what the sub-agent said; one that asks is a pass that did not finish."""
    value: dict[str, Any] = outcome.value if isinstance(outcome.value, dict) else {}
    if outcome.ok and value.get("status") == "asked":
        text = f"it asks: {value.get('message', '')} (resumeRunId {value.get('runId')})"
        return Outcome.failed(UNFINISHED, text)
    if outcome.error is not None and MAY_GO_ON in value:
        text = (
            f"{outcome.error.message} (resumeRunId {value['runId']} goes on with what it has done)"
        )
        return Outcome.failed(outcome.error.code, text)
    return outcome.with_value({name: value[name] for name in _KEPT if value.get(name)})


def check_child(
    call: LoopSubAgent, run: RunState, names: Collection[str], path: str
) -> tuple[LoopSubAgent, list[Problem], list[str]]:
    """Check all that can be known of a sub-agent body before the first pass.

    Returns:
        The body with its name resolved, all problems, and warnings.
    """
    name, problems, warnings = find_agent(run, call.name, f"{path}.name")
    texts = {"message": call.message, "templateParameters": call.template_parameters}
    template = compile_template({**texts, "context": call.context})
    problems.extend(template.check(names, where=path))
    sub = None if name is None else run.spec.agent(name)
    if name is None or sub is None:
        return call, problems, warnings
    plain = compile_template(call.template_parameters).plain
    work = _Work(name, call.message, call.template_parameters if plain else None)
    if plain or call.template_parameters is None:
        problems.extend(check_work(run, sub, work, path)[1])
    return call.model_copy(update={"name": name}), problems, warnings
