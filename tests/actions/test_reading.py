"""Action files: every complaint at its place, all at once, with a suggestion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.actions.reading import read_actions
from loopagent.core.reshape import Expression, ReshapeError, Template
from loopagent.documents import read_documents
from loopagent.schemas import action_schema


GOOD = """\
apiVersion: loopagent/v1
kind: Action
name: erp.aging
title: Aging
description: Open invoices of a supplier by age.
version: "3"
tags: [erp]
effects: read
params:
  type: object
  required: [supplier]
  additionalProperties: false
  properties:
    supplier: {type: string, pattern: "^S[0-9]+$"}
    day: {type: string}
ui: {day: {"ui:help": "Empty means today."}}
approval: {policy: ask}
secrets: [erp]
egress: {hosts: [erp.example.com]}
run:
  kind: http
  method: GET
  url: https://erp.example.com/v2/{supplier}/aging
  query: {day: {from: params.day}}
  auth: {type: bearer, token: {secret: erp}}
  timeout: 10s
  success: "status < `300`"
timeout: 30s
retry: {attempts: 3, retryOn: [timeout, 429, "5xx"], wait: 200ms, maxWait: 5s, respectRetryAfter: true}
limits: {rate: 60/m, concurrency: 8, scope: connection, perRun: 5}
result:
  select: "{rows: body.rows, total: sum(body.rows[].open)}"
  schema: {type: object, required: [rows]}
  maxChars: 8000
errors:
- {when: "status == `404`", code: NOT_FOUND, message: "Nobody is {{ params.supplier }}."}
examples:
- {name: usual, params: {supplier: S1}, result: {rows: []}}
tests:
- name: sums up
  params: {supplier: S1}
  mock: [{request: {method: GET, path: /v2/S1/aging}, response: {json: {rows: [{open: 1}]}}}]
  expect: {result: {rows: [{open: 1}], total: 1}}
- name: refuses
  params: {supplier: ../x}
  expect: {error: INVALID_PARAMS, requests: []}
