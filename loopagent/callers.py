"""Who makes a request, and whether what it is about is there for this caller."""

from __future__ import annotations

import hashlib
import hmac
import math
from dataclasses import dataclass
from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final

from loopagent.access import OPERATOR, AccessSettings, Caller
from loopagent.access_rules import Rule, rule_for
from loopagent.errors import RequestError
from loopagent.host_names import is_own_name
from loopagent.keys import NO_ISSUERS


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.app import App


COOKIE: Final = "loopagent_session"
CALLER: Final = "loopagent.caller"
"""Where a request's scope holds its `Caller`."""
SESSION: Final = "loopagent.session"
"""Where a request's scope holds the id of its session, if it has one."""
MAX_BUCKETS: Final = 10_000
MAX_SHOWN_CHARS: Final = 100


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Access:
    """Knows callers, and how often they call.

    Args:
        app: What is served.
        token: A token that opens everything, or None.
        settings: Sessions and rates.
        anybody: Let everybody in, whatever keys there are; for a server that only its own machine can reach.
        issuers: The providers that vouch for people, by name.
    """

    def __init__(
        self,
        app: App,
        *,
        token: str | None,
        settings: AccessSettings,
        anybody: bool = False,
        issuers: Mapping[str, str] = NO_ISSUERS,
    ) -> None:
        self._app = app
        self._token = token
        self.settings = settings
        self._anybody = anybody
        self._closed = token is not None or bool(issuers)
        self._issuers = issuers
        self._buckets: dict[str, _Bucket] = {}

    async def open(self) -> bool:
        """Whether everybody is let in: nobody has made a key, set a token or named a provider, or it was told to."""
        if self._anybody:
            return True
        self._closed = self._closed or await self._app.keys.any()
        return not self._closed

    async def caller(self, headers: Mapping[str, str]) -> tuple[Caller | None, str]:
        """Who makes a request, and the id of the session by which that is known; None for nobody known.

        Where everybody is let in, nobody is under a name that may be another site's.
        """
        if await self.open():
            own = is_own_name(headers.get("host", ""), self.settings.hosts)
            return OPERATOR if own else None, ""
        given = headers.get("authorization")
        if given is not None:
            return await self._bearer(given), ""
        session = session_of(headers)
        if not session:
            return None, ""
        found = await self._app.keys.signed_in(session, self._token_id, self._issuers)
        return found, session if found else ""

    async def unknown(self, headers: Mapping[str, str]) -> RequestError:
        """What to tell somebody who is not known: `unauthorized` or `foreign_name` (401)."""
        if not await self.open():
            text = "Send an API key, or the server's token, as `Authorization: Bearer …`."
            return RequestError("unauthorized", text, status=401)
        text = (
            "This server lets everybody in who calls it by an address or as localhost, not as"
            f" {headers.get('host', '')[:MAX_SHOWN_CHARS]!r}: other sites could stand behind such a name. Make an API"
            " key, or add the name to `hosts` in the table [access] of loopagent.toml."
        )
        return RequestError("foreign_name", text, status=401)

    async def _bearer(self, given: str) -> Caller | None:
        kind, _, text = given.partition(" ")
        return await self.known(text.strip()) if kind.lower() == "bearer" else None

    async def known(self, secret: str) -> Caller | None:
        """Whose key or token a text is."""
        if self._token is not None and hmac.compare_digest(_coded(secret), _coded(self._token)):
            return OPERATOR
        return await self._app.keys.caller(secret)

    async def sign_in(self, secret: str) -> str | None:
        """Begin a session for whoever brings a key or the token; None when it is neither."""
        caller = await self.known(secret)
        if caller is None:
            return None
        key_id, seconds = caller.key_id or self._token_id, self.settings.session_hours * 3_600
        return await self._app.keys.sign_in(key_id, seconds, tenant=caller.tenant)

    @cached_property
    def _token_id(self) -> str:
        """By which sessions of the token are known while it is the same; people choose it, so it is slow to guess."""
        made = hashlib.scrypt(_coded(self._token or ""), salt=b"loopagent", n=2**14, r=8, p=1)
        return f"token-{made.hex()[:32]}"

    def waits(self, caller: Caller) -> int:
        """Seconds until this caller may make another request; 0 for at once, which counts as one."""
        if not caller.key_id:
            return 0
        now, most = self._app.now(), float(self.settings.burst)
        if len(self._buckets) >= MAX_BUCKETS:
            self._buckets.clear()
        bucket = self._buckets.setdefault(caller.key_id, _Bucket(most, now))
        gained = max(0.0, now - bucket.at) * self.settings.requests_per_second
        bucket.left, bucket.at = min(most, bucket.left + gained), now
        if bucket.left >= 1:
            bucket.left -= 1
            return 0
        return math.ceil((1 - bucket.left) / self.settings.requests_per_second)

    async def check(self, caller: Caller, method: str, path: str) -> None:
        """Whether a caller may make a request, as far as its address says.

        Raises:
            RequestError: `forbidden` (403) when a scope is missing; 404 for what is not there for this caller.
        """
        if caller.is_operator:
            return
        found = rule_for(method, path)
        if found is None:
            raise RequestError("not_found", "There is no such page.", status=404)
        rule, named = found
        _check_scopes(caller, rule)
        await self._check_objects(caller, named)

    async def _check_objects(self, caller: Caller, named: Mapping[str, str]) -> None:
        for name in ("run", "other"):
            if name in named:
                await check_run(self._app, caller, named[name])
        for name, (what, tenant_of) in OWNERS.items():
            if name in named and not caller.reaches(await tenant_of(self._app, named[name])):
                raise _unknown(what, named[name])


async def _of_request(app: App, name: str) -> str | None:
    row = await app.store.request(name)
    return row.tenant if row else None


async def _of_notice(app: App, name: str) -> str | None:
    told = await app.store.notice(name)
    return await app.store.tenant_of(told.run_id) if told else None


async def _of_key(app: App, name: str) -> str | None:
    key = await app.store.key(name)
    return key.tenant if key else None


async def _of_trigger(app: App, name: str) -> str | None:
    spec = app.triggers.specs.get(name)
    return spec.tenant if spec else None


OWNERS: Final = {
    "request": ("request", _of_request),
    "notice": ("notification", _of_notice),
    "key": ("key", _of_key),
    "trigger": ("trigger", _of_trigger),
}
"""What a name in an address stands for, and whose that is."""


def _check_scopes(caller: Caller, rule: Rule) -> None:
    if not caller.may(*rule.scopes):
        text = f"This key may not do that: it needs the scope {' or '.join(rule.scopes)}."
        raise RequestError("forbidden", text, status=403)
    if rule.objects == "server" and caller.tenant is not None:
        text = "This concerns all tenants: it needs a key for all of them."
        raise RequestError("forbidden", text, status=403)


async def check_run(app: App, caller: Caller, run_id: str) -> None:
    """Whether a run is there for a caller.

    Raises:
        RequestError: `unknown_run` (404), it does not exist or is another tenant's.
    """
    if caller.tenant is not None and not caller.reaches(await app.store.tenant_of(run_id)):
        raise _unknown("run", run_id)


def _unknown(what: str, name: str) -> RequestError:
    return RequestError(f"unknown_{what}", f"There is no {what} {name!r}.", status=404)


def session_of(headers: Mapping[str, str]) -> str:
    """The id of a session in a request's cookies; empty without one."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _coded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
