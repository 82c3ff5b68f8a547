"""What processes tell each other through PostgreSQL."""

from __future__ import annotations

import asyncpg
import pytest

from loopagent.dispatch_port import News
from loopagent.stores.postgres import PostgresStore
from loopagent.stores.postgres.address import parse
from loopagent.testing.store_samples import stored
from tests.waiting import until


pytestmark = pytest.mark.anyio


async def test_commits_and_offers_are_heard_by_others_and_not_by_oneself(postgres_url: str) -> None:
    here, there = PostgresStore(postgres_url), PostgresStore(postgres_url)
    at_home: list[News] = []
    abroad: list[News] = []
    here.watch(at_home.append)
    there.watch(abroad.append)
    await there.open()
    await here.open()
    await until(lambda: at_home and abroad)  # both listen: what was before may have been missed
    run = await stored(here, "run-1", turns=3)
    here.offer([f"run-{number}-{'x' * 100}" for number in range(300)])  # more than one notice holds
    await until(lambda: len({one.run_id for one in abroad}) == 302)
    assert News("run-1", "run-1", run.version) in abroad
    assert at_home == [News()]
    await here.aclose()
    await there.aclose()


async def test_after_a_break_listeners_look_again_and_nothing_untold_is_lost(
    postgres_url: str,
) -> None:
    here, there = PostgresStore(postgres_url), PostgresStore(postgres_url)
    abroad: list[News] = []
    here.watch(lambda _: None)
    there.watch(abroad.append)
    await there.open()
    await here.open()
    await until(lambda: abroad)
    db = await asyncpg.connect(parse(postgres_url).dsn)
    await db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'loopagent'"
    )
    await db.close()
    run = await stored(here, "run-1", turns=1)
    await until(lambda: abroad.count(News()) >= 2)
    await stored(here, "run-2")
    await until(lambda: News("run-2", "run-2", 1) in abroad)
    assert run.version == 2
    await here.aclose()
    await there.aclose()
