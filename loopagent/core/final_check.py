"""The payload against the agent's schema, looked at when the model claims to be done."""

from __future__ import annotations

from typing import Any

from loopagent.core.problems import Problem
from loopagent.core.schema_check import schema_problems


def payload_problems(schema: dict[str, Any], payload: Any) -> list[Problem]:
    """Everything that keeps the payload from satisfying the schema; an empty payload is looked at like any other."""
    return schema_problems(schema, payload, "payload")
