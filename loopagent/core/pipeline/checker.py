"""Checking a pipeline as a whole, before its first stage runs: nothing of a wrong one takes effect."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from loopagent.core import policy
from loopagent.core.abilities import callable_actions, find_named
from loopagent.core.calls import too_many
from loopagent.core.params import check_params
from loopagent.core.pipeline.paths import read_path
from loopagent.core.pipeline.predicates import read_predicate
from loopagent.core.pipeline.verbs import TABLE, Wants
from loopagent.core.problems import Problem
from loopagent.core.protocol.pipeline import AgentPipelineRequest
from loopagent.core.protocol.stages import (
    DistinctStage,
    Grep,
    GrepStage,
    GroupBy,
    GroupByStage,
    JsonpathStage,
    LetStage,
    MapStage,
    SelectStage,
    SortStage,
    Stage,
    StageBase,
    ToolStage,
    WhereStage,
)
from loopagent.core.regex import compile_pattern
from loopagent.core.template import check as check_template


if TYPE_CHECKING:
    from loopagent.core.action_spec import ActionSpec
    from loopagent.core.state import RunState


Gives: TypeAlias = Literal["nothing", "unknown", "a list", "text", "a number"]
"""What is known about what a stage gives."""
GIVES: Final[dict[str, Gives]] = {
    **dict.fromkeys(("where", "select", "sort", "first", "last", "distinct"), "a list"),
    **dict.fromkeys(("flatten", "groupBy", "lines", "grep", "map"), "a list"),
    **dict.fromkeys(("head", "tail"), "text"),
    "count": "a number",
}
"""By verb; the others give what nobody knows before."""
_WORKS_ON: Final[dict[Wants, frozenset[Gives]]] = {
    "list": frozenset({"unknown", "a list"}),
    "text": frozenset({"unknown", "text"}),
    "either": frozenset({"unknown", "a list", "text"}),
    "any": frozenset({"unknown", "a list", "text", "a number"}),
    "whole": frozenset({"unknown", "a list", "text", "a number"}),
}
_NEEDED: Final[dict[Wants, str]] = {
    "list": "a list",
    "text": "text",
    "either": "text or a list",
    "any": "data",
    "whole": "data",
}
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TAKEN: Final = frozenset({"and", "or", "not", "in", "true", "false", "null"})
_SPECIAL: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "dependentRequired"})
"""Keywords that relate parameters to each other; with a template among them they are checked once it is filled."""


@dataclass(slots=True)
class _Findings:
    """What a check found so far."""

    run: RunState
    allowed: dict[str, ActionSpec]
    problems: list[Problem] = field(default_factory=list[Problem])
    warnings: list[str] = field(default_factory=list[str])

    def add(self, path: str, message: str, got: str = "") -> None:
        self.problems.append(Problem(path, message, got))


class _Around(NamedTuple):
    """What is known where a stage stands: names for templates, and what the stage before gives."""

    names: frozenset[str]
    gives: Gives


def check_pipeline(
    request: AgentPipelineRequest, run: RunState, *, names: Collection[str], where: str
) -> tuple[AgentPipelineRequest, list[Problem], list[str]]:
    """Check everything that can be known before a pipeline runs.

    That is: the names of its actions and whether they may be called at all, their parameters as far as no
    template stands in them, templates, paths, conditions, patterns, whether each stage gets what it works
    on, and how often actions may still be called.

    Args:
        request: The pipeline.
        run: The run, with the agent's definition and what was called so far.
        names: Root names that its templates may use, `$` aside.
        where: Its place in the reply, as in `nextStep.pipeline`.

    Returns:
        The pipeline with the names of its actions as they are, all problems, and warnings.
    """
    found = _Findings(run, callable_actions(run))
    path = f"{where}.steps"
    steps, gives = _line(found, request.steps, path, _Around(frozenset(names), "nothing"))
    if gives == "nothing":
        found.add(path, "expected a last value, but no stage gives data to it; add a tool")
    _reserve(found, run, steps, path)
    same = all(one is other for one, other in zip(steps, request.steps, strict=True))
    return (
        request if same else request.model_copy(update={"steps": steps}),
        found.problems,
        found.warnings,
    )


def _sure(stages: list[Stage]) -> Iterator[ToolStage]:
    """The calls that are made in any case."""
    for stage in stages:
        if isinstance(stage, ToolStage):
            yield stage
        elif isinstance(stage, LetStage):
            yield from _sure(stage.let.value)


def _reserve(found: _Findings, run: RunState, steps: list[Stage], path: str) -> None:
    """Count the calls that are sure to be made; those of a `map` are counted when its entries are known."""
    asked = Counter(one.tool for one in _sure(steps))
    found.problems += too_many(run, asked, path)


def _line(
    found: _Findings, stages: list[Stage], path: str, around: _Around
) -> tuple[list[Stage], Gives]:
    """Check stages that run one after another."""
    checked: list[Stage] = []
    for index, stage in enumerate(stages):
        place = f"{path}[{index}]"
        check = _NESTED.get(type(stage))
        if check is not None:
            stage, around = check(found, stage, place, around)  # noqa: PLW2901 - its names are resolved
        else:
            around = _operator(found, stage, place, around)
        checked.append(stage)
    return checked, around.gives


def _operator(found: _Findings, stage: Stage, place: str, around: _Around) -> _Around:
    _fits(found, stage.verb, TABLE[type(stage)].wants, place, around.gives)
    read = _READ.get(type(stage))
    for key, problem in () if read is None else read(stage):
        found.add(f"{place}.{key}", problem)
    return _then(around, GIVES.get(stage.verb, "unknown"))


def _then(around: _Around, gives: Gives) -> _Around:
    """The same names, with other data; there is data from here on, so `$` is one of them."""
    return _Around(around.names | {"$"}, gives)


def _fits(found: _Findings, verb: str, wants: Wants, place: str, gives: Gives) -> None:
    if gives == "nothing":
        found.add(place, f"expected tool before {verb}, there is no data yet")
    elif gives not in _WORKS_ON[wants]:
        found.add(place, f"{verb} works on {_NEEDED[wants]}, and the stage before gives {gives}")


def _tool(found: _Findings, stage: ToolStage, place: str, around: _Around) -> tuple[Stage, _Around]:
    match = find_named(found.run, stage.tool, found.allowed, f"{place}.tool", "action")
    found.warnings += match.warnings
    found.problems += match.problems
    given = stage.with_ or {}
    found.problems += check_template(given, around.names, where=f"{place}.with")
    if stage.pipe_into is not None and around.gives == "nothing":
        found.add(f"{place}.pipeInto", "there is no data yet that could go into it")
    after = _then(around, "unknown")
    if match.name is None:
        return stage, after
    found.problems += policy.held(found.run, found.allowed[match.name], f"{place}.tool")
    _params(found, found.allowed[match.name], given, stage.pipe_into, f"{place}.with")
    return (
        stage if match.name == stage.tool else stage.model_copy(update={"tool": match.name}),
        after,
    )


def _params(
    found: _Findings, action: ActionSpec, given: dict[str, Any], pipe_into: str | None, place: str
) -> None:
    """Check the parameters against their schema; what a template stands in may become anything."""
    open_keys = {key for key, one in given.items() if _has_template(one)}
    if pipe_into is not None:
        open_keys.add(pipe_into)
        given = {**given, pipe_into: None}
    schema = action.parameters
    if open_keys and not _SPECIAL.isdisjoint(schema):
        return
    known: dict[str, Any] = schema.get("properties") or {}
    free = {key: (True if key in open_keys else one) for key, one in known.items()}
    relaxed = {**schema, "properties": free} if open_keys & known.keys() else schema
    _, problems, warnings = check_params(relaxed, given, place)
    found.problems += problems
    found.warnings += warnings


def _has_template(value: Any) -> bool:
    if isinstance(value, str):
        return "{{" in value
    if isinstance(value, dict):
        return any(_has_template(one) for one in value.values())
    return isinstance(value, list) and any(_has_template(one) for one in value)


def _map(found: _Findings, stage: MapStage, place: str, around: _Around) -> tuple[Stage, _Around]:
    body = stage.map
    _fits(found, "map", "list", place, around.gives)
    _name(found, body.as_, f"{place}.map.as")
    inside = _Around(around.names | {body.as_, "$"}, "unknown")
    do, _ = _line(found, body.do, f"{place}.map.do", inside)
    changed = stage.model_copy(update={"map": body.model_copy(update={"do": do})})
    return (stage if _same(do, body.do) else changed), _then(around, "a list")


def _let(found: _Findings, stage: LetStage, place: str, around: _Around) -> tuple[Stage, _Around]:
    body = stage.let
    _name(found, body.name, f"{place}.let.name")
    value, gives = _line(found, body.value, f"{place}.let.value", around)
    if gives == "nothing":
        found.add(f"{place}.let.value", "expected a stage that gives data; add a tool")
    changed = stage.model_copy(update={"let": body.model_copy(update={"value": value})})
    after = _Around(around.names | {body.name}, around.gives)
    return (stage if _same(value, body.value) else changed), after


def _same(stages: list[Stage], others: list[Stage]) -> bool:
    return all(one is other for one, other in zip(stages, others, strict=True))


def _name(found: _Findings, name: str, place: str) -> None:
    if not _NAME.fullmatch(name) or name.lower() in _TAKEN:
        found.add(
            place, "expected a name of letters, digits and _, not starting with a digit", name
        )


_NESTED: Final[dict[type[StageBase], Callable[..., tuple[Stage, _Around]]]] = {
    ToolStage: _tool,
    MapStage: _map,
    LetStage: _let,
}


# --- arguments --------------------------------------------------------------------------------------

Wrong: TypeAlias = Iterator[tuple[str, str]]
"""Keys below the stage, and what is wrong there."""


def _paths(key: str, given: str | list[str] | None) -> Wrong:
    for one in [given] if isinstance(given, str) else given or []:
        path = read_path(one)
        if isinstance(path, str):
            yield key, path


def _where(stage: WhereStage) -> Wrong:
    predicate = read_predicate(stage.where)
    if isinstance(predicate, str):
        yield "where", predicate


def _select(stage: SelectStage) -> Wrong:
    return _paths("select", stage.select)


def _sort(stage: SortStage) -> Wrong:
    keys = [stage.sort] if isinstance(stage.sort, str) else stage.sort
    return _paths("sort", [one.strip().lstrip("+-") for one in keys])


def _distinct(stage: DistinctStage) -> Wrong:
    given = stage.distinct if isinstance(stage.distinct, str) else ""
    return _paths("distinct", [given] if given.strip() else [])


def _group_by(stage: GroupByStage) -> Wrong:
    if not isinstance(stage.group_by, GroupBy):
        yield from _paths("groupBy", stage.group_by)
        return
    for key in ("by", "sum", "avg", "min", "max"):
        yield from _paths(f"groupBy.{key}", getattr(stage.group_by, key))


def _jsonpath(stage: JsonpathStage) -> Wrong:
    path = read_path(stage.jsonpath, "jsonpath")
    if isinstance(path, str):
        yield "jsonpath", path


def _grep(stage: GrepStage) -> Wrong:
    asked = stage.grep if isinstance(stage.grep, Grep) else Grep(pattern=stage.grep)
    pattern = compile_pattern(asked.pattern, ignore_case=asked.ignore_case)
    if isinstance(pattern, str):
        yield "grep", pattern


_READ: Final[dict[type[StageBase], Callable[[Any], Wrong]]] = {
    WhereStage: _where,
    SelectStage: _select,
    SortStage: _sort,
    DistinctStage: _distinct,
    GroupByStage: _group_by,
    JsonpathStage: _jsonpath,
    GrepStage: _grep,
}
