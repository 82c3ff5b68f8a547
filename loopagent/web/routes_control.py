"""What may be done to a run from its page: say something, pause, raise limits, cancel, fork; and comparing two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.app import App
from loopagent.callers import check_run
from loopagent.errors import RequestError
from loopagent.web.posts import Fields, fields_of, one
from loopagent.web.routes_runs import run_page
from loopagent.web.shared import app_of, caller_of, pages_of, whole


LIMITS: dict[str, Callable[[str], float]] = {
    "maxTurns": int,
    "maxSeconds": float,
    "maxTokens": int,
    "maxCostUsd": float,
}
router = APIRouter(include_in_schema=False)


@router.post("/runs/{run_id}")
async def change_run(request: Request, run_id: str) -> Response:
    """Do what the pressed button says, and show the run; what was typed is refused in words on the page."""
    sent = await fields_of(request)
    try:
        act = ACTS.get(one(sent, "do"))
        if act is None:
            raise RequestError("bad_form", "Choose one of the buttons.", status=400)  # noqa: TRY301
        goes_to = await act(app_of(request), run_id, sent, caller_of(request).by) or run_id
    except RequestError as error:
        return await run_page(request, run_id, str(error), error.status)
    return RedirectResponse(f"/runs/{goes_to}", 303)


async def _queue(app: App, run_id: str, sent: Fields, by: str) -> None:
    await app.post(run_id, one(sent, "text"), delivery="queue", by=by)


async def _steer(app: App, run_id: str, sent: Fields, by: str) -> None:
    await app.post(run_id, one(sent, "text"), delivery="steer", by=by)


async def _cancel(app: App, run_id: str, sent: Fields, by: str) -> None:
    await app.cancel(run_id, reason=one(sent, "text"), by=by)


async def _pause(app: App, run_id: str, sent: Fields, by: str) -> None:
    await app.pause(run_id, reason=one(sent, "text"), by=by)


async def _resume(app: App, run_id: str, sent: Fields, by: str) -> None:
    del sent
    await app.resume(run_id, by=by)


async def _plan(app: App, run_id: str, sent: Fields, by: str) -> None:
    del sent
    await app.set_mode(run_id, "plan", by=by)


async def _act(app: App, run_id: str, sent: Fields, by: str) -> None:
    del sent
    await app.set_mode(run_id, "act", by=by)


async def _raise(app: App, run_id: str, sent: Fields, by: str) -> None:
    wanted: dict[str, Any] = {}
    for name, read in LIMITS.items():
        text = one(sent, name).strip()
        if not text:
            continue
        try:
            wanted[name] = read(text)
        except ValueError as error:
            message = f"{name} must be a number, not {text!r}."
            raise RequestError("invalid_limits", message) from error
    await app.raise_limits(run_id, wanted, by=by)


async def _fork(app: App, run_id: str, sent: Fields, by: str) -> str:
    turn, message = one(sent, "turn"), one(sent, "text")
    view = await app.fork(
        run_id,
        turn=whole(turn),
        message=message if message.strip() else None,
        by=by,
    )
    return view.id


async def _revoke(app: App, run_id: str, sent: Fields, by: str) -> None:
    await app.revoke_approval(run_id, one(sent, "approval"), by=by)


ACTS: dict[str, Callable[[App, str, Fields, str], Awaitable[str | None]]] = {
    "queue": _queue,
    "steer": _steer,
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
    "plan": _plan,
    "act": _act,
    "raise": _raise,
    "fork": _fork,
    "revoke": _revoke,
}


@router.get("/compare")
async def compare(request: Request) -> Response:
    """Two runs side by side, turn by turn."""
    asked = request.query_params
    first, second = asked.get("a", "").strip(), asked.get("b", "").strip()
    found = None
    if first and second:
        for run_id in (first, second):
            await check_run(app_of(request), caller_of(request), run_id)
        found = await app_of(request).compare(first, second)
    context = {"first": first, "second": second, "found": found}
    return pages_of(request).page(request, "compare.html", context)
