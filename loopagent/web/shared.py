"""What every page needs of the request it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from starlette.requests import Request  # a dependency of routes: needed when they are made

from loopagent.access import Caller
from loopagent.callers import CALLER


if TYPE_CHECKING:
    from loopagent.app import App
    from loopagent.callers import Access
    from loopagent.web.render import Pages


MAX_DIGITS = 15


def whole(text: str | None) -> int | None:
    """A whole number in an address; None where there is none."""
    fits = text is not None and text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
    return int(text or 0) if fits else None


def app_of(request: Request) -> App:
    """The app that is served."""
    return cast("App", request.app.state.app)


def pages_of(request: Request) -> Pages:
    """The templates."""
    return cast("Pages", request.app.state.pages)


def caller_of(request: Request) -> Caller:
    """Who makes a request."""
    return cast("Caller", request.scope[CALLER])


def access_of(request: Request) -> Access:
    """How the server knows callers."""
    return cast("Access", request.app.state.access)


def tenant_of(request: Request) -> str:
    """Whose actions a page shows: those of the caller's tenant, for one who reaches all those of runs without any."""
    return caller_of(request).tenant or ""
