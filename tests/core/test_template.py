from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.template import fill


SCOPE: dict[str, Any] = {
    "item": {"id": 3, "email": "ann@example.org", "tags": ["a", "b"], "note": None},
    "index": 0,
    "payload": {"trap": "{{ item.email }}"},
}


def filled(template: Any, **options: Any) -> Any:
    result = fill(template, SCOPE, where="params", **options)
    assert result.problems == ()
    return result.value


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ item.email }}", "ann@example.org"),
        ("{{item.tags}}", ["a", "b"]),
        ("{{ item.id }}", 3),
        ("{{ item.note }}", None),
        ("Hi {{item.email}}, no {{index}}", "Hi ann@example.org, no 0"),
        ("{{item.id}} {{index}}", "3 0"),
        ("tags: {{ item.tags }}{{ item.note }}!", 'tags: ["a","b"]!'),
        ({"a": [{"b": "{{ item.id }}"}, 5]}, {"a": [{"b": 3}, 5]}),
        (r"\{{ item.id }}", "{{ item.id }}"),
        (r"\\{{ item.id }}", "\\3"),
        ("{{ 'a}}b' }}", "a}}b"),
        ("plain", "plain"),
        (None, None),
    ],
)
def test_only_what_stands_in_braces_is_filled(template: Any, expected: Any) -> None:
    assert filled(template) == expected
