"""What is shown of a reply while it arrives, rule by rule."""

from __future__ import annotations

import copy
import json
import sys
import tracemalloc
from types import FrameType
from typing import Any

import pytest

from loopagent.core.presenting.parts import Delta, Retracted, Shown
from loopagent.core.presenting.presenter import Presenter
from loopagent.core.reply import ReplyRules
from tests.core.presented import feed, seen


CALLS = [
    {"name": "look", "params": {"item": 1}},
    {"name": "look", "params": {"item": [2, {"deep": 'a "b" }'}]}},
]
FULL: dict[str, Any] = {
    "reasoning": "Two are open.",
    "message": "I look at both.",
    "taskComplete": False,
    "nextStep": {"type": "Actions", "actions": CALLS},
    "actionableCommands": [{"type": "open:url", "label": "Open"}],
}


def shown(text: str, size: int = 1) -> list[Shown]:
    """What comes out before the end, of a reply that arrives in pieces of some characters."""
    return feed(Presenter(), (text[at : at + size] for at in range(0, len(text), size)))


def texts(events: list[Shown], field: str) -> list[str]:
    """The pieces of one field."""
    deltas = [one for one in events if isinstance(one, Delta) and one.field == field]
    return [one.text for one in deltas if one.text]


# ---------------------------------------------------------------- what is shown


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_each_field_grows_and_each_entry_comes_whole(size: int) -> None:
    form = {"questions": [{"id": "a", "label": "A", "type": {"type": "text"}}]}
    reply = {**FULL, "responseForm": form}
    assert seen(shown(json.dumps(reply), size)) == {
        ("reasoning", None): ("Two are open.", True),
        ("message", None): ("I look at both.", True),
        ("taskComplete", None): (False, True),
        ("nextStep.type", None): ("Actions", True),
        ("nextStep.actions", 0): (CALLS[0], True),
        ("nextStep.actions", 1): (CALLS[1], True),
        ("actionableCommands", 0): (FULL["actionableCommands"][0], True),
        ("responseForm.questions", 0): (form["questions"][0], True),
    }


@pytest.mark.parametrize(
    ("step", "place"),
    [
        ({"type": "ClientTools", "clientTools": [CALLS[0]]}, ("nextStep.clientTools", 0)),
        ({"type": "Sub-Agent", "subAgents": [{"name": "a"}]}, ("nextStep.subAgents", 0)),
        ({"type": "Sub-Agent", "subAgent": {"name": "a"}}, ("nextStep.subAgent", None)),
        ({"type": "Skill", "skills": [{"name": "a"}]}, ("nextStep.skills", 0)),
        ({"type": "Plan", "plan": "1. Look"}, ("nextStep.plan", None)),
    ],
)
def test_every_kind_of_step_is_shown(step: dict[str, Any], place: tuple[str, int | None]) -> None:
    value = next(iter(value for key, value in step.items() if key != "type"))
    one = value[0] if isinstance(value, list) else value
    assert seen(shown(json.dumps({"nextStep": step})))[place] == (one, True)


def test_text_of_other_fields_never_appears_in_the_message() -> None:
    reply = {
        "scratchpad": {"notes": "secret", "message": "no"},
        "payloadChangeRequest": {"newElements": {"message": "no"}},
        "nextStep": {"type": "Actions", "actions": [{"name": "mail", "params": {"message": "no"}}]},
        "message": "yes",
    }
    assert "".join(texts(shown(json.dumps(reply)), "message")) == "yes"


@pytest.mark.parametrize("ascii_only", [True, False])
def test_never_half_an_escape_or_half_a_character(ascii_only: bool) -> None:
    message = 'café 😀 "q" \\ end'
    text = json.dumps({"message": message}, ensure_ascii=ascii_only)
    for cut in range(len(text)):
        presenter = Presenter()
        first = texts(list(presenter.feed(text[:cut])), "message")
        assert message.startswith("".join(first))
        rest = texts(list(presenter.feed(text[cut:])), "message")
        assert "".join([*first, *rest]) == message
        assert "\ufffd" not in message


