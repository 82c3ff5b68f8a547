"""Commands about notifications: list, replay, send."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from loopagent.app import App
from loopagent.cli.manage import with_app
from loopagent.cli.opening import AsJson, Database, ProjectDir
from loopagent.cli.output import out, print_json, short, table
from loopagent.notification_port import Notice, NoticeStatus
from loopagent.notifications.receivers import ReceiverView, shown_target
from loopagent.notifications.service import public


notifications = typer.Typer(
    help="Notifications of open requests and ended runs: list, replay, send; receivers, enable.",
    no_args_is_help=True,
)


@notifications.command("list")
def list_notifications(
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    run: Annotated[str | None, typer.Option(help="Only of this run.")] = None,
    status: Annotated[NoticeStatus | None, typer.Option(help="Only of this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
) -> None:
    """List notifications, newest first, with what became of them."""

    async def work(app: App) -> int:
        rows, _ = await app.notifications.list(run_id=run, status=status, limit=limit)
        if as_json:
            print_json([public(one) for one in rows])
            return 0
        columns = ("id", "when", "what", "run", "to", "status", "tries", "last answer")
        table(columns, [_row(one) for one in rows])
        return 0

    with_app(project, db, work)


@notifications.command("receivers")
def list_receivers(
    project: ProjectDir = Path(), db: Database = None, as_json: AsJson = False
) -> None:
    """List who is told, and who fails or is disabled because of that."""

    async def work(app: App) -> int:
        found = await app.notifications.receivers.list()
        if as_json:
            print_json([one.public() for one in found])
            return 0
        columns = ("receiver", "kind", "where", "events", "status", "failures", "last error")
        table(columns, [_receiver_row(one) for one in found])
        return 0

    with_app(project, db, work)


@notifications.command("enable")
def enable_receiver(
    receiver: Annotated[str, typer.Argument(help="As `notifications receivers` shows it.")],
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Tell a receiver again that was disabled; what failed meanwhile is not sent by itself, replay it."""

    async def work(app: App) -> int:
        found = await app.notifications.receivers.enable(receiver)
        if as_json:
            print_json(found.public())
        else:
            out.print(f"{receiver} is enabled", markup=False)
        return 0

    with_app(project, db, work)


@notifications.command("replay")
def replay_notification(
    notice_ids: Annotated[list[str], typer.Argument(help="Ids of notifications.")],
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Send notifications again, from here, under their ids; exit code 1 when one does not get through."""

    async def work(app: App) -> int:
        for one in notice_ids:
            await app.notifications.replay(one)
        await app.notifications.sweep()
        rows = [await app.notifications.get(one) for one in notice_ids]
        _print(rows, as_json=as_json)
        return 0 if all(one.status == "sent" for one in rows) else 1

    with_app(project, db, work)


@notifications.command("send")
def send_notifications(project: ProjectDir = Path(), db: Database = None) -> None:
    """Send what is due now and exit, where no server or worker runs that does so by itself."""

    async def work(app: App) -> int:
        await app.notifications.sweep()
        rows, _ = await app.notifications.list(status="waiting", limit=1)
        out.print("some are to be tried again later" if rows else "nothing is left to send")
        return 0

    with_app(project, db, work)


def _print(rows: list[Notice], *, as_json: bool) -> None:
    if as_json:
        print_json([public(one) for one in rows])
        return
    for one in rows:
        out.print(f"{one.id}: {one.status} {_answer(one)}".rstrip(), markup=False)


def _row(one: Notice) -> tuple[str, ...]:
    when = datetime.fromtimestamp(one.at, UTC).astimezone().isoformat(" ", "seconds")
    target, answer = short(shown_target(one.target), 60), short(_answer(one), 80)
    return one.id, when, one.kind, one.run_id, target, one.status, str(one.tries), answer


def _receiver_row(one: ReceiverView) -> tuple[str, ...]:
    shown = one.public()
    events = " ".join(one.events) or "all"
    error = short(shown["error"], 80)
    return one.id, one.kind, one.target, events, shown["status"], str(shown["failures"]), error


def _answer(one: Notice) -> str:
    if not one.attempts:
        return ""
    latest = one.attempts[-1]
    return latest.error or str(latest.status or "")
