"""`loopagent runs log` writes down all that was committed of a run, `loopagent replay` goes through it again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loopagent.cli.approvals import runs
from loopagent.cli.manage import RunId, with_app
from loopagent.cli.opening import AsJson, Database, ProjectDir
from loopagent.cli.output import out, print_json
from loopagent.cli.tools import read_text
from loopagent.errors import ConfigError, CorruptError
from loopagent.runtime.replay import read_recording, record, recording_lines
from loopagent.testing.replaying import replay


if TYPE_CHECKING:
    from loopagent.app import App
    from loopagent.runtime.replay import Replayed

__all__ = ["runs"]


@runs.command("log")
def write_log(
    run_id: RunId,
    project: ProjectDir = Path(),
    db: Database = None,
    file: Annotated[
        Path | None, typer.Option("--out", help="File to write; default: print it.")
    ] = None,
) -> None:
    """Write down all that was committed of a run, for `loopagent replay` and for bug reports."""

    async def work(app: App) -> int:
        text = "".join(f"{one}\n" for one in recording_lines(await record(app.store, run_id)))
        if file is None:
            sys.stdout.write(text)
            return 0
        try:
            file.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            message = f"{file}: cannot be written: {error.strerror}"
            raise ConfigError(message) from error
        out.print(f"{file} has the log of {run_id}", markup=False)
        return 0

    with_app(project, db, work)


def replay_log(
    log: Annotated[
        str, typer.Argument(help="File that `loopagent runs log` wrote; - is standard input.")
    ],
    as_json: AsJson = False,
) -> None:
    """Go through the log of a run again, performing nothing, and tell where this version leads elsewhere.

    Exit code 0: all is as it was; 1: something is not; 2: this is no log, or another version wrote it.
    """
    try:
        recording = read_recording(read_text(log).split("\n"))
    except CorruptError as error:
        message = f"{log}: {error}"
        raise ConfigError(message) from error
    found = replay(recording)
    if as_json:
        print_json(_public(recording.state.id, found))
    else:
        _show(recording.state.id, found)
    raise typer.Exit(1 if found.differences else 0)


def _public(run_id: str, found: Replayed) -> dict[str, object]:
    differences = [
        {"entry": one.entry, "turn": one.turn, "what": one.what, "detail": one.detail}
        for one in found.differences
    ]
    counts = {"entries": found.entries, "turns": found.turns, "prompts": found.prompts}
    return {"runId": run_id, **counts, "differences": differences}


def _show(run_id: str, found: Replayed) -> None:
    for one in found.differences:
        line = f"entry {one.entry}, turn {one.turn}: {one.what}: {one.detail}"
        out.print(line, markup=False, soft_wrap=True)
    count = len(found.differences)
    verdict = f"{count} difference{'s'[: count - 1]}" if count else "all as it was"
    out.print(
        f"{run_id}: {found.entries} entries, {found.turns} turns, {found.prompts} prompts: {verdict}",
        markup=False,
    )
