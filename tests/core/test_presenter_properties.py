"""The presenter against the reader of whole replies, over every kind of reply and every split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.presenting.parts import Delta, Retracted, parts_of
from loopagent.core.presenting.presenter import Presenter
from loopagent.core.reply import read_reply
from tests.core.presented import feed, joined, pieces, seen


TAKEN = {"complete", "step", "continue"}
VECTORS = Path(__file__).parent.parent / "vectors"
TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet='ab "\\`<>/thinkreasoning{}[]:,\n\t😀é\x00', max_size=40),
    st.sampled_from(["```py\nx\n```", "<think>a</think>", '"Gold"', "tail \\", "😀" * 5, ""]),
)
DATA = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=8), DATA, max_size=3)
CALLS = st.lists(st.fixed_dictionaries({"name": TEXTS, "params": OBJECTS}), min_size=1, max_size=4)
STEPS = st.one_of(
    st.fixed_dictionaries({"type": st.just("Actions"), "actions": CALLS}),
    st.fixed_dictionaries({"actions": CALLS, "type": st.sampled_from(["actions", "Action"])}),
    st.fixed_dictionaries({"type": st.just("ClientTools"), "clientTools": CALLS}),
    st.fixed_dictionaries({"type": st.just("Plan"), "plan": TEXTS}),
    st.fixed_dictionaries({"type": st.sampled_from(["Chat", "chat", "Nothing"])}),
    st.fixed_dictionaries(
        {
            "type": st.just("Skill"),
            "skills": st.lists(st.fixed_dictionaries({"name": TEXTS, "reason": TEXTS}), max_size=2),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("Sub-Agent"),
            "subAgents": st.lists(
                st.fixed_dictionaries({"name": TEXTS, "message": TEXTS}), max_size=2
            ),
        }
    ),
)
QUESTIONS = st.lists(
    st.fixed_dictionaries(
        {"id": TEXTS, "label": TEXTS, "type": st.sampled_from(["text", {"type": "text"}])}
    ),
    max_size=3,
)
COMMANDS = st.lists(st.fixed_dictionaries({"type": TEXTS, "label": TEXTS}), max_size=2)
REPLIES = st.fixed_dictionaries(
    {},
    optional={
        "reasoning": TEXTS,
        "message": TEXTS,
        "Message": TEXTS,
        "taskComplete": st.sampled_from([True, False, "true"]),
        "nextStep": STEPS,
        "payloadChangeRequest": st.fixed_dictionaries({"newElements": OBJECTS}),
        "responseForm": st.fixed_dictionaries({"questions": QUESTIONS}),
        "actionableCommands": COMMANDS,
        "automaticCommands": COMMANDS,
        "confidence": st.sampled_from([0.5, 2, "0.1"]),
    },
).flatmap(lambda one: st.permutations(list(one.items())).map(dict))
BEFORE = st.sampled_from(
    [
        "",
        "\ufeff \n",
        "Here it is:\n```json\n",
        "I think {is} <b> it\n",
        '<think>{"message": "no"}</think>',
        '{"message": "no"} was wrong </think>',
        '<thinking >a < b {"x": 1}',
        '{"customers": [1]} and now ',
        "[",
        '{"response": ',
    ]
)
BEHIND = st.sampled_from(
    ["", "\n```\nDone?", "}", " thanks", "]", "} ", '{"message": "x"}', "</think>"]
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """What a model may write: a reply, spelled in many ways, sometimes damaged."""
    reply: Any = draw(REPLIES)
    ascii_only, indent = draw(st.booleans()), draw(st.sampled_from([None, 0, 2]))
    text = json.dumps(reply, ensure_ascii=ascii_only, indent=indent)
    text = draw(BEFORE) + text + draw(BEHIND)
    damage = draw(st.sampled_from(["none", "none", "none", "cut", "drop", "add"]))
    at = draw(st.integers(0, len(text)))
    if damage == "cut":
        return text[:at]
    if damage == "drop":
        return text[:at] + text[at + 1 :]
    if damage == "add":
        return (
            text[:at]
            + draw(st.sampled_from(['"', "}", ",", "\\", "\n", "<think>", "'"]))
            + text[at:]
        )
    return text


@given(texts(), st.lists(st.integers(0, 2000), max_size=30))
def test_at_the_end_everything_is_as_the_reader_reads_it(text: str, cuts: list[int]) -> None:
    presenter = Presenter()
    early = feed(presenter, pieces(text, cuts))
    late = presenter.finish(text)
    reading = read_reply(text)
    final = dict(parts_of(reading.reply))
    if reading.outcome in TAKEN:
        assert seen([*early, *late]) == {at: (value, True) for at, value in final.items()}
        if not any(isinstance(one, Retracted) for one in (*early, *late)):
            for (field, index), (value, done) in seen(early).items():
                whole = final[field, index]
                assert value == whole if done else whole.startswith(value)
        return
    for one in late:
        assert isinstance(one, Delta)
        assert (one.done, one.truncated) == (False, True)


@given(texts(), st.lists(st.integers(0, 2000), max_size=30))
def test_the_split_makes_no_difference(text: str, cuts: list[int]) -> None:
    by_char, by_cuts = Presenter(), Presenter()
    one = [*feed(by_char, text), *by_char.finish(text)]
    other = [*feed(by_cuts, pieces(text, cuts)), *by_cuts.finish(text)]
    assert joined(one) == joined(other)
    assert by_char.snapshot() == by_cuts.snapshot()


@given(REPLIES, st.booleans(), st.lists(st.integers(0, 2000), max_size=30))
def test_plain_json_is_never_taken_back(
    reply: dict[str, Any], ascii_only: bool, cuts: list[int]
) -> None:
    text = json.dumps(reply, ensure_ascii=ascii_only)
    presenter = Presenter()
    shown = [*feed(presenter, pieces(text, cuts)), *presenter.finish(text)]
    reading = read_reply(text)
    if reading.outcome in TAKEN and not reading.warnings:
        assert not any(isinstance(one, Retracted) for one in shown)


def test_every_single_split_of_every_vector() -> None:
    for line in (VECTORS / "replies.jsonl").read_text().splitlines():
        text = json.loads(line)["raw"]
        whole = Presenter()
        expected = joined([*whole.feed(text), *whole.finish(text)])
        for cut in range(len(text) + 1):
            presenter = Presenter()
            shown = [*presenter.feed(text[:cut]), *presenter.feed(text[cut:])]
            assert joined([*shown, *presenter.finish(text)]) == expected
