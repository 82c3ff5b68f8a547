"""Lists and events in the terminal: their words, their JSON, and what they say of a wrong option."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from loopagent.cli.progress import Bars
from tests.cli.commands import loopagent


DEMO = ("--project", "examples/demo")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """A database with a run whose plan waits."""
    db = ("--db", str(tmp_path_factory.mktemp("kept") / "runs.db"))
    assert loopagent("run", "order-analyst", "Late?", *DEMO, *db).returncode == 3
    return (*DEMO, *db)


def _first(*command: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(loopagent(*command, "--json").stdout)[0]
    return found


def test_json_of_lists_has_the_names_that_it_has_everywhere(kept: tuple[str, ...]) -> None:
    run, request = _first("runs", "list", *kept), _first("requests", "list", *kept)
    assert {"createdAt", "updatedAt", "parentId"} < set(run)
    assert (request["runId"], request["resolvedAt"]) == (run["id"], None)


@pytest.mark.parametrize(
    ("command", "known"),
    [("runs", "cancelled"), ("requests", "expired")],
)
def test_a_status_that_is_none_is_refused(kept: tuple[str, ...], command: str, known: str) -> None:
    refused = loopagent(command, "list", *kept, "--status", "odd")
    assert refused.returncode == 2
    assert known in refused.stderr


def test_events_behind_the_last_one_are_none(kept: tuple[str, ...]) -> None:
    run = str(_first("runs", "list", *kept)["id"])
    told = loopagent("runs", "events", run, *kept, "--json").stdout.splitlines()
    last = json.loads(told[-1])["seq"]
    assert last == len(told)
    for after in (last, last + 80):
        nothing = loopagent("runs", "events", run, *kept, "--after", str(after))
        assert (nothing.returncode, nothing.stdout) == (0, "")


def test_a_run_is_followed_to_its_end(kept: tuple[str, ...]) -> None:
    run = str(_first("runs", "list", *kept)["id"])
    copy = loopagent("runs", "fork", run, *kept, "--turn", "1", "--no-follow", "--json")
    started = json.loads(copy.stdout)["id"]
    loopagent("runs", "cancel", started, *kept)
    followed = loopagent("runs", "events", started, *kept, "--follow", "--json").stdout
    assert json.loads(followed.splitlines()[-1])["type"] == "run.cancelled"


def test_json_and_events_are_two_things() -> None:
    both = loopagent("run", "order-analyst", "Late?", *DEMO, "--json", "--events")
    assert (both.returncode, "not both" in both.stderr) == (2, True)


def test_limits_are_complained_about_in_their_own_names() -> None:
    refused = loopagent("run", "order-analyst", "Late?", *DEMO, "--max-seconds", "0")
    assert refused.returncode == 2
    assert "/maxSeconds: Input should be greater than 0" in refused.stderr
    assert "pydantic" not in refused.stderr


def test_a_run_that_is_not_kept_says_how_to_keep_it() -> None:
    waiting = loopagent("run", "order-analyst", "Late?", *DEMO)
    assert (waiting.returncode, "--db" in waiting.stdout) == (3, True)


def _event(fact: str, path: str = "", **data: object) -> dict[str, object]:
    return {"runId": "run_1", "turn": 2, "type": fact, "path": path, "data": data}


def test_a_loop_has_a_bar_as_long_as_it_goes_on() -> None:
    drawn = io.StringIO()
    with Bars(on=True, console=Console(file=drawn, force_terminal=True, width=90)) as bars:
        bars.add(_event("loop.progress", done=1, failed=0))
        bars.add(_event("loop.started", kind="forEach", what="action [look]", passes=9))
        for at in (0, 0, 1):
            bars.add(_event("action.completed", f"turn/2/each/{at}"))
        bars.add(_event("loop.progress", "turn/2/each", done=4, failed=1))
        bars.add(_event("reply.received"))
        bars.add(_event("loop.completed"))
    shown = drawn.getvalue()
    assert "forEach action [look]" in shown
    assert "5/9" in shown or "0/9" in shown


def test_nothing_is_drawn_where_nobody_looks() -> None:
    drawn = io.StringIO()
    with Bars(on=True, console=Console(file=drawn)) as bars:
        bars.add(_event("loop.started", kind="forEach", what="x", passes=9))
    assert drawn.getvalue() == ""


def test_a_row_is_a_line_with_its_whole_id_for_other_programs(kept: tuple[str, ...]) -> None:
    task = "Which orders are late, and " * 3
    assert loopagent("run", "order-analyst", task, *kept).returncode == 3
    head, *rows = loopagent("runs", "list", *kept, COLUMNS="50").stdout.splitlines()
    assert head.split() == ["run", "agent", "status", "state", "turns", "changed", "task"]
    known = json.loads(loopagent("runs", "list", *kept, "--json").stdout)
    assert [one.split()[0] for one in rows] == [one["id"] for one in known]
