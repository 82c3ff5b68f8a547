"""Signing in at an OpenID provider: out to it, and back. Meanwhile the browser holds a random text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.errors import RequestError
from loopagent.oidc.claims import TurnedAway
from loopagent.web.render import SECURITY
from loopagent.web.shared import access_of, pages_of
from loopagent.web.signing import local, set_cookie, set_session


if TYPE_CHECKING:
    from loopagent.oidc.signing_in import SigningIn

FLOW: Final = "loopagent_flow"
HINT: Final = "loopagent_hint"
"""The cookie with the ID token, by which the provider knows at sign-out who leaves; sent to `/signout` only."""
MAX_HINT_CHARS: Final = 3_500
FORBIDDEN = 403
router = APIRouter(include_in_schema=False)


def signing_in_of(request: Request) -> SigningIn:
    """What signs people in.

    Raises:
        RequestError: `unknown_provider` (404), nobody signs in at a provider here.
    """
    found = cast("SigningIn | None", request.app.state.signing_in)
    if found is None:
        raise RequestError("unknown_provider", "Nobody signs in here at a provider.", status=404)
    return found


@router.get("/signin/oidc/{name}")
async def go(request: Request, name: str) -> Response:
    """Off to the provider."""
    goes_to = local(request.query_params.get("goes_to", ""))
    signing_in = signing_in_of(request)
    flow, address = await signing_in.begin(name, goes_to)
    answer = RedirectResponse(address, 303, headers=SECURITY)
    set_cookie(request, answer, _flow(request), flow.text, signing_in.settings.sign_in_seconds)
    return answer


@router.get("/signin/oidc/{name}/callback")
async def come_back(request: Request, name: str) -> Response:
    """Back from the provider, with a code or a refusal."""
    held = request.cookies.get(_flow(request), "")
    found, spec = await signing_in_of(request).finish(name, held, request.query_params)
    if isinstance(found, TurnedAway):
        context = {"found": found, "provider": spec.title}
        turned = pages_of(request).page(request, "turned_away.html", context, status=FORBIDDEN)
        set_cookie(request, turned, _flow(request), "", 0)
        return turned
    answer = RedirectResponse(local(found.goes_to), 303, headers=SECURITY)
    seconds = access_of(request).settings.session_hours * 3_600
    set_session(request, answer, found.session, seconds)
    set_cookie(request, answer, _flow(request), "", 0)
    if len(found.id_token) <= MAX_HINT_CHARS and spec.end_session:
        set_cookie(request, answer, HINT, found.id_token, seconds, path="/signout")
    return answer


def _flow(request: Request) -> str:
    """The cookie of a sign-in on its way; over HTTPS one that no other host of the domain can set."""
    return f"__Host-{FLOW}" if request.url.scheme == "https" else FLOW
