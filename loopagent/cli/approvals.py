"""Approvals that were given in advance, at the terminal: list them, take one back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from loopagent.app import App
from loopagent.cli.control import runs
from loopagent.cli.manage import RunId, with_app
from loopagent.cli.opening import AsJson, Database, ProjectDir
from loopagent.cli.output import print_json, short, table
from loopagent.cli.who import who_here
from loopagent.core.plan_reads import holding


__all__ = ["runs"]


@runs.command("approvals")
def run_approvals(
    run_id: RunId,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    revoke: Annotated[
        str | None, typer.Option(help="Id of an approval: ask again about its call.")
    ] = None,
) -> None:
    """List the calls that need no approval in a run any more, or take one back."""

    async def work(app: App) -> int:
        if revoke is not None:
            await app.revoke_approval(run_id, revoke, by=(await who_here(app)).by)
        kept = [one.public() for one in holding((await app.get(run_id)).state)]
        if as_json:
            print_json(kept)
            return 0
        rows = [(one["id"], one["action"], _which(one), one["scope"], one["by"]) for one in kept]
        table(("approval", "action", "parameters", "for", "by"), rows)
        return 0

    with_app(project, db, work)


def _which(kept: dict[str, Any]) -> str:
    """Which calls an approval lets through."""
    return short(kept["params"], 60) if kept["plan"] is None else f"plan revision {kept['plan']}"