def test_half_a_pair_that_stays_alone_stands_for_nothing() -> None:
    assert (
        seen(shown('{"message": "a\\ud83d b\\ude00\\u0000"}'))["message", None][0]
        == "a\ufffd b\ufffd\ufffd"
    )


def test_never_half_a_code_fence() -> None:
    message = "Run\n```py\nx = 1\n```\nor `x`."
    pieces = texts(shown(json.dumps({"message": message})), "message")
    assert "".join(pieces) == message
    grown = ["".join(pieces[:count]) for count in range(len(pieces))]
    assert not any(one.endswith("`") for one in grown)


# ---------------------------------------------------------------- Cline's presenter rules


def test_thinking_tag_strip() -> None:
    """Thoughts, prose and the fence before the reply are left out, however they are cut."""
    text = '<think>{"message": "no"}</think> So:\n```json\n{"message": "yes"}\n```'
    assert seen(shown(text)) == {("message", None): ("yes", True)}


def test_partial_tag_trim() -> None:
    """A text never stops in the middle of a tag."""
    pieces = texts(shown(json.dumps({"message": "a <thinking>b</thinking> 1 < 2"})), "message")
    grown = ["".join(pieces[: count + 1]) for count in range(len(pieces))]
    assert grown[-1] == "a <thinking>b</thinking> 1 < 2"
    assert not any(one.endswith(("<", "<t", "<think", "<thinking", "</thin")) for one in grown)


def test_a_thought_without_a_beginning_takes_back_what_was_shown() -> None:
    presenter = Presenter()
    assert presenter.feed('{"message": "no"} hm')[-1] == Delta(
        "message", "no", done=True, role="narration"
    )
    assert presenter.feed(' </think>{"message": "yes"}') == (
        Retracted(),
        Delta("message", "yes", done=True, role="narration"),
    )


def test_clone_deep() -> None:
    """What was handed out never changes, and changing it changes nothing here."""
    presenter, text = Presenter(), json.dumps(FULL)
    out = feed(presenter, text)
    before = copy.deepcopy(out)
    for one in out:
        if isinstance(one, Delta) and isinstance(one.value, dict):
            one.value["name"] = "changed"
    assert presenter.finish(text) == ()
    again = [*presenter.snapshot()]
    assert seen(again) == seen(before)


def test_out_of_bounds_is_normal() -> None:
    """Being asked before anything new is there is no error, and shows nothing."""
    presenter = Presenter()
    assert [presenter.feed(piece) for piece in ("", "Well", ' {"mess', 'age"', "", ": ")] == [
        ()
    ] * 6
    assert presenter.feed('"a') == (Delta("message", "a", role="narration"),)
    assert presenter.feed("") == ()


def test_whole_blocks_follow_each_other_without_another_delta() -> None:
    kinds = [one.field for one in Presenter().feed(json.dumps(FULL)) if isinstance(one, Delta)]
    assert kinds == [
        "reasoning",
        "message",
        "taskComplete",
        "nextStep.type",
        "nextStep.actions",
        "nextStep.actions",
        "actionableCommands",
    ]


def test_abort_first() -> None:
    """After a stop nothing comes, not even what was held back."""
    presenter = Presenter()
    presenter.feed('{"message": "a ``')
    presenter.stop()
    assert (presenter.feed('` b", "reasoning": "c"}'), presenter.finish('{"message": "x"}')) == (
        (),
        (),
    )


def test_the_stream_ends_and_the_block_never_comes() -> None:
    """Whatever is open is closed as truncated; nothing is waited for."""
    presenter = Presenter()
    presenter.feed('{"message": "half ``", "nextStep": {"plan": "1. a \\ud83d')
    presenter.feed("")
    assert presenter.finish() == (Delta("nextStep.plan", "", truncated=True),)
    assert presenter.feed('"}}') == ()
    cut = Presenter()
    cut.feed('{"message": "half", "nextStep": {"actions": [{"name": "a"}, {"na')
    assert cut.finish("whatever", "length") == (Delta("nextStep.actions", index=1, truncated=True),)


