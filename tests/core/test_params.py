from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.params import check_params
from loopagent.core.problems import Problem
from loopagent.core.schema_check import checked_levels, schema_problem, schema_problems, too_deep


ROW = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "tag": {"type": "string", "default": "new"}},
    "required": ["id"],
    "additionalProperties": False,
}
TABLE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
        "owner": {"anyOf": [{"$ref": "#/$defs/Row"}, {"type": "null"}], "default": None},
        "template": {"type": "string"},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}, ROW]},
    },
    "required": ["rows"],
    "additionalProperties": False,
    "$defs": {"Row": ROW},
}


def of(**properties: Any) -> dict[str, Any]:
    """An object schema whose properties are all optional, unless given as `name_`: then required."""
    named = {name.rstrip("_"): schema for name, schema in properties.items()}
    required = [name.rstrip("_") for name in properties if name.endswith("_")]
    return {
        "type": "object",
        "properties": named,
        "required": required,
        "additionalProperties": False,
    }


INTEGER = {"type": "integer"}
TEXT = {"type": "string"}


@pytest.mark.parametrize("nothing", [None, "", "  ", {}, "{}"])
def test_all_forms_of_nothing_are_an_empty_object(nothing):
    assert check_params(of(), nothing)[:2] == ({}, [])


def test_optional_null_is_left_out_and_required_null_is_named():
    schema = of(name_=TEXT, namespace=TEXT)
    assert check_params(schema, {"name": "a", "namespace": None}) == ({"name": "a"}, [], [])
    ready, problems, _ = check_params(schema, {"name": None})
    assert ready == {"name": None}
    assert problems == [Problem("params.name", "must be a string", "null")]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["string", "null"]}, {"x": None}),  # null says something of its own here
        ({"type": ["string", "null"], "default": "a"}, {"x": None}),
        ({"type": ["string", "null"], "default": None}, {}),
        ({"anyOf": [TEXT, {"type": "null"}], "default": None}, {}),
        ({}, {"x": None}),
        ({"type": "string", "default": "a"}, {"x": "a"}),
    ],
)
def test_null_for_an_optional_parameter(schema, expected):
    assert check_params(of(x=schema), {"x": None}) == (expected, [], [])


def test_defaults_are_filled_in_also_inside_objects_and_are_not_shared():
    schema = of(limit={"type": "integer", "default": 5}, tags={"type": "array", "default": []})
    first, problems, _ = check_params(schema, {})
    first["tags"].append("changed")
    assert problems == []
    assert check_params(schema, {})[0] == {"limit": 5, "tags": []}
    rows = check_params(TABLE, {"rows": [{"id": 1}, {"id": 2, "tag": "old"}]})
    assert rows == ({"rows": [{"id": 1, "tag": "new"}, {"id": 2, "tag": "old"}]}, [], [])


def test_the_given_value_is_not_changed():
    given_rows = {"rows": [{"id": "1"}], "owner": None}
    before = json.dumps(given_rows)
    check_params(TABLE, given_rows)
    assert json.dumps(given_rows) == before


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (INTEGER, "7", 7),
        (INTEGER, " 7 ", 7),
        ({"type": "number"}, "0.5", 0.5),
        ({"type": "boolean"}, "False", False),
        ({"type": "boolean"}, "true", True),
        ({"type": "array", "items": INTEGER}, "[1, 2]", [1, 2]),
        ({"type": "array", "items": INTEGER}, '["1", 2]', [1, 2]),
        ({"type": "object"}, '{"a": "1"}', {"a": "1"}),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "3", 3),
        ({"enum": [1, 2]}, "2", 2),
        ({"allOf": [INTEGER]}, "2", 2),
        ({"$ref": "#/properties/y"}, "2", 2),
    ],
)
def test_text_is_decoded_where_the_schema_wants_something_else(schema, text, value):
    ready, problems, warnings = check_params(of(x=schema, y=INTEGER), {"x": text})
    assert (ready, problems) == ({"x": value}, [])
    assert warnings[0].startswith("params.x")


