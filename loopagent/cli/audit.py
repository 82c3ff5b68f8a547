"""The command that looks back at who decided what."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loopagent.audit_port import Wanted
from loopagent.cli.decide import requests
from loopagent.cli.manage import with_app
from loopagent.cli.opening import AsJson, Database, ProjectDir
from loopagent.cli.output import print_json, short, table


if TYPE_CHECKING:
    from loopagent.app import App
    from loopagent.ports import RequestRow

__all__ = ["requests"]


@requests.command("audit")
def list_decisions(
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    by: Annotated[str | None, typer.Option(help="Only by whom this is a part of.")] = None,
    kind: Annotated[str | None, typer.Option(help="approval, plan, question, …")] = None,
    decision: Annotated[str | None, typer.Option(help="approve, reject, answer, …")] = None,
    agent: Annotated[str | None, typer.Option(help="Only of this agent.")] = None,
    run: Annotated[str | None, typer.Option(help="Only of this run.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
) -> None:
    """List who decided what, the latest decision first."""

    async def work(app: App) -> int:
        wanted = Wanted(by or None, kind, decision, agent, run, tenant)
        rows, _ = await app.store.decided(wanted, limit=limit)
        if as_json:
            print_json([public(one) for one in rows])
            return 0
        columns = ("when", "who", "decision", "kind", "what", "agent", "run", "why")
        table(columns, [_row(one) for one in rows])
        return 0

    with_app(project, db, work)


def public(row: RequestRow) -> dict[str, Any]:
    """A decision as JSON."""
    done = row.resolution or {}
    return {
        "requestId": row.id,
        "runId": row.run_id,
        "agent": row.agent,
        "kind": row.body.get("kind"),
        "title": row.body.get("title", ""),
        "decidedAt": row.resolved_at,
        "by": done.get("by", ""),
        "decision": done.get("decision", ""),
        "feedback": done.get("feedback", ""),
    }


def _row(row: RequestRow) -> tuple[str, ...]:
    shown = public(row)
    when = datetime.fromtimestamp(row.resolved_at or 0.0, UTC).astimezone()
    words = [str(shown[name] or "") for name in ("by", "decision", "kind")]
    rest = (short(shown["title"], 50), row.agent, row.run_id, short(shown["feedback"], 40))
    return when.isoformat(" ", "seconds"), *words, *rest
