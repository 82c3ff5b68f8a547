"""One provider: its discovery document, its keys and its token endpoint, all through the guard."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, quote_plus, urlencode, urlsplit

import httpx2
from pydantic import BaseModel, ValidationError

from loopagent.egress import EgressDeniedError, EgressPolicy
from loopagent.egress.client import Bounds, GuardedClient, opened, operator_policy
from loopagent.egress.decoding import TooLongError
from loopagent.oidc import tokens
from loopagent.oidc.spec import is_safe


if TYPE_CHECKING:
    import ssl

    from loopagent.egress import EgressSettings
    from loopagent.oidc.flow import Flow
    from loopagent.oidc.spec import OidcProvider, OidcSettings

DISCOVERY: Final = "/.well-known/openid-configuration"
MAX_BYTES: Final = 1_000_000
OK: Final = 200
BASIC, POST, NONE = "client_secret_basic", "client_secret_post", "none"


class ProviderError(Exception):
    """A provider cannot be used just now, or answered nonsense; the message is for the log, without secrets."""


class Metadata(BaseModel):
    """What is needed of a discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None = None
    token_endpoint_auth_methods_supported: list[str] = [BASIC]
    authorization_response_iss_parameter_supported: bool = False


class _Jwks(BaseModel):
    keys: list[dict[str, Any]]


class _Answered(BaseModel):
    id_token: str


Read = TypeVar("Read", bound=BaseModel)


