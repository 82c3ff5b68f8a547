"""Parameters that are taken as they are come out as the fitter and the validator would give them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.flat_params import fits_as_it_is
from loopagent.core.params import check_params
from tests.core.test_reply_properties import DATA


NAMES = st.sampled_from(["a", "b", "c"])
VALUES = (
    st.sampled_from(
        [None, True, "1", "x", "é", "\ud800", "true", 1, 0, -0.0, 1.0, 2.5, 2**53, 10**30, 1e300]
    )
    | DATA
)
KINDS = st.sampled_from(
    ["string", "integer", "number", "boolean", "null", "object", "array", ["string", "null"]]
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "type": KINDS,
        "title": st.just("T"),
        "default": VALUES,
        "enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=json.dumps),
        "minimum": st.just(1),
        "maxLength": st.just(1),
    },
)
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={
        "properties": st.dictionaries(NAMES, PARTS | st.booleans(), max_size=3),
        "required": st.lists(NAMES, unique=True, max_size=2),
        "additionalProperties": st.booleans() | PARTS,
        "description": st.just("D"),
        "maxProperties": st.just(1),
    },
)


@given(SCHEMAS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_what_fits_as_it_is_would_come_out_the_same(
    schema: dict[str, Any], params: dict[str, Any]
) -> None:
    # One more keyword that says nothing to this value sends it the longer way.
    full = {**schema, "minProperties": 0}
    assert not fits_as_it_is(full)(params)
    if fits_as_it_is(schema)(params):
        longer = check_params(full, params)
        assert repr(check_params(schema, params)) == repr(longer) == repr((params, [], []))


SIMPLE = {
    "type": "object",
    "properties": {
        "word": {"type": "string", "description": "W"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "sure": {"type": "boolean"},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "size": {"type": "integer", "default": 5},
        "odd": {"type": "array"},
    },
    "required": ["word"],
}


@pytest.mark.parametrize(
    ("params", "sure"),
    [
        ({"word": "x", "count": 1, "share": 0.5, "sure": False, "mode": "a", "size": 1}, True),
        ({"word": "x", "share": 1, "size": 1}, True),
        ({"word": "x"}, False),
        ({"size": 1}, False),
        ({"word": "x", "size": 1, "count": True}, False),
        ({"word": "x", "size": 1, "count": 1.0}, False),
        ({"word": "x", "size": 1, "share": float("nan")}, False),
        ({"word": "x", "size": 1, "mode": "c"}, False),
        ({"word": "x", "size": 1, "odd": []}, False),
        ({"word": "x", "size": 1, "more": 1}, False),
        ({"word": "ü", "size": 1}, False),
    ],
)
def test_only_what_is_plainly_right_is_taken_as_it_is(params: dict[str, Any], sure: bool) -> None:
    assert fits_as_it_is(SIMPLE)(params) is sure


def test_what_is_taken_as_it_is_comes_out_as_an_object_of_its_own() -> None:
    params = {"word": "x", "size": 1}
    ready, problems, warnings = check_params(SIMPLE, params)
    assert (ready, problems, warnings) == (params, [], [])
    assert ready is not params


def test_a_wrong_schema_lets_nothing_through() -> None:
    assert not fits_as_it_is({"type": "object", "properties": {"a": {"type": "strung"}}})({})
    assert not fits_as_it_is({"type": "object", "required": "a"})({})
    none = {"type": "object", "properties": {"a": {"type": "string", "enum": []}}}
    assert not fits_as_it_is(none)({"a": "b"})
