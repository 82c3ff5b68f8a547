from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.final_check import payload_problems


@pytest.mark.parametrize("payload", [{}, None, 0, "", False, []])
def test_an_empty_payload_is_checked_like_any_other(payload: Any) -> None:
    problems = payload_problems({"type": "object", "required": ["a", "b"]}, payload)
    assert problems
    assert all(one.path.startswith("payload") for one in problems)


def test_all_that_is_wrong_with_a_payload_is_said_at_once() -> None:
    schema = {"type": "object", "required": ["a", "b"], "properties": {"c": {"type": "integer"}}}
    found = {one.path for one in payload_problems(schema, {"c": "x"})}
    assert found == {"payload.a", "payload.b", "payload.c"}
    assert payload_problems(schema, {"a": 1, "b": None, "c": 3}) == []
