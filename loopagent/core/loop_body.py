"""What a loop does in each pass: one action with its parameters filled in for the pass, or one pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from loopagent.core import policy
from loopagent.core.abilities import callable_actions, find_named, usable_action
from loopagent.core.calls import calls_to
from loopagent.core.effects import RunAction
from loopagent.core.flat_params import fits_as_it_is
from loopagent.core.json_values import is_object
from loopagent.core.loop_child import SubAgentBody, check_child
from loopagent.core.mapping import mapping_faults
from loopagent.core.outcome import Outcome
from loopagent.core.outcomes import Outcomes
from loopagent.core.params import check_params
from loopagent.core.pipeline.calls import bounds_of, maker, tool_at
from loopagent.core.pipeline.checker import check_pipeline
from loopagent.core.pipeline.diagnosis import label_of
from loopagent.core.pipeline.memo import Memo
from loopagent.core.pipeline.trace import Failed, Needs, Value, calls_of
from loopagent.core.pipeline.walker import calls_per_entry, walk
from loopagent.core.problems import Problem
from loopagent.core.protocol.loops import ForEachOperation, Loop
from loopagent.core.results import STORED
from loopagent.core.steps import MadeCall, offered
from loopagent.core.template import compile_template


if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from loopagent.core.effects import Effect
    from loopagent.core.mapping import Outputs
    from loopagent.core.protocol.loops import LoopAction
    from loopagent.core.protocol.pipeline import AgentPipelineRequest
    from loopagent.core.state import RunState


L = TypeVar("L", bound=Loop)
TOO_LONG = "kept as an artifact: nothing of it can be put into the payload"
"""Why a mapping finds nothing in a result that had no room."""
BATCH = "all"
"""Start of the keys of approvals that all passes share."""
UNFIT = "invalid_params"
"""Outcome code of a pass whose parameters could not be filled in, or do not fit."""


class Pass(NamedTuple):
    """A pass that has ended.

    Args:
        key: Its key in the step.
        scope: What `{{ }}` saw in it.
        outcome: How it ended.
    """

    key: str
    scope: Mapping[str, Any]
    outcome: Outcome


class Body(Protocol):
    """What is done in each pass."""

    what: str
    """For people, as in `action check`."""
    puts: bool
    """Whether its passes put anything into the payload."""

    def look(
        self, run: RunState, key: str, scope: Mapping[str, Any], new: Mapping[str, Outcome]
    ) -> Outcome | tuple[Effect, ...]:
        """How the pass ended, or what it still needs.

        Args:
            run: The run; until the end of the pass is known, with the payload that earlier passes left.
            key: Key of the pass in the step.
            scope: What `{{ }}` sees in it.
            new: What became known since the loop was looked at.
        """
        ...

    def put(self, run: RunState, outputs: Outputs, one: Pass) -> None:
        """Put what a pass brought into the payload."""
        ...

    def calls(self, run: RunState, one: Pass) -> list[MadeCall]:
        """The calls of a pass, for the circuit breaker."""
        ...


class ActionBody:
    """One action in each pass.

    Args:
        call: The action, checked.
        run: The run.
        batch: Key of the approval that all passes share.
        passes: How many there are at most: they share the room for results.
    """

    def __init__(self, call: LoopAction, run: RunState, batch: str, passes: int) -> None:
        self.what = f"action {call.name}"
        room = run.spec.limits.max_loop_chars // max(1, passes)
        self._call = calls_to(run, call.name, batch=batch, room=room)
        bare = run.spec.references == "bare"
        self._params = compile_template(call.params, bare=bare)
        self._mapping = compile_template(call.output_mapping or {})
        self.puts = bool(call.output_mapping)
        action = usable_action(run, call.name)
        self._schema = action.parameters if action else {}
        self._fits = fits_as_it_is(self._schema)

    def look(
        self, run: RunState, key: str, scope: Mapping[str, Any], new: Mapping[str, Outcome]
    ) -> Outcome | tuple[Effect, ...]:
        """The call's outcome, or the call; parameters that do not fit are a failed pass."""
        if key in new:
            return new[key]
        filled = self._params.put(scope)
        params = filled.value
        if filled.problems:
            return _bad([one.problem("params") for one in filled.problems])
        if not self._fits(params):
            params, problems, _ = check_params(self._schema, params)
            if problems:
                return _bad(problems)
        return (self._call(f"{run.turn}:{key}", params),)

    def put(self, run: RunState, outputs: Outputs, one: Pass) -> None:
        """Follow the output mapping."""
        del run
        filled = self._mapping.fill(one.scope, where="outputMapping")
        for problem in filled.problems:
            outputs.refuse(str(problem))
        value = one.outcome.value
        if is_object(value) and STORED in value:
            outputs.refuse(f"{value[STORED]['chars']} characters, {TOO_LONG}")
        elif not filled.problems:
            outputs.take(filled.value, value)

    def calls(self, run: RunState, one: Pass) -> list[MadeCall]:
        """The one call of the pass, unless its parameters did not fit."""
        found = self.look(run, one.key, one.scope, {})
        calls = () if isinstance(found, Outcome) else found
        return [
            MadeCall(call.action, call.params, one.outcome)
            for call in calls
            if isinstance(call, RunAction)
        ]


