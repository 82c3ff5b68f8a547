"""Files for a run that goes on already: kept for it first, then made known to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.attachments import Attachment, checked_attachments
from loopagent.core.events import FilesGiven
from loopagent.errors import RequestError
from loopagent.intake import check_open


if TYPE_CHECKING:
    from collections.abc import Iterable

    from loopagent.app import App
    from loopagent.core.state import Artifact, RunState


async def give_files(
    app: App, run_id: str, attachments: Iterable[Attachment], *, by: str = "client"
) -> tuple[Artifact, ...]:
    """Give files to a run; the model is told with its next prompt.

    Args:
        app: The app.
        run_id: The run.
        attachments: The files.
        by: Who gives them.

    Returns:
        The files as the run knows them now.

    Raises:
        RequestError: `unknown_run` (404), `run_ended` (409), `invalid_attachments` (422),
            `attachments_too_large` (413); nothing was given then.
    """
    files = list(attachments)
    state = (await app.get(run_id)).state
    _check(state, len(files))
    given = checked_attachments(files, state.spec.limits)
    for one in given.stored:
        await app.store.put_artifact(run_id, one)

    def decide(now: RunState) -> list[FilesGiven]:
        _check(now, len(files))
        return [FilesGiven(given.described, app.now(), by)]

    state = await app.engine.deliver(run_id, decide)
    ids = {one.artifact_id for one in given.stored}
    return tuple(one for one in state.artifacts if one.artifact_id in ids)


def _check(state: RunState, more: int) -> None:
    """Refuse what a run cannot take.

    Raises:
        RequestError: See `give_files`.
    """
    check_open(state)
    if not more:
        raise RequestError("invalid_attachments", "No file was given.")
    most = state.spec.limits.max_attachments
    has = sum(bool(one.media_type) for one in state.artifacts)
    if has + more > most:
        text = f"A run takes {most} attachments; this one has {has}."
        raise RequestError("attachments_too_large", text, status=413)
