"""Whatever a model writes: reading it ends, soon, without raising, and never makes more of it than it says."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loopagent.core.feedback import refusal_feedback
from loopagent.core.reply import Reading, check_text, read_reply
from loopagent.core.text import read_text


PIECES = st.sampled_from(
    [
        *'{}[]":,\\\'`/*#<>-+.01 \n\t',
        *("“", "”", "\ufeff", "\ud800", "\0", "true", "None", "NaN", "null", "```json\n", "/*", "//", "\\u"),
        *('"taskComplete"', '"message"', '"nextStep":', '"type":', '"Chat"', '"actions":', "taskComplete:"),
        *('{"taskComplete":true}', "<think>", "</think>", "<reasoning>", '{\\"', "é", "😀", "word "),
    ]
)  # fmt: skip
SOUP = st.lists(PIECES, max_size=40).map("".join)
WORDS = st.text("ab .,!'{}[]:`\n\"\\é😀<>/#", max_size=20)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
OBJECT = st.dictionaries(WORDS, DATA, max_size=3)
NAMES = st.text("abc ", min_size=1, max_size=5).filter(str.strip)
STEPS = st.one_of(
    st.just({"type": "Chat"}),
    st.fixed_dictionaries({"type": st.just("Retry")}, optional={"messageIndex": st.integers(0, 9)}),
    st.fixed_dictionaries({"type": st.just("Plan"), "plan": NAMES}),
    st.fixed_dictionaries(
        {
            "type": st.just("Actions"),
            "actions": st.lists(
                st.fixed_dictionaries({"name": NAMES, "params": OBJECT}), min_size=1, max_size=3
            ),
        }
    ),
)
SIDE = {
    "reasoning": WORDS,
    "confidence": st.floats(0, 1),
    "payloadChangeRequest": st.fixed_dictionaries({}, optional={"newElements": OBJECT}),
    "scratchpad": st.fixed_dictionaries({"notes": WORDS}),
    "artifactToolCalls": st.lists(
        st.fixed_dictionaries({"artifactId": NAMES, "tool": NAMES, "input": OBJECT}), max_size=2
    ),
}
REPLIES = st.fixed_dictionaries(
    {"message": NAMES},
    optional={"taskComplete": st.booleans(), "nextStep": STEPS, **SIDE},
).flatmap(lambda reply: st.permutations(list(reply.items())).map(dict))
RENDERED = st.tuples(
    REPLIES, st.sampled_from([None, 2]), st.booleans()
).map(lambda one: (one[0], json.dumps(one[0], indent=one[1], ensure_ascii=one[2])))  # fmt: skip


def decision(reading: Reading) -> tuple[Any, ...]:
    flags = (reading.claims_complete, reading.implied_chat, reading.nudge, reading.reads_first)
    return (reading.outcome, reading.step_type, reading.reply, flags)


def check(text: str) -> None:
    """Read a text and use everything that comes of it."""
    result = check_text(text)
    json.dumps(result, ensure_ascii=False).encode()
    reading = read_reply(text)
    assert decision(reading) == decision(read_reply(text))
    refusal_feedback(reading.problems).encode()
    assert bool(reading.problems) == (reading.outcome == "refuse")


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    check(text)


@settings(max_examples=200)
@given(SOUP)
@example('{"message":"a"b"c","taskComplete":true}')
def test_any_soup_of_json_can_be_read(text: str) -> None:
    check(text)


@given(st.binary(max_size=60))
def test_any_bytes_can_be_read(data: bytes) -> None:
    check(data.decode("utf-8", "surrogatepass" if data.isascii() else "surrogateescape"))


@settings(max_examples=200)
@given(RENDERED, st.data())
def test_a_damaged_reply_can_be_read(rendered: tuple[Any, str], data: st.DataObject) -> None:
    text = rendered[1]
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, min(len(text), at + 4)))
    check(text[:at] + data.draw(SOUP | st.just("")) + text[until:])


@given(DATA)
def test_any_value_can_be_a_reply(value: Any) -> None:
    check(json.dumps(value))


KEYS = st.sampled_from(
    ["taskComplete", "message", "nextStep", "type", "actions", "name", "params", "subAgent", "forEach",
     "responseForm", "questions", "scratchpad", "taskList", "upsert", "confidence", "pipeline", "steps",
     "Message", "next_step", "response", "payloadChangeRequest", "automaticCommands", "input", "messageIndex"]
)  # fmt: skip
LIKELY = st.recursive(
    st.sampled_from([None, True, False, 0, 1.5, "", "true", "Chat", "Actions", "{}", "[]", '{"name":"a"}']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=200)
@given(LIKELY)
def test_any_use_of_the_protocols_keys_can_be_read(value: Any) -> None:
    check(json.dumps(value))


@given(RENDERED)
def test_a_good_reply_is_taken_as_it_is(rendered: tuple[Any, str]) -> None:
    reply, text = rendered
    reading = read_reply(text)
    assert reading.outcome != "refuse"
    assert reading.reply == {key: one for key, one in reply.items() if key in reading.reply}
    missing = reply.keys() - reading.reply.keys()
    dropped = reply.get("taskComplete") and reply.get("nextStep", {}).get("type") == "Retry"
    assert missing == ({"nextStep"} if dropped else set())


WRAPPINGS: list[tuple[str, Callable[[str], str]]] = [
    ("fence", lambda text: f"```json\n{text}\n```"),
    ("plain fence", lambda text: f"```\n{text}\n```\nAnything else?"),
    ("open fence", lambda text: f"```json\n{text}"),
    ("prose", lambda text: f"Here is my decision, see [1]:\n{text}\nThanks {{name}}!"),
    ("thought", lambda text: f'<think>{{"taskComplete": true}} or not?</think>\n{text}'),
    ("text", json.dumps),
    ("list", lambda text: f"[{text}]"),
    ("wrapper", lambda text: f'{{"response": {text}}}'),
    ("surplus", lambda text: text + "}"),
    ("twice", lambda text: f"{text}\n{text}"),
    ("example", lambda text: f'{{"example": 1}}\n{text}'),
    ("comma", lambda text: text.rstrip()[:-1] + ",}"),
    ("comment", lambda text: f"{text.rstrip()[:-1]} /* done */ }}"),
    ("capitals", lambda text: text.replace('"message":', '"Message":', 1)),
]


@pytest.mark.parametrize("wrap", [one[1] for one in WRAPPINGS], ids=[one[0] for one in WRAPPINGS])
@settings(max_examples=40)
@given(rendered=RENDERED)
def test_wrapping_changes_nothing(wrap: Callable[[str], str], rendered: tuple[Any, str]) -> None:
    text = rendered[1]
    assert decision(read_reply(wrap(text))) == decision(read_reply(text))


@settings(max_examples=200)
@given(RENDERED, st.data())
def test_a_part_of_a_reply_decides_nothing(rendered: tuple[Any, str], data: st.DataObject) -> None:
    text = rendered[1]
    at = data.draw(st.integers(0, len(text) - 1))
    part = text[:at]
    reading = read_reply(part)
    if part.rstrip().endswith("}"):
        try:
            json.loads(part + "}")
        except ValueError:
            pass
        else:
            return  # only the last brace is missing, as far as anybody can tell
    assert reading.outcome == ("truncated" if part.strip() else "refuse")
    assert (reading.reply, reading.response) == ({}, None)


QUOTED = st.lists(
    st.sampled_from(["one", '"Gold"', '"two words"', '"a", "b"', "it's", "end."]), min_size=1
)


@given(
    QUOTED.map(" and ".join),
    st.sampled_from(['{"message":"%s"}', '{"message":"%s","taskComplete":true}']),
)
def test_unescaped_quotes_around_words_are_kept(said: str, frame: str) -> None:
    assert read_text(frame % said).value["message"] == said


NOISE = st.text('"ab ,.1', max_size=12)


@settings(max_examples=200)
@given(
    NOISE,
    st.sampled_from(['{"message":"%s","taskComplete":true}', '{"x":[1,{"message":"%s"}],"y":"z"}']),
)
def test_unescaped_quotes_anywhere_are_kept_or_refused(said: str, frame: str) -> None:
    reading = read_text(frame % said)
    meant = json.loads(frame % json.dumps(said)[1:-1])
    assert reading.problems or reading.truncated or reading.value == meant


SIZE = 1_000_000
OK = '{"taskComplete":true,"message":"ok"}'
ACTIONS = '{"nextStep":{"type":"Actions","actions":[%s]}}'
FAMILIES: dict[str, tuple[str, str, str]] = {
    "braces": ("", "{", ""),
    "brackets": ("", "[", ""),
    "closers": ("", "}", ""),
    "open texts": ("", '[{"', ""),
    "escapes": ("", '"\\', ""),
    "blank braces": ("", "{ ", ""),
    "words in braces": ("", "{aaaaaaa ", ""),
    "one long word": ("{", "a", "}"),
    "fences": ("", "```json\n", ""),
    "fenced objects": ("", "```json\n{}\n```\n", ""),
    "fenced replies": ("", f"```json\n{OK}\n```\n", ""),
    "thoughts": ("", "<think>", ""),
    "mixed thoughts": ("", "<think><thinking><reasoning>", ""),
    "thought objects": ("", '<think>{"a":1}', ""),
    "ends of thoughts": ("", "</think>", ""),
    "closed thoughts": ("", "<think>a</think>", ""),
    "deep objects": ("", '{"a":', ""),
    "deep both": ("", '{"a":[', ""),
    "deep bare": ("", "{a:", ""),
    "objects": ("", '{"a":1}', ""),
    "bare objects": ("", "{a:b}", ""),
    "prose in braces": ("", "{x: y} ", ""),
    "quotes": ('{"a":"', '"', '"}'),
    "quotes and blanks": ('{"a":"', '" ', '"}'),
    "quoted words": ('{"a":"', ' "x" y', '"}'),
    "quotes and commas": ('{"a":"', 'a", "b ', '"}'),
    "quotes and braces": ('{"a":"', 'a"} b ', '"}'),
    "quotes and comments": ('{"a":"x" ', '"/*', ""),
    "apostrophes": ("{'a':'", "it's ", "'}"),
    "smart quotes": ("{“a”:“", "“”", "”}"),
    "escaped quotes": ('{"a":"', '\\"', '",}'),
    "good escapes": ('{"a":"', "\\n", '",}'),
    "bad escapes": ('{"a":"', "\\q", '",}'),
    "line breaks": ('{"a":"', "\n", '",}'),
    "letters": ('{"a":"', "x", '",}'),
    "surrogates": ('{"a":"', "\\ud800", '"}'),
    "NULs": ('{"a":"', "\0", '"}'),
    "escaped JSON": ("", '{\\"', ""),
    "numbers": ('{"a":[', "1,", "],}"),
    "digits": ('{"a":', "9", ",}"),
    "members": ('{"a":[', '{"b":1},', "],}"),
    "repeated members": ("{", '"a":[1,2,3],', '"a":[1,2,3]}'),
    "comments": ('{"a":', "/**/", "1,}"),
    "open comments": ('{"a":"x" ', "/*", ""),
    "lines of comments": ('{"a":', "//\n", "1,}"),
    "blanks": ("{", " ", '"a":1,}'),
    "replies in a list": ("[", f"{OK},", f"{OK}]"),
    "calls": ('{"nextStep":{"type":"Actions","actions":[', '{"name":"a"},', '{"name":"a"}]}}'),
    "empty calls": ('{"nextStep":{"type":"Actions","actions":[', "{},", "{}]}}"),
    "texts as calls": ('{"nextStep":{"type":"Actions","actions":[', '"{}",', '"{}"]}}'),
    "questions": ('{"responseForm":{"questions":[', '{"type":"text"},', "{}]}}"),
    "payload": ('{"payloadChangeRequest":{"newElements":{"a":[', '{"a":"1"},', "1]}}}"),
    "long type": ('{"nextStep":{"type":"', "x", '"}}'),
    "long key": ('{"message":"m","', "? ", '":1}'),
}


def text_of(family: str, size: int) -> str:
    before, unit, after = FAMILIES[family]
    return before + unit * ((size - len(before) - len(after)) // len(unit)) + after


BOUND_SECONDS = 10
"""Under a second without measuring coverage; the bound tells linear from worse on a busy machine too."""


def seconds(text: str) -> float:
    """Time of this process alone, so that others at work do not count."""
    begin = time.process_time()
    check_text(text)
    return time.process_time() - begin


@pytest.mark.parametrize("family", FAMILIES)
def test_a_megabyte_takes_less_than_a_second(family: str) -> None:
    assert seconds(text_of(family, SIZE)) < BOUND_SECONDS


@pytest.mark.parametrize("family", FAMILIES)
def test_time_grows_with_the_length_only(family: str) -> None:
    small = min(seconds(text_of(family, SIZE // 16)) for _ in range(2))
    assert seconds(text_of(family, SIZE // 4)) < 12 * small + 1


def test_many_unknown_keys_take_less_than_a_second() -> None:
    keys = ",".join(f'"k{number}":1' for number in range(80_000))
    for text in (
        f'{{"message":"m",{keys}}}',
        f'{{"nextStep":{{"type":"Retry",{keys}}}}}',
        f"{{{keys},}}",
    ):
        assert seconds(text) < BOUND_SECONDS


def test_nesting_that_is_closed_takes_less_than_a_second() -> None:
    for opening, inner, closing in (("[", "", "]"), ('{"a":', "1", "}"), ('{"a":[', "1,", "]}")):
        assert seconds(opening * 100_000 + inner + closing * 100_000) < BOUND_SECONDS


def test_doubling_repeated_keys_take_less_than_a_second() -> None:
    text = "1"
    for _ in range(16):
        text = f'{{"a":{text},"a":{text}}}'
    assert seconds(text) < BOUND_SECONDS
