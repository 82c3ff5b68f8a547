"""Parameters as fields and back: what is typed becomes what the schema wants, or a complaint at its field."""

from __future__ import annotations

from typing import Any

from loopagent.web.params_form import params_form, params_of
from loopagent.web.questions import questions_of


SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["parcel", "count"],
    "additionalProperties": False,
    "properties": {
        "parcel": {"type": "string", "title": "Parcel", "pattern": "^P-", "examples": ["P-7"]},
        "count": {"type": "integer", "minimum": 1, "default": 2},
        "fast": {"type": "boolean"},
        "size": {"enum": ["s", "m", 3]},
        "day": {"type": ["string", "null"], "format": "date"},
        "note": {"type": "string"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "where": {"$ref": "#/$defs/place"},
    },
    "$defs": {"place": {"type": "object", "properties": {"x": {"type": "number"}}}},
}
UI = {"note": {"ui:widget": "textarea", "ui:help": "For the driver"}}


def form(**given: Any) -> dict[str, Any]:
    return params_form(SCHEMA, UI, given)


def typed(**fields: str | list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    sent = {f"q.{name}": [one] if isinstance(one, str) else one for name, one in fields.items()}
    return params_of(SCHEMA, form(), sent)


def test_every_parameter_has_a_fitting_field() -> None:
    drawn = {one.id: one for one in questions_of(form())}
    assert {name: one.widget for name, one in drawn.items()} == {
        "parcel": "input",
        "count": "number",
        "fast": "dropdown",
        "size": "dropdown",
        "day": "input",
        "note": "textarea",
        "tags": "choices",
        "where": "textarea",
    }
    assert drawn["parcel"].label == "Parcel (parcel)"
    assert drawn["day"].input_type == "date"
    assert drawn["note"].help == "For the driver."
    assert drawn["where"].help == "JSON."
    assert drawn["count"].values == ["2"]


def test_what_is_typed_gets_its_type_and_blanks_are_left_out() -> None:
    params, errors = typed(
        parcel="P-1", count="5", fast="true", size="3", day="", tags=['"a"'], where='{"x": 1}'
    )
    assert errors == {}
    assert params == {
        "parcel": "P-1",
        "count": 5,
        "fast": True,
        "size": 3,
        "tags": ["a"],
        "where": {"x": 1},
    }


def test_complaints_stand_at_their_fields() -> None:
    _, errors = typed(parcel="7", count="many")
    assert errors.keys() == {"parcel", "count"}
    _, errors = typed(parcel="P-1", count="1", where="{")
    assert "no JSON" in errors["where"]
    _, errors = typed(count="1")
    assert "missing" in errors["parcel"]


def test_all_as_json() -> None:
    sent = {"params": ['{"parcel": "P-2", "count": 1}'], "as_json": ["yes"], "q.parcel": ["x"]}
    assert params_of(SCHEMA, form(), sent) == ({"parcel": "P-2", "count": 1}, {})
    for wrong in ("{", "[]", '{"parcel": "P-2", "count": 1, "other": 1}'):
        _, errors = params_of(SCHEMA, form(), {**sent, "params": [wrong]})
        assert errors[""], wrong


def test_given_values_fill_the_form_in() -> None:
    drawn = {one.id: one for one in questions_of(form(where={"x": 2}, size=3, fast=False))}
    assert drawn["where"].values == ['{\n  "x": 2\n}']
    assert drawn["size"].values == ["3"]
    assert drawn["fast"].values == ["false"]