@pytest.mark.parametrize(
    "schema",
    [
        TEXT,
        {},
        {"anyOf": [{"type": "object"}, TEXT]},
        {"type": ["string", "integer"]},
        {"enum": ["7", 7]},
    ],
)
@pytest.mark.parametrize("text", ["7", '{"id":1}', "[1]", "true", "null", ' {"a" : 1}'])
def test_a_declared_text_stays_byte_for_byte(schema, text):
    ready, _, warnings = check_params(of(x=schema), {"x": text})
    assert (ready, warnings) == ({"x": text}, [])


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        (INTEGER, "seven", "must be an integer"),
        (INTEGER, "7.5", "must be an integer"),
        (INTEGER, "NaN", "must be an integer"),
        ({"type": "number"}, "1e999", "must be a number"),
        ({"type": "number"}, "-Infinity", "must be a number"),
        ({"type": "object"}, "[1]", "must be an object"),
        ({"type": "array"}, '"[1]"', "must be an array"),
        ({"type": "array"}, "[" * 5000, "must be an array"),
        ({"type": ["integer", "null"]}, "null", "must be an integer or null"),
        ({"type": "boolean"}, "yes", "must be a boolean"),
    ],
)
def test_text_that_does_not_hold_the_type_is_a_problem_that_names_the_place(schema, text, expected):
    ready, problems, _ = check_params(of(x=schema), {"x": text})
    assert ready == {"x": text}
    assert [(one.path, one.message) for one in problems] == [("params.x", expected)]


def test_nested_values_as_text_and_a_declared_text_beside_them():
    came = {"rows": ['{"id":1}', '{"id":2}'], "template": '{"id":1}'}
    ready, problems, warnings = check_params(TABLE, came)
    assert problems == []
    assert ready["rows"] == [{"id": 1, "tag": "new"}, {"id": 2, "tag": "new"}]
    assert ready["template"] == '{"id":1}'
    assert [one.partition(":")[0] for one in warnings] == ["params.rows[0]", "params.rows[1]"]


def test_items_by_position():
    ready, problems, _ = check_params(TABLE, {"rows": [], "pair": ["1", '{"id": "2"}', "rest"]})
    assert problems == []
    assert ready["pair"] == [1, {"id": 2, "tag": "new"}, "rest"]


def test_all_problems_come_together_with_place_expectation_and_value():
    schema = of(
        limit_={"type": "integer", "minimum": 1, "maximum": 50}, mode={"enum": ["fast", "exact"]}
    )
    _, problems, _ = check_params(schema, {"limit": 0, "mode": "slow", "limt": 3, "zzz": 1})
    assert problems == [
        Problem("params.limit", "must be at least 1", "0"),
        Problem("params.mode", 'must be one of "fast", "exact"', '"slow"'),
        Problem(
            "params.limt", "is not known here; did you mean limit? known: limit, mode", '"limt"'
        ),
        Problem("params.zzz", "is not known here; known: limit, mode", '"zzz"'),
    ]
    _, problems, _ = check_params(schema, {})
    assert problems == [Problem("params.limit", "is required and missing")]


def test_unknown_names_inside_are_compared_with_the_names_there():
    _, problems, _ = check_params(TABLE, {"rows": [{"id": 1, "tagg": "x"}], "owner": {"idd": 1}})
    assert {one.path: one.message for one in problems} == {
        "params.owner.id": "is required and missing",
        "params.owner.idd": "is not known here; did you mean id? known: id, tag",
        "params.rows[0].tagg": "is not known here; did you mean tag? known: id, tag",
    }


