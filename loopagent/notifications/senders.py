"""One attempt to tell one receiver: a signed request, or a mail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import httpx2

from loopagent.egress import EgressDeniedError, EgressPolicy, EgressSettings
from loopagent.egress.client import Bounds, GuardedClient, opened, operator_policy
from loopagent.egress.decoding import TooLongError
from loopagent.egress.policy import matches, network
from loopagent.errors import ConfigError
from loopagent.notification_port import Notice
from loopagent.notifications import mailing, signing, telling
from loopagent.notifications.receivers import GONE
from loopagent.notifications.spec import MAIL


if TYPE_CHECKING:
    import ssl

    from loopagent.notifications.spec import Format, MailReceiver, NotificationSettings, Payload

MAX_ANSWER_BYTES: Final = 100_000
"""Largest answer of a receiver; only its status counts."""
TOO_LARGE: Final = {"truncated": True}
"""What stands in a body that would have been too large if it were full."""
More: TypeAlias = Callable[[Notice], Awaitable[Mapping[str, Any]]]
_GOOD: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class Told:
    """What came of an attempt. `final`: no further one is wanted. `after_seconds`: the pause that is asked for."""

    status: int | None = None
    error: str = ""
    final: bool = False
    after_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Where:
    """How a receiver is reached."""

    url: str
    policy: EgressPolicy
    secret_env: str
    form: Format
    payload: Payload

    @property
    def is_full(self) -> bool:
        return self.payload == "full"


async def _nothing_more(_: Notice) -> Mapping[str, Any]:
    return {}


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

    async def tell(self, notice: Notice, now: float, more: More | None = None) -> Told:
        """Try once; never raises for what a receiver, the network or the settings do.

        Args:
            notice: What to tell.
            now: Seconds since the epoch.
            more: Gives what a full body holds beside.
        """
        try:
            if notice.target == MAIL and self._settings.mail is not None:
                return await self._mail(notice, self._settings.mail)
            return await self._post(notice, now, more or _nothing_more)
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

    def _where(self, target: str) -> _Where | None:
        """How a receiver is reached; None for one that is not known any more."""
        settings = self._settings
        if "://" in target:
            policy, secret_env = self.run_policy(target), settings.secret_env
            return _Where(target, policy, secret_env, settings.run_format, settings.run_payload)
        known = self._webhooks.get(target)
        if known is None:
            return None
        policy = operator_policy(known.url)
        return _Where(known.url, policy, known.secret_env, known.format, known.payload)

    async def _body(self, notice: Notice, where: _Where, more: More) -> tuple[str, bytes]:
        base_url, beside = self._settings.base_url, (await more(notice) if where.is_full else {})
        kind, content = telling.body(notice, base_url, where.form, beside)
        if len(content) > self._settings.max_payload_bytes:
            kind, content = telling.body(notice, base_url, where.form, TOO_LARGE)
        return kind, content

    async def _post(self, notice: Notice, now: float, more: More) -> Told:
        try:
            where = self._where(notice.target)
            if where is None:
                text = f"there is no receiver {notice.target} in the settings any more"
                return Told(error=text, final=True)
            kind, content = await self._body(notice, where, more)
            secrets = signing.secrets_in(self._env, where.secret_env)
            marks = signing.headers(secrets, notice.id, int(now), content)
            client = GuardedClient(where.policy, trust=self._trust)
            async with opened(client) as sender:
                answer = await sender.fetch(
                    "POST",
                    where.url,
                    headers=[("content-type", kind), *marks],
                    content=content,
                    bounds=Bounds(
                        total_seconds=self._settings.timeout_seconds, max_bytes=MAX_ANSWER_BYTES
                    ),
                )
        except EgressDeniedError as error:
            of_a_run = (
                "://" in notice.target
            )  # whoever named it is not told what there is inside; the log is
            return Told(error=str(error) if of_a_run else f"{error}: {error.reason}", final=True)
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
