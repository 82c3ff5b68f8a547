"""Looking after runs that are kept in a store."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from loopagent.app import App
from loopagent.cli.opening import AsJson, Database, ProjectDir, open_app
from loopagent.cli.output import out, print_json, short, show_event, table, wire
from loopagent.cli.progress import Bars
from loopagent.cli.session import last_event, run_async
from loopagent.core.lineage import ARROW
from loopagent.errors import ConfigError
from loopagent.explain import explain
from loopagent.project import load_project
from loopagent.runtime.retention import Retention, remove_old
from loopagent.runtime.turn import turn_record
from loopagent.runview import RunView
from loopagent.tree import nested


runs = typer.Typer(
    help="Runs: look at them, pause, resume, fork, cancel, delete, prune.",
    no_args_is_help=True,
)
RunId = Annotated[str, typer.Argument(help="Id of the run.")]
RunStatus = Literal["running", "completed", "failed", "cancelled"]
Work = Callable[[App], Awaitable[int]]


def with_app(project: Path, db: str | None, work: Work, *, make: bool = False) -> None:
    """Open the project's app without taking up its runs, do something with it, exit with its code.

    With `make` the database is made when it is not there, as for `serve`, and nothing works on runs.
    """
    loaded = load_project(project)
    url = db or loaded.settings.db or "runs.db"
    if not make and "://" not in url and not Path(url).exists():
        message = f"there is no database {url!r}; name it with --db"
        raise ConfigError(message)

    async def opened() -> int:
        async with open_app(loaded, url, recover=False, work=not make) as app:
            return await work(app)

    run_async(opened())


@runs.command("list")
def list_runs(
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    agent: Annotated[str | None, typer.Option(help="Only runs of this agent.")] = None,
    status: Annotated[RunStatus | None, typer.Option(help="Only runs that stand so.")] = None,
    children: Annotated[
        bool, typer.Option("--children", help="Runs of sub-agents as well.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
) -> None:
    """List runs, newest first."""

    async def work(app: App) -> int:
        rows, _ = await app.runs(agent=agent, status=status, children=children, limit=limit)
        if as_json:
            print_json([wire(one) for one in rows])
            return 0
        shown = [
            (
                one.id,
                one.agent,
                one.status,
                one.state,
                str(one.turn),
                ago(one.updated_at),
                short(one.title, 50),
            )
            for one in rows
        ]
        table(("run", "agent", "status", "state", "turns", "changed", "task"), shown)
        return 0

    with_app(project, db, work)


@runs.command("show")
def show_run(
    run_id: RunId, project: ProjectDir = Path(), db: Database = None, as_json: AsJson = False
) -> None:
    """Show a run."""

    async def work(app: App) -> int:
        view = await app.get(run_id)
        if as_json:
            print_json({**view.public(), "tree": nested(await app.tree(run_id))[0]})
        else:
            _show(view)
            _show_below(nested(await app.tree(run_id))[0], "")
        return 0

    with_app(project, db, work)


@runs.command("events")
def show_events(
    run_id: RunId,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    after: Annotated[int, typer.Option(min=0, help="Only events with a larger number.")] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what happens, until the run ends.")
    ] = False,
) -> None:
    """Print what happened in a run, in order."""

    async def work(app: App) -> int:
        show = print_json if as_json else show_event
        if not follow and after >= await last_event(app, run_id):
            return 0
        with Bars(on=follow and not as_json) as bars:
            async for event in app.events(run_id, after=after, live=follow):
                bars.add(event)
                show(event)
        return 0

    with_app(project, db, work)


@runs.command("turns")
def count_turns(
    run_id: RunId, project: ProjectDir = Path(), db: Database = None, as_json: AsJson = False
) -> None:
    """List a run's planner calls: one line a turn, and what each turn's reply decided."""

    async def work(app: App) -> int:
        turns: dict[int, dict[str, Any]] = {}
        async for event in app.events(run_id, live=False):
            if event["runId"] == run_id:
                _note_turn(turns, event)
        if as_json:
            print_json(list(turns.values()))
            return 0
        rows = [
            (str(one["turn"]), one["reply"], one["outcome"], short(one["message"], 60))
            for one in turns.values()
        ]
        table(("turn", "reply", "outcome", "message"), rows)
        return 0

    with_app(project, db, work)


@runs.command("turn")
def show_turn(
    run_id: RunId,
    turn: Annotated[int, typer.Argument(help="Number of the turn, from 1.")],
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show one turn: the prompt as it was sent, the reply word for word, and what was made of it."""

    async def work(app: App) -> int:
        await app.need_log(run_id)
        found = (await turn_record(app.store, run_id, turn, app.system)).public()
        if as_json:
            print_json(found)
            return 0
        prompt = found.pop("prompt")
        same = "as sent" if prompt["exact"] else "as far as it can be rendered again"
        out.print(
            f"prompt, {same}; sha256 {prompt['sha256']}\n\n[system]\n{prompt['system']}",
            markup=False,
        )
        for one in prompt["messages"]:
            out.print(f"[{one['role']}]\n{one['text']}\n", markup=False)
        print_json(found)
        return 0

    with_app(project, db, work)


