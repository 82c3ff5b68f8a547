from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.expression import Expression, Failure, Value, parse


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


def value(source: str) -> Any:
    result = read(source).evaluate(SCOPE)
    assert isinstance(result, Value), result
    return result.value


def failure(source: str) -> Failure:
    expression = parse(source)
    result = expression if isinstance(expression, Failure) else expression.evaluate(SCOPE)
    assert isinstance(result, Failure), result
    return result


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("payload.status != 'done' && size(payload.items) < 50 && payload.count + 1 <= 5", True),
        ("payload.users[0].name", "Ann"),
        ("payload['users'][-1]['name']", "Bob"),
        ("payload.users[payload.count - 1].name", "Bob"),
        ("payload.keys['odd key']", 1),
        ("payload.keys[item.id]", "seven"),
        ("payload.items.length", 3),
        ("payload.status.length == 4", True),
        ("$[1]", 20),
        ("größe * 2", 6),
        ("payload.null", None),
        ("  1  ", 1),
        ("(1)", 1),
        ("[1, 'a', [true]]", [1, "a", [True]]),
        ('\'it\\\'s\' + " \\"q\\" \\u00e9\\n"', 'it\'s "q" é\n'),
        ("0x1F", 31),
        ("1.5e3", 1500.0),
    ],
)
def test_values_paths_and_literals(source: str, expected: Any) -> None:
    assert value(source) == expected
