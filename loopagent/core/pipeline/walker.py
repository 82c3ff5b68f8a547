"""Walking a pipeline: from the start, with what is known so far, to its value or to the calls it needs next.

A walk is a pure function of the request, the names around it and the outcomes of its calls; the order in which
they settled plays no part. A call without an outcome is a hole that ends the walk, except between the entries of a
`map`, which do not depend on each other: their holes are asked for together, a window at a time. Keys of calls are
positions: `pipe.2` is the third stage, `pipe.2.17.0` the first stage inside it for entry 17.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias

from loopagent.core.effects import RunAction
from loopagent.core.outcome import NOT_FAILURES, Outcome
from loopagent.core.pipeline.fuse import Fuse
from loopagent.core.pipeline.memo import Entries, Memo
from loopagent.core.pipeline.moment import Moment, moment_at
from loopagent.core.pipeline.trace import NOTHING, Call, Failed, Failure, Needs, Ran, Value
from loopagent.core.pipeline.values import decoded, size_of
from loopagent.core.pipeline.verbs import Refusal, as_wanted, operate
from loopagent.core.problems import Problem
from loopagent.core.protocol.pipeline import AgentPipelineRequest
from loopagent.core.protocol.stages import (
    LetStage,
    MapBody,
    MapStage,
    Stage,
    StageBase,
    ToolStage,
)
from loopagent.core.template import Template, compile_template


AHEAD: Final = 4
"""How many windows an entry of a `map` may be ahead of the first one that has not ended."""


class Spot(NamedTuple):
    """Where a stage stands.

    Args:
        key: Where in the turn, entries of maps included; the key of a call.
        place: Where in the request, as in `2.0`: the same for all entries of a map.
        depth: How many maps are around it.
        entries: How many entries the innermost of them has.
    """

    key: str
    place: str = ""
    depth: int = 0
    entries: int = 1

    def stage(self, index: int) -> Spot:
        """The stage of a number, here."""
        place = f"{self.place}.{index}" if self.place else str(index)
        return self._replace(key=f"{self.key}.{index}", place=place)

    def entry(self, index: int, entries: int) -> Spot:
        """The inside of this stage, a map, for one entry."""
        return Spot(f"{self.key}.{index}", self.place, self.depth + 1, entries)


MakeCall: TypeAlias = Callable[[str, dict[str, Any], Spot], "RunAction | list[Problem]"]
"""(action, parameters, where) → the effect, or what is wrong with the parameters."""
Room: TypeAlias = Callable[[str, str], "int | None"]
"""(action, key of a `map` that wants to begin) → calls left for it; None when they are not counted."""


def unbounded(action: str, key: str) -> int | None:
    """A `Room` for actions that may be called as often as they like."""
    del action, key
    return None


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a pipeline may do.

    Args:
        max_entries: Most entries of a `map`.
        window: Most calls under way at a time.
        in_a_row: Failures of an action in a row after which a `map` starts no further entries.
        max_bytes: Most bytes of results, as JSON, that are kept until the pipeline ends.
        room: How often an action may still be called.
    """

    max_entries: int = 1_000
    window: int = 8
    in_a_row: int = 5
    max_bytes: int = 4_000_000
    room: Room = unbounded


def walk(
    request: AgentPipelineRequest,
    *,
    scope: Mapping[str, Any],
    key: str,
    results: Mapping[str, Outcome],
    call: MakeCall,
    bounds: Bounds | None = None,
    at: float = 0.0,
    memo: Memo | None = None,
) -> Value | Failed | Needs:
    """Walk a pipeline as far as what is known allows.

    Args:
        request: The pipeline, checked and with its names resolved.
        scope: Names that its templates may use.
        key: Prefix of the keys of its calls, such as `pipe` or `each.3.pipe`.
        results: What is known, by key; keys of others may be among them. Only `Outcomes` make use of a memo.
        call: Makes the effect of a call.
        bounds: How much it may do.
        at: The moment it began, in seconds since the epoch; `today` and `now` in its conditions.
        memo: What earlier walks of the same request found; filled in here, may be thrown away at any time.

    Returns:
        Its last value, its failure, or the calls it needs.
    """
    memo = Memo() if memo is None else memo
    memo.turn_to(results)
    root = memo.ran.get(key)
    if root is None or root.bound != scope:
        root = memo.ran[key] = Ran("", None, NOTHING, bound=dict(scope))
    walker = _Walker(results, call, bounds or Bounds(), moment_at(at), memo)
    trace = tuple(walker.line(request.steps, Spot(key), root, scope, "steps"))
    if trace and trace[-1].error is not None:
        return Failed(trace[-1].error, trace)
    if len(trace) == len(request.steps):
        return Value(trace[-1].value, trace)
    over = walker.over()
    return Needs(tuple(walker.needs), trace) if over is None else Failed(over, trace)


