"""The conformance suite that we ship, run on the stores that we ship."""

import pytest

from loopagent.stores import MemoryStore, SqliteStore, open_store
from loopagent.testing.store_conformance import CHECKS, Check


pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_memory(check: Check):
    await check(MemoryStore())


@pytest.mark.parametrize("inline_seconds", [0.0, 60.0], ids=["on its thread", "at once"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_sqlite(check: Check, inline_seconds: float, tmp_path):
    store = SqliteStore(tmp_path / "runs.db", synchronous="NORMAL", inline_seconds=inline_seconds)
    await store.open()
    try:
        await check(store)
    finally:
        await store.aclose()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_postgres(check: Check, postgres_url):
    store = open_store(postgres_url)
    await store.open()
    try:
        await check(store)
    finally:
        await store.aclose()
