"""The quick way to write JSON says the same as the standard one, whatever the value."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.json_values import compact_json


TEXTS = st.text() | st.text(st.characters(categories=["Cs", "Cc", "Lu"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)  # NaN is like itself, true is not like 1


@given(VALUES)
def test_it_reads_back_as_the_standard_form_does(value: Any) -> None:
    text = compact_json(value)
    standard = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert same(json.loads(text), json.loads(standard))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | TEXTS, lambda one: st.lists(one, max_size=3)
    )
)
def test_without_fractions_it_is_the_same_to_the_character(value: Any) -> None:
    assert compact_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_deep_nesting() -> None:
    value: list[Any] = []
    for _ in range(400):
        value = [value]
    assert compact_json(value) == "[" * 401 + "]" * 401