class PipelineBody:
    """One pipeline in each pass; its last value is what the pass brought.

    Args:
        request: The pipeline, checked.
        window: Calls of one pass that may run side by side.
    """

    def __init__(self, request: AgentPipelineRequest, window: int) -> None:
        self.what = f"pipeline {label_of(request)}"
        self.puts = False
        self._request = request
        self._window = window
        self._memos: dict[str, Memo] = {}

    def look(
        self, run: RunState, key: str, scope: Mapping[str, Any], new: Mapping[str, Outcome]
    ) -> Outcome | tuple[Effect, ...]:
        """The pipeline's last value or failure, or the calls it still needs."""
        del new  # it goes by all that is known, with a memo
        move = self._walk(run, key, scope)
        if isinstance(move, Needs):
            return move.effects
        mine = f"{run.turn}:{key}."
        open_calls = tuple(one for name, one in run.pending.items() if name.startswith(mine))
        if open_calls:
            return open_calls
        del self._memos[key]
        if isinstance(move, Value):
            return Outcome.done(move.value)
        failure = move.failure
        return Outcome.failed(failure.code, str(failure), may_have_run=failure.may_have_run)

    def _walk(self, run: RunState, key: str, scope: Mapping[str, Any]) -> Value | Failed | Needs:
        step = run.step
        return walk(
            self._request,
            scope=dict(scope),
            key=f"{key}.pipe",
            results=step.results if step else Outcomes(),
            call=maker(run, lambda spot: f"{BATCH}.{spot.place}"),
            bounds=bounds_of(run, self._window),
            at=step.began_at if step else run.clock,
            memo=self._memos.setdefault(key, Memo()),
        )

    def put(self, run: RunState, outputs: Outputs, one: Pass) -> None:
        """A pipeline has no output mapping."""

    def calls(self, run: RunState, one: Pass) -> list[MadeCall]:
        """All calls of the pass."""
        move = self._walk(run, one.key, one.scope)
        self._memos.pop(one.key, None)
        return [MadeCall(call.action, call.params, call.outcome) for call in calls_of(move.trace)]


def _bad(problems: Collection[Problem]) -> Outcome:
    return Outcome.failed(UNFIT, "; ".join(str(one) for one in problems))


def body_of(loop: Loop, run: RunState, passes: int) -> Body:
    """The body of a checked loop of at most so many passes."""
    if loop.pipeline is not None:
        return PipelineBody(loop.pipeline, _window(loop, run))
    if loop.sub_agent is not None:
        return SubAgentBody(loop.sub_agent, run)
    assert loop.action is not None
    return ActionBody(loop.action, run, f"{BATCH}.{loop.action.name}", passes)


