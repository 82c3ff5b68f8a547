"""Commands about actions that are built while a server runs: list, publish, export, versions, take back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loopagent.actions.format import OpenApiRun
from loopagent.actions.importing.keeping import FILE as IMPORTED
from loopagent.actions.reading import read_actions
from loopagent.cli import imports
from loopagent.cli.actions import actions
from loopagent.cli.manage import with_app
from loopagent.cli.opening import AsJson, Database, ProjectDir
from loopagent.cli.output import out, print_json, table
from loopagent.errors import ConfigError
from loopagent.library.listing import library_rows


if TYPE_CHECKING:
    from loopagent.app import App
    from loopagent.library_port import Built, Version

__all__ = ["actions", "imports"]  # both add to the same commands
Name = Annotated[str, typer.Argument(help="Name of the action.")]
Tenant = Annotated[str, typer.Option(help="Whose library; without, that of runs without a tenant.")]
Agents = Annotated[
    list[str] | None, typer.Option("--agent", help="An agent that gets it; may be repeated.")
]
Force = Annotated[bool, typer.Option("--force", help="Take the place of what is there.")]
NO_FILE = "-"
BY = "human"
"""Who is at the terminal, for the log."""


@actions.command("built")
def list_built(
    project: ProjectDir = Path(), db: Database = None, as_json: AsJson = False, tenant: Tenant = ""
) -> None:
    """List the actions that were built in the page or published from files: how each stands, who gets it."""

    async def work(app: App) -> int:
        rows = await library_rows(app.library, tenant)
        if as_json:
            print_json(rows)
            return 0
        columns = ("name", "kind", "state", "version", "agents", "changed by")
        table(columns, [_cells(one) for one in rows])
        return 0

    with_app(project, db, work)


def _cells(row: dict[str, object]) -> list[str]:
    names = row["usedBy"]
    agents = ", ".join(names) if isinstance(names, list) else ""
    state = f"{row['state']}, hidden by a file" if row["shadowed"] else str(row["state"])
    version = "" if row["published"] is None else str(row["published"])
    return [str(row["name"]), str(row["kind"]), state, version, agents, str(row["updatedBy"])]


@actions.command("publish")
def publish(
    file: Annotated[Path, typer.Argument(help="Action file.", exists=True, dir_okay=False)],
    project: ProjectDir = Path(),
    db: Database = None,
    tenant: Tenant = "",
    agent: Agents = None,
    note: Annotated[str, typer.Option(help="What is new.")] = "",
    force: Force = False,
) -> None:
    """Give an action file to new runs of a server, at once; without --agent it keeps its agents."""
    name, text, files = _read(file)

    async def work(app: App) -> int:
        library, by = app.library, BY
        known = {one.name: one for one in await library.list(tenant)}.get(name)
        if known is not None and known.state in {"draft", "changed"} and not force:
            what = f"{name} has a draft by {known.updated_by} that is not published"
            raise ConfigError(f"{what}; look at it, then take its place with --force")
        expected = None if known is None else known.draft_hash
        given = {**_origin(known), **files}
        row = await library.save(tenant, name, text, expected_hash=expected, by=by, files=given)
        row = await library.publish(
            tenant, name, draft_hash=row.draft_hash, by=by, agents=agent, note=note
        )
        _tell(row)
        return 0

    with_app(project, db, work)


def _origin(known: Built | None) -> dict[str, str]:
    """Where an action was imported from: no file has it, and importing again needs it."""
    files = {} if known is None else known.files
    return {IMPORTED: files[IMPORTED]} if IMPORTED in files else {}


def _read(file: Path) -> tuple[str, str, dict[str, str]]:
    """Name, text and documents of an action file.

    Raises:
        ConfigError: It cannot be read, or holds several actions.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
        reading = read_actions(text, file)
        if reading.problems:
            raise ConfigError(f"{file} has problems", reading.problems)
        if len(reading.actions) != 1:
            raise ConfigError(f"{file} holds {len(reading.actions)} actions; publish one at a time")
        [found] = reading.actions
        run = found.run
        files = {run.spec: _beside(file, run.spec)} if isinstance(run, OpenApiRun) else {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    return found.name, text, files


def _beside(file: Path, name: str) -> str:
    return (file.parent / name).read_text(encoding="utf-8-sig")


@actions.command("export")
def export(
    name: Name,
    project: ProjectDir = Path(),
    db: Database = None,
    tenant: Tenant = "",
    version: Annotated[
        int | None, typer.Option(help="Which; without, what is published, else the draft.")
    ] = None,
    to: Annotated[
        str,
        typer.Option("--out", help="File to write, or - to print; default: among the project's."),
    ] = "",
    force: Force = False,
) -> None:
    """Write an action of the library to an action file; once the project is loaded again, the file is used instead."""
    target = Path(to) if to else project / "actions" / f"{name}.action.yaml"

    async def work(app: App) -> int:
        row = await app.library.get(tenant, name)
        number = row.published if version is None else version
        found: Built | Version = row
        text = row.draft
        if number is not None:
            found = await app.library.version(tenant, name, number)
            text = found.text
        if to == NO_FILE:
            out.file.write(text)
            return 0
        documents = {
            target.parent / one: it
            for one, it in found.files.items()
            if one != IMPORTED  # of use to the library only
        }
        _write({target: text, **documents}, force)
        return 0

    with_app(project, db, work)


def _write(texts: dict[Path, str], force: bool) -> None:
    there = [str(one) for one in texts if one.exists()]
    if there and not force:
        raise ConfigError(f"{', '.join(there)} is there already; take its place with --force")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        out.print(f"wrote {path}", markup=False, soft_wrap=True)


@actions.command("versions")
def versions(
    name: Name,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    tenant: Tenant = "",
) -> None:
    """List the versions of an action of the library, newest first."""

    async def work(app: App) -> int:
        found = await app.library.versions(tenant, name)
        if as_json:
            shown = ("number", "hash", "by", "at", "note")
            print_json([{key: getattr(one, key) for key in shown} for one in found])
            return 0
        rows = [(str(one.number), _time(one.at), one.by, one.note) for one in found]
        table(("version", "published", "by", "note"), rows)
        return 0

    with_app(project, db, work)


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


@actions.command("rollback")
def rollback(
    name: Name,
    number: Annotated[int, typer.Argument(help="Version that is to be live again.")],
    project: ProjectDir = Path(),
    db: Database = None,
    tenant: Tenant = "",
) -> None:
    """Make an older version live again, as a new version."""

    async def work(app: App) -> int:
        _tell(await app.library.rollback(tenant, name, number, by=BY))
        return 0

    with_app(project, db, work)


@actions.command("grant")
def grant(
    name: Name,
    agent: Agents = None,
    project: ProjectDir = Path(),
    db: Database = None,
    tenant: Tenant = "",
) -> None:
    """Say which agents get an action of the library: those of --agent and no others."""

    async def work(app: App) -> int:
        _tell(await app.library.grant(tenant, name, agent or [], by=BY))
        return 0

    with_app(project, db, work)


@actions.command("retire")
def retire(
    name: Name, project: ProjectDir = Path(), db: Database = None, tenant: Tenant = ""
) -> None:
    """Give an action of the library to no new runs any more; its versions stay."""

    async def work(app: App) -> int:
        _tell(await app.library.retire(tenant, name, by=BY))
        return 0

    with_app(project, db, work)


@actions.command("remove")
def remove(
    name: Name, project: ProjectDir = Path(), db: Database = None, tenant: Tenant = ""
) -> None:
    """Remove an action of the library that is not published, with its versions."""

    async def work(app: App) -> int:
        await app.library.delete(tenant, name, by=BY)
        out.print(f"{name} is removed", markup=False)
        return 0

    with_app(project, db, work)


def _tell(row: Built) -> None:
    given = (
        f"for {', '.join(row.agents)}" if row.agents else "for no agent yet; name some with --agent"
    )
    live = f"version {row.published} is live, {given}" if row.published else "is not published"
    out.print(f"{row.name}: {live}", markup=False, soft_wrap=True)
