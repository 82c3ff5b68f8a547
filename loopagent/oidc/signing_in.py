"""Signing in at providers: out to one, back with a code, and who that turns out to be."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loopagent.egress import EgressSettings
from loopagent.errors import RequestError
from loopagent.logs import log
from loopagent.oidc.claims import TurnedAway, judged
from loopagent.oidc.flow import Flow
from loopagent.oidc.provider import Provider, ProviderError
from loopagent.oidc.tokens import BadTokenError


if TYPE_CHECKING:
    import ssl

    from loopagent.keys import Keys
    from loopagent.oidc.provider import Metadata
    from loopagent.oidc.spec import OidcProvider, OidcSettings

MAX_CODE_CHARS: Final = 4_096
AGAIN: Final = "Go back to the sign-in page and try once more."


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session that began: its id, where to go, and the ID token, by which the provider knows who leaves later."""

    session: str
    goes_to: str
    id_token: str


class SigningIn:
    """Signs people in.

    Args:
        settings: The providers.
        keys: Keeps sessions.
        env: Where the secrets of clients come from.
        clock: Seconds since the epoch.
        session_seconds: How long somebody stays signed in.
        egress: The operator's proxy.
        trust: Certificates that are trusted; None for those of the system.
    """

    def __init__(
        self,
        settings: OidcSettings,
        *,
        keys: Keys,
        env: Mapping[str, str],
        clock: Callable[[], float],
        session_seconds: float,
        egress: EgressSettings | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self.settings = settings
        self._keys = keys
        self._clock = clock
        self._session_seconds = session_seconds
        self._providers = {
            one.name: Provider(
                one,
                settings,
                egress=egress or EgressSettings(),
                secret=env.get(one.client_secret_env, ""),
                clock=clock,
                trust=trust,
            )
            for one in settings.providers
        }

    def spec(self, name: str) -> OidcProvider:
        """A provider's settings.

        Raises:
            RequestError: `unknown_provider` (404).
        """
        return self._provider(name).spec

    async def begin(self, name: str, goes_to: str) -> tuple[Flow, str]:
        """A new sign-in, and where the browser goes for it.

        Raises:
            RequestError: `unknown_provider` (404), `provider_unavailable` (503).
        """
        provider, flow = self._provider(name), Flow.begin(name, goes_to, self._clock())
        try:
            return flow, await provider.asks_at(flow)
        except ProviderError as error:
            raise _unavailable(provider.spec, error) from error

    async def finish(
        self, name: str, held: str, answer: Mapping[str, str]
    ) -> tuple[SignedIn | TurnedAway, OidcProvider]:
        """What came of a sign-in.

        Args:
            name: The provider, by the address that the browser came back to.
            held: What the browser holds of the sign-in that it began.
            answer: The parameters that the provider sent along.

        Raises:
            RequestError: `sign_in_failed` (400), nothing is proven; `unknown_provider` (404), `provider_unavailable`
                (503).
        """
        provider = self._provider(name)
        flow = await self._taken(Flow.read(held), name, answer.get("state", ""))
        try:
            _check_issuer(answer.get("iss"), await provider.metadata())
            code = _code(answer)
            claims, token = await provider.redeemed(code, flow)
        except ProviderError as error:
            raise _unavailable(provider.spec, error) from error
        except BadTokenError as error:
            log.warning("sign_in.refused", provider=name, error=str(error))
            raise _failed(f"What {provider.spec.title} sent proves nothing: {error}.") from error
        found = judged(claims, provider.spec)
        if isinstance(found, TurnedAway):
            log.warning("sign_in.turned_away", provider=name, subject=found.subject)
            return found, provider.spec
        session = await self._keys.sign_in_person(found.person, found.tenant, self._session_seconds)
        log.info("sign_in.done", provider=name, subject=found.person.subject)
        return SignedIn(session, flow.goes_to, token), provider.spec

    async def leaves_at(self, name: str, hint: str) -> str | None:
        """Where a browser goes to sign out at the provider too; None when that is not offered, or cannot be known."""
        provider = self._providers.get(name)
        try:
            return None if provider is None else await provider.leaves_at(hint)
        except ProviderError as error:
            log.warning("sign_in.provider_unavailable", provider=name, error=str(error))
            return None

    def _provider(self, name: str) -> Provider:
        found = self._providers.get(name)
        if found is None:
            text = f"Nobody signs in here at {name!r}."
            raise RequestError("unknown_provider", text, status=404)
        return found

    async def _taken(self, flow: Flow | None, name: str, state: str) -> Flow:
        """The sign-in that an answer belongs to, which can be used once."""
        if flow is None or flow.provider != name or not flow.is_answered_by(state):
            raise _failed("This answer belongs to no sign-in that this browser began here.")
        seconds = self.settings.sign_in_seconds
        if not 0 <= self._clock() - flow.began_at <= seconds + 1:
            raise _failed("That took too long.")
        if not await self._keys.spend(flow.text, seconds + 2):
            raise _failed("This answer was used before.")
        return flow


def _check_issuer(given: str | None, metadata: Metadata) -> None:
    """Whether the answer is this provider's: another one may have sent the browser here (RFC 9207).

    Raises:
        RequestError: `sign_in_failed` (400).
    """
    needed = metadata.authorization_response_iss_parameter_supported
    if (given is None and needed) or (
        given is not None and not hmac.compare_digest(given.encode(), metadata.issuer.encode())
    ):
        raise _failed("This answer is of another provider.")


def _code(answer: Mapping[str, str]) -> str:
    refused, code = answer.get("error"), answer.get("code", "")
    if refused is not None:
        shown = refused[:60] if refused.isprintable() else "an error"
        raise _failed(f"The provider did not sign you in: {shown}.")
    if not code or len(code) > MAX_CODE_CHARS:
        raise _failed("The provider sent no code.")
    return code


def _failed(text: str) -> RequestError:
    return RequestError("sign_in_failed", f"{text} {AGAIN}", status=400)


def _unavailable(spec: OidcProvider, error: ProviderError) -> RequestError:
    log.warning("sign_in.provider_unavailable", provider=spec.name, error=str(error))
    text = f"{spec.title} cannot be used for signing in just now; the server's log says why."
    return RequestError("provider_unavailable", text, status=503, retryable=True)
