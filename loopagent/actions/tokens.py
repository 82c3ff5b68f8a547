"""Access tokens: fetched with a client's credentials, shared, and renewed once however many calls need a new one.

Source:
    RFC 6749, section 4.4 (client credentials) and 5 (answers of the token endpoint).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, urlencode
from weakref import WeakKeyDictionary

from loopagent.core.json_values import is_object
from loopagent.errors import ActionError


if TYPE_CHECKING:
    from loopagent.egress.client import Answer

_Loop = asyncio.AbstractEventLoop
DEFAULT_SECONDS: Final = 300.0
"""How long a token is used whose server does not say how long it lasts."""
MARGIN_SECONDS: Final = 30.0
"""A token is renewed so long before it expires, but never before half of its time is over."""
_OK: Final = 200
_REFUSED: Final = frozenset({400, 401, 403})


@dataclass(frozen=True, slots=True)
class Grant:
    """What to ask a token endpoint for; not shown, since it holds a secret."""

    url: str
    client_id: str = field(repr=False)
    client_secret: str = field(repr=False)
    scopes: tuple[str, ...] = ()
    audience: str | None = None
    client_auth: str = "basic"

    def form(self) -> bytes:
        """The body of the request."""
        pairs = {"grant_type": "client_credentials"}
        if self.scopes:
            pairs["scope"] = " ".join(self.scopes)
        if self.audience is not None:
            pairs["audience"] = self.audience
        if self.client_auth == "body":
            pairs |= {"client_id": self.client_id, "client_secret": self.client_secret}
        return urlencode(pairs).encode()

    def user(self) -> tuple[str, str] | None:
        """User name and password of the request, coded as the standard asks; None when they are in the body."""
        if self.client_auth == "body":
            return None
        return quote_plus(self.client_id), quote_plus(self.client_secret)


@dataclass(frozen=True, slots=True)
class _Token:
    value: str = field(repr=False)
    renew_at: float = 0.0


@dataclass(slots=True)
class _Known:
    tokens: dict[Grant, _Token] = field(default_factory=dict[Grant, _Token])
    locks: dict[Grant, asyncio.Lock] = field(default_factory=dict[Grant, asyncio.Lock])


class Tokens:
    """The tokens of a process, each event loop by itself; kept in memory only."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[_Loop, _Known] = WeakKeyDictionary()

    async def get(
        self, grant: Grant, fetch: Callable[[Grant], Awaitable[Answer]], *, refused: str = ""
    ) -> str:
        """A token that is good as far as is known.

        Args:
            grant: What it is for.
            fetch: Asks the token endpoint.
            refused: A token that a server has just refused, which is not given again.

        Raises:
            ActionError: There is none.
        """
        loop = asyncio.get_running_loop()
        known = self._known.setdefault(loop, _Known())
        async with known.locks.setdefault(grant, asyncio.Lock()):
            token = known.tokens.get(grant)
            if token is not None and token.value != refused and loop.time() < token.renew_at:
                return token.value
            value, seconds = _token(await fetch(grant))
            margin = min(MARGIN_SECONDS, seconds / 2)
            known.tokens[grant] = _Token(value, loop.time() + seconds - margin)
            return value


def _token(answer: Answer) -> tuple[str, float]:
    """Token and life time of an answer."""
    body = _body(answer)
    value, kind = body.get("access_token"), str(body.get("token_type", "bearer")).lower()
    if answer.status == _OK and isinstance(value, str) and value and kind == "bearer":
        return value, _seconds(body.get("expires_in"))
    told = body.get("error")
    reason = f", {told[:60]}" if isinstance(told, str) else ""
    raise ActionError(
        f"No access token was given out (status {answer.status}{reason}).",
        code="auth_failed",
        fatal=answer.status in _REFUSED,
    )


def _body(answer: Answer) -> dict[str, Any]:
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return body if is_object(body) else {}


def _seconds(value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return DEFAULT_SECONDS
    return seconds if seconds > 0 else DEFAULT_SECONDS
