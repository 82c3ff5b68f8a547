"""Signing in with an API key, and signing out. The browser holds the random id of a session, never the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.callers import COOKIE, session_of
from loopagent.web.posts import fields_of, one
from loopagent.web.shared import access_of, app_of, pages_of


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
    _set_cookie(request, answer, session, int(access.settings.session_hours * 3_600))
    return answer


@router.post("/signout")
async def sign_out(request: Request) -> Response:
    """End the session."""
    await fields_of(request)
    await app_of(request).keys.sign_out(session_of(_headers(request)))
    answer = RedirectResponse("/signin", 303)
    _set_cookie(request, answer, "", 0)
    return answer


def _headers(request: Request) -> Mapping[str, str]:
    return request.headers


def _set_cookie(request: Request, answer: Response, value: str, seconds: int) -> None:
    answer.set_cookie(
        COOKIE,
        value,
        max_age=seconds,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def local(address: str) -> str:
    """An address as one of this server; the inbox for any other."""
    plain = address.startswith("/") and "\\" not in address and address.isprintable()
    return address if plain and not address.startswith("//") else "/"
