"""Commands about triggers: list, check, fire, log."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from loopagent.app import App
from loopagent.cli.following import Output
from loopagent.cli.manage import with_app
from loopagent.cli.opening import AsJson, Database, ProjectDir, open_app
from loopagent.cli.output import err, out, print_json, short, table
from loopagent.cli.session import drive, run_async, terminal_answerer
from loopagent.errors import ConfigError
from loopagent.project import load_project
from loopagent.trigger_port import Delivery, DeliveryStatus
from loopagent.triggers.checking import secret_problems
from loopagent.triggers.moments import following
from loopagent.triggers.spec import TriggerSpec


triggers = typer.Typer(
    help="Triggers, schedules and webhooks that start runs: list, check, fire, log.",
    no_args_is_help=True,
)
Name = Annotated[str, typer.Argument(help="Name of the trigger.")]
SHOWN_MOMENTS = 3


@triggers.command("list")
def list_triggers(
    project: ProjectDir = Path(), db: Database = None, as_json: AsJson = False
) -> None:
    """List triggers, with when they fire next and when they last fired."""
    loaded = load_project(project)

    async def work() -> int:
        async with open_app(loaded, _known(loaded.settings.db, db), recover=False) as app:
            views = [one.public() for one in await app.triggers.views()]
        if as_json:
            print_json(views)
            return 0
        columns = ("trigger", "kind", "agent", "enabled", "next", "last fired", "waiting")
        table(columns, [_row(one) for one in views])
        return 0

    run_async(work())


@triggers.command("check")
def check_triggers(project: ProjectDir = Path(), as_json: AsJson = False) -> None:
    """Check the triggers of a project, their secrets too; exit code 2 when one cannot work."""
    loaded = load_project(project)  # complains with file and line
    wrong = [
        f"{spec.name}: {'.'.join(map(str, loc))}: {what}"
        for spec in loaded.triggers.values()
        for loc, what in secret_problems(spec, os.environ)
    ]
    if wrong:
        raise ConfigError("some triggers let nobody in", wrong)
    made = {name: _moments(spec) for name, spec in sorted(loaded.triggers.items())}
    if as_json:
        print_json(made)
        return
    for name, moments in made.items():
        kind = loaded.triggers[name].kind
        out.print(f"{name}: {kind} {', '.join(moments)}".rstrip(), markup=False)
    out.print(f"{len(made)} trigger(s): fine")


@triggers.command("fire")
def fire_trigger(
    name: Name,
    project: ProjectDir = Path(),
    db: Database = None,
    body: Annotated[
        Path | None, typer.Option(help="JSON file with what a webhook would have been sent.")
    ] = None,
    event_id: Annotated[
        str | None, typer.Option(help="Id of the event; the same one starts no second run.")
    ] = None,
    as_json: AsJson = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Run it here, or leave it to a server.")
    ] = True,
) -> None:
    """Fire a trigger by hand; debounce, cooldown and `enabled` do not count."""
    loaded = load_project(project)
    given = None if body is None else _read(body)

    async def work() -> int:
        url = db or loaded.settings.db or "runs.db"
        async with open_app(loaded, url, recover=False) as app:
            done = await app.triggers.fire(name, given, event_id=event_id)
            if as_json:
                print_json(_public(done))
            else:
                err.print(_line(done), markup=False)
            if done.status != "fired" or not wait:
                return 0 if done.run_id else 1
            view = await app.get(done.run_id)
            output: Output = "json" if as_json else "timeline"
            answer = None if as_json else terminal_answerer()
            return await drive(app, view, output=output, answer=answer)

    run_async(work())


@triggers.command("log")
def show_log(
    name: Annotated[str | None, typer.Argument(help="Only of this trigger.")] = None,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    status: Annotated[DeliveryStatus | None, typer.Option(help="Only of this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
) -> None:
    """List what was delivered, newest first, with what became of it and why."""

    async def work(app: App) -> int:
        rows, _ = await app.triggers.deliveries(name, status=status, limit=limit)
        if as_json:
            print_json([_public(one) for one in rows])
            return 0
        columns = ("came", "trigger", "event", "status", "run", "why")
        table(columns, [_delivery(one) for one in rows])
        return 0

    with_app(project, db, work)


def _known(setting: str | None, given: str | None) -> str:
    """The database, if there is one yet: without, nothing has fired."""
    url = given or setting or "runs.db"
    return url if "://" in url or Path(url).exists() else "memory://"


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        message = f"{file}: the body cannot be read as JSON: {error}"
        raise ConfigError(message) from error


def _moments(spec: TriggerSpec) -> list[str]:
    """The next moments of a schedule."""
    found: list[str] = []
    at: float | None = time.time()
    while spec.schedule is not None and at is not None and len(found) < SHOWN_MOMENTS:
        at = following(spec.schedule, at)
        found += [] if at is None else [_time(at)]
    return found


def _time(at: float | None) -> str:
    if at is None:
        return ""
    return datetime.fromtimestamp(at, UTC).astimezone().isoformat(" ", "seconds")


def _row(view: dict[str, Any]) -> tuple[str, ...]:
    waiting = str(view["held"] + view["waiting"])
    enabled = "yes" if view["enabled"] else "no"
    times = _time(view["nextAt"]), _time(view["firedAt"])
    return view["name"], view["kind"], view["agent"], enabled, *times, waiting


def _delivery(one: Delivery) -> tuple[str, ...]:
    about = one.trigger, short(one.event_id, 40), one.status, one.run_id, short(one.reason, 80)
    return _time(one.at), *about


def _line(one: Delivery) -> str:
    return f"{one.trigger}: {one.status} {one.run_id} {one.reason}".rstrip()


def _public(one: Delivery) -> dict[str, Any]:
    return {
        "id": one.id,
        "trigger": one.trigger,
        "eventId": one.event_id,
        "source": one.source,
        "at": one.at,
        "updatedAt": one.updated_at,
        "status": one.status,
        "reason": one.reason,
        "runId": one.run_id or None,
        "bytes": one.bytes,
    }
