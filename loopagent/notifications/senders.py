"""One attempt to tell one receiver: a signed request, or a mail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx2

from loopagent.egress import (
    Bounds,
    EgressDeniedError,
    EgressPolicy,
    EgressSettings,
    GuardedClient,
    TooLongError,
    opened,
    operator_policy,
)
from loopagent.egress.policy import matches, network
from loopagent.errors import ConfigError
from loopagent.notifications import mailing, signing, telling
from loopagent.notifications.spec import MAIL


if TYPE_CHECKING:
    import ssl

    from loopagent.notification_port import Notice
    from loopagent.notifications.spec import MailReceiver, NotificationSettings

MAX_ANSWER_BYTES: Final = 100_000
"""Largest answer of a receiver; only its status counts."""
GONE: Final = 410
"""The status by which a receiver says that it wants to hear nothing more."""
_GOOD: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class Told:
    """What came of an attempt. `final`: no further one is wanted. `after_seconds`: the pause that is asked for."""

    status: int | None = None
    error: str = ""
    final: bool = False
    after_seconds: float = 0.0


class Senders:
    """Tells receivers.

    Args:
        settings: Who they are.
        egress: What the operator allows for addresses that runs name.
        env: Where secrets come from.
        trust: Certificates that are trusted; None for those of the system.
    """

    def __init__(
        self,
        settings: NotificationSettings,
        egress: EgressSettings,
        env: Mapping[str, str],
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._egress = egress
        self._env = env
        self._trust = trust
        self._webhooks = {one.name: one for one in settings.webhooks}

    async def tell(self, notice: Notice, now: float) -> Told:
        """Try once; never raises for what a receiver, the network or the settings do."""
        try:
            if notice.target == MAIL and self._settings.mail is not None:
                return await self._mail(notice, self._settings.mail)
            return await self._post(notice, now)
        except ConfigError as error:
            return Told(error=str(error))
        except Exception as error:  # noqa: BLE001 - what one cannot be told must not keep the others waiting
            return Told(error=f"it could not be told: {type(error).__name__}")

    # ------------------------------------------------------------------ webhooks

    def run_policy(self, url: str) -> EgressPolicy:
        """Where an address that a run names may lead: to public hosts, and as far as the operator opens more.

        Raises:
            EgressDeniedError: Nowhere, as far as can be told without resolving its host.
            httpx2.InvalidURL: It is no address.
        """
        operator = self._egress
        opened_networks = tuple(map(network, operator.private_networks))
        ports = operator.ports or EgressPolicy().ports
        if opened_networks and not operator.ports:
            ports = None  # the port of a program on one's own network is its own business
        hosts = self._settings.hosts or None
        policy = EgressPolicy(hosts, ports, opened_networks, proxy=operator.proxy)
        target = httpx2.URL(url)
        policy.check(target.scheme, target.host, target.port)
        if operator.hosts and not matches(target.host.lower().rstrip("."), operator.hosts):
            raise EgressDeniedError(target.host, "the host is not among those of [egress]")
        return policy

    def _where(self, target: str) -> tuple[str, EgressPolicy, str] | None:
        """Address, policy and the variable of the secret; None for a receiver that is not known any more."""
        if "://" in target:
            return target, self.run_policy(target), self._settings.secret_env
        known = self._webhooks.get(target)
        return (known and (known.url, operator_policy(known.url), known.secret_env)) or None

    async def _post(self, notice: Notice, now: float) -> Told:
        try:
            where = self._where(notice.target)
            if where is None:
                text = f"there is no receiver {notice.target} in the settings any more"
                return Told(error=text, final=True)
            url, policy, secret_env = where
            content = telling.body(notice, self._settings.base_url)
            secrets = signing.secrets_in(self._env, secret_env)
            marks = signing.headers(secrets, notice.id, int(now), content)
            client = GuardedClient(policy, trust=self._trust)
            async with opened(client) as sender:
                answer = await sender.fetch(
                    "POST",
                    url,
                    headers=[("content-type", "application/json"), *marks],
                    content=content,
                    bounds=Bounds(
                        total_seconds=self._settings.timeout_seconds, max_bytes=MAX_ANSWER_BYTES
                    ),
                )
        except EgressDeniedError as error:
            return Told(error=f"{error}: {error.reason}", final=True)
        except TooLongError:
            return Told(error="the answer is too large")
        except TimeoutError:
            return Told(error="there was no answer in time")
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            return Told(error=f"it could not be called: {type(error).__name__}")
        return _judged(answer.status, answer.headers.get("retry-after", ""))

    # ------------------------------------------------------------------ mail

    async def _mail(self, notice: Notice, receiver: MailReceiver) -> Told:
        name, settings = receiver.smtp_env, self._settings
        server = mailing.server_at(self._env.get(name, ""), name)
        message = telling.mail(notice, settings.base_url, receiver.sender, receiver.to)
        seconds = settings.timeout_seconds
        try:
            await mailing.send(server, message, timeout_seconds=seconds, trust=self._trust)
        except mailing.MailError as error:
            return Told(error.status, str(error))
        return Told(250)


def _judged(status: int, retry_after: str) -> Told:
    if status in _GOOD:
        return Told(status)
    wait = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
    return Told(status, f"it answered {status}", final=status == GONE, after_seconds=wait)
