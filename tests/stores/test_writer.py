"""Where a write job runs: at once on the event loop while commits are quick, else on the writer's thread."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import pytest

from loopagent.errors import ConflictError, StoreError
from loopagent.stores.sqlite.file import Settings, open_writer
from loopagent.stores.sqlite.writer import TOO_SLOW, Writer


pytestmark = pytest.mark.anyio

QUICK = 3600.0
NEVER = 0.0


@asynccontextmanager
async def opened(
    path: Path, inline_seconds: float, synchronous: str = "OFF"
) -> AsyncIterator[Writer]:
    connect = partial(open_writer, Settings(path, synchronous))
    writer = Writer(connect, path, inline_seconds=inline_seconds, synchronous=synchronous)
    await writer.open()
    try:
        await writer.submit(lambda: partial(run, "CREATE TABLE word (text)"))
        yield writer
    finally:
        await writer.aclose()


def run(statement: str, db: sqlite3.Connection, *values: str) -> int:
    """Do something and say on which thread."""
    db.execute(statement, values)
    return threading.get_ident()


def insert(word: str) -> Callable[[], Callable[[sqlite3.Connection], int]]:
    return lambda: lambda db: run("INSERT INTO word VALUES (?)", db, word)


def words(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [row[0] for row in db.execute("SELECT text FROM word ORDER BY rowid")]


@pytest.mark.parametrize(("inline_seconds", "here"), [(QUICK, True), (NEVER, False)])
async def test_a_job_that_comes_alone_runs_at_once_while_commits_are_quick(
    inline_seconds: float, here: bool, tmp_path: Path
) -> None:
    async with opened(tmp_path / "a.db", inline_seconds) as writer:
        for word in "abc":
            await asyncio.sleep(0)
            thread = await writer.submit(insert(word))
            assert (thread == threading.get_ident()) == here
    assert words(tmp_path / "a.db") == ["a", "b", "c"]


async def test_jobs_of_one_moment_keep_their_order_and_share_the_thread(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", QUICK) as writer:
        await asyncio.sleep(0)
        threads = await asyncio.gather(*(writer.submit(insert(word)) for word in "abcdef"))
        here = [one == threading.get_ident() for one in threads]
        assert here == [True, True, False, False, False, False]
        assert len(set(threads[2:])) == 1
    assert words(tmp_path / "a.db") == list("abcdef")


async def test_jobs_of_one_run_follow_each_other_and_have_nothing_to_share(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", QUICK) as writer:
        await asyncio.sleep(0)
        for word in "abcdef":
            thread = await writer.submit(insert(word), run_id="run-1")
            assert thread == threading.get_ident()
    assert words(tmp_path / "a.db") == list("abcdef")


async def test_one_slow_commit_too_many_sends_jobs_to_the_thread(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", 1e-9) as writer:
        here: list[bool] = []
        for word in range(10):
            await asyncio.sleep(0)
            here.append(await writer.submit(insert(str(word))) == threading.get_ident())
        assert here == sorted(here, reverse=True)
        assert here.count(False) >= 10 - TOO_SLOW


async def test_nobody_overtakes_what_the_thread_has_not_done_yet(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with opened(path, QUICK) as writer:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            first = asyncio.ensure_future(writer.submit(insert("first")))
            await asyncio.sleep(0.02)
            assert not first.done(), "the event loop waits for nobody, the thread does"
            second = asyncio.ensure_future(writer.submit(insert("second")))
            await asyncio.sleep(0.02)
            other.execute("ROLLBACK")
        third = asyncio.ensure_future(writer.submit(insert("third")))
        assert threading.get_ident() not in await asyncio.gather(first, second)
        await third
    assert words(path) == ["first", "second", "third"]


async def test_a_job_that_cannot_be_done_at_once_harms_no_other(tmp_path: Path) -> None:
    def refuse(db: sqlite3.Connection) -> None:
        raise ConflictError("too late")

    def prepare() -> Callable[[sqlite3.Connection], None]:
        raise ValueError("no such value")

    async with opened(tmp_path / "a.db", QUICK) as writer:
        for job, error in (
            (lambda: refuse, ConflictError),
            (prepare, ValueError),
            (lambda: partial(run, "INSERT INTO nowhere VALUES (1)"), StoreError),
        ):
            await asyncio.sleep(0)
            with pytest.raises(error):
                await writer.submit(job)
            await asyncio.sleep(0)
            assert await writer.submit(insert("x")) == threading.get_ident()
    assert words(tmp_path / "a.db") == ["x"] * 3


def level(db: sqlite3.Connection) -> int:
    """How this commit is synced: 1 is NORMAL, 2 FULL."""
    return int(db.execute("PRAGMA synchronous").fetchone()[0])


@pytest.mark.parametrize("inline_seconds", [QUICK, NEVER])
async def test_a_commit_that_need_not_be_synced_is_not_and_the_next_is(
    inline_seconds: float, tmp_path: Path
) -> None:
    async with opened(tmp_path / "a.db", inline_seconds, "FULL") as writer:
        levels: list[int] = []
        for synced in (True, False, False, True, False, True):
            await asyncio.sleep(0)
            levels.append(await writer.submit(lambda: level, synced=synced))
        assert levels == [2, 1, 1, 2, 1, 2]


async def test_one_job_that_must_be_synced_is_enough(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", NEVER, "FULL") as writer:
        jobs = [writer.submit(lambda: level, synced=one == 1) for one in range(3)]
        assert await asyncio.gather(*jobs) == [2, 2, 2]


@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL", "FULL", "EXTRA"])
async def test_never_more_than_was_asked_for(synchronous: str, tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db", QUICK, synchronous) as writer:
        await asyncio.sleep(0)
        lazy = await writer.submit(lambda: level, synced=False)
        await asyncio.sleep(0)
        assert lazy <= await writer.submit(lambda: level)
