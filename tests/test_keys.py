"""API keys: made once, recognised by their hash, scoped, revoked; sessions end with them."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent.access import OPERATOR, SESSION_SECONDS, Caller, hashed, without_keys
from loopagent.errors import RequestError
from loopagent.keys import USED_EVERY_SECONDS, Keys
from loopagent.stores import MemoryStore


pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def test_a_key_is_recognised_and_only_its_hash_is_kept() -> None:
    store = MemoryStore()
    keys = Keys(store, Clock())
    text, row = await keys.create("nightly", tenant="acme", user="ann")
    caller = await keys.caller(text)
    assert caller == Caller("acme", "ann", frozenset({"runs", "requests.answer"}), "ann", row.id)
    assert caller.by == "human:ann"
    assert row.hash == hashed(text)
    assert text.rpartition("_")[2] not in repr(await store.keys())


async def test_nothing_else_is_a_key() -> None:
    keys = Keys(MemoryStore(), Clock())
    text, _ = await keys.create("nightly")
    other = text[:-1] + ("0" if text[-1] != "0" else "1")
    for wrong in (other, text.upper(), text + "0", text[3:], "", "la_", "\ud800"):
        assert await keys.caller(wrong) is None


async def test_a_revoked_key_ends_with_its_sessions() -> None:
    keys = Keys(MemoryStore(), Clock())
    text, row = await keys.create("desk")
    session = await keys.sign_in(row.id)
    assert await keys.signed_in(session) == await keys.caller(text)
    await keys.revoke(row.id)
    assert await keys.signed_in(session) is None
    assert await keys.caller(text) is None
    with pytest.raises(RequestError, match="no key"):
        await keys.revoke(row.id)


async def test_a_session_ends_by_itself_and_by_sign_out() -> None:
    clock = Clock()
    keys = Keys(MemoryStore(), clock)
    _, row = await keys.create("desk")
    first, second = await keys.sign_in(row.id), await keys.sign_in(row.id)
    await keys.sign_out(first)
    assert await keys.signed_in(first) is None
    clock.now += SESSION_SECONDS - 1
    assert await keys.signed_in(second) is not None
    clock.now += 1
    assert await keys.signed_in(second) is None


async def test_the_last_use_is_written_down_once_in_a_while() -> None:
    clock = Clock()
    keys = Keys(MemoryStore(), clock)
    text, _ = await keys.create("desk")
    seen = []
    for _ in range(3):
        await keys.caller(text)
        seen.append((await keys.list())[0].last_used_at)
        clock.now += USED_EVERY_SECONDS * 0.6
    assert seen == [1_000.0, 1_000.0, 1_000.0 + USED_EVERY_SECONDS * 1.2]


@pytest.mark.parametrize(
    ("name", "more", "wrong"),
    [
        ("", {}, "needs a name"),
        ("x" * 201, {}, "name must be"),
        ("desk", {"user": "a\nb"}, "user must be"),
        ("desk", {"tenant": "\0"}, "tenant must be"),
        ("desk", {"scopes": ()}, "not none"),
        ("desk", {"scopes": ("runs", "root")}, "not root"),
    ],
)
async def test_a_key_that_makes_no_sense_is_refused(
    name: str, more: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(RequestError, match=wrong):
        await Keys(MemoryStore(), Clock()).create(name, **more)


async def test_what_callers_reach() -> None:
    ann = Caller("acme", "ann", frozenset({"runs"}))
    assert [ann.reaches(one) for one in ("acme", "", None)] == [True, False, False]
    assert [OPERATOR.reaches(one) for one in ("acme", "", None)] == [True, True, False]
    may = [one.may("runs") for one in (ann, OPERATOR, Caller("acme"))]
    assert may == [True, True, False]
    assert not ann.may("requests.answer", "actions.write")
    assert ann.whose("", "") == ann.whose("ann", "acme") == ("ann", "acme")
    assert OPERATOR.whose("bob", "other") == ("bob", "other")
    assert Caller("acme").whose("bob", "") == ("bob", "acme")
    for user, tenant in (("bob", ""), ("", "other")):
        with pytest.raises(RequestError) as refused:
            ann.whose(user, tenant)
        assert refused.value.status == 403


async def test_the_log_shows_no_key() -> None:
    text, _ = await Keys(MemoryStore(), Clock()).create("desk")
    assert without_keys(f"Bearer {text}, again {text}.") == (
        "Bearer la_[redacted], again la_[redacted]."
    )
