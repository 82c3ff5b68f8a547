"""Cookies of sessions, and where somebody goes who signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.callers import COOKIE


if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def set_session(request: Request, answer: Response, value: str, seconds: float) -> None:
    """Have the browser hold the id of a session."""
    set_cookie(request, answer, COOKIE, value, seconds)


def set_cookie(
    request: Request, answer: Response, name: str, value: str, seconds: float, *, path: str = "/"
) -> None:
    """Have the browser hold a text that no script can read; forget it after 0 seconds."""
    answer.set_cookie(
        name,
        value,
        max_age=int(seconds),
        path=path,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def local(address: str) -> str:
    """An address as one of this server; the inbox for any other."""
    plain = address.startswith("/") and "\\" not in address and address.isprintable()
    return address if plain and not address.startswith("//") else "/"
