"""Log entries: what goes in comes out, in few bytes, and damage is told."""

import hashlib
from contextlib import suppress
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zstandard import DICT_TYPE_RAWCONTENT, ZstdCompressionDict, ZstdCompressor

from loopagent.core.events import CancelRequested, MessagePosted, Reported, Settled, Started
from loopagent.core.facts import Fact
from loopagent.core.log import VERSION, Entry, decode, decode_all, encode
from loopagent.core.log_dictionary import FORMAT_1
from loopagent.core.outcome import ErrorInfo, Outcome
from loopagent.core.state import Message
from loopagent.errors import CorruptError


T = TypeVar("T")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
floats = st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=3)
errors = st.builds(ErrorInfo, texts, texts, st.booleans(), st.booleans())
parts = st.lists(objects, max_size=2).map(tuple)
outcomes = st.builds(
    Outcome,
    st.booleans(),
    values,
    st.none() | errors,
    floats,
    st.integers(1, 10),
    st.just(0.0) | st.floats(1, 100),
    parts,
    parts,
)
at = st.floats(0, 1e12)
events = (
    st.builds(Started, texts, at, texts)
    | st.builds(Settled, texts, outcomes, at)
    | st.builds(Reported, st.sampled_from(["started", "model_retry"]), objects, at)
    | st.builds(MessagePosted, texts, at, st.sampled_from(["queue", "steer"]), texts, texts)
    | st.builds(CancelRequested, at, texts, texts)
)
facts = st.builds(
    Fact,
    texts,
    st.sampled_from(["model", "engine", "human", "policy", "client"]),
    objects,
    st.none() | st.integers(0, 1000),
    st.none() | texts,
)
messages = st.builds(
    Message,
    st.integers(1, 10**6),
    st.sampled_from(["user", "assistant"]),
    st.sampled_from(["task", "person", "reply", "results", "feedback", "partial"]),
    texts,
    st.integers(0, 1000),
)


def tuples(one: st.SearchStrategy[T]) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(one, max_size=3).map(tuple)


entries = st.builds(Entry, at, tuples(events), tuples(facts), tuples(messages))


@given(entries)
def test_round_trip(entry: Entry):
    assert decode(encode(entry)) == entry


@given(st.lists(entries, min_size=1, max_size=4))
def test_several_in_one(some: list[Entry]):
    body = encode(*some)
    assert decode_all(body) == some
    if len(some) > 1:
        with pytest.raises(CorruptError):
            decode(body)


@given(entries, st.data())
def test_the_time_of_the_entry_is_the_time_of_its_events(entry: Entry, data: st.DataObject):
    event = data.draw(st.builds(CancelRequested, st.just(entry.at), texts))
    assert decode(encode(Entry(entry.at, (event,)))).events == (event,)


@given(entries, st.data())
def test_damage_is_told_or_harmless(entry: Entry, data: st.DataObject):
    body = bytearray(encode(entry))
    place = data.draw(st.integers(0, len(body) - 1))
    body[place] ^= data.draw(st.integers(1, 255))
    with suppress(CorruptError):
        assert isinstance(decode(bytes(body)), Entry)


@given(entries, st.data())
def test_a_cut_is_told(entry: Entry, data: st.DataObject):
    body = encode(entry)
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(CorruptError):
        decode(body[:cut])


def turn_of_a_run(number: int) -> tuple[Entry, Entry]:
    """The two transactions of an ordinary turn, with replies of 120 and results of 200 characters."""
    now = 1_753_791_234.123456 + number
    message = f"Now comes item {number}."
    raw = (
        f'{{"message":"{message}","nextStep":{{"type":"Actions","actions":[{{"name":"work",'
        f'"params":{{"item":{number},"mode":"careful"}}}}]}}}}'
    )
    words = hashlib.sha256(str(number).encode()).hexdigest()
    result = f"item {number}: {words} " + "all is well with the letters of this day, " * 3
    usage = {
        "input_tokens": 1200 + number,
        "cached_tokens": 0,
        "output_tokens": 41,
        "reasoning_tokens": 0,
        "cost_usd": None,
    }
    value = {"text": raw, "finish": "stop", "model": "scripted:demo", "usage": usage}
    spent = {"modelCalls": 1, "inputTokens": 1200 + number, "outputTokens": 41}
    received = {
        "raw": raw,
        "type": "Actions",
        "message": message,
        "warnings": [],
        "usage": spent,
    }
    call, path = f"{number}:action.0", f"turn/{number}/action/0"
    started = {"callId": call, "action": "work", "params": {"item": number, "mode": "careful"}}
    reply = Entry(
        now,
        (Settled(f"{number}:model", Outcome.done(value, duration_ms=812.25), now),),
        (
            Fact("reply.received", "model", received, number),
            Fact("action.started", "model", started, number, path),
        ),
        (Message(2 * number, "assistant", "reply", raw, number),),
    )
    completed = {
        "callId": call,
        "action": "work",
        "ok": True,
        "result": result,
        "durationMs": 3.25,
        "attempts": 1,
    }
    shown = f'{{"results":[{{"call":1,"action":"work","ok":true,"result":"{result}"}}]}}'
    results = Entry(
        now + 0.5,
        (Settled(call, Outcome.done(result, duration_ms=3.25), now + 0.5),),
        (
            Fact("action.completed", "engine", completed, number, path),
            Fact("turn.ended", "engine", {"outcome": "step"}, number),
            Fact("turn.started", "engine", {}, number + 1),
        ),
        (Message(2 * number + 1, "user", "results", shown, number),),
    )
    return reply, results


