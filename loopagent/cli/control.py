"""Runs as a whole, from the terminal: pause, resume, raise limits, fork."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from loopagent.app import App
from loopagent.cli.attach import attach
from loopagent.cli.following import Output
from loopagent.cli.manage import (
    RunId,
    runs,
    tell,
    with_app,
)
from loopagent.cli.opening import AsJson, Database, ProjectDir
from loopagent.cli.output import out, print_json, short, table
from loopagent.cli.session import drive, last_event, payload_of, terminal_answerer
from loopagent.core.control_state import RAISABLE
from loopagent.runview import RunView


__all__ = ["runs"]
ANY = "none"
"""How a limit is taken away."""
runs.command("attach")(attach)


async def go_on(app: App, view: RunView, *, as_json: bool, after: int) -> int:
    """Follow a run to its end or its next question."""
    output: Output = "json" if as_json else "timeline"
    answer = None if as_json else terminal_answerer()
    return await drive(app, view, output=output, answer=answer, after=after)


@runs.command("pause")
def pause_run(
    run_id: RunId,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    reason: Annotated[str, typer.Option(help="Why.")] = "",
) -> None:
    """Let a run stand still, with those below it, until it is resumed."""

    async def work(app: App) -> int:
        return tell(await app.pause(run_id, reason=reason, by="human"), as_json=as_json)

    with_app(project, db, work)


@runs.command("resume")
def resume_run(
    run_id: RunId, project: ProjectDir = Path(), db: Database = None, as_json: AsJson = False
) -> None:
    """Go on with a run that is paused, that a failing model ended, or that was left in the middle."""

    async def work(app: App) -> int:
        after = await last_event(app, run_id)
        view = await app.resume(run_id, by="human")
        return await go_on(app, view, as_json=as_json, after=after)

    with_app(project, db, work)


@runs.command("limits")
def raise_limits(
    run_id: RunId,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    max_turns: Annotated[int | None, typer.Option(help="Planner calls in all.")] = None,
    max_seconds: Annotated[
        str | None, typer.Option(help="Working time in seconds, or `none`.")
    ] = None,
    max_tokens: Annotated[str | None, typer.Option(help="Tokens in all, or `none`.")] = None,
    max_cost_usd: Annotated[str | None, typer.Option(help="Cost in US dollars, or `none`.")] = None,
) -> None:
    """Show what a run may spend, or let it spend more; one that ended at a limit goes on."""
    given = {
        "maxTurns": None if max_turns is None else str(max_turns),
        "maxSeconds": max_seconds,
        "maxTokens": max_tokens,
        "maxCostUsd": max_cost_usd,
    }
    wanted = {name: _limit(name, text) for name, text in given.items() if text is not None}

    async def work(app: App) -> int:
        view = await app.get(run_id)
        if not wanted:
            limits = {name: view.public()["limits"][name] for name in RAISABLE}
            print_json(limits)
            return 0
        after, ended = await last_event(app, run_id), view.state.ended
        view = await app.raise_limits(run_id, wanted, by="human")
        if ended:
            return await go_on(app, view, as_json=as_json, after=after)
        print_json(view.public()["limits"])
        return 0

    with_app(project, db, work)


def _limit(name: str, text: str) -> Any:
    """A limit as it is typed."""
    if text == ANY:
        return None
    try:
        return float(text) if name in {"maxSeconds", "maxCostUsd"} else int(text)
    except ValueError as error:
        message = f"{name}: a number or `{ANY}` is needed, not {text!r}"
        raise typer.BadParameter(message) from error


@runs.command("fork")
def fork_run(
    run_id: RunId,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    turn: Annotated[
        int | None, typer.Option(min=1, help="Turn to take anew; the last one by default.")
    ] = None,
    message: Annotated[
        str | None, typer.Option(help="What is said to the copy before that.")
    ] = None,
    payload: Annotated[
        Path | None, typer.Option(help="JSON file with the payload that it has instead.")
    ] = None,
    max_turns: Annotated[int | None, typer.Option(help="Planner calls it may have in all.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Go on with the copy, here and now.")
    ] = True,
) -> None:
    """Start a copy of a run as it was before one of its turns; the run itself is not changed."""

    async def work(app: App) -> int:
        view = await app.fork(
            run_id,
            turn=turn,
            message=message,
            payload=None if payload is None else payload_of(payload),
            limits=None if max_turns is None else {"maxTurns": max_turns},
            by="human",
        )
        if view.state.forked_from is not None and not as_json:
            out.print(
                f"{view.id} is a copy of {run_id}, from before its turn {view.state.forked_from.turn}"
            )
        if not follow and as_json:
            print_json(view.public())
        if not follow:
            return 0
        return await go_on(app, view, as_json=as_json, after=0)

    with_app(project, db, work)


@runs.command("compare")
def compare_runs(
    run_id: RunId,
    other_id: Annotated[str, typer.Argument(help="Id of the other run.")],
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show two runs side by side, turn by turn: what was decided, done and spent."""

    async def work(app: App) -> int:
        found = await app.compare(run_id, other_id)
        if as_json:
            print_json(found)
            return 0
        for name in ("a", "b"):
            one = found[name]
            how = f"{one['status']}" + (f" ({one['reason']})" if one["reason"] else "")
            spent = sum(one["usage"][key] for key in ("inputTokens", "outputTokens"))
            out.print(
                f"{name}: {one['id']} {how}, {one['turns']} turns, {spent} tokens", markup=False
            )
        rows = [
            (
                str(one["turn"]),
                "same" if one["same"] else ", ".join(one["differs"]),
                _turn(one["a"]),
                _turn(one["b"]),
            )
            for one in found["turns"]
        ]
        table(("turn", "differs in", "a", "b"), rows)
        for one in found["payload"]:
            where = ".".join(str(part) for part in one["path"]) or "payload"
            value = f" {json.dumps(one['value'], ensure_ascii=False)}" if "value" in one else ""
            out.print(short(f"payload: {one['op']} {where}{value}", 200), markup=False)
        return 0

    with_app(project, db, work)


def _turn(one: dict[str, Any] | None) -> str:
    if one is None:
        return "-"
    did = ", ".join(f"{call['name']}{'' if call['ok'] else ' (failed)'}" for call in one["calls"])
    words = (one["type"] or one["reply"], did, one["message"])
    return short("; ".join(word for word in words if word), 60)