def test_additional_parameters_are_kept_where_the_schema_allows_them():
    schema = {"type": "object", "additionalProperties": INTEGER}
    assert check_params(schema, {"a": "1"})[:2] == ({"a": 1}, [])
    assert check_params({"type": "object"}, {"a": "1"})[:2] == ({"a": "1"}, [])


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"const": 3}, 4, "must be 3"),
        ({"maximum": 3}, 4, "must be at most 3"),
        ({"exclusiveMinimum": 3}, 3, "must be more than 3"),
        ({"exclusiveMaximum": 3}, 3, "must be less than 3"),
        ({"multipleOf": 2}, 3, "must be a multiple of 2"),
        ({"minLength": 2}, "a", "must have at least 2 characters"),
        ({"maxLength": 2}, "abc", "must have at most 2 characters"),
        ({"pattern": "^a+$"}, "b", "must match the pattern ^a+$"),
        ({"minItems": 1}, [], "must have at least 1 items"),
        ({"maxItems": 1}, [1, 2], "must have at most 1 items"),
        ({"uniqueItems": True}, [1, 1], "must not hold the same item twice"),
        ({"minProperties": 1}, {}, "must have at least 1 properties"),
        ({"maxProperties": 0}, {"a": 1}, "must have at most 0 properties"),
        ({"not": {"type": "integer"}}, 1, '{"type":"integer"} is not allowed for 1'),
        ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1, None),
    ],
)
def test_every_kind_of_complaint_says_what_is_expected(schema, value, message):
    problems = schema_problems({"properties": {"x": schema}}, {"x": value}, "params")
    assert len(problems) == 1
    assert problems[0].path == "params.x"
    assert message is None or problems[0].message == message


CAT = {
    "type": "object",
    "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer", "default": 9}},
    "required": ["kind"],
}
DOG = {
    "type": "object",
    "properties": {"kind": {"const": "dog"}, "lives": {"type": "string"}},
    "required": ["kind"],
}
PETS = {
    **of(pet={"oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}),
    "$defs": {"Cat": CAT, "Dog": DOG},
}


@pytest.mark.parametrize(
    ("pet", "ready"),
    [
        ({"kind": "cat"}, {"kind": "cat", "lives": 9}),
        ({"kind": "cat", "lives": "8"}, {"kind": "cat", "lives": 8}),
        ({"kind": "dog", "lives": "8"}, {"kind": "dog", "lives": "8"}),
        ('{"kind": "dog"}', {"kind": "dog"}),
    ],
)
def test_the_alternative_is_chosen_by_its_constant(pet, ready):
    assert check_params(PETS, {"pet": pet})[:2] == ({"pet": ready}, [])


def test_no_alternative_fits():
    _, problems, _ = check_params(PETS, {"pet": {"kind": "cow"}})
    wanted = '(kind) must be "cat" or (kind) must be "dog"'
    assert problems == [Problem("params.pet", wanted, '{"kind": "cow"}')]
    _, problems, _ = check_params(PETS, {"pet": 3})
    assert problems == [Problem("params.pet", "must be an object", "3")]


def test_the_alternative_is_the_first_that_is_satisfied_when_nothing_else_tells():
    by_name = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
    by_id = {"type": "object", "properties": {"id": INTEGER}, "required": ["id"]}
    schema = of(who={"anyOf": [by_name, by_id]})
    ready, problems, warnings = check_params(schema, {"who": {"id": "3"}})
    assert (ready, problems, len(warnings)) == ({"who": {"id": 3}}, [], 1)
    assert check_params(schema, {"who": {"other": "3"}})[0] == {"who": {"other": "3"}}


def test_an_alternative_that_refers_to_other_places_than_definitions_is_only_checked():
    other = {"type": "object", "properties": {"n": {"$ref": "#/properties/n"}}, "required": ["n"]}
    schema = of(n=INTEGER, x={"anyOf": [other, {"type": "object", "required": ["m"]}]})
    assert check_params(schema, {"x": {"n": 1}})[:2] == ({"x": {"n": 1}}, [])


@pytest.mark.parametrize("params", [[], 3, "[]", "text", True])
def test_parameters_must_be_an_object(params):
    ready, problems, _ = check_params(of(), params)
    assert ready == {}
    assert problems[0].path == "params"
    assert "object" in problems[0].message


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("levels", [101, 3_000, 50_000])
def test_deep_values_are_refused_before_they_reach_native_code(levels):
    _, problems, _ = check_params({"type": "object"}, deep(levels))
    assert "levels deep" in problems[0].message
    assert schema_problems({"type": "object"}, deep(50_000), "payload")[0].path == "payload"
    recursive = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    assert check_params(recursive, deep(99))[1]
    assert too_deep([], 0)
    assert not too_deep(1, 0)


def test_deep_values_inside_text_are_refused():
    _, problems, _ = check_params(of(x={"type": "array"}), {"x": "[" * 300 + "]" * 300})
    assert [one.path for one in problems] == ["params.x"]


NODE = {
    "Node": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]},
    "A": {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Node"}, "a": INTEGER},
        "required": ["a"],
    },
    "B": {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Node"}, "b": INTEGER},
        "required": ["b"],
    },
}
CHAIN = {**of(node={"$ref": "#/$defs/Node"}), "$defs": NODE}


