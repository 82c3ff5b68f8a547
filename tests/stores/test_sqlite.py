"""What a file and other processes can do to a SQLite store."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

import pytest

from loopagent.core.facts import Fact
from loopagent.errors import ConfigError, ConflictError, CorruptError, StoreError
from loopagent.ports import StoredArtifact
from loopagent.stores import MemoryStore, SqliteStore
from loopagent.stores.sqlite import reads
from loopagent.stores.sqlite.file import explain
from loopagent.testing.store_samples import SampleRun, stored
from tests.stores.looking import is_whole, opening


pytestmark = pytest.mark.anyio

HAMMER = Path(__file__).with_name("hammer.py")


def opened(path, **options):
    return opening(SqliteStore(path, **options))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


def edit(path: Path, *statements: str) -> None:
    """What some other program does to the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


# ---------------------------------------------------------------------- commits that come together


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 3, 1), (5,), (1, 4, 2)])
async def test_what_is_stored_together_is_found_as_if_it_had_come_one_by_one(path, sizes):
    run, plain = SampleRun("run-1"), MemoryStore()
    kinds = [run.turn, lambda: run.ask("a"), run.quiet, lambda: run.close("a"), run.turn]
    async with opened(path) as store:
        first = run.begin()
        assert await store.create(first) == await plain.create(first)
        made = iter(kinds * 2)
        for size in sizes:
            commits = [next(made)() for _ in range(size)]
            assert await store.commit(*commits) == await plain.commit(*commits)
        assert await store.load("run-1") == await plain.load("run-1")
        assert await store.log("run-1") == await plain.log("run-1")
        for place in range(12):
            assert await store.events("run-1", after=place) == await plain.events(
                "run-1", after=place
            )
            for last in (None, place, place + 1):
                given = {"first": place, "last": last}
                assert await store.transcript("run-1", **given) == await plain.transcript(
                    "run-1", **given
                )
        assert await store.open_requests() == await plain.open_requests()
    with closing(sqlite3.connect(path)) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM log").fetchone()
    assert rows == 1 + len(sizes)


# ---------------------------------------------------------------------- the file


async def test_runs_survive_the_process(path):
    async with opened(path) as store:
        run = await stored(store, "run-1", turns=3)
        await store.claim("run-1", "me", now=1.0, lease_seconds=30.0)
    async with opened(path) as store:
        snapshot = await store.load("run-1")
        assert (snapshot.state, snapshot.version, snapshot.seq) == (run.state, 4, 5)
        assert await store.owner("run-1") == "me"
        assert await store.commit(run.turn()) == 6
        assert await is_whole(store, "run-1") == 5


async def test_a_store_can_be_opened_again(path):
    store = SqliteStore(path)
    for number in range(3):
        await store.open()
        await stored(store, f"run-{number}")
        await store.aclose()
    async with opened(path) as store:
        assert len((await store.runs())[0]) == 3


async def test_only_its_owner_may_read_the_file(path):
    async with opened(path) as store:
        await stored(store, "run-1")
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


async def test_closing_leaves_one_file(path):
    async with opened(path) as store:
        await stored(store, "run-1")
        await store.load("run-1")
    assert [one.name for one in path.parent.iterdir()] == [path.name]


async def test_closing_commits_what_is_queued(path):
    run = SampleRun("run-1")
    store = SqliteStore(path)
    await store.open()
    queued = [asyncio.ensure_future(store.create(run.begin()))]
    queued += [asyncio.ensure_future(store.commit(run.turn())) for _ in range(20)]
    await asyncio.sleep(0)
    await store.aclose()
    await asyncio.gather(*queued)
    async with opened(path) as store:
        assert await is_whole(store, "run-1") == 21


async def test_a_closed_store_says_so(path):
    store = SqliteStore(path)
    run = SampleRun("run-1")
    for _ in range(2):
        with pytest.raises(StoreError, match="not open"):
            await store.create(run.begin())
        with pytest.raises(StoreError, match="not open"):
            await store.load("run-1")
        await store.open()
        await store.aclose()
    await store.aclose()


