"""Commands that make action files of what others wrote."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from loopagent.actions.importing.changing import Change
from loopagent.actions.importing.curl import import_curl
from loopagent.actions.importing.document import ApiDocument
from loopagent.actions.importing.fetching import fetch_api, is_address, read_api_file
from loopagent.actions.importing.mcp import plan_mcp
from loopagent.actions.importing.openapi import (
    Plan,
    file_of,
    plan_import,
    prefix_of,
    write_import,
)
from loopagent.actions.importing.operations import Options
from loopagent.actions.importing.texts import yaml_text
from loopagent.cli.actions import actions
from loopagent.cli.opening import AsJson, ProjectDir
from loopagent.cli.output import err, out, print_json, visible
from loopagent.cli.scenarios import FAILED
from loopagent.errors import ConfigError
from loopagent.project import load_means


OutDir = Annotated[Path, typer.Option("--out", help="Folder of the action files.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would come of it; write nothing.")
]


@actions.command("import-openapi")
def import_openapi(
    source: Annotated[str, typer.Argument(help="File or address of an OpenAPI document.")],
    out_dir: OutDir = Path("actions"),
    name: Annotated[
        str, typer.Option(help="Begins the names of the actions; default: the title.")
    ] = "",
    pick: Annotated[
        list[str] | None,
        typer.Option(help="Only these: operation id, name, pattern like `get_*`, or `GET /pets`."),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only operations with this tag.")] = None,
    base_url: Annotated[
        str, typer.Option(help="Address to call instead of the servers that are named.")
    ] = "",
    server_var: Annotated[
        list[str] | None, typer.Option(help="Value of a server variable: name=value.")
    ] = None,
    project: ProjectDir = Path(),
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make actions of the operations of an OpenAPI document; they are disabled until you enable them."""
    document = _document(source, project)
    options = Options(name or prefix_of(document), base_url, _variables(server_var or []))
    folder = project / out_dir
    look = dry_run and not pick and not tag and not folder.exists()
    plan = plan_import(
        document, options, out=None if look else folder, picks=pick or (), tags=tag or ()
    )
    _finish(plan, folder, dry_run=dry_run, as_json=as_json)


@actions.command("import-curl")
def import_curl_command(
    command: Annotated[
        str, typer.Argument(help="The command in quotes; `-` reads it from standard input.")
    ] = "-",
    out_dir: OutDir = Path("actions"),
    name: Annotated[
        str, typer.Option(help="Name of the action; default: made of host and path.")
    ] = "",
    project: ProjectDir = Path(),
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make an action of a curl command; secrets in it become names, and it is disabled until you enable it."""
    made = import_curl(sys.stdin.read() if command == "-" else command, name)
    path = file_of(project / out_dir, str(made.action["name"]))
    if not dry_run:
        if path.exists():
            raise ConfigError(f"{path} exists; choose another --name")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml_text(made.action), encoding="utf-8")
    if as_json:
        print_json({"action": made.action, "secrets": made.secrets, "notes": made.notes})
    else:
        out.print(visible(yaml_text(made.action) if dry_run else str(path)), soft_wrap=True)
        for note in made.notes:
            err.print(note, markup=False, soft_wrap=True)
        _say_secrets(made.secrets)


@actions.command("import-mcp")
def import_mcp(
    server: Annotated[
        str, typer.Argument(help="Name of an MCP server under [mcp] in loopagent.toml.")
    ],
    out_dir: OutDir = Path("actions"),
    pick: Annotated[
        list[str] | None, typer.Option(help="Only these tools: name or pattern.")
    ] = None,
    project: ProjectDir = Path(),
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make actions of the tools of an MCP server, pinned to what they are now; disabled until you enable them."""
    folder = project / out_dir
    look = dry_run and not pick and not folder.exists()
    work = plan_mcp(server, load_means(project), out=None if look else folder, picks=pick or ())
    _finish(asyncio.run(work), folder, dry_run=dry_run, as_json=as_json)


def _finish(plan: Plan, folder: Path, *, dry_run: bool, as_json: bool) -> None:
    """Write what a plan says, and tell of it."""
    written = [] if dry_run else write_import(plan, folder)
    if as_json:
        print_json({**plan.public(), "written": [str(one) for one in written]})
    else:
        _show(plan, dry_run=dry_run)
    if any(one.what == "refused" for one in plan.changes):
        raise typer.Exit(FAILED)


def _document(source: str, project: Path) -> ApiDocument:
    if is_address(source):
        return asyncio.run(fetch_api(source, load_means(project)))
    return read_api_file(Path(source))


def _variables(given: list[str]) -> dict[str, str]:
    made: dict[str, str] = {}
    for one in given:
        name, separator, value = one.partition("=")
        if not separator or not name:
            raise ConfigError(f"--server-var {one!r}: must be name=value, like region=eu")
        made[name] = value
    return made


def _show(plan: Plan, *, dry_run: bool) -> None:
    changes = {one.name: one for one in plan.changes}
    for draft in plan.drafts:
        change = changes.pop(draft.name, None)
        what = change.what if change else "refused" if draft.problems else ""
        head = f"{what:8} {draft.name}: {draft.method} {draft.path}"
        _line(
            f"{head} ({draft.public()['effects']}, auth {draft.auth}, {draft.server or 'no server'})"
        )
        for line in dict.fromkeys([*draft.problems, *draft.notes, *_said(change)]):
            _line(f"           {line}")
    for change in changes.values():
        _line(f"{change.what:8} {change.name}: {'; '.join(change.notes)}")
    _say_what_next(plan, dry_run=dry_run)


def _said(change: Change | None) -> list[str]:
    return [] if change is None else [*change.notes, *change.lines]


def _line(text: str) -> None:
    out.print(visible(text), markup=False, highlight=False, soft_wrap=True)


def _say_what_next(plan: Plan, *, dry_run: bool) -> None:
    secrets = sorted({name for one in plan.drafts for name in one.action.get("secrets", ())})
    if dry_run:
        err.print("Nothing was written.")
    elif any(one.what in {"new", "changed"} for one in plan.changes):
        err.print("Look at each file, then set `enabled: true` in it.", markup=False)
    _say_secrets(secrets)


def _say_secrets(secrets: list[str]) -> None:
    if secrets:
        listed = ", ".join(f"[credentials.{one}]" for one in secrets)
        err.print(f"Secrets to set up in loopagent.toml: {listed}", markup=False, soft_wrap=True)
