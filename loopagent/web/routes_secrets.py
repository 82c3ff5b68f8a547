"""Secrets by name: whether they are set, for which hosts, who uses them; never a value."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from loopagent.actions.secret_list import secret_states
from loopagent.web.drafts import known_actions, means_of
from loopagent.web.shared import pages_of


router = APIRouter(include_in_schema=False)


@router.get("/secrets")
async def list_secrets(request: Request) -> Response:
    """The secrets that are set up or used."""
    uses = [(one.name, one.secrets) for one in await known_actions(request)]
    states = secret_states(means_of(request).secrets, uses)
    return pages_of(request).page(request, "secrets.html", {"secrets": states})
