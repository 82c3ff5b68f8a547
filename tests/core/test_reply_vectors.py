"""Every row of the reply vectors, and what holds for any text whatever."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.reply import check_text, read_reply
from loopagent.core.steps import STEP_TYPES


ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "vectors" / "replies.jsonl")
    .read_text()
    .splitlines()
]
WARNED = {
    "T02",
    "T05",
    "T07",
    "T11",
    "T12",
    "T13",
    "R01",
    "R02",
    "R03",
    "I01",
    "I03",
    "I05",
    "I07",
    "I10",
    "I11",
    "I13",
}
VALID: list[dict[str, Any]] = [one.example for one in STEP_TYPES.values()] + [
    {
        "taskComplete": True,
        "message": 'Use ```json\n{"a": 1}\n``` and {braces}, "quotes" \\ and café 😀',
    },
]


@pytest.mark.parametrize("row", ROWS, ids=[one["id"] for one in ROWS])
def test_every_vector_gives_its_outcome(row: dict[str, Any]) -> None:
    found = check_text(row["raw"])
    assert found["outcome"] == row["expect"], found
    assert bool(found["problems"]) == (row["expect"] == "refuse")
    if row["id"] in WARNED:
        assert found["warnings"]


def test_repairs_keep_what_was_meant() -> None:
    by_id = {one["id"]: check_text(one["raw"]) for one in ROWS}
    assert by_id["T14"]["message"] == "line one\nline two"
    assert by_id["R02"]["message"] == 'The "Gold" plan is active'
    assert by_id["V06"]["reply"]["nextStep"]["subAgents"][1]["name"] == "Writer"
    assert by_id["I06"]["message"] == "Which?"


CASES: list[tuple[str, str]] = [
    ('<think>\n{"taskComplete": false}\n</think>\n{"taskComplete": true}', "complete"),
    ('```json\n{"taskComplete": true, "message": "a ```py\\nx\\n``` b"}\n```', "complete"),
    ('See `code` first. {"taskComplete": true}', "complete"),
    ('{"taskComplete": true}\n```json\n{"example": 1}\n```', "complete"),
    ('{"taskComplete": true}{"taskComplete": true}', "complete"),
    ('{}{"taskComplete": true}', "complete"),
    ('{"taskComplete": true, "message": "a"}{"taskComplete": true, "mess', "truncated"),
    ('{"taskComplete": true, "taskComplete": false}', "refuse"),
    ('{"taskComplete": true, "taskComplete": true}', "complete"),
    ('{"taskComplete": true, "message": "x", "confidence": NaN}', "complete"),
    ('{"taskComplete": true, "message": "C:\\Users\\x"}', "complete"),
    ('{\\"taskComplete\\": true}', "complete"),
    ("{“taskComplete”: true, “message”: “hi”}", "complete"),
    ('{"taskComplete": true, "n": 12', "truncated"),
    ('{"taskComplete": tr', "truncated"),
    (
        '{"nextStep": {"type": "Actions", "actions": [{"name": "a", "params": {"id": 1}}',
        "truncated",
    ),
    ('{"nextStep": "{\\"type\\": \\"Chat\\"}", "message": "q"}', "step:Chat"),
    (
        '{"nextStep": {"type": "Actions", "actions": "[{\\"name\\": \\"a\\", \\"params\\": \\"\\"}]"}}',
        "step:Actions",
    ),
    (
        '{"nextStep": {"type": "FOREACH", "forEach": {"collectionPath": "a", "action": {"name": "x"}}}}',
        "step:ForEach",
    ),
    (
        '{"nextStep": {"type": "sub_agent", "subAgent": {"name": "a", "message": "m", "terminateAfter": "False"}}}',
        "step:Sub-Agent",
    ),
    (
        '{"nextStep": {"type": "ClientTools", "clientTools": [{"name": "a", "Name": "b"}]}}',
        "refuse",
    ),
    ('{"taskComplete": 1}', "refuse"),
    ('{"a": ' * 5000, "truncated"),
    ("[" * 50_000, "refuse"),
    ("", "refuse"),
]


@pytest.mark.parametrize(("raw", "outcome"), CASES, ids=range(len(CASES)))
def test_texts_of_models(raw: str, outcome: str) -> None:
    found = check_text(raw)
    allowed = {outcome, "refuse"} if raw.startswith('{"a": ') else {outcome}
    assert found["outcome"] in allowed, found


def test_values_survive_repair() -> None:
    assert (
        check_text('{"taskComplete": true, "message": "C:\\Users\\x"}')["message"] == "C:\\Users\\x"
    )
    assert check_text("{“taskComplete”: true, “message”: “hi”}")["message"] == "hi"
    params = '{"nextStep": {"type": "Actions", "actions": [{"name": "a", "params": {"t": "{\\"id\\":1}", "why?": 1, "a:b": 2}}]}}'
    call = check_text(params)["reply"]["nextStep"]["actions"][0]
    assert call["params"] == {"t": '{"id":1}', "why?": 1, "a:b": 2}
    assert (
        check_text('{"taskComplete": true, "message": "a\\ud83d b\\u0000"}')["message"]
        == "a\ufffd b\ufffd"
    )
    big = check_text(
        '{"message": "x", "payloadChangeRequest": {"newElements": {"n": 12345678901234567890123}}}'
    )
    assert big["reply"]["payloadChangeRequest"]["newElements"]["n"] == 12345678901234567890123


def test_a_stop_for_length_is_never_used() -> None:
    assert check_text('{"taskComplete": true}', "length")["outcome"] == "truncated"


@given(st.text() | st.text(alphabet='{}[]":,\\/`<>think\n tru0Ea', max_size=200))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    found = check_text(text)
    assert (found["outcome"] == "refuse") == bool(found["problems"])
    json.dumps(found)


@given(
    st.sampled_from(VALID),
    st.sampled_from(["", "Sure.\n", "```json\n", "<think>hm {x}</think>"]),
    st.sampled_from(["", "\n```", " ok?"]),
)
def test_wrapping_does_not_change_what_is_read(
    reply: dict[str, Any], before: str, after: str
) -> None:
    text = json.dumps(reply)
    assert check_text(before + text + after)["reply"] == check_text(text)["reply"]


@given(st.sampled_from(VALID), st.data())
def test_a_prefix_is_never_taken_for_the_whole(reply: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(reply)
    cut = data.draw(st.integers(1, len(text) - 1))
    reading = read_reply(text[:cut])
    if reading.outcome in ("complete", "step", "continue"):
        missing = text[cut:]
        only_braces = not missing.strip("}")
        shorter = reading.reply.items() <= json.loads(text).items()
        assert only_braces or shorter or text[:cut].rstrip().endswith(('"', "}", "e", "l")), (
            text[:cut],
            reading.reply,
        )
        assert "[" not in text[:cut] or text[:cut].count("[") == text[:cut].count("]")


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        '{"a":',
        '[{"',
        '"\\',
        "```json\n",
        "<think>",
        '{"a":1}',
        "{a:",
        '{"a":"b" c',
        "\\u12",
        "{'a':'",
        "//",
        '" "',
    ],
)
def test_a_megabyte_takes_less_than_a_second(piece: str) -> None:
    text = (piece * (1_000_000 // len(piece) + 1))[:1_000_000]
    started = time.perf_counter()
    check_text(text)
    assert (
        time.perf_counter() - started < 20.0
    )  # under a second on an idle machine; the bound is for a busy one
    assert check_text(text + "x")["outcome"] == "refuse"
