"""What a server and other processes can do to a PostgreSQL store."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from loopagent.core.facts import Fact
from loopagent.errors import ConfigError, ConflictError, CorruptError, StoreError
from loopagent.ports import StoredArtifact
from loopagent.stores import open_store
from loopagent.stores.postgres import PostgresStore
from loopagent.stores.postgres.address import parse
from loopagent.testing.store_samples import SampleRun, stored
from tests.postgres import PostgresServer
from tests.stores.looking import is_whole, opening


pytestmark = pytest.mark.anyio
HAMMER = Path(__file__).with_name("hammer.py")


def opened(url, **options):
    return opening(PostgresStore(url, **options))


async def tell(url: str, statement: str) -> None:
    """What some other program does to the database."""
    address = parse(url)
    db = await asyncpg.connect(address.dsn, server_settings={"search_path": address.schema})
    try:
        await db.execute(statement)
    finally:
        await db.close()


# ---------------------------------------------------------------------- addresses


def test_a_url_has_options_of_ours_and_of_the_driver():
    address = parse("postgresql://u:p@h/d?sslmode=require&schema=team_a&connections=3")
    assert address.dsn == "postgresql://u:p@h/d?sslmode=require"
    assert (address.schema, address.connections) == ("team_a", 3)
    assert parse("postgres://h/d").schema == "loopagent"


@pytest.mark.parametrize(
    "option",
    [
        "schema=Team",
        "schema=",
        "schema=a;b",
        "schema=pg_catalog",
        "connections=0",
        "connections=many",
        "patience_seconds=-1",
        "timeout_seconds=0",
    ],
)
def test_options_that_cannot_work(option):
    with pytest.raises(ConfigError) as caught:
        open_store(f"postgresql://u:hunter2@h/d?{option}")
    assert option.partition("=")[0] in str(caught.value) or "many" in str(caught.value)
    assert "hunter2" not in str(caught.value)


async def test_without_a_server_the_error_says_so(tmp_path):
    store = PostgresStore(f"postgresql://u:hunter2@/d?host={tmp_path}&patience_seconds=0.1")
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        await store.open()
    assert "hunter2" not in str(caught.value)
    with pytest.raises(StoreError, match="not open"):
        await store.load("run-1")


async def test_a_database_that_does_not_exist(postgres_server):
    with pytest.raises(StoreError, match="no such database"):
        await PostgresStore(postgres_server.url("nowhere")).open()


# ---------------------------------------------------------------------- tables


async def test_runs_survive_the_process(postgres_url):
    async with opened(postgres_url) as store:
        run = await stored(store, "run-1", turns=3)
        await store.claim("run-1", "me", now=1.0, lease_seconds=30.0)
    async with opened(postgres_url) as store:
        snapshot = await store.load("run-1")
        assert snapshot is not None
        assert snapshot.state == run.state
        assert await store.owner("run-1") == "me"
        assert await is_whole(store, "run-1") == 4


async def test_many_processes_make_the_tables_at_once(postgres_url):
    stores = [PostgresStore(postgres_url) for _ in range(8)]
    await asyncio.gather(*(one.open() for one in stores))
    await stored(stores[0], "run-1")
    assert await stores[7].load("run-1")
    await asyncio.gather(*(one.aclose() for one in stores))


async def test_schemas_are_apart(postgres_url):
    async with opened(postgres_url) as one, opened(f"{postgres_url}_b") as other:
        await stored(one, "run-1")
        assert await other.load("run-1") is None


async def test_tables_of_a_newer_version_are_refused(postgres_url):
    async with opened(postgres_url):
        await tell(postgres_url, "INSERT INTO migration VALUES (99)")
    with pytest.raises(CorruptError, match="newer version"):
        await PostgresStore(postgres_url).open()


async def test_a_damaged_state_is_told(postgres_url):
    async with opened(postgres_url) as store:
        await stored(store, "run-1")
        await tell(postgres_url, "UPDATE run SET state = 'x'")
        with pytest.raises(CorruptError, match="run-1"):
            await store.load("run-1")


async def test_a_read_only_database_is_told_and_nothing_is_written(postgres_url):
    async with opened(postgres_url) as store:
        await stored(store, "run-1")
    only = f"{postgres_url}&default_transaction_read_only=on"
    async with opened(only) as store:
        with pytest.raises(StoreError, match="read-only"):
            await stored(store, "run-2")
        assert [one.id for one in (await store.runs())[0]] == ["run-1"]


async def test_text_that_cannot_be_kept(postgres_url):
    async with opened(postgres_url) as store:
        await stored(store, "run-1", task="a\0b")
        assert (await store.runs())[0][0].title == "a\ufffdb"
        with pytest.raises(StoreError, match="text"):
            await stored(store, "run-\0")
        with pytest.raises(StoreError, match="text"):
            await store.claim("run-1", "\ud800", now=0.0, lease_seconds=1.0)
        assert await store.load("run-\0") is None
        assert await is_whole(store, "run-1") == 1


# ---------------------------------------------------------------------- many at once


async def test_numbers_have_no_gap_when_a_tree_commits_all_at_once(postgres_url):
    """Parent and children on many connections; whoever reads meanwhile never sees a number before a smaller one."""
    async with opened(postgres_url) as store, opened(postgres_url) as reader:
        root = await stored(store, "root")
        children = [SampleRun(f"root.{number}", parent=root) for number in range(6)]
        await asyncio.gather(*(store.create(one.begin()) for one in children))
        seen: list[int] = []

        async def work(run: SampleRun) -> None:
            for _ in range(8):
                await store.commit(run.turn())

        async def read() -> None:
            while len(seen) < 2 + 6 * 2 + 7 * 8:
                page = await reader.events("root", after=len(seen))
                seen.extend(one["seq"] for one in page)
                await asyncio.sleep(0)

        await asyncio.gather(read(), *(work(one) for one in (root, *children)))
        assert seen == list(range(1, len(seen) + 1))
        below = [one["seq"] for one in await store.events("root.3")]
        assert len(below) == 2 + 8
        assert below == sorted(below)
        named = [one["seq"] for one in await store.events("root") if one["runId"] == "root.3"]
        assert named == below


async def test_a_child_that_exists_takes_no_number(postgres_url):
    async with opened(postgres_url) as store:
        root = await stored(store, "root")
        await store.create(SampleRun("root.1", parent=root).begin())
        with pytest.raises(ConflictError):
            await store.create(SampleRun("root.1", parent=root).begin())
        snapshot = await store.load("root")
        assert snapshot is not None
        assert snapshot.seq == 4


async def test_processes_that_commit_to_the_same_runs(postgres_url):
    async with opened(postgres_url) as store:
        hammers = [
            await asyncio.create_subprocess_exec(
                sys.executable, str(HAMMER), postgres_url, "run-1", "15",
                stdout=asyncio.subprocess.PIPE,
                cwd=Path(__file__).parents[2],
            )
            for _ in range(2)
        ]  # fmt: skip
        told = [int(one) for hammer in hammers for one in (await hammer.communicate())[0].split()]
        assert [hammer.returncode for hammer in hammers] == [0, 0]
        assert sorted(told) == list(range(2, 32))
        assert await is_whole(store, "run-1") == 31


async def test_content_that_is_linked_while_its_last_link_goes(postgres_url):
    text = StoredArtifact(
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        "text/plain",
        5,
        b"hello",
    )
    async with opened(postgres_url) as store:
        keeper = await stored(store, "keeper")
        for number in range(10):
            run = await stored(store, f"run-{number}")
            await store.put_artifact(run.id, text)
            await store.commit(run.end())
            await asyncio.gather(store.delete(run.id), store.put_artifact(keeper.id, text))
            assert await store.artifact(keeper.id, text.artifact_id) == text


# ---------------------------------------------------------------------- a server that goes away


async def test_connections_that_were_cut_are_made_again(postgres_url):
    async with opened(postgres_url) as store:
        run = await stored(store, "run-1")
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'loopagent'"
        for _ in range(3):
            await tell(postgres_url, cut)
            await store.commit(run.turn())
        assert await is_whole(store, "run-1") == 4


async def test_a_commit_whose_answer_was_lost_is_not_made_twice(postgres_url):
    """The server did it and went away before it could say so: the second try finds it done."""
    async with opened(postgres_url) as store:
        run = await stored(store, "run-1")
        first, lost = run.turn(), SampleRun("run-2").begin()
        seq = await store.commit(first)
        await store.create(lost)

        async def drop_first(work, tried=[]):  # noqa: B006
            del tried

            async def second(db, again):
                del again
                return await work(db, True)

            return await run_(second)

        run_ = store._run
        store._run = drop_first
        assert await store.commit(first) == seq
        assert await store.create(lost) == 1
        other = replace(first, facts=(Fact("run.started", "engine", {}),))
        with pytest.raises(ConflictError):
            await store.commit(other)
        with pytest.raises(ConflictError):
            await store.create(replace(lost, at=lost.at + 1))


async def test_a_server_that_restarts_is_waited_for():
    """Commits go on by themselves, and none is lost or doubled, however the server goes down."""
    server = PostgresServer()
    try:
        server.start()
        async with opened(server.url(patience_seconds=60)) as store:
            runs = [await stored(store, f"run-{number}") for number in range(4)]
            done = asyncio.Event()

            async def work(run: SampleRun) -> None:
                while not done.is_set():
                    await store.commit(run.turn())

            working = [asyncio.create_task(work(one)) for one in runs]
            for how in ("SIGINT", "SIGQUIT"):
                await asyncio.sleep(0.2)
                await asyncio.to_thread(server.stop, getattr(__import__("signal"), how))
                await asyncio.to_thread(server.start)
            await asyncio.sleep(0.2)
            done.set()
            await asyncio.gather(*working)
            for run in runs:
                assert await is_whole(store, run.id) == run.version
    finally:
        server.remove()


async def test_a_server_that_stays_away_is_told():
    server = PostgresServer()
    try:
        server.start()
        async with opened(server.url(patience_seconds=0.3)) as store:
            run = await stored(store, "run-1")
            server.stop()
            with pytest.raises(StoreError, match="cannot be reached"):
                await store.commit(run.turn())
    finally:
        server.remove()