"""


def complaints(text: str) -> list[str]:
    reading = read_actions(text, Path("a.action.yaml"))
    assert bool(reading.problems) is not bool(reading.actions)
    return reading.problems


def warnings(text: str) -> list[str]:
    reading = read_actions(text, Path("a.action.yaml"))
    assert reading.problems == []
    return reading.warnings


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_a_good_file() -> None:
    reading = read_actions(GOOD, Path("a.action.yaml"))
    assert (reading.problems, reading.warnings) == ([], [])
    action = reading.actions[0]
    assert (action.retry.wait, action.timeout) == (0.2, 30.0)
    assert action.limits.rate is not None
    assert action.limits.rate.per_second == 1.0


def test_the_schema_file_takes_the_good_file() -> None:
    validator = jsonschema_rs.validator_for(action_schema())
    document: dict[str, Any] = read_documents(GOOD, Path("a.yaml"))[0].value
    assert validator.is_valid(document)
    assert not validator.is_valid({**document, "run": {**document["run"], "method": "FETCH"}})
    assert not validator.is_valid({**document, "shcema": 1})


def test_keys_may_be_written_in_snake_case() -> None:
    text = (
        changed("retryOn", "retry_on").replace("maxWait", "max_wait").replace("perRun", "per_run")
    )
    assert read_actions(text, Path("a.yaml")).problems == []


def test_several_documents_and_the_whole_at_once() -> None:
    text = f"{GOOD}---\n{GOOD.replace('GET', 'FETCH').replace('result:', 'reslt:', 1)}---\nname: third\n"
    reading = read_actions(text, Path("a.action.yaml"))
    assert len(reading.actions) == 1
    assert [one.split(" ")[0] for one in reading.problems] == [
        "a.action.yaml:69:3:",
        "a.action.yaml:78:1:",
        "a.action.yaml:95:1:",
        "a.action.yaml:95:1:",
        "a.action.yaml:95:1:",
    ]
    assert "did you mean result" in reading.problems[1]


WRONG = [
    ("method: GET\n", "method: GETT\n", "22:3: run.method: expected 'GET'", "did you mean GET?"),
    ("  method: GET\n", "  metod: GET\n", "22:3: run.metod: unknown key; did you mean method?", ""),
    ("kind: http", "kind: htp", "21:3: run.kind: expected one of 'http'", "did you mean http?"),
    ("  kind: http\n", "", "20:1: run.kind: required, but missing", ""),
    ("type: bearer", "type: bearr", "25:10: run.auth.type: expected", "did you mean bearer?"),
    ("maxChars", "maxChar", "34:3: result.maxChar: unknown key; did you mean maxChars?", ""),
    ("token: {", "tokn: {", "25:24: run.auth.tokn: unknown key; did you mean token?", ""),
    ("10s", "10 parsecs", "26:3: run.timeout: '10 parsecs' is no time; write it like 10s", ""),
    ("60/m", "lots", "30:10: limits.rate: 'lots' is no rate; write it like 60/m", ""),
    ("attempts: 3", "attempts: three", "29:9: retry.attempts: expected a whole number", ""),
    ('"5xx"', '"9xx"', "29:22: retry.retryOn: '9xx' is none of timeout, connection", ""),
    ("status < `300`", "status < 300", "27:3: run.success:", "numbers stand in backticks"),
    (
        "sum(body",
        "summ(body",
        "32:3: result.select: there is no function 'summ'; did you mean sum",
        "",
    ),
    (
        '"{rows: body.rows,',
        '"{rows body.rows,',
        "32:3: result.select:",
        "is no JMESPath expression",
    ),
    (
        "from: params.day",
        "from: params.dya",
        "24:17: run.query.day.from: there is no parameter 'dya'; did you mean day?",
        "",
    ),
    ("{{ params.supplier }}", "{{ params.supplier", "36:", "has no }} after it"),
    (
        "secret: erp}",
        "secret: epr}",
        "25:32: run.auth.token.secret: 'epr' is not listed under `secrets`; did you mean erp?",
        "",
    ),
    (
        "token: {secret: erp}",
        "token: hush-hush",
        "25:24: run.auth.token: must be {secret: NAME}, never the value itself",
        "",
    ),
    (
        "query: {day: {from: params.day}}",
        "query: {k: {secret: erp}}",
        "24:15: run.query.k.secret: a secret in the address",
        "",
    ),
    (
        "hosts: [erp.example.com]",
        "hosts: [erp.example.org]",
        "23:3: run.url: the host erp.example.com is not listed under egress.hosts",
        "",
    ),
    (
        "https://erp.example.com/",
        "https://erp.example.com:8443/",
        "23:3: run.url: the port 8443 is not listed",
        "",
    ),
    ("https://erp", "http://erp", "23:3: run.url: secrets are sent over https only", ""),
    (
        "https://erp.example.com/",
        "https://{supplier}/",
        "23:3: run.url: the host and port must be written out",
        "",
    ),
    ("/aging\n", "/aging?x=1\n", "23:3: run.url: must have no query", ""),
    ("https://erp", "https://me:pw@erp", "23:3: run.url: is no address that can be called", ""),
    ("{supplier}/", "{suplier}/", "23:3: run.url: there is no parameter 'suplier'", ""),
    (
        "required: [supplier]",
        "required: []",
        "23:3: run.url: the parameter 'supplier' in the path must be required",
        "",
    ),
    (
        "type: string, pattern",
        "type: array, pattern",
        "23:3: run.url: the parameter 'supplier' in the path must be one text",
        "",
    ),
    ('pattern: "^S[0-9]+$"', 'pattern: "["', "9:1: params: is no valid JSON Schema", ""),
    (
        "params:\n  type: object",
        "params:\n  type: array",
        "9:1: params: must say `type: object`",
        "",
    ),
    (
        "params: {supplier: S1}, result",
        "params: {suplier: S1}, result",
        "38:17: examples[0].params",
        "",
    ),
    (
        "result: {rows: []}}",
        "result: {row: []}}",
        "38:41: examples[0].result: does not satisfy result.schema",
        "",
    ),
    (
        "expect: {result: {rows: [{open: 1}], total: 1}}",
        "expect: {}",
        "43:3: tests[0].expect: must say either `result` or `error`",
        "",
    ),
    (
        "expect: {result: {rows: [{open: 1}], total: 1}}",
        "expect: {result: {rows: {$matches: '['}}}",
        "43:28: tests[0].expect.result.rows.$matches",
        "",
    ),
    (
        "name: refuses",
        "name: sums up",
        "44:3: tests[1].name: another test is named 'sums up' too",
        "",
    ),
    (
        "approval: {policy: ask}",
        "approval: {policy: ask, expires: soon}",
        "17:25: approval.expires: 'soon' is no time",
        "",
    ),
    ("name: erp.aging", "name: ERP aging", "3:1: name: expected text that matches", ""),
    ("effects: read", "effects: wirte", "8:1: effects: expected", "did you mean write?"),
    (
        "apiVersion: loopagent/v1",
        "apiVersion: loopagent/v2",
        "1:1: apiVersion: expected 'loopagent/v1'",
        "",
    ),
    (
        "tags: [erp]",
        "tags: [erp]\ntags: []",
        "8:1: tags: this key stands twice, first in line 7",
        "",
    ),
    (
        "tags: [erp]",
        "tags: !!python/object:os.system [erp]",
        "7:7: tags: the tag",
        "is not supported",
    ),
    (
        "  method: GET\n",
        "  method: GET\n  headers: {Host: evil, a: 1}\n",
        "23:13: run.headers.Host: the header 'Host' cannot be set",
        "",
    ),
    (
        "  method: GET\n",
        "  method: GET\n  body: {}\n",
        "23:3: run.body: a GET request has no body",
        "",
    ),
    (
        "  method: GET\n",
        "  method: GET\n  paginate: {by: cursor, items: body.x}\n",
        "23:3: run.paginate: needs `next`",
        "",
    ),
]


@pytest.mark.parametrize(("old", "new", "start", "part"), WRONG)
def test_what_is_wrong_and_where(old: str, new: str, start: str, part: str) -> None:
    found = complaints(changed(old, new))
    assert any(one.startswith(f"a.action.yaml:{start}") and part in one for one in found), found


@pytest.mark.parametrize("method", ["method: POTS", "metod: POST"])
def test_a_method_that_cannot_be_read_is_not_taken_for_the_usual_one(method: str) -> None:
    text = changed("  method: GET\n", f"  {method}\n  body: {{}}\n")
    [found] = complaints(text)
    assert f"run.{method.partition(':')[0]}: " in found


def test_a_key_that_stands_twice_hides_nothing_else() -> None:
    twice = changed("tags: [erp]", "tags: [erp]\ntags: []").replace("GET", "GETT", 1)
    reading = read_actions(f"{twice}---\n- no object\n---\n{GOOD}", Path("a.action.yaml"))
    found = [one.split(": ")[1] for one in reading.problems]
    assert found == ["tags", "(file)", "run.method"]
    assert reading.actions == []  # until it is clear what the text says


def test_the_rest_is_checked_though_some_of_it_cannot_be_read() -> None:
    text = changed("attempts: 3", "attempts: three").replace("status < `300`", "status < 300")
    assert [one.split(" ")[1] for one in complaints(text)] == ["run.success:", "retry.attempts:"]


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        (
            "  method: GET\n",
            "  method: POST\n",
            "POST usually changes something, but effects say read",
        ),
        ("ui: {day", "ui: {dya", "there is no parameter 'dya'; did you mean day?"),
        ("effects: read", "effects: write", "only connections that fail are tried again"),
        ("secrets: [erp]", "secrets: [erp, more]", "'more' is not used"),
    ],
)
def test_what_is_only_odd(old: str, new: str, part: str) -> None:
    assert any(part in one for one in warnings(changed(old, new)))


@pytest.mark.parametrize(("pin", "said"), [("", 1), (f", sha256: {'a' * 64}", 0)])
def test_a_tool_is_held_on_to(pin: str, said: int) -> None:
    head = "name: a\ndescription: d\neffects: read\nparams: {type: object}\n"
    found = warnings(f"{head}run: {{kind: mcp, server: shop, tool: pay{pin}}}\n")
    assert ["`sha256`, as import-mcp writes it" in one for one in found] == [True] * said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a list",
        "just text",
        "a: [1",
        "a: &x [*x]",
        "\0",
        "? {a: b}\n: c",
        (
            "a: &a [1,2,3,4,5,6,7,8,9]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
            "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]"
        ),
        "run: {kind: nonsense}",
        "run: []",
        "params: 5\nrun: {kind: http, url: 7}",
        "name: " + "[" * 200,
    ],
)
def test_anything_gets_a_complaint_and_no_crash(text: str) -> None:
    assert complaints(text)


@pytest.mark.parametrize(
    "text",
    [
        "|".join(["[@, @]"] * 60),
        "|".join(["[@, @][]"] * 60),
        "|".join(["{a: @, b: @}"] * 60) + " | to_string(@)",
        "|".join(["join(@, [@, @, @])"] * 60),
    ],
)
def test_what_grows_without_end_is_given_up(text: str) -> None:
    with pytest.raises(ReshapeError, match="too much"):
        Expression(text).of("a text", max_work=100_000)


def test_a_long_chain_is_an_error_and_no_crash() -> None:
    chain = Expression("|".join(["a"] * 1_900))
    with pytest.raises(ReshapeError, match="goes too deep"):
        chain.of({"a": 1})


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_none(text: str) -> None:
    for kind in (Expression, Template):
        try:
            made = kind(text)
        except ReshapeError:
            continue
        assert made is not None


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("a {{ x }} b", "a 1.5 b"),
        ("{{ name }}{{ gone }}", "Ann"),
        ("{{ list }} {{ list | json }} {{ name | json }}", '[1] [1] "Ann"'),
        ("{ x } {x} $x", "{ x } {x} $x"),
        (
            "{{ upper(name) }} {{ coalesce(gone, `2`) }} {{ split('a-b', '-')[1] }} {{ trim(' x ') }}",
            "ANN 2 b x",
        ),
        ("{{ length(list) }}", "1"),
    ],
)
def test_texts_are_filled(text: str, filled: str) -> None:
    assert Template(text).fill({"x": 1.5, "name": "Ann", "list": [1]}) == filled


def test_what_was_filled_in_is_not_filled_again() -> None:
    assert Template("{{ x }}").fill({"x": "{{ y }}", "y": "no"}) == "{{ y }}"


def test_there_is_an_end_to_complaints() -> None:
    text = "name: x\n" + "".join(f"a{number}: 1\n" for number in range(1_000))
    assert 0 < len(read_actions(text, Path("x.action.yaml")).problems) <= 101
