"""Commands about the notes that agents keep: list, show, edit, delete, export."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from loopagent.app import App
from loopagent.cli.manage import with_app
from loopagent.cli.opening import AsJson, Database, ProjectDir
from loopagent.cli.output import out, print_json, short, table
from loopagent.core.notes import Note, NoteChange, NoteStatus, NoteType, public
from loopagent.memory import EVERYBODY, Viewer


memory = typer.Typer(
    help="Notes that agents keep: list, show, edit, delete, export.", no_args_is_help=True
)
NoteId = Annotated[str, typer.Argument(help="Id of the note.")]
User = Annotated[
    str | None, typer.Option(help="Only as this user sees them; without, the notes of everybody.")
]
Tenant = Annotated[str, typer.Option(help="Organisation of the user.")]
Agent = Annotated[str | None, typer.Option(help="Only notes of this agent.")]


@memory.command("list")
def list_notes(
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    user: User = None,
    tenant: Tenant = "",
    agent: Agent = None,
    status: Annotated[NoteStatus | None, typer.Option(help="Only notes of this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
) -> None:
    """List notes, newest first."""

    async def work(app: App) -> int:
        rows, _ = await app.memory.list(
            _viewer(user, tenant), agent=agent, status=status, limit=limit
        )
        if as_json:
            print_json([public(one) for one in rows])
            return 0
        table(("note", "agent", "user", "status", "type", "text"), [_row(one) for one in rows])
        return 0

    with_app(project, db, work)


@memory.command("show")
def show_note(
    note_id: NoteId,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    user: User = None,
    tenant: Tenant = "",
) -> None:
    """Show a note, where it comes from, and why it waits if it does."""

    async def work(app: App) -> int:
        _show(await app.memory.get(note_id, _viewer(user, tenant)), as_json=as_json)
        return 0

    with_app(project, db, work)


@memory.command("edit")
def edit_note(
    note_id: NoteId,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    user: User = None,
    tenant: Tenant = "",
    text: Annotated[
        str | None, typer.Option(help="New text; a changed note counts as confirmed.")
    ] = None,
    kind: Annotated[NoteType | None, typer.Option("--type", help="New type.")] = None,
    confirm: Annotated[
        bool | None,
        typer.Option(
            "--confirm/--put-aside", help="Keep it for good, or show it to no run any more."
        ),
    ] = None,
) -> None:
    """Change a note, confirm it, or put it aside."""

    async def work(app: App) -> int:
        change = NoteChange(text, kind, confirm)
        note = await app.memory.edit(note_id, change, _viewer(user, tenant), by="human")
        _show(note, as_json=as_json)
        return 0

    with_app(project, db, work)


@memory.command("delete")
def delete_note(
    note_id: NoteId,
    project: ProjectDir = Path(),
    db: Database = None,
    user: User = None,
    tenant: Tenant = "",
) -> None:
    """Remove a note for good, with the earlier ones whose place it took."""

    async def work(app: App) -> int:
        await app.memory.delete(note_id, _viewer(user, tenant))
        out.print(f"{note_id} removed", markup=False)
        return 0

    with_app(project, db, work)


@memory.command("export")
def export_notes(
    project: ProjectDir = Path(),
    db: Database = None,
    user: User = None,
    tenant: Tenant = "",
    agent: Agent = None,
) -> None:
    """Print every note as a line of JSON, with history and those that wait for a person."""

    async def work(app: App) -> int:
        async for one in app.memory.export(_viewer(user, tenant), agent=agent):
            sys.stdout.write(json.dumps(public(one), ensure_ascii=False) + "\n")
        return 0

    with_app(project, db, work)


def _viewer(user: str | None, tenant: str) -> Viewer:
    return EVERYBODY if user is None else Viewer(user, tenant)


def _row(note: Note) -> tuple[str, ...]:
    user = note.circle.user if note.scope == "user" else "(all)"
    return note.id, note.circle.agent, user, note.status, note.type, short(note.text, 60)


def _show(note: Note, *, as_json: bool) -> None:
    about = public(note)
    if as_json:
        print_json(about)
        return
    for key, value in about.items():
        if value not in (None, "", []):
            shown = "; ".join(value) if isinstance(value, list) else str(value)
            out.print(f"{key:>10}: {shown}", markup=False)