async def test_a_waiter_that_has_gone_disturbs_nobody(path):
    async with opened(path) as store:
        run = SampleRun("run-1")
        gone = asyncio.ensure_future(store.create(run.begin()))
        await asyncio.sleep(0)
        gone.cancel()
        await store.commit(run.turn())
        assert await is_whole(store, "run-1") == 2


def test_a_store_outlives_an_event_loop(path):
    store, run = SqliteStore(path), SampleRun("run-1")
    asyncio.run(store.open())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with suppress(TimeoutError):
            asyncio.run(asyncio.wait_for(store.create(run.begin()), 0.05))
        other.execute("ROLLBACK")

    async def go_on() -> None:
        await store.commit(run.turn())
        assert await is_whole(store, "run-1") == 2
        await store.aclose()

    asyncio.run(go_on())


async def test_a_store_that_another_thread_closed_says_so(path):
    store = SqliteStore(path, inline_seconds=0)
    await store.open()
    create = asyncio.ensure_future(store.create(SampleRun("run-1").begin()))
    await asyncio.sleep(0)
    closer = threading.Thread(target=lambda: asyncio.run(store.aclose()))
    closer.start()
    closer.join()
    with pytest.raises(StoreError, match="not open"):
        await create


@pytest.mark.parametrize(
    "options",
    [
        {"synchronous": "SOMETIMES"},
        {"busy_timeout_seconds": -1},
        {"busy_timeout_seconds": float("nan")},
        {"max_bytes": 1},
        {"readers": 0},
        {"durability": "run"},
        {"inline_seconds": -1},
        {"inline_seconds": float("nan")},
        {"path": ":memory:"},
        {"path": ""},
    ],
)
def test_settings_that_cannot_work_are_refused(path, options):
    with pytest.raises(ConfigError):
        SqliteStore(**{"path": path, **options})


# ---------------------------------------------------------------------- size and growth


async def test_a_long_run_stays_small(path):
    sizes = []
    async with opened(path, synchronous="OFF") as store:
        run = await stored(store, "run-1")
        for number in range(1, 301):
            await store.commit(run.turn(f"I look at letter {number}. " * 4))
            await store.commit(run.quiet())
            if number % 100 == 0:
                edit(path, "PRAGMA wal_checkpoint(TRUNCATE)")
                sizes.append(path.stat().st_size)
    assert sizes[1] <= 160 * 1024
    assert sizes[2] - sizes[1] <= 1.2 * (sizes[1] - sizes[0])


async def test_space_comes_back(path):
    async with opened(path, synchronous="OFF") as store:
        await stored(store, "kept", turns=10)
    small = path.stat().st_size
    async with opened(path, synchronous="OFF") as store:
        for number in range(10):
            run = await stored(store, f"run-{number}", turns=20)
            text = os.urandom(50_000)
            await store.put_artifact(
                run.id, StoredArtifact(sha256(text).hexdigest(), "text/plain", len(text), text)
            )
            await store.commit(run.end())
    assert path.stat().st_size > 10 * small
    async with opened(path, synchronous="OFF") as store:
        for number in range(10):
            await store.delete(f"run-{number}")
        assert await is_whole(store, "kept") == 11
    assert path.stat().st_size <= small + 8192


# ---------------------------------------------------------------------- one job must not hurt another


async def test_one_bad_value_fails_alone(path):
    async with opened(path) as store:
        runs = [await stored(store, f"run-{number}") for number in range(5)]
        bad = runs[2].next(facts=(Fact("payload.changed", "model", {"patch": object()}),))
        commits = [bad if one is runs[2] else one.turn() for one in runs]
        ends = await asyncio.gather(*map(store.commit, commits), return_exceptions=True)
        assert [type(one) for one in ends] == [int, int, StoreError, int, int]
        assert "run-2" in str(ends[2])
        assert await is_whole(store, "run-2") == 1


