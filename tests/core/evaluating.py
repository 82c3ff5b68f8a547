"""Expressions over a scope that has a bit of everything."""

from __future__ import annotations

from typing import Any

from loopagent.core.expression import Expression, ExpressionLimits, Failure, Value, parse


SCOPE: dict[str, Any] = {
    "payload": {
        "status": "open",
        "items": [1, 2, 3],
        "count": 2,
        "big": 2**60 + 1,
        "null": None,
        "empty": [],
        "keys": {"odd key": 1, "7": "seven"},
        "users": [{"name": "Ann", "tags": ["a", "b"]}, {"name": "Bob"}],
    },
    "item": {"id": 7, "email": "ann@example.org"},
    "attempt": {"attemptNumber": 1},
    "last": None,
    "$": [10, 20],
    "größe": 3,
}


def read(source: str) -> Expression:
    expression = parse(source)
    assert isinstance(expression, Expression), expression
    return expression


def value(source: str, scope: Any = SCOPE) -> Any:
    result = read(source).evaluate(scope)
    assert isinstance(result, Value), result
    return result.value


def outcome(
    source: str, scope: Any = SCOPE, limits: ExpressionLimits | None = None
) -> Value | Failure:
    expression = parse(source, limits or ExpressionLimits())
    return expression if isinstance(expression, Failure) else expression.evaluate(scope)


def failure(source: str, scope: Any = SCOPE, limits: ExpressionLimits | None = None) -> str:
    result = outcome(source, scope, limits)
    assert isinstance(result, Failure), result
    return result.message
