"""Types as prompts show them: short, unambiguous, the same bytes every time."""

from __future__ import annotations

from loopagent.core.envelope import LoopAgentResponse
from loopagent.core.protocol.stages import GroupByStage, MapStage
from loopagent.core.shapes import model_shape, schema_shape
from loopagent.core.steps import STEP_TYPES


def test_a_step_is_one_short_line() -> None:
    assert model_shape(STEP_TYPES["Actions"]) == (
        '{type: "Actions", actions: {name: string, params?: object}[]}'
    )
    assert model_shape(STEP_TYPES["Sub-Agent"]) == (
        '{type: "Sub-Agent", subAgents: {name: string, message: string, terminateAfter?: boolean, '
        "templateParameters?: object, resumeRunId?: string}[]}"
    )


def test_only_what_is_asked_for_and_with_notes() -> None:
    assert model_shape(LoopAgentResponse, only=["message", "taskComplete"], notes=True) == (
        "{\n  message?: string; // Text for the person, under 100 words.\n"
        "  taskComplete?: boolean; // True ends the run.\n}"
    )


def test_lists_of_unions_have_parentheses_and_recursion_ends() -> None:
    pipeline = model_shape(STEP_TYPES["Pipeline"])
    assert pipeline == '{type: "Pipeline", pipeline: {steps: stages}}'
    assert "do: stages" in model_shape(MapStage)
    assert "by: string|string[]" in model_shape(GroupByStage)
    payload = {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}
    assert schema_shape(payload) == "(string|integer)[]"
    tree = {
        "$ref": "#/$defs/T",
        "$defs": {"T": {"type": "object", "properties": {"t": {"$ref": "#/$defs/T"}}}},
    }
    assert schema_shape(tree).count("…") == 1


def test_parameters_show_what_they_mean() -> None:
    schema = {
        "properties": {
            "unit": {"enum": ["m", "km"], "description": "Unit\nof length."},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
            "any": {},
            "size": {"type": ["integer", "null"], "default": 3},
        },
        "required": ["unit"],
    }
    assert schema_shape(schema) == (
        '{unit: "m"|"km" /* Unit of length. */, tags?: ("a"|"b")[], any?: any, size?: integer|null = 3}'
    )
    assert schema_shape({"type": "object"}) == "{}"