async def test_a_full_file_refuses_what_does_not_fit_and_nothing_else(path):
    async with opened(path, max_bytes=300_000) as store:
        small = [await stored(store, f"run-{number}") for number in range(5)]
        large = await stored(store, "large")
        text = os.urandom(400_000).hex()
        commits = [*[one.turn() for one in small], large.turn(text)]
        ends = await asyncio.gather(*map(store.commit, commits), return_exceptions=True)
        assert [type(one) for one in ends] == [int] * 5 + [StoreError]
        assert "no room left" in str(ends[-1])
        assert str(path) in str(ends[-1])
        for run in small:
            assert await is_whole(store, run.id) == 2
        assert await is_whole(store, "large") == 1


async def test_a_full_file_is_usable_again_once_there_is_room(path):
    async with opened(path, max_bytes=200_000) as store:
        old = await stored(store, "old", turns=1)
        await store.commit(old.turn(os.urandom(40_000).hex()))
        await store.commit(old.end())
        run = await stored(store, "run-1")
        version = 1
        with suppress(StoreError):
            while True:
                await store.commit(run.turn(os.urandom(2_000).hex()))
                version += 1
        with pytest.raises(StoreError, match="no room left"):
            await stored(store, "large", task=os.urandom(50_000).hex())
        assert await is_whole(store, "run-1") == version
        await store.delete("old")
        run.state, run.version = (await store.load("run-1")).state, version
        await store.commit(run.turn(os.urandom(2_000).hex()))
        assert await is_whole(store, "run-1") == version + 1


# ---------------------------------------------------------------------- other processes


async def test_a_lock_is_waited_for_and_the_event_loop_goes_on(path):
    async with opened(path) as store:
        run = await stored(store, "run-1")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            commit = asyncio.ensure_future(store.commit(run.turn()))
            ticks = 0
            started = time.monotonic()
            while time.monotonic() - started < 0.3:
                await asyncio.sleep(0.005)
                ticks += 1
            assert not commit.done()
            assert (await store.load("run-1")).version == 1
            other.execute("ROLLBACK")
        assert await commit == 3
        assert ticks > 20
        assert await is_whole(store, "run-1") == 2


async def test_a_lock_that_stays_is_told(path):
    async with opened(path, busy_timeout_seconds=0.1) as store:
        run = await stored(store, "run-1")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            calls = [store.commit(run.turn()) for _ in range(3)]
            ends = await asyncio.gather(*calls, return_exceptions=True)
            for one in ends:
                assert isinstance(one, StoreError)
                assert not isinstance(one, ConflictError)
                assert "locked by another process" in str(one)
                assert str(path) in str(one)
            other.execute("ROLLBACK")
        run.state, run.version = (await store.load("run-1")).state, 1
        await store.commit(run.turn())
        assert await is_whole(store, "run-1") == 2


