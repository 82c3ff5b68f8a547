"""Calls that are kept as examples and tests: the test that comes of one passes, without the server."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent.actions.build import make_action
from loopagent.actions.importing.texts import yaml_text
from loopagent.actions.recorded import NotKeptError, Recorded, as_example, as_test, outcome_of
from loopagent.trials.action_tests import run_action_test
from tests.actions.making import means, read


FILE = """\
name: orders.create
description: Orders.
effects: external
secrets: [shop]
params:
  type: object
  required: [item]
  properties: {item: {type: integer}, note: {type: string}}
egress: {hosts: [api.shop.example]}
run:
  kind: http
  method: POST
  url: https://api.shop.example/v1/items/{item}/orders
  query: {run: {from: run.id}, page: {literal: "1"}}
  auth: {type: api_key, in: query, name: key, value: {secret: shop}}
  body: {note: {from: params.note}}
result: {select: "{id: body.id, left: headers.\\"x-left\\"}"}
"""
ANSWER = {
    "status": 201,
    "headers": {"content-type": "application/json", "x-left": "7", "date": "today"},
    "body": {"id": 5},
}
CALL = Recorded({"item": 3, "note": "quick"}, [ANSWER], {"id": 5, "left": "7"})


def kept(call: Recorded, text: str = FILE) -> dict[str, Any]:
    file = read(text)
    sent = make_action(file, means()).sent
    return as_test("as it was", call, file, sent)


def passes(entry: dict[str, Any], text: str = FILE) -> list[str]:
    whole = text + yaml_text({"tests": [entry]})
    file = read(whole)
    return run_action_test(file, file.tests[0], means=means()).problems


def test_a_call_becomes_a_test_that_passes() -> None:
    entry = kept(CALL)
    assert entry["mock"] == [
        {
            "request": {
                "method": "POST",
                "path": "/v1/items/3/orders",
                "query": {"run": "test", "page": "1", "key": "secret-shop-of-the-test"},
                "json": {"note": "quick"},
            },
            # of the headers only what the file looks at
            "response": {"status": 201, "json": {"id": 5}, "headers": {"x-left": "7"}},
        }
    ]
    assert passes(entry) == []


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"status": 200, "headers": {}, "body": None}, None),
        ({"status": 200, "headers": {"content-type": "text/csv; charset=latin-1"}, "body": "ä;b"}, "ä;b"),
        ({"status": 200, "headers": {"content-type": "application/json"}, "body": [1, "x"]}, [1, "x"]),
    ],
)  # fmt: skip
def test_bodies_of_every_kind(answer: dict[str, Any], result: Any) -> None:
    text = FILE[: FILE.index("result:")]
    assert passes(kept(Recorded({"item": 3}, [answer], result), text), text) == []


def test_a_failed_call_expects_its_error() -> None:
    answer = {"status": 404, "headers": {}, "body": {"why": "none"}}
    entry = kept(Recorded({"item": 3}, [answer], None, "http_404"))
    assert entry["expect"] == {"error": "http_404"}
    assert passes(entry) == []


def test_pages_are_kept_one_by_one() -> None:
    text = """\
name: orders.list
description: Lists.
effects: read
egress: {hosts: [api.shop.example]}
run:
  kind: http
  url: https://api.shop.example/orders
  paginate: {by: link, items: body.rows}
"""
    pages = [
        {
            "status": 200,
            "headers": {"link": '<https://api.shop.example/orders?page=2>; rel="next"'},
            "body": {"rows": [1]},
        },
        {"status": 200, "headers": {}, "body": {"rows": [2]}},
    ]
    assert passes(kept(Recorded({}, pages, [1, 2]), text), text) == []


def test_what_cannot_be_kept_says_why() -> None:
    binary = {"status": 200, "headers": {}, "body": {"contentType": "image/png", "bytes": 9}}
    with pytest.raises(NotKeptError, match="no text"):
        kept(Recorded({"item": 3}, [binary]))
    with pytest.raises(NotKeptError, match="Nothing was answered"):
        kept(Recorded({"item": 3}, []))
    with pytest.raises(NotKeptError, match="kind prompt"):
        kept(
            Recorded({}, [], "x"),
            "name: a\ndescription: d\neffects: read\nrun: {kind: prompt, template: Hi}\n",
        )
    with pytest.raises(NotKeptError, match="failed"):
        as_example("x", Recorded({}, [], None, "timeout"))
    with pytest.raises(NotKeptError, match="too many"):
        as_example("x", Recorded({}, [], "x" * 200_000))


def test_an_example_is_parameters_and_result() -> None:
    assert as_example("five", CALL) == {
        "name": "five",
        "params": CALL.params,
        "result": {"id": 5, "left": "7"},
    }


def test_what_a_draft_makes_of_an_answer_now() -> None:
    scope = {**ANSWER, "params": {}}
    assert outcome_of(read(FILE), scope) == ({"id": 5, "left": "7"}, None)
    strict = FILE.replace("result: {", "result: {schema: {type: array}, ")
    assert outcome_of(read(strict), scope) == (None, "bad_answer")
