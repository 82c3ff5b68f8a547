"""Scripted models: which entry answers which call, what a file may hold, and how a run goes on in a new process."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.errors import ConfigError, ModelError
from loopagent.models.script import MAX_FILE_BYTES, ScriptEntry, read_script
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import ChatMessage, ModelReply, ModelRequest, Usage


pytestmark = pytest.mark.anyio
DONE = {"taskComplete": True, "message": "Done."}


def request(
    *replies: str, agent: str = "", run: str | None = "r1", task: str = "go"
) -> ModelRequest:
    """A request whose conversation already holds some replies of the model."""
    messages = [ChatMessage("user", task)]
    for reply in replies:
        messages += [ChatMessage("assistant", reply), ChatMessage("user", "result")]
    return ModelRequest("system text", messages, cache_key=run, agent=agent)


async def say(model: ScriptedModel, one: ModelRequest | None = None) -> str:
    return (await model.generate(one or request())).text


async def ended(model: ScriptedModel, one: ModelRequest | None = None) -> str:
    with pytest.raises(ModelError) as caught:
        await model.generate(one or request())
    assert caught.value.kind == "script_ended"
    return str(caught.value)


async def test_replies_come_in_order_and_end() -> None:
    model = ScriptedModel([DONE, "second", ModelReply("third", finish="length")])
    first = request()
    assert json.loads(await say(model, first)) == DONE
    assert await say(model) == "second"
    third = await model.generate(request())
    assert (third.text, third.finish, third.model) == ("third", "length", "scripted:python")
    assert "all 3 entries have been played" in await ended(model)
    assert model.requests[0] is first
    assert len(model.requests) == 4
    await model.aclose()


async def test_a_function_answers_by_the_request() -> None:
    def plain(one: ModelRequest) -> str | None:
        return f"{len(one.messages)} messages" if one.agent == "a" else None

    async def waiting(one: ModelRequest) -> dict[str, Any]:
        return {"message": one.system}

    assert await say(ScriptedModel(plain), request(agent="a")) == "1 messages"
    assert "returned None" in await ended(ScriptedModel(plain))
    assert await say(ScriptedModel(waiting)) == '{"message": "system text"}'


async def test_an_error_is_raised_and_has_its_kind() -> None:
    planned = ModelError("quota", "planned")
    entry = {"error": {"status": 429, "message": "slow down", "retryAfter": 2}}
    model = ScriptedModel([planned, entry, {"error": {"kind": "connection"}}, {"error": {}}])
    with pytest.raises(ModelError) as caught:
        await model.generate(request())
    assert caught.value is planned
    with pytest.raises(ModelError, match=r"rate limited \(HTTP 429\): slow down") as caught:
        await model.generate(request())
    assert (caught.value.kind, caught.value.retry_after_seconds) == ("rate_limit", 2.0)
    for kind in ("connection", "server"):
        with pytest.raises(ModelError) as caught:
            await model.generate(request())
        assert caught.value.kind == kind


async def test_a_stream_comes_in_the_pieces_of_the_script() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    entries: list[dict[str, Any]] = [
        {"chunks": ["Hel", "lo"], "delayMs": 100},
        {"raw": "abcdefg", "chunks": 3},
        {"raw": "whole", "delayMs": 50},
        {"chunks": ["par", "t"], "error": {"kind": "connection"}},
    ]
    model = ScriptedModel(entries, sleep=sleep)
    pieces: list[str] = []
    for _ in range(3):
        await model.generate(request(), on_delta=pieces.append)
    assert pieces == ["Hel", "lo", "abc", "def", "g", "whole"]
    assert waits == [0.05, 0.05, 0.05]
    with pytest.raises(ModelError) as caught:
        await model.generate(request(), on_delta=pieces.append)
    assert (pieces[-2:], caught.value.partial) == (["par", "t"], "part")


async def test_a_reply_not_streamed_waits_as_long() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    model = ScriptedModel([{"chunks": ["Hel", "lo"], "delayMs": 100}], sleep=sleep)
    assert await say(model) == "Hello"
    assert waits == [0.1]


async def test_a_sink_may_be_asynchronous() -> None:
    pieces: list[str] = []

    async def sink(text: str) -> None:
        pieces.append(text)

    await ScriptedModel([{"chunks": ["a", "", "b"]}]).generate(request(), on_delta=sink)
    assert pieces == ["a", "b"]


async def test_usage_finish_and_refusal() -> None:
    usage = {"inputTokens": 10, "cachedTokens": 4, "outputTokens": 2, "costUsd": 0.25}
    model = ScriptedModel([{"finishReason": "refusal", "refusal": "No.", "usage": usage}])
    reply = await model.generate(request())
    assert (reply.text, reply.finish, reply.refusal) == ("", "refusal", "No.")
    assert reply.usage == Usage(10, 4, 2, 0, 0.25)


async def test_entries_for_agents() -> None:
    model = ScriptedModel(
        [
            {"raw": "p1"},
            {"raw": "c1", "agent": "child"},
            {"raw": "p2"},
            {"raw": "c2", "agent": "child"},
        ]
    )
    assert await say(model, request(agent="parent")) == "p1"
    assert await say(model, request(agent="child", run="r1/1:sub.0")) == "c1"
    assert await say(model, request("c1", agent="child", run="r1/1:sub.0")) == "p2"
    assert "1 of 4 entries are left, but none fits this call of agent 'parent'" in await ended(
        model, request("p1", agent="parent")
    )


async def test_an_entry_with_a_condition_waits_for_its_text() -> None:
    model = ScriptedModel(
        [{"raw": "sorry", "when": {"contains": "error 42"}}, {"raw": "one"}, {"raw": "two"}]
    )
    assert await say(model) == "one"
    assert await say(model, request("one", task="error 42")) == "sorry"
    assert await say(model, request("one", "sorry", task="error 42")) == "two"


async def test_every_run_plays_from_the_start() -> None:
    model = ScriptedModel(["one", "two"])
    assert await say(model, request(run="a")) == "one"
    assert await say(model, request(run="b")) == "one"
    assert await say(model, request("one", run="a")) == "two"
    shared = ScriptedModel(["one", "two"], per_run=False)
    assert await say(shared, request(run="a")) == "one"
    assert await say(shared, request(run="b")) == "two"


async def test_only_the_latest_requests_are_kept() -> None:
    model = ScriptedModel(lambda _: "x", keep_requests=5)
    for _ in range(100):
        await say(model)
    assert 5 <= len(model.requests) <= 10


SCRIPT: list[Any] = [
    {"raw": "one"},
    {"error": {"status": 429}},
    {"raw": ""},
    {"raw": "two"},
    {"raw": "two"},
    {"raw": "cut", "finishReason": "length"},
    {"raw": "three"},
]


async def play(model: ScriptedModel, replies: list[str]) -> str | None:
    """The next usable reply, failed tries passed over; None at the end of the script."""
    while True:
        try:
            reply = await model.generate(request(*replies))
        except ModelError as error:
            if error.kind == "script_ended":
                return None
            continue
        if reply.text and reply.finish == "stop":
            return reply.text


@pytest.mark.parametrize("crash_after", [0, 1, 2, 3, 4])
async def test_a_new_process_goes_on_where_the_conversation_is(crash_after: int) -> None:
    replies: list[str] = []
    model = ScriptedModel(SCRIPT)
    while True:
        if len(replies) == crash_after:
            model = ScriptedModel(SCRIPT)
        text = await play(model, replies)
        if text is None:
            break
        replies.append(text)
    assert replies == ["one", "two", "two", "three"]


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=12), st.data())
async def test_any_script_survives_a_new_process_at_any_point(
    script: list[str], data: st.DataObject
) -> None:
    crashes = data.draw(st.sets(st.integers(0, len(script))))
    model = ScriptedModel(script)
    replies: list[str] = []
    for number in range(len(script)):
        if number in crashes:
            model = ScriptedModel(script)
        replies.append(await say(model, request(*replies)))
    assert replies == script


async def test_replies_of_another_hand_use_up_an_entry_each() -> None:
    model = ScriptedModel(["one", "two", "three", "four"])
    assert await say(model, request("a partial text", "two")) == "three"
    model = ScriptedModel(["one", "two"])
    assert "all 2 entries" in await ended(model, request("x", "y", "z"))


async def test_a_compacted_conversation_still_tells_the_place() -> None:
    model = ScriptedModel(["one", "two", "three", "four"])
    assert await say(model, request("three")) == "four"


async def test_a_fork_starts_at_its_turn() -> None:
    model = ScriptedModel(["one", "two", "three"])
    for replies in ([], ["one"], ["one", "two"]):
        await say(model, request(*replies, run="original"))
    assert await say(model, request("one", run="fork")) == "two"


async def test_a_condition_counts_at_the_time_of_its_reply() -> None:
    script: list[Any] = [{"raw": "late", "when": {"contains": "result"}}, "one", "two"]
    assert await say(ScriptedModel(script), request("one")) == "late"
    assert await say(ScriptedModel(script), request("one", "late")) == "two"


async def test_a_tree_goes_on_in_a_new_process() -> None:
    script: list[Any] = [
        "p1",
        {"raw": "c1", "agent": "child"},
        {"raw": "c2", "agent": "child"},
        "p2",
        {"raw": "d1", "agent": "child"},
        "p3",
    ]
    child = request("c1", agent="child", run="r1/1:sub.0")
    assert await say(ScriptedModel(script), child) == "c2"
    model = ScriptedModel(script)
    assert await say(model, request("p1", "p2", agent="parent")) == "p3"
    assert await say(model, request(agent="child", run="r1/2:sub.0")) == "d1"


async def test_a_model_error_in_a_list_is_passed_over_by_a_new_process() -> None:
    script: list[Any] = ["one", ModelError("server", "x"), "two", "three"]
    assert await say(ScriptedModel(script), request("one", "two")) == "three"


async def test_a_json_lines_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    lines = [json.dumps(DONE), "", '  {"raw": "žluť", "agent": "b"}', '"just text"']
    path.write_text("\ufeff" + "\n".join(lines) + "\n", "utf-8")
    entries = read_script(path)
    assert [(one.text, one.agent, one.where) for one in entries] == [
        (json.dumps(DONE), None, f"{path}:1:1"),
        ("žluť", "b", f"{path}:3:3"),
        ("just text", None, f"{path}:4:1"),
    ]
    model = ScriptedModel.from_file(path)
    assert model.name == f"scripted:{path}"
    assert await say(model) == json.dumps(DONE)


def test_a_yaml_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.yaml"
    path.write_text(
        "- taskComplete: false\n"
        "  message: yes is a word, 2026-11-30 too\n"
        "  nextStep: {type: Chat}\n"
        "  delayMs: 5\n"
        "- raw: |\n"
        "    not json\n"
        "  when: {contains: weather}\n"
        "- error: {status: 500}\n"
        "- just text\n",
        "utf-8",
    )
    entries = read_script(path)
    assert json.loads(entries[0].text) == {
        "taskComplete": False,
        "message": "yes is a word, 2026-11-30 too",
        "nextStep": {"type": "Chat"},
    }
    assert entries[0].delay_ms == 5
    assert entries[1] == ScriptEntry("not json\n", contains="weather", where=f"{path}:5:3")
    assert [one.answers for one in entries] == [True, True, False, True]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.jsonl", '{"raw": "x"}\n{"raw": }\n', "a.jsonl:2:9: not JSON"),
        ("a.jsonl", "[" * 100_000, "a.jsonl:1:"),
        ("a.yaml", "- raw: x\n  raw: y\n", "a.yaml:2:3: "),
        ("a.yaml", "- {raw: x\n", "a.yaml:2:1: not YAML"),
        ("a.yaml", "raw: x\n", "a.yaml:1:1: (file): must be a list"),
        ("a.yaml", "[]\n", "a.yaml:1:1: the script has no entries"),
        ("a.jsonl", "\n", "a.jsonl:1:1: the script has no entries"),
        ("a.yaml", "", "a.yaml:1:1: "),
        ("a.yaml", "- 5\n", "a.yaml:1:3: an entry is a reply object or a text, not a number"),
        ("a.yaml", "- agent: x\n", "a.yaml:1:3: an entry needs a reply"),
        ("a.yaml", "- raw: 5\n", "raw: must be a text"),
        ("a.yaml", "- {raw: x, message: y}\n", "leave out message"),
        ("a.yaml", "- {raw: x, chunks: [y]}\n", "chunks: joined they must give"),
        ("a.yaml", "- {raw: x, chunks: 0}\n", "chunks: must be"),
        ("a.yaml", "- {raw: x, chunks: true}\n", "chunks: must be"),
        ("a.yaml", "- {raw: x, finishReason: done}\n", "finishReason: must be one of stop, length"),
        ("a.yaml", "- {raw: x, delayMs: -1}\n", "delayMs: must be a number of at least 0"),
        (
            "a.yaml",
            "- {raw: x, usage: {input: 1}}\n",
            "usage.input: unknown; did you mean inputTokens",
        ),
        (
            "a.yaml",
            "- {raw: x, usage: {inputTokens: many}}\n",
            "usage.inputTokens: must be a number",
        ),
        ("a.yaml", "- {raw: x, usage: [1]}\n", "usage: must be an object"),
        ("a.yaml", "- {raw: x, when: weather}\n", "when: must be an object with contains"),
        ("a.yaml", "- {raw: x, when: {is: y}}\n", "when.is: unknown; known are contains"),
        ("a.yaml", "- {raw: x, agent: [y]}\n", "agent: must be a text, not a list"),
        ("a.yaml", "- error: {kind: oops}\n", "error.kind: must be one of rate_limit"),
        ("a.yaml", "- error: 500\n", "error: must be an object with status"),
        ("a.yaml", "- error: {code: 500}\n", "error.code: unknown"),
        ("a.jsonl", '{"payload": NaN}', "a.jsonl:1:1: the reply cannot be written as JSON"),
    ],
)
def test_a_wrong_file_is_told_by_place(
    tmp_path: Path, name: str, text: str, complaint: str
) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        read_script(path)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_all_complaints_come_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("- raw: 1\n- fine\n- chunks: 0\n", "utf-8")
    with pytest.raises(ConfigError) as caught:
        read_script(path)
    assert [one.removeprefix(str(path))[:4] for one in caught.value.problems] == [":1:3", ":3:3"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.yaml: cannot read the script"):
        read_script(tmp_path / "nothing.yaml")
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_script(binary)


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(ConfigError, match="larger than"):
        read_script(path)


def test_aliases_do_not_multiply_without_end(tmp_path: Path) -> None:
    path = tmp_path / "bomb.yaml"
    levels = "\n".join(f"- &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9))
    path.write_text(f"- &l0 [x]\n{levels}\n", "utf-8")
    with pytest.raises(ConfigError, match="too large"):
        read_script(path)


def test_a_wrong_entry_in_a_list_is_told_by_number() -> None:
    with pytest.raises(ConfigError, match="scripted:python, entry 2: chunks"):
        ScriptedModel(["fine", {"chunks": 0}])


async def test_old_positions_are_given_up_but_conversations_remember() -> None:
    model = ScriptedModel(["one", "two"], keep_runs=2)
    for run in ("a", "b", "c"):
        assert await say(model, request(run=run)) == "one"
    assert await say(model, replace(request("one"), cache_key="a")) == "two"


async def test_a_process_that_gets_a_run_back_goes_on_behind_what_others_played() -> None:
    first, other = (ScriptedModel(["one", "two", "three", "four"]) for _ in range(2))
    assert await say(first, request()) == "one"
    assert await say(other, request("one")) == "two"
    assert await say(other, request("one", "two")) == "three"
    assert await say(first, request("one", "two", "three")) == "four"