@pytest.mark.parametrize("last", [{"b": 1}, {"c": 1}])
def test_nested_alternatives_take_bounded_time(last):
    node: Any = last
    for _ in range(40):
        node = {"b": 1, "next": node}
    start = time.perf_counter()
    _, problems, _ = check_params(CHAIN, {"node": node})
    assert time.perf_counter() - start < 5
    assert len(problems) == (0 if last == {"b": 1} else 1)


def test_faults_of_nested_alternatives_are_listed_as_deep_as_that_is_quick():
    assert checked_levels(CHAIN) == 9
    assert checked_levels(TABLE) == checked_levels(PETS) > 100
    self_referring = of(any={"anyOf": [{"$ref": "#"}, {"type": "object"}, {"type": "object"}]})
    assert checked_levels(self_referring) == 6
    _, problems, _ = check_params(CHAIN, {"node": {"b": 1, "next": {"c": 1}}})
    assert "too deeply" not in problems[0].message


@pytest.mark.parametrize("value", [{}, [], "2", 1, {"x": {}}])
def test_a_schema_that_refers_only_to_itself_ends(value):
    loop = {**of(x={"$ref": "#/$defs/L"}), "$defs": {"L": {"$ref": "#/$defs/L"}}}
    assert schema_problem(loop) is not None or check_params(loop, {"x": value})[0] == {"x": value}


def test_lists_as_alternatives():
    numbers, rows = {"type": "array", "items": INTEGER}, {"type": "array", "items": ROW}
    schema = of(x={"anyOf": [numbers, rows]})
    assert check_params(schema, {"x": ["1"]})[:2] == ({"x": [1]}, [])
    assert check_params(schema, {"x": ['{"id": 1}']})[:2] == ({"x": [{"id": 1, "tag": "new"}]}, [])


def test_nothing_is_known_where_no_property_is_declared():
    closed = {"type": "object", "additionalProperties": False}
    _, problems, _ = check_params({**closed, "properties": {}}, {"a": 1})
    assert problems == [Problem("params.a", "is not known here; known: none", '"a"')]
    _, problems, _ = check_params(of(x=closed, y=False), {"x": {"a": 1}, "y": 2})
    assert problems == [
        Problem("params.x", "must have no properties", "1"),
        Problem("params.y", "must not be given", "2"),
    ]


def test_a_name_that_no_part_of_the_schema_evaluates_is_unknown():
    parts = {"allOf": [{"properties": {"a": INTEGER}}], "unevaluatedProperties": False}
    _, problems, _ = check_params({"type": "object", **parts}, {"a": 1, "b": 2})
    assert problems == [Problem("params.b", "is not known here; known: none", '"b"')]


def test_all_parts_of_a_schema_are_fitted():
    both = {
        "allOf": [
            of(a=INTEGER) | {"additionalProperties": True},
            {"properties": {"b": {"default": 1}}},
        ]
    }
    assert check_params(of(x=both), {"x": {"a": "2"}})[:2] == ({"x": {"a": 2, "b": 1}}, [])
    untyped = {"anyOf": [{"properties": {"a": INTEGER}, "required": ["a"]}, {"type": "array"}]}
    assert check_params(of(x=untyped), {"x": {"a": "2"}})[:2] == ({"x": {"a": 2}}, [])


