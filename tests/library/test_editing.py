"""The form of an action: it shows what the text says, and what is typed into it changes just that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent.actions.reading import read_actions
from loopagent.library.editing.changing import Changed, changed, form_of
from loopagent.library.editing.fields import ABSENT, Field, from_snippet, holding, meant, snippet
from loopagent.library.editing.form import Rows, each_field, parts_of, place
from loopagent.library.editing.splicing import read_text, same
from loopagent.library.editing.writing import below
from tests.library.test_splicing import OBJECTS, VALUES, lines_changed


DOCS = Path(__file__).parents[2] / "docs" / "actions.md"
TEXT = re.findall(r"```yaml\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)[0]
PIPELINE = """\
apiVersion: loopagent/v1
kind: Action
name: orders.both
description: Two calls.
effects: read
run:
  kind: pipeline
  steps:
    - id: first   # before all
      action: orders.get
      with: {id: {from: params.id}}
    - {id: second, action: orders.list}
"""


def sent(text: str, **typed: str) -> dict[str, list[str]]:
    """What a browser sends when these fields were typed into; `__` is a dot."""
    form = form_of(text)
    found = {one.name: [one.shown] for one in every(text)}
    assert not form.problem
    return found | {name.replace("__", "."): [value] for name, value in typed.items()}


def every(text: str) -> list[Field]:
    """All fields of a text's form."""
    form = form_of(text)
    return [*each_field(parts_of(form.data)), *form.designer.fields]


def typing(text: str, do: str = "", **typed: str) -> Changed:
    return changed(text, text, sent(text, **typed), do)


def difference(after: Changed, before: str = TEXT) -> tuple[list[str], list[str]]:
    assert (after.errors, after.problem) == ({}, "")
    return lines_changed(before, after.text)


@given(value=st.fixed_dictionaries({}, optional={
    **dict.fromkeys(("title", "effects", "timeout", "tags", "enabled", "run", "errors", "retry", "secrets"), VALUES),
    "params": st.fixed_dictionaries({}, optional={"type": st.just("object"), "properties": OBJECTS, "required": VALUES}),
}))  # fmt: skip
@settings(max_examples=40)
def test_a_form_that_nobody_touched_changes_nothing(value: dict[str, Any]) -> None:
    text = "\n".join([*below(value, 0), ""])
    assert typing(text).text == text


@given(value=VALUES)
@settings(max_examples=40)
def test_a_box_of_yaml_says_what_it_shows(value: Any) -> None:
    assert same(from_snippet(snippet(value)), value)
    for widget in ("line", "area", "flag", "whole", "span", "words", "scalars", "choice"):
        field = holding(Field((), "f.x", "X", widget, choices=("a", "b")), value)
        if field.shown:
            assert same(meant(field, field.shown), value)
        else:
            assert value in (False, "", [])


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ({"f__title": "Hello: you"}, '"Hello: you"                 # for people'),
        ({"f__timeout": "2m"}, "timeout: 2m"),
        ({"f__timeout": "45"}, "timeout: 45"),
        ({"f__deprecated": "yes"}, "deprecated: true"),
        ({"f__enabled": ""}, "enabled: false"),
        ({"f__tags": "post\nparcels"}, "tags: [post, parcels]"),
        ({"f__egress__ports": "8443"}, "ports: [8443]}"),
        ({"f__retry__retryOn": "429\n5xx"}, "retryOn: [429, 5xx]"),
        ({"f__run__headers": "X-A: {from: params.note}"}, "headers: {X-A: {from: params.note}}"),
        ({"f__run__paginate__by": "page"}, "paginate: {by: page}"),
        ({"f__approval__policy": ""}, "approval: {show: [town]} "),
        ({"f__idempotency__header": ""}, "-idempotency:"),
        ({"f__errors__0__code": "GONE"}, "code: GONE"),
        ({"p__1__description": "Where to"}, "town: {type: string, description: Where to}"),
        ({"p__1__enum": "Porto\n5"}, 'town: {type: string, enum: [Porto, "5"]}'),
        ({"p__2__required": "yes"}, "required: [parcel, town, note]"),
        ({"p__0__pattern": ""}, "parcel: {type: string}"),
    ],
)
def test_what_is_typed_becomes_a_line(typed: dict[str, str], line: str) -> None:
    gone, new = difference(typing(TEXT, **typed))
    if line.startswith("-"):
        assert (gone[0].startswith(line[1:]), len(gone), new) == (True, 1, [])
    else:
        assert len(new) == 1
        assert line in new[0]


@pytest.mark.parametrize(
    ("name", "typed", "said"),
    [
        ("f.limits.concurrency", "many", "'many' is no whole number"),
        ("f.run.query", "a: [b", "not YAML"),
        ("p.0.name", "town", "a name of its own"),
        ("p.0.name", " ", "a name of its own"),
    ],
)
def test_what_is_not_meant_is_refused_and_the_rest_is_kept(
    name: str, typed: str, said: str
) -> None:
    values = sent(TEXT) | {name: [typed], "f.title": ["Kept"]}
    made = changed(TEXT, TEXT, values)
    assert said in made.errors[name]
    assert read_text(made.text) == read_text(TEXT) | {"title": "Kept"}


def test_text_and_form_may_both_have_been_typed_into() -> None:
    typed = TEXT.replace("effects: external", "effects: write")
    made = changed(typed, TEXT, sent(TEXT, f__title="Mine"))
    data = read_text(made.text)
    assert (data["effects"], data["title"]) == ("write", "Mine")
    gone = typed.replace("    town: {type: string}\n", "")
    made = changed(gone, TEXT, sent(TEXT, p__1__name="city", p__1__required=""))
    assert set(made.errors) == {"p.1.name", "p.1.required"}


