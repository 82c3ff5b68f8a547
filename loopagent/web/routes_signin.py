"""Signing in with an API key, and signing out. The browser holds the random id of a session, never the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.callers import session_of
from loopagent.web.posts import fields_of, one
from loopagent.web.routes_oidc import HINT
from loopagent.web.shared import access_of, app_of, pages_of
from loopagent.web.signing import local, set_cookie, set_session


if TYPE_CHECKING:
    from collections.abc import Mapping

UNAUTHORIZED = 401
UNKNOWN = "No key or token that is valid here; check that all of it was copied."
router = APIRouter(include_in_schema=False)


@router.get("/signin")
async def show_signin(request: Request) -> Response:
    """The form."""
    goes_to = local(request.query_params.get("goes_to", ""))
    return pages_of(request).page(request, "signin.html", {"goes_to": goes_to, "error": ""})


@router.post("/signin")
async def sign_in(request: Request) -> Response:
    """Begin a session, and go where somebody wanted to go."""
    sent = await fields_of(request)
    access, goes_to = access_of(request), local(one(sent, "goes_to"))
    session = await access.sign_in(one(sent, "key").strip())
    if session is None:
        context = {"goes_to": goes_to, "error": UNKNOWN}
        return pages_of(request).page(request, "signin.html", context, status=UNAUTHORIZED)
    answer = RedirectResponse(goes_to, 303)
    set_session(request, answer, session, access.settings.session_hours * 3_600)
    return answer


@router.post("/signout")
async def sign_out(request: Request) -> Response:
    """End the session; of somebody who came from a provider, also there, if it offers that."""
    await fields_of(request)
    keys, session = app_of(request).keys, session_of(_headers(request))
    known = await keys.session(session)
    await keys.sign_out(session)
    leaves_at = None
    if known is not None and known.person is not None:
        leaves_at = await _leaves_at(request, known.person.provider)
    answer = (
        RedirectResponse("/signin", 303)
        if leaves_at is None
        else pages_of(request).page(request, "signed_out.html", {"leaves_at": leaves_at})
    )
    set_session(request, answer, "", 0)
    set_cookie(request, answer, HINT, "", 0, path="/signout")
    return answer


async def _leaves_at(request: Request, provider: str) -> str | None:
    signing_in = request.app.state.signing_in
    hint = request.cookies.get(HINT, "")
    return None if signing_in is None else await signing_in.leaves_at(provider, hint)


def _headers(request: Request) -> Mapping[str, str]:
    return request.headers
