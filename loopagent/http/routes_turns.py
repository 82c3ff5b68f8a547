"""Turns: what a run's model was shown, what it said, and what was made of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query

from loopagent.http.body import View
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, RunId
from loopagent.runtime.turn import turn_record


class _Said(View):
    role: Literal["user", "assistant"]
    text: str
    kind: str
    """What it is: `task`, `reply`, `results`, `summary`, …; the last one of a prompt is the `state`."""
    turn: int
    """When it was said."""


class PromptMessage(_Said):
    """One message of a prompt."""

    number: int | None
    """Which message of the transcript it is."""


class PromptView(View):
    """A prompt, rendered again from the log."""

    system: str
    messages: list[PromptMessage]
    sha256: str
    """Of the prompt as it was sent; empty while no reply has come."""
    exact: bool
    """Whether this is that prompt, byte for byte."""


class Mark(View):
    """A stretch of the reply, in characters."""

    start: int
    end: int
    kind: Literal["cut", "repaired", "added"]
    """It was left out, read although it is no JSON, or a brace was added there."""


class Operation(View):
    """Something that a reply asked for beside its step."""

    field: str
    """`artifactToolCalls`, `conversationToolCalls` or `memoryWrites`."""
    call_id: str
    asked: Any
    """The entry of the reply."""
    ok: bool | None = None
    """Absent while it is not known."""
    result: Any = None
    error: dict[str, Any] | None = None


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
    """Why it was refused: `path` and `message`, the same place as a JSON `pointer`, and its `line` in the reply, from
    1, where that is known."""
    marks: list[Mark]
    """What of the reply was left out or repaired."""
    patch: list[Any]
    """What it changed in the payload, as RFC 6902 operations."""
    changes: list[dict[str, Any]]
    """The same with what was there before: `{path, change, before?, after?}`, `change` being
    `added`, `changed` or `removed`."""
    operations: list[Operation]
    """What it asked for beside its step, and what that brought."""
    usage: dict[str, Any]
    model: str
    duration_ms: float
    error: dict[str, Any] | None = None


class TranscriptMessage(_Said):
    """One message of a run's transcript, in full."""

    number: int
    """Stable for ever."""


class Transcript(View):
    """A stretch of a transcript."""

    messages: list[TranscriptMessage]
    total: int
    """How many messages there are."""


router = APIRouter(tags=["runs"])
MAX_MESSAGES = 200
First = Annotated[int, Query(ge=1, le=10**9, description="Number of the first message.")]


@router.get("/runs/{run_id}/messages", responses=responses(401, 404, 410, 422, 503))
async def read_messages(
    app: Host,
    run_id: RunId,
    first: First = 1,
    limit: Annotated[int, Query(ge=1, le=MAX_MESSAGES)] = 50,
) -> Transcript:
    """Read what was said in a run, oldest first; what the model is shown of it may be less."""
    total = (await app.get(run_id)).state.messages
    await app.need_log(run_id)
    found = await app.store.transcript(run_id, first=first, last=first + limit - 1)
    messages = [
        TranscriptMessage(
            role=one.role, text=one.text, kind=one.kind, number=one.number, turn=one.turn
        )
        for one in found
    ]
    return Transcript(messages=messages, total=total)


@router.get("/runs/{run_id}/turns/{turn}", responses=responses(401, 404, 410, 422, 503))
async def read_turn(
    app: Host, run_id: RunId, turn: Annotated[int, Path(ge=1, le=10**9)]
) -> TurnDetail:
    """Read one turn."""
    await app.need_log(run_id)
    return TurnDetail.model_validate(
        (await turn_record(app.store, run_id, turn, app.system)).public()
    )
