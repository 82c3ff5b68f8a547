"""Logs of runs: written, read again, gone through again; what is not as it was is found."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from loopagent import Agent, App, action
from loopagent.errors import CorruptError, RequestError
from loopagent.runtime.retention import Retention, remove_old
from loopagent.stores import open_store
from loopagent.testing import (
    Recording,
    ScriptedModel,
    read_recording,
    record,
    recording_lines,
    replay,
)
from tests.cli.commands import loopagent
from tests.http.server import ROOT


pytestmark = pytest.mark.anyio
STORED = ROOT / "tests/vectors/runs_1/runs.db"


@pytest.fixture
async def recorded(tmp_path: Path) -> list[Recording]:
    """The runs of an earlier version."""
    store = open_store(f"sqlite:///{shutil.copy(STORED, tmp_path / 'runs.db')}")
    await store.open()
    try:
        rows, _ = await store.runs(limit=50)
        return [await record(store, one.id) for one in rows]
    finally:
        await store.aclose()


async def test_runs_of_an_earlier_version_lead_where_they_led(recorded: list[Recording]) -> None:
    assert len(recorded) == 6
    for one in recorded:
        found = replay(read_recording(recording_lines(one)))
        assert (found.differences, found.entries) == ([], len(one.entries))
        assert found.prompts == found.turns == 1


@action(effects="read")
def look(n: int) -> list[int]:
    """Look at many things."""
    return list(range(n))


def looking() -> Agent[object]:
    step = {"type": "ForEach", "forEach": {"collectionPath": "ns", "itemVariable": "n"}}
    step["forEach"] |= {"action": {"name": "look", "params": {"n": "{{ n }}"}}}  # type: ignore[operator]
    replies = [{"nextStep": step}, {"taskComplete": True, "message": "Done."}]
    return Agent("looker", model=ScriptedModel(replies), actions=[look])


async def test_every_kind_of_difference_is_found() -> None:
    async with App(agents=[looking()]) as app:
        run = await app.start("looker", "Look.", payload={"ns": [1, 2, 3]})
        assert (await app.wait(run.id, timeout_seconds=60)).state.status == "completed"
        one = await record(app.store, run.id)
        await remove_old(app.store, Retention(log_days=0.0001), app.now() + 100)
        with pytest.raises(RequestError, match="removed after its time"):
            await record(app.store, run.id)
    assert replay(one).differences == []
    entries = list(one.entries)
    said = entries[0].messages[0]
    entries[0] = replace(entries[0], messages=(replace(said, text="Look away."),))
    entries[1] = replace(entries[1], facts=entries[1].facts[:-1])
    state = one.state.fork()
    state.turn, state.spec = 9, state.spec.model_copy(update={"instructions": "Be quick."})
    found = replay(Recording(state, tuple(entries))).differences
    assert {each.what for each in found} == {"facts", "messages", "prompt", "state"}
    assert found[-1].detail == "/turn: 9 was 2 now"


def test_what_is_no_log_is_refused_with_its_line() -> None:
    for lines, why in (
        ([], "empty"),
        (["{}"], "no log of a run"),
        (["x"], "line 1"),
        (['{"format":"loopagent-log","version":9,"spec":{},"state":{}}'], "another version"),
    ):
        with pytest.raises(CorruptError, match=why):
            read_recording(lines)


def test_a_log_is_written_and_replayed_at_the_terminal(tmp_path: Path) -> None:
    db = str(shutil.copy(STORED, tmp_path / "runs.db"))
    where = ("--project", "tests/vectors/runs_1/project", "--db", db)
    run = json.loads(loopagent("runs", "list", *where, "--json").stdout)[0]["id"]
    log = tmp_path / "run.log"
    assert loopagent("runs", "log", run, *where, "--out", str(log)).returncode == 0
    fine = loopagent("replay", str(log))
    assert (fine.returncode, "all as it was" in fine.stdout) == (0, True), fine.stdout
    printed = loopagent("runs", "log", run, *where).stdout
    assert printed == log.read_text()
    off = loopagent("replay", "-", "--json", stdin=printed[: printed.rindex('{"version')])
    shown = json.loads(off.stdout)
    assert (off.returncode, shown["differences"][-1]["what"]) == (1, "state")
    assert (
        "difference" in loopagent("replay", "-", stdin=printed.replace("Do it.", "Do.", 1)).stdout
    )
    damaged = loopagent("replay", "-", stdin=printed + "x")
    assert (damaged.returncode, "cannot be read" in damaged.stderr) == (2, True)
    assert loopagent("runs", "log", run, *where, "--out", str(tmp_path / "a" / "b")).returncode == 2
