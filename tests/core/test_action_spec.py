from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from loopagent.core.action_spec import ActionRetry, ActionSpec


def test_what_is_not_declared_read_only_counts_as_writing():
    spec = ActionSpec(name="send")
    assert (spec.effects, spec.approval, spec.repeatable) == ("write", None, False)
    assert spec.parameters == {"type": "object", "properties": {}}
    assert (spec.timeout_ms, spec.retry, spec.on_unknown) == (60_000, ActionRetry(), "report")


def test_reading_and_idempotent_calls_are_repeatable():
    assert ActionSpec(name="a", effects="read").repeatable
    assert ActionSpec(name="a", effects="external", idempotent=True).repeatable
    assert not ActionSpec(name="a", effects="irreversible").repeatable


def test_json_is_camel_case_and_comes_back_equal():
    spec = ActionSpec(name="a", retry=ActionRetry(max_attempts=3), timeout_ms=5_000, max_calls=2)
    body = spec.model_dump_json(by_alias=True)
    assert json.loads(body)["retry"] == {"maxAttempts": 3, "backoffSeconds": 1.0}
    assert {"timeoutMs", "maxCalls", "onUnknown"} <= json.loads(body).keys()
    assert ActionSpec.model_validate_json(body) == spec


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": " a"},
        {"name": "a\nb"},
        {"name": "a\x00"},
        {"name": "a" * 101},
        {"timeout_ms": 999},
        {"timeout_ms": 3_600_001},
        {"effects": "reads"},
        {"approval": "maybe"},
        {"max_calls": 0},
        {"retry": {"max_attempts": 0}},
        {"retry": {"backoff_seconds": float("inf")}},
        {"parameters": {"type": "array"}},
        {"parameters": {"type": "object", "properties": {"a": {"type": "strin"}}}},
        {"parameters": {"type": "object", "properties": {"a": {"pattern": "(?=x)"}}}},
        {"colour": "red"},
    ],
    ids=str,
)
def test_wrong_values_are_refused(wrong: dict[str, Any]):
    with pytest.raises(ValidationError):
        ActionSpec.model_validate({"name": "a", **wrong}, by_name=True)


def test_it_cannot_be_changed():
    with pytest.raises(ValidationError):
        ActionSpec(name="a").name = "b"