def _window(loop: Loop, run: RunState) -> int:
    """Calls of one pass that may run side by side: passes that do so share what the run allows."""
    most = run.spec.limits.max_concurrency
    if isinstance(loop, ForEachOperation) and loop.execution_mode == "parallel":
        return max(1, most // min(loop.max_concurrency, most))
    return most


def asked(loop: Loop, passes: int) -> dict[str, int]:
    """How often a loop of so many passes calls each action, as far as that is known."""
    each = {loop.action.name: 1} if loop.action else {}
    if loop.pipeline:
        each = calls_per_entry(loop.pipeline.steps)
    return {name: times * passes for name, times in each.items()}


def hidden_bodies(usable: Collection[str]) -> frozenset[str]:
    """Keys of bodies that an agent cannot use, given the step types it may use."""
    bodies = {"subAgent": "Sub-Agent", "pipeline": "Pipeline"}
    return frozenset(key for key, name in bodies.items() if name not in usable)


def describe(loop: Loop, run: RunState, scopes: list[dict[str, Any]], key: str) -> dict[str, Any]:
    """What a person is shown of the calls of a loop: the parameters as written, and filled in for the first passes."""
    if loop.pipeline is not None:
        tool = tool_at(loop.pipeline, key.removeprefix(f"{BATCH}."))
        return _described((tool.with_ if tool else None) or {}, scopes)
    assert loop.action is not None
    template = compile_template(loop.action.params, bare=run.spec.references == "bare")
    filled = [template.fill(scope, where="params").value for scope in scopes]
    return {"params": loop.action.params, "first": filled}


def _described(params: dict[str, Any], scopes: list[dict[str, Any]]) -> dict[str, Any]:
    """One call of a pipeline in all passes; it is filled in where it needs nothing of the stages before."""
    template = compile_template(params)
    filled = [template.fill(scope, where="with") for scope in scopes]
    return {"params": params, "first": [one.value for one in filled if not one.problems]}


def check_body(
    loop: L, run: RunState, names: Collection[str], path: str
) -> tuple[L, list[Problem], list[str]]:
    """Check all that can be known of the body of a loop before the first pass.

    Returns:
        The loop with names resolved, all problems, and warnings.
    """
    if loop.pipeline is not None and "Pipeline" in offered(run.spec):
        request, problems, warnings = check_pipeline(
            loop.pipeline, run, names=names, where=f"{path}.pipeline"
        )
        same = request is loop.pipeline
        checked = loop if same else loop.model_copy(update={"pipeline": request})
        return checked, problems, warnings
    if loop.sub_agent is not None and "Sub-Agent" in offered(run.spec):
        child, problems, warnings = check_child(loop.sub_agent, run, names, f"{path}.subAgent")
        same = child is loop.sub_agent
        return loop if same else loop.model_copy(update={"sub_agent": child}), problems, warnings
    if loop.action is None:
        other = "pipeline" if loop.pipeline is not None else "subAgent"
        return loop, [Problem(f"{path}.{other}", "this agent cannot do that in a loop")], []
    call, problems, warnings = _check_action(loop.action, run, names, f"{path}.action")
    same = call is loop.action
    return loop if same else loop.model_copy(update={"action": call}), problems, warnings


def _check_action(
    call: LoopAction, run: RunState, names: Collection[str], path: str
) -> tuple[LoopAction, list[Problem], list[str]]:
    allowed = callable_actions(run)
    match = find_named(run, call.name, allowed, f"{path}.name", "action")
    problems, warnings = list(match.problems), list(match.warnings)
    if match.name is not None:
        problems.extend(policy.held(run, allowed[match.name], f"{path}.name"))
    template = compile_template(call.params, bare=run.spec.references == "bare")
    problems.extend(template.check(names, where=f"{path}.params"))
    warnings.extend(template.warn(names, where=f"{path}.params"))
    if match.name is not None and template.plain:
        problems.extend(
            check_params(allowed[match.name].parameters, call.params, f"{path}.params")[1]
        )
    mapping = call.output_mapping or {}
    problems.extend(Problem(f"{path}.outputMapping", one) for one in mapping_faults(mapping))
    problems.extend(compile_template(mapping).check(names, where=f"{path}.outputMapping"))
    if match.name not in {None, call.name}:
        call = call.model_copy(update={"name": match.name})
    return call, problems, warnings
