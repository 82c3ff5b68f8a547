"""Commands about API keys: create, list, revoke."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from loopagent.access import SCOPES
from loopagent.app import App
from loopagent.cli.manage import ago, with_app
from loopagent.cli.opening import AsJson, Database, ProjectDir
from loopagent.cli.output import err, out, print_json, table, wire
from loopagent.errors import ConfigError
from loopagent.key_port import KeyRow, SessionRow
from loopagent.keys import shown_id


keys = typer.Typer(
    help="API keys and sessions: create, list, revoke, sign out.", no_args_is_help=True
)
EVERYBODY = "all tenants"


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="What people call it.")],
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    tenant: Annotated[str, typer.Option(help="Whose runs it reaches.")] = "",
    all_tenants: Annotated[
        bool, typer.Option("--all-tenants", help="It reaches the runs of every tenant.")
    ] = False,
    user: Annotated[str, typer.Option(help="Who acts with it.")] = "",
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help=f"What it may do: {', '.join(SCOPES)}; may be given several times."
            " Without: runs and requests.answer."
        ),
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(help="What whoever has it is, for approvals; may be given several times."),
    ] = None,
) -> None:
    """Make a key and print it. It is shown this once: only its hash is kept."""
    if all_tenants and tenant:
        raise ConfigError("Give --tenant or --all-tenants, not both.")
    whose = None if all_tenants else tenant
    scopes = tuple(scope or ("runs", "requests.answer"))

    async def work(app: App) -> int:
        text, row = await app.keys.create(
            name, tenant=whose, user=user, scopes=scopes, roles=role or ()
        )
        if as_json:
            print_json({**public(row), "key": text})
            return 0
        err.print(
            f"key {row.id} for {_whose(row)}, may: {', '.join(row.scopes)}. It is not shown again:",
            markup=False,
        )
        out.print(text, markup=False, soft_wrap=True)
        return 0

    with_app(project, db, work, make=True)  # keys come before the first run


@keys.command("list")
def list_keys(
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    tenant: Annotated[str | None, typer.Option(help="Only keys of this tenant.")] = None,
) -> None:
    """List keys, those that were revoked as well."""

    async def work(app: App) -> int:
        rows = await app.keys.list(tenant)
        if as_json:
            print_json([public(one) for one in rows])
            return 0
        head = ("key", "name", "tenant", "user", "scopes", "last used", "status")
        table(head, [_row(one) for one in rows])
        return 0

    with_app(project, db, work, make=True)


@keys.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(help="Id of the key, as `keys list` shows it.")],
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """End a key for good, with the sessions that began with it."""

    async def work(app: App) -> int:
        await app.keys.revoke(key_id)
        if as_json:
            print_json({"id": key_id, "revoked": True})
        else:
            out.print(f"{key_id} revoked", markup=False)
        return 0

    with_app(project, db, work, make=True)


@keys.command("sessions")
def list_sessions(
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    tenant: Annotated[str | None, typer.Option(help="Only those of this tenant.")] = None,
) -> None:
    """List who is signed in to the pages."""

    async def work(app: App) -> int:
        names = {one.id: one.user or one.name for one in await app.keys.list(tenant)}
        found = [_session(one, names) for one in await app.keys.sessions(tenant)]
        if as_json:
            print_json(found)
            return 0
        rows = [
            (one["id"], one["name"], one["with"], _tenant(one["tenant"]), ago(one["createdAt"]))
            for one in found
        ]
        table(("session", "who", "with", "tenant", "since"), rows)
        return 0

    with_app(project, db, work, make=True)


@keys.command("sign-out")
def sign_out(
    session_id: Annotated[str, typer.Argument(help="As `keys sessions` shows it.")],
    project: ProjectDir = Path(),
    db: Database = None,
) -> None:
    """Sign somebody out of the pages."""

    async def work(app: App) -> int:
        await app.keys.end_session(session_id)
        out.print(f"{session_id} signed out", markup=False)
        return 0

    with_app(project, db, work, make=True)


def _session(row: SessionRow, names: dict[str, str]) -> dict[str, Any]:
    person = row.person
    return {
        "id": shown_id(row),
        "name": person.name or person.subject if person else names.get(row.key_id, "token"),
        "with": f"{person.provider}/{person.subject}" if person else row.key_id,
        "tenant": row.tenant,
        "createdAt": row.created_at,
        "expiresAt": row.expires_at,
    }


def _tenant(tenant: str | None) -> str:
    return EVERYBODY if tenant is None else tenant


def public(row: KeyRow) -> dict[str, Any]:
    """A key as JSON, without its hash."""
    return {name: value for name, value in wire(row).items() if name != "hash"}


def _whose(row: KeyRow) -> str:
    return EVERYBODY if row.tenant is None else f"tenant {row.tenant!r}"


def _row(row: KeyRow) -> tuple[str, ...]:
    used = "never" if row.last_used_at is None else ago(row.last_used_at)
    status = "valid" if row.revoked_at is None else f"revoked {ago(row.revoked_at)}"
    return row.id, row.name, _tenant(row.tenant), row.user, " ".join(row.scopes), used, status
