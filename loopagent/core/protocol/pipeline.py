"""Dataflow that the engine runs by itself; only the last value comes back."""

from __future__ import annotations

from typing import Any, cast

from pydantic import Field, field_validator

from loopagent.core.protocol.base import Wire


VERBS = (
    "tool",
    "map",
    "let",
    "where",
    "select",
    "sort",
    "first",
    "last",
    "count",
    "distinct",
    "flatten",
    "groupBy",
    "jsonpath",
    "lines",
    "grep",
    "head",
    "tail",
)
MAX_STAGES = 20
MAX_NESTING = 5


class AgentPipelineRequest(Wire):
    """Stages, each one object with exactly one verb; the value of the last one comes back."""

    steps: list[dict[str, Any]] = Field(min_length=1, max_length=MAX_STAGES)

    @field_validator("steps")
    @classmethod
    def _known_verbs(cls, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        problems = stage_problems(steps, "steps", MAX_NESTING)
        if problems:
            raise ValueError("; ".join(problems))
        return steps


def stage_problems(steps: list[Any], path: str, nesting: int) -> list[str]:
    """Everything that is wrong with the shape of pipeline stages, as `path: what`."""
    if nesting == 0:
        return [f"{path}: nested too deeply"]
    problems: list[str] = []
    for index, stage in enumerate(steps):
        problems += _stage(stage, f"{path}[{index}]", nesting)
    return problems


def _stage(stage: Any, path: str, nesting: int) -> list[str]:
    if not isinstance(stage, dict):
        return [f"{path}: must be an object with one verb"]
    fields = cast("dict[str, Any]", stage)
    verbs = [verb for verb in VERBS if verb in fields]
    if len(verbs) != 1:
        found = ", ".join(verbs) or ", ".join(map(str, fields)) or "nothing"
        return [f"{path}: needs exactly one verb of {', '.join(VERBS)}; came: {found}"]
    nested = NESTED.get(verbs[0])
    if nested is None:
        return []
    body = fields[verbs[0]]
    inner = cast("dict[str, Any]", body).get(nested) if isinstance(body, dict) else None
    if not isinstance(inner, list) or not inner:
        return [f"{path}.{verbs[0]}.{nested}: must be a list of stages"]
    return stage_problems(cast("list[Any]", inner), f"{path}.{verbs[0]}.{nested}", nesting - 1)


NESTED = {"map": "do", "let": "value"}
"""Verbs with stages of their own, and the key these stand under."""
