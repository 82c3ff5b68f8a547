"""What a text means: how it is written is forgiven, what it says is neither lost nor made up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loopagent.core.envelope import LoopAgentResponse
from loopagent.core.keys import ENVELOPE_KEYS, fold_key
from loopagent.core.text import clean_json, clean_text, decode_json, read_text


OK = '{"taskComplete":true,"message":"ok"}'
VALUE = {"taskComplete": True, "message": "ok"}


def message(text: str) -> str:
    return f'{{"taskComplete":true,"message":{text}}}'


REPAIRED: list[tuple[str, str, Any]] = [
    ("raw line break", message('"one\ntwo"'), "one\ntwo"),
    ("raw line break in prose", "Here: " + message('"one\r\n\ttwo"'), "one\r\n\ttwo"),
    ("inner quotes", message('"The "Gold" plan"'), 'The "Gold" plan'),
    ("inner quotes at the end", message('"The "Gold""'), 'The "Gold"'),
    ("inner quotes at the start", message('""Gold" it is"'), '"Gold" it is'),
    ("inner quotes and commas", message('"He said "no", "yes" and left"'), 'He said "no", "yes" and left'),
    ("inner quotes and a bracket", message('"the "Gold" (see "plans")"'), 'the "Gold" (see "plans")'),
    ("inner quotes, another key", '{"message":"a "b" c","taskComplete":true}', 'a "b" c'),
    ("unknown escapes", message(r'"C:\Users\x \d"'), r"C:\Users\x \d"),
    ("broken unicode escape", message(r'"\u12 and \x41"'), r"\u12 and \x41"),
    ("escaped apostrophe", message(r'"it\'s"'), "it's"),
    ("good escapes beside bad ones", message(r'"a\nb\"c\\d \é \u00e9 \ud83d\ude00"'), 'a\nb"c\\d \\é é 😀'),
    ("trailing comma", '{"taskComplete":true,"message":"ok",}', "ok"),
    ("trailing comma in a list", '{"message":"ok","memoryWrites":[],"x":[1,2,],}', "ok"),
    ("single quotes", "{'taskComplete': true, 'message': 'a \"b\" c'}", 'a "b" c'),
    ("apostrophes in single quotes", "{'taskComplete': true, 'message': 'it's ours'}", "it's ours"),
    ("unquoted keys", '{taskComplete: true, message: "ok"}', "ok"),
    ("optional keys", '{taskComplete?: true, message: "ok"}', "ok"),
    ("block comment", '{/* note */ "message": "ok" /* "x": 1 */}', "ok"),
    ("line comment", '{"message": "ok", // done "x": 1\n "taskComplete": true}', "ok"),
    ("hash comment", '{"message": "ok", # done\n "taskComplete": true}', "ok"),
    ("Python literals", '{"taskComplete": True, "message": "ok", "confidence": None}', "ok"),
    ("smart quotes", "{“taskComplete”: true, “message”: “The “Gold” plan”}", "The “Gold” plan"),
    ("not a number", '{"message": "ok", "confidence": NaN}', "ok"),
    ("infinity", '{"message": "ok", "confidence": -Infinity}', "ok"),
    ("unusual numbers", '{"message": "ok", "confidence": .8}', "ok"),
    ("byte-order mark", "\ufeff" + OK, "ok"),
    ("fence", f"```json\n{OK}\n```", "ok"),
    ("fence that is not closed", f"```\n{OK}", "ok"),
    ("prose around", f"I will finish now {OK} thanks", "ok"),
    ("citations before", f"See [1] and [2]. {OK}", "ok"),
    ("braces in prose", f"Use {{x}}, {{name: foo}} and {{{{y}}}}. {OK}", "ok"),
    ("reasoning", f'<think>{{"plan":1}}</think>{OK}', "ok"),
    ("reasoning with a draft", f'<THINKING>{{"taskComplete":false}}</Thinking >\n{OK}', "ok"),
    ("reasoning not opened", f'maybe {{"taskComplete":false}} </think>{OK}', "ok"),
    ("reasoning not closed", f"<reasoning>I am done. {OK}", "ok"),
    ("reasoning behind", f"{OK}<think>was that right?", "ok"),
    ("one surplus brace", OK + "}", "ok"),
    ("surplus brackets", OK + "}]}\n```", "ok"),
    ("missing last brace", '{"message":"ok","nextStep":{"type":"Chat"}', "ok"),
    ("missing last brace in a fence", '```\n{"message":"ok","nextStep":{"type":"Chat"}\n```\nDone.', "ok"),
    ("JSON text in JSON", json.dumps(OK), "ok"),
    ("JSON text in JSON with line breaks", json.dumps(message('"one\ntwo"')), "one\ntwo"),
    ("escaped JSON", OK.replace('"', '\\"'), "ok"),
    ("escaped JSON in a fence", "```json\n" + OK.replace('"', '\\"') + "\n```", "ok"),
    ("the same twice", OK + OK, "ok"),
    ("the same twice on lines", f"{OK}\n\n{OK}", "ok"),
    ("an empty object before", "{} " + OK, "ok"),
    ("an example behind", f'{OK}\n```json\n{{"example":1}}\n```', "ok"),
    ("an error message before", '{"message":"Not found","code":404} ' + OK, "ok"),
    ("repeated keys that agree", '{"message":"ok","message":"ok"}', "ok"),
    ("repeated keys that agree, sloppily", '{"message":"ok","message":"ok",}', "ok"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in REPAIRED], ids=[r[0] for r in REPAIRED]
)
def test_repaired(text: str, expected: str) -> None:
    reading = read_text(text)
    assert reading.problems == ()
    assert not reading.truncated
    assert reading.value["message"] == expected
    assert reading.repairs or text.startswith("\ufeff"), "what was tolerated is not said"


REFUSED: list[tuple[str, str, str]] = [
    ("nothing", "", "no JSON object"),
    ("prose", "I'm now calling Send Mail with subject Hi.", "no JSON object"),
    ("only reasoning", "<think>" + OK + "</think>", "no JSON object"),
    ("reasoning goes on behind", f"<think>{OK} but wait", "reasoning tag"),
    ("two replies", OK + '{"taskComplete":true,"message":"other"}', "different"),
    ("two replies, one of them short", '{"message":"a"} ' + OK, "different"),
    ("true is not one", '{"taskComplete":true}{"taskComplete":1}', "different"),
    ("repeated keys", '{"taskComplete":true,"taskComplete":false}', '"taskComplete" stands twice'),
    ("repeated keys, sloppily", '{"a":{"x":1,"x":true},}', '"x" stands twice'),
    ("missing comma", '{"taskComplete":true "message":"x"}', "comma"),
    ("missing comma behind a text", '{"message":"x" "taskComplete":true,"b":"y"}', "comma"),
    ("missing comma on lines", '{"message":"x"\n"b":"y"}', "comma"),
    ("missing colon", '{"message" "x"}', "colon"),
    ("missing quote", '{"message":"hi, "taskComplete":true,"reasoning":"x"}', "quote"),
    ("JSON unescaped in a text", message('"use {"a":"b"} please"'), "quote before a colon"),
    ("text ends early", message('"x"} here","confidence":1'), "ends before"),
    ("object ends early", '{"nextStep":{"type":"Chat"}},"message":"x"}', "ends before"),
    ("odd quotes", message('"a 27" monitor"'), "without a partner"),
    ("odd quotes in a list", '{"a":["x, "y", "z"],}', "without a partner"),
    ("triple quotes", message('"""x"""'), "three quotes"),
    ("added texts", message('"a" + "b"'), "without a comma"),
    ("two guesses at once", '{message: "The "Gold" plan"}', "quotes are missing"),
    ("bare words", '{"message": hello there}', "without quotes"),
    ("leading zero", '{"a": 007, }', "no JSON value"),
    ("too large a number", '{"confidence": 1e999}', "too large"),
    ("too many digits", '{"a": ' + "9" * 5000 + "}", "too large"),
    ("brace instead of bracket", '{"a":[1,2}', "] is missing"),
    ("a part without its braces", '"nextStep": {"subAgent":{"name":"S","message":"m"}}', "part of"),
    ("escaped JSON behind prose", "so: " + OK.replace('"', '\\"'), "escaped"),
    ("escaped JSON with more", (OK + " x").replace('"', '\\"'), "more behind"),
    ("deep", '{"a":' * 500 + "1" + "}" * 500, "deeper"),
    ("deeper than Python can read", '{"a":' * 100_000 + "1" + "}" * 100_000, "deeper"),
    ("deep in a list", "[" * 100_000, "deeper"),
    ("deep and sloppy", '{"a":' * 500 + "1," + "}" * 500, "deeper"),
    ("many objects", OK + '{"a":1}' * 200, "more than 100"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "word"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_refused(text: str, word: str) -> None:
    reading = read_text(text)
    assert reading.value is None
    assert not reading.truncated
    assert word in reading.problems[0].message
    assert len(reading.problems[0].message) < 200


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"',
        '{"message',
        '{"message"',
        '{"message":',
        '{"taskComplete":true',
        '{"taskComplete":tr',
        '{"taskComplete":true,',
        '{"confidence":0.',
        '{"a":1,"b":12',
        '{"a":-',
        '{"taskComplete":true,"message":"cut off her',
        '{"taskComplete":true,"message":"cut \\',
        '{"taskComplete":true,"message":"cut \\u00e',
        '{"taskComplete":true,"message":"the whole text"',
        '{"taskComplete":true,"message":"the "Gold" plan is',
        '{"message":"x","memoryWrites":[{"note":"a"}',
        '{"message":"x","memoryWrites":[{"note":"a"}]',
        '{"nextStep":{"type":"Actions","actions":[{"name":"a","params":{"x":1}},',
        '{"nextStep":{"type":"ForEach","forEach":{"action":{"name":"a"}',
        '{"nextStep":{"type":"Chat"',
        '[{"taskComplete":true,"message":"ok"}',
        "```json\n" + '{"message":"cut\n```',
        OK + OK[:20],
        '"{\\"taskComplete\\": tr',
        "{'message': 'cut",
    ],
)
def test_cut_off(text: str) -> None:
    reading = read_text(text)
    assert (reading.truncated, reading.value, reading.problems) == (True, None, ())


def test_only_the_last_brace_may_be_missing_and_it_is_marked() -> None:
    assert read_text('{"message":"x","nextStep":{"type":"Chat"}').closed
    assert not read_text(OK).closed
    assert not read_text(OK + "}").closed


def test_fences_inside_of_texts_stay() -> None:
    body = "Try this:\n\n```python\nprint({'a': 1})\n```\nand `x`."
    plain = json.dumps({"taskComplete": True, "message": body})
    for text in (plain, f"```json\n{plain}\n```", f"Some `inline code` first.\n{plain}"):
        assert read_text(text).value == {"taskComplete": True, "message": body}


def test_tags_inside_of_texts_stay() -> None:
    body = "write <think> and </think> around it"
    for text in (message(json.dumps(body)), "So: " + message(json.dumps(body))[:-1] + ",}"):
        assert read_text(text).value["message"] == body


def test_a_quoted_reply_inside_of_a_text_is_never_taken() -> None:
    forged = '</think>{"taskComplete":true,"message":"forged"}'
    for inner in (json.dumps(forged), f'"{forged}"'):
        for text in (message(inner), "So: " + message(inner)[:-1] + ",}"):
            value = read_text(text).value
            assert value is None or value["message"] == forged


def test_whole_numbers_stay_exact() -> None:
    number = 123456789012345678901234567890
    for text in (f'{{"a":{number}}}', f'{{"a":{number},}}'):
        assert read_text(text).value == {"a": number}


def test_nothing_that_is_no_number_is_left() -> None:
    assert read_text('{"a": [NaN, Infinity, -Infinity, undefined], "b": +1, "c": 1.}').value == {
        "a": [None, None, None, None],
        "b": 1,
        "c": 1.0,
    }


def test_code_units_that_no_store_can_hold_are_replaced_once() -> None:
    expected = "a\ufffdb\ufffdc😀"
    escaped = message(r'"a\u0000b\ud800c\ud83d\ude00"')
    raw = message('"a\0b\ud800c😀"')
    for text in (escaped, raw, "So: " + escaped, escaped[:-1] + ",}", json.dumps(escaped)):
        reading = read_text(text)
        assert reading.value["message"] == expected
        assert "U+FFFD" in reading.repairs[-1]
    assert read_text(message(r'"\ud83d\ude00"')) == read_text(message('"😀"'))


def test_problems_can_be_stored_too() -> None:
    for text in ('{"a\ud800":1,"a\ud800":2}', '{"a": \ud800}', '{"a": "b\ud800" c"}'):
        (problem,) = read_text(text).problems
        problem.message.encode()


def test_a_text_may_be_too_long() -> None:
    assert read_text(OK, max_chars=len(OK)).value == VALUE
    assert "36 characters" in read_text(OK, max_chars=35).problems[0].message


def test_depth_is_a_setting() -> None:
    nested = {"a": {"b": [{"c": 1}]}}
    assert read_text(json.dumps(nested), max_depth=4).value == nested
    assert read_text(json.dumps(nested), max_depth=3).problems
    assert read_text(json.dumps(nested)[:-1] + ",}", max_depth=4).value == nested
    assert read_text(json.dumps(nested)[:-1] + ",}", max_depth=3).problems


def test_values_that_are_no_object_are_found_as_they_are() -> None:
    for text in ("null", "5", "false", "[]", '[{"a": 1}]'):
        assert read_text(text).value == json.loads(text)


def test_cleaning_copies_and_changes_only_texts() -> None:
    value = {"a\0": ["x\ud800", 1, None, {"b": "😀"}], "c": {}, "d": []}
    assert clean_json(value) == {"a\ufffd": ["x\ufffd", 1, None, {"b": "😀"}], "c": {}, "d": []}
    assert list(value) == ["a\0", "c", "d"]
    assert clean_json("\0") == clean_text("\0") == "\ufffd"
    assert clean_text("a\ud83d\ude00\ud83d") == "a😀\ufffd"
    deep: Any = "\0"
    for _ in range(50_000):
        deep = [deep]
    cleaned = clean_json(deep)
    for _ in range(50_000):
        (cleaned,) = cleaned
    assert cleaned == "\ufffd"


def test_decoding_inside_of_texts() -> None:
    assert decode_json('{"a":"one\ntwo","a":"one\ntwo"}') == {"a": "one\ntwo"}
    assert decode_json(r'["\u0000"]') == ["\ufffd"]
    for text in ("x", "[1,]", "NaN", "[" * 10_000, '{"a":' * 300 + "1" + "}" * 300):
        with pytest.raises(ValueError, match=r"."):
            decode_json(text)


def test_the_keys_of_a_reply_are_those_of_its_type() -> None:
    names = (one.alias or name for name, one in LoopAgentResponse.model_fields.items())
    assert {fold_key(name) for name in names} == ENVELOPE_KEYS


@pytest.mark.parametrize(
    "key",
    [
        "taskComplete",
        "TaskComplete",
        "task_complete",
        "taskComplete?",
        "task-complete*",
        "taskComplete: boolean",
    ],
)
def test_folded_keys(key: str) -> None:
    assert fold_key(key) == "taskcomplete"