class Provider:
    """Talks to a provider.

    Args:
        spec: Which.
        settings: How long to wait, and how long to keep what it said.
        egress: The operator's proxy.
        secret: That of this client; empty without one.
        clock: Seconds since the epoch.
        trust: Certificates that are trusted; None for those of the system.
    """

    def __init__(
        self,
        spec: OidcProvider,
        settings: OidcSettings,
        *,
        egress: EgressSettings,
        secret: str,
        clock: Callable[[], float],
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self.spec = spec
        self._settings = settings
        self._egress = egress
        self._secret = secret
        self._clock = clock
        self._trust = trust
        self._lock = asyncio.Lock()
        self._metadata: tuple[float, Metadata] | None = None
        self._keys: tuple[float, tokens.Keys] | None = None
        self._away: float | None = None

    @property
    def back(self) -> str:
        """Where it sends people back to."""
        base = (self._settings.base_url or "").rstrip("/")
        return f"{base}/signin/oidc/{self.spec.name}/callback"

    async def asks_at(self, flow: Flow) -> str:
        """Where a browser goes to sign in.

        Raises:
            ProviderError: It cannot be used just now.
        """
        question = {
            "response_type": "code",
            "client_id": self.spec.client_id,
            "redirect_uri": self.back,
            "scope": " ".join(self.spec.scopes),
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": flow.challenge,
            "code_challenge_method": "S256",
        }
        return _with_query((await self.metadata()).authorization_endpoint, question)

    async def leaves_at(self, hint: str) -> str | None:
        """Where a browser goes to sign out there too; None when that is not offered.

        Args:
            hint: The ID token of the sign-in; empty when it is not at hand.

        Raises:
            ProviderError: It cannot be used just now.
        """
        endpoint = (await self.metadata()).end_session_endpoint
        if endpoint is None or not self.spec.end_session:
            return None
        base = (self._settings.base_url or "").rstrip("/")
        about = {
            "client_id": self.spec.client_id,
            "post_logout_redirect_uri": f"{base}/signin",
            **({"id_token_hint": hint} if hint else {}),
        }
        return _with_query(endpoint, about)

    async def redeemed(self, code: str, flow: Flow) -> tuple[dict[str, Any], str]:
        """The checked claims of the ID token that a code is good for, and the token.

        Raises:
            ProviderError: It cannot be used just now, or does not take the code.
            BadTokenError: The token proves nothing.
        """
        metadata = await self.metadata()
        token = await self._exchange(metadata, code, flow)
        how: dict[str, Any] = {
            "nonce": flow.nonce,
            "leeway_seconds": self._settings.clock_skew_seconds,
        }
        try:
            return tokens.checked(token, await self._known_keys(metadata), self.spec, **how), token
        except tokens.UnknownKeyError:
            newer = await self._newer_keys(metadata)
            return tokens.checked(token, newer, self.spec, **how), token

    async def metadata(self) -> Metadata:
        """The discovery document, which has to be this issuer's own.

        Raises:
            ProviderError: It cannot be read, or is not this issuer's.
        """
        async with self._lock:
            now = self._clock()
            if self._metadata is None or now - self._metadata[0] >= self._settings.keys_seconds:
                self._metadata = (now, await self._discovered(now))
            return self._metadata[1]

    async def _discovered(self, now: float) -> Metadata:
        """The document as it is now; whoever asks while the provider is away does not wait for it again."""
        if self._away is not None and now - self._away < self._settings.retry_seconds:
            raise ProviderError("it could not be used a moment ago")
        self._away = now
        url = self.spec.issuer.rstrip("/") + DISCOVERY
        found = _read(Metadata, await self._fetch("GET", url), "discovery document")
        self._check(found)
        self._away = None
        return found

    def _check(self, found: Metadata) -> None:
        if found.issuer != self.spec.issuer:
            raise ProviderError(f"the discovery document is of another issuer: {found.issuer!r}")
        ends = (found.authorization_endpoint, found.token_endpoint, found.jwks_uri)
        for one in (*ends, found.end_session_endpoint or self.spec.issuer):
            if not is_safe(one):
                raise ProviderError("the discovery document names an address that is not https")

    async def _known_keys(self, metadata: Metadata) -> tokens.Keys:
        async with self._lock:
            now = self._clock()
            if self._keys is None or now - self._keys[0] >= self._settings.keys_seconds:
                self._keys = (now, await self._fetch_keys(metadata))
            return self._keys[1]

    async def _newer_keys(self, metadata: Metadata) -> tokens.Keys:
        """The keys as they are now; read again at most once in a while, whatever tokens come."""
        async with self._lock:
            now = self._clock()
            if self._keys is None or now - self._keys[0] >= self._settings.new_keys_seconds:
                self._keys = (now, await self._fetch_keys(metadata))
            return self._keys[1]

    async def _fetch_keys(self, metadata: Metadata) -> tokens.Keys:
        return _read(_Jwks, await self._fetch("GET", metadata.jwks_uri), "set of keys").keys

    async def _exchange(self, metadata: Metadata, code: str, flow: Flow) -> str:
        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.back,
            "code_verifier": flow.verifier,
        }
        headers = [("content-type", "application/x-www-form-urlencoded")]
        if not self._secret:
            sent["client_id"] = self.spec.client_id
        elif BASIC in metadata.token_endpoint_auth_methods_supported:
            pair = f"{quote_plus(self.spec.client_id)}:{quote_plus(self._secret)}"
            headers.append(("authorization", f"Basic {b64encode(pair.encode()).decode()}"))
        else:
            sent |= {"client_id": self.spec.client_id, "client_secret": self._secret}
        body = urlencode(sent).encode()
        answer = await self._fetch("POST", metadata.token_endpoint, headers=headers, content=body)
        return _read(_Answered, answer, "answer of the token endpoint").id_token

    async def _fetch(self, method: str, url: str, **sent: Any) -> bytes:
        seconds = self._settings.timeout_seconds
        try:
            async with opened(GuardedClient(self._policy(url), trust=self._trust)) as client:
                answer = await client.fetch(
                    method, url, **sent, bounds=Bounds(seconds, seconds, MAX_BYTES)
                )
        except EgressDeniedError as error:
            raise ProviderError(f"{error}: {error.reason}") from error
        except (TimeoutError, TooLongError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ProviderError(f"it could not be called: {type(error).__name__}") from error
        if answer.status != OK:
            raise ProviderError(f"{urlsplit(url).path} answered {answer.status}")
        return answer.body

    def _policy(self, url: str) -> EgressPolicy:
        """The issuer's own host may be on this network; others that its document names have to be public."""
        own, named = urlsplit(self.spec.issuer), urlsplit(url)
        if (named.scheme, named.hostname) == (own.scheme, own.hostname):
            return operator_policy(url, proxy=self._egress.proxy)
        return EgressPolicy(
            (named.hostname or "",), (named.port or 443,), (), ("https",), self._egress.proxy
        )


def _read(kind: type[Read], text: bytes, what: str) -> Read:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise ProviderError(f"the {what} is none: {error.error_count()} problems") from error


def _with_query(address: str, query: Mapping[str, str]) -> str:
    """An address with more parameters; those that it has stay."""
    parts = urlsplit(address)
    more = urlencode(query, quote_via=quote)
    return parts._replace(query=f"{parts.query}&{more}" if parts.query else more).geturl()
