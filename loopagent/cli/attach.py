"""Files at the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopagent.app import App
from loopagent.attachments import Attachment
from loopagent.cli.manage import RunId, with_app
from loopagent.cli.opening import AsJson, Database, ProjectDir
from loopagent.cli.output import out, print_json, visible
from loopagent.errors import ConfigError
from loopagent.giving import give_files


def read_files(files: list[Path], most_bytes: int) -> list[Attachment]:
    """Files for a run; none is read that could not be taken anyway.

    Args:
        files: Where they are.
        most_bytes: Size up to which a file is read.

    Raises:
        ConfigError: One cannot be read or is too large.
    """
    found: list[Attachment] = []
    for file in files:
        try:
            size = file.stat().st_size
            if size > most_bytes:
                message = f"{file}: has {size} bytes; a run takes {most_bytes} (limits.maxAttachmentBytes)"
                raise ConfigError(message)
            found.append(Attachment(file.name, file.read_bytes()))
        except OSError as error:
            message = f"{file}: cannot be read: {error.strerror}"
            raise ConfigError(message) from error
    return found


def attach(
    run_id: RunId,
    files: Annotated[list[Path], typer.Argument(help="Files that the model can look into.")],
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Give files to a run that has not ended; the model is told with its next prompt."""

    async def work(app: App) -> int:
        limits = (await app.get(run_id)).state.spec.limits
        given = read_files(files, limits.max_attachment_bytes)
        known = await give_files(app, run_id, given, by="human")
        if as_json:
            print_json([{"handle": one.handle, "name": one.name} for one in known])
            return 0
        for one in known:
            out.print(visible(f"{one.handle}: {one.name}, {one.media_type}, {one.chars} bytes"))
        return 0

    with_app(project, db, work)
