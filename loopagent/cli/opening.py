"""Opening a project and its database: what the commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from loopagent import logs
from loopagent.access import without_keys
from loopagent.app import App
from loopagent.project import Project
from loopagent.settings import Settings
from loopagent.telemetry import Telemetry


ProjectDir = Annotated[Path, typer.Option("--project", help="Folder of the project.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Database = Annotated[
    str | None, typer.Option("--db", help="Where runs are kept: a file or a store URL.")
]


def open_app(
    project: Project,
    db: str | None,
    *,
    recover: bool = True,
    serving: bool = False,
    work: bool = True,
    max_runs: int | None = None,
    lease_seconds: float | None = None,
    grace_seconds: float = 0.0,
) -> App:
    """The app of a project, over a store that may be given as a file name; the process logs without its secrets.

    Args:
        project: The project.
        db: A file name or a store URL; None takes what the project says.
        recover: Whether to take up runs that an earlier process left in the middle.
        serving: Log as the project says; otherwise only warnings are shown, as plain lines.
        work: Whether to work on runs; if not, they are left to others.
        max_runs: Runs that are worked on at the same time at most; None for any number.
        lease_seconds: See `App`; None takes what the project says.
        grace_seconds: See `App`.
    """
    settings = project.settings
    url = db or settings.db or "memory://"
    app = App(
        agents=project.agents.values(),
        store=url if "://" in url else f"sqlite:///{url}",
        model=settings.model,
        structured=settings.structured,
        secrets=settings.secrets,
        retention=settings.retention,
        hooks=project.hooks,
        embedder=settings.embeddings,
        secret_values=project.secret_values,
        actions=project.actions.values(),
        triggers=project.triggers.values(),
        notifications=settings.notifications,
        egress=settings.egress,
        means=project.means,
        library=settings.library,
        telemetry=_telemetry(settings) if serving else None,
        base_dir=project.folder,
        recover=recover,
        work=work,
        max_runs=max_runs,
        lease_seconds=lease_seconds or settings.lease_seconds,
        grace_seconds=grace_seconds,
    )
    if serving:
        logs.set_up(mask=_mask(app), level=settings.log_level, form=settings.log_format)
    else:
        logs.set_up(mask=_mask(app), level="warning", form="plain")
    return app


def _mask(app: App) -> Callable[[str], str]:
    """What takes secrets out of the log: those of the app, and API keys, whose texts are known to nobody here."""
    return lambda text: app.redactor.mask(without_keys(text))


def _telemetry(settings: Settings) -> Telemetry:
    """What a server tells of its runs."""
    if not settings.otel:
        return Telemetry(metrics=settings.metrics)
    from loopagent.telemetry.exporting import exporting  # noqa: PLC0415 - only who traces needs it

    return exporting(os.environ, metrics=settings.metrics)