def test_alternatives_beyond_the_trial_limit_are_only_checked():
    options = [
        {"type": "object", "properties": {"n": INTEGER}, "required": [f"k{i}"]} for i in range(2)
    ]
    schema = of(xs={"type": "array", "items": {"anyOf": options}})
    ready, problems, _ = check_params(schema, {"xs": [{"n": "1", "k1": 0}] * 1_500})
    assert ready["xs"][0] == {"n": 1, "k1": 0}
    assert ready["xs"][-1] == {"n": "1", "k1": 0}
    assert len(problems) == 21


def test_many_problems_are_cut_and_said_to_be_cut():
    _, problems, _ = check_params(TABLE, {"rows": [{"id": "x"}] * 100})
    assert len(problems) == 21
    assert problems[-1] == Problem("params", "has more problems than are listed here")


def test_long_values_and_messages_are_cut():
    schema = of(x={"enum": ["y" * 1000]})
    _, (problem,), _ = check_params(schema, {"x": "z" * 1000})
    assert len(problem.got) < 100
    assert len(problem.message) < 400


@pytest.mark.parametrize("value", ["\ud800", object(), {1: 2}, ["\ud800"]])
def test_values_that_are_no_json_are_problems(value):
    problems = schema_problems({"properties": {"x": INTEGER}}, {"x": value}, "params")
    assert problems[0].path.startswith("params")
    problems = schema_problems(
        {"properties": {"x": {"uniqueItems": True}}}, {"x": [value, value]}, "p"
    )
    assert problems[0].path.startswith("p")


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "objekt"}, "type: "),
        ({"properties": {"a": {"pattern": "(?=a)"}}}, "properties.a.pattern"),  # needs backtracking
        ({"$ref": "http://127.0.0.1:9/schema"}, "127.0.0.1"),
        ({"$ref": "#/$defs/none"}, "none"),
        ({"properties": 3}, "properties"),
        ({"enum": [object()]}, "object"),
    ],
)
def test_a_wrong_schema_is_a_problem_and_nothing_is_fetched(schema, said):
    assert said in (schema_problem(schema) or "")
    ready, problems, _ = check_params(schema, {"a": "b"})
    assert ready == {}
    assert "schema itself" in problems[0].message
    assert schema_problems(schema, {}, "payload")[0].message.startswith("cannot be checked")
    assert schema_problem({"type": "object"}) is None


def test_patterns_take_linear_time():
    schema = of(x={"type": "string", "pattern": "^(a+)+$"})
    start = time.perf_counter()
    _, problems, _ = check_params(schema, {"x": "a" * 50_000 + "b"})
    assert time.perf_counter() - start < 1
    assert problems[0].path == "params.x"


def test_equal_schemas_share_their_compiled_form_and_many_schemas_are_bounded():
    for number in range(1_100):
        assert check_params(of(x={"type": "integer", "maximum": number}), {"x": number})[1] == []
    assert check_params(json.loads(json.dumps(TABLE)), {"rows": []}) == ({"rows": []}, [], [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.sampled_from([TABLE, PETS, CHAIN, of(x_=INTEGER), {"type": "object"}]))
def test_nothing_makes_it_raise_and_what_is_accepted_satisfies_the_schema(value, schema):
    ready, problems, warnings = check_params(schema, value)
    assert isinstance(ready, dict)
    assert all(isinstance(one, str) for one in warnings)
    if not problems:
        assert schema_problems(schema, ready, "params") == []
        assert check_params(schema, ready) == (ready, [], [])  # a second look changes nothing


@given(st.dictionaries(st.sampled_from(["rows", "owner", "template", "pair"]), JSON | st.text()))
def test_known_names_with_any_values_never_raise(value):
    ready, problems, _ = check_params(TABLE, value)
    assert problems or "rows" in ready
