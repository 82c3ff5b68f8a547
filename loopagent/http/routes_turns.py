"""Turns: what a run's model was shown, what it said, and what was made of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path

from loopagent.http.body import View
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, RunId
from loopagent.runtime.turn import turn_record


class PromptMessage(View):
    """One message of a prompt."""

    role: Literal["user", "assistant"]
    text: str


class PromptView(View):
    """A prompt, rendered again from the log."""

    system: str
    messages: list[PromptMessage]
    sha256: str
    """Of the prompt as it was sent; empty while no reply has come."""
    exact: bool
    """Whether this is that prompt, byte for byte."""


class TurnDetail(View):
    """One turn: the prompt, the reply word for word, and what was made of it."""

    turn: int
    prompt: PromptView
    raw: str
    reply: str
    """`accepted`, `rejected`, `truncated`; empty when none came."""
    type: str
    outcome: str
    warnings: list[str]
    """Repairs and what else was noticed in the reply."""
    problems: list[dict[str, Any]]
    patch: list[Any]
    """What it changed in the payload, as RFC 6902 operations."""
    usage: dict[str, Any]
    model: str
    duration_ms: float
    error: dict[str, Any] | None = None


router = APIRouter(tags=["runs"])


@router.get("/runs/{run_id}/turns/{turn}", responses=responses(401, 404, 410, 422, 503))
async def read_turn(
    app: Host, run_id: RunId, turn: Annotated[int, Path(ge=1, le=10**9)]
) -> TurnDetail:
    """Read one turn."""
    await app.need_log(run_id)
    return TurnDetail.model_validate(
        (await turn_record(app.store, run_id, turn, app.system)).public()
    )