@pytest.mark.parametrize("lock", ["BEGIN EXCLUSIVE", "BEGIN"])
async def test_another_process_that_creates_the_file_is_waited_for(lock, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(lock)
        other.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        patient, hasty = SqliteStore(path), SqliteStore(path, busy_timeout_seconds=0.05)
        opening = asyncio.ensure_future(patient.open())
        with pytest.raises(StoreError, match="locked by another process"):
            await hasty.open()
        assert not opening.done()
        other.execute("ROLLBACK")
    await opening
    await stored(patient, "run-1")
    await patient.aclose()


async def test_a_backup_that_reads_for_long_stops_nobody(path):
    async with opened(path) as store:
        run = await stored(store, "run-1")
        with closing(sqlite3.connect(path, isolation_level=None)) as backup:
            backup.execute("BEGIN")
            backup.execute("SELECT count(*) FROM log").fetchone()
            for _ in range(300):
                await store.commit(run.turn("A long letter. " * 20))
            assert backup.execute("SELECT count(*) FROM log").fetchone() == (1,)
        assert await is_whole(store, "run-1") == 301


def start(path: Path, run_id: str, commits: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, str(HAMMER), str(path), run_id, str(commits)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


async def test_processes_share_a_file_and_a_run(path):
    processes = [start(path, "shared", 60), start(path, "own", 60)]
    async with opened(path) as store:
        mine = SampleRun("mine")
        await store.create(mine.begin())
        for _ in range(60):
            await store.commit(mine.turn())
        run, done = SampleRun("shared"), 0
        with suppress(ConflictError):
            await store.create(run.begin())
        while done < 60:
            snapshot = await store.load("shared")
            run.state, run.version = snapshot.state, snapshot.version
            try:
                await store.commit(run.turn())
            except ConflictError:
                continue
            done += 1
        for process in processes:
            await asyncio.to_thread(process.communicate)
            assert process.returncode == 0
        assert await is_whole(store, "mine") == 61
        assert await is_whole(store, "own") == 61
        assert await is_whole(store, "shared") == 121


async def test_a_killed_process_leaves_whole_transactions(path):
    told = 0
    for commits in (3, 25):
        process = start(path, "run-1", 1_000_000)
        assert process.stdout is not None
        for _ in range(commits):
            told = int(process.stdout.readline())
        process.kill()
        process.communicate()
        async with opened(path) as store:
            assert await is_whole(store, "run-1") >= told
    assert told >= 28


# ---------------------------------------------------------------------- files that cannot be used


async def fails_to_open(path) -> StoreError:
    store = SqliteStore(path)
    with pytest.raises(StoreError) as caught:
        await store.open()
    await store.aclose()
    assert str(path) in str(caught.value)
    return caught.value


async def test_a_missing_directory_is_told(tmp_path):
    error = await fails_to_open(tmp_path / "nowhere" / "runs.db")
    assert "directory" in str(error)


async def test_a_file_in_the_place_of_a_directory_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    await fails_to_open(tmp_path / "file" / "runs.db")


async def test_a_directory_in_the_place_of_the_file_is_told(tmp_path):
    await fails_to_open(tmp_path)


async def test_a_name_that_is_none_is_told(tmp_path):
    await fails_to_open(tmp_path / ("x" * 300))


READ_ONLY = """
import asyncio, os, sys
from loopagent.stores import MemoryStore, SqliteStore
from loopagent.errors import StoreError
async def main():
    if os.geteuid() == 0:
        os.seteuid(65534)  # root may write everywhere
    store = SqliteStore(sys.argv[1])
    try:
        await store.open()
    except StoreError as error:
        print(error)
asyncio.run(main())
"""


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o644, 0o555)])
async def test_what_may_not_be_written_is_told(file_mode, folder_mode, tmp_path_factory):
    folder = tmp_path_factory.mktemp("readonly")
    path = folder / "runs.db"
    async with opened(path) as store:
        await stored(store, "run-1")
    path.chmod(file_mode)
    folder.chmod(folder_mode)
    for parent in (folder.parent, folder.parent.parent):
        parent.chmod(0o755)
    command = [sys.executable, "-c", READ_ONLY, str(path)]
    said = await asyncio.to_thread(subprocess.check_output, command, text=True)
    assert str(path) in said
    assert "writable for this user" in said


# ---------------------------------------------------------------------- data that cannot be read


async def test_a_file_that_is_no_database_is_told_and_left_alone(path):
    path.write_text("Dear diary, today I sorted letters. " * 100)
    error = await fails_to_open(path)
    assert isinstance(error, CorruptError)
    assert "not a SQLite database" in str(error)
    assert path.read_text().startswith("Dear diary")


async def test_another_program_s_database_is_left_alone(path):
    edit(path, "CREATE TABLE song (title)")
    before = path.read_bytes()
    error = await fails_to_open(path)
    assert isinstance(error, CorruptError)
    assert "another program" in str(error)
    assert path.read_bytes()[100:] == before[100:]