class _Walker:
    """One walk."""

    def __init__(
        self,
        results: Mapping[str, Outcome],
        call: MakeCall,
        bounds: Bounds,
        moment: Moment,
        memo: Memo,
    ) -> None:
        self.results = results
        self.call = call
        self.bounds = bounds
        self.moment = moment
        self.memo = memo
        self.needs: list[RunAction] = []
        self.size_bytes = 0

    def over(self) -> Failure | None:
        """The failure of holding too much, if it does."""
        most = self.bounds.max_bytes
        if self.size_bytes <= most:
            return None
        text = f"its calls gave more than {most} bytes; ask them for less, or take fewer entries"
        return Failure("", text, "max_pipeline_bytes")

    def line(
        self, stages: list[Stage], spot: Spot, base: Ran, scope: Mapping[str, Any], name: str
    ) -> list[Ran]:
        """Run stages one after another, up to the first that fails or cannot be run yet."""
        ran: list[Ran] = []
        for index, stage in enumerate(stages):
            one = self._stage(stage, spot.stage(index), base, scope)
            if one is None:
                break
            if one.error is not None:
                path = f"{name}[{index}] ({one.label})"
                error = one.error
                failure = error.inside(path) if error.path else replace(error, path=path)
                return [*ran, replace(one, error=failure)]
            ran.append(one)
            base = one
            scope = scope if one.bound is None else {**scope, **one.bound}
        return ran

    def _stage(self, stage: Stage, spot: Spot, base: Ran, scope: Mapping[str, Any]) -> Ran | None:
        known = self.memo.ran.get(spot.key)
        if known is not None and known.base is base:
            self.size_bytes += known.size_bytes
        else:
            run = _RUN.get(type(stage))
            given = (stage, spot, base, scope)
            known = self._operate(stage, base) if run is None else run(self, *given)
            if known is not None:
                self.memo.ran[spot.key] = known
        return known

    def _operate(self, stage: StageBase, base: Ran) -> Ran:
        value = operate(stage, base.value, self.moment)
        if isinstance(value, Refusal):
            return Ran(stage.verb, base, None, error=Failure("", value.message))
        return Ran(stage.verb, base, value)

    def tool(self, stage: ToolStage, spot: Spot, base: Ran, scope: Mapping[str, Any]) -> Ran | None:
        """Call an action, or take what the call brought."""
        base_then, effect = self.memo.asked.get(spot.key, (None, None))
        if effect is None or base_then is not base:
            made = self._effect(stage, spot, base, scope)
            if isinstance(made, Failure):
                return Ran(stage.tool, base, None, error=made)
            effect = made
            self.memo.asked[spot.key] = (base, effect)
        outcome = self.results.get(spot.key)
        if outcome is None:
            self.needs.append(effect)
            return None
        return self._called(stage, base, Call(spot.key, effect.action, effect.params, outcome))

    def _effect(
        self, stage: ToolStage, spot: Spot, base: Ran, scope: Mapping[str, Any]
    ) -> RunAction | Failure:
        names = scope if base.value is NOTHING else {**scope, "$": base.value}
        filled = self._template(stage).fill(names, where="with")
        if filled.problems:
            return Failure("", "; ".join(map(str, filled.problems)), "template")
        params: dict[str, Any] = filled.value
        if stage.pipe_into is not None:
            params = {**params, stage.pipe_into: base.value}
        effect = self.call(stage.tool, params, spot)
        if isinstance(effect, RunAction):
            return effect
        return Failure("", "; ".join(map(str, effect)), "invalid_params")

    def _template(self, stage: ToolStage) -> Template:
        known = self.memo.templates.get(id(stage))
        if known is None:
            known = self.memo.templates[id(stage)] = compile_template(stage.with_ or {})
        return known

    def _called(self, stage: ToolStage, base: Ran, call: Call) -> Ran:
        error, value = call.outcome.error, call.outcome.value
        if not call.outcome.ok:
            code = error.code if error else "failed"
            message = error.message if error else "the call failed"
            failure = Failure("", message, code, may_have_run=bool(error and error.may_have_run))
            return Ran(stage.tool, base, None, (call,), error=failure)
        size = size_of(value)
        self.size_bytes += size
        return Ran(stage.tool, base, decoded(value), (call,), size_bytes=size)

    def let(self, stage: LetStage, spot: Spot, base: Ran, scope: Mapping[str, Any]) -> Ran | None:
        body = stage.let
        inner = self.line(body.value, spot, base, scope, "value")
        if not _complete(inner, body.value):
            return None
        last = inner[-1]
        bound = {body.name: last.value}
        made = _joined(f"let {body.name}", base, inner)
        return replace(made, value=base.value, bound=bound, error=last.error)

    def each(self, stage: MapStage, spot: Spot, base: Ran, scope: Mapping[str, Any]) -> Ran | None:
        """Run the body for every entry; without `continueOnError` a window at a time, and none after a failed one.

        Whole windows, and bounds on how far ahead entries start, make what is called independent of the order
        in which calls settle.
        """
        values = as_wanted("list", "map", base.value)
        known = self.memo.maps.get(spot.key)
        if known is None or known.base is not base:
            refused = self._unfit(stage.map, spot, values)
            if refused is not None:
                return Ran("map", base, None, error=refused)
            fuse = Fuse(self.bounds.in_a_row, ahead=AHEAD * self.bounds.window)
            known = self.memo.maps[spot.key] = Entries(base, fuse, [None] * len(values))
        self.size_bytes += known.size_bytes
        run = _EachEntry(self, stage.map, spot, scope, values)
        known.open = [index for index in known.open if not run.entry(known, index)]
        while known.next < len(values) and self._may_start(stage.map, known):
            known.next += 1
            if not run.entry(known, known.next - 1):
                known.open.append(known.next - 1)
        strict = not stage.map.continue_on_error
        found = [one for one in known.found[: known.next] if one is not None]
        if known.open or (known.next < len(values) and not (strict and _failed(found))):
            return None
        return _mapped(base, found, strict=strict)

    def _may_start(self, body: MapBody, known: Entries) -> bool:
        """Whether the next entry may begin; without `continueOnError` only with a whole window after a good one."""
        window = self.bounds.window
        if known.open and (len(self.needs) >= window or known.fuse.is_far(known.next)):
            return False
        if body.continue_on_error or known.next % window:
            return True
        before = known.found[max(0, known.next - window) : known.next]
        return all(one is not None and one.error is None for one in before)

    def _unfit(self, body: MapBody, spot: Spot, entries: Any) -> Failure | None:
        if isinstance(entries, Refusal):
            return Failure("", entries.message)
        count, most = len(entries), self.bounds.max_entries
        if count > most:
            text = f"{count} entries, and at most {most} are allowed; put where or first before map"
            return Failure("", text, "max_entries")
        if spot.depth:
            return None
        for action, times in calls_per_entry(body.do).items():
            left = self.bounds.room(action, spot.key)
            if left is not None and times * count > left:
                text = f"{times * count} calls of {action} would be needed and {left} are left"
                return Failure("", text, "max_calls")
        return None

    def entry(self, body: MapBody, spot: Spot, base: Ran, scope: Mapping[str, Any]) -> Ran | None:
        """Run the body of a `map` for one entry."""
        memo, key = self.memo.ran, f"{spot.key}."
        start = memo.get(key)
        if start is None or start.base is not base:
            start = memo[key] = Ran("", base, scope[body.as_])
        inner = self.line(body.do, spot, start, scope, "do")
        if not _complete(inner, body.do):
            return None
        self.memo.forget(spot.key, len(body.do))
        return _joined("", base, inner)