@runs.command("explain")
def explain_run(
    run_id: RunId, project: ProjectDir = Path(), db: Database = None, as_json: AsJson = False
) -> None:
    """Say turn by turn who decided what, and on which grounds, from the run's events."""

    async def work(app: App) -> int:
        await app.need_log(run_id)
        explanation = explain([one async for one in app.events(run_id, live=False)])
        if as_json:
            print_json(explanation.public())
        else:
            out.print(explanation.text(), markup=False)
        return 0

    with_app(project, db, work)


@runs.command("cancel")
def cancel_run(
    run_id: RunId,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    reason: Annotated[str, typer.Option(help="Why.")] = "",
) -> None:
    """Stop a run."""

    async def work(app: App) -> int:
        return tell(await app.cancel(run_id, reason=reason, by="human"), as_json=as_json)

    with_app(project, db, work)


@runs.command("delete")
def delete_run(
    run_id: RunId, project: ProjectDir = Path(), db: Database = None, as_json: AsJson = False
) -> None:
    """Remove an ended run with everything that belongs to it."""

    async def work(app: App) -> int:
        await app.delete(run_id)
        if as_json:
            print_json({"id": run_id, "deleted": True})
        else:
            out.print(f"{run_id} removed")
        return 0

    with_app(project, db, work)


@runs.command("prune")
def prune_runs(
    older_than: Annotated[
        float,
        typer.Option("--older-than", min=0.001, metavar="DAYS", help="Days since they ended."),
    ],
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    logs_only: Annotated[
        bool, typer.Option("--logs-only", help="Keep what they came to, remove only their logs.")
    ] = False,
) -> None:
    """Remove ended runs, or only their logs, when they are older than so many days."""
    rules = Retention(log_days=older_than) if logs_only else Retention(run_days=older_than)

    async def work(app: App) -> int:
        removed = await remove_old(app.store, rules, app.now())
        if as_json:
            print_json(asdict(removed))
        else:
            out.print(f"{removed.runs} runs and the logs of {removed.logs} others removed")
            if removed.definitions:
                out.print(f"{removed.definitions} definitions of actions removed that no run has")
        return 0

    with_app(project, db, work)


def tell(view: RunView, *, as_json: bool) -> int:
    """Show a run that something was done to; the exit code is that of success."""
    if as_json:
        print_json(view.public())
    else:
        _show(view)
    return 0


def _show(view: RunView) -> None:
    """Print a run as it is now."""
    public = view.public()
    for key in ("id", "agent", "model", "status", "reason", "turn", "message"):
        if public[key] not in (None, ""):
            out.print(f"{key:>9}: ", end="")
            out.print(str(public[key]), markup=False)
    out.print(f"{'state':>9}: {public['state']['state']}")
    if public["paused"]:
        why = " ".join(("by", public["paused"]["by"], public["paused"]["reason"])).strip()
        out.print(f"{'paused':>9}: {why}", markup=False)
    if public["forkedFrom"]:
        origin = f"{public['forkedFrom']['runId']}, before turn {public['forkedFrom']['turn']}"
        out.print(f"{'fork of':>9}: {origin}", markup=False)
    out.print(f"{'payload':>9}: ", end="")
    print_json(public["payload"])
    for one in public["requests"]:
        who = ARROW.join(one["agents"][1:])
        shown = f"{one['requestId']} {one['title']}" + (f" ({who})" if who else "")
        out.print(f"{'waits for':>9}: {shown}", markup=False)


def _show_below(node: dict[str, Any], indent: str) -> None:
    for one in node["children"]:
        line = f"{indent}{one['agent']} {one['status']}, {one['turn']} turns: {one['id']}"
        out.print(f"{'gave work':>9}: {line}", markup=False)
        _show_below(one, f"{indent}  ")


def _note_turn(turns: dict[int, dict[str, Any]], event: dict[str, Any]) -> None:
    turn: int = event.get("turn", 0)
    kind, data = event["type"], event["data"]
    if kind == "turn.started":
        turns[turn] = {"turn": turn, "reply": "", "outcome": "", "message": ""}
    elif kind == "reply.received":
        turns[turn] |= {"reply": data["type"], "message": data.get("message", "")}
    elif kind == "reply.rejected":
        turns[turn] |= {
            "reply": "refused",
            "message": "; ".join(one["message"] for one in data["problems"]),
        }
    elif kind == "reply.truncated":
        turns[turn] |= {"reply": "truncated"}
    elif kind == "turn.ended":
        turns[turn] |= {"outcome": data["outcome"]}


def ago(at: float) -> str:
    """How long ago a moment was, in words; `at` is in seconds since the epoch."""
    seconds = max(0, int(time.time() - at))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"
