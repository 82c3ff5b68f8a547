"""`conversationToolCalls` in whole runs: what each tool brings, its bounds, and what a summary costs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from loopagent import Agent, App
from loopagent.conversation_port import ConversationRow
from loopagent.core.agent_spec import AgentSpec
from loopagent.core.conversation import Said
from loopagent.core.effects import ReadConversation
from loopagent.core.outcome import Outcome
from loopagent.core.prompt import reply_fields
from loopagent.core.state import RunState
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import ModelReply, ModelRequest, Usage
from loopagent.runtime.recall import Recall
from loopagent.runview import RunView
from loopagent.stores import MemoryStore


pytestmark = pytest.mark.anyio
DONE = {"taskComplete": True, "message": "Done."}


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"tool": tool, "input": given}


def calls(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"taskComplete": False, "conversationToolCalls": list(entries), **more}


class Talk:
    """An app with one conversation; each run plays its own replies."""

    def __init__(self, **options: Any) -> None:
        self.replies: list[Any] = []
        self.model = ScriptedModel(lambda _: self.replies.pop(0))
        self.app = App(agents=[Agent("guide", model=self.model, **options)])

    async def say(self, message: str, *replies: Any, **more: Any) -> RunView:
        self.replies += replies or [{"taskComplete": True, "message": f"Heard: {message}"}]
        run = await self.app.start("guide", message, **{"conversation": "c1", **more})
        return await self.app.wait(run.id)

    def told(self) -> list[dict[str, Any]]:
        """What the last run was told of its calls."""
        texts = [one.text for one in self.model.requests[-1].messages]
        shown = next(one for one in reversed(texts) if one.startswith('{"conversationToolCalls"'))
        found: list[dict[str, Any]] = json.loads(shown)["conversationToolCalls"]
        return found

    async def events(self, run: RunView, kind: str) -> list[dict[str, Any]]:
        found = [one async for one in self.app.events(run.id, live=False)]
        return [one["data"] for one in found if one["type"] == kind]


async def test_each_tool_brings_what_it_says() -> None:
    talk = Talk()
    async with talk.app:
        for text in ("The code is 7391.", "My dog is Rex."):
            await talk.say(text)
        run = await talk.say(
            "What was the code?",
            calls(
                call("getMessageBySequence", sequence=1),
                call("getMessagesByRange", startSequence=2, endSequence=99),
                call("searchConversation", query="CODE", role="User", endSequence=4),
                call("searchConversation", query=r"\d{4}", isRegex=True, maxResults=1),
                call("getMessageBySequence", sequence=77),
                call("searchConversation", query="(", isRegex=True),
                call("getMessageBySequence"),
            ),
            DONE,
        )
        assert run.state.status == "completed"
        one, part, found, matched, *failed = talk.told()
        first = {"sequence": 1, "role": "User", "text": "The code is 7391."}
        assert one == {"call": 1, "tool": "getMessageBySequence", "ok": True, "message": first}
        assert [entry["sequence"] for entry in part["messages"]] == [2, 3, 4, 5]
        assert part["note"] == "This is the end: 5 messages in all."
        assert found["matches"] == [first]
        assert [entry["sequence"] for entry in matched["matches"]] == [2]
        assert matched["olderNotSearched"] == 1
        assert [entry["error"]["code"] for entry in failed] == ["no_message", "invalid", "invalid"]
        read = await talk.events(run, "conversation.read")
        assert sorted(entry["ok"] for entry in read) == [False] * 3 + [True] * 4
        assert "7391" not in json.dumps(read)


async def test_a_summary_is_a_visible_model_call_that_is_counted() -> None:
    talk = Talk()
    async with talk.app:
        await talk.say("The code is 7391.")
        summary = ModelReply("#1 names a code.", usage=Usage(input_tokens=70, output_tokens=7))
        run = await talk.say(
            "Sum up.",
            calls(call("summarizeRange", startSequence=1, endSequence=2, lens="codes")),
            summary,
            DONE,
        )
        [entry] = talk.told()
        assert (entry["summary"], entry["startSequence"], entry["endSequence"]) == (
            "#1 names a code.",
            1,
            2,
        )
        assert "call" in entry
        assert "usage" not in json.dumps(entry)
        [asked] = await talk.events(run, "model.call")
        assert asked["purpose"] == "conversation"
        assert (asked["usage"]["inputTokens"], asked["usage"]["outputTokens"]) == (70, 7)
        assert run.state.usage.input_tokens >= 70
        assert run.state.usage.model_calls == 3
        request = talk.model.requests[-2]
        assert json.loads(request.messages[0].text)["lens"] == "codes"
        assert "7391" not in request.system


async def test_calls_over_the_bound_are_skipped_and_said_so() -> None:
    talk = Talk()
    async with talk.app:
        await talk.say("One.")
        await talk.say("Two.", calls(*[call("getMessageBySequence", sequence=1)] * 10), DONE)
        codes = [(one.get("error") or {}).get("code") for one in talk.told()]
        assert codes == [None] * 8 + ["skipped"] * 2


async def test_an_agent_is_told_that_there_is_no_conversation() -> None:
    talk = Talk(conversation_tools=True)
    async with talk.app:
        look = calls(call("getMessageBySequence", sequence=1))
        await talk.say("One.", look, DONE, conversation=None)
        [entry] = talk.told()
        assert entry["error"]["code"] == "no_conversation"


@pytest.mark.parametrize(
    ("setting", "conversation", "offered"),
    [(None, "c1", True), (None, None, False), (False, "c1", False), (True, None, True)],
)
async def test_the_prompt_names_the_tools_where_they_are(
    setting: bool | None, conversation: str | None, offered: bool
) -> None:
    talk = Talk(conversation_tools=setting)
    async with talk.app:
        run = await talk.say("One.", conversation=conversation)
        assert ("conversationToolCalls" in reply_fields(run.state.spec)) is offered
        assert ("conversationToolCalls" in talk.model.requests[0].system) is offered


async def test_fix_46_results_are_seen_before_a_question_or_a_completion_is_taken() -> None:
    for claim in ({"taskComplete": True}, {"nextStep": {"type": "Chat"}}):
        talk = Talk()
        async with talk.app:
            await talk.say("One.")
            look = calls(call("getMessageBySequence", sequence=1), message="Sure?")
            run = await talk.say("Two.", {**look, **claim}, DONE)
            assert run.state.status == "completed"
            assert talk.told()[0]["message"]["text"] == "One."
            assert run.state.result is not None
            assert run.state.result.message == "Done."


async def test_users_cannot_read_each_other_by_tools() -> None:
    talk = Talk()
    async with talk.app:
        await talk.say("The code is 7391.", user="ann")
        looks = calls(
            call("getMessageBySequence", sequence=1),
            call("getMessagesByRange", startSequence=1, endSequence=50),
            call("searchConversation", query="7391"),
        )
        await talk.say("Tell me.", looks, DONE, user="bob")
        assert talk.told()[0]["message"]["text"] == "Tell me."
        assert "7391." not in json.dumps([one.messages[0].text for one in talk.model.requests[1:]])
        assert "The code" not in json.dumps(talk.told())


# ---------------------------------------------------------------------- bounds


class Shelf(MemoryStore):
    """A store that holds one long conversation."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self.all = [
            Said(n, "User" if n % 2 else "AI", text, "run_0", 0.0)
            for n, text in enumerate(texts, 1)
        ]

    async def conversation(self, user: str, conversation: str, *, tenant: str) -> Any:
        return ConversationRow(
            conversation, user, tenant, "", 0.0, 0.0, len(self.all), len(self.all)
        )

    async def said(
        self, user: str, conversation: str, *, tenant: str, first: int = 1, last: int | None = None
    ) -> list[Said]:
        return self.all[first - 1 : last]