def test_what_the_text_says_otherwise_by_now_is_left_alone() -> None:
    for typed, values, do, said in (
        ("run: something\n", {"f__run__method": "PUT"}, "", "something else here"),
        ("errors: [{code: A}]\n", {"f__errors__0__when": "true"}, "", ""),
        ("errors: []\n", {"f__errors__0__when": "true"}, "", "something else here"),
        ("errors: 5\nrun: 7\n", {}, "add run.steps", "something else here"),
        ("params: {$ref: x}\n", {"p__0__name": "n", "p__0__required": ""}, "drop params 0", "not in the text"),
        ("params: {$ref: x}\n", {}, "add params", ""),
    ):  # fmt: skip
        made = changed(typed, TEXT, sent(TEXT, **values), do)
        assert said in "".join([made.problem, *made.errors.values()])
        assert bool(made.problem or made.errors) is bool(said)
        if said or "params" in typed:
            assert made.text == typed


def test_a_text_that_cannot_be_read_says_what_of_the_form_has_to_wait() -> None:
    made = changed("a: [", TEXT, sent(TEXT, f__title="Mine"))
    assert "Title: Mine" in made.problem
    assert changed("a: [", TEXT, sent(TEXT)).problem == ""


def test_another_authentication_keeps_what_both_have() -> None:
    text = TEXT.replace("{type: bearer, token: ", "{type: basic, username: me, password: ")
    _, new = difference(typing(text, f__run__auth__type="oauth2"), text)
    assert new == ["  auth: {type: oauth2}"]
    gone, new = difference(typing(text, f__run__auth__type=""), text)
    assert (len(gone), new) == (1, [])


def test_parameters_are_added_renamed_moved_and_removed() -> None:
    first = typing("name: a\neffects: read\n", "add params", new__param="size")
    assert first.text == (
        "name: a\neffects: read\n"
        "params:\n  type: object\n  additionalProperties: false\n  properties:\n    size: {type: string}\n"
    )
    second = typing(first.text, "add params", p__0__required="yes", new__param="size")
    assert "required: [size]" in second.text
    assert list(read_text(second.text)["params"]["properties"]) == ["size", "size_2"]
    renamed = read_text(typing(TEXT, "up params 1", p__1__name="city", p__2__name="hint").text)
    assert list(renamed["params"]["properties"]) == ["city", "parcel", "hint"]
    assert renamed["params"]["required"] == ["parcel", "city"]
    assert renamed["run"]["body"]["town"] == {"from": "params.city"}
    assert renamed["ui"] == {"hint": {"ui:widget": "textarea"}}
    dropped = read_text(typing(TEXT, "drop params 0").text)
    assert dropped["params"]["required"] == ["town"]
    renamed = read_text(typing(TEXT, p__0__name="number").text)
    assert renamed["run"]["url"].endswith("/{number}/address")


def test_a_schema_of_another_make_is_yaml_as_a_whole() -> None:
    text = "name: a\nparams: {$ref: '#/x'}\n"
    whole = form_of(text).designer.whole
    assert whole is not None
    made = typing(text, **{whole.name.replace(".", "__"): "{type: object}"})
    assert made.text == "name: a\nparams: {type: object}\n"


def test_rows_are_added_moved_and_removed() -> None:
    (steps,) = [one for one in parts_of(read_text(PIPELINE)) if isinstance(one, Rows) and one.items]
    assert steps.name == "run.steps"
    moved = typing(PIPELINE, "down run.steps 0", f__run__steps__1__when="true")
    assert [one["id"] for one in read_text(moved.text)["run"]["steps"]] == ["second", "first"]
    assert "# before all" in moved.text
    added = read_text(typing(PIPELINE, "add run.steps").text)["run"]["steps"]
    assert added[2] == {"id": "step_3", "action": ""}
    assert len(read_text(typing(PIPELINE, "drop run.steps 0").text)["run"]["steps"]) == 1
    assert "errors" not in read_text(typing(TEXT, "drop errors 0").text)
    assert len(read_text(typing(PIPELINE, "add errors").text)["errors"]) == 1


@pytest.mark.parametrize(
    "do", ["", "up errors 9", "drop nothing 0", "down params 9", "shout errors 0", "add errors 3"]
)
def test_buttons_about_nothing_do_nothing(do: str) -> None:
    assert typing(TEXT, do).text == TEXT


def test_a_text_that_cannot_be_read_has_no_form() -> None:
    assert "not YAML" in form_of("a: [").problem
    made = changed("a: [", TEXT, sent(TEXT, f__title="x"))
    assert (made.text, bool(made.problem)) == ("a: [", True)


def test_new_keys_stand_where_the_format_has_them() -> None:
    data: dict[str, Any] = {"name": "a", "run": {"kind": "http", "url": "u"}}
    place(data, ("effects",), "read")
    place(data, ("run", "method"), "POST")
    place(data, ("limits", "perRun"), 3)
    assert list(data) == ["name", "effects", "run", "limits"]
    assert list(data["run"]) == ["kind", "method", "url"]
    place(data, ("limits", "perRun"), ABSENT)
    assert list(data) == ["name", "effects", "run"]


def test_the_form_of_the_example_is_without_complaint() -> None:
    assert not read_actions(TEXT, Path("a.yaml")).problems
    assert not [one.name for one in every(TEXT) if one.name.startswith("y")]
    helps = {one.name: one.help for one in every(TEXT)}
    assert helps["f.description"] == "What it does and when to use it, for the model."
