"""A text that says something else afterwards, and is otherwise as it was typed."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from loopagent.documents import DocumentError
from loopagent.library.editing.splicing import SpliceError, read_text, rewritten, same
from loopagent.library.editing.writing import below


TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            "yes",
            "5",
            "a: b",
            "# x",
            "a #b",
            "- a",
            "two\nlines\n",
            "two\n\n  lines",
            " a",
            "https://x/y",
            "{a}",
        ]
    ),
    st.text(max_size=8).filter(lambda one: not any("\ud800" <= c <= "\udfff" for c in one)),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-9, 99),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
KEYS = st.sampled_from(["a", "b", "c", "d: e", "on", "7"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=5)


def ruamel_text(value: dict[str, Any], *, offset: int) -> str:
    made = YAML()
    made.indent(mapping=2 + offset, sequence=2 + offset, offset=offset)
    out = io.StringIO()
    made.dump(value, out)
    return out.getvalue()


def commented(text: str, every: int) -> str:
    """A text with comments between its lines, where they are comments still."""
    lines: list[str] = []
    for at, line in enumerate(text.split("\n")):
        pad = line[: len(line) - len(line.lstrip(" "))]
        more = [f"{pad}# remark {at}"] if at % every == 0 and line.strip() else []
        lines += [*more, line]
    made = "\n".join(lines)
    try:
        return made if same(read_text(made), read_text(text)) else text
    except DocumentError:
        return text


@given(before=OBJECTS, after=OBJECTS, style=st.integers(0, 2), every=st.integers(1, 4))
@settings(max_examples=40)
def test_a_text_says_what_is_wanted_afterwards(
    before: dict[str, Any], after: dict[str, Any], style: int, every: int
) -> None:
    text = (
        "\n".join([*below(before, 0), ""]) if style == 2 else ruamel_text(before, offset=style * 2)
    )
    text = commented(text, every)
    assert same(read_text(rewritten(text, after)), after)
    now = read_text(text)
    assert rewritten(text, now) == text
    assert same(read_text(rewritten(text, {**now, "new": after})), {**now, "new": after})


TEXT = """\
# What it is for: parcels that moved.
name: parcels.redirect   # never changes

params:
  # who gets it
  type: object
  properties:
    # as on the label
    parcel: {type: string}   # P-7
    town:
        type: string   # four blanks here
    # asked for later
    # note: {type: string}
run:
  kind: prompt
  template: |   # long
    Dear {{ params.town }},

    bye
  # the end of run
errors:
- when: a   # first
  code: A
-
  when: b
  code: B
# the last line
"""


def lines_changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that are gone, and those that are new."""
    old, new = before.split("\n"), after.split("\n")
    return [one for one in old if one not in new], [one for one in new if one not in old]


def test_only_the_lines_change_that_say_something_else() -> None:
    data = read_text(TEXT)
    data["params"]["properties"]["town"]["type"] = "integer"
    data["run"]["template"] = "Dear you,\nbye\n"
    data["errors"][1]["code"] = "C"
    data["name"] = "parcels.move"
    gone, new = lines_changed(TEXT, rewritten(TEXT, data))
    assert new == [
        "name: parcels.move   # never changes",
        "        type: integer   # four blanks here",
        "    Dear you,",
        "  code: C",
    ]
    assert len(gone) == 4


def test_what_moves_or_is_renamed_takes_its_comments_along() -> None:
    data = read_text(TEXT)
    parcel, town = data["params"]["properties"].values()
    data["params"]["properties"] = {"town": town, "parcel": parcel}
    data["errors"].reverse()
    moved = rewritten(TEXT, data)
    assert lines_changed(TEXT, moved) == ([], [])
    assert moved.index("town:") < moved.index("# as on the label") < moved.index("parcel: {")
    assert moved.index("code: B") < moved.index("# first")
    data = read_text(TEXT)
    data["params"]["properties"] = {"number": parcel, "town": town}
    gone, new = lines_changed(TEXT, rewritten(TEXT, data))
    assert (gone, new) == (
        ["    parcel: {type: string}   # P-7"],
        ["    number: {type: string}   # P-7"],
    )


def test_what_goes_leaves_nothing_of_its_own_behind() -> None:
    data = read_text(TEXT)
    del data["params"], data["errors"][0]
    after = rewritten(TEXT, data)
    assert "# as on the label" not in after
    assert "# never changes" in after
    assert after.endswith("# the last line\n")


def test_json_stays_json_and_an_empty_text_becomes_one() -> None:
    assert rewritten('{"a": 1}', {"a": 2}) == '{\n  "a": 2\n}\n'
    assert rewritten("# why\n", {"a": {"b": [1, "5"]}}) == '# why\na: {b: [1, "5"]}\n'
    assert rewritten("a: |\n  x", {"a": "x", "b": 1}) == "a: x\nb: 1\n"


def test_anchors_are_for_the_author() -> None:
    text = "a: &x {b: 1}\nc: *x\n"
    with pytest.raises(SpliceError, match="change the text itself"):
        rewritten(text, {"a": {"b": 2}, "c": {"b": 1}})
    assert rewritten(text, {"a": {"b": 1}, "c": {"b": 2}}) == "a: &x {b: 1}\nc: {b: 2}\n"