async def read(texts: list[str], tool: str, ticks: float = 0.0, **given: Any) -> Outcome:
    """Use a tool on a conversation; the clock goes on by so many seconds each time it is looked at."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += ticks
        return now

    async def summarise(request: ModelRequest) -> dict[str, Any]:
        shown = json.loads(request.messages[0].text)["messages"]
        return {"text": f"{len(shown)} messages", "model": "m", "usage": {}}

    run = RunState("run_1", AgentSpec(name="guide"), "m", conversation="c1")
    return await Recall(Shelf(texts), run, summarise, clock).read(
        ReadConversation("1:inline.conversation.0", tool, given)
    )


async def test_a_range_brings_fifty_messages_and_where_to_go_on() -> None:
    found = await read(["x"] * 120, "getMessagesByRange", startSequence=11, endSequence=120)
    assert (len(found.value["messages"]), found.value["next"]) == (50, 61)
    exact = await read(["x"] * 120, "getMessagesByRange", startSequence=71, endSequence=120)
    assert (len(exact.value["messages"]), exact.value.keys() - {"messages"}) == (50, set())


async def test_a_range_brings_so_many_characters() -> None:
    texts = ["y" * 16_000, "z" * 16_000, "last", "w" * 40_000]
    found = await read(texts, "getMessagesByRange", startSequence=1, endSequence=4)
    assert [one["sequence"] for one in found.value["messages"]] == [1, 2]
    assert found.value["next"] == 3
    long = await read(texts, "getMessagesByRange", startSequence=4, endSequence=10**30)
    [one] = long.value["messages"]
    assert (one["chars"], len(one["text"]) < 32_100) == (40_000, True)


async def test_a_search_is_bounded_in_matches_time_and_length() -> None:
    texts = [f"word {number}" for number in range(1, 301)]
    found = await read(texts, "searchConversation", query="word")
    assert [one["sequence"] for one in found.value["matches"]] == list(range(300, 280, -1))
    assert found.value["olderNotSearched"] == 280
    most = await read(texts, "searchConversation", query="word", maxResults=1000)
    assert len(most.value["matches"]) == 50
    slow = await read(texts, "searchConversation", 0.5, query="word 1")
    assert slow.value["olderNotSearched"] > 280
    deep = await read(["a" * 20_000 + "needle"], "searchConversation", query="needle")
    assert deep.value == {"matches": []}
    near = await read(
        ["b" * 5000 + "\nneedle " + "c" * 5000], "searchConversation", query="ne+dle", isRegex=True
    )
    [match] = near.value["matches"]
    assert "needle" in match["text"]
    assert len(match["text"]) == 300


@pytest.mark.parametrize(("length", "ok"), [(256, True), (257, False)])
async def test_a_pattern_has_a_longest_length(length: int, ok: bool) -> None:
    found = await read(["text"], "searchConversation", query="x" * length, isRegex=True)
    assert found.ok is ok


async def test_a_pattern_that_would_backtrack_takes_no_time() -> None:
    texts = ["a" * 20_000 + "!"] * 20
    async with asyncio.timeout(10):
        found = await read(texts, "searchConversation", query="(a+)+$", isRegex=True)
    assert found.ok


async def test_a_summary_is_bounded_in_messages_and_characters() -> None:
    found = await read(["x"] * 700, "summarizeRange", startSequence=1, endSequence=700, lens="all")
    assert (found.value["summary"], found.value["next"]) == ("500 messages", 501)
    found = await read(
        ["x" * 60_000] * 3, "summarizeRange", startSequence=1, endSequence=3, lens="all"
    )
    assert (found.value["summary"], found.value["next"]) == ("1 messages", 2)


async def test_a_range_that_is_none_is_said_so() -> None:
    wrong = await read(["x"] * 3, "getMessagesByRange", startSequence=3, endSequence=2)
    assert wrong.error is not None
    assert wrong.error.code == "invalid"
    beyond = await read(["x"] * 3, "getMessagesByRange", startSequence=4, endSequence=9)
    assert beyond.error is not None
    assert beyond.error.code == "no_message"
