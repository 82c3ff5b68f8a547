"""Pipelines: a dataflow that the engine runs by itself; only the last value comes back."""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple, cast

from pydantic import Field

from loopagent.core.flavours import FREE_LIST, SHAPE, Mark
from loopagent.core.problems import Fault
from loopagent.core.protocol.base import LIST_TEXT, Wire, decoded
from loopagent.core.protocol.stages import MAX_STAGES, ONE_VERB, Stage, verbs_of


MAX_NESTING: Final = 5
"""Deepest nesting of stages in `map` and `let`, the outermost list included."""
_TOO_DEEP: Final = f"expected at most {MAX_NESTING} levels of stages"
_PRODUCERS: Final = frozenset({"tool", "let"})
_NESTED: Final = {"map": "do", "let": "value"}


class AgentPipelineRequest(Wire):
    """A dataflow: the first stage gets data, each later one works on what the one before gave."""

    steps: Annotated[
        list[Stage],
        Field(min_length=1, max_length=MAX_STAGES),
        LIST_TEXT,
        FREE_LIST,
        Mark({SHAPE: "stages"}),
    ]
    """The stages, in order; each has exactly one verb."""

    @classmethod
    def tidy(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Check what no single stage can know: that there is data to begin with, and the depth."""
        steps = fields.get("steps")
        stages = decoded(steps) if isinstance(steps, str) else steps
        if not isinstance(stages, list) or not stages:
            return fields
        given: list[Any] = stages
        first, *others = given
        problem = _first_fault(first) or (_TOO_DEEP if _depth(first) > MAX_NESTING else "")
        faulty = [Fault(problem)] if problem else [first]
        faulty += [Fault(_TOO_DEEP) if _depth(one) > MAX_NESTING else one for one in others]
        return {**fields, "steps": faulty}


class StageProblem(NamedTuple):
    """One thing that is wrong with a pipeline: where, and what."""

    path: str
    message: str


def pipeline_problems(request: AgentPipelineRequest | dict[str, Any]) -> list[StageProblem]:
    """Check the build of a pipeline: counts, exactly one known verb a stage, nested stages, depth.

    Args:
        request: A pipeline, also as JSON that was not validated.

    Returns:
        All problems, in order; paths begin with `steps`.
    """
    plain = request.model_dump(by_alias=True) if isinstance(request, Wire) else request
    steps = plain.get("steps")
    problems = _list_problems(steps, "steps", 1)
    if isinstance(steps, list) and steps:
        stages: list[Any] = steps
        missing = _first_fault(stages[0])
        problems += [StageProblem("steps[0]", missing)] if missing else []
    return problems


def _list_problems(stages: object, path: str, level: int) -> list[StageProblem]:
    found = decoded(stages) if isinstance(stages, str) else stages
    if not isinstance(found, list):
        return [StageProblem(path, f"expected a list of 1 to {MAX_STAGES} stages")]
    listed: list[Any] = found
    if level > MAX_NESTING:
        return [StageProblem(path, _TOO_DEEP)]
    problems: list[StageProblem] = []
    if not 1 <= len(listed) <= MAX_STAGES:
        message = f"expected 1 to {MAX_STAGES} stages, got {len(listed)}"
        problems.append(StageProblem(path, message))
    for index, stage in enumerate(listed):
        problems += _stage_problems(stage, f"{path}[{index}]", level)
    return problems


def _stage_problems(stage: object, path: str, level: int) -> list[StageProblem]:
    fields = cast("dict[str, Any]", stage) if isinstance(stage, dict) else {}
    verbs = verbs_of(fields)
    if len(verbs) != 1:
        came = ", ".join(verbs or map(str, fields)) or "none"
        return [StageProblem(path, f"expected {ONE_VERB}, got {came}")]
    verb = verbs[0]
    if verb not in _NESTED:
        return []
    inner = fields[verb].get(_NESTED[verb]) if isinstance(fields[verb], dict) else None
    return _list_problems(inner, f"{path}.{verb}.{_NESTED[verb]}", level + 1)


def _first_fault(stage: object) -> str:
    verbs = verbs_of(cast("dict[str, Any]", stage)) if isinstance(stage, dict) else []
    if len(verbs) != 1 or verbs[0] in _PRODUCERS:
        return ""
    return f"expected tool first, there is no data yet; got {verbs[0]}"


def _depth(stage: object) -> int:
    """Levels of stages in a stage, itself included; counting stops just above the limit."""
    level, todo = 1, [stage]
    while level <= MAX_NESTING:
        todo = [inner for one in todo for inner in _inner(one)]
        if not todo:
            return level
        level += 1
    return level


def _inner(stage: object) -> list[Any]:
    if not isinstance(stage, dict):
        return []
    found: list[Any] = []
    for verb, key in _NESTED.items():
        body = cast("dict[str, Any]", stage).get(verb)
        stages = cast("dict[str, Any]", body).get(key) if isinstance(body, dict) else None
        stages = decoded(stages) if isinstance(stages, str) else stages
        listed: list[Any] = stages if isinstance(stages, list) else []
        found += listed
    return found