@pytest.mark.parametrize("number", [1, 57, 1999])
def test_an_ordinary_turn_costs_few_bytes(number: int):
    for entry in turn_of_a_run(number):
        assert len(encode(entry)) <= 250


def test_what_comes_together_costs_less():
    turn = turn_of_a_run(57)
    assert len(encode(*turn)) < sum(len(encode(one)) for one in turn)


def test_a_reply_is_kept_once_however_long_it_is():
    text = "".join(hashlib.sha256(str(one).encode()).hexdigest() for one in range(150))
    value = {"text": text}
    once = Entry(1.0, (Settled("1:model", Outcome.done(value), 1.0),))
    fact = Fact("reply.received", "model", {"raw": text})
    thrice = Entry(1.0, once.events, (fact,), (Message(1, "assistant", "reply", text, 1),))
    assert len(encode(thrice)) < 1.1 * len(encode(once))


def test_a_long_entry_comes_back():
    entry = Entry(1.0, (), (), (Message(1, "user", "task", "a letter, " * 100_000, 0),))
    assert decode(encode(entry)) == entry


def test_a_newer_format_is_refused_with_the_remedy():
    with pytest.raises(CorruptError, match=r"format 2.*upgrade"):
        decode(b"\x02whatever")


@pytest.mark.parametrize("body", [b"", b"\x01", b"\x01garbage"])
def test_what_is_no_entry_is_refused(body: bytes):
    with pytest.raises(CorruptError):
        decode(body)


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b"[1]",
        b'[1,[["settled"]],[],[]]',
        b'[1,[["nobody",1]],[],[]]',
        b"[1,[5],[],[]]",
        b'[1,[],[["x","nobody",{}]],[]]',
        b'[1,[],[],[["one"]]]',
        b"[1,[[]],[],[]]",
        b"[]",
        b"[[]]",
        b"[[1,[],[],[]],2]",
    ],
)
def test_json_of_another_shape_is_refused(text: bytes):
    words = ZstdCompressionDict(FORMAT_1, dict_type=DICT_TYPE_RAWCONTENT)
    with pytest.raises(CorruptError):
        decode(b"\x01" + ZstdCompressor(dict_data=words).compress(text))


@pytest.mark.parametrize("value", [object(), "\ud800"])
def test_what_is_not_json_is_a_value_error(value: object):
    fact = Fact("payload.changed", "model", {"patch": value})
    with pytest.raises(ValueError, match=r".+"):
        encode(Entry(1.0, (), (fact,)))


def test_format_1_stays_as_it_is():
    """Logs written by the first version must be readable for ever."""
    assert VERSION == 1
    assert hashlib.sha256(FORMAT_1).hexdigest() == DIGEST
    assert decode(bytes.fromhex(WRITTEN)) == turn_of_a_run(7)[0]


DIGEST = "3c2e978578e9349f6b1901fa6d5497568243977efe7904bc82c55ec090d3fb83"
WRITTEN = (
    "0128b52ffd64e902b506000246151a704b759caf18f784d55b236f1157718c94bf9248c3f0a4ffff958cb1ab"
    "8f47f03fbbd6832a513a60fd917eae1976d92e2e45e3d09442b2ce115c09e52de8c63506c22c9a7b8959dee0"
    "00a5298dac69c193ba09012b2010768ce2ac0315a352883803b43f94dd1c7a23179b26e4ef559189af49002b"
    "3b9385002c3be82200c93dc077e2442e094b9b56ec99044462a09f3170230550193b449da3f0433894a180fc"
    "2515f731519f2e18c2c10104dd830e7a82418c67a21814f0c757de59c0e6339145c26cefa0d12570feda6a7c"
    "2e60641d06cb370b82"
)