class _EachEntry(NamedTuple):
    """The body of a `map`, ready to run for any of its entries."""

    walker: _Walker
    body: MapBody
    spot: Spot
    scope: Mapping[str, Any]
    values: list[Any]

    def entry(self, known: Entries, index: int) -> bool:
        """Run it for one entry; whether that has ended."""
        ran = known.fuse.blown(index, known.base)
        if ran is None:
            spot = self.spot.entry(index, len(self.values))
            scope = {**self.scope, self.body.as_: self.values[index]}
            ran = self.walker.entry(self.body, spot, known.base, scope)
        if ran is not None:
            known.ended(index, ran)
        return ran is not None


def _complete(ran: list[Ran], stages: list[Stage]) -> bool:
    return len(ran) == len(stages) or (bool(ran) and ran[-1].error is not None)


def _failed(ran: list[Ran]) -> bool:
    return any(one.error is not None for one in ran)


def _joined(label: str, base: Ran, inner: list[Ran]) -> Ran:
    """Stages inside another one, as one."""
    last = inner[-1]
    calls = tuple(call for one in inner for call in one.calls)
    size = sum(one.size_bytes for one in inner)
    return Ran(label, base, last.value, calls, error=last.error, size_bytes=size)


def _mapped(base: Ran, found: list[Ran], *, strict: bool) -> Ran:
    """All entries of a `map` as one; a failed entry is null, or fails all where nothing may fail.

    All fail as well when no entry was let through, as then somebody said no to the whole.
    """
    misses = tuple((at, one.error) for at, one in enumerate(found) if one.error is not None)
    held = len(misses) == len(found) and all(one.code in NOT_FAILURES for _, one in misses)
    error = misses[0][1].inside(f"entry {misses[0][0]}") if misses and (strict or held) else None
    return Ran(
        "map",
        base,
        [one.value for one in found],
        tuple(call for one in found for call in one.calls),
        error=error,
        misses=misses,
        size_bytes=sum(one.size_bytes for one in found),
    )


def calls_per_entry(stages: list[Stage]) -> dict[str, int]:
    """How often stages call each action at least, what a `map` among them does left out."""
    found: dict[str, int] = {}
    for stage in stages:
        if isinstance(stage, ToolStage):
            found[stage.tool] = found.get(stage.tool, 0) + 1
        elif isinstance(stage, LetStage):
            for action, times in calls_per_entry(stage.let.value).items():
                found[action] = found.get(action, 0) + times
    return found


_RUN: Final[dict[type[StageBase], Callable[..., Ran | None]]] = {
    ToolStage: _Walker.tool,
    MapStage: _Walker.each,
    LetStage: _Walker.let,
}
