"""Where things stand in a reply: what was left out or repaired, and the line of each problem."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent.core.marks import Places, marks, pointer_of
from loopagent.core.text import read_text


FENCED = """Sure:
```json
{
  "taskComplete": false, // not yet
  'message': "two
lines",
  nextStep: {"type": "Actions", "actions": [{"name": "look", "params": {"item": None,}}]},
}
```
Bye."""


def marked(text: str) -> list[tuple[str, str]]:
    return [(one.kind, text[one.start : one.end]) for one in marks(text)]


def test_what_was_left_out_and_repaired_is_marked() -> None:
    assert marked(FENCED) == [
        ("cut", "Sure:\n```json\n"),
        ("repaired", "// not yet"),
        ("repaired", "'message'"),
        ("repaired", "\n"),
        ("repaired", "nextStep"),
        ("repaired", "None"),
        ("repaired", ","),
        ("repaired", ","),
        ("cut", "\n```\nBye."),
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"taskComplete": true}', []),
        ("no object", []),
        ('{"taskComplete": tr', []),
        (
            '<think>{"a": 1}</think>{"taskComplete": true}',
            [("cut", '<think>{"a": 1}</think>')],
        ),
    ],
)
def test_replies_without_repairs(text: str, wanted: list[tuple[str, str]]) -> None:
    assert marked(text) == wanted


def test_an_added_brace_is_marked() -> None:
    text = '{"taskComplete": true, "nextStep": {"type": "Chat"}'
    assert read_text(text).closed
    assert marked(text) == [("added", "")]


@pytest.mark.parametrize(
    ("path", "pointer", "line"),
    [
        ("nextStep.actions[0].params.item", "/nextStep/actions/0/params/item", 7),
        ("next_step.type", "/next_step/type", 7),
        ("message", "/message", 5),
        ('missing["a/b~c"]', "/missing/a~1b~0c", 3),
        ("", "", 3),
    ],
)
def test_problems_have_a_pointer_and_a_line(path: str, pointer: str, line: int) -> None:
    assert pointer_of(path) == pointer
    assert Places(FENCED).line(path) == line


def test_what_was_never_read_has_lines_all_the_same() -> None:
    assert Places('{"a": 1,\n"b": [1,\n2, oops').line("b[1]") == 3
    assert Places("nothing").line("b") is None


@given(
    st.recursive(
        st.none() | st.text(max_size=5),
        lambda one: (
            st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=3), one, max_size=3)
        ),
        max_leaves=8,
    ),
    st.text(max_size=20),
)
@settings(max_examples=25, deadline=None)
def test_clean_json_has_no_repairs_and_nothing_raises(value: object, around: str) -> None:
    clean = json.dumps({"taskComplete": True, "message": value}, indent=1)
    assert marks(clean) == []
    for text in (around + clean, clean + around, around, f"{{{around}}}"):
        found = marks(text)
        assert all(0 <= one.start <= one.end <= len(text) for one in found)
        Places(text).line("message[0].a")
