"""The conformance suite that we ship, run on the stores that we ship."""

import pytest

from loopagent.stores import MemoryStore, SqliteStore
from loopagent.testing.store_conformance import CHECKS, Check


pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_memory(check: Check):
    await check(MemoryStore())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_sqlite(check: Check, tmp_path):
    store = SqliteStore(tmp_path / "runs.db", synchronous="NORMAL")
    await store.open()
    try:
        await check(store)
    finally:
        await store.aclose()