def test_what_a_message_is_is_told_as_soon_as_it_is_known() -> None:
    def roles(reply: dict[str, Any]) -> list[str | None]:
        events = shown(json.dumps(reply), 1000)
        return [one.role for one in events if isinstance(one, Delta) and one.field == "message"]

    assert roles({"message": "a", "taskComplete": True}) == ["narration"]
    assert roles({"taskComplete": True, "message": "a"}) == ["answer"]
    assert roles({"nextStep": {"type": "Chat"}, "message": "a"}) == ["question"]
    assert roles({"taskComplete": True, "nextStep": {"type": "Retry"}, "message": "a"}) == [
        "narration"
    ]


# ---------------------------------------------------------------- the end


def test_what_is_no_plain_json_is_shown_at_the_end() -> None:
    text = '{"taskComplete": true, "message": "The "Gold" plan", trailing: 1,}'
    presenter = Presenter()
    assert "".join(texts(feed(presenter, text), "message")) == "The "
    assert presenter.finish('{"taskComplete": true, "message": "The "Gold" plan"}') == (
        Delta("message", '"Gold" plan', done=True, role="answer"),
    )


def test_what_is_read_otherwise_in_the_end_is_taken_back() -> None:
    text = '{"message": "an example", "x": 1} {"taskComplete": true, "message": "the reply"}'
    presenter = Presenter()
    assert seen(feed(presenter, text))["message", None] == ("an example", True)
    late = presenter.finish(text)
    assert late[0] == Retracted(("message",))
    assert seen(late)["message", None] == ("the reply", True)


def test_a_reply_that_the_agent_may_not_give_is_closed() -> None:
    presenter = Presenter()
    text = '{"nextStep": {"type": "Plan", "plan": "1."}, "message": "as planned"'
    presenter.feed(text)
    late = presenter.finish(text, rules=ReplyRules(allowed_steps=frozenset({"Chat"})))
    assert late == (Delta("message", "", truncated=True, role="narration"),)


def test_a_reply_longer_than_allowed_is_not_shown_further() -> None:
    presenter = Presenter(max_chars=40)
    assert presenter.feed('{"message": "') == ()
    assert presenter.feed("a" * 20)
    assert presenter.feed("b" * 20) == ()
    assert presenter.feed("c" * 20) == ()


# ---------------------------------------------------------------- work and memory


def _long(chars: int) -> str:
    entry = {"name": "look", "params": {"text": "word " * 10}}
    count = chars // 200
    words = "word `x` \n é \u2028 " * (chars // 40)
    return json.dumps(
        {"message": words, "nextStep": {"type": "Actions", "actions": [entry] * count}}
    )


def _calls(text: str) -> int:
    """How many functions run, in Python and C, while a text arrives in pieces of four characters."""
    presenter, count = Presenter(), 0

    def counted(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        for at in range(0, len(text), 4):
            presenter.feed(text[at : at + 4])
    finally:
        sys.setprofile(before)
    return count


def test_work_is_linear_in_the_reply() -> None:
    short, long = _long(10_000), _long(80_000)
    assert _calls(long) / len(long) < 1.05 * _calls(short) / len(short)


def test_a_late_piece_costs_what_an_early_one_costs() -> None:
    """No piece makes anything of the size of the reply, so nothing of that size is looked at."""
    presenter = Presenter()
    presenter.feed('{"message": "')
    tracemalloc.start()
    try:
        peaks: list[int] = []
        for count in range(40_000):
            if count % 10_000 == 1:
                tracemalloc.reset_peak()
                before = tracemalloc.get_traced_memory()[0]
                presenter.feed("word")
                peaks.append(tracemalloc.get_traced_memory()[1] - before)
            else:
                presenter.feed("word")
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert max(peaks) < 10_000
    assert kept < 2 * 160_000


def test_memory_does_not_grow_with_what_is_not_shown() -> None:
    presenter = Presenter(max_chars=10_000_000)
    presenter.feed('{"payloadChangeRequest": {"newElements": {"x": ["')
    tracemalloc.start()
    try:
        for _ in range(1_500):
            presenter.feed('word \\u00e9", {"k": 12}, "' * 10)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 30_000
