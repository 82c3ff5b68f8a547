"""Telling a listener that nobody works on a run any more: nothing happens then, so no event of the run says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.core.facts import RunStateChanged
from loopagent.core.loop_view import UNATTENDED
from loopagent.errors import LoopAgentError


if TYPE_CHECKING:
    from loopagent.app import App


class Attendance:
    """What one listener was told of it.

    Args:
        app: Knows the run.
        run_id: The run that is followed.
    """

    def __init__(self, app: App, run_id: str) -> None:
        self._app = app
        self._run_id = run_id
        self._told = ""
        """The run, this one or one below it, of which was told that nobody works on it."""

    def moved(self) -> None:
        """Something happened, so somebody works."""
        self._told = ""

    async def news(self) -> dict[str, Any] | None:
        """What has changed since, as a `run.state` without a number; None when nothing has, or nobody can say."""
        try:
            now = (await self._app.get(self._run_id)).loop
        except LoopAgentError:
            return None
        left = now.ask.run_id if now.ask is not None and now.reason == UNATTENDED else ""
        before, self._told = self._told, left
        if left == before:
            return None
        if not left:
            return _guess(before, RunStateChanged(state="running"))
        ask = now.ask.model_dump() if now.ask is not None else None
        return _guess(left, RunStateChanged(state=now.state, reason=now.reason, ask=ask))


def _guess(run_id: str, fact: RunStateChanged) -> dict[str, Any]:
    data = fact.model_dump(by_alias=True, exclude_none=True)
    return {"runId": run_id, "type": fact.fact, "decidedBy": "engine", "data": data}
