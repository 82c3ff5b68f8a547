"""Names in the expressions of an action file: what cannot be there is found when the file is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopagent.actions.reading import read_actions
from loopagent.core.reshape import Expression, Template


HEAD = """\
name: a
description: d
effects: read
params: {type: object, properties: {town: {type: string}, amount: {type: number}}}
"""
HTTP = f"""{HEAD}egress: {{hosts: [api.example.com]}}
run: {{kind: http, method: GET, url: https://api.example.com/x, query: {{q: {{from: params.town}}}}}}
"""
ASK = "run: {kind: prompt, model: scripted:s, template: 'In {{ params.town }}'}\n"
PIPE = "run: {kind: pipeline, steps: [{id: one, action: b, with: {x: {from: steps.one}}}], output: {from: item}}\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            HEAD + ASK.replace("params.town", "params.twon"),
            "there is no parameter 'twon'; did you mean town?",
        ),
        (
            HEAD + ASK.replace("params.town", "town"),
            "run.template: there is no 'town' here, but params",
        ),
        (
            f"{HTTP}approval: {{policy: ask, when: 'params.ammount > `100`'}}\n",
            "approval.when: there is no parameter 'ammount'; did you mean amount?",
        ),
        (
            f"{HTTP}approval: {{policy: ask, when: 'amount > `100`'}}\n",
            "approval.when: there is no 'amount' here",
        ),
        (f"{HTTP}result: {{select: 'bdy.rows'}}\n", "result.select: there is no 'bdy' here"),
        (f"{HTTP}result: {{select: 'rows[?body]'}}\n", "result.select: there is no 'rows' here"),
        (
            f"{HTTP}result: {{summary: '{{{{ body.x }}}}'}}\n",
            "result.summary: there is no 'body' here, but result",
        ),
        (HTTP.replace("params.town", "prams.town"), "did you mean params?"),
        (HEAD + PIPE, "run.output.from: there is no 'item' here, but params, steps"),
    ],
)
def test_a_name_that_is_never_there_is_found(text: str, found: str) -> None:
    problems = read_actions(text, Path("a.action.yaml")).problems
    assert any(found in one for one in problems), problems


@pytest.mark.parametrize(
    "text",
    [
        HTTP,
        HTTP.replace(
            "amount: {type: number}}", "amount: {type: number}}, additionalProperties: true"
        ).replace("params.town", "params.more"),
        f"{HTTP}result: {{select: 'items[?x].y | [0]'}}\n",
        HEAD + ASK.replace("In", 'As {"a": {"b": 1}}, \\{{ x }} in'),
    ],
)
def test_what_may_be_there_is_fine(text: str) -> None:
    assert not read_actions(text, Path("a.action.yaml")).problems


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a.b[?c == d].e | f", {"a"}),
        ("[a, {x: b}, sum(c[].d), !e, @, `1`, 'g']", {"a", "b", "c", "e"}),
        ("sort_by(a, &b)[-1]", {"a"}),
        ("a[*][1:2].b || c[] && d", {"a", "c", "d"}),
    ],
)
def test_names_at_the_top_of_an_expression(text: str, names: set[str]) -> None:
    assert Expression(text).roots == names


def test_braces_as_text() -> None:
    filled = Template(r'{"a": {"b": 1}} \{{ x }} {{ x }} {%').fill({"x": 1})
    assert filled == '{"a": {"b": 1}} {{ x }} 1 {%'