async def test_a_newer_database_is_told_and_left_alone(path):
    async with opened(path) as store:
        await stored(store, "run-1")
    edit(path, "PRAGMA user_version = 7")
    error = await fails_to_open(path)
    assert isinstance(error, CorruptError)
    assert "schema 7" in str(error)
    assert "upgrade loopagent" in str(error)


async def test_an_empty_file_becomes_a_database(path):
    edit(path, "VACUUM")
    async with opened(path) as store:
        await stored(store, "run-1")


async def damaged(path: Path) -> None:
    """A database whose second half is noise."""
    async with opened(path) as store:
        run = await stored(store, "run-1")
        for _ in range(50):
            await store.commit(run.turn(os.urandom(500).hex()))
    spoil(path)


def spoil(path: Path) -> None:
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[: size // 2] + b"\xff" * (size // 2))


async def test_a_damaged_file_is_told(path):
    await damaged(path)
    with pytest.raises(CorruptError, match=r"damaged.*backup") as caught:
        async with opened(path) as store:
            await store.log("run-1")
    assert str(path) in str(caught.value)


async def test_a_cut_file_is_told(path):
    async with opened(path) as store:
        await stored(store, "run-1", turns=50)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(CorruptError, match="damaged"):
        async with opened(path) as store:
            await store.log("run-1")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE run SET state = 'x'", "state of run 'run-1'"),
        ("UPDATE run SET state = '{\"id\":5}'", "state of run 'run-1'"),
        (
            "UPDATE run SET state = CAST(replace(state, '_version\":1', '_version\":99') AS BLOB)",
            r"newer version of loopagent \(99",
        ),
        ("UPDATE spec SET body = '{}'", "state of run 'run-1'"),
        ("DELETE FROM spec", "state of run 'run-1'"),
    ],
)
async def test_a_damaged_state_is_told(statement, message, path):
    async with opened(path) as store:
        await stored(store, "run-1")
    edit(path, statement)
    async with opened(path) as store:
        with pytest.raises(CorruptError, match=message):
            await store.load("run-1")
        await stored(store, "run-2", agent="porter")


@pytest.mark.parametrize("body", ["x'01ff'", "x'0900'", "x''", "'text'"])
async def test_a_damaged_log_entry_is_told(body, path):
    async with opened(path) as store:
        await stored(store, "run-1", turns=2)
    edit(path, f"UPDATE log SET body = {body} WHERE first_seq = 3")  # noqa: S608
    async with opened(path) as store:
        with pytest.raises(CorruptError, match="log entry"):
            await store.log("run-1")
        assert len(await store.events("run-1", limit=2)) == 2


async def test_a_run_without_room_for_a_version_is_told(path):
    async with opened(path) as store:
        run = await stored(store, "run-1")
        run.version = 2**24 - 1
        with pytest.raises(StoreError, match="no room"):
            await store.commit(run.turn())


async def test_many_definitions_are_read(path):
    async with opened(path) as store:
        store._specs = reads.Specs(keep=2)
        runs = [await stored(store, f"run-{one}", agent=f"agent-{one}") for one in range(5)]
        for run in (*runs, *runs):
            assert (await store.load(run.id)).state.spec == run.state.spec


def test_a_bug_comes_out_as_it_is(path):
    bug = KeyError("x")
    assert explain(bug, path) is bug


async def test_text_that_no_store_can_hold_is_refused(path):
    async with opened(path) as store:
        with pytest.raises(StoreError, match="text"):
            await store.load("run-\ud800")
        with pytest.raises(StoreError, match="JSON"):
            await store.create(SampleRun("run-1", task="\ud800").begin())
        with pytest.raises(StoreError, match="text"):
            await store.claim("run-1", "\ud800", now=0.0, lease_seconds=1.0)
        assert await store.runs() == ([], None)
