"""What every page needs of the request it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast


if TYPE_CHECKING:
    from starlette.requests import Request

    from loopagent.app import App
    from loopagent.web.render import Pages


def app_of(request: Request) -> App:
    """The app that is served."""
    return cast("App", request.app.state.app)


def pages_of(request: Request) -> Pages:
    """The templates."""
    return cast("Pages", request.app.state.pages)
