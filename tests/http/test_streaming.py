"""A reply that streams from a provider's server through ours to clients over HTTP, piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.fakes.provider import FakeProvider
from tests.fakes.wire import Said
from tests.http.server import make_project, serving


Json = dict[str, Any]
AGENT = """
name: reader
model: {url}#script
actions: [look]
earlyStart: {early}
"""
CALL = '{"name": "look", "params": {"item": 1}}'
ASKS = (
    '{"message": "I look at \\u00e9verything.", "nextStep": {"type": "Actions", "actions": ['
    + CALL
    + ', {"name": "look", "params": {"item": 2}}]}, "taskComplete": false}'
)
ENDS = '{"taskComplete": true, "message": "Seen it all."}'


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as made:
        yield made


@pytest.fixture(scope="module")
def client(
    provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx2.Client]:
    folder: Path = make_project(tmp_path_factory.mktemp("streaming") / "project")
    for name, early in (("reader", "false"), ("quick", "true")):
        text = AGENT.format(url=provider.url, early=early).replace("reader", name)
        (folder / "agents" / f"{name}.agent.yaml").write_text(text)
    with serving(folder, folder.parent / "runs.db", LOOPAGENT_API_KEY="none-needed") as (made, _):
        yield made


class Stream:
    """Events of one connection, read as they come; `seen` is what a client would show."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.iter_lines()
        self.events: list[Json] = []
        self.numbers: list[int] = []

    def next(self) -> Json:
        """The next event."""
        for line in self._lines:
            if line.startswith("id: "):
                self.numbers.append(int(line[4:]))
            if line.startswith("data: "):
                self.events.append(json.loads(line[6:]))
                return self.events[-1]
        raise AssertionError(f"the stream has ended: {self.events}")

    def until(self, kind: str, **data: Any) -> Json:
        """Read on to an event."""
        while True:
            event = self.next()
            if event["type"] == kind and data.items() <= event["data"].items():
                return event

    def until_shown(self, turn: int, message: str) -> None:
        """Read on until so much of a message has come."""
        while self.message(turn) != message:
            self.next()

    @property
    def kinds(self) -> list[str]:
        return [one["type"] for one in self.events]

    def message(self, turn: int) -> str:
        """The message of a turn, as a client that does as it is told shows it."""
        shown = ""
        for one in self.events:
            data = one["data"]
            if one.get("turn") != turn:
                continue
            if one["type"] == "reply.snapshot":
                shown = next(it["text"] for it in data["fields"] if it["field"] == "message")
            elif one["type"] == "reply.retracted":
                shown = ""
            elif one["type"] == "reply.delta" and data["field"] == "message":
                shown += data["text"]
        return shown


@contextmanager
def stream(client: httpx2.Client, run_id: str, last: int | None = None) -> Iterator[Stream]:
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    with client.stream("GET", f"/runs/{run_id}/stream", headers=headers) as response:
        yield Stream(response)


def begin(client: httpx2.Client, agent: str = "reader") -> str:
    answer = client.post("/runs", json={"agent": agent, "message": "Go."})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_clients_read_the_message_while_the_provider_still_writes(
    client: httpx2.Client, provider: FakeProvider
) -> None:
    provider.say(Said(ASKS, held_before=("ok at", "false}")), ENDS)
    run = begin(client)
    with ExitStack() as opened:
        first = opened.enter_context(stream(client, run))
        first.until_shown(1, "I lo")  # the provider waits here
        assert client.get(f"/runs/{run}").json()["state"]["state"] == "streaming"
        late = opened.enter_context(stream(client, run, last=max(first.numbers)))
        snapshot = late.next()
        assert (snapshot["type"], "seq" in snapshot) == ("reply.snapshot", False)
        assert snapshot["data"]["fields"] == [
            {"field": "message", "text": "I lo", "done": False, "role": "narration"}
        ]
        provider.go_on()
        for one in (first, late):
            one.until("reply.delta", field="nextStep.actions", index=1)
            assert one.message(1) == "I look at éverything."
            assert "reply.received" not in one.kinds
        provider.go_on()
        for one in (first, late):
            one.until("run.completed")
            assert one.message(1) == "I look at éverything."
            assert one.message(2) == "Seen it all."
    assert first.numbers == list(range(1, len(first.numbers) + 1))
    assert late.numbers == first.numbers[-len(late.numbers) :]
    roles = [one["data"].get("role") for one in first.events if one["type"] == "reply.delta"]
    assert (roles[0], roles[-1]) in {("narration", "answer"), (None, "answer")}
    stored = client.get(f"/runs/{run}/events", params={"limit": 1000}).json()["events"]
    assert not [one for one in stored if one["type"] in {"reply.delta", "reply.snapshot"}]


def test_a_refused_reply_is_taken_back_over_the_wire(
    client: httpx2.Client, provider: FakeProvider
) -> None:
    bad = '{"message": "Not this.", "nextStep": {"type": "Nonsense"}}'
    provider.say(Said(bad, held_before=("Nonsense",)), ENDS)
    run = begin(client)
    with stream(client, run) as one:
        one.until_shown(1, "Not this.")
        provider.go_on()
        assert one.until("reply.retracted")["data"]["reason"] == "refused"
        assert one.next()["type"] == "reply.rejected"
        one.until("run.completed")
        assert (one.message(1), one.message(2)) == ("", "Seen it all.")


def test_after_a_cancel_nothing_more_comes(client: httpx2.Client, provider: FakeProvider) -> None:
    provider.say(Said(ASKS, held_before=("ok at",)))
    run = begin(client)
    with stream(client, run) as one:
        one.until_shown(1, "I lo")
        assert client.post(f"/runs/{run}/cancel", json={}).status_code == 200
        before = len(one.events)
        one.until("run.cancelled")
        assert not [it for it in one.kinds[before:] if it.startswith("reply.")]
    assert provider.wait_for_disconnect("script", 10)


def test_a_call_begins_while_the_provider_still_writes(
    client: httpx2.Client, provider: FakeProvider
) -> None:
    provider.say(Said(ASKS, held_before=("taskComplete",)), ENDS)
    run = begin(client, "quick")
    with stream(client, run) as one:
        one.until_shown(1, "I look at éverything.")
        provider.go_on()
        done = one.until("action.completed", callId="1:action.0")
        one.until("run.completed")
    assert done["data"]["result"] == "seen 1"
    assert done["data"]["startedEarlyMs"] > 0
    assert "action.discarded" not in one.kinds
