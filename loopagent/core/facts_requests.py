"""The public events of who takes care of a request; its opening and its end are told in `facts`."""

from __future__ import annotations

from loopagent.core.facts import FactData


class RequestClaimed(FactData):
    """Somebody takes care of a request, or was given it; it ends with the request."""

    fact = "request.claimed"
    request_id: str
    holder: str
    """Who takes care of it from now on."""
    by: str
    """Who said so: the holder, or whoever gave it to them."""
    was: str = ""
    """Who had it before."""


class RequestReleased(FactData):
    """Nobody takes care of a request any more, and it is still open."""

    fact = "request.released"
    request_id: str
    by: str
    was: str
    """Who had it."""
