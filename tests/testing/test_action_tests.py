"""The tests inside of action files: what they find out, and that nothing but the stand-in is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loopagent.actions.build import StandIn, make_action
from loopagent.actions.means import Means
from loopagent.core.action_spec import ActionSpec
from loopagent.trials.action_tests import run_action_tests
from tests.actions.making import read


HTTP = """\
name: it
description: Does it.
effects: write
secrets: [key]
params: {{type: object, properties: {{id: {{type: integer}}}}}}
egress: {{hosts: [api.example.com, 10.0.0.7, login.example.com], ports: [8443]}}
run:
  kind: http
  method: POST
  url: {url}
  body: {{id: {{from: params.id}}}}
  query: {{a: [1, 2]}}
  auth: {auth}
retry: {{attempts: 3, wait: 10m, maxWait: 20m}}
idempotent: true
result: {{select: body.x}}
tests:
- name: one
  params: {params}
  mock: {mock}
  expect: {expect}
"""
GOOD = {
    "url": "https://api.example.com:8443/v1",
    "auth": "{type: bearer, token: {secret: key}}",
    "params": "{id: 1}",
    "mock": "[{request: {method: POST, path: /v1, query: {a: ['1', '2']}, headers: {Authorization: Bearer secret-key-of-the-test}, json: {id: 1}}, response: {json: {x: 5}}}]",
    "expect": "{result: 5}",
}


def problems(text: str, means: Means | None = None) -> list[str]:
    given = means or Means()
    (result,) = run_action_tests([make_action(read(text), given)], means=given)
    assert result.passed is not bool(result.problems)
    return result.problems


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"url": "http://10.0.0.7/v1"},
        {
            "mock": "[{response: {status: 503}}, {response: {status: 429}}, {response: {json: {x: 5}}}]"
        },
        {
            "mock": "[{response: {status: 404, text: gone}}]",
            "expect": "{error: http_404, requests: [{json: {id: 1}}]}",
        },
        {"mock": "[]", "params": "{id: one}", "expect": "{error: INVALID_PARAMS, requests: []}"},
        {"expect": "{result: {$matches: '5+'}}", "mock": "[{response: {json: {x: '5'}}}]"},
        {
            "auth": "{type: oauth2, tokenUrl: 'https://login.example.com/token', clientId: me, clientSecret: {secret: key}}",
            "mock": "[{request: {headers: {authorization: Bearer access-token-of-the-stand-in}}, response: {json: {x: 5}}}]",
        },
    ],
)
def test_what_is_as_expected(changes: dict[str, str]) -> None:
    assert problems(HTTP.format(**{**GOOD, **changes})) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"expect": "{result: 6}"}, "result (value): expected 6, got 5"),
        ({"expect": "{error: gone}"}, "expected the error gone, got the result 5"),
        ({"params": "{id: 2}"}, "request 1: json: id: expected 1, got 2"),
        ({"mock": "[]"}, "request 1, POST /v1?a=1&a=2, is not expected"),
        ({"mock": "[{response: {json: {x: 5}}}, {}]"}, "1 requests were sent, 2 are expected"),
        ({"mock": "[{response: {status: 500}}]"}, "request 2, POST"),
        (
            {"mock": "[{request: {headers: {x-a: b}}, response: {json: {x: 5}}}]"},
            "request 1: headers.x-a: None instead of 'b'",
        ),
        (
            {"mock": "[{request: {query: {a: '1'}}, response: {json: {x: 5}}}]"},
            "request 1: query: a: expected",
        ),
        ({"expect": "{result: 5, requests: []}"}, "expected 0 requests, 1 were sent"),
        (
            {"expect": "{result: 5, requests: [{path: /v2}]}"},
            'request 1: path: expected "/v2", got "/v1"',
        ),
    ],
)
def test_what_is_not(changes: dict[str, str], told: str) -> None:
    found = problems(HTTP.format(**{**GOOD, **changes}))
    assert any(told in one for one in found), found


PROMPT = """\
name: rate
description: Rates.
effects: read
run: {{kind: prompt, template: Rate it., outputSchema: {{type: integer}}}}
tests: [{{name: one, mock: {mock}, expect: {expect}}}]
"""


@pytest.mark.parametrize(
    ("mock", "expect", "told"),
    [
        ("[{reply: '5'}]", "{result: 5}", ""),
        ("[{reply: five}, {reply: '5'}]", "{result: 5}", ""),
        ("[{reply: five}]", "{result: 5}", "the model was asked, which is not expected"),
        (
            "[{reply: '5'}, {reply: '6'}]",
            "{result: 5}",
            "what stands in for the model was not used",
        ),
    ],
)
def test_prompts(mock: str, expect: str, told: str) -> None:
    found = problems(PROMPT.format(mock=mock, expect=expect))
    assert bool(found) is bool(told)
    assert not told or any(told in one for one in found)


PIPE = """\
name: both
description: Does both.
effects: write
run:
  kind: pipeline
  steps: [{{id: a, action: one, with: {{n: 1}}}}, {{id: b, action: one, with: {{n: {{from: steps.a}}}}}}]
tests: [{{name: one, mock: {mock}, expect: {expect}}}]
"""


@pytest.mark.parametrize(
    ("mock", "expect", "told"),
    [
        (
            "[{action: one, params: {n: 2}, result: 3}, {action: one, params: {n: 1}, result: 2}]",
            "{result: 3}",
            "",
        ),
        ("[{action: one, result: 2}, {action: one, error: busy}]", "{error: busy}", ""),
        (
            "[{action: one, result: 2}]",
            "{result: 3}",
            "one was called with {'n': 2}, which is not expected",
        ),
    ],
)
def test_pipelines_call_only_what_stands_in(mock: str, expect: str, told: str) -> None:
    async def never(params: dict[str, Any], context: Any) -> Any:
        raise AssertionError("the real one was called")

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    real = StandIn(ActionSpec(name="one", parameters=schema, effects="write"), never)
    found = problems(PIPE.format(mock=mock, expect=expect), Means(actions={"one": real}))
    assert bool(found) is bool(told)
    assert not told or any(told in one for one in found), found


def test_tests_are_chosen_by_name() -> None:
    action = make_action(read(HTTP.format(**GOOD)), Means())
    assert len(run_action_tests([action], means=Means(), named="it: o")) == 1
    assert run_action_tests([action], means=Means(), named="other") == []


def test_the_example_of_the_documentation_is_true() -> None:
    text = (Path(__file__).parents[2] / "docs" / "actions.md").read_text(encoding="utf-8")
    block = text.partition("```yaml\n")[2].partition("```")[0]
    results = run_action_tests([make_action(read(block), Means())], means=Means())
    assert [one.problems for one in results] == [[], []]
